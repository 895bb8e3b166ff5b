// Maps of stereographic points in float32, each in one pass forward and one backward. The formulas
// are those of curved_trig.py and gyro.py, the oracle of the tests. Points are [components, block,
// tokens]; a chunk of tokens at a time stays in the first cache.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

constexpr int64_t kChunk = 256;
constexpr float kTiny = 1e-20f;
constexpr float kPi = 3.14159265f;
constexpr float kLong = 4e25f;  // longer squares are left to the plain forms, see `shorten`

struct Constants {  // `single_precision_constants` of curved_trig.py
  float tan_upper[4], tan_rest[4], artan_upper[4], artan_rest[4];
  float lowest, beyond_pole, reach, log_reach, floor, eps, square_floor, sum_floor;
};

struct Ratio {
  float value, slope;  // slope: derivative by z
};

inline float cubic(float z, const float* c) { return c[0] + z * (c[1] + z * (c[2] + z * c[3])); }

inline float cubic_slope(float z, const float* c) { return c[1] + z * (2 * c[2] + z * (3 * c[3])); }

inline Ratio stopped(Ratio r, float length, float z) {
  const float w = std::max(-z, kTiny), limit = length / std::sqrt(w);
  const bool free = r.value < limit;
  const float slope = -z > kTiny ? 0.5f * limit / w : 0.0f;
  return {free ? r.value : limit, free ? r.slope : slope};
}

// `tan_and_log_ratio`: of tan_k(x) / x at the rim, and of the logarithm of that point.
inline void tan_and_log(float z, const Constants& c, Ratio& tangent, Ratio& log) {
  const bool positive = z > kTiny;
  const float s = std::sqrt(std::max(z, kTiny)), turns = std::rint(s * (1 / kPi)) * kPi;
  const Ratio kept{1 - turns / s, positive ? 0.5f * turns / (s * s * s) : 0.0f};
  const float moved = z + turns * (turns - 2 * s);
  const float near = std::min(std::max(moved, c.lowest), c.beyond_pole);
  const float by_z = near == moved ? kept.value : 0.0f;
  const float upper = cubic(near, c.tan_upper), rest = cubic(near, c.tan_rest);
  const float by_near = cubic_slope(near, c.tan_upper);
  const float lower = upper + near * rest, below = std::max(lower, 1e-7f);
  const float by_lower = by_near + rest + near * cubic_slope(near, c.tan_rest);
  const float quotient = upper / below;
  const float slope = (by_near - quotient * (lower >= 1e-7f ? by_lower : 0.0f)) / below;
  const Ratio free{kept.value * quotient, kept.slope * quotient + kept.value * slope * by_z};
  tangent = stopped(free, c.reach, z);
  log = stopped(kept, c.log_reach, z);
}

// `artan_ratio` of projected points: two halvings of the angle, then the fraction.
inline Ratio artan(float z, const Constants& c) {
  const bool inside = 1 + z >= c.floor;
  float root = std::sqrt(std::max(1 + z, c.floor)), root_slope = inside ? 0.5f / root : 0.0f;
  float slope = 1, factor = 4, factor_slope = 0;
  for (int k = 0; k < 2; k++) {
    const float half = 1 / (1 + root), half_slope = -half * half * root_slope;
    slope = (slope * half + 2 * z * half_slope) * half;
    z = z * half * half;
    const float next = std::sqrt(2 * root * half);
    root_slope = (root_slope * half + root * half_slope) / next;
    root = next;
    factor_slope = factor_slope * half + factor * half_slope;
    factor = factor * half;
  }
  const float n = cubic(z, c.artan_upper), rest = cubic(z, c.artan_rest), below = n + z * rest;
  const float by_n = cubic_slope(z, c.artan_upper);
  const float by_below = by_n + rest + z * cubic_slope(z, c.artan_rest);
  const float quotient = n / below, by_z = (by_n - quotient * by_below) / below;
  return {factor * quotient, factor_slope * quotient + factor * by_z * slope};
}

// The factors of s = x + y and of x in the projected Moebius sum: `_factors` of gyro.py.
struct Sum {
  float a, b, ab, curved, inverse, z, stop, to_s, to_x;
};

inline Sum sum_of(float x2, float y2, float s2, float k, const Constants& c) {
  Sum f;
  f.a = std::max(1 + k * x2, c.floor);
  f.b = std::max(1 + k * y2, c.floor);
  f.ab = f.a * f.b;
  f.curved = k * s2;
  f.inverse = 1 / std::max(f.ab - f.curved, c.eps * f.ab);
  f.z = f.curved * f.inverse;
  f.stop = std::min(c.reach / std::sqrt(std::max(-f.z, kTiny)), 1.0f);
  f.to_s = f.a * f.inverse * f.stop;
  f.to_x = -f.z * f.stop;
  return f;
}

struct SumGrad {
  float x2, y2, s2, kappa;
};

// From the gradients of both factors, and of kappa times the squared norm of the projected sum.
inline SumGrad pull(const Sum& f, float x2, float y2, float s2, float k, const Constants& c,
                    float to_s, float to_x, float norm) {
  const bool at_rim = f.stop < 1;
  const float stop = to_s * f.a * f.inverse - to_x * f.z;
  const float z = (at_rim ? stop * 0.5f * f.stop / -f.z : norm) - to_x * f.stop;
  const float inverse = to_s * f.a * f.stop + z * f.curved;
  const float denominator = -inverse * f.inverse * f.inverse;
  const bool small = f.ab - f.curved < c.eps * f.ab;
  const float ab = small ? c.eps * denominator : denominator;
  const float curved = z * f.inverse - (small ? 0.0f : denominator);
  const float a = 1 + k * x2 >= c.floor ? to_s * f.inverse * f.stop + ab * f.b : 0.0f;
  const float b = 1 + k * y2 >= c.floor ? ab * f.a : 0.0f;
  return {k * a, k * b, k * curved, a * x2 + b * y2 + curved * s2};
}

// The factor of N in `half_quotient` and its derivatives by D, |N|^2 and kappa.
struct Half {
  float value, by_d, by_n2, by_kappa;
};

inline Half half_of(float d, float n2, float k, bool printed, const Constants& c) {
  const bool negative = d < 0, far = negative && k > 0 && !printed;
  const float size = std::abs(d), square = size * size, curved = k * n2;
  const float sum = square + curved, inside = std::max(sum, c.floor * square);
  const bool free = sum >= c.floor * square && inside > c.square_floor;
  const float root = std::sqrt(std::max(inside, c.square_floor)), whole = size + root;
  const float by_inside = free ? 0.5f / root : 0.0f, by_size = 1 + 2 * size * by_inside;
  const float least = std::max(c.eps * c.eps * square, c.sum_floor);
  const float divisor = far ? std::max(curved, least) : whole;
  const float sign = negative ? -1.0f : 1.0f;
  const float value = (far ? whole : sign) / divisor;
  const float along = far ? 1 / divisor : -value / divisor;  // derivative by `whole`
  const float across = far ? -value / divisor : 0.0f;        // derivative by the divisor
  const bool cut = curved < least, fixed = c.eps * c.eps * square < c.sum_floor;
  const float least_by_size = cut && !fixed ? 2 * c.eps * c.eps * size : 0.0f;
  const float by_curved = along * by_inside + (cut ? 0.0f : across);
  return {value, sign * (along * by_size + across * least_by_size), k * by_curved, n2 * by_curved};
}

struct Shape {
  int64_t components, block, tokens, chunks;
  Shape(int64_t components, int64_t block, int64_t tokens)
      : components(components), block(block), tokens(tokens),
        chunks((tokens + kChunk - 1) / kChunk) {}
};

// Calls a function of component, first token and number of tokens for every chunk.
template <typename Function>
void for_chunks(const Shape& shape, int64_t threads, const Function& function) {
  const int64_t count = shape.components * shape.chunks;
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t i = 0; i < count; i++) {
    const int64_t start = i % shape.chunks * kChunk;
    function(i / shape.chunks, start, std::min(kChunk, shape.tokens - start));
  }
}

// Sums of products over the block, `[tokens]`.
inline void dot(const float* x, const float* y, const Shape& shape, int64_t n,
                float* __restrict sum) {
  std::fill_n(sum, n, 0.0f);
  for (int64_t c = 0; c < shape.block; c++, x += shape.tokens, y += shape.tokens)
    for (int64_t t = 0; t < n; t++) sum[t] += x[t] * y[t];
}

// |x + y|^2, `[tokens]`.
inline void dot_of_sum(const float* x, const float* y, const Shape& shape, int64_t n,
                       float* __restrict sum) {
  std::fill_n(sum, n, 0.0f);
  for (int64_t c = 0; c < shape.block; c++, x += shape.tokens, y += shape.tokens)
    for (int64_t t = 0; t < n; t++) sum[t] += (x[t] + y[t]) * (x[t] + y[t]);
}

// The same as `dot` with one number of each coordinate.
inline void dot_with(const float* x, const float* each, const Shape& shape, int64_t n,
                     float* __restrict sum) {
  std::fill_n(sum, n, 0.0f);
  for (int64_t c = 0; c < shape.block; c++, x += shape.tokens)
    for (int64_t t = 0; t < n; t++) sum[t] += x[t] * each[c];
}

inline float total(const float* x, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t t = 0; t < n; t++) sum += x[t];
  return sum;
}

inline float largest(const float* x, int64_t n) {
  float result = 0;
#pragma omp simd reduction(max : result)
  for (int64_t t = 0; t < n; t++) result = std::max(result, x[t]);
  return result;
}

bool any(const std::vector<char>& chunks) {
  return std::any_of(chunks.begin(), chunks.end(), [](char each) { return each != 0; });
}

// Adds up the parts of all chunks, `[components, chunks, width]`, in their order.
void add_up(const std::vector<float>& parts, const Shape& shape, int64_t width, float* sums) {
  for (int64_t h = 0; h < shape.components; h++)
    for (int64_t i = 0; i < shape.chunks; i++)
      for (int64_t c = 0; c < width; c++)
        sums[h * width + c] += parts[(h * shape.chunks + i) * width + c];
}

}  // namespace

// v times a ratio of z = kappa |v|^2: 0 tan at the rim and its logarithm, 1 the first, 2 the second,
// 3 artan. `saved` are ratios and slopes, [2, components, tokens] of each. Returns whether a square
// overflows.
extern "C" int64_t radial(const float* v, const float* kappa, int64_t components, int64_t block,
                          int64_t tokens, int64_t kind, float* first, float* second, float* saved,
                          const Constants* constants, int64_t threads) {
  const Shape shape(components, block, tokens);
  const Constants c = *constants;
  const int64_t each = components * tokens;
  std::vector<char> overflow(components * shape.chunks);
  for_chunks(shape, threads, [&](int64_t h, int64_t start, int64_t n) {
    const int64_t offset = h * block * tokens + start;
    float n2[kChunk];
    dot(v + offset, v + offset, shape, n, n2);
    float* __restrict ratio = saved + h * tokens + start;
    float* __restrict slope = ratio + each;
    overflow[h * shape.chunks + start / kChunk] = largest(n2, n) > kLong;
    if (kind == 3) {
      for (int64_t t = 0; t < n; t++) {
        const Ratio r = artan(kappa[h] * n2[t], c);
        ratio[t] = r.value, slope[t] = r.slope;
      }
    } else if (kind == 0) {
      float* __restrict log_ratio = ratio + 2 * each;
      float* __restrict log_slope = ratio + 3 * each;
      for (int64_t t = 0; t < n; t++) {
        Ratio r, l;
        tan_and_log(kappa[h] * n2[t], c, r, l);
        ratio[t] = r.value, slope[t] = r.slope;
        log_ratio[t] = l.value, log_slope[t] = l.slope;
      }
    } else {
      for (int64_t t = 0; t < n; t++) {
        Ratio r, l;
        tan_and_log(kappa[h] * n2[t], c, r, l);
        ratio[t] = kind == 1 ? r.value : l.value, slope[t] = kind == 1 ? r.slope : l.slope;
      }
    }
    for (int64_t k = 0; k < block; k++) {
      const int64_t place = offset + k * tokens;
      for (int64_t t = 0; t < n; t++) first[place + t] = v[place + t] * ratio[t];
      if (kind == 0)
        for (int64_t t = 0; t < n; t++) second[place + t] = v[place + t] * ratio[2 * each + t];
    }
  });
  return any(overflow);
}

// Gradients of v and of kappa, [components], from those of the results.
extern "C" void radial_backward(const float* v, const float* kappa, int64_t components,
                                int64_t block, int64_t tokens, int64_t kind, const float* first,
                                const float* second, const float* saved, float* grad_v,
                                float* grad_kappa, int64_t threads) {
  const Shape shape(components, block, tokens);
  const int64_t each = components * tokens;
  std::vector<float> parts(components * shape.chunks);
  for_chunks(shape, threads, [&](int64_t h, int64_t start, int64_t n) {
    const int64_t offset = h * block * tokens + start;
    float n2[kChunk], along[kChunk], other[kChunk], by_z[kChunk];
    dot(v + offset, v + offset, shape, n, n2);
    dot(first + offset, v + offset, shape, n, along);
    const float *ratio = saved + h * tokens + start, *log_ratio = ratio + 2 * each;
    for (int64_t t = 0; t < n; t++) by_z[t] = along[t] * ratio[each + t];
    if (kind == 0) {
      dot(second + offset, v + offset, shape, n, other);
      for (int64_t t = 0; t < n; t++) by_z[t] += other[t] * log_ratio[each + t];
    }
    for (int64_t k = 0; k < block; k++) {
      const int64_t place = offset + k * tokens;
      for (int64_t t = 0; t < n; t++)
        grad_v[place + t] = first[place + t] * ratio[t] + 2 * kappa[h] * by_z[t] * v[place + t];
      if (kind == 0)
        for (int64_t t = 0; t < n; t++) grad_v[place + t] += second[place + t] * log_ratio[t];
    }
    for (int64_t t = 0; t < n; t++) by_z[t] *= n2[t];
    parts[h * shape.chunks + start / kChunk] = total(by_z, n);
  });
  add_up(parts, shape, 1, grad_kappa);
}

// exp_0(u) (+) exp_0(v), projected, of u [components, block, tokens] and v [components, block]; with
// `scales` [components, tokens] instead [2 s p, 2 s - 1] of the sum p and s = 1 / (1 + kappa |p|^2),
// [components, block + 1, tokens]: no sum is made. Returns whether a square overflows.
extern "C" int64_t exp_sum(const float* u, const float* v, const float* kappa, int64_t components,
                           int64_t block, int64_t tokens, float* out, float* scales,
                           const Constants* constants, int64_t threads) {
  const Shape shape(components, block, tokens);
  const Constants c = *constants;
  std::vector<char> overflow(components * shape.chunks);
  for_chunks(shape, threads, [&](int64_t h, int64_t start, int64_t n) {
    const float *x = u + h * block * tokens + start, *y = v + h * block, k = kappa[h];
    float n2[kChunk], product[kChunk], of_u[kChunk], of_v[kChunk], v2 = 0;
    for (int64_t i = 0; i < block; i++) v2 += y[i] * y[i];
    Ratio v_ratio, unused;
    tan_and_log(k * v2, c, v_ratio, unused);
    const float rv = v_ratio.value, y2 = rv * rv * v2;
    dot(x, x, shape, n, n2);
    dot_with(x, y, shape, n, product);
    overflow[h * shape.chunks + start / kChunk] = v2 > kLong || largest(n2, n) > kLong;
    float* __restrict result = out + h * (block + (scales != nullptr)) * tokens + start;
    for (int64_t t = 0; t < n; t++) {
      Ratio r, l;
      tan_and_log(k * n2[t], c, r, l);
      const float x2 = r.value * r.value * n2[t];
      const float s2 = x2 + y2 + 2 * r.value * rv * product[t];
      const Sum f = sum_of(x2, y2, s2, k, c);
      of_u[t] = r.value * (f.to_s + f.to_x), of_v[t] = rv * f.to_s;
      product[t] = 1 / std::max(1 + f.z * f.stop * f.stop, c.floor);
    }
    if (scales != nullptr) {
      float* __restrict scale = scales + h * tokens + start;
      for (int64_t t = 0; t < n; t++) {
        const float twice = 2 * product[t];
        of_u[t] *= twice, of_v[t] *= twice, scale[t] = product[t];
        result[block * tokens + t] = twice - 1;
      }
    }
    for (int64_t i = 0; i < block; i++)
      for (int64_t t = 0; t < n; t++)
        result[i * tokens + t] = x[i * tokens + t] * of_u[t] + y[i] * of_v[t];
  });
  return any(overflow);
}

// Gradients of u, and of v and kappa as [components, block + 1], from those of the results.
extern "C" void exp_sum_backward(const float* u, const float* v, const float* kappa,
                                 int64_t components, int64_t block, int64_t tokens,
                                 const float* grad, const float* grad_scales, float* grad_u,
                                 float* grad_rest, const Constants* constants, int64_t threads) {
  const Shape shape(components, block, tokens);
  const Constants c = *constants;
  const int64_t width = block + 1;
  const bool mean = grad_scales != nullptr;
  std::vector<float> parts(components * shape.chunks * width);
  for_chunks(shape, threads, [&](int64_t h, int64_t start, int64_t n) {
    const float *x = u + h * block * tokens + start, *y = v + h * block, k = kappa[h];
    const float* g = grad + h * (block + mean) * tokens + start;
    float n2[kChunk], product[kChunk], along[kChunk], across[kChunk], of_u[kChunk], of_v[kChunk];
    float by_scale[kChunk], by_ratio[kChunk], by_v2[kChunk], by_kappa[kChunk], v2 = 0;
    for (int64_t i = 0; i < block; i++) v2 += y[i] * y[i];
    Ratio v_ratio, unused;
    tan_and_log(k * v2, c, v_ratio, unused);
    const float rv = v_ratio.value, y2 = rv * rv * v2;
    dot(x, x, shape, n, n2);
    dot_with(x, y, shape, n, product);
    dot(g, x, shape, n, along);
    dot_with(g, y, shape, n, across);
    for (int64_t t = 0; t < n; t++)
      by_scale[t] = mean ? grad_scales[h * tokens + start + t] + 2 * g[block * tokens + t] : 0.0f;
    for (int64_t t = 0; t < n; t++) {
      Ratio r, l;
      tan_and_log(k * n2[t], c, r, l);
      const float ru = r.value, x2 = ru * ru * n2[t], s2 = x2 + y2 + 2 * ru * rv * product[t];
      const Sum f = sum_of(x2, y2, s2, k, c);
      const float u_factor = ru * (f.to_s + f.to_x), v_factor = rv * f.to_s;
      const float norm = 1 + f.z * f.stop * f.stop, scale = 1 / std::max(norm, c.floor);
      const float twice = mean ? 2 * scale : 1.0f;
      const float pulled = by_scale[t] + 2 * (u_factor * along[t] + v_factor * across[t]);
      const float by_norm = mean && norm >= c.floor ? -scale * scale * pulled : 0.0f;
      const float by_u = twice * along[t], by_v = twice * across[t];
      const float to_s = by_u * ru + by_v * rv, to_x = by_u * ru;
      const SumGrad s = pull(f, x2, y2, s2, k, c, to_s, to_x, by_norm);
      const float gx2 = s.x2 + s.s2, gy2 = s.y2 + s.s2;
      const float by_ru =
          by_u * (f.to_s + f.to_x) + 2 * (rv * product[t] * s.s2 + ru * n2[t] * gx2);
      const float by_z = by_ru * r.slope;
      by_ratio[t] = by_v * f.to_s + 2 * (ru * product[t] * s.s2 + rv * v2 * gy2);
      by_v2[t] = rv * rv * gy2;
      by_kappa[t] = s.kappa + n2[t] * by_z;
      of_u[t] = twice * u_factor, of_v[t] = twice * v_factor;
      n2[t] = 2 * (ru * ru * gx2 + k * by_z);
      product[t] = 2 * ru * rv * s.s2;
    }
    const float by_rv = total(by_ratio, n), v_slope = v_ratio.slope * by_rv;
    const float twice_v2 = 2 * (total(by_v2, n) + k * v_slope);
    float* part = parts.data() + (h * shape.chunks + start / kChunk) * width;
    for (int64_t i = 0; i < block; i++) {
      const float *xi = x + i * tokens, *gi = g + i * tokens;
      float* __restrict result = grad_u + (h * block + i) * tokens + start;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t t = 0; t < n; t++) {
        result[t] = of_u[t] * gi[t] + n2[t] * xi[t] + product[t] * y[i];
        sum += of_v[t] * gi[t] + product[t] * xi[t];
      }
      part[i] = sum + twice_v2 * y[i];
    }
    part[block] = total(by_kappa, n) + v2 * v_slope;
  });
  add_up(parts, shape, width, grad_rest);
}

// The projected Moebius sum of x and y.
extern "C" void mobius_add(const float* x, const float* y, const float* kappa, int64_t components,
                           int64_t block, int64_t tokens, float* out, const Constants* constants,
                           int64_t threads) {
  const Shape shape(components, block, tokens);
  const Constants c = *constants;
  for_chunks(shape, threads, [&](int64_t h, int64_t start, int64_t n) {
    const int64_t offset = h * block * tokens + start;
    float x2[kChunk], y2[kChunk], s2[kChunk];
    dot(x + offset, x + offset, shape, n, x2);
    dot(y + offset, y + offset, shape, n, y2);
    dot_of_sum(x + offset, y + offset, shape, n, s2);
    for (int64_t t = 0; t < n; t++) {
      const Sum f = sum_of(x2[t], y2[t], s2[t], kappa[h], c);
      x2[t] = f.to_s + f.to_x, y2[t] = f.to_s;
    }
    for (int64_t i = 0; i < block; i++) {
      const int64_t place = offset + i * tokens;
      for (int64_t t = 0; t < n; t++)
        out[place + t] = x2[t] * x[place + t] + y2[t] * y[place + t];
    }
  });
}

// Gradients of x, y and kappa, [components], from that of the sum.
extern "C" void mobius_add_backward(const float* x, const float* y, const float* kappa,
                                    int64_t components, int64_t block, int64_t tokens,
                                    const float* grad, float* grad_x, float* grad_y,
                                    float* grad_kappa, const Constants* constants,
                                    int64_t threads) {
  const Shape shape(components, block, tokens);
  const Constants c = *constants;
  std::vector<float> parts(components * shape.chunks);
  for_chunks(shape, threads, [&](int64_t h, int64_t start, int64_t n) {
    const int64_t offset = h * block * tokens + start;
    float x2[kChunk], y2[kChunk], s2[kChunk], along_x[kChunk], along_y[kChunk];
    float by_kappa[kChunk];
    dot(x + offset, x + offset, shape, n, x2);
    dot(y + offset, y + offset, shape, n, y2);
    dot(grad + offset, x + offset, shape, n, along_x);
    dot(grad + offset, y + offset, shape, n, along_y);
    dot_of_sum(x + offset, y + offset, shape, n, s2);
    for (int64_t t = 0; t < n; t++) {
      const Sum f = sum_of(x2[t], y2[t], s2[t], kappa[h], c);
      const float to_s = along_x[t] + along_y[t];
      const SumGrad s = pull(f, x2[t], y2[t], s2[t], kappa[h], c, to_s, along_x[t], 0);
      by_kappa[t] = s.kappa;
      x2[t] = 2 * s.x2, y2[t] = 2 * s.y2, s2[t] = 2 * s.s2;
      along_x[t] = f.to_s + f.to_x, along_y[t] = f.to_s;
    }
    for (int64_t i = 0; i < block; i++) {
      const int64_t place = offset + i * tokens;
      for (int64_t t = 0; t < n; t++) {
        const float xi = x[place + t], yi = y[place + t], both = s2[t] * (xi + yi);
        grad_x[place + t] = along_x[t] * grad[place + t] + x2[t] * xi + both;
        grad_y[place + t] = along_y[t] * grad[place + t] + y2[t] * yi + both;
      }
    }
    parts[h * shape.chunks + start / kChunk] = total(by_kappa, n);
  });
  add_up(parts, shape, 1, grad_kappa);
}

// N / (D + R) of sums [N, D], [components, block + 1, tokens], as [components, block, tokens].
extern "C" void half_quotient(const float* sums, const float* kappa, int64_t components,
                              int64_t block, int64_t tokens, int64_t printed, float* out,
                              const Constants* constants, int64_t threads) {
  const Shape shape(components, block, tokens);
  const Constants c = *constants;
  for_chunks(shape, threads, [&](int64_t h, int64_t start, int64_t n) {
    const float* x = sums + h * (block + 1) * tokens + start;
    float n2[kChunk];
    dot(x, x, shape, n, n2);
    for (int64_t t = 0; t < n; t++)
      n2[t] = half_of(x[block * tokens + t], n2[t], kappa[h], printed != 0, c).value;
    float* __restrict result = out + h * block * tokens + start;
    for (int64_t i = 0; i < block; i++)
      for (int64_t t = 0; t < n; t++) result[i * tokens + t] = x[i * tokens + t] * n2[t];
  });
}

// Gradients of sums and kappa, [components], from that of the quotient.
extern "C" void half_quotient_backward(const float* sums, const float* kappa, int64_t components,
                                       int64_t block, int64_t tokens, int64_t printed,
                                       const float* grad, float* grad_sums, float* grad_kappa,
                                       const Constants* constants, int64_t threads) {
  const Shape shape(components, block, tokens);
  const Constants c = *constants;
  std::vector<float> parts(components * shape.chunks);
  for_chunks(shape, threads, [&](int64_t h, int64_t start, int64_t n) {
    const float* x = sums + h * (block + 1) * tokens + start;
    const float* g = grad + h * block * tokens + start;
    float* __restrict result = grad_sums + h * (block + 1) * tokens + start;
    float n2[kChunk], along[kChunk], value[kChunk], by_kappa[kChunk];
    dot(x, x, shape, n, n2);
    dot(x, g, shape, n, along);
    for (int64_t t = 0; t < n; t++) {
      const Half f = half_of(x[block * tokens + t], n2[t], kappa[h], printed != 0, c);
      value[t] = f.value;
      result[block * tokens + t] = along[t] * f.by_d;
      by_kappa[t] = along[t] * f.by_kappa;
      n2[t] = 2 * along[t] * f.by_n2;
    }
    for (int64_t i = 0; i < block; i++)
      for (int64_t t = 0; t < n; t++)
        result[i * tokens + t] = value[t] * g[i * tokens + t] + n2[t] * x[i * tokens + t];
    parts[h * shape.chunks + start / kChunk] = total(by_kappa, n);
  });
  add_up(parts, shape, 1, grad_kappa);
}

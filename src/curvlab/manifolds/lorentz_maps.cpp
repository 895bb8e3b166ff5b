// Maps of points of the Lorentz model, one pass forward and one backward over points [rows, 1 + dim]
// in float32, computed in double precision. The formulas are those of lorentz.py and of
// `SigmoidTime` in hybonet.py, the oracle of the tests.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace {

constexpr int64_t kRows = 64;  // of a part, whose sums are added in order

using Sixteen = std::integral_constant<int64_t, 16>;

// Calls a function with the number of coordinates, a constant for the papers' width.
template <typename Function>
void with_width(int64_t dim, const Function& function) {
  if (dim + 1 == Sixteen::value)
    function(Sixteen());
  else
    function(dim + 1);
}

// <x, y> of the space parts: that of all coordinates, whose number fills registers, without times.
template <typename Width>
inline double dot(const float* x, const float* y, Width width) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < width; i++) sum += static_cast<double>(x[i]) * y[i];
  return sum - static_cast<double>(x[0]) * y[0];
}

// Calls a function of a row and of the sums of its part, `width` of them, which are added up.
template <typename Function>
void for_rows(int64_t rows, int64_t width, double* sums, int64_t threads,
              const Function& function) {
  const int64_t count = (rows + kRows - 1) / kRows;
  std::vector<double> parts(count * width);
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t i = 0; i < count; i++)
    for (int64_t row = i * kRows; row < std::min(rows, (i + 1) * kRows); row++)
      function(row, parts.data() + i * width);
  for (int64_t i = 0; i < count; i++)
    for (int64_t j = 0; j < width; j++) sums[j] += parts[i * width + j];
}

// Of a sum m: the factor f of its space part s, |s|^2, the length and the time of f s.
struct Normal {
  double factor, square, length, time;
  bool floored;
};

template <typename Width>
inline Normal normal_of(const float* m, Width width, double kappa, double floor) {
  const double time = m[0], square = dot(m, m, width), whole = time * time - square;
  const bool floored = whole < floor * time * time;
  const double length = floored ? floor * time * time : whole;
  const double factor = 1 / std::sqrt(-kappa * length);
  return {factor, square, length, std::sqrt(factor * factor * square - 1 / kappa), floored};
}

// Of two space parts p and q and a weight: what `lorentz.midpoint` computes.
struct Middle {
  double p2, q2, root_p, root_q, chord, norm, factor, m2, time;
};

template <typename Width>
inline Middle middle_of(const float* p, const float* q, Width width, double kappa, double weight) {
  Middle m;
  const double p0 = p[0], q0 = q[0];
  double p2 = -p0 * p0, q2 = -q0 * q0;
#pragma omp simd reduction(+ : p2, q2)
  for (int64_t i = 0; i < width; i++) {
    p2 += static_cast<double>(p[i]) * p[i];
    q2 += static_cast<double>(q[i]) * q[i];
  }
  m.p2 = p2, m.q2 = q2;
  m.root_p = std::sqrt(1 - kappa * p2), m.root_q = std::sqrt(1 - kappa * q2);
  const double by_p = 1 / (1 + m.root_p), by_q = 1 / (1 + m.root_q);
  const double c0 = p0 * by_p - q0 * by_q, m0 = p0 + weight * (q0 - p0);
  double c2 = -c0 * c0, m2 = -m0 * m0;
#pragma omp simd reduction(+ : c2, m2)
  for (int64_t i = 0; i < width; i++) {
    const double c = p[i] * by_p - q[i] * by_q, mean = p[i] + weight * (q[i] - double(p[i]));
    c2 += c * c;
    m2 += mean * mean;
  }
  m.chord = c2, m.m2 = m2;
  m.norm = 1 - weight * (1 - weight) * kappa * c2 / (by_p * by_q);
  m.factor = 1 / std::sqrt(m.norm);
  m.time = std::sqrt(m.factor * m.factor * m2 - 1 / kappa);
  return m;
}

// |s|^2 of a space part.
inline double square_of(const float* s, int64_t dim) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < dim; i++) sum += static_cast<double>(s[i]) * s[i];
  return sum;
}

}  // namespace

// `lorentz.from_space` of space parts [rows, dim].
extern "C" void from_space(const float* space, const float* kappa, int64_t rows, int64_t dim,
                           float* out, int64_t threads) {
  double none;
  for_rows(rows, 0, &none, threads, [&](int64_t row, double*) {
    const float* s = space + row * dim;
    float* x = out + row * (1 + dim);
    x[0] = static_cast<float>(std::sqrt(square_of(s, dim) - 1.0 / *kappa));
    std::copy_n(s, dim, x + 1);
  });
}

// Adds to the gradient of kappa.
extern "C" void from_space_backward(const float* space, const float* kappa, int64_t rows,
                                    int64_t dim, const float* grad, float* grad_space,
                                    double* sums, int64_t threads) {
  const double k = *kappa;
  for_rows(rows, 1, sums, threads, [&](int64_t row, double* by_kappa) {
    const float *s = space + row * dim, *g = grad + row * (1 + dim);
    float* __restrict result = grad_space + row * dim;
    const double slope = g[0] / std::sqrt(square_of(s, dim) - 1 / k);
    *by_kappa += slope / (2 * k * k);
    for (int64_t i = 0; i < dim; i++) result[i] = static_cast<float>(g[1 + i] + slope * s[i]);
  });
}

// `lorentz.normalise`; `floor`: of the length, as a fraction of the squared time.
extern "C" void normalise(const float* m, const float* kappa, int64_t rows, int64_t dim,
                          double floor, float* out, int64_t threads) {
  double none;
  with_width(dim, [&](auto width) {
    for_rows(rows, 0, &none, threads, [&](int64_t row, double*) {
      const float* x = m + row * width;
      float* __restrict y = out + row * width;
      const Normal n = normal_of(x, width, *kappa, floor);
      for (int64_t i = 0; i < width; i++) y[i] = static_cast<float>(x[i] * n.factor);
      y[0] = static_cast<float>(n.time);
    });
  });
}

// Adds to the gradient of kappa.
extern "C" void normalise_backward(const float* m, const float* kappa, int64_t rows, int64_t dim,
                                   double floor, const float* grad, float* grad_m, double* sums,
                                   int64_t threads) {
  const double k = *kappa;
  with_width(dim, [&](auto width) {
    for_rows(rows, 1, sums, threads, [&](int64_t row, double* by_kappa) {
      const float *x = m + row * width, *g = grad + row * width;
      float* __restrict result = grad_m + row * width;
      const Normal n = normal_of(x, width, k, floor);
      const double by_radicand = g[0] / (2 * n.time);
      const double by_factor = dot(g, x, width) + by_radicand * 2 * n.factor * n.square;
      const double by_length = -by_factor * n.factor / (2 * n.length);
      const double by_square = by_radicand * n.factor * n.factor - (n.floored ? 0 : by_length);
      *by_kappa += by_radicand / (k * k) - by_factor * n.factor / (2 * k);
      for (int64_t i = 0; i < width; i++)
        result[i] = static_cast<float>(g[i] * n.factor + 2 * by_square * x[i]);
      result[0] = static_cast<float>(2 * x[0] * by_length * (n.floored ? floor : 1));
    });
  });
}

// `lorentz.midpoint` of points x and y, whose times are not read.
extern "C" void midpoint(const float* x, const float* y, const float* kappa, const float* weight,
                         int64_t rows, int64_t dim, float* out, int64_t threads) {
  double none;
  with_width(dim, [&](auto width) {
    for_rows(rows, 0, &none, threads, [&](int64_t row, double*) {
      const float *p = x + row * width, *q = y + row * width;
      float* __restrict result = out + row * width;
      const Middle m = middle_of(p, q, width, *kappa, *weight);
      for (int64_t i = 0; i < width; i++) {
        const double mean = p[i] + *weight * (q[i] - static_cast<double>(p[i]));
        result[i] = static_cast<float>(mean * m.factor);
      }
      result[0] = static_cast<float>(m.time);
    });
  });
}

// Adds to the gradients of kappa and weight.
extern "C" void midpoint_backward(const float* x, const float* y, const float* kappa,
                                  const float* weight, int64_t rows, int64_t dim,
                                  const float* grad, float* grad_x, float* grad_y, double* sums,
                                  int64_t threads) {
  const double k = *kappa, w = *weight, both = w * (1 - w);
  with_width(dim, [&](auto width) {
    for_rows(rows, 2, sums, threads, [&](int64_t row, double* by) {
      const float *p = x + row * width, *q = y + row * width, *g = grad + row * width;
      const Middle m = middle_of(p, q, width, k, w);
      const double h_p = 1 + m.root_p, h_q = 1 + m.root_q, by_p = 1 / h_p, by_q = 1 / h_q;
      const double p0 = p[0], q0 = q[0], c0 = p0 * by_p - q0 * by_q;
      double along_p = -g[0] * p0, along_q = -g[0] * q0, c_p = -c0 * p0, c_q = -c0 * q0;
  #pragma omp simd reduction(+ : along_p, along_q, c_p, c_q)
      for (int64_t i = 0; i < width; i++) {
        const double c = p[i] * by_p - q[i] * by_q;
        along_p += static_cast<double>(g[i]) * p[i];
        along_q += static_cast<double>(g[i]) * q[i];
        c_p += c * p[i];
        c_q += c * q[i];
      }
      const double by_radicand = g[0] / (2 * m.time);
      const double along = along_p + w * (along_q - along_p);
      const double by_factor = along + 2 * by_radicand * m.factor * m.m2;
      const double by_m2 = by_radicand * m.factor * m.factor;
      const double by_norm = -by_factor * m.factor / (2 * m.norm);
      const double whole = m.chord * h_p * h_q, by_whole = -both * k * by_norm;
      const double by_c2 = by_whole * h_p * h_q;
      const double by_h_p = by_whole * m.chord * h_q - 2 * by_c2 * c_p * by_p * by_p;
      const double by_h_q = by_whole * m.chord * h_p + 2 * by_c2 * c_q * by_q * by_q;
      const double by_p2 = -k * by_h_p / (2 * m.root_p), by_q2 = -k * by_h_q / (2 * m.root_q);
      by[0] += by_radicand / (k * k) - both * whole * by_norm - m.p2 * by_h_p / (2 * m.root_p) -
               m.q2 * by_h_q / (2 * m.root_q);
      const double mean0 = p0 + w * (q0 - p0);
      double by_w = -(g[0] * m.factor + 2 * by_m2 * mean0) * (q0 - p0);
      float *__restrict to_x = grad_x + row * width, *__restrict to_y = grad_y + row * width;
  #pragma omp simd reduction(+ : by_w)
      for (int64_t i = 0; i < width; i++) {
        const double c = 2 * by_c2 * (p[i] * by_p - q[i] * by_q);
        const double apart = q[i] - static_cast<double>(p[i]), mean = p[i] + w * apart;
        const double to_mean = g[i] * m.factor + 2 * by_m2 * mean;
        by_w += to_mean * apart;
        to_x[i] = static_cast<float>((1 - w) * to_mean + c * by_p + 2 * by_p2 * p[i]);
        to_y[i] = static_cast<float>(w * to_mean - c * by_q + 2 * by_q2 * q[i]);
      }
      to_x[0] = to_y[0] = 0;
      by[1] += by_w - (1 - 2 * w) * k * whole * by_norm;
    });
  });
}

// `SigmoidTime` of vectors h, shorter than `smallest` of which have no direction.
extern "C" void sigmoid_time(const float* h, const float* kappa, const float* scale, int64_t rows,
                             int64_t dim, double offset, double smallest, float* out,
                             int64_t threads) {
  const double radius = 1 / std::sqrt(-static_cast<double>(*kappa));
  double none;
  with_width(dim, [&](auto width) {
    for_rows(rows, 0, &none, threads, [&](int64_t row, double*) {
      const float* x = h + row * width;
      float* __restrict y = out + row * width;
      const double square = dot(x, x, width);
      const bool directed = !(square <= smallest * smallest);
      const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(x[0])));
      const double time = directed ? radius + offset + sigmoid * *scale : radius;
      const double length = directed ? std::sqrt((time * time - radius * radius) / square) : 0;
      for (int64_t i = 0; i < width; i++) y[i] = static_cast<float>(x[i] * length);
      y[0] = static_cast<float>(time);
    });
  });
}

// Adds to the gradients of kappa and scale.
extern "C" void sigmoid_time_backward(const float* h, const float* kappa, const float* scale,
                                      int64_t rows, int64_t dim, double offset, double smallest,
                                      const float* grad, float* grad_h, double* sums,
                                      int64_t threads) {
  const double k = *kappa, radius = 1 / std::sqrt(-k), by_radius = radius / (-2 * k);
  with_width(dim, [&](auto width) {
    for_rows(rows, 2, sums, threads, [&](int64_t row, double* by) {
      const float *x = h + row * width, *g = grad + row * width;
      float* __restrict result = grad_h + row * width;
      const double square = dot(x, x, width);
      if (square <= smallest * smallest) {
        by[0] += g[0] * by_radius;
        std::fill_n(result, width, 0.0f);
        return;
      }
      const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(x[0])));
      const double time = radius + offset + sigmoid * *scale;
      const double length = std::sqrt((time * time - radius * radius) / square);
      const double by_length = dot(g, x, width);
      const double by_numerator = by_length / (2 * length * square);
      const double by_square = -by_length * length / (2 * square);
      const double by_time = g[0] + 2 * time * by_numerator;
      by[0] += by_time * by_radius - by_numerator / (k * k);
      by[1] += by_time * sigmoid;
      for (int64_t i = 0; i < width; i++)
        result[i] = static_cast<float>(g[i] * length + 2 * by_square * x[i]);
      result[0] = static_cast<float>(by_time * *scale * sigmoid * (1 - sigmoid));
    });
  });
}

// Lorentzian products of pairs of points.
extern "C" void pair_inner(const float* x, const int64_t* first, const int64_t* second,
                           int64_t pairs, int64_t dim, float* out, int64_t threads) {
  double none;
  with_width(dim, [&](auto width) {
    for_rows(pairs, 0, &none, threads, [&](int64_t i, double*) {
      const float *p = x + first[i] * width, *q = x + second[i] * width;
      out[i] = static_cast<float>(dot(p, q, width) - static_cast<double>(p[0]) * q[0]);
    });
  });
}

// Adds to the gradient of the points, pair by pair in their order.
extern "C" void pair_inner_backward(const float* x, const int64_t* first, const int64_t* second,
                                    int64_t pairs, int64_t dim, const float* grad, float* grad_x) {
  with_width(dim, [&](auto width) {
    for (int64_t i = 0; i < pairs; i++) {
      const int64_t a = first[i] * width, b = second[i] * width;
      const float g = grad[i];
      for (int64_t j = 0; j < width; j++) grad_x[a + j] += g * x[b + j];
      for (int64_t j = 0; j < width; j++) grad_x[b + j] += g * x[a + j];
      grad_x[a] -= 2 * g * x[b], grad_x[b] -= 2 * g * x[a];  // of times
    }
  });
}

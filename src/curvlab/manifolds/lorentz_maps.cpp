// Maps of points of the Lorentz model, one pass forward and one backward over points [rows, 1 + dim]
// in float32, computed in double precision. The formulas are those of lorentz.py and of `SigmoidTime`
// in hybonet.py, the oracle of the tests.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

constexpr int64_t kRows = 64;  // of a part, whose sums are added in order

double dot(const float* x, const float* y, int64_t dim) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < dim; i++) sum += static_cast<double>(x[i]) * y[i];
  return sum;
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

inline Normal normal_of(const float* m, int64_t dim, double kappa, double floor) {
  const double time = m[0], square = dot(m + 1, m + 1, dim), whole = time * time - square;
  const bool floored = whole < floor * time * time;
  const double length = floored ? floor * time * time : whole;
  const double factor = 1 / std::sqrt(-kappa * length);
  return {factor, square, length, std::sqrt(factor * factor * square - 1 / kappa), floored};
}

// Of two space parts p and q and a weight: what `lorentz.midpoint` computes.
struct Middle {
  double p2, q2, root_p, root_q, chord, norm, factor, m2, time;
};

inline Middle middle_of(const float* p, const float* q, int64_t dim, double kappa, double weight) {
  Middle m;
  double p2 = 0, q2 = 0;
#pragma omp simd reduction(+ : p2, q2)
  for (int64_t i = 0; i < dim; i++) {
    p2 += static_cast<double>(p[i]) * p[i];
    q2 += static_cast<double>(q[i]) * q[i];
  }
  m.p2 = p2, m.q2 = q2;
  m.root_p = std::sqrt(1 - kappa * p2), m.root_q = std::sqrt(1 - kappa * q2);
  const double by_p = 1 / (1 + m.root_p), by_q = 1 / (1 + m.root_q);
  double c2 = 0, m2 = 0;
#pragma omp simd reduction(+ : c2, m2)
  for (int64_t i = 0; i < dim; i++) {
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

}  // namespace

// `lorentz.normalise`; `floor`: of the length, as a fraction of the squared time.
extern "C" void normalise(const float* m, const float* kappa, int64_t rows, int64_t dim,
                          double floor, float* out, int64_t threads) {
  double none;
  for_rows(rows, 0, &none, threads, [&](int64_t row, double*) {
    const float* x = m + row * (dim + 1);
    float* __restrict y = out + row * (dim + 1);
    const Normal n = normal_of(x, dim, *kappa, floor);
    y[0] = static_cast<float>(n.time);
    for (int64_t i = 1; i <= dim; i++) y[i] = static_cast<float>(x[i] * n.factor);
  });
}

// Adds to the gradient of kappa.
extern "C" void normalise_backward(const float* m, const float* kappa, int64_t rows, int64_t dim,
                                   double floor, const float* grad, float* grad_m, double* sums,
                                   int64_t threads) {
  const double k = *kappa;
  for_rows(rows, 1, sums, threads, [&](int64_t row, double* by_kappa) {
    const float *x = m + row * (dim + 1), *g = grad + row * (dim + 1);
    float* __restrict result = grad_m + row * (dim + 1);
    const Normal n = normal_of(x, dim, k, floor);
    const double by_radicand = g[0] / (2 * n.time);
    const double by_factor = dot(g + 1, x + 1, dim) + by_radicand * 2 * n.factor * n.square;
    const double by_length = -by_factor * n.factor / (2 * n.length);
    const double by_square = by_radicand * n.factor * n.factor - (n.floored ? 0 : by_length);
    *by_kappa += by_radicand / (k * k) - by_factor * n.factor / (2 * k);
    result[0] = static_cast<float>(2 * x[0] * by_length * (n.floored ? floor : 1));
    for (int64_t i = 1; i <= dim; i++)
      result[i] = static_cast<float>(g[i] * n.factor + 2 * by_square * x[i]);
  });
}

// `lorentz.midpoint` of points x and y, whose times are not read.
extern "C" void midpoint(const float* x, const float* y, const float* kappa, const float* weight,
                         int64_t rows, int64_t dim, float* out, int64_t threads) {
  double none;
  for_rows(rows, 0, &none, threads, [&](int64_t row, double*) {
    const float *p = x + row * (dim + 1), *q = y + row * (dim + 1);
    float* __restrict result = out + row * (dim + 1);
    const Middle m = middle_of(p + 1, q + 1, dim, *kappa, *weight);
    result[0] = static_cast<float>(m.time);
    for (int64_t i = 1; i <= dim; i++) {
      const double mean = p[i] + *weight * (q[i] - static_cast<double>(p[i]));
      result[i] = static_cast<float>(mean * m.factor);
    }
  });
}

// Adds to the gradients of kappa and weight.
extern "C" void midpoint_backward(const float* x, const float* y, const float* kappa,
                                  const float* weight, int64_t rows, int64_t dim,
                                  const float* grad, float* grad_x, float* grad_y, double* sums,
                                  int64_t threads) {
  const double k = *kappa, w = *weight, both = w * (1 - w);
  for_rows(rows, 2, sums, threads, [&](int64_t row, double* by) {
    const float *p = x + row * (dim + 1), *q = y + row * (dim + 1), *g = grad + row * (dim + 1);
    const Middle m = middle_of(p + 1, q + 1, dim, k, w);
    const double h_p = 1 + m.root_p, h_q = 1 + m.root_q, by_p = 1 / h_p, by_q = 1 / h_q;
    double along_p = 0, along_q = 0, c_p = 0, c_q = 0;
#pragma omp simd reduction(+ : along_p, along_q, c_p, c_q)
    for (int64_t i = 1; i <= dim; i++) {
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
    double by_w = 0;
    float *__restrict to_x = grad_x + row * (dim + 1), *__restrict to_y = grad_y + row * (dim + 1);
    to_x[0] = to_y[0] = 0;
#pragma omp simd reduction(+ : by_w)
    for (int64_t i = 1; i <= dim; i++) {
      const double c = 2 * by_c2 * (p[i] * by_p - q[i] * by_q);
      const double apart = q[i] - static_cast<double>(p[i]), mean = p[i] + w * apart;
      const double to_mean = g[i] * m.factor + 2 * by_m2 * mean;
      by_w += to_mean * apart;
      to_x[i] = static_cast<float>((1 - w) * to_mean + c * by_p + 2 * by_p2 * p[i]);
      to_y[i] = static_cast<float>(w * to_mean - c * by_q + 2 * by_q2 * q[i]);
    }
    by[1] += by_w - (1 - 2 * w) * k * whole * by_norm;
  });
}

// `SigmoidTime` of vectors h, shorter than `smallest` of which have no direction.
extern "C" void sigmoid_time(const float* h, const float* kappa, const float* scale, int64_t rows,
                             int64_t dim, double offset, double smallest, float* out,
                             int64_t threads) {
  const double radius = 1 / std::sqrt(-static_cast<double>(*kappa));
  double none;
  for_rows(rows, 0, &none, threads, [&](int64_t row, double*) {
    const float* x = h + row * (dim + 1);
    float* __restrict y = out + row * (dim + 1);
    const double square = dot(x + 1, x + 1, dim);
    const bool directed = !(square <= smallest * smallest);
    const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(x[0])));
    const double time = directed ? radius + offset + sigmoid * *scale : radius;
    const double length = directed ? std::sqrt((time * time - radius * radius) / square) : 0;
    y[0] = static_cast<float>(time);
    for (int64_t i = 1; i <= dim; i++) y[i] = static_cast<float>(x[i] * length);
  });
}

// Adds to the gradients of kappa and scale.
extern "C" void sigmoid_time_backward(const float* h, const float* kappa, const float* scale,
                                      int64_t rows, int64_t dim, double offset, double smallest,
                                      const float* grad, float* grad_h, double* sums,
                                      int64_t threads) {
  const double k = *kappa, radius = 1 / std::sqrt(-k), by_radius = radius / (-2 * k);
  for_rows(rows, 2, sums, threads, [&](int64_t row, double* by) {
    const float *x = h + row * (dim + 1), *g = grad + row * (dim + 1);
    float* __restrict result = grad_h + row * (dim + 1);
    const double square = dot(x + 1, x + 1, dim);
    if (square <= smallest * smallest) {
      by[0] += g[0] * by_radius;
      std::fill_n(result, dim + 1, 0.0f);
      return;
    }
    const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(x[0])));
    const double time = radius + offset + sigmoid * *scale;
    const double length = std::sqrt((time * time - radius * radius) / square);
    const double by_length = dot(g + 1, x + 1, dim);
    const double by_numerator = by_length / (2 * length * square);
    const double by_square = -by_length * length / (2 * square);
    const double by_time = g[0] + 2 * time * by_numerator;
    by[0] += by_time * by_radius - by_numerator / (k * k);
    by[1] += by_time * sigmoid;
    result[0] = static_cast<float>(by_time * *scale * sigmoid * (1 - sigmoid));
    for (int64_t i = 1; i <= dim; i++)
      result[i] = static_cast<float>(g[i] * length + 2 * by_square * x[i]);
  });
}

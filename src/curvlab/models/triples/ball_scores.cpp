// Scores of queries against all entities in the unit ball: one pass over tiles of entities, and one
// for the gradients. The formulas are those of ball_distances.py, the oracle of the tests:
//
//     u^2 = p + q N - <z, e> M,    score = weight * 4 arsinh(u)^2 + biases,
//     N = g sinh(a)^2 + A cosh(a)^2 / 2,    M = (2 g + A) sinh(a) cosh(a),    A = <w', e> tanh(a)
//
// of queries z, p, q; entities with rays e and lengths; relations with a scale, g and w'; and
// a = min(scale * length, rim). Terms of u^2 and sums of gradients cancel near the rim: they are in
// double precision, functions of u^2 and scores in single.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t kColumns = 48;  // entities of a tile, a multiple of kRows and kLanes
constexpr int64_t kRows = 6;      // of a product's block, whose sums stay in registers
constexpr int64_t kLanes = 8;     // columns of that block
constexpr float kSmallest = 1e-12f;  // `SMALLEST`

struct Block {  // `_Block` in ball_scores.py; arrays are contiguous
  int64_t queries, runs, dim, entities;
  int64_t has_shifts;        // whether relations have w'
  int64_t is_float32;        // whether `vectors` is float32
  double rim;
  const int64_t* starts;     // runs of queries with one relation [runs + 1]
  const double* points;      // z of the queries, then w' of the runs [rows, dim]
  const double *p, *q;       // [queries]
  const double *scale, *g;   // [runs]
  const float *weight, *head_bias;  // [queries]
  const float* tail_bias;    // [entities]
  const void* vectors;       // tangent vectors of entities [entities, dim]
  double* products;          // of points and rays [tiles, padded rows, kColumns]
  float* derivative;         // of squared distances by u^2 [tiles, queries, kColumns]
  float* squared;            // squared distances, same shape; null if no weight learns

  int64_t rows() const { return queries + (has_shifts ? runs : 0); }
  int64_t padded_rows() const { return (rows() + kRows - 1) / kRows * kRows; }
  int64_t width() const { return (dim + kLanes - 1) / kLanes * kLanes; }
  int64_t tiles() const { return (entities + kColumns - 1) / kColumns; }
};

struct Gradients {  // `_Gradients` in ball_scores.py: zeros, except `vectors`
  double *points, *p, *q, *scale, *g, *weight, *head_bias, *tail_bias;
  void* vectors;
};

typedef double Lanes __attribute__((vector_size(32), aligned(8), may_alias));

// c = a b, or c += a b, of matrices with padded sides; `row` and `step` are the strides of a.
template <bool add>
void multiply(const double* a, int64_t row, int64_t step, const double* b, int64_t b_stride,
              double* c, int64_t c_stride, int64_t rows, int64_t columns, int64_t depth) {
  for (int64_t j = 0; j < columns; j += kLanes)
    for (int64_t i = 0; i < rows; i += kRows) {
      Lanes left[kRows] = {}, right[kRows] = {};
      const double *a_row = a + i * row, *b_row = b + j;
      for (int64_t k = 0; k < depth; k++, a_row += step, b_row += b_stride) {
        const Lanes first = *reinterpret_cast<const Lanes*>(b_row);
        const Lanes second = *reinterpret_cast<const Lanes*>(b_row + kLanes / 2);
#pragma GCC unroll 6
        for (int64_t r = 0; r < kRows; r++) {
          left[r] += a_row[r * row] * first;
          right[r] += a_row[r * row] * second;
        }
      }
#pragma GCC unroll 6
      for (int64_t r = 0; r < kRows; r++) {
        double* out = c + (i + r) * c_stride + j;
        Lanes& first = *reinterpret_cast<Lanes*>(out);
        Lanes& second = *reinterpret_cast<Lanes*>(out + kLanes / 2);
        first = add ? first + left[r] : left[r];
        second = add ? second + right[r] : right[r];
      }
    }
}

inline double double_of(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline uint64_t bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

struct Hyperbolic {
  double sinh, cosh;
};

// sinh and cosh of a in [0, 700] to 1e-15 of them: exp(a) = 2^n (1 + e), n rounded by adding
// 1.5 * 2^52, e = expm1(f) from Taylor's series. At n = 0 sinh(a) = (e + e / (1 + e)) / 2.
inline Hyperbolic hyperbolic(double a) {
  const double rounded = a * 1.4426950408889634 + 6755399441055744.0;
  const double n = rounded - 6755399441055744.0;
  const double f = (a - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  double sum = 1.0 / 6227020800;
  sum = sum * f + 1.0 / 479001600;
  sum = sum * f + 1.0 / 39916800;
  sum = sum * f + 1.0 / 3628800;
  sum = sum * f + 1.0 / 362880;
  sum = sum * f + 1.0 / 40320;
  sum = sum * f + 1.0 / 5040;
  sum = sum * f + 1.0 / 720;
  sum = sum * f + 1.0 / 120;
  sum = sum * f + 1.0 / 24;
  sum = sum * f + 1.0 / 6;
  sum = sum * f + 1.0 / 2;
  const double e = f + f * f * sum;
  const double exp = double_of((bits_of(rounded) + 1023) << 52) * (1 + e);
  const double reciprocal = 1 / exp;
  const double difference = n == 0 ? e + e * reciprocal : exp - reciprocal;
  return {0.5 * difference, 0.5 * (exp + reciprocal)};
}

// 4 arsinh(u)^2 and its derivative by u^2; a u^2 that rounds below 0 counts as 0.
inline void distances(const double* u2, float* __restrict squared, float* __restrict derivative) {
  for (int64_t j = 0; j < kColumns; j++) {
    const float square = std::max(static_cast<float>(u2[j]), kSmallest);
    const float u = std::sqrt(square), root = std::sqrt(1 + square);
    const float distance = 2 * log1p_of(u + square / (1 + root));
    squared[j] = distance * distance;
    derivative[j] = 2 * distance / (u * root);
  }
}

inline double dot(const double* x, const double* y, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t k = 0; k < n; k++) sum += x[k] * y[k];
  return sum;
}

// The entities of a tile and, for one relation at a time, its N and M.
struct Tile {
  const Block& b;
  const int64_t width;
  int64_t start, count;
  double length[kColumns], sinh[kColumns], cosh[kColumns], n[kColumns], m[kColumns];
  double scale;                       // of `sinh` and `cosh`
  std::vector<double> rays, columns;  // [kColumns, width] and transposed

  explicit Tile(const Block& b)
      : b(b), width(b.width()), rays(kColumns * width), columns(kColumns * width) {}

  template <typename Number>
  void read() {
    const Number* v = static_cast<const Number*>(b.vectors) + start * b.dim;
    for (int64_t j = 0; j < count; j++)
      for (int64_t k = 0; k < b.dim; k++) rays[j * width + k] = v[j * b.dim + k];
  }

  void load(int64_t number) {
    start = number * kColumns;
    count = std::min(kColumns, b.entities - start);
    scale = -1;
    if (count < kColumns) std::fill(rays.begin(), rays.end(), 0.0);
    if (b.is_float32)
      read<float>();
    else
      read<double>();
    for (int64_t j = 0; j < kColumns; j++) {
      double* ray = rays.data() + j * width;
      length[j] = std::max(std::sqrt(dot(ray, ray, width)), 1e-15);
      for (int64_t k = 0; k < width; k++) {
        ray[k] /= length[j];
        columns[k * kColumns + j] = ray[k];
      }
    }
  }

  // `along`: <w', e> of the relation.
  void prepare(int64_t run, const double* along) {
    if (scale != b.scale[run]) {
      scale = b.scale[run];
      for (int64_t j = 0; j < kColumns; j++) {
        const Hyperbolic a = hyperbolic(std::min(scale * length[j], b.rim));
        sinh[j] = a.sinh;
        cosh[j] = a.cosh;
      }
    }
    const double g = b.g[run];
    for (int64_t j = 0; j < kColumns; j++) {
      const double shift = along[j] * sinh[j] / cosh[j];
      n[j] = g * sinh[j] * sinh[j] + 0.5 * shift * cosh[j] * cosh[j];
      m[j] = (2 * g + shift) * sinh[j] * cosh[j];
    }
  }
};

constexpr double kZeros[kColumns] = {};

// <w', e> of a relation, from the products of a tile; zeros if relations shift nothing.
inline const double* shift_of(const Block& b, const double* products, int64_t run) {
  return b.has_shifts ? products + (b.queries + run) * kColumns : kZeros;
}

std::vector<double> padded_points(const Block& b) {
  std::vector<double> points(b.padded_rows() * b.width());
  for (int64_t i = 0; i < b.rows(); i++)
    std::copy_n(b.points + i * b.dim, b.dim, points.data() + i * b.width());
  return points;
}

// Calls function(thread, first, last) for each thread's tiles, from `first` to `last` - 1.
template <typename Function>
void share_tiles(const Block& b, int64_t threads, const Function& function) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t i = 0; i < threads; i++)
    function(i, b.tiles() * i / threads, b.tiles() * (i + 1) / threads);
}

void score_tile(const Block& b, Tile& tile, int64_t number, const double* products, float* scores) {
  float tail_bias[kColumns] = {}, squared[kColumns], score[kColumns];
  std::copy_n(b.tail_bias + tile.start, tile.count, tail_bias);
  for (int64_t run = 0; run < b.runs; run++) {
    tile.prepare(run, shift_of(b, products, run));
    for (int64_t i = b.starts[run]; i < b.starts[run + 1]; i++) {
      const double* product = products + i * kColumns;
      double u2[kColumns];
      for (int64_t j = 0; j < kColumns; j++)
        u2[j] = b.p[i] + b.q[i] * tile.n[j] - product[j] * tile.m[j];
      const int64_t place = (number * b.queries + i) * kColumns;
      distances(u2, squared, b.derivative + place);
      for (int64_t j = 0; j < kColumns; j++)
        score[j] = b.weight[i] * squared[j] + (b.head_bias[i] + tail_bias[j]);
      std::copy_n(score, tile.count, scores + i * b.entities + tile.start);
      if (b.squared != nullptr) std::copy_n(squared, kColumns, b.squared + place);
    }
  }
}

// Sums of one thread.
struct Sums {
  std::vector<double> points, p, q, scale, g, weight, head_bias;
  explicit Sums(const Block& b)
      : points(b.padded_rows() * b.width()), p(b.queries), q(b.queries), scale(b.runs), g(b.runs),
        weight(b.queries), head_bias(b.queries) {}
};

// Gradients of a relation from those of N and M; `grad_along` is null if relations shift nothing.
void pull_relation(const Block& b, const Tile& tile, int64_t run, const double* along,
                   const double* grad_n, const double* grad_m, Sums& sums, double* grad_along,
                   double* __restrict grad_length) {
  const double g = b.g[run], scale = b.scale[run];
  double grad_g = 0, grad_scale = 0;
#pragma omp simd reduction(+ : grad_g, grad_scale)
  for (int64_t j = 0; j < kColumns; j++) {
    const double sinh = tile.sinh[j], cosh = tile.cosh[j], tanh = sinh / cosh;
    const double factor = 2 * g + along[j] * tanh;
    const double slope_n = sinh * cosh * factor + 0.5 * along[j];
    const double slope_m = (sinh * sinh + cosh * cosh) * factor + along[j] * tanh;
    const double grad_a = slope_n * grad_n[j] + slope_m * grad_m[j];
    const double unclamped = scale * tile.length[j] < b.rim ? grad_a : 0;
    grad_length[j] += scale * unclamped;
    grad_scale += tile.length[j] * unclamped;
    grad_g += sinh * sinh * grad_n[j] + 2 * sinh * cosh * grad_m[j];
  }
  sums.g[run] += grad_g;
  sums.scale[run] += grad_scale;
  if (grad_along != nullptr)
    for (int64_t j = 0; j < kColumns; j++)
      grad_along[j] = tile.sinh[j] * (0.5 * tile.cosh[j] * grad_n[j] + tile.sinh[j] * grad_m[j]);
}

// Gradients of the products and lengths of a tile, and of the arrays of queries and runs.
void pull_tile(const Block& b, Tile& tile, int64_t number, const double* products,
               const float* grad, Sums& sums, double* pulls, double* tail_bias,
               double* grad_length) {
  float grad_row[kColumns] = {};
  for (int64_t run = 0; run < b.runs; run++) {
    const double* along = shift_of(b, products, run);
    double grad_n[kColumns] = {}, grad_m[kColumns] = {};
    tile.prepare(run, along);
    for (int64_t i = b.starts[run]; i < b.starts[run + 1]; i++) {
      std::copy_n(grad + i * b.entities + tile.start, tile.count, grad_row);
      const int64_t place = (number * b.queries + i) * kColumns;
      const float* derivative = b.derivative + place;
      const double *product = products + i * kColumns, weight = b.weight[i], q = b.q[i];
      double* __restrict grad_product = pulls + i * kColumns;
      double grad_bias = 0, grad_p = 0, grad_q = 0, grad_weight = 0;
#pragma omp simd reduction(+ : grad_bias, grad_p, grad_q)
      for (int64_t j = 0; j < kColumns; j++) {
        const double grad_score = grad_row[j];
        const double grad_u2 = weight * grad_score * derivative[j];
        tail_bias[j] += grad_score;
        grad_bias += grad_score;
        grad_p += grad_u2;
        grad_q += grad_u2 * tile.n[j];
        grad_n[j] += q * grad_u2;
        grad_m[j] -= product[j] * grad_u2;
        grad_product[j] = -tile.m[j] * grad_u2;
      }
      if (b.squared != nullptr) {
        const float* squared = b.squared + place;
#pragma omp simd reduction(+ : grad_weight)
        for (int64_t j = 0; j < kColumns; j++) {
          const double grad_score = grad_row[j];
          grad_weight += grad_score * squared[j];
        }
      }
      sums.head_bias[i] += grad_bias;
      sums.weight[i] += grad_weight;
      sums.p[i] += grad_p;
      sums.q[i] += grad_q;
    }
    double* grad_along = b.has_shifts ? pulls + (b.queries + run) * kColumns : nullptr;
    pull_relation(b, tile, run, along, grad_n, grad_m, sums, grad_along, grad_length);
  }
}

// Replaces the gradients of rays by those of tangent vectors.
void pull_vectors(const Tile& tile, const double* grad_length, double* grad_rays) {
  for (int64_t j = 0; j < kColumns; j++) {
    const double* ray = tile.rays.data() + j * tile.width;
    double* grad = grad_rays + j * tile.width;
    const double along = grad_length[j] - dot(grad, ray, tile.width) / tile.length[j];
    for (int64_t k = 0; k < tile.width; k++) grad[k] = grad[k] / tile.length[j] + along * ray[k];
  }
}

template <typename Number>
void write(const Tile& tile, const double* grad, void* vectors) {
  Number* out = static_cast<Number*>(vectors) + tile.start * tile.b.dim;
  for (int64_t j = 0; j < tile.count; j++)
    for (int64_t k = 0; k < tile.b.dim; k++)
      out[j * tile.b.dim + k] = static_cast<Number>(grad[j * tile.width + k]);
}

void add(const std::vector<double>& values, double* sums) {
  for (size_t i = 0; i < values.size(); i++) sums[i] += values[i];
}

}  // namespace

// Number of entries of `products`, or of `derivative` and of `squared`.
extern "C" int64_t num_entries(const Block* block, int64_t of_products) {
  const int64_t rows = of_products ? block->padded_rows() : block->queries;
  return block->tiles() * rows * kColumns;
}

// Scores [queries, entities]. Fills the arrays that `backward` needs.
extern "C" void forward(const Block* block, float* scores, int64_t threads) {
  const Block& b = *block;
  const std::vector<double> points = padded_points(b);
  share_tiles(b, threads, [&](int64_t, int64_t first, int64_t last) {
    Tile tile(b);
    for (int64_t number = first; number < last; number++) {
      double* products = b.products + number * b.padded_rows() * kColumns;
      tile.load(number);
      multiply<false>(points.data(), tile.width, 1, tile.columns.data(), kColumns, products,
                      kColumns, b.padded_rows(), kColumns, tile.width);
      score_tile(b, tile, number, products, scores);
    }
  });
}

// Gradients of the sources from those of the scores.
extern "C" void backward(const Block* block, const float* grad, const Gradients* gradients,
                         int64_t threads) {
  const Block& b = *block;
  const Gradients& out = *gradients;
  const std::vector<double> points = padded_points(b);
  const int64_t rows = b.padded_rows(), width = b.width();
  std::vector<Sums> sums(threads, Sums(b));
  share_tiles(b, threads, [&](int64_t thread, int64_t first, int64_t last) {
    Tile tile(b);
    std::vector<double> pulls(rows * kColumns), grad_rays(kColumns * width);
    for (int64_t number = first; number < last; number++) {
      const double* products = b.products + number * rows * kColumns;
      double tail_bias[kColumns] = {}, grad_length[kColumns] = {};
      tile.load(number);
      pull_tile(b, tile, number, products, grad, sums[thread], pulls.data(), tail_bias,
                grad_length);
      multiply<true>(pulls.data(), kColumns, 1, tile.rays.data(), width, sums[thread].points.data(),
                     width, rows, width, kColumns);
      multiply<false>(pulls.data(), 1, kColumns, points.data(), width, grad_rays.data(), width,
                      kColumns, width, rows);
      pull_vectors(tile, grad_length, grad_rays.data());
      if (b.is_float32)
        write<float>(tile, grad_rays.data(), out.vectors);
      else
        write<double>(tile, grad_rays.data(), out.vectors);
      std::copy_n(tail_bias, tile.count, out.tail_bias + tile.start);
    }
  });
  for (const Sums& sum : sums) {  // in the order of the threads
    for (int64_t i = 0; i < b.rows(); i++)
      for (int64_t k = 0; k < b.dim; k++) out.points[i * b.dim + k] += sum.points[i * width + k];
    add(sum.p, out.p);
    add(sum.q, out.q);
    add(sum.scale, out.scale);
    add(sum.g, out.g);
    add(sum.weight, out.weight);
    add(sum.head_bias, out.head_bias);
  }
}

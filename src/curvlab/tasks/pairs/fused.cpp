// The tiles of the pair loss in float32, in loops that compilers vectorise. The formulas are those
// of the profiles in pair_form.py and of `_Arithmetic` in loss.py, the oracle of the tests.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t kRows = 4;    // of a tile at once: their arrays stay in the first cache
constexpr int64_t kLanes = 16;  // columns at once
constexpr float kReach = 0.4f;  // `SERIES_REACH`

struct Component {
  float kind;           // 0 hyperbolic, 1 spherical, 2 pseudo-hyperboloid
  float per_magnitude;  // 1 / |kappa|
  float terms;          // of the series of dD/d(kappa) for w below `kReach`, 0 for none
  float series[8];
};

// exp(x) of x <= 0 as 2^n exp(f): n rounded by adding 1.5 * 2^23, exp(f) from Taylor's series.
// What would be subnormal is 0: processors take a hundred times as long for subnormal numbers.
inline float exp_of(float x) {
  const bool negligible = x < -80;
  x = std::max(x, -80.0f);
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float f = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // log 2 in two parts
  const float g = f * f;
  const float higher = (1.0f / 24 + 1.0f / 120 * f) + g * (1.0f / 720);
  float sum = (1 + f) + g * ((0.5f + 1.0f / 6 * f) + g * higher);
  sum *= float_of((static_cast<int32_t>(n) + 127) * (1 << 23));
  return negligible ? 0 : sum;
}

// asin(x), x = sqrt(q), of q in [0, 1]: by its series up to 1/4, and above as
// pi/2 - 2 asin(sqrt((1 - x) / 2)).
inline float asin_sqrt_of(float q) {
  const float x = std::sqrt(q);
  const bool small = q < 0.25f;
  const float y = small ? q : 0.5f * (1 - x);
  const float root = small ? x : std::sqrt(y);
  float sum = 6435.0f / 557056;
  sum = sum * y + 143.0f / 10240;
  sum = sum * y + 231.0f / 13312;
  sum = sum * y + 63.0f / 2816;
  sum = sum * y + 35.0f / 1152;
  sum = sum * y + 5.0f / 112;
  sum = sum * y + 3.0f / 40;
  sum = sum * y + 1.0f / 6;
  const float angle = root + root * y * sum;
  return small ? angle : 1.57079633f - 2 * angle;
}

// Replaces forms in `entry` by entries; fills slopes; adds squared distances. `far`: pairs beyond
// the reach of the series count and have the closed form, in its units.
template <int kind, bool far>
void curved(const Component& c, float* __restrict entry, float* __restrict slope,
            float* __restrict squared, int64_t n) {
  const float per_magnitude = c.per_magnitude;
  const int64_t terms = static_cast<int64_t>(c.terms);
  const bool in_series = terms > 0;
  std::vector<float> closed_forms(far && in_series ? n : 0);
  float* __restrict closed = closed_forms.data();
  for (int64_t j = 0; j < n; j++) {
    if (kind == 2) {
      const float m = entry[j];
      const float q = std::min(std::max(m, 1e-30f), 1.0f);
      const float difference = m - q;
      const float excess = std::abs(difference);
      const float square = std::max(excess + excess * excess, 1e-30f);
      const float hyperbolic_angle = log1p_of(2 * (std::sqrt(square) + excess));
      const float angle = 2 * asin_sqrt_of(q) + hyperbolic_angle;
      const float root = std::sqrt(std::max(q - q * q + square, 1e-6f));
      slope[j] = 2 * (difference < 0 ? -angle : angle) / root;
      entry[j] = angle * angle;
      squared[j] += per_magnitude * entry[j];
    } else {
      const float w = std::max(entry[j], 1e-30f);
      float angle;
      float root;
      if (kind == 0) {
        root = std::sqrt(w + 0.25f * w * w);
        angle = log1p_of(0.5f * w + root);
      } else {
        const float bounded = std::min(w, 4 - 4e-6f);
        root = std::sqrt(bounded - 0.25f * bounded * bounded);
        angle = 2 * asin_sqrt_of(0.25f * bounded);
      }
      slope[j] = angle / root;
      squared[j] += per_magnitude * angle * angle;
      const float difference = angle * angle - w * slope[j];
      entry[j] = in_series ? w : difference;
      if (far && in_series) closed[j] = (kind == 0 ? 4.0f : -4.0f) * difference;
    }
  }
  if (!in_series) return;
  std::vector<float> sums(n, c.series[0]);
  float* __restrict sum = sums.data();
  for (int64_t j = 0; j < n; j++) entry[j] = std::min(entry[j], 4.0f);
  for (int64_t k = 1; k < terms; k++)
    for (int64_t j = 0; j < n; j++) sum[j] = sum[j] * entry[j] + c.series[k];
  for (int64_t j = 0; j < n; j++) {
    const bool near = !far || entry[j] <= kReach;
    entry[j] = near ? entry[j] * (sum[j] * entry[j]) : closed[j];
  }
}

template <bool far>
auto curved_of(const Component& c) {
  return c.kind == 0 ? curved<0, far> : c.kind == 1 ? curved<1, far> : curved<2, far>;
}

// Fills `share` with exp(-D) of squared distances, and `slope` with its negated derivative.
void shares(float* __restrict distance, float* __restrict share, float* __restrict slope,
            int64_t n, int64_t power, float clamp, float smallest) {
  if (power == 1)
    for (int64_t j = 0; j < n; j++) distance[j] = std::sqrt(std::max(distance[j], smallest));
  for (int64_t j = 0; j < n; j++) {
    const float value = exp_of(-distance[j]);
    slope[j] = value < clamp ? 0 : value;
    share[j] = value < clamp ? clamp : value;
  }
  if (power == 1)
    for (int64_t j = 0; j < n; j++) slope[j] /= 2 * distance[j];
}

// Products of the features of at most four rows with those of all columns of a tile, in blocks of
// columns whose sums stay in registers.
void product(const float* of_row, const float* of_column, float* form, int64_t rows,
             int64_t columns, int64_t features, int64_t nodes) {
  std::vector<float> values(kRows * features);
  for (int64_t f = 0; f < features; f++)
    for (int64_t i = 0; i < rows; i++) values[kRows * f + i] = of_row[f * nodes + i];
  int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) {
    float sum0[kLanes] = {}, sum1[kLanes] = {}, sum2[kLanes] = {}, sum3[kLanes] = {};
    for (int64_t f = 0; f < features; f++) {
      const float *column = of_column + f * nodes + j, *row = values.data() + kRows * f;
      for (int64_t k = 0; k < kLanes; k++) {
        sum0[k] += row[0] * column[k];
        sum1[k] += row[1] * column[k];
        sum2[k] += row[2] * column[k];
        sum3[k] += row[3] * column[k];
      }
    }
    const float* sums[] = {sum0, sum1, sum2, sum3};
    for (int64_t i = 0; i < rows; i++) std::copy_n(sums[i], kLanes, form + i * columns + j);
  }
  for (; j < columns; j++)
    for (int64_t i = 0; i < rows; i++) {
      float sum = 0;
      for (int64_t f = 0; f < features; f++)
        sum += values[kRows * f + i] * of_column[f * nodes + j];
      form[i * columns + j] = sum;
    }
}

void multiply(float* __restrict values, const float* __restrict factors, int64_t n) {
  for (int64_t j = 0; j < n; j++) values[j] *= factors[j];
}

// Sums values, and adds them to the totals.
float sum_and_add(const float* __restrict values, float* __restrict totals, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; j++) {
    sum += values[j];
    totals[j] += values[j];
  }
  return sum;
}

// Gradients of one feature at both ends of the pairs of four rows, which share their loads.
void pull_rows(const float* const* weight, const float* of_row, const float* __restrict of_column,
               float* row_grad, float* __restrict column_grad, int64_t columns) {
  const float *w0 = weight[0], *w1 = weight[1], *w2 = weight[2], *w3 = weight[3];
  const float a0 = of_row[0], a1 = of_row[1], a2 = of_row[2], a3 = of_row[3];
  float sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
#pragma omp simd reduction(+ : sum0, sum1, sum2, sum3)
  for (int64_t j = 0; j < columns; j++) {
    const float value = of_column[j];
    sum0 += w0[j] * value;
    sum1 += w1[j] * value;
    sum2 += w2[j] * value;
    sum3 += w3[j] * value;
    column_grad[j] += w0[j] * a0 + w1[j] * a1 + (w2[j] * a2 + w3[j] * a3);
  }
  row_grad[0] += sum0;
  row_grad[1] += sum1;
  row_grad[2] += sum2;
  row_grad[3] += sum3;
}

}  // namespace

// The tile at a row and a column of the pair matrix. Left and right features are [components,
// features, nodes]; summands [1 + components, rows, columns], arrays `stride` apart; weights
// [components, rows, columns]; sums [1 + components, nodes]. `clamp` below 0: none.
extern "C" void fill(const float* left, const float* right, int64_t features, int64_t nodes,
                     int64_t row, int64_t rows, int64_t column,
                     int64_t columns, float* summands, int64_t stride, float* weights, float* sums,
                     const Component* components, int64_t count, int64_t power, float clamp,
                     float smallest, const int64_t* masked, int64_t num_masked, int64_t threads) {
  const int64_t size = rows * columns;
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t block_rows = std::min(kRows, rows - first);
    const int64_t n = block_rows * columns;
    const int64_t start = first * columns;
    std::vector<float> distance(n), slope(n);
    for (int64_t h = 0; h < count; h++) {
      float* entry = summands + (1 + h) * stride + start;
      const float* of_row = left + h * features * nodes + row + first;
      const float* of_column = right + h * features * nodes + column;
      product(of_row, of_column, entry, block_rows, columns, features, nodes);
      const Component& c = components[h];
      const auto function = power == 1 ? curved_of<true>(c) : curved_of<false>(c);
      function(c, entry, weights + h * size + start, distance.data(), n);
    }
    shares(distance.data(), summands + start, slope.data(), n, power, clamp, smallest);
    for (int64_t h = 0; h < count; h++) {
      multiply(summands + (1 + h) * stride + start, slope.data(), n);
      multiply(weights + h * size + start, slope.data(), n);
    }
  }
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t h = 0; h <= count; h++) {
    float* summand = summands + h * stride;
    for (int64_t k = 0; k < num_masked; k++) {
      summand[masked[k]] = 0;
      if (h < count) weights[h * size + masked[k]] = 0;
    }
    float* of_row = sums + h * nodes + row;
    std::vector<float> of_column(columns);
    for (int64_t i = 0; i < rows; i++)
      of_row[i] += sum_and_add(summand + i * columns, of_column.data(), columns);
    if (row != column)  // the mirror image below the diagonal
      for (int64_t j = 0; j < columns; j++) sums[h * nodes + column + j] += of_column[j];
  }
}

// Adds the gradients of the features by the pairs of a tile and their mirror images. The weights
// are multiplied by the gradients of the sums at both ends.
extern "C" void pull(const float* right, int64_t features, int64_t nodes, int64_t row, int64_t rows,
                     int64_t column, int64_t columns, const float* weights, float* workspace,
                     const float* grad, float* grad_left, int64_t count, int64_t threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t r = 0; r < count * rows; r++) {
    float* __restrict pair_grad = workspace + r * columns;
    const float* weight = weights + r * columns;
    const float row_grad = grad[row + r % rows];
    const float* column_grad = grad + column;
    for (int64_t j = 0; j < columns; j++) pair_grad[j] = weight[j] * (row_grad + column_grad[j]);
  }
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t f = 0; f < count * features; f++) {
    const float *of_row = right + f * nodes + row, *of_column = right + f * nodes + column;
    float *row_grad = grad_left + f * nodes + row, *column_grad = grad_left + f * nodes + column;
    std::vector<float> zeros(columns), mirror(columns);
    for (int64_t first = 0; first < rows; first += kRows) {
      const int64_t block_rows = std::min(kRows, rows - first);
      const float* weight[kRows] = {zeros.data(), zeros.data(), zeros.data(), zeros.data()};
      float values[kRows] = {}, sums[kRows] = {};
      for (int64_t i = 0; i < block_rows; i++) {
        weight[i] = workspace + (f / features * rows + first + i) * columns;
        values[i] = of_row[first + i];
      }
      pull_rows(weight, values, of_column, sums, mirror.data(), columns);
      for (int64_t i = 0; i < block_rows; i++) row_grad[first + i] += sums[i];
    }
    if (row != column)
      for (int64_t j = 0; j < columns; j++) column_grad[j] += mirror[j];
  }
}

// Squared distances of edges, to which those of all components are added. Points are [nodes,
// components, width], factors of nodes [nodes, components], slopes and entries [components, edges].
extern "C" void edges(const float* x, const float* weight, int64_t count, int64_t width,
                      const int64_t* source, const int64_t* target, int64_t number, float* slopes,
                      float* entries, const Component* components, float* squared,
                      int64_t threads) {
  constexpr int64_t block = 1024;
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t start = 0; start < number; start += block) {
    const int64_t n = std::min(block, number - start);
    for (int64_t h = 0; h < count; h++) {
      const Component& c = components[h];
      float* entry = entries + h * number + start;
      for (int64_t j = 0; j < n; j++) {
        const int64_t s = source[start + j] * count + h;
        const int64_t t = target[start + j] * count + h;
        float sum = 0;
        for (int64_t k = 0; k < width; k++) {
          const float difference = x[s * width + k] - x[t * width + k];
          sum += difference * difference;
        }
        entry[j] = 4 / c.per_magnitude * weight[s] * weight[t] * sum;
      }
      curved_of<true>(c)(c, entry, slopes + h * number + start, squared + start, n);
    }
  }
}

// Adds the gradients of points and factors, from that of the squared distances.
extern "C" void edges_backward(const float* x, const float* weight, int64_t count, int64_t width,
                               const int64_t* source, const int64_t* target, int64_t number,
                               const float* slopes, const float* grad, float* grad_x,
                               float* grad_weight, int64_t threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t h = 0; h < count; h++)
    for (int64_t e = 0; e < number; e++) {
      const int64_t s = source[e] * count + h;
      const int64_t t = target[e] * count + h;
      const float grad_form = 4 * grad[e] * slopes[h * number + e];
      const float grad_square = 2 * grad_form * weight[s] * weight[t];
      float sum = 0;
      for (int64_t k = 0; k < width; k++) {
        const float difference = x[s * width + k] - x[t * width + k];
        sum += difference * difference;
        grad_x[s * width + k] += grad_square * difference;
        grad_x[t * width + k] -= grad_square * difference;
      }
      grad_weight[s] += grad_form * weight[t] * sum;
      grad_weight[t] += grad_form * weight[s] * sum;
    }
}

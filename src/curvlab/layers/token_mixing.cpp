// The mixing of each node's tokens by PolyAttn, one pass forward and one backward. The formula is
// that of `mix_tokens` in polynomial_attention.py, the oracle of the tests.
//
// Arrays are [orders + 1, nodes, heads * width] in float32, `bias` is [heads, orders + 1], and `mask`
// is [nodes, heads, orders + 1, orders + 1] or null. Scores are computed again in the backward pass.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

constexpr int64_t kLanes = 16;  // nodes that are computed at a time, in registers

struct Shape {
  int64_t tokens, nodes, heads, width;
};

// Values of one head for kLanes nodes, [tokens, width, kLanes].
class Block {
 public:
  explicit Block(const Shape& shape)
      : shape_(shape), values_(shape.tokens * shape.width * kLanes) {}

  float* row(int64_t token) { return values_.data() + token * shape_.width * kLanes; }

  void clear() { std::fill(values_.begin(), values_.end(), 0.0f); }

  // Nodes from `first` on; lanes without a node are zero.
  void read(const float* array, int64_t first, int64_t head) {
    const int64_t count = std::min(kLanes, shape_.nodes - first);
    if (count < kLanes) clear();
    for (int64_t token = 0; token < shape_.tokens; token++)
      for (int64_t lane = 0; lane < count; lane++) {
        const float* from = array + offset(token, first + lane, head);
        float* to = row(token) + lane;
        for (int64_t i = 0; i < shape_.width; i++) to[i * kLanes] = from[i];
      }
  }

  void write(float* array, int64_t first, int64_t head) {
    const int64_t count = std::min(kLanes, shape_.nodes - first);
    for (int64_t token = 0; token < shape_.tokens; token++)
      for (int64_t lane = 0; lane < count; lane++) {
        const float* from = row(token) + lane;
        float* to = array + offset(token, first + lane, head);
        for (int64_t i = 0; i < shape_.width; i++) to[i] = from[i * kLanes];
      }
  }

 private:
  int64_t offset(int64_t token, int64_t node, int64_t head) const {
    return ((token * shape_.nodes + node) * shape_.heads + head) * shape_.width;
  }

  const Shape shape_;
  std::vector<float> values_;
};

// The scores that dropout keeps, 1 or 0, [tokens * tokens, kLanes].
class Mask {
 public:
  Mask(const Shape& shape, const uint8_t* mask)
      : shape_(shape), mask_(mask), values_(shape.tokens * shape.tokens * kLanes, 1.0f) {}

  void read(int64_t first, int64_t head) {
    if (mask_ == nullptr) return;
    const int64_t count = std::min(kLanes, shape_.nodes - first);
    const int64_t scores = shape_.tokens * shape_.tokens;
    for (int64_t lane = 0; lane < count; lane++) {
      const uint8_t* from = mask_ + ((first + lane) * shape_.heads + head) * scores;
      for (int64_t i = 0; i < scores; i++) values_[i * kLanes + lane] = from[i];
    }
  }

  const float* row(int64_t query, int64_t key) const {
    return values_.data() + (query * shape_.tokens + key) * kLanes;
  }

 private:
  const Shape shape_;
  const uint8_t* const mask_;
  std::vector<float> values_;
};

// sums = sum_i x_i y_i
inline void dot(const float* x, const float* y, int64_t width, float* sums) {
  float total[kLanes] = {};
  for (int64_t i = 0; i < width; i++)
    for (int64_t lane = 0; lane < kLanes; lane++)
      total[lane] += x[i * kLanes + lane] * y[i * kLanes + lane];
  std::copy_n(total, kLanes, sums);
}

// y += weight x
inline void add(const float* weight, const float* x, int64_t width, float* __restrict y) {
  for (int64_t i = 0; i < width; i++)
    for (int64_t lane = 0; lane < kLanes; lane++)
      y[i * kLanes + lane] += weight[lane] * x[i * kLanes + lane];
}

// tanh(q . k)
inline void score(const float* query, const float* key, int64_t width, float* scores) {
  dot(query, key, width, scores);
  for (int64_t lane = 0; lane < kLanes; lane++) scores[lane] = tanh_of(scores[lane]);
}

// Calls a function with the number of each group of nodes.
template <typename Function>
void for_groups(int64_t groups, int64_t threads, const Function& function) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t group = 0; group < groups; group++) function(group);
}

inline int64_t num_groups(int64_t nodes) { return (nodes + kLanes - 1) / kLanes; }

}  // namespace

extern "C" void mix(const float* query, const float* key, const float* values, const float* bias,
                    const uint8_t* mask, int64_t tokens, int64_t nodes, int64_t heads,
                    int64_t width, float* out, int64_t threads) {
  const Shape shape = {tokens, nodes, heads, width};
  for_groups(num_groups(nodes), threads, [&](int64_t group) {
    Block q(shape), k(shape), v(shape), mixed(shape);
    Mask kept(shape, mask);
    const int64_t first = group * kLanes;
    for (int64_t head = 0; head < heads; head++) {
      q.read(query, first, head);
      k.read(key, first, head);
      v.read(values, first, head);
      kept.read(first, head);
      mixed.clear();
      for (int64_t i = 0; i < tokens; i++)
        for (int64_t j = 0; j < tokens; j++) {
          float weight[kLanes];
          score(q.row(i), k.row(j), width, weight);
          const float factor = bias[head * tokens + j];
          const float* keep = kept.row(i, j);
          for (int64_t lane = 0; lane < kLanes; lane++) weight[lane] *= factor * keep[lane];
          add(weight, v.row(j), width, mixed.row(i));
        }
      mixed.write(out, first, head);
    }
  });
}

// Adds to the gradient of the bias.
extern "C" void mix_backward(const float* query, const float* key, const float* values,
                             const float* bias, const uint8_t* mask, int64_t tokens, int64_t nodes,
                             int64_t heads, int64_t width, const float* grad, float* grad_query,
                             float* grad_key, float* grad_values, double* grad_bias,
                             int64_t threads) {
  const Shape shape = {tokens, nodes, heads, width};
  const int64_t groups = num_groups(nodes), entries = heads * tokens;
  std::vector<double> parts(groups * entries);
  for_groups(groups, threads, [&](int64_t group) {
    Block q(shape), k(shape), v(shape), g(shape), by_q(shape), by_k(shape), by_v(shape);
    Mask kept(shape, mask);
    const int64_t first = group * kLanes;
    for (int64_t head = 0; head < heads; head++) {
      q.read(query, first, head);
      k.read(key, first, head);
      v.read(values, first, head);
      g.read(grad, first, head);
      kept.read(first, head);
      by_q.clear();
      by_k.clear();
      by_v.clear();
      double* by_bias = parts.data() + group * entries + head * tokens;
      for (int64_t i = 0; i < tokens; i++)
        for (int64_t j = 0; j < tokens; j++) {
          float scores[kLanes], by_weight[kLanes], weight[kLanes], by_product[kLanes];
          score(q.row(i), k.row(j), width, scores);
          dot(g.row(i), v.row(j), width, by_weight);
          const float factor = bias[head * tokens + j];
          const float* keep = kept.row(i, j);
          float sum = 0;
          for (int64_t lane = 0; lane < kLanes; lane++) {
            const float slope = by_weight[lane] * keep[lane];
            sum += slope * scores[lane];
            weight[lane] = scores[lane] * factor * keep[lane];
            by_product[lane] = slope * factor * (1 - scores[lane] * scores[lane]);
          }
          by_bias[j] += sum;
          add(weight, g.row(i), width, by_v.row(j));
          add(by_product, k.row(j), width, by_q.row(i));
          add(by_product, q.row(i), width, by_k.row(j));
        }
      by_q.write(grad_query, first, head);
      by_k.write(grad_key, first, head);
      by_v.write(grad_values, first, head);
    }
  });
  for (int64_t group = 0; group < groups; group++)
    for (int64_t i = 0; i < entries; i++) grad_bias[i] += parts[group * entries + i];
}

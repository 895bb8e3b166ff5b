// Functions of float32 numbers in arithmetic that compilers vectorise. `Library` in cpp.py puts them
// before each source.

#include <cstdint>
#include <cstring>

namespace {

inline float float_of(int32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline int32_t bits_of(float value) {
  int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// log(1 + z) of z >= 0 as n log 2 + 2 artanh(f / (2 + f)), 1 + f in [0.75, 1.5), f = z at n = 0.
inline float log1p_of(float z) {
  const int32_t bits = bits_of(1 + z) - 0x3f400000;
  const int32_t n = bits >> 23;
  const float f = n == 0 ? z : float_of((bits & 0x7fffff) + 0x3f400000) - 1;
  const float s = f / (2 + f), q = s * s, twice = q * q;
  const float higher = (2.0f / 7 + 2.0f / 9 * q) + twice * (2.0f / 11);
  const float sum = (2.0f / 3 + 2.0f / 5 * q) + twice * higher;
  const float log = static_cast<float>(n) * 0.693147181f + (2 * s + s * q * sum);
  return z < 3e38f ? log : z;  // of infinity and NaN
}

}  // namespace


// Functions of float32 numbers in arithmetic that compilers vectorise. `Library` in cpp.py puts them
// before each source.

#include <cmath>
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

// tanh(x) as e / (e + 2), e = exp(2 |x|) - 1 = 2^n (exp(r) - 1) + 2^n - 1, |r| <= log(2) / 2.
inline float tanh_of(float x) {
  const float twice = 2 * std::fabs(x);
  const float y = twice > 20 ? 20 : twice;  // tanh(10) is 1; NaN stays
  const float shifted = y * 1.44269504f + 12582912;  // its last bits are the integer n
  const float n = shifted - 12582912;
  const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
  const float higher = 1.0f / 120 + r * (1.0f / 720 + r * (1.0f / 5040));
  const float series = r + r * r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * higher)));
  const uint32_t exponent = static_cast<uint32_t>(bits_of(shifted)) << 23;
  const float power = float_of(static_cast<int32_t>(exponent + 0x3f800000));
  const float e = power * series + (power - 1);
  return std::copysign(e / (e + 2), x);
}

}  // namespace


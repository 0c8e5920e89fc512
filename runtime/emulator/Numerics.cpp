// Owns the fp8 tables and the bit-exact roundings. No state.
#include "runtime/emulator/Numerics.h"

#include <bit>
#include <cmath>
#include <limits>

namespace moejit::emulated {

static std::array<float, 256> decodeAll(int mantissaBits, int bias, bool hasInfinity) {
  std::array<float, 256> values{};
  const int exponentMax = (1 << (7 - mantissaBits)) - 1;
  const int mantissaMax = (1 << mantissaBits) - 1;
  for (int code = 0; code < 256; ++code) {
    const int exponent = (code & 0x7f) >> mantissaBits;
    const int mantissa = code & mantissaMax;
    float value;
    if (exponent == exponentMax && hasInfinity)
      value = mantissa == 0 ? std::numeric_limits<float>::infinity()
                            : std::numeric_limits<float>::quiet_NaN();
    else if (exponent == exponentMax && mantissa == mantissaMax)
      value = std::numeric_limits<float>::quiet_NaN();
    else if (exponent == 0)
      value = std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissaBits);
    else
      value = std::ldexp(static_cast<float>(mantissa + mantissaMax + 1),
                         exponent - bias - mantissaBits);
    values[code] = code & 0x80 ? -value : value;
  }
  return values;
}

const std::array<float, 256> e4m3Values = decodeAll(3, 7, false);
const std::array<float, 256> e5m2Values = decodeAll(2, 15, true);

uint16_t roundToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value)
    return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint16_t roundToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return 0x7fff;
  // 65520 is halfway between the largest f16 and the next power of two: from there on, infinity.
  if (magnitude >= 0x477ff000)
    return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // Below 2^-14 the result is a multiple of 2^-24: adding 0.5 leaves just those bits, rounded to
    // nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000);
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

} // namespace moejit::emulated

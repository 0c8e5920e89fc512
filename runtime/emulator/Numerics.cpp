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

float widenF16(uint16_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x8000) << 16;
  const uint32_t exponent = code >> 10 & 0x1f, fraction = code & 0x3ff;
  if (exponent == 0x1f)
    return std::bit_cast<float>(fraction ? 0x7fffffffu : sign | 0x7f800000);
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

/// Rounds the bits of a magnitude to a format with `fractionBits` and the least normal exponent
/// `least`, a power of two.
static uint32_t roundMagnitude(uint32_t magnitude, int fractionBits, int least) {
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent < least) {
    // Adding 2^(least - fractionBits + 23) leaves the multiples of the least code in the fraction,
    // rounded to nearest even.
    const float anchor = std::ldexp(1.0f, least - fractionBits + 23);
    const float sum = std::bit_cast<float>(magnitude) + anchor;
    return std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(anchor);
  }
  const int dropped = 23 - fractionBits;
  const uint32_t rounded = magnitude + ((1u << (dropped - 1)) - 1) + (magnitude >> dropped & 1);
  return (rounded >> dropped) - (static_cast<uint32_t>(least + 126) << fractionBits);
}

static uint8_t roundToFp8(float value, int fractionBits, int least, uint32_t largest) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return 0x7f;
  const uint32_t code = roundMagnitude(magnitude, fractionBits, least);
  return static_cast<uint8_t>((bits >> 24 & 0x80) | (code < largest ? code : largest));
}

uint8_t roundToE4M3(float value) { return roundToFp8(value, 3, -6, 0x7e); }
uint8_t roundToE5M2(float value) { return roundToFp8(value, 2, -14, 0x7b); }

} // namespace moejit::emulated

// Small float formats by definition: sign, exponent field, fraction field.
#include "tests/oracle/Fp8.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace moejit::oracle {

namespace {

/// A binary format with a sign, `exponentBits`, `fractionBits` and the usual bias.
struct Format {
  int exponentBits;
  int fractionBits;
  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  int signShift() const { return exponentBits + fractionBits; }
};

constexpr Format e4m3{4, 3}, e5m2{5, 2}, f16{5, 10}, bf16{8, 7}, f32{8, 23};

/// The value of `code`, as if every exponent field stood for finite numbers.
double decodeFinite(Format format, uint32_t code) {
  int exponent = int(code >> format.fractionBits) & ((1 << format.exponentBits) - 1);
  double fraction = double(code & ((1u << format.fractionBits) - 1));
  double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - format.bias() - format.fractionBits)
                                   : std::ldexp(fraction + std::ldexp(1.0, format.fractionBits),
                                                exponent - format.bias() - format.fractionBits);
  return (code >> format.signShift()) & 1 ? -magnitude : magnitude;
}

float decodeIeee(Format format, uint32_t code) {
  uint32_t exponentMask = (1u << format.exponentBits) - 1;
  if (((code >> format.fractionBits) & exponentMask) != exponentMask)
    return float(decodeFinite(format, code));
  if (code & ((1u << format.fractionBits) - 1))
    return std::numeric_limits<float>::quiet_NaN();
  float infinity = std::numeric_limits<float>::infinity();
  return (code >> format.signShift()) & 1 ? -infinity : infinity;
}

/// Exponent of the unit in the last place around a finite `magnitude`.
int ulpExponent(Format format, double magnitude) {
  int smallest = 1 - format.bias();
  int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), smallest) : smallest;
  return exponent - format.fractionBits;
}

/// The code of a finite `magnitude` ≥ 0 rounded to nearest even, growing past the largest code
/// without a check.
uint64_t roundMagnitude(Format format, double magnitude) {
  int ulp = ulpExponent(format, magnitude);
  // In [0, 2^(fractionBits + 1)]: exact, and nearbyint rounds ties to even in the default mode.
  double units = std::nearbyint(std::ldexp(magnitude, -ulp));
  int64_t field =
      ulp + format.fractionBits + format.bias(); // 1 for subnormals and the first binade
  // The implicit bit adds one to the exponent field, a carry out of the fraction one more.
  return uint64_t(((field - 1) << format.fractionBits) + int64_t(units));
}

uint8_t encodeSaturating(Format format, uint8_t largestCode, double value) {
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value))
    return sign | 0x7f;
  if (std::isinf(value))
    return sign | largestCode;
  return sign | uint8_t(std::min<uint64_t>(roundMagnitude(format, std::fabs(value)), largestCode));
}

uint16_t encodeIeee16(Format format, double value) {
  if (std::isnan(value))
    return 0x7fff;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  uint64_t infinity = ((uint64_t(1) << format.exponentBits) - 1) << format.fractionBits;
  if (std::isinf(value))
    return sign | uint16_t(infinity);
  return sign | uint16_t(std::min(roundMagnitude(format, std::fabs(value)), infinity));
}

template <typename Decode> std::array<float, 256> makeTable(Decode decode) {
  std::array<float, 256> table;
  for (int code = 0; code < 256; ++code)
    table[code] = decode(uint8_t(code));
  return table;
}

} // namespace

float decodeE4M3(uint8_t code) {
  if ((code & 0x7f) == 0x7f)
    return std::numeric_limits<float>::quiet_NaN();
  return float(decodeFinite(e4m3, code));
}

float decodeE5M2(uint8_t code) { return decodeIeee(e5m2, code); }

float decodeE8M0(uint8_t code) {
  return code == 255 ? std::numeric_limits<float>::quiet_NaN()
                     : float(std::ldexp(1.0, int(code) - 127));
}

float decodeBf16(uint16_t code) { return decodeIeee(bf16, code); }
float decodeF16(uint16_t code) { return decodeIeee(f16, code); }

uint8_t encodeE4M3(double value) { return encodeSaturating(e4m3, 0x7e, value); }
uint8_t encodeE5M2(double value) { return encodeSaturating(e5m2, 0x7b, value); }
uint16_t encodeBf16(double value) { return encodeIeee16(bf16, value); }
uint16_t encodeF16(double value) { return encodeIeee16(f16, value); }

uint8_t encodeE8M0(float value, PowerRounding rounding) {
  if (std::isnan(value) || value < 0)
    return 255;
  uint32_t bits = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
  uint32_t exponent = bits >> 23;
  uint32_t fraction = bits & 0x7fffffu;
  if (exponent == 0) // subnormal: 2^-127 is the fraction 0x400000
    return rounding == PowerRounding::Up && fraction > 0x400000u ? 1 : 0;
  if (rounding == PowerRounding::Up && fraction != 0)
    ++exponent;
  return uint8_t(std::min(exponent, 254u));
}

bool isFp8(ElementType type) {
  return type == ElementType::F8E4M3FN || type == ElementType::F8E5M2;
}

const std::array<float, 256> &decodeTable(ElementType type) {
  static const std::array<float, 256> e4m3Table = makeTable(decodeE4M3);
  static const std::array<float, 256> e5m2Table = makeTable(decodeE5M2);
  static const std::array<float, 256> e8m0Table = makeTable(decodeE8M0);
  if (type == ElementType::F8E4M3FN)
    return e4m3Table;
  if (type == ElementType::F8E5M2)
    return e5m2Table;
  assert(type == ElementType::F8E8M0FNU && "not an 8-bit type");
  return e8m0Table;
}

uint8_t encodeFp8(ElementType type, double value) {
  assert(isFp8(type));
  return type == ElementType::F8E4M3FN ? encodeE4M3(value) : encodeE5M2(value);
}

double largestFinite(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
    return 448;
  case ElementType::F8E5M2:
    return 57344;
  case ElementType::F16:
    return 65504;
  case ElementType::BF16:
    return decodeFinite(bf16, 0x7f7f);
  default:
    return FLT_MAX;
  }
}

double readElement(ElementType type, const void *data, int64_t index) {
  if (type == ElementType::F32) {
    float value;
    std::memcpy(&value, static_cast<const char *>(data) + index * 4, 4);
    return value;
  }
  assert(type == ElementType::BF16 || type == ElementType::F16);
  uint16_t code;
  std::memcpy(&code, static_cast<const char *>(data) + index * 2, 2);
  return type == ElementType::BF16 ? decodeBf16(code) : decodeF16(code);
}

int64_t bytesOf(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
  case ElementType::F8E8M0FNU:
    return 1;
  case ElementType::BF16:
  case ElementType::F16:
    return 2;
  default:
    return 4;
  }
}

double halfUlp(ElementType type, double magnitude) {
  Format format = type == ElementType::BF16 ? bf16 : type == ElementType::F16 ? f16 : f32;
  return std::ldexp(1.0, ulpExponent(format, magnitude) - 1);
}

float quantizationScale(std::span<const float> granule, ElementType type) {
  float amax = 0;
  for (float value : granule)
    if (!std::isnan(value))
      amax = std::max(amax, std::min(std::fabs(value), FLT_MAX));
  return std::max(amax, 1e-12f) / float(largestFinite(type));
}

uint8_t quantize(float value, float scale, ElementType type) {
  return encodeFp8(type, value / scale);
}

} // namespace moejit::oracle

// fp8 codes and roundings against slow references that share no code with them.
#include "runtime/emulator/Numerics.h"

#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>

using namespace moejit;
using namespace moejit::emulated;

namespace {

/// The value of a small float format with infinities, by definition.
double decode(uint32_t code, int exponentBits, int mantissaBits) {
  const int bias = (1 << (exponentBits - 1)) - 1;
  const int exponent = static_cast<int>(code >> mantissaBits) & ((1 << exponentBits) - 1);
  const double mantissa = code & ((1u << mantissaBits) - 1);
  const double sign = code >> (exponentBits + mantissaBits) & 1 ? -1 : 1;
  const double scale = std::pow(2.0, mantissaBits);
  if (exponent == (1 << exponentBits) - 1)
    return mantissa == 0 ? sign * HUGE_VAL : NAN;
  if (exponent == 0)
    return sign * mantissa / scale * std::pow(2.0, 1 - bias);
  return sign * (1 + mantissa / scale) * std::pow(2.0, exponent - bias);
}

/// The nearest code to `value`, ties to the even one, by bisection over the positive codes.
uint16_t nearest(float value, int exponentBits, int mantissaBits) {
  const uint32_t infinity = ((1u << exponentBits) - 1) << mantissaBits;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(double(value));
  uint32_t low = 0, high = infinity;
  if (std::isinf(value))
    return static_cast<uint16_t>(sign | infinity);
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (decode(middle, exponentBits, mantissaBits) <= magnitude ? low : high) = middle;
  }
  // For rounding, infinity counts as the next value of the largest exponent.
  const double below = decode(low, exponentBits, mantissaBits);
  const double above = high == infinity ? std::pow(2.0, (1 << (exponentBits - 1)))
                                        : decode(high, exponentBits, mantissaBits);
  const double toLow = magnitude - below, toHigh = above - magnitude;
  const uint32_t chosen = toLow < toHigh || (toLow == toHigh && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(sign | chosen);
}

void checkRounding(float value) {
  const uint16_t bf16 = roundToBf16(value), f16 = roundToF16(value);
  if (std::isnan(value)) {
    CHECK(bf16 == 0x7fff);
    CHECK(f16 == 0x7fff);
    return;
  }
  if (bf16 != nearest(value, 8, 7) || f16 != nearest(value, 5, 10)) {
    CAPTURE(std::bit_cast<uint32_t>(value));
    CHECK(bf16 == nearest(value, 8, 7));
    CHECK(f16 == nearest(value, 5, 10));
  }
}

} // namespace

TEST_CASE("every fp8 code has its value") {
  for (uint32_t code = 0; code < 256; ++code) {
    CAPTURE(code);
    const double wide = decode(code, 5, 2);
    if (std::isnan(wide))
      CHECK(std::isnan(e5m2Values[code]));
    else
      CHECK(double(e5m2Values[code]) == wide);
    if ((code & 0x7f) == 0x7f) {
      CHECK(std::isnan(e4m3Values[code]));
      continue;
    }
    // e4m3 has no infinities: its top exponent holds ordinary values.
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    const double magnitude =
        exponent == 0 ? mantissa / 512.0 : (8 + mantissa) / 8.0 * std::pow(2.0, exponent - 7);
    CHECK(double(e4m3Values[code]) == (code & 0x80 ? -magnitude : magnitude));
    CHECK(std::signbit(e4m3Values[code]) == (code >= 0x80));
  }
  CHECK(e4m3Values[0x7e] == 448.0f);
  CHECK(e5m2Values[0x7b] == 57344.0f);
}

TEST_CASE("roundings to bf16 and f16 are nearest even") {
  // Every code of both formats, its neighbours halfway up, and one bit of f32 to each side of them.
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const uint32_t exact = code << 16;
    for (const uint32_t bits : {exact, exact + 0x7fff, exact + 0x8000, exact + 0x8001})
      checkRounding(std::bit_cast<float>(bits));
    const float half = static_cast<float>(decode(code, 5, 10));
    const float next = static_cast<float>(decode(code + 1, 5, 10));
    if (!std::isfinite(half))
      continue;
    const float tie =
        std::isfinite(next) ? half + (next - half) / 2 : std::copysign(65520.0f, half);
    for (const float value :
         {half, tie, std::nextafter(tie, HUGE_VALF), std::nextafter(tie, -HUGE_VALF)})
      checkRounding(value);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i)
    checkRounding(std::bit_cast<float>(static_cast<uint32_t>(random())));
  for (int i = 0; i < 100000; ++i) // the range of f16 and its subnormals
    checkRounding(std::ldexp(float(int32_t(random())) / 2147483648.0f, int(random() % 48) - 30));
}

TEST_CASE("the conversions of a kernel put the low value in the low half") {
  using namespace moejit::test;
  Buffer y("y", 32, true);
  TestLaunch launch(1, 32, 0);
  launch.pointer(y);
  Result<EmulatorReport> report = launch.run(kernelSource("void *y", R"(
  if (thread_index() == 0) {
    st_global_b32(y, 0, cvt_bf16x2_f32(1.0f, -2.0f));
    st_global_b32(y, 4, cvt_f16x2_f32(65519.0f, 65520.0f));
    st_global_b32(y, 8, bits_f32(fma_f32(16777217.0f, 3.0f, float_bits(0x33800000))));
    st_global_f32(y, 12, add_f32(mul_f32(1.000244140625f, 1.000244140625f), -1.0f));
    st_global_f32(y, 16, fma_f32(1.000244140625f, 1.000244140625f, -1.0f));
    st_global_b16(y, 20, 0x12345678);
  }
)"));
  REQUIRE_MESSAGE(report, report.error().text());
  CHECK(y.as<uint32_t>()[0] == 0xc0003f80);
  CHECK(y.as<uint32_t>()[1] == 0x7c007bff);
  CHECK(y.as<uint32_t>()[2] ==
        std::bit_cast<uint32_t>(std::fma(16777217.0f, 3.0f, std::ldexp(1.0f, -24))));
  CHECK(y.as<float>()[3] == 0x1p-11f); // the product rounds before the sum: 2^-12 squared is lost
  CHECK(y.as<float>()[4] == 0x1p-11f + 0x1p-24f);
  CHECK(y.as<uint16_t>()[10] == 0x5678);
}

// Every code of every small format, and every rounding against a search for the nearest value.
#include "tests/oracle/Fp8.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

using namespace moejit;
using namespace moejit::oracle;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Finite non-negative values by code, ascending (codes of one sign are ordered as their values).
template <typename Decode> std::vector<double> magnitudes(Decode decode, int largestCode) {
  std::vector<double> values;
  for (int code = 0; code <= largestCode; ++code)
    values.push_back(decode(code));
  return values;
}

/// The code nearest to `value` ≥ 0, of two equally near the even one.
int nearestCode(const std::vector<double> &values, double value) {
  size_t best = 0;
  for (size_t code = 1; code < values.size(); ++code) {
    double a = std::fabs(values[code] - value), b = std::fabs(values[best] - value);
    if (a < b || (a == b && code % 2 == 0))
      best = code;
  }
  return int(best);
}

/// Values at, just below and just above every code and every midpoint of neighbours.
std::vector<double> probes(const std::vector<double> &values) {
  std::vector<double> all;
  for (size_t i = 0; i < values.size(); ++i) {
    double next = i + 1 < values.size() ? values[i + 1] : values[i] * 1.01;
    for (double centre : {values[i], (values[i] + next) / 2, (3 * values[i] + next) / 4})
      for (double value : {std::nextafter(centre, 0.0), centre, std::nextafter(centre, infinity)})
        all.push_back(value);
  }
  return all;
}

} // namespace

TEST_CASE("fp8: values fixed by the OCP FP8 specification") {
  CHECK(decodeE4M3(0x00) == 0);
  CHECK(decodeE4M3(0x01) == 0x1p-9f); // least subnormal
  CHECK(decodeE4M3(0x07) == 7 * 0x1p-9f);
  CHECK(decodeE4M3(0x08) == 0x1p-6f); // least normal
  CHECK(decodeE4M3(0x38) == 1);
  CHECK(decodeE4M3(0x39) == 1.125f);
  CHECK(decodeE4M3(0x7e) == 448);
  CHECK(decodeE4M3(0xfe) == -448);
  CHECK(std::isnan(decodeE4M3(0x7f)));
  CHECK(std::isnan(decodeE4M3(0xff)));
  CHECK(std::signbit(decodeE4M3(0x80)));

  CHECK(decodeE5M2(0x01) == 0x1p-16f);
  CHECK(decodeE5M2(0x04) == 0x1p-14f);
  CHECK(decodeE5M2(0x3c) == 1);
  CHECK(decodeE5M2(0x7b) == 57344);
  CHECK(decodeE5M2(0x7c) == INFINITY);
  CHECK(decodeE5M2(0xfc) == -INFINITY);
  for (int code : {0x7d, 0x7e, 0x7f, 0xfd, 0xff})
    CHECK(std::isnan(decodeE5M2(uint8_t(code))));
}

TEST_CASE("fp8: all 256 codes round trip") {
  for (int code = 0; code < 256; ++code) {
    CAPTURE(code);
    float value = decodeE4M3(uint8_t(code));
    if (!std::isnan(value))
      CHECK(encodeE4M3(value) == code);
    value = decodeE5M2(uint8_t(code));
    if (std::isfinite(value))
      CHECK(encodeE5M2(value) == code);
    CHECK(std::isnan(decodeTable(ElementType::F8E4M3FN)[code]) == ((code & 0x7f) == 0x7f));
  }
}

TEST_CASE("fp8: encoding finds the nearest code, ties to even") {
  std::vector<double> e4m3 = magnitudes([](int c) { return decodeE4M3(uint8_t(c)); }, 0x7e);
  for (double value : probes(e4m3)) {
    CAPTURE(value);
    CHECK(encodeE4M3(value) == nearestCode(e4m3, value));
    CHECK(encodeE4M3(-value) == (nearestCode(e4m3, value) | 0x80));
  }
  std::vector<double> e5m2 = magnitudes([](int c) { return decodeE5M2(uint8_t(c)); }, 0x7b);
  for (double value : probes(e5m2)) {
    CAPTURE(value);
    CHECK(encodeE5M2(value) == nearestCode(e5m2, value));
    CHECK(encodeE5M2(-value) == (nearestCode(e5m2, value) | 0x80));
  }
}

TEST_CASE("fp8: saturation and NaN") {
  for (double value : {449.0, 464.0, 465.0, 1e30, infinity}) {
    CHECK(encodeE4M3(value) == 0x7e);
    CHECK(encodeE4M3(-value) == 0xfe);
  }
  for (double value : {57345.0, 61440.0, 65536.0, 1e30, infinity}) {
    CHECK(encodeE5M2(value) == 0x7b);
    CHECK(encodeE5M2(-value) == 0xfb);
  }
  double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(encodeE4M3(nan) == 0x7f);
  CHECK(std::isnan(decodeE4M3(encodeE4M3(std::copysign(nan, -1.0)))));
  CHECK(std::isnan(decodeE5M2(encodeE5M2(nan))));
}

TEST_CASE("bf16 and f16: all codes round trip, midpoints go to even") {
  for (int code = 0; code < 65536; ++code) {
    float b = decodeBf16(uint16_t(code)), h = decodeF16(uint16_t(code));
    bool right =
        (std::isnan(b) || encodeBf16(b) == code) && (std::isnan(h) || encodeF16(h) == code);
    if (!right)
      FAIL_CHECK("code " << code);
    // bf16 is the upper half of an fp32.
    if (!std::isnan(b) && std::bit_cast<uint32_t>(b) != uint32_t(code) << 16)
      FAIL_CHECK("bf16 code " << code);
  }
  for (int code = 0; code < 0x7bff; ++code) { // finite f16 neighbours
    double low = decodeF16(uint16_t(code)), high = decodeF16(uint16_t(code + 1));
    double middle = (low + high) / 2;
    bool right = encodeF16(middle) == (code % 2 ? code + 1 : code) &&
                 encodeF16(std::nextafter(middle, 0.0)) == code &&
                 encodeF16(std::nextafter(middle, infinity)) == code + 1;
    if (!right)
      FAIL_CHECK("f16 midpoint above " << code);
  }
  for (int code = 0; code < 0x7f7f; ++code) {
    double low = decodeBf16(uint16_t(code)), high = decodeBf16(uint16_t(code + 1));
    if (encodeBf16((low + high) / 2) != (code % 2 ? code + 1 : code))
      FAIL_CHECK("bf16 midpoint above " << code);
  }
  CHECK(encodeF16(65519.99) == 0x7bff);
  CHECK(encodeF16(65520.0) == 0x7c00); // the midpoint goes to the even neighbour, which is infinity
  CHECK(encodeF16(-1e6) == 0xfc00);
  CHECK(encodeBf16(infinity) == 0x7f80);
  CHECK(std::isnan(decodeBf16(encodeBf16(std::nan("")))));
  CHECK(std::isnan(decodeF16(encodeF16(std::nan("")))));
}

TEST_CASE("halfUlp is half the distance to the next code") {
  for (int code = 1; code < 0x7bff; ++code) {
    double value = decodeF16(uint16_t(code)), next = decodeF16(uint16_t(code + 1));
    if (halfUlp(ElementType::F16, value) != (next - value) / 2)
      FAIL_CHECK("f16 code " << code);
  }
  CHECK(halfUlp(ElementType::BF16, 1.0) == 0x1p-8);
  CHECK(halfUlp(ElementType::BF16, 1.99) == 0x1p-8);
  CHECK(halfUlp(ElementType::BF16, 2.0) == 0x1p-7);
  CHECK(halfUlp(ElementType::F32, 1.0) == 0x1p-24);
  CHECK(halfUlp(ElementType::F16, 0.0) == 0x1p-25);
}

TEST_CASE("e8m0: rules at both ends and rounding both ways") {
  CHECK(decodeE8M0(127) == 1);
  CHECK(decodeE8M0(0) == 0x1p-127f);
  CHECK(decodeE8M0(254) == 0x1p127f);
  CHECK(std::isnan(decodeE8M0(255)));
  for (int code = 0; code < 255; ++code)
    for (PowerRounding rounding : {PowerRounding::Down, PowerRounding::Up})
      CHECK(encodeE8M0(decodeE8M0(uint8_t(code)), rounding) == code);
  CHECK(encodeE8M0(1.5f, PowerRounding::Down) == 127);
  CHECK(encodeE8M0(1.5f, PowerRounding::Up) == 128);
  CHECK(encodeE8M0(std::nextafter(1.0f, 0.0f), PowerRounding::Down) == 126);
  CHECK(encodeE8M0(std::nextafter(1.0f, 2.0f), PowerRounding::Up) == 128);
  CHECK(encodeE8M0(0, PowerRounding::Up) == 0);
  CHECK(encodeE8M0(0x1.1p-127f, PowerRounding::Up) == 1);
  CHECK(encodeE8M0(FLT_MAX, PowerRounding::Up) == 254);
  CHECK(encodeE8M0(INFINITY, PowerRounding::Down) == 254);
  CHECK(encodeE8M0(-1, PowerRounding::Up) == 255);
  CHECK(encodeE8M0(NAN, PowerRounding::Up) == 255);
}

TEST_CASE("quantisation: scale, zero granules, NaN and infinity") {
  std::vector<float> values = {1.0f, -8.96f, 0.5f};
  float scale = quantizationScale(values, ElementType::F8E4M3FN);
  CHECK(scale == 8.96f / 448.0f);
  CHECK(quantize(-8.96f, scale, ElementType::F8E4M3FN) == 0xfe);

  std::vector<float> zeros(128, 0.0f);
  scale = quantizationScale(zeros, ElementType::F8E4M3FN);
  CHECK(scale == 1e-12f / 448.0f);
  CHECK(quantize(0, scale, ElementType::F8E4M3FN) == 0);

  std::vector<float> withNan = {NAN, 2.0f};
  CHECK(quantizationScale(withNan, ElementType::F8E5M2) == 2.0f / 57344.0f);
  CHECK(std::isnan(decodeE5M2(quantize(NAN, 1, ElementType::F8E5M2))));

  std::vector<float> withInfinity = {-INFINITY, 2.0f};
  scale = quantizationScale(withInfinity, ElementType::F8E4M3FN);
  CHECK(std::isfinite(scale));
  CHECK(quantize(-INFINITY, scale, ElementType::F8E4M3FN) == 0xfe);
}

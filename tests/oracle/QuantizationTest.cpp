// The oracle of quantization on problems small enough to be worked by hand.
#include "tests/oracle/Quantization.h"

#include "tests/oracle/Fp8.h"
#include "tests/oracle/Problem.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace moejit;
using namespace moejit::oracle;

namespace {

const Granule whole = Granule::whole();

ScaleLayout dynamic(std::vector<Granule> granule, ElementType type = ElementType::F32) {
  return {std::move(granule), type, ScaleSource::Dynamic};
}

/// `rows` rows of f32 values, packed.
QuantizeProblem problemOf(const Spec &spec, const std::vector<float> &values) {
  QuantizeProblem problem;
  problem.spec = spec;
  problem.rows = int64_t(values.size()) / spec.k;
  problem.xStride = problem.yStride = spec.k;
  problem.x.resize(values.size() * 4);
  std::memcpy(problem.x.data(), values.data(), problem.x.size());
  return problem;
}

float floatAt(const std::vector<uint8_t> &bytes, int64_t index) {
  float value;
  std::memcpy(&value, bytes.data() + 4 * index, 4);
  return value;
}

} // namespace

TEST_CASE("two rows of two granules, worked by hand") {
  // e4m3: 448 is S.1111.110 = 0x7e, 224 is 0x76 (1.75 · 2^7), 56 is 0x66 (1.75 · 2^5).
  Spec spec = quantizeSpec(64, ElementType::F32, ElementType::F8E4M3FN,
                           dynamic({Granule::of(1), Granule::of(32)}));
  std::vector<float> values(128, 0.0f);
  values[0] = 896; // scale 2
  values[1] = -448;
  values[32] = 1.75; // scale 1.75 / 448
  values[33] = 0.21875;
  values[64] = -0.0f; // a granule of zeros: scale 1e-12 / 448
  values[96] = 448;
  values[97] = 1;
  QuantizeProblem problem = problemOf(spec, values);
  problem.scaleStride = 2;
  QuantizeResult result = quantized(problem);
  CHECK(result.codes[0] == 0x7e);
  CHECK(result.codes[1] == (0x76 | 0x80));
  CHECK(result.codes[32] == 0x7e);
  CHECK(result.codes[33] == 0x66);
  CHECK(result.codes[64] == 0x80);
  CHECK(result.codes[65] == 0x00);
  CHECK(result.codes[96] == 0x7e);
  CHECK(result.codes[97] == 0x38); // 1.0: exponent field 7
  CHECK(floatAt(result.scales, 0) == 2.0f);
  CHECK(floatAt(result.scales, 1) == 1.75f / 448);
  CHECK(floatAt(result.scales, 2) == 1e-12f / 448);
  CHECK(floatAt(result.scales, 3) == 1.0f);
}

TEST_CASE("mn_major and a stride put scales where the layout says") {
  Spec spec = quantizeSpec(64, ElementType::F32, ElementType::F8E4M3FN,
                           dynamic({Granule::of(1), Granule::of(32)}));
  spec.xScales.order = ScaleOrder::MnMajor;
  std::vector<float> values(128, 0.0f);
  for (int64_t i : {0, 32, 64, 96})
    values[i] = 448.0f * float(1 + i / 32);
  QuantizeProblem problem = problemOf(spec, values);
  problem.scaleStride = 5;
  QuantizeResult result = quantized(problem);
  REQUIRE(result.scales.size() == 28); // five words, then two
  CHECK(floatAt(result.scales, 0) == 1.0f);
  CHECK(floatAt(result.scales, 1) == 3.0f); // row 1 of group 0
  CHECK(std::isnan(floatAt(result.scales, 2)));
  CHECK(floatAt(result.scales, 5) == 2.0f); // row 0 of group 1
  CHECK(floatAt(result.scales, 6) == 4.0f);
}

TEST_CASE("a ue8m0 scale is rounded up, and the data divided by what it then is") {
  Spec spec = quantizeSpec(160, ElementType::F32, ElementType::F8E4M3FN,
                           dynamic({Granule::of(1), Granule::of(32)}, ElementType::F8E8M0FNU));
  spec.xScales.packing = 4;
  std::vector<float> values(160, 0.0f);
  values[0] = 448;  // exactly 1: 2^0
  values[32] = 449; // above it: 2^1
  values[33] = 224;
  values[64] = 224;       // 2^-1
  values[128] = 448 * 64; // 2^6
  QuantizeProblem problem = problemOf(spec, values);
  problem.scaleStride = 2;
  QuantizeResult result = quantized(problem);
  REQUIRE(result.scales.size() == 8);
  CHECK(result.scales[0] == 127);
  CHECK(result.scales[1] == 128);
  CHECK(result.scales[2] == 126);
  CHECK(result.scales[3] == encodeE8M0(1e-12f / 448, PowerRounding::Up));
  CHECK(result.scales[4] == 133);
  for (int64_t i : {5, 6, 7})
    CHECK(result.scales[i] == 0);
  CHECK(result.codes[0] == 0x7e);
  CHECK(result.codes[32] == 0x76); // 224.5 rounds to 224
  CHECK(result.codes[33] == 0x6e); // 112
  CHECK(result.codes[64] == 0x7e);
}

TEST_CASE("one scale per tensor skips NaN and takes an infinity as the largest float") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Spec spec = quantizeSpec(16, ElementType::F32, ElementType::F8E5M2, dynamic({whole, whole}));
  std::vector<float> values(32, 1.0f);
  values[3] = NAN;
  values[20] = 57344 * 4;
  QuantizeProblem problem = problemOf(spec, values);
  problem.scaleStride = 1;
  QuantizeResult result = quantized(problem);
  CHECK(floatAt(result.scales, 0) == 4.0f);
  CHECK((result.codes[3] & 0x7f) > 0x7c);
  CHECK(result.codes[20] == 0x7b);
  CHECK(result.codes[0] == 0x34); // 0.25: exponent field 13
  values[21] = -infinity;
  problem.x = problemOf(spec, values).x;
  result = quantized(problem);
  CHECK(floatAt(result.scales, 0) == std::numeric_limits<float>::max() / 57344);
  CHECK(result.codes[21] == 0xfb);
  CHECK(result.codes[20] == 0);
}

TEST_CASE("a comparison sees one code, one scale, a gap and a canary") {
  Spec spec = quantizeSpec(96, ElementType::BF16, ElementType::F8E4M3FN,
                           dynamic({Granule::of(1), Granule::of(32)}));
  QuantizeOptions options;
  options.yPadElements = 16;
  options.scalePadWords = 3;
  QuantizeProblem problem = makeQuantizeProblem(spec, 3, 7, options);
  CHECK(problem.yStride == 112);
  CHECK(problem.scaleStride == 6);
  QuantizeResult right = quantized(problem);
  QuantizeOutput output = QuantizeOutput::make(problem);
  for (int64_t r = 0; r < 3; ++r)
    std::copy_n(right.codes.begin() + r * 96, 96, output.yData() + r * problem.yStride);
  std::copy(right.scales.begin(), right.scales.end(), output.scaleData());
  CHECK(compareQuantized(problem, output).ok());

  // 0x7f more than one of -0, a NaN's sign alone: the first shows, the second does not.
  auto isDetected = [&](uint8_t &byte, uint8_t value) {
    uint8_t before = byte;
    byte = value;
    bool isOk = compareQuantized(problem, output).ok();
    byte = before;
    return !isOk;
  };
  uint8_t *code = output.yData() + 2 * problem.yStride + 95;
  CHECK(isDetected(*code, *code ^ 1));
  CHECK(isDetected(output.yData()[96], 0));
  CHECK(isDetected(output.yData()[-1], 0));
  CHECK(isDetected(output.yData()[3 * problem.yStride], 1));
  CHECK(isDetected(output.scaleData()[1], output.scaleData()[1] ^ 1));
  CHECK(isDetected(output.scaleData()[3 * 4], 0));
  CHECK(isDetected(output.scaleData()[-1], 0));
  CHECK(isDetected(output.scaleData()[right.scales.size()], 0));
}

TEST_CASE("special values come in every kind") {
  Spec spec = quantizeSpec(4096, ElementType::BF16, ElementType::F8E4M3FN,
                           dynamic({Granule::of(1), Granule::of(32)}));
  QuantizeProblem problem = makeQuantizeProblem(spec, 4, 3);
  int64_t nans = 0, infinities = 0, negativeZeros = 0, subnormals = 0;
  for (int64_t i = 0; i < 4 * 4096; ++i) {
    double value = readElement(ElementType::BF16, problem.x.data(), i);
    nans += std::isnan(value);
    infinities += std::isinf(value);
    negativeZeros += value == 0 && std::signbit(value);
    subnormals += value != 0 && std::fabs(value) < 0x1p-126;
  }
  CHECK(nans > 32);
  CHECK(infinities > 4);
  CHECK(negativeZeros > 16);
  CHECK(subnormals > 16);
}

// The instructions of a quantization against the oracle's definitions, which share no code with
// them.
#include "runtime/emulator/Numerics.h"
#include "tests/emulator/Harness.h"
#include "tests/oracle/Fp8.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>

using namespace moejit;
using namespace moejit::emulated;
using namespace moejit::test;

namespace {

/// Where the rounding of `value` to fp8 is not the oracle's; NaN is NaN whatever its sign.
int differences(float value) {
  if (std::isnan(value))
    return ((roundToE4M3(value) & 0x7f) != 0x7f) + ((roundToE5M2(value) & 0x7f) != 0x7f);
  return (roundToE4M3(value) != oracle::encodeE4M3(value)) +
         (roundToE5M2(value) != oracle::encodeE5M2(value));
}

} // namespace

TEST_CASE("roundings to fp8 are nearest even and saturate") {
  int wrong = 0;
  // Every code of both types, the ties between neighbours, and one bit of f32 to each side of each.
  for (ElementType type : {ElementType::F8E4M3FN, ElementType::F8E5M2})
    for (int code = 0; code < 255; ++code) {
      float here = oracle::decodeTable(type)[code], next = oracle::decodeTable(type)[code + 1];
      for (float value : {here, here + (next - here) / 2, next, -here})
        for (float near :
             {value, std::nextafter(value, HUGE_VALF), std::nextafter(value, -HUGE_VALF)})
          wrong += differences(near);
    }
  // All exponents and signs, random fractions.
  std::mt19937 random(3);
  for (int i = 0; i < 1'000'000; ++i)
    wrong += differences(std::bit_cast<float>(static_cast<uint32_t>(random())));
  for (float value : {0.0f, -0.0f, HUGE_VALF, -HUGE_VALF, 464.0f, 464.00003f, 61440.0f, 3.4e38f})
    wrong += differences(value);
  CHECK(wrong == 0);
  CHECK(std::signbit(oracle::decodeE4M3(roundToE4M3(-0.0f))));
}

TEST_CASE("every f16 widens to its value") {
  int wrong = 0;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    float widened = widenF16(static_cast<uint16_t>(code));
    float expected = oracle::decodeF16(static_cast<uint16_t>(code));
    bool isSame = std::isnan(expected)
                      ? std::isnan(widened)
                      : std::bit_cast<uint32_t>(widened) == std::bit_cast<uint32_t>(expected);
    wrong += !isSame;
  }
  CHECK(wrong == 0);
}

TEST_CASE("the instructions of a quantization, from a kernel") {
  Buffer x("x", 64, false), y("y", 128, true), word("word", 8, true);
  const float values[] = {448.0f, -464.00003f, 1.0f, 3.0f, 1e-42f, NAN, 0x1p-9f, -0.0f};
  std::copy(std::begin(values), std::end(values), x.as<float>());
  word.as<int>()[0] = 5;
  word.as<int>()[1] = 100;
  TestLaunch launch(1, 32, 0);
  launch.pointer(x).pointer(y).pointer(word);
  Result<EmulatorReport> report = launch.run(kernelSource("const void *x, void *y, void *word", R"(
  const int thread = thread_index();
  int v[2][4];
  ld_global_v4(x, 16, v[1]);
  red_max_global_i32(word, 0, thread);
  red_max_global_i32(word, 4, thread);
  const int crossed = shfl_bfly(thread * 2, 5);
  if (thread == 3) {
    st_global_b32(y, 0, cvt_e4m3x2_f32(ld_global_f32(x, 0), ld_global_f32(x, 4)));
    st_global_b32(y, 4, cvt_e5m2x2_f32(ld_global_f32(x, 8), ld_global_f32(x, 12)));
    st_global_f32(y, 8, div_f32(ld_global_f32(x, 8), ld_global_f32(x, 12)));
    st_global_f32(y, 12, div_f32(float_bits(v[1][0]), 2.0f));
    st_global_f32(y, 16, div_f32(float_bits(v[1][1]), 2.0f));
    st_global_f32(y, 20, cvt_f32_f16(0x12340001));
    st_global_b32(y, 24, crossed);
    st_global_b32(y, 28, ld_global_u8(x, 3));
    st_global_b8(y, 33, 0x1234);
    st_global_b32(y, 36, cvt_e4m3x2_f32(float_bits(v[1][2]), float_bits(v[1][3])));
  }
)"));
  REQUIRE_MESSAGE(report, report.error().text());
  CHECK(y.as<uint32_t>()[0] == 0xfe7e);
  CHECK(y.as<uint32_t>()[1] == 0x423c);
  CHECK(y.as<float>()[2] == 1.0f / 3.0f);
  CHECK(y.as<uint32_t>()[3] == std::bit_cast<uint32_t>(1e-42f / 2)); // subnormals are kept
  CHECK(y.as<uint32_t>()[4] == 0x7fffffff);                          // PTX's one NaN
  CHECK(y.as<float>()[5] == 0x1p-24f);
  CHECK(y.as<uint32_t>()[6] == 2 * (3 ^ 5));
  CHECK(y.as<uint32_t>()[7] == 0x43);
  CHECK(y.data()[33] == 0x34);
  CHECK(y.as<uint32_t>()[9] == 0x8001);
  CHECK(word.as<int>()[0] == 31);
  CHECK(word.as<int>()[1] == 100);
}

TEST_CASE("a vector load reads aligned memory of one operand, and nothing past it") {
  Buffer x("x", 40, false);
  auto errorAt = [&](const char *offset) {
    TestLaunch launch(1, 32, 0);
    launch.pointer(x);
    return errorOf(launch, kernelSource("const void *x", std::string("int v[4]; ld_global_v4(x, ") +
                                                             offset + ", v);"));
  };
  CHECK(errorAt("16") == "");
  CHECK(contains(errorAt("8"), "not a multiple of 16"));
  CHECK(contains(errorAt("32"), "which has 40 bytes"));
}

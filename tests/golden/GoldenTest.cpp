// Owns the proof that golden files are right, not only unchanged: they run on the emulator.
#include "tests/emulator/Harness.h"

#include <cstring>
#include <doctest/doctest.h>
#include <fstream>
#include <random>
#include <sstream>

using namespace moejit;
using namespace moejit::test;

/// Round to nearest even, of a value that is no NaN.
static uint16_t bf16Of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

TEST_CASE("dense-gemm multiplies") {
  constexpr int m = 128, n = 128, k = 7168;
  std::stringstream source;
  source << std::ifstream(MOEJIT_SOURCE "/tests/golden/dense-gemm.cu").rdbuf();
  REQUIRE(!source.str().empty());

  // Small integers: every sum is exact, whatever the order.
  constexpr uint8_t codes[] = {0x00, 0x38, 0x40, 0xb8, 0xc0}; // 0, 1, 2, -1, -2 in e4m3
  constexpr int values[] = {0, 1, 2, -1, -2};
  std::mt19937 random(7);
  Buffer x("x", m * k, false), w("w", n * k, false), y("y", m * n * 2, true);
  std::vector<int> xValues(m * k), wValues(n * k);
  auto fill = [&](Buffer &buffer, std::vector<int> &numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      unsigned pick = random() % 5;
      buffer.data()[i] = codes[pick];
      numbers[i] = values[pick];
    }
  };
  fill(x, xValues);
  fill(w, wValues);

  TestLaunch launch(/*blocks=*/1, /*threads=*/384, /*sharedBytes=*/131136);
  launch.map(mapOf(x, ElementType::F8E4M3FN, {k, m}, {k}, {128, 128}, Swizzle::B128))
      .map(mapOf(w, ElementType::F8E4M3FN, {k, n}, {k}, {128, 128}, Swizzle::B128))
      .pointer(y)
      .integer(n * 2) // in a zeroed slot, so it reads as i64 too
      .range(x)
      .range(w);
  REQUIRE(errorOf(launch, source.str()) == "");
  int wrong = 0;
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      int sum = 0;
      for (int i = 0; i < k; ++i)
        sum += xValues[row * k + i] * wValues[column * k + i];
      wrong += y.as<uint16_t>()[row * n + column] != bf16Of(static_cast<float>(sum));
    }
  CHECK(wrong == 0);
}

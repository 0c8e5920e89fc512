// A whole small GEMM on the emulator: a four-stage TMA ring, a producer warp, a consumer warpgroup
// issuing wgmma.
#include "runtime/emulator/Numerics.h"
#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

using namespace moejit;
using namespace moejit::test;

namespace {

constexpr int tileM = 64, tileN = 128, stages = 4;

// y[64, 128] = x[64, k] · w[128, k]^T. `promote` keeps 128 of K in the temporary and adds it to a
// final fragment.
const std::string gemmParameters = "const __grid_constant__ TensorMap xMap, const "
                                   "__grid_constant__ TensorMap wMap, void *y, int steps";
const std::string gemmBody = R"(
  const int base = shared_base();
  const int full = base + 4 * 24576;
  const int empty = full + 32;
  const int thread = thread_index();
  if (thread == 0) {
    for (int s = 0; s < 4; ++s) {
      mbarrier_init(full + 8 * s, 1);
      mbarrier_init(empty + 8 * s, 4);
    }
    fence_mbarrier_init();
  }
  bar_sync(0, 384);
  if (thread >= 128) {
    setmaxnreg_dec<40>();
    if (thread < 160 && elect_one()) {
      prefetch_tensormap(xMap);
      int stage = 0;
      int phase = 0;
      for (int k = 0; k < steps; ++k) {
        mbarrier_wait(empty + 8 * stage, phase ^ 1);
        mbarrier_expect_tx(full + 8 * stage, 24576);
        tma_load_2d(base + stage * 24576, xMap, k * 128, 0, full + 8 * stage);
        tma_load_2d_hint(base + stage * 24576 + 8192, wMap, k * 128, 0, full + 8 * stage,
                         createpolicy_evict_first());
        if (++stage == 4) { stage = 0; phase ^= 1; }
      }
    }
    return;
  }
  setmaxnreg_inc<232>();
  float acc[64];
  float fin[64];
  #pragma unroll
  for (int i = 0; i < 64; ++i)
    fin[i] = 0.0f;
  int stage = 0;
  int phase = 0;
  for (int k = 0; k < steps; ++k) {
    mbarrier_wait(full + 8 * stage, phase);
    const int address = shfl_idx(base + stage * 24576, 0);
    const int a = (address >> 4) | 0x10000;
    const int b = ((address + 8192) >> 4) | 0x10000;
    regs_pin(acc);
    wgmma_fence();
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      wgmma_m64n128k32_TYPES(acc, a + 2 * i, b + 2 * i, i > 0);
    wgmma_commit();
    wgmma_wait<0>();
    regs_pin(acc);
    if (thread % 32 == 0)
      mbarrier_arrive(empty + 8 * stage);
    #pragma unroll
    for (int i = 0; i < 64; ++i)
      fin[i] = add_f32(fin[i], acc[i]);
    if (++stage == 4) { stage = 0; phase ^= 1; }
  }
  const int row = 16 * (thread / 32) + thread % 32 / 4;
  #pragma unroll
  for (int j = 0; j < 16; ++j) {
    const long long upper = ((long long)row * 128 + 8 * j + 2 * (thread % 4)) * 4;
    st_global_f32(y, upper, fin[4 * j]);
    st_global_f32(y, upper + 4, fin[4 * j + 1]);
    st_global_f32(y, upper + 8 * 512, fin[4 * j + 2]);
    st_global_f32(y, upper + 8 * 512 + 4, fin[4 * j + 3]);
  }
)";

std::string gemmSource(const std::string &types) {
  std::string body = gemmBody;
  body.replace(body.find("TYPES"), 5, types);
  return kernelSource(gemmParameters, body);
}

void fillFp8(Buffer &buffer, const std::array<float, 256> &values, uint32_t seed) {
  std::minstd_rand random(seed);
  for (int64_t i = 0; i < buffer.bytes(); ++i) {
    uint8_t code;
    do
      code = static_cast<uint8_t>(random() >> 8);
    while (!(std::fabs(values[code]) <= 8));
    buffer.data()[i] = code;
  }
}

TestLaunch gemmLaunch(Buffer &x, Buffer &w, Buffer &y, int k) {
  TestLaunch launch(1, 384, stages * 24576 + 64);
  launch
      .map(mapOf(x, ElementType::F8E4M3FN, {uint64_t(k), tileM}, {uint64_t(k)}, {128, tileM},
                 Swizzle::B128))
      .map(mapOf(w, ElementType::F8E4M3FN, {uint64_t(k), tileN}, {uint64_t(k)}, {128, tileN},
                 Swizzle::B128))
      .pointer(y)
      .integer((k + 127) / 128)
      .range(x)
      .range(w);
  return launch;
}

/// Elements of y that differ from the documented order of sums: 128 of k in fp32 from zero, then
/// added.
int wrongElements(Buffer &x, Buffer &w, Buffer &y, int k, const std::array<float, 256> &xValues,
                  const std::array<float, 256> &wValues) {
  int wrong = 0;
  for (int m = 0; m < tileM; ++m)
    for (int n = 0; n < tileN; ++n) {
      float total = 0;
      for (int begin = 0; begin < k; begin += 128) {
        float part = 0;
        for (int i = begin; i < std::min(k, begin + 128); ++i)
          part += xValues[x.data()[m * k + i]] * wValues[w.data()[n * k + i]];
        total += part;
      }
      wrong += y.as<float>()[m * tileN + n] != total;
    }
  return wrong;
}

} // namespace

// K = 528: more steps than stages, and a last step that zero-fills most of its 128.
TEST_CASE("a pipelined GEMM gives the documented sums, bit for bit") {
  const int k = 528;
  struct Types {
    const char *name;
    const std::array<float, 256> &x, &w;
  };
  for (const Types &types : {Types{"e4m3_e4m3", emulated::e4m3Values, emulated::e4m3Values},
                             Types{"e5m2_e4m3", emulated::e5m2Values, emulated::e4m3Values},
                             Types{"e4m3_e5m2", emulated::e4m3Values, emulated::e5m2Values},
                             Types{"e5m2_e5m2", emulated::e5m2Values, emulated::e5m2Values}}) {
    CAPTURE(types.name);
    Buffer x("x", tileM * k, false), w("w", tileN * k, false), y("y", tileM * tileN * 4, true);
    fillFp8(x, types.x, 1);
    fillFp8(w, types.w, 2);
    Result<EmulatorReport> report = gemmLaunch(x, w, y, k).run(gemmSource(types.name));
    REQUIRE_MESSAGE(report, report.error().text());
    CHECK(report->wgmmas == 4 * 5);
    CHECK(report->tmaLoads == 2 * 5);
    CHECK(wrongElements(x, w, y, k, types.x, types.w) == 0);
  }
}

TEST_CASE("any order of threads and any delay of loads gives the same result") {
  const int k = 1024;
  Buffer x("x", tileM * k, false), w("w", tileN * k, false);
  fillFp8(x, emulated::e4m3Values, 3);
  fillFp8(w, emulated::e4m3Values, 4);
  for (uint64_t seed = 0; seed < 8; ++seed) {
    CAPTURE(seed);
    Buffer y("y", tileM * tileN * 4, true);
    EmulatorOptions options = testOptions();
    options.seed = seed;
    Result<EmulatorReport> report = gemmLaunch(x, w, y, k).run(gemmSource("e4m3_e4m3"), options);
    REQUIRE_MESSAGE(report, report.error().text());
    CHECK(wrongElements(x, w, y, k, emulated::e4m3Values, emulated::e4m3Values) == 0);
  }
}

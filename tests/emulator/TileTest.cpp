// The tile of the prefill kernels: 128 × 256 by two consumer warpgroups that split the columns,
// promotion by scales read from the ring, results through stmatrix and 16-byte stores, tiles from
// an atomic queue, two blocks of a cluster.
#include "runtime/emulator/Numerics.h"
#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

#include <cmath>
#include <ctime>
#include <random>

using namespace moejit;
using namespace moejit::test;

namespace {

constexpr int tileM = 128, tileN = 256, stages = 4;
constexpr int stageBytes = 50176; // A 16 KiB, B 32 KiB, 132 scales, to a multiple of 1024

const std::string parameters =
    "const __grid_constant__ TensorMap xMap, const __grid_constant__ TensorMap wMap, "
    "const __grid_constant__ TensorMap sMap, void *y, void *queue, int steps, int rowTiles, int "
    "columnTiles";

// The producer draws tiles and passes each through a one-slot mailbox guarded by two barriers.
const std::string body = R"(
  const int base = shared_base();
  const int full = base + 4 * 50176;
  const int empty = full + 32;
  const int tileFull = full + 64;
  const int tileEmpty = full + 72;
  const int tileSlot = full + 80;
  const int staging = full + 128;
  const int thread = thread_index();
  const int warp = shfl_idx(thread / 32, 0);
  const int lane = thread % 32;
  if (thread == 0) {
    for (int s = 0; s < 4; ++s) {
      mbarrier_init(full + 8 * s, 1);
      mbarrier_init(empty + 8 * s, 8);
    }
    mbarrier_init(tileFull, 1);
    mbarrier_init(tileEmpty, 8);
    fence_mbarrier_init();
  }
  bar_sync(0, 384);
  const int tiles = rowTiles * columnTiles;
  if (thread >= 256) {
    setmaxnreg_dec<40>();
    if (warp == 8 && elect_one()) {
      int stage = 0;
      int phase = 0;
      int tilePhase = 0;
      while (true) {
        int tile = atom_add_global_i32(queue, 0, 1);
        if (tile >= tiles) tile = -1;
        mbarrier_wait(tileEmpty, tilePhase ^ 1);
        st_shared_i32(tileSlot, tile);
        mbarrier_arrive(tileFull);
        tilePhase ^= 1;
        if (tile < 0) break;
        const int m0 = tile % rowTiles * 128;
        const int n0 = tile / rowTiles * 256;
        for (int k = 0; k < steps; ++k) {
          mbarrier_wait(empty + 8 * stage, phase ^ 1);
          const int slot = base + stage * 50176;
          mbarrier_expect_tx(full + 8 * stage, 16384 + 32768 + 528);
          tma_load_2d(slot, xMap, k * 128, m0, full + 8 * stage);
          tma_load_2d(slot + 16384, wMap, k * 128, n0, full + 8 * stage);
          tma_load_2d(slot + 49152, sMap, m0, k, full + 8 * stage);
          if (++stage == 4) { stage = 0; phase ^= 1; }
        }
      }
    }
    return;
  }
  setmaxnreg_inc<232>();
  float acc[64];
  float fin[2][64];
  int words[4];
  const int group = warp / 4;
  int stage = 0;
  int phase = 0;
  int tilePhase = 0;
  while (true) {
    mbarrier_wait(tileFull, tilePhase);
    const int tile = ld_shared_i32(tileSlot);
    syncwarp();
    if (lane == 0) mbarrier_arrive(tileEmpty);
    tilePhase ^= 1;
    if (tile < 0) break;
    const int m0 = tile % rowTiles * 128;
    const int n0 = tile / rowTiles * 256 + group * 128;
    #pragma unroll
    for (int u = 0; u < 2; ++u)
      #pragma unroll
      for (int i = 0; i < 64; ++i)
        fin[u][i] = 0.0f;
    for (int k = 0; k < steps; ++k) {
      mbarrier_wait(full + 8 * stage, phase);
      const int slot = shfl_idx(base + stage * 50176, 0);
      const int a = (slot >> 4) | 0x10000;
      const int b = ((slot + 16384 + group * 16384) >> 4) | 0x10000;
      #pragma unroll
      for (int u = 0; u < 2; ++u) {
        regs_pin(acc);
        wgmma_fence();
        #pragma unroll
        for (int i = 0; i < 4; ++i)
          wgmma_m64n128k32_e4m3_e4m3(acc, a + 512 * u + 2 * i, b + 2 * i, i > 0);
        wgmma_commit();
        const int scales = slot + 49152 + (64 * u + 16 * (warp % 4) + lane / 4) * 4;
        const float upper = ld_shared_f32(scales);
        const float lower = ld_shared_f32(scales + 32);
        wgmma_wait<0>();
        regs_pin(acc);
        syncwarp();
        if (u == 1 && lane == 0) mbarrier_arrive(empty + 8 * stage);
        #pragma unroll
        for (int i = 0; i < 64; i += 4) {
          fin[u][i] = fma_f32(acc[i], upper, fin[u][i]);
          fin[u][i + 1] = fma_f32(acc[i + 1], upper, fin[u][i + 1]);
          fin[u][i + 2] = fma_f32(acc[i + 2], lower, fin[u][i + 2]);
          fin[u][i + 3] = fma_f32(acc[i + 3], lower, fin[u][i + 3]);
        }
      }
      if (++stage == 4) { stage = 0; phase ^= 1; }
    }
    // 16 rows × 64 columns at a time, rows of 144 bytes: lane l gives the address of row l % 16, 8 columns at l / 16.
    const int mine = staging + warp * 2304;
    #pragma unroll
    for (int u = 0; u < 2; ++u)
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        #pragma unroll
        for (int j = 0; j < 4; ++j)
          stmatrix_x4(mine + lane % 16 * 144 + lane / 16 * 16 + 32 * j,
                      cvt_bf16x2_f32(fin[u][32 * h + 8 * j], fin[u][32 * h + 8 * j + 1]),
                      cvt_bf16x2_f32(fin[u][32 * h + 8 * j + 2], fin[u][32 * h + 8 * j + 3]),
                      cvt_bf16x2_f32(fin[u][32 * h + 8 * j + 4], fin[u][32 * h + 8 * j + 5]),
                      cvt_bf16x2_f32(fin[u][32 * h + 8 * j + 6], fin[u][32 * h + 8 * j + 7]));
        syncwarp();
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int row = 4 * j + lane / 8;
          ld_shared_v4(mine + row * 144 + lane % 8 * 16, words);
          const long long at = m0 + 64 * u + 16 * (warp % 4) + row;
          st_global_v4(y, (at * columnTiles * 256 + n0 + 64 * h + lane % 8 * 8) * 2, words);
        }
        syncwarp();
      }
  }
)";

struct Problem {
  int k, rowTiles, columnTiles;
  Buffer x, w, scales, y, queue;

  Problem(int k, int rowTiles, int columnTiles)
      : k(k), rowTiles(rowTiles), columnTiles(columnTiles), x("x", int64_t(rows()) * k, false),
        w("w", int64_t(columns()) * k, false),
        scales("scales", int64_t(k / 128) * rows() * 4, false),
        y("y", int64_t(rows()) * columns() * 2, true), queue("queue", 4, true) {
    std::minstd_rand random(7);
    const auto code = [&] {
      const uint32_t bits = random() >> 8;
      return static_cast<uint8_t>((bits & 0x87) | ((4 + bits / 8 % 5) << 3));
    };
    for (int64_t i = 0; i < x.bytes(); ++i)
      x.data()[i] = code();
    for (int64_t i = 0; i < w.bytes(); ++i)
      w.data()[i] = code();
    for (int64_t i = 0; i < scales.bytes() / 4; ++i)
      scales.as<float>()[i] =
          std::ldexp(1.0f + float(random() % 1024) / 1024, int(random() % 16) - 8);
    *queue.as<int>() = 0;
  }
  int rows() const { return rowTiles * tileM; }
  int columns() const { return columnTiles * tileN; }

  Result<EmulatorReport> run(uint32_t blocks, const EmulatorOptions &options = testOptions()) {
    TestLaunch launch(blocks, 384, stages * stageBytes + 128 + 8 * 2304);
    launch
        .map(mapOf(x, ElementType::F8E4M3FN, {uint64_t(k), uint64_t(rows())}, {uint64_t(k)},
                   {128, tileM}, Swizzle::B128))
        .map(mapOf(w, ElementType::F8E4M3FN, {uint64_t(k), uint64_t(columns())}, {uint64_t(k)},
                   {128, tileN}, Swizzle::B128))
        .map(mapOf(scales, ElementType::F32, {uint64_t(rows()), uint64_t(k / 128)},
                   {uint64_t(rows()) * 4}, {132, 1}, Swizzle::None))
        .pointer(y)
        .pointer(queue)
        .integer(k / 128)
        .integer(rowTiles)
        .integer(columnTiles)
        .range(x)
        .range(w)
        .range(scales);
    return launch.run(kernelSource(parameters, body), options);
  }

  int wrongElements() {
    int wrong = 0;
    for (int m = 0; m < rows(); ++m)
      for (int n = 0; n < columns(); ++n) {
        float total = 0;
        for (int step = 0; step < k / 128; ++step) {
          float part = 0;
          for (int i = step * 128; i < step * 128 + 128; ++i)
            part += emulated::e4m3Values[x.data()[int64_t(m) * k + i]] *
                    emulated::e4m3Values[w.data()[int64_t(n) * k + i]];
          total = std::fma(part, scales.as<float>()[step * rows() + m], total);
        }
        wrong += y.as<uint16_t>()[int64_t(m) * columns() + n] != emulated::roundToBf16(total);
      }
    return wrong;
  }
};

} // namespace

// Three row tiles on two blocks: one block gets two, through the queue; K of six steps wraps the
// ring of four.
TEST_CASE("two warpgroups, promotion, stmatrix and a tile queue give the right tiles") {
  for (const uint64_t seed : {0, 1, 2}) {
    CAPTURE(seed);
    Problem problem(768, 3, 1);
    EmulatorOptions options = testOptions();
    options.seed = seed;
    Result<EmulatorReport> report = problem.run(2, options);
    REQUIRE_MESSAGE(report, report.error().text());
    CHECK(problem.wrongElements() == 0);
    CHECK(*problem.queue.as<int>() == 3 + 2); // each block draws one number past the end
  }
}

// An unoptimised or sanitized build runs a shorter one: it is there for its checks, not for its
// speed.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
constexpr int longK = 7168;
#else
constexpr int longK = 512;
#endif

TEST_CASE("a tile of 128 x 256 x 7168 is quick") {
  Problem problem(longK, 1, 1);
  EmulatorOptions options = testOptions();
  options.threads = 1;
  const std::clock_t begin = std::clock();
  Result<EmulatorReport> report = problem.run(1, options);
  const double processorSeconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
  REQUIRE_MESSAGE(report, report.error().text());
  MESSAGE("seconds: ", report->seconds, ", of the processor: ", processorSeconds,
          ", thread switches: ", report->steps);
  CHECK(report->wgmmas == 2 * 2 * 4 * (longK / 128));
  CHECK(processorSeconds < 2); // takes about 0.06
}

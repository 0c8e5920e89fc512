// Collectives and barriers that work: shuffles, election, named barriers, stmatrix, atomics,
// clusters, multicast.
#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

#include <numeric>

using namespace moejit;
using namespace moejit::test;

namespace {

void mustRun(TestLaunch &launch, const std::string &source, uint64_t seed = 0) {
  EmulatorOptions options = testOptions();
  options.seed = seed;
  Result<EmulatorReport> report = launch.run(source, options);
  REQUIRE_MESSAGE(report, report.error().text());
}

} // namespace

TEST_CASE("shuffles read the named lane and one lane is elected") {
  Buffer y("y", 64 * 8, true);
  TestLaunch launch(1, 64, 0);
  launch.pointer(y);
  mustRun(launch, kernelSource("void *y", R"(
  const int thread = thread_index();
  st_global_b32(y, thread * 8, shfl_idx(thread * 3, thread + 5));
  st_global_b32(y, thread * 8 + 4, elect_one() ? 1 : 0);
)"));
  for (int t = 0; t < 64; ++t) {
    CHECK(y.as<int>()[2 * t] == (t / 32 * 32 + (t + 5) % 32) * 3); // the lane counts modulo 32
    CHECK(y.as<int>()[2 * t + 1] == (t % 32 == 0));
  }
}

// Ping-pong by two barriers: bar_arrive of one side releases bar_sync of the other, in turn.
TEST_CASE("named barriers order two warps") {
  Buffer y("y", 4, true);
  const std::string source = kernelSource("void *y", R"(
  const int warp = thread_index() / 32;
  const int cell = shared_base();
  if (thread_index() == 0) st_shared_i32(cell, 1);
  if (warp == 1) bar_arrive(1, 64);
  for (int i = 0; i < 10; ++i) {
    bar_sync(1 + warp, 64);
    const int value = ld_shared_i32(cell);
    syncwarp();
    if (thread_index() % 32 == 0) st_shared_i32(cell, warp ? value * 2 : value + 1);
    syncwarp();
    if (!(warp == 1 && i == 9)) bar_arrive(2 - warp, 64);
  }
  if (thread_index() == 32) st_global_b32(y, 0, ld_shared_i32(cell));
)");
  int expected = 1;
  for (int i = 0; i < 10; ++i)
    expected = (expected + 1) * 2;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    TestLaunch launch(1, 64, 16);
    launch.pointer(y);
    mustRun(launch, source, seed);
    CHECK(*y.as<int>() == expected);
  }
}

// Matrix i, row r, columns 2c and 2c + 1 come from register i of lane 4r + c; transposed, what was
// column r is row r.
TEST_CASE("stmatrix spreads registers over rows") {
  for (const bool isTransposed : {false, true}) {
    CAPTURE(isTransposed);
    Buffer y("y", 32 * 16, true);
    TestLaunch launch(1, 32, 1024);
    launch.pointer(y);
    const std::string store = isTransposed ? "stmatrix_x4_trans" : "stmatrix_x4";
    mustRun(launch, kernelSource("void *y", R"(
  const int lane = thread_index();
  int r[4];
  for (int i = 0; i < 4; ++i)
    r[i] = (i << 8 | lane << 1) | (i << 8 | lane << 1 | 1) << 16;
  )" + store + R"((shared_base() + (31 - lane) * 32, r[0], r[1], r[2], r[3]);
  syncwarp();
  int v[4];
  ld_shared_v4(shared_base() + (31 - lane) * 32, v);
  st_global_v4(y, lane * 16, v);
)"));
    for (int i = 0; i < 4; ++i)
      for (int row = 0; row < 8; ++row)
        for (int column = 0; column < 8; ++column) {
          const int at = isTransposed ? column * 8 + row : row * 8 + column;
          CHECK(y.as<uint16_t>()[64 * i + at] ==
                (i << 8 | (4 * row + column / 2) << 1 | column % 2));
        }
  }
}

TEST_CASE("an atomic queue hands every number out once, over blocks on several host threads") {
  constexpr int tiles = 1000;
  Buffer queue("queue", 4, true), y("y", tiles * 4, true);
  *queue.as<int>() = 0;
  std::fill_n(y.as<int>(), tiles, 0);
  TestLaunch launch(8, 32, 16);
  launch.pointer(queue).pointer(y);
  EmulatorOptions options = testOptions();
  options.threads = 4;
  Result<EmulatorReport> report = launch.run(kernelSource("void *queue, void *y", R"(
  while (true) {
    int tile = 0;
    if (thread_index() == 0) tile = atom_add_global_i32(queue, 0, 1);
    tile = shfl_idx(tile, 0);
    if (tile >= 1000) break;
    if (thread_index() == 7) atom_add_global_i32(y, tile * 4, block_index() + 1);
  }
)"),
                                             options);
  REQUIRE_MESSAGE(report, report.error().text());
  CHECK(report->blocks == 8);
  CHECK(*queue.as<int>() == tiles + 8);
  for (int i = 0; i < tiles; ++i)
    CHECK_MESSAGE((y.as<int>()[i] >= 1 && y.as<int>()[i] <= 8), i);
}

// Each block of a cluster of two loads half of a tile for both; each waits for the whole tile on
// its own barrier, and frees the other's half remotely before the second round.
TEST_CASE("multicast loads reach every block of the mask, and must know that these are done") {
  Buffer x("x", 32 * 128, false), y("y", 2 * 2 * 2 * 16 * 128, true);
  std::iota(x.data(), x.data() + x.bytes(), uint8_t(3));
  for (int i = 0; i < 32 * 128; ++i)
    x.data()[i] = static_cast<uint8_t>(i * 5 + i / 128);
  const std::string source = kernelSource("const __grid_constant__ TensorMap map, void *y", R"(
  const int base = shared_base();
  const int full = base + 2048;
  const int empty = base + 2056;
  const int rank = cluster_rank();
  const int thread = thread_index();
  if (thread == 0) {
    mbarrier_init(full, 1);
    mbarrier_init(empty, 2);
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  for (int round = 0; round < 2; ++round) {
    if (thread == 0) {
      mbarrier_wait(empty, (round & 1) ^ 1);
      mbarrier_expect_tx(full, 2048);
      tma_load_2d_multicast(base + rank * 1024, map, 0, round * 16 + rank * 8, full, 3);
    }
    mbarrier_wait(full, round & 1);
    for (int i = thread * 4; i < 2048; i += 128)
      st_global_b32(y, ((block_index() * 2 + round) * 2048) + i, ld_shared_i32(base + i));
    syncwarp();
    if (thread < 2) mbarrier_arrive_cluster(empty, thread);
  }
  cluster_arrive();
  cluster_wait();
)");
  for (uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    std::fill_n(y.data(), y.bytes(), 0);
    TestLaunch launch(4, 32, 2048 + 16, 2);
    launch.map(mapOf(x, ElementType::F8E4M3FN, {128, 32}, {128}, {128, 8}, Swizzle::None))
        .pointer(y)
        .range(x);
    mustRun(launch, source, seed);
    int wrong = 0;
    for (int block = 0; block < 4; ++block)
      for (int i = 0; i < 2 * 2048; ++i)
        wrong += y.data()[block * 4096 + i] != x.data()[i];
    CHECK(wrong == 0);
  }
  // Two arrivals of its own threads tell a block nothing of the other's.
  std::string hasty = source;
  const std::string arrival = "mbarrier_arrive_cluster(empty, thread)";
  hasty.replace(hasty.find(arrival), arrival.size(), "mbarrier_arrive_cluster(empty, rank)");
  TestLaunch launch(4, 32, 2048 + 16, 2);
  launch.map(mapOf(x, ElementType::F8E4M3FN, {128, 32}, {128}, {128, 8}, Swizzle::None))
      .pointer(y)
      .range(x);
  const std::string message = errorOf(launch, hasty);
  INFO(message);
  CHECK((contains(message, "copies over") || contains(message, "the destination of a TMA load")));
}

// The first block of each cluster hands a number to both, round after round, in one slot; both
// count its bytes on their own barrier, and say there that they have read it.
TEST_CASE("words stored to a block of the cluster arrive at its barrier") {
  const auto source = [](const char *wait) {
    return kernelSource("void *y", std::string(R"(
  const int number = shared_base();
  const int full = number + 16;
  const int empty = number + 24;
  const int thread = thread_index();
  if (thread == 0) {
    mbarrier_init(full, 1);
    mbarrier_init(empty, 2);
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  for (int round = 0; round < 3; ++round) {
    if (thread == 0) mbarrier_expect_tx(full, 4);
    if (thread == 0 && cluster_rank() == 0) {
      mbarrier_wait(empty, (round & 1) ^ 1);
      for (int rank = 0; rank < 2; ++rank)
        st_async_i32(number, 100 * block_index() + round, full, rank);
    }
    syncwarp();
    )") + wait + R"((full, round & 1);
    if (thread == round)
      st_global_b32(y, (block_index() * 3 + round) * 4, ld_shared_i32(number));
    syncwarp();
    if (thread == 0) mbarrier_arrive_cluster(empty, 0);
  }
  cluster_arrive();
  cluster_wait();
)");
  };
  for (uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    Buffer y("y", 4 * 3 * 4, true);
    TestLaunch launch(4, 32, 32, 2);
    launch.pointer(y);
    mustRun(launch, source("mbarrier_wait_cluster"), seed);
    for (int block = 0; block < 4; ++block)
      for (int round = 0; round < 3; ++round)
        CHECK(y.as<int>()[block * 3 + round] == block / 2 * 200 + round);
  }
  // A wait of block scope does not see what another block has stored.
  Buffer y("y", 4 * 3 * 4, true);
  TestLaunch launch(4, 32, 32, 2);
  launch.pointer(y);
  CHECK(contains(errorOf(launch, source("mbarrier_wait")),
                 "a block of the cluster has stored words for the mbarrier"));
}

// Every lane of the second block sends four floats to the first, which waits for all of them.
TEST_CASE("vectors stored to a block of the cluster arrive at its barrier") {
  const auto source = [](const char *shift) {
    return kernelSource("void *y",
                        std::string(R"(
  const int vectors = shared_base();
  const int full = vectors + 1024;
  const int thread = thread_index();
  if (thread == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  const int mine = vectors + thread * 16;
  if (cluster_rank() == 1) {
    st_async_v4_f32(mine + )") +
                            shift +
                            R"(, thread + 0.25f, thread + 0.5f, thread + 0.75f, -thread, full, 0);
  } else {
    if (thread == 0) mbarrier_expect_tx(full, 512);
    mbarrier_wait_cluster(full, 0);
    int words[4];
    ld_shared_v4(mine, words);
    for (int i = 0; i < 4; ++i) st_global_b32(y, (thread * 4 + i) * 4, words[i]);
  }
  syncwarp();
  cluster_arrive();
  cluster_wait();
)");
  };
  for (uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    Buffer y("y", 32 * 4 * 4, true);
    TestLaunch launch(2, 32, 2048, 2);
    launch.pointer(y);
    mustRun(launch, source("0"), seed);
    for (int lane = 0; lane < 32; ++lane) {
      const float *vector = y.as<float>() + lane * 4;
      CHECK(vector[0] == float(lane) + 0.25f);
      CHECK(vector[1] == float(lane) + 0.5f);
      CHECK(vector[2] == float(lane) + 0.75f);
      CHECK(vector[3] == -float(lane));
    }
  }
  Buffer y("y", 32 * 4 * 4, true);
  TestLaunch launch(2, 32, 2048, 2);
  launch.pointer(y);
  CHECK(contains(errorOf(launch, source("4")), "is not a multiple of 16"));
}

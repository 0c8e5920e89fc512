// Blocks that wait for each other through global memory: whoever waits for one that can still come
// is let wait, and who waits for nobody is told.
#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

using namespace moejit;
using namespace moejit::test;

namespace {

/// Every block adds 1 to the counter, then waits until `wanted` have.
std::string meet(uint32_t blocks, int wanted, unsigned hostThreads) {
  Buffer counters("counters", 8, true);
  counters.as<int>()[0] = counters.as<int>()[1] = 0;
  TestLaunch launch(blocks, 64, 0);
  launch.pointer(counters).integer(wanted);
  EmulatorOptions options = testOptions();
  options.threads = hostThreads;
  return errorOf(launch, kernelSource("void *counters, int wanted", R"(
  if (thread_index() == 0) {
    fence_acq_rel_gpu();
    atom_add_global_i32(counters, 4, 1);
    wait_global_i32(counters, 4, wanted);
  }
  bar_sync(0, 64);
  fence_proxy_async_global();
)"),
                 options);
}

} // namespace

TEST_CASE("blocks that run together wait for each other") {
  CHECK(meet(1, 1, 1) == "");
  CHECK(meet(4, 4, 4) == "");
}

TEST_CASE("a block that waits for one which has not started, and finds no room, is a deadlock") {
  const std::string text = meet(4, 4, 2);
  INFO(text);
  CHECK(contains(text, "deadlock in cluster"));
  CHECK(contains(text, "wait_global_i32: byte 4 of counters is less than 4"));
  CHECK(contains(text, "waits at bar_sync(0, 64): 63 of 64 threads have arrived"));
}

TEST_CASE("a count that nobody reaches is a deadlock, however many blocks run") {
  const std::string text = meet(2, 3, 2);
  INFO(text);
  CHECK(contains(text, "wait_global_i32: byte 4 of counters is less than 3"));
}

TEST_CASE("what a block wrote before its release is there for who waited") {
  constexpr int blocks = 3, words = 64;
  Buffer counters("counters", 8, true), scratch("scratch", blocks * words * 4, true),
      y("y", blocks * 4, true);
  counters.as<int>()[0] = counters.as<int>()[1] = 0;
  TestLaunch launch(blocks, 64, 0);
  launch.pointer(counters).pointer(scratch).pointer(y);
  EmulatorOptions options = testOptions();
  options.threads = blocks;
  CHECK(errorOf(launch, kernelSource("void *counters, void *scratch, void *y", R"(
  st_global_b32(scratch, (block_index() * 64 + thread_index()) * 4, block_index() + 1);
  bar_sync(0, 64);
  if (thread_index() == 0) {
    fence_acq_rel_gpu();
    atom_add_global_i32(counters, 0, 1);
    wait_global_i32(counters, 0, grid_size());
    int sum = 0;
    for (int i = 0; i < 192; ++i)
      sum += bits_f32(ld_global_fresh_f32(scratch, i * 4));
    st_global_b32(y, block_index() * 4, sum);
  }
)"),
                options) == "");
  for (int block = 0; block < blocks; ++block)
    CHECK(y.as<int>()[block] == 64 * (1 + 2 + 3));
}

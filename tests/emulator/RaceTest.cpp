// Accesses of shared memory that no barrier orders are found in any order of threads; ordered ones
// are not.
#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

using namespace moejit;
using namespace moejit::test;

namespace {

/// The error of a block of `threads` threads that runs `body`; `base`, `lane` and `thread` are
/// there.
std::string run(const std::string &body, uint32_t threads = 64) {
  Buffer y("y", 4096, true);
  TestLaunch launch(1, threads, 4096);
  launch.pointer(y);
  return errorOf(launch, kernelSource("void *y", R"(
  const int base = shared_base();
  const int thread = thread_index();
  const int lane = thread & 31;
  st_shared_i32(base + 1024 + thread * 4, 0);
  bar_sync(0, 64);
)" + body));
}

const std::string initBarrier = R"(
  if (thread == 0) {
    mbarrier_init(base, 1);
    fence_mbarrier_init();
  }
  bar_sync(0, 64);
)";

} // namespace

TEST_CASE("a store and a load of another lane need a syncwarp") {
  const std::string store = "st_shared_i32(base + 1024 + thread * 4, thread);\n";
  const std::string load =
      "st_global_b32(y, thread * 4, ld_shared_i32(base + 1024 + (thread ^ 1) * 4));\n";
  CHECK(run(store + "syncwarp();\n" + load) == "");
  CHECK(contains(run(store + load), "no barrier orders the two"));
}

TEST_CASE("another warp needs more than a syncwarp") {
  const std::string store = "st_shared_i32(base + 1024 + thread * 4, thread);\n";
  const std::string load =
      "st_global_b32(y, thread * 4, ld_shared_i32(base + 1024 + (thread ^ 32) * 4));\n";
  CHECK(run(store + "bar_sync(0, 64);\n" + load) == "");
  CHECK(contains(run(store + "syncwarp();\n" + load), "no barrier orders the two"));
}

TEST_CASE("a store over what others may still read") {
  const std::string begin = "if (thread == 0) st_shared_i32(base, 1);\nbar_sync(0, 64);\n"
                            "const int v = ld_shared_i32(base);\n";
  const std::string end = "if (thread == 0) st_shared_i32(base, v);\n";
  CHECK(run(begin + "bar_sync(0, 64);\n" + end) == "");
  CHECK(contains(run(begin + end), "has read: no barrier orders the two"));
}

TEST_CASE("named barriers order those who arrive before those who wait, not the other way") {
  const std::string producer = "if (thread < 32) {\n st_shared_i32(base + lane * 4, lane);\n"
                               " bar_arrive(1, 64);\n%\n} else {\n bar_sync(1, 64);\n"
                               " st_global_b32(y, lane * 4, ld_shared_i32(base + lane * 4));\n}\n";
  std::string quiet = producer, loud = producer;
  quiet.replace(quiet.find('%'), 1, "");
  loud.replace(loud.find('%'), 1, "st_shared_i32(base + lane * 4, 7);");
  CHECK(run(quiet) == "");
  CHECK(contains(run(loud), "no barrier orders the two"));
}

TEST_CASE("an mbarrier orders arrivals before waits") {
  const std::string hand = initBarrier + R"(
  if (thread < 32) {
    st_shared_i32(base + 128 + lane * 4, lane);
    %
    if (lane == 0) mbarrier_arrive(base);
  } else {
    mbarrier_wait(base, 0);
    st_global_b32(y, lane * 4, ld_shared_i32(base + 128 + lane * 4));
  }
)";
  std::string right = hand, wrong = hand;
  right.replace(right.find('%'), 1, "syncwarp();");
  wrong.replace(wrong.find('%'), 1, "");
  CHECK(run(right) == "");
  CHECK(contains(run(wrong), "no barrier orders the two"));
}

TEST_CASE("what a lane learns between two meetings of its warp, the others know after the second") {
  const std::string hand = initBarrier + R"(
  if (thread < 32) {
    st_shared_i32(base + 128 + lane * 4, lane);
    syncwarp();
    if (lane == 0) mbarrier_arrive(base);
  } else {
    syncwarp();
    syncwarp();
    if (lane == 0) mbarrier_wait(base, 0);
    %
    st_global_b32(y, lane * 4, ld_shared_i32(base + 128 + lane * 4));
  }
)";
  std::string right = hand, wrong = hand;
  right.replace(right.find('%'), 1, "syncwarp();");
  wrong.replace(wrong.find('%'), 1, "");
  CHECK(run(right) == "");
  CHECK(contains(run(wrong), "no barrier orders the two"));
}

TEST_CASE("an mbarrier is known to others only after a barrier") {
  std::string early = initBarrier;
  early.replace(early.find("bar_sync(0, 64);"), 16, "");
  CHECK(contains(run(early + "if (thread == 1) mbarrier_arrive(base);\nbar_sync(0, 64);\n"),
                 "no barrier orders that before this"));
  CHECK(contains(run("mbarrier_init(base, 1);\nfence_mbarrier_init();\nbar_sync(0, 64);\n"),
                 "no barrier orders that before this"));
}

TEST_CASE("atomics need no order among themselves, but before an ordinary load") {
  const std::string count = "if (thread == 0) st_shared_i32(base, 0);\nbar_sync(0, 64);\n"
                            "atom_add_shared_i32(base, 1);\n";
  const std::string load = "st_global_b32(y, thread * 4, ld_shared_i32(base));\n";
  CHECK(run(count + "bar_sync(0, 64);\n" + load) == "");
  CHECK(contains(run(count + load), "no barrier orders the two"));
}

TEST_CASE("registers that nobody has set hold no plausible value") {
  INFO(run("int a[2];\nif (thread == 64) a[0] = 1;\nst_global_b32(y, a[0] * 4, 1);\n"));
  CHECK(contains(run("int a[2];\nif (thread == 64) a[0] = 1;\nst_global_b32(y, a[0] * 4, 1);\n"),
                 "st_global_b32"));
}

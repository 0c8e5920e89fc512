// Kernels that cannot go on, and the report of who waits for what; limits on steps and time.
#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

using namespace moejit;
using namespace moejit::test;

namespace {

std::string run(uint32_t threads, const std::string &body, uint32_t cluster = 1,
                EmulatorOptions options = testOptions()) {
  TestLaunch launch(cluster, threads, 1024, cluster);
  launch.integer(0);
  return errorOf(launch, kernelSource("int zero", body), options);
}

} // namespace

TEST_CASE("a barrier nobody completes is reported with its state") {
  const std::string text = run(64, R"(
  const int barrier = shared_base() + 0x40;
  if (thread_index() == 0) {
    mbarrier_init(barrier, 2);
    fence_mbarrier_init();
  }
  bar_sync(0, 64);
  if (thread_index() == 0)
    mbarrier_expect_tx(barrier, 4096);
  if (thread_index() >= 32)
    mbarrier_wait(barrier, 0);
)");
  INFO(text);
  CHECK(contains(text, "deadlock in cluster 0: 32 threads wait"));
  CHECK(contains(text, "block 0 warps 0: has ended"));
  CHECK(contains(text, ": mbarrier_wait(barrier, 0);"));
  CHECK(contains(
      text, "block 0 warps 1: waits at mbarrier_wait([shared_base + 0x40], parity 0): the barrier "
            "is in phase 0 (parity 0), 1 of 2 arrivals pending, 4096 bytes expected"));
}

TEST_CASE("threads that wait alike share a line, others of their warp have their own") {
  const std::string text = run(256, R"(
  if (thread_index() < 128)
    bar_sync(3, 256);
  else if (thread_index() != 200)
    syncwarp();
)");
  INFO(text);
  CHECK(contains(text,
                 "block 0 warps 0-3: waits at bar_sync(3, 256): 128 of 256 threads have arrived"));
  CHECK(contains(text, "block 0 warps 4-5, 7: has ended"));
  CHECK(contains(
      text,
      "block 0 warps 6\n    lanes 8: has ended\n    lanes 0-7, 9-31: waits at syncwarp: 31 of 32"));
}

TEST_CASE("waits for a cluster, a wgmma group and registers are named") {
  CHECK(contains(
      run(32,
          "cluster_arrive(); if (thread_index() == 0) mbarrier_init(shared_base(), 1);"
          "syncwarp(); if (cluster_rank() == 0) mbarrier_wait(shared_base(), 0); cluster_wait();",
          2),
      "block 0 warps 0: waits at mbarrier_wait"));
  CHECK(contains(run(32,
                     "if (cluster_rank() == 0) { bar_sync(0, 32); syncwarp(); if (thread_index() "
                     "== 0) return; "
                     "syncwarp(); } cluster_arrive(); cluster_wait();",
                     2),
                 "block 1 warps 0: waits at cluster_wait: 32 of 63 threads"));
  CHECK(contains(
      run(384, "if (thread_index() < 128) setmaxnreg_inc<232>(); else if (thread_index() < 256) "
               "setmaxnreg_dec<160>();"),
      "waits at setmaxnreg_inc<232>: needs 64 more registers, "));
  CHECK(contains(run(128,
                     "float acc[4]; if (thread_index() < 96) { wgmma_fence(); "
                     "wgmma_m64n8k32_e4m3_e4m3(acc, 0, 0, 0); wgmma_commit(); wgmma_wait<0>(); }"),
                 "warps 0-2: waits at wgmma_wait<0>: 0 of 1 groups complete, the next one "
                 "committed by 96 of 128"));
}

TEST_CASE("divergence and misuse of barriers are errors of their own") {
  CHECK(contains(run(32, "if (thread_index() < 16) syncwarp(); else shfl_idx(1, 0);"),
                 "thread 16 (warp 0, lane 16): shfl_idx: other lanes of the warp are at syncwarp"));
  CHECK(contains(run(64, "if (thread_index() < 32) bar_arrive(1, 64); else bar_sync(1, 32);"),
                 "barrier 1 with 32 threads, while others use it with 64"));
  CHECK(contains(run(32, "cluster_wait();"), "no cluster_arrive came before"));
  CHECK(
      contains(run(32, "if (thread_index() == 0) { mbarrier_init(shared_base(), 1); "
                       "mbarrier_expect_tx(shared_base(), 16); mbarrier_arrive(shared_base()); }"),
               "more than 1 arrivals in phase 0 of the mbarrier at [shared_base + 0x0]"));
  // Two phases, and nobody knows of the first: whoever waits for it may see the second.
  const std::string phases = "if (thread_index() == 0) { mbarrier_init(shared_base(), 1); "
                             "mbarrier_arrive(shared_base()); {} mbarrier_arrive(shared_base()); }";
  const auto between = [&](const char *text) {
    return run(32, std::string(phases).replace(phases.find("{}"), 2, text).c_str());
  };
  CHECK(contains(between(""), "phase 1 of the mbarrier at [shared_base + 0x0] completes, and no "
                              "thread has waited for phase 0"));
  CHECK(!contains(between("mbarrier_wait(shared_base(), 0);"), "completes"));
  CHECK(contains(
      run(32,
          "if (cluster_rank() == 0) { if (thread_index() == 0) { mbarrier_init(shared_base(), 1); "
          "fence_mbarrier_init(); } } else if (thread_index() == 0) { bar_sync(0, 32); }",
          2),
      "deadlock"));
}

TEST_CASE("a remote arrival at a block that has ended is found") {
  const std::string text = run(32, R"(
  if (thread_index() == 0) {
    mbarrier_init(shared_base(), 1);
    fence_mbarrier_init();
  }
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == 1) {
    for (int i = 0; i < 64; ++i)
      syncwarp();
    mbarrier_arrive_cluster(shared_base(), 0);
  }
)",
                               2);
  INFO(text);
  CHECK(contains(text, "mbarrier_arrive_cluster: block 0 of the cluster has already ended"));
}

TEST_CASE("endless kernels are stopped") {
  EmulatorOptions options = testOptions();
  options.maxSteps = 10000;
  CHECK(contains(run(32, "while (true) syncwarp();", 1, options),
                 "has not ended after 10000 thread switches"));
  options = testOptions();
  options.maxSeconds = 0.2;
  CHECK(
      contains(run(32, "while (true) syncwarp();", 1, options), "has not ended after 0.2 seconds"));
  CHECK(contains(run(32,
                     "st_shared_i32(shared_base() + 4 * thread_index(), 0); syncwarp(); "
                     "while (ld_shared_i32(shared_base()) == 0) { }",
                     1, options),
                 "has not ended after 0.2 seconds"));
}

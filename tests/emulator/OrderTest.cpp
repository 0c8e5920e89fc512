// Accesses of global memory by several threads and blocks: what fences, atomics and waits order is
// let pass, and what they do not is found however the blocks happened to run.
#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

using namespace moejit;
using namespace moejit::test;

namespace {

/// `text` with its first `part` replaced by `by`.
std::string replaced(std::string text, const std::string &part, const std::string &by) {
  REQUIRE(contains(text, part));
  return text.replace(text.find(part), part.size(), by);
}

/// The error of two blocks of 64 threads. Block 0 writes `scratch`, block 1 waits for it and reads.
/// Both run on one host thread, one after the other, so that every value is there in time.
std::string run(const std::string &body, bool storesOnce = false) {
  Buffer counters("counters", 16, true), scratch("scratch", 256, true), y("y", 512, true);
  std::fill_n(counters.data(), 16, uint8_t(0));
  TestLaunch launch(2, 64, 1024);
  launch.pointer(counters).scratch(scratch).pointer(y);
  launch.map(mapOf(scratch, ElementType::F32, {16}, {}, {16}, Swizzle::None));
  launch.storesOnce(storesOnce);
  EmulatorOptions options = testOptions();
  options.threads = 1;
  return errorOf(
      launch,
      kernelSource("void *counters, void *scratch, void *y, "
                   "const __grid_constant__ TensorMap map",
                   "const int thread = thread_index();\nconst int base = shared_base();\n" + body),
      options);
}

const std::string handOver = R"(
  if (block_index() == 0) {
    st_global_b32(scratch, thread * 4, thread);
    fence_proxy_async_global(); // writer
    bar_sync(0, 64); // all have written
    if (thread == 0) {
      fence_acq_rel_gpu();
      atom_add_global_i32(counters, 0, 1);
    }
  } else {
    if (thread == 0) {
      wait_global_i32(counters, 0, 1);
    }
    bar_sync(0, 64); // all know
    fence_proxy_async_global(); // reader
    READ
  }
)";
const std::string plainRead =
    "st_global_f32(y, thread * 4, ld_global_fresh_f32(scratch, thread * 4));";
const std::string copyRead = R"(
    if (thread == 32) {
      mbarrier_init(base, 1);
      fence_mbarrier_init();
      mbarrier_expect_tx(base, 64);
      tma_load_1d(base + 128, map, 0, base);
      mbarrier_wait(base, 0);
    }
)";

} // namespace

TEST_CASE("a block reads what another has handed over") {
  const std::string right = replaced(handOver, "READ", plainRead);
  CHECK(run(right) == "");
  const std::string unordered = "has stored: nothing orders the two";
  CHECK(contains(run(replaced(right, "fence_acq_rel_gpu();", "")), unordered));
  CHECK(contains(run(replaced(right, "wait_global_i32(counters, 0, 1);", "")), unordered));
  CHECK(contains(run(replaced(right, "bar_sync(0, 64); // all have written", "")), unordered));
  CHECK(contains(run(replaced(right, "bar_sync(0, 64); // all know", "")), unordered));
}

TEST_CASE("what is stored after the fence is not handed over") {
  const std::string late =
      replaced(handOver, "atom_add_global_i32(counters, 0, 1);",
               "st_global_b32(scratch, 0, 7);\natom_add_global_i32(counters, 0, 1);");
  CHECK(contains(run(replaced(late, "READ", plainRead)), "nothing orders the two"));
}

TEST_CASE("a wait learns from those alone without whom it could not end") {
  // Both arrivals are there before the wait begins; one is enough for it.
  const std::string two = R"(
  if (block_index() == 0) {
    if (thread < 2)
      st_global_b32(scratch, thread * 4, 5);
    for (int i = 0; i < 2; ++i)
      if (thread == i) {
        fence_acq_rel_gpu();
        atom_add_global_i32(counters, 0, 1);
      }
  } else if (thread == 0) {
    wait_global_i32(counters, 0, COUNT);
    st_global_f32(y, 0, ld_global_fresh_f32(scratch, 0));
    st_global_f32(y, 4, ld_global_fresh_f32(scratch, 4));
  }
)";
  CHECK(run(replaced(two, "COUNT", "2")) == "");
  CHECK(contains(run(replaced(two, "COUNT", "1")), "nothing orders the two"));
}

TEST_CASE("copies read global memory through a proxy of their own") {
  const std::string right = replaced(handOver, "READ", copyRead);
  CHECK(run(right) == "");
  // A fence on either side will do.
  const std::string noWriter = replaced(right, "fence_proxy_async_global(); // writer", "");
  const std::string noReader = replaced(right, "fence_proxy_async_global(); // reader", "");
  CHECK(run(noWriter) == "");
  CHECK(run(noReader) == "");
  CHECK(contains(run(replaced(noWriter, "fence_proxy_async_global(); // reader", "")),
                 "no fence_proxy_async_global lies between the two"));
  CHECK(contains(run(replaced(right, "wait_global_i32(counters, 0, 1);", "")),
                 "nothing orders the two"));
}

TEST_CASE("scratch memory holds nothing at first") {
  const std::string half = replaced(handOver, "st_global_b32(scratch, thread * 4, thread);",
                                    "if (thread < 8)\n st_global_b32(scratch, thread * 4, 1);");
  CHECK(contains(run(replaced(half, "READ", plainRead)), "of scratch, which nothing has written"));
  CHECK(contains(run(replaced(half, "READ", copyRead)),
                 "copies byte 32 of scratch, which nothing has written"));
}

TEST_CASE("the path for constant data does not see what the launch stores") {
  const std::string stale = replaced(handOver, "READ", "ld_global_f32(scratch, thread * 4);");
  CHECK(contains(run(stale), "ld.global.nc"));
}

TEST_CASE(
    "an ordinary load of a word that atomics change sees what is ordered before it, no more") {
  const std::string raise = R"(
  if (block_index() == 0) {
    if (thread == 0) {
      red_max_global_i32(counters, 8, 41);
      fence_acq_rel_gpu();
      atom_add_global_i32(counters, 0, 1);
    }
  } else if (thread == 0) {
    wait_global_i32(counters, 0, 1);
    st_global_b32(scratch, 0, 1);
    st_global_b32(y, ld_global_i32(counters, 8) == 41 ? 0 : 4096, 1);
  }
)";
  CHECK(run(raise) == "");
  CHECK(contains(run(replaced(raise, "wait_global_i32(counters, 0, 1);", "")),
                 "at offset 4096 of y"));
}

TEST_CASE("an atomic and a fence learn from those who changed the word before") {
  // Whoever finds the other block counted reads what that block wrote, and sets the words back.
  const std::string last = R"(
  if (thread == 0) {
    st_global_b32(scratch, block_index() * 4, 5);
    if (block_index() == 0)
      atom_add_global_i32(counters, 8, 1);
    fence_acq_rel_gpu(); // release
    if (atom_add_global_i32(counters, 0, 1) == grid_size() - 1) {
      fence_acq_rel_gpu(); // acquire
      for (int i = 0; i < grid_size(); ++i)
        st_global_f32(y, i * 4, ld_global_fresh_f32(scratch, i * 4));
      st_global_b32(counters, 0, 0);
      st_global_b32(counters, 8, 0);
    }
  }
)";
  CHECK(run(last) == "");
  CHECK(contains(run(replaced(last, "fence_acq_rel_gpu(); // release", "")),
                 "nothing orders the two"));
  CHECK(contains(run(replaced(last, "fence_acq_rel_gpu(); // acquire", "")),
                 "nothing orders the two"));
  // The words alone, without the read.
  const std::string words =
      replaced(last, "st_global_f32(y, i * 4, ld_global_fresh_f32(scratch, i * 4));", "");
  CHECK(run(words) == "");
  for (const char *fence : {"fence_acq_rel_gpu(); // release", "fence_acq_rel_gpu(); // acquire"})
    CHECK(contains(run(replaced(words, fence, "")),
                   "stores byte 8 of counters, which is changed atomically"));
}

TEST_CASE("a byte that two threads store") {
  const std::string twice = "if (thread == BOTH) st_global_b32(y, 0, 1);\nbar_sync(0, 64);\n"
                            "if (block_index() == 0 && thread == 1) st_global_b32(y, 0, 2);\n";
  const std::string inOrder = replaced(twice, "BOTH", "block_index() * 64");
  CHECK(run(inOrder) == "");
  CHECK(contains(run(inOrder, true), "which thread 0 of block 0 has stored"));
  CHECK(contains(run(replaced(twice, "BOTH", "0")), "nothing orders the two"));
}

// cp.async: values, groups, zero fill, arrivals at mbarriers; and what becomes of a kernel that
// reads or overwrites before it has waited.
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

constexpr int words = 1024; ///< of x

/// Runs `body` in a block of 64 threads with `base`, `thread` and x of 4096 bytes, word i being
/// 1000 + i; gives y, or the error.
struct Outcome {
  std::string error;
  std::vector<int> y;
};
Outcome run(const std::string &body, uint64_t seed = 0) {
  Buffer x("x", words * 4, false), y("y", words * 4, true);
  for (int i = 0; i < words; ++i)
    x.as<int>()[i] = 1000 + i;
  std::fill_n(y.as<int>(), words, -1);
  TestLaunch launch(1, 64, 8192);
  launch.pointer(x).pointer(y);
  EmulatorOptions options = testOptions();
  options.seed = seed;
  Outcome outcome;
  outcome.error =
      errorOf(launch,
              kernelSource("const void *x, void *y", "  const int base = shared_base();\n"
                                                     "  const int thread = thread_index();\n" +
                                                         body),
              options);
  outcome.y.assign(y.as<int>(), y.as<int>() + words);
  return outcome;
}

// Two groups: a thread's own words are there after its wait, those of others after a barrier.
const std::string twoGroups = R"(
  cp_async_cg_16(base + thread * 16, x, thread * 16);
  cp_async_commit();
  cp_async_ca_4(base + 4096 + thread * 4, x, 2048 + thread * 4);
  cp_async_ca_8(base + 6144 + thread * 8, x, 1024 + thread * 8);
  cp_async_commit();
  cp_async_wait<1>();
  st_global_b32(y, thread * 4, ld_shared_i32(base + thread * 16 + 4));
  cp_async_wait<0>();
  bar_sync(0, 64);
  st_global_b32(y, 256 + thread * 4, ld_shared_i32(base + 4096 + (thread ^ 63) * 4));
  st_global_b32(y, 512 + thread * 4, ld_shared_i32(base + 6144 + (thread ^ 33) * 8 + 4));
)";

const std::string notWaited = "of thread 5, which has not been waited for";

} // namespace

TEST_CASE("groups of copies bring their words, one after the other") {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Outcome outcome = run(twoGroups, seed);
    REQUIRE(outcome.error == "");
    for (int t = 0; t < 64; ++t) {
      CHECK(outcome.y[t] == 1000 + 4 * t + 1);
      CHECK(outcome.y[64 + t] == 1000 + 512 + (t ^ 63));
      CHECK(outcome.y[128 + t] == 1000 + 256 + 2 * (t ^ 33) + 1);
    }
  }
}

TEST_CASE("a sized copy reads so many bytes and fills up with zeros") {
  // Sizes 0 to 16; the last threads point past the end of x and read nothing there.
  const Outcome outcome = run(R"(
  const int size = thread < 17 ? thread : 0;
  cp_async_cg_16_sized(base + thread * 16, x, (thread < 17 ? 0 : 4096) + thread * 16, size);
  cp_async_wait_all();
  for (int i = 0; i < 4; ++i)
    st_global_b32(y, thread * 16 + i * 4, ld_shared_i32(base + thread * 16 + i * 4));
)");
  REQUIRE(outcome.error == "");
  for (int t = 0; t < 64; ++t)
    for (int byte = 0; byte < 16; ++byte) {
      const int wanted = byte < t && t < 17 ? (1000 + 4 * t + byte / 4) >> (8 * (byte % 4)) : 0;
      CHECK((outcome.y[4 * t + byte / 4] >> (8 * (byte % 4)) & 0xff) == (wanted & 0xff));
    }
}

TEST_CASE("bytes of a copy are read by its thread after its wait, by others after a barrier") {
  SUBCASE("no wait") {
    const std::string early = "  if (thread == 5) {\n    cp_async_ca_4(base, x, 0);\n"
                              "    cp_async_commit();\n    ld_shared_i32(base);\n  }\n";
    const Outcome outcome = run(early);
    CHECK(contains(outcome.error, "block 0 thread 5 (warp 0, lane 5): ld_shared_i32: reads "
                                  "[shared_base + 0x0], the destination of a cp.async " +
                                      notWaited));
    CHECK(contains(outcome.error, "ld_shared_i32(base);")); // the line
    CHECK(run(replaced(early, "cp_async_commit();", "cp_async_commit(); cp_async_wait<0>();"))
              .error == "");
    // A group that is not closed is waited for by wait_all alone.
    const std::string open = replaced(early, "cp_async_commit();", "");
    CHECK(contains(run(replaced(open, "ld_shared", "cp_async_wait<0>();ld_shared")).error,
                   notWaited));
    CHECK(run(replaced(open, "ld_shared", "cp_async_wait_all();ld_shared")).error == "");
  }
  SUBCASE("a wait that leaves the group open") {
    CHECK(contains(run(replaced(twoGroups, "cp_async_wait<0>();", "cp_async_wait<1>();")).error,
                   "which has not been waited for"));
    CHECK(contains(run(replaced(twoGroups, "cp_async_wait<1>();", "cp_async_wait<2>();")).error,
                   "which has not been waited for"));
  }
  SUBCASE("no barrier, or one before the wait, however the threads run") {
    const std::string late = replaced(
        replaced(twoGroups, "bar_sync(0, 64);", ""), "cp_async_wait<0>();",
        "bar_sync(0, 64);\n  cp_async_wait<0>();\n  for (int i = 0; i < 64; ++i) syncwarp();");
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const std::string error = run(late, seed).error;
      CHECK((contains(error, "has stored: no barrier orders the two") ||
             contains(error, "which has not been waited for")));
    }
  }
}

TEST_CASE("what a copy still writes is not written again, nor is it let write over what is read") {
  const std::string begin = "  if (thread == 5) cp_async_ca_8(base, x, 0);\n";
  CHECK(contains(run(begin + "  if (thread == 5) st_shared_i32(base + 4, 1);\n").error,
                 "st_shared_i32: writes [shared_base + 0x4], the destination of a cp.async " +
                     notWaited));
  CHECK(contains(run(begin + "  if (thread == 5) cp_async_ca_4(base, x, 64);\n").error,
                 "cp_async_ca_4: writes [shared_base + 0x0]"));
  CHECK(contains(run("  st_shared_i32(base + thread * 4, 1);\n  ld_shared_i32(base + thread * 4);\n"
                     "  if (thread == 7) cp_async_ca_4(base + 24, x, 0);\n")
                     .error,
                 "thread 6 has stored: no barrier orders the two"));
  // Copies that nobody needs any more may be in flight at the end.
  CHECK(run(begin).error == "");
}

TEST_CASE("addresses and sizes of copies are checked") {
  CHECK(contains(run("  cp_async_cg_16(base + 8, x, 0);\n").error,
                 "cp_async_cg_16: destination [shared_base + 0x8] is not 16-byte aligned"));
  CHECK(contains(run("  cp_async_ca_8(base, x, 4);\n").error, "not a multiple of 8"));
  CHECK(contains(run("  cp_async_ca_8(base, x, 4096);\n").error,
                 "8 bytes at offset 4096 of x, which has 4096 bytes"));
  CHECK(contains(run("  cp_async_ca_4_sized(base, x, 0, 5);\n").error,
                 "5 bytes of source in a copy of 4"));
  CHECK(contains(run("  cp_async_cg_16(base + 8192, x, 0);\n").error,
                 "outside the block's 8192 bytes"));
}

TEST_CASE("an mbarrier waits for the copies of its threads") {
  const std::string byBarrier = R"(
  if (thread == 0) mbarrier_init(base, 32);
  bar_sync(0, 64);
  if (thread < 32) {
    cp_async_cg_16(base + 1024 + thread * 16, x, thread * 16);
    cp_async_cg_16(base + 2048 + thread * 16, x, 512 + thread * 16);
    cp_async_arrive(base);
  } else {
    mbarrier_wait(base, 0);
    st_global_b32(y, thread * 4, ld_shared_i32(base + 1024 + (thread ^ 63) * 16));
    st_global_b32(y, 256 + thread * 4, ld_shared_i32(base + 2048 + (thread ^ 63) * 16));
  }
)";
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Outcome outcome = run(byBarrier, seed);
    REQUIRE(outcome.error == "");
    for (int t = 32; t < 64; ++t) {
      CHECK(outcome.y[t] == 1000 + 4 * (t ^ 63));
      CHECK(outcome.y[64 + t] == 1128 + 4 * (t ^ 63));
    }
  }
  // Thread 63 comes before the copies are issued.
  CHECK(contains(run(replaced(byBarrier, "mbarrier_wait(base, 0);", "")).error,
                 "block 0 thread 63 (warp 1, lane 31): ld_shared_i32: reads [shared_base + 0x400], "
                 "which nothing has written"));
  // A copy after the arrival is none of the barrier's.
  std::string after = replaced(byBarrier, "    cp_async_arrive(base);\n", "");
  after = replaced(after, "    cp_async_cg_16(base + 2048",
                   "    cp_async_arrive(base);\n    cp_async_cg_16(base + 2048");
  CHECK(contains(run(after).error, "which has not been waited for"));
  // The issuing thread must wait too, and may by its groups.
  const std::string own = "    cp_async_arrive(base);\n    ld_shared_i32(base + 1024);\n";
  const std::string eager = replaced(byBarrier, "    cp_async_arrive(base);\n", own);
  CHECK(contains(run(eager).error, "the destination of a cp.async of thread 0"));
  CHECK(run(replaced(eager, "    ld_shared_i32(base + 1024);",
                     "    cp_async_wait_all();\n    ld_shared_i32(base + 1024 + thread * 16);"))
            .error == "");
  CHECK(
      contains(run(replaced(byBarrier, "mbarrier_init(base, 32)", "mbarrier_init(base, 31)")).error,
               "of thread 31, which has not been waited for"));
  CHECK(
      contains(run(replaced(byBarrier, "mbarrier_init(base, 32)", "mbarrier_init(base, 33)")).error,
               "deadlock"));
}

// The copies write through the generic proxy: wgmma, which reads through another, needs a fence.
TEST_CASE("wgmma reads what cp.async has written behind a proxy fence") {
  const std::string product = R"(
  const int base = shared_base();
  const int thread = thread_index();
  for (int i = thread; i < 1024; i += 128) {
    const int place = i * 16 ^ ((i >> 3 & 7) << 4);
    cp_async_cg_16(base + place, x, i * 16);
  }
  cp_async_commit();
  cp_async_wait<0>();
  fence_proxy_async();
  bar_sync(0, 128);
  float acc[4];
  const int descriptor = (base >> 4) | 0x10000;
  wgmma_fence();
  wgmma_m64n8k32_e4m3_e4m3(acc, descriptor, descriptor + 512, 0);
  wgmma_commit();
  wgmma_wait<0>();
  st_global_b32(y, thread * 4, bits_f32(acc[0]));
)";
  const auto error = [](const std::string &body) {
    Buffer x("x", 16384, false), y("y", 512, true);
    std::fill_n(x.data(), 16384, uint8_t(0x38)); // 1.0
    TestLaunch launch(1, 128, 16384);
    launch.pointer(x).pointer(y);
    const std::string text = errorOf(launch, kernelSource("const void *x, void *y", body));
    if (text.empty())
      for (int i = 0; i < 128; ++i)
        CHECK(y.as<float>()[i] == 32.0f);
    return text;
  };
  CHECK(error(product) == "");
  CHECK(contains(error(replaced(product, "fence_proxy_async();", "")), "no fence_proxy_async"));
  const std::string early =
      replaced(replaced(product, "  fence_proxy_async();\n", ""), "  cp_async_wait<0>();",
               "  fence_proxy_async();\n"
               "  cp_async_wait<0>();");
  CHECK(contains(error(early), "no fence_proxy_async"));
  CHECK(contains(error(replaced(product, "cp_async_wait<0>();", "")),
                 "is the destination of a cp.async"));
}

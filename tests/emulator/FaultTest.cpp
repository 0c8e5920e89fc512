// What kernels do wrong, and what the emulator says: bounds, alignment, unwritten memory, missing
// waits and fences.
#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

using namespace moejit;
using namespace moejit::test;

namespace {

#define CHECK_CONTAINS(text, part)                                                                 \
  do {                                                                                             \
    const std::string message = (text);                                                            \
    INFO("message: ", message);                                                                    \
    CHECK(contains(message, part));                                                                \
  } while (false)

std::string oneWarp(const std::string &body, int64_t sharedBytes = 1024) {
  Buffer y("y", 256, true), x("x", 256, false);
  TestLaunch launch(1, 32, sharedBytes);
  launch.pointer(y).pointer(x);
  return errorOf(launch, kernelSource("void *y, const void *x", body));
}

/// A kernel of 128 threads with one loaded 64 × 128 fp8 tile for A and B, at shared_base, and a
/// barrier behind it. `before` runs in all threads before the first wait.
std::string oneTile(const std::string &body, EmulatorOptions options = testOptions()) {
  Buffer x("x", 64 * 128, false), y("y", 256, true);
  for (int i = 0; i < 64 * 128; ++i)
    x.data()[i] = 0x38; // 1.0
  TestLaunch launch(1, 128, 16384 + 64);
  launch.map(mapOf(x, ElementType::F8E4M3FN, {128, 64}, {128}, {128, 64}, Swizzle::B128))
      .pointer(y)
      .range(x);
  const std::string prologue = R"(
  const int base = shared_base();
  const int barrier = base + 16384;
  const int a = (base >> 4) | 0x10000;
  const int thread = thread_index();
  float acc[32];
)";
  return errorOf(launch,
                 kernelSource("const __grid_constant__ TensorMap map, void *y", prologue + body),
                 options);
}

const std::string initialise = R"(
  if (thread == 0) {
    mbarrier_init(barrier, 1);
    fence_mbarrier_init();
  }
  bar_sync(0, 128);
)";
const std::string loadTile = initialise + R"(
  if (thread == 0) {
    mbarrier_expect_tx(barrier, 8192);
    tma_load_2d(base, map, 0, 0, barrier);
  }
)";
const std::string multiply = R"(
  wgmma_fence();
  wgmma_m64n64k32_e4m3_e4m3(acc, a, a, 0);
  wgmma_commit();
  wgmma_wait<0>();
)";

} // namespace

TEST_CASE("global accesses are checked against the operand of their pointer") {
  CHECK_CONTAINS(
      oneWarp("if (thread_index() == 3) st_global_f32(y, 256, 1.0f);"),
      "block 0 thread 3 (warp 0, lane 3): st_global_f32: 4 bytes at offset 256 of y, which "
      "has 256 bytes");
  CHECK_CONTAINS(oneWarp("ld_global_i32(y, -4);"), "ld_global_i32: 4 bytes at offset -4 of y");
  CHECK_CONTAINS(oneWarp("int v[4] = {1, 2, 3, 4}; st_global_v4(y, 8, v);"),
                 "st_global_v4: 16 bytes at offset 8 of y: the address is not a multiple of 16");
  CHECK_CONTAINS(oneWarp("int v[4] = {1, 2, 3, 4}; st_global_v2(y, 252, v);"),
                 "st_global_v2: 8 bytes at offset 252 of y");
  CHECK_CONTAINS(oneWarp("st_global_b16((void *)x, 0, 1);"), "which the kernel may only read");
  CHECK_CONTAINS(oneWarp("atom_add_global_i32((void *)16, 0, 1);"), "belongs to no operand");
  CHECK(
      oneWarp("if (thread_index() == 0) st_global_b32(y, 252, 1); ld_global_f32(x, 252);").empty());
}

TEST_CASE("shared memory is checked byte by byte") {
  CHECK_CONTAINS(oneWarp("st_shared_i32(shared_base() + 1024, 1);"),
                 "4 bytes at [shared_base + 0x400] are outside the block's 1024 bytes");
  CHECK_CONTAINS(oneWarp("ld_shared_i32(shared_base() - 4);"), "[shared_base - 0x4] are outside");
  CHECK_CONTAINS(oneWarp("st_shared_i32(shared_base() + 2, 1);"),
                 "[shared_base + 0x2] is not 4-byte");
  CHECK_CONTAINS(oneWarp("ld_shared_f32(shared_base() + 8);"),
                 "ld_shared_f32: reads [shared_base + 0x8], which nothing has written");
  CHECK_CONTAINS(
      oneWarp("int v[4]; st_shared_i32(shared_base(), 1); ld_shared_v4(shared_base(), v);"),
      "ld_shared_v4: reads [shared_base + 0x4], which nothing has written");
  CHECK_CONTAINS(oneWarp("if (thread_index() == 0) mbarrier_init(shared_base(), 1); syncwarp(); "
                         "st_shared_i32(shared_base() + 4, 0);"),
                 "which belongs to an mbarrier");
  CHECK_CONTAINS(oneWarp("mbarrier_arrive(shared_base() + 16);"),
                 "no mbarrier has been initialised at [shared_base + 0x10]");
}

TEST_CASE("a launch the hardware refuses is refused") {
  CHECK_CONTAINS(oneWarp("", 232448 + 1024),
                 "233472 bytes of shared memory; a block may have 232448");
  Buffer y("y", 16, true);
  TestLaunch odd(1, 48, 0), cluster(3, 32, 0, 2), missing(1, 32, 0);
  odd.pointer(y);
  cluster.pointer(y);
  const std::string source = kernelSource("void *y", "");
  CHECK_CONTAINS(errorOf(odd, source), "48 threads");
  CHECK_CONTAINS(errorOf(cluster, source), "3 blocks in clusters of 2");
  CHECK_CONTAINS(errorOf(missing, source), "1 parameters, the launch 0 arguments");
}

TEST_CASE("a source that does not compile gives the compiler's log") {
  Buffer y("y", 16, true);
  TestLaunch launch(1, 32, 0);
  launch.pointer(y);
  Result<EmulatorReport> report = launch.run(kernelSource("void *y", "undeclared_wrapper(y);"));
  REQUIRE(!report);
  CHECK(report.error().code == ErrorCode::CompileError);
  CHECK_CONTAINS(report.error().text(), "undeclared_wrapper");
}

TEST_CASE("the rules of TMA loads are enforced") {
  CHECK_CONTAINS(
      oneTile(initialise + "if (thread == 0) tma_load_2d(base + 64, map, 0, 0, barrier);"),
      "destination [shared_base + 0x40] is not 128-byte aligned");
  CHECK_CONTAINS(oneTile(initialise + "if (thread == 0) tma_load_2d(base, map, 8, 0, barrier);"),
                 "not a multiple of 16 (an illegal instruction on the GPU)");
  CHECK_CONTAINS(oneTile(initialise + "if (thread == 0) tma_load_3d(base, map, 0, 0, 0, barrier);"),
                 "a load of rank 3 uses a tensor map of rank 2");
  CHECK_CONTAINS(
      oneTile(initialise + "if (thread == 0) tma_load_2d(base + 8320, map, 0, 0, barrier);"),
      "outside the block's");
  CHECK_CONTAINS(
      oneTile("if (thread == 0) { mbarrier_init(barrier, 1); mbarrier_expect_tx(barrier, 8192); "
              "tma_load_2d(base, map, 0, 0, barrier); } "),
      "no fence_mbarrier_init has followed");
  CHECK_CONTAINS(
      oneTile(loadTile + "if (thread == 0) tma_load_2d(base, map, 0, 0, barrier);"),
      "writes [shared_base + 0x0], the destination of a TMA load whose mbarrier no thread");
  CHECK_CONTAINS(oneTile(loadTile + "return;"),
                 "the block ends, and nobody has waited for 1 TMA loads");
}

TEST_CASE("a tensor map reaching past its operand is found") {
  Buffer x("x", 64 * 128 - 16, false), y("y", 16, true);
  TestLaunch launch(1, 32, 16384);
  launch.map(mapOf(x, ElementType::F8E4M3FN, {128, 64}, {128}, {128, 8}, Swizzle::B128)).range(x);
  CHECK_CONTAINS(errorOf(launch, kernelSource("const __grid_constant__ TensorMap map", R"(
  if (thread_index() == 0) {
    mbarrier_init(shared_base() + 8192, 1);
    fence_mbarrier_init();
    tma_load_2d(shared_base(), map, 0, 0, shared_base() + 8192);
  })")),
                 "tma_load_2d: the tensor of the map ends 16 bytes past the end of x");
}

TEST_CASE("waits that are missing are found, whatever the timing") {
  CHECK_CONTAINS(
      oneTile(loadTile + "bar_sync(0, 128); ld_shared_i32(base + 4 * thread);"),
      "the destination of a TMA load whose mbarrier no thread of the block has waited for");
  CHECK_CONTAINS(oneTile(loadTile + "bar_sync(0, 128);" + multiply + "mbarrier_wait(barrier, 0);"),
                 "of A at [shared_base + 0x0] is the destination of a TMA load whose mbarrier");
  CHECK_CONTAINS(oneTile(loadTile + "mbarrier_wait(barrier, 0); wgmma_fence(); "
                                    "wgmma_m64n64k32_e4m3_e4m3(acc, a, a, 0); wgmma_commit(); "
                                    "st_shared_i32(base + 4 * thread, 0); wgmma_wait<0>();"),
                 "that a wgmma of warpgroup 0 (group 0) still reads");
  CHECK(oneTile(loadTile + "mbarrier_wait(barrier, 0);" + multiply).empty());
}

TEST_CASE("wgmma needs its fences, its commit and operands that exist") {
  const std::string loaded = loadTile + "mbarrier_wait(barrier, 0);";
  CHECK_CONTAINS(oneTile(loaded + "wgmma_m64n64k32_e4m3_e4m3(acc, a, a, 0);"), "no wgmma_fence");
  CHECK_CONTAINS(oneTile(loaded + multiply + "wgmma_m64n64k32_e4m3_e4m3(acc, a, a, 1);"),
                 "no wgmma_fence");
  CHECK_CONTAINS(
      oneTile(loaded + "wgmma_fence(); wgmma_m64n64k32_e4m3_e4m3(acc, a, a, 0); wgmma_wait<0>();"),
      "the thread ends with a wgmma in flight");
  CHECK_CONTAINS(oneTile(loaded + "wgmma_fence(); wgmma_m64n64k32_e4m3_e4m3(acc, a, a + (thread == "
                                  "5), 0); wgmma_commit(); wgmma_wait<0>();"),
                 "all 128 must issue the same");
  CHECK_CONTAINS(oneTile(loaded + "wgmma_fence(); wgmma_m64n64k32_e4m3_e4m3(acc, a + 512, a, 0); "
                                  "wgmma_commit(); wgmma_wait<0>();"),
                 "row 0, byte 0 of k of A at [shared_base + 0x2000] has not been written");
  CHECK_CONTAINS(oneTile(loaded + "wgmma_fence(); wgmma_m64n64k32_e4m3_e4m3(acc, a, a + 1024, 0); "
                                  "wgmma_commit(); wgmma_wait<0>();"),
                 "of B at [shared_base + 0x4000] belongs to an mbarrier");
  CHECK_CONTAINS(
      oneTile(loaded + "st_shared_i32(base + 4 * thread, 0); bar_sync(0, 128);" + multiply),
      "its writer has executed no fence_proxy_async since");
  CHECK(oneTile(loaded +
                "st_shared_i32(base + 4 * thread, 0); fence_proxy_async(); bar_sync(0, 128);" +
                multiply)
            .empty());
}

// Poison: NaN until the wait, whether the group was never committed or is allowed to be pending.
TEST_CASE("accumulators hold NaN until wgmma_wait delivers them") {
  const auto first = [](const std::string &middle, bool strict = true,
                        const std::string &descriptor = "a") {
    Buffer x("x", 64 * 128, false), y("y", 4, true);
    for (int i = 0; i < 64 * 128; ++i)
      x.data()[i] = 0x38;
    TestLaunch launch(1, 128, 16384 + 64);
    launch.map(mapOf(x, ElementType::F8E4M3FN, {128, 64}, {128}, {128, 64}, Swizzle::B128))
        .pointer(y)
        .range(x);
    EmulatorOptions options = testOptions();
    options.strictOperands = strict;
    Result<EmulatorReport> report = launch.run(
        kernelSource(
            "const __grid_constant__ TensorMap map, void *y",
            "const int base = shared_base(); const int barrier = base + 16384; const int thread = "
            "thread_index(); const int a = (base >> 4) | 0x10000; float acc[32];" +
                loadTile +
                "mbarrier_wait(barrier, 0); wgmma_fence(); wgmma_m64n64k32_e4m3_e4m3(acc, " +
                descriptor + ", a, 0);" + middle +
                "if (thread == 0) st_global_f32(y, 0, acc[0]); wgmma_wait<0>();"),
        options);
    if (!report)
      FAIL(report.error().text());
    return *y.as<float>();
  };
  CHECK(first("wgmma_commit(); wgmma_wait<0>();") == 32.0f);
  CHECK(first("wgmma_commit(); wgmma_wait<1>();") !=
        first("wgmma_commit(); wgmma_wait<1>();")); // NaN
  CHECK(first("float other[32]; wgmma_m64n64k32_e4m3_e4m3(other, a, a, 0); wgmma_commit(); "
              "wgmma_wait<0>();") == 32.0f);
  const float unwritten = first("wgmma_commit(); wgmma_wait<0>();", false, "a + 512");
  CHECK(unwritten != unwritten);
}

TEST_CASE("a fault is told with the line of the kernel it is in") {
  const std::string text = oneWarp("int v = 1;\n  st_global_b32(y, 8192, v);\n");
  INFO(text);
  CHECK(contains(text, "st_global_b32(y, 8192, v);"));
  CHECK(contains(text, "line "));
}

TEST_CASE("integer arithmetic that is not the same everywhere") {
  const std::string big = "const int big = 2147483600 + thread_index() * 2;\n";
  CHECK(oneWarp("st_global_b32(y, 4 * thread_index(), 2147483600 + thread_index());") == "");
  CHECK(contains(
      oneWarp(big + "const int sum = big + 40; st_global_b32(y, 4 * thread_index(), sum);"),
      "integer arithmetic: 2147483608 + 40 overflows"));
  CHECK(contains(oneWarp(big + "st_global_b32(y, 0, big * 3);"), "2147483600 * 3 overflows"));
  CHECK(contains(oneWarp("st_global_b32(y, 0, 5 / thread_index());"), "5 / 0"));
  CHECK(contains(oneWarp("st_global_b32(y, 0, 5 % thread_index());"), "5 / 0"));
  CHECK(contains(oneWarp("st_global_b32(y, 4 * thread_index(), 1 << (thread_index() + 4));"),
                 "1 shifted by 32 overflows"));
  // Offsets are wide.
  CHECK(oneWarp("st_global_b32(y, 2147483600ll * 3 - 6442450800ll + 4 * thread_index(), 1);") ==
        "");
}

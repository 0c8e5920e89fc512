// Two grids of a stream, the second of which may start before the first has ended.
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

constexpr int count = 128; ///< words of each buffer: two blocks of 64 threads

struct Grids {
  Buffer x{"x", count * 4, true}, h{"h", count * 4, true}, y{"y", count * 4, true};

  /// Runs `first` and `second`, which get x, h and y; gives the error.
  std::string run(const std::string &first, const std::string &second) {
    for (int i = 0; i < count; ++i) {
      x.as<int>()[i] = i;
      h.as<int>()[i] = y.as<int>()[i] = -1;
    }
    const auto source = [](const std::string &body) {
      return kernelSource("void *x, void *h, void *y",
                          "  const int thread = thread_index();\n"
                          "  const long long at = (block_index() * 64 + thread) * 4;\n"
                          "  const long long other = (64 - block_index() * 64 + thread) * 4;\n"
                          "  const int base = shared_base();\n" +
                              body);
    };
    EmulatorOptions options = testOptions();
    options.threads = 1; // of two blocks at once either may be the first at fault
    Result<std::unique_ptr<Emulator>> emulator = Emulator::create(options);
    REQUIRE(emulator);
    TestLaunch one(2, 64, 1024), two(2, 64, 1024);
    one.pointer(x).pointer(h).pointer(y);
    two.pointer(x).scratch(h).pointer(y);
    Result<std::pair<EmulatorReport, EmulatorReport>> reports =
        one.runDependent(source(first), two, source(second), **emulator);
    return reports ? std::string() : reports.error().text();
  }
};

const std::string producer = R"(
  griddepcontrol_launch_dependents();
  st_global_b32(h, at, ld_global_i32(x, at) * 3);
)";
const std::string consumer = R"(
  const int before = ld_global_i32(y, at);
  griddepcontrol_wait();
  st_global_b32(y, at, ld_global_i32(h, other) + before);
  st_global_b32(x, at, 5);
)";
const std::string mustWait = ": griddepcontrol_wait must come first";

} // namespace

TEST_CASE("a grid that waits sees what the one before has written") {
  Grids grids;
  REQUIRE(grids.run(producer, consumer) == "");
  for (int i = 0; i < count; ++i) {
    CHECK(grids.y.as<int>()[i] == 3 * ((i + 64) % count) - 1);
    CHECK(grids.x.as<int>()[i] == 5);
  }
}

TEST_CASE("a grid that has not waited touches nothing of the one before") {
  Grids grids;
  const std::string noWait = replaced(consumer, "griddepcontrol_wait();", "");
  const std::string text = grids.run(producer, noWait);
  CHECK(contains(text, "ld_global_i32: reads byte 256 of h, which thread 0 of block 1 of the grid "
                       "before writes" +
                           mustWait));
  CHECK(contains(text, "block 0 thread 0 (warp 0, lane 0)"));
  CHECK(contains(text, "in the second of two grids"));
  CHECK(contains(text, "ld_global_i32(h, other)")); // the line
  // Whether the first lets its dependents go early or not.
  CHECK(contains(grids.run(replaced(producer, "griddepcontrol_launch_dependents();", ""), noWait),
                 mustWait));
  CHECK(contains(grids.run(producer, "  st_global_b32(x, at, 5);\n  griddepcontrol_wait();\n"),
                 "st_global_b32: writes byte 0 of x, which thread 0 of block 0 of the grid before "
                 "reads"));
  CHECK(contains(grids.run(producer, "  st_global_b32(h, at, 5);\n  griddepcontrol_wait();\n"),
                 "st_global_b32: writes byte 0 of h, which thread 0 of block 0 of the grid before "
                 "writes"));
  CHECK(contains(grids.run(producer, "  atom_add_global_i32(h, at, 5);\n"), mustWait));
  CHECK(contains(grids.run(producer, "  cp_async_ca_4(base + thread * 4, h, at);\n"),
                 "cp_async_ca_4: reads byte"));
  // To read what it reads is no fault, nor is a wait that nobody needs.
  CHECK(grids.run(producer, "  st_global_b32(y, at, ld_global_i32(x, at));\n") == "");
  CHECK(grids.run("  griddepcontrol_wait();\n" + producer, consumer) == "");
}

TEST_CASE("one thread waits for the block, before a barrier") {
  Grids grids;
  const std::string one = replaced(consumer, "griddepcontrol_wait();",
                                   "if (thread == 40) griddepcontrol_wait();\n  bar_sync(0, 64);");
  CHECK(grids.run(producer, one) == "");
  CHECK(contains(grids.run(producer, replaced(one, "bar_sync(0, 64);", "")), mustWait));
  CHECK(contains(grids.run(producer, replaced(one,
                                              "if (thread == 40) griddepcontrol_wait();\n"
                                              "  bar_sync(0, 64);",
                                              "bar_sync(0, 64);\n"
                                              "  if (thread == 40) griddepcontrol_wait();")),
                 mustWait));
}

TEST_CASE("TMA copies of the second grid wait too") {
  Buffer h("h", 512, true);
  const auto run = [&](const std::string &second) {
    std::fill_n(h.data(), 512, uint8_t(0));
    TestLaunch one(1, 64, 1024), two(1, 64, 1024);
    one.pointer(h);
    two.map(mapOf(h, ElementType::F32, {128}, {}, {64}, Swizzle::None)).range(h);
    Result<std::unique_ptr<Emulator>> emulator = Emulator::create(testOptions());
    REQUIRE(emulator);
    Result<std::pair<EmulatorReport, EmulatorReport>> reports = one.runDependent(
        kernelSource("void *h", "  st_global_b32(h, 128 + thread_index() * 4, 1);\n"), two,
        kernelSource("const __grid_constant__ TensorMap map",
                     "  const int base = shared_base();\n  if (thread_index() == 0) {\n" + second +
                         "  }\n"),
        **emulator);
    return reports ? std::string() : reports.error().text();
  };
  const std::string load = R"(
    mbarrier_init(base + 512, 1);
    fence_mbarrier_init();
    mbarrier_expect_tx(base + 512, 256);
    griddepcontrol_wait();
    tma_load_1d(base, map, 0, base + 512);
    mbarrier_wait(base + 512, 0);
)";
  CHECK(run(load) == "");
  CHECK(contains(run(replaced(load, "griddepcontrol_wait();", "")),
                 "tma_load_1d: reads byte 128 of h, which thread 0 of block 0 of the grid before"));
  const std::string store = R"(
    for (int i = 0; i < 64; ++i)
      st_shared_i32(base + i * 4, 7);
    fence_proxy_async();
    griddepcontrol_wait();
    tma_store_1d(map, 64, base);
    bulk_commit();
    bulk_wait_read<0>();
)";
  CHECK(run(store) == "");
  CHECK(
      contains(run(replaced(store, "griddepcontrol_wait();", "")),
               "tma_store_1d: writes byte 256 of h, which thread 32 of block 0 of the grid before "
               "writes"));
}

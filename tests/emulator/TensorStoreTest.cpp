// TMA stores: boxes, swizzles, what lies outside the tensor; and what must lie between them and the
// accesses before and after.
#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace moejit;
using namespace moejit::test;

namespace {

/// `text` with its first `part` replaced by `by`.
std::string replaced(std::string text, const std::string &part, const std::string &by) {
  REQUIRE(contains(text, part));
  return text.replace(text.find(part), part.size(), by);
}

const std::string parameters =
    "const __grid_constant__ TensorMap map, void *y, int bytes, int c0, int c1, int c2";

// The block fills `bytes` bytes of shared memory, byte i with 7 i + 1, and one thread stores them.
const std::string storeBody = R"(
  const int base = shared_base();
  const int thread = thread_index();
  for (int i = thread * 4; i < bytes; i += 256)
    st_shared_i32(base + i, (7 * i + 1 & 255) | (7 * i + 8 & 255) << 8 | (7 * i + 15 & 255) << 16 |
                                (int)((unsigned)(7 * i + 22 & 255) << 24));
  fence_proxy_async();
  bar_sync(0, 64);
  if (thread == 0) {
    STORE;
    bulk_commit();
    bulk_wait_read<0>();
  }
)";

std::string storeSource(const std::string &store) {
  return kernelSource(parameters, replaced(storeBody, "STORE", store));
}

uint8_t sourceByte(int i) { return static_cast<uint8_t>(7 * i + 1); }

} // namespace

// Chunk c of line l of a swizzled tile lies at chunk c ^ l, as in the tests of loads.
TEST_CASE("a 2-D store undoes the swizzle and leaves what is outside the tensor alone") {
  struct Case {
    Swizzle swizzle;
    int inner, lineMask;
  };
  const std::string source = storeSource("tma_store_2d(map, c0, c1, base)");
  for (const Case c :
       {Case{Swizzle::None, 128, 0}, Case{Swizzle::None, 32, 0}, Case{Swizzle::B32, 32, 1},
        Case{Swizzle::B64, 64, 3}, Case{Swizzle::B128, 128, 7}})
    for (const auto &[x, y] : {std::pair{0, 0}, {64, 5}, {16, 3}, {240, 30}, {1008, 0}, {0, 100}}) {
      CAPTURE(c.inner);
      CAPTURE(c.lineMask);
      CAPTURE(x);
      CAPTURE(y);
      // A row ends after 315 bytes; those that are left of 16 are written with them.
      const int rows = 24, extentX = 315, extentY = 40, pitch = 336;
      Buffer tensor("tensor", pitch * extentY, true);
      std::memset(tensor.data(), 0xee, tensor.bytes());
      TestLaunch launch(1, 64, 8192);
      launch
          .map(mapOf(tensor, ElementType::F8E4M3FN, {uint64_t(extentX), uint64_t(extentY)},
                     {uint64_t(pitch)}, {uint32_t(c.inner), uint32_t(rows)}, c.swizzle))
          .pointer(tensor)
          .integer(rows * c.inner)
          .integer(x)
          .integer(y)
          .integer(0);
      REQUIRE(errorOf(launch, source) == "");
      int wrong = 0;
      for (int r = 0; r < extentY; ++r)
        for (int k = 0; k < pitch; ++k) {
          const int column = k - x, row = r - y;
          int expected = 0xee;
          if (k < (extentX + 15) / 16 * 16 && column >= 0 && column < c.inner && row >= 0 &&
              row < rows) {
            const int linear = row * c.inner + column;
            const int line = linear / 128, chunk = linear % 128 / 16;
            expected = sourceByte(line * 128 + (chunk ^ (line & c.lineMask)) * 16 + linear % 16);
          }
          wrong += tensor.data()[r * pitch + k] != expected;
        }
      CHECK(wrong == 0);
    }
}

TEST_CASE("stores of rank 1 and 3 count dimensions from the contiguous one") {
  Buffer tensor("tensor", 4 * 1000, true);
  std::memset(tensor.data(), 0xee, tensor.bytes());
  std::vector<uint8_t> expected(4000, 0xee);
  SUBCASE("rank 1, past the end") {
    TestLaunch launch(1, 64, 8192);
    launch.map(mapOf(tensor, ElementType::F32, {1000}, {}, {132}, Swizzle::None))
        .pointer(tensor)
        .integer(132 * 4)
        .integer(900)
        .integer(0)
        .integer(0);
    REQUIRE(errorOf(launch, storeSource("tma_store_1d(map, c0, base)")) == "");
    for (int i = 0; i < 400; ++i)
      expected[3600 + i] = sourceByte(i);
  }
  SUBCASE("rank 3: [5][10][20] floats, box 4 x 2 x 3") {
    TestLaunch launch(1, 64, 8192);
    launch.map(mapOf(tensor, ElementType::F32, {20, 10, 5}, {80, 800}, {4, 2, 3}, Swizzle::None))
        .pointer(tensor)
        .integer(96)
        .integer(8)
        .integer(9)
        .integer(3);
    REQUIRE(errorOf(launch, storeSource("tma_store_3d(map, c0, c1, c2, base)")) == "");
    for (int e = 0; e < 2; ++e) // one row of two inside, two of three
      for (int i = 0; i < 16; ++i)
        expected[((3 + e) * 200 + 9 * 20 + 8) * 4 + i] = sourceByte(e * 32 + i);
  }
  CHECK(std::memcmp(expected.data(), tensor.data(), 4000) == 0);
}

namespace {

/// The error of blocks of 64 threads; the map is of y, 4 rows of 128 bytes in boxes of 4 rows.
std::string run(const std::string &body, uint64_t seed = 0, uint32_t blocks = 1,
                bool isWritable = true) {
  Buffer y("y", 512, isWritable), counters("counters", 16, true);
  std::memset(y.data(), 0, 512);
  std::memset(counters.data(), 0, 16);
  TestLaunch launch(blocks, 64, 8192);
  launch.map(mapOf(y, ElementType::F8E4M3FN, {128, 4}, {128}, {128, 4}, Swizzle::B128))
      .pointer(y)
      .pointer(counters);
  EmulatorOptions options = testOptions();
  options.seed = seed;
  options.threads = 1;
  return errorOf(
      launch,
      kernelSource("const __grid_constant__ TensorMap map, void *y, void *counters",
                   "  const int base = shared_base();\n  const int thread = thread_index();\n" +
                       body),
      options);
}

const std::string right = R"(
  st_shared_i32(base + thread * 8, thread);
  st_shared_i32(base + thread * 8 + 4, thread);
  fence_proxy_async(); // of the writer
  bar_sync(0, 64);
  if (thread == 3) {
    tma_store_2d(map, 0, 0, base);
    bulk_commit();
    bulk_wait_read<0>();
  }
  bar_sync(1, 64);
  st_shared_i32(base + thread * 8, 7);
)";

} // namespace

TEST_CASE("what a store reads lies behind a proxy fence and a barrier") {
  for (uint64_t seed = 0; seed < 4; ++seed)
    CHECK(run(right, seed) == "");
  const std::string noFence = replaced(right, "fence_proxy_async(); // of the writer\n", "\n");
  const std::string text = run(noFence);
  CHECK(
      contains(text, "block 0 thread 3 (warp 0, lane 3): tma_store_2d: reads [shared_base + 0x0]"));
  CHECK(contains(text, "no fence_proxy_async lies between the two"));
  CHECK(contains(text, "tma_store_2d(map, 0, 0, base);")); // the line
  // The storing thread may execute the fence, behind the barrier; not before it.
  CHECK(run(replaced(noFence, "    tma_store_2d", "    fence_proxy_async();\n    tma_store_2d")) ==
        "");
  CHECK(contains(run(replaced(noFence, "bar_sync(0, 64);",
                              "if (thread == 3) fence_proxy_async();\n  bar_sync(0, 64);")),
                 "no fence_proxy_async"));
  // A fence of the writers behind the barrier is too late, even if it comes first here.
  CHECK(contains(run(replaced(noFence, "bar_sync(0, 64);",
                              "bar_sync(0, 64);\n  if (thread != 3) fence_proxy_async();")),
                 "no fence_proxy_async"));
  CHECK(contains(run(replaced(right, "bar_sync(0, 64);", "")), "tma_store_2d: reads"));
  CHECK(contains(run(replaced(right, "  st_shared_i32(base + thread * 8 + 4, thread);\n", "")),
                 "reads [shared_base + 0x4], which nothing has written"));
}

TEST_CASE("shared memory is written again when the store has read it") {
  const std::string early = replaced(right, "bulk_wait_read<0>();\n  }\n  bar_sync(1, 64);",
                                     "\n  }\n  bar_sync(1, 64);\n  if (thread == 3)"
                                     " bulk_wait_read<0>();");
  for (uint64_t seed = 0; seed < 6; ++seed) {
    // Whether it has in fact read it or not.
    const std::string text = run(early, seed);
    CHECK((contains(text, "which a TMA store of thread 3 still reads: its bulk_wait_read must") ||
           contains(text, "which thread 3 has read: no barrier orders the two")));
  }
  CHECK(contains(run(replaced(right, "bulk_wait_read<0>();", "bulk_wait_read<1>();")),
                 "overwrite [shared_base + 0x0]..[shared_base + 0x200], which a TMA store of "
                 "thread 3 still reads"));
  CHECK(contains(run(replaced(right, "bulk_commit();", "")), "still reads"));
  CHECK(run(replaced(right, "bulk_wait_read<0>();", "bulk_wait<0>();")) == "");
}

TEST_CASE("a thread that ends has waited until its stores have read") {
  const std::string alone = right.substr(0, right.find("  bar_sync(1"));
  CHECK(run(alone) == "");
  CHECK(contains(run(replaced(alone, "bulk_wait_read<0>();", "")),
                 "block 0 thread 3 (warp 0, lane 3): exit: the thread ends, and has not waited "
                 "until 1 of its TMA stores"));
}

TEST_CASE("what a store has written is read after its wait") {
  const std::string one = replaced(right, "bulk_wait_read<0>();", "bulk_wait<0>();") +
                          "  bar_sync(2, 64);\n  ld_global_i32(y, thread * 8);\n";
  CHECK(run(one) == "");
  const std::string unwaited = right + "  bar_sync(2, 64);\n  ld_global_i32(y, thread * 8);\n";
  CHECK(contains(run(unwaited), "of y, which a TMA store of thread 3 of block 0 writes: its "
                                "bulk_wait must come first"));
  const std::string late =
      replaced(replaced(unwaited, "bar_sync(2, 64);", "if (thread == 3) bulk_wait<0>();"),
               "ld_global_i32(y", "if (thread > 31) ld_global_i32(y");
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const std::string text = run(late, seed);
    CHECK((contains(text, "which a TMA store of thread 3") ||
           contains(text, "which thread 3 of block 0 has stored: nothing orders the two")));
  }
  CHECK(contains(run(right + "  if (thread == 3) st_global_b32(y, 0, 1);\n"),
                 "st_global_b32: stores byte 0 of y, which a TMA store of thread 3 of block 0 "
                 "writes"));
  CHECK(contains(run(replaced(right, "bulk_commit();",
                              "tma_store_2d(map, 0, 0, base);\n"
                              "    bulk_commit();")),
                 "which another TMA store of thread 3 of block 0 writes"));
}

TEST_CASE("stores to global memory order themselves before a TMA store by a proxy fence") {
  const std::string before = "  if (thread == 3) st_global_b32(y, 0, 1);\n";
  CHECK(contains(run(before + right), "tma_store_2d: stores byte 0 of y, which thread 3 of block 0 "
                                      "has stored: no fence_proxy_async_global lies between"));
  CHECK(run(before + "  if (thread == 3) fence_proxy_async_global();\n" + right) == "");
}

TEST_CASE("another block reads what a store has written, by copies too") {
  // Block 0 hands y over; block 1 reads it by a load or by a TMA load, for which no fence is
  // needed.
  const std::string hand = "  if (block_index() == 0) {\n" +
                           replaced(right, "bulk_wait_read<0>();",
                                    "bulk_wait<0>();\n    fence_acq_rel_gpu();\n"
                                    "    atom_add_global_i32(counters, 0, 1);") +
                           R"(
  } else if (thread == 0) {
    wait_global_i32(counters, 0, 1);
    READ
  }
)";
  const std::string copy = R"(
    mbarrier_init(base + 4096, 1);
    fence_mbarrier_init();
    mbarrier_expect_tx(base + 4096, 512);
    tma_load_2d(base, map, 0, 0, base + 4096);
    mbarrier_wait(base + 4096, 0);
)";
  for (const std::string &read : {std::string("ld_global_i32(y, 508);"), copy}) {
    const std::string whole = replaced(hand, "READ", read);
    CHECK(run(whole, 0, 2) == "");
    CHECK(contains(run(replaced(whole, "wait_global_i32(counters, 0, 1);", ""), 0, 2),
                   "has stored: nothing orders the two"));
    CHECK(contains(run(replaced(whole, "bulk_wait<0>();", "bulk_wait_read<0>();"), 0, 2),
                   "which a TMA store of thread 3 of block 0 writes: its bulk_wait must"));
  }
}

TEST_CASE("maps, alignment and bounds of stores are checked") {
  CHECK(contains(run(replaced(right, "0, 0, base", "0, 0, base + 64")),
                 "tma_store_2d: source [shared_base + 0x40] is not 128-byte aligned"));
  CHECK(
      contains(run(replaced(right, "tma_store_2d(map, 0, 0, base)", "tma_store_1d(map, 0, base)")),
               "tma_store_1d: a store of rank 1 uses a tensor map of rank 2"));
  CHECK(contains(run(replaced(right, "tma_store_2d(map, 0", "tma_store_2d(map, 8")),
                 "its start address is not a multiple of 16"));
  CHECK(contains(run(replaced(right, "0, 0, base", "0, 0, base + 8064")),
                 "outside the block's 8192 bytes"));
  CHECK(contains(run(right, 0, 1, false),
                 "tma_store_2d: a box of y, which the kernel may only read"));
  const std::string negative = "is negative: a store may reach past the end of a tensor, not begin "
                               "before it";
  CHECK(contains(run(replaced(right, "tma_store_2d(map, 0, 0", "tma_store_2d(map, -16, 0")),
                 "tma_store_2d: coordinate -16 of dimension 0 " + negative));
  CHECK(contains(run(replaced(right, "tma_store_2d(map, 0, 0", "tma_store_2d(map, 0, -1")),
                 "tma_store_2d: coordinate -1 of dimension 1 " + negative));
  Buffer y("y", 500, true);
  TestLaunch launch(1, 64, 8192);
  launch.map(mapOf(y, ElementType::F8E4M3FN, {128, 4}, {128}, {128, 4}, Swizzle::B128))
      .pointer(y)
      .integer(512)
      .integer(0)
      .integer(0)
      .integer(0);
  CHECK(contains(errorOf(launch, storeSource("tma_store_2d(map, 0, 0, base)")),
                 "the tensor of the map ends 12 bytes past the end of y"));
}

// Measured on an H200: what a row of the tensor leaves of 16 bytes is written as well.
TEST_CASE("a store that writes past the end of its operand by whole 16 bytes") {
  const auto run = [](int64_t bytes, bool hasRows) {
    Buffer y("y", bytes, true);
    TestLaunch launch(1, 64, 8192);
    launch.map(mapOf(y, ElementType::F8E4M3FN, {123, 4}, {128}, {128, 4}, Swizzle::B128));
    launch.rows(y, hasRows ? 123 : 0, hasRows ? 128 : 0)
        .integer(512)
        .integer(0)
        .integer(0)
        .integer(0);
    return errorOf(launch, storeSource("tma_store_2d(map, 0, 0, base)"));
  };
  CHECK(run(512, false) == "");
  CHECK(contains(run(507, false),
                 "tma_store_2d: 128 bytes at offset 384 of y, which has 507 bytes: "
                 "a store writes whole 16 bytes"));
  CHECK(contains(run(512, true),
                 "tma_store_2d: 128 bytes at offset 0 of y reach past the 123 bytes "
                 "of row 0 (stride 128): a store writes whole 16 bytes"));
}

// The end of a kernel: two buffers in turn, one thread stores, and a buffer is filled again when
// the store before the last has read it.
TEST_CASE("two buffers in turn run clean, and each of their parts is needed") {
  const std::string turns = R"(
  const int base = shared_base();
  const int thread = thread_index();
  for (int step = 0; step < 6; ++step) {
    const int buffer = base + step % 2 * 512;
    if (thread == 0) bulk_wait_read<1>();
    bar_sync(0, 64);
    st_shared_i32(buffer + thread * 8, step * 1000 + thread * 2);
    st_shared_i32(buffer + thread * 8 + 4, step * 1000 + thread * 2 + 1);
    fence_proxy_async();
    bar_sync(0, 64);
    if (thread == 0) {
      tma_store_2d(map, 0, step * 4, buffer);
      bulk_commit();
    }
  }
  if (thread == 0) bulk_wait_read<0>();
)";
  const auto run = [](const std::string &body, uint64_t seed) {
    Buffer y("y", 6 * 512, true);
    std::memset(y.data(), 0xee, y.bytes());
    TestLaunch launch(1, 64, 1024);
    launch.map(mapOf(y, ElementType::F32, {32, 24}, {128}, {32, 4}, Swizzle::None)).range(y);
    EmulatorOptions options = testOptions();
    options.seed = seed;
    const std::string text =
        errorOf(launch, kernelSource("const __grid_constant__ TensorMap map", body), options);
    if (text.empty())
      for (int i = 0; i < 6 * 128; ++i)
        CHECK(y.as<int>()[i] == i / 128 * 1000 + i % 128);
    return text;
  };
  // The fence of the storing thread alone will do, behind the barrier.
  const std::string late = replaced(turns, "fence_proxy_async();\n    bar_sync(0, 64);",
                                    "bar_sync(0, 64);\n    fence_proxy_async();");
  for (uint64_t seed = 0; seed < 8; ++seed) {
    CHECK(run(turns, seed) == "");
    CHECK(run(late, seed) == "");
  }
  for (const auto &[part, by] :
       {std::pair<std::string, std::string>{"bulk_wait_read<1>();", "bulk_wait_read<2>();"},
        {"if (thread == 0) bulk_wait_read<1>();\n    bar_sync(0, 64);", "bar_sync(0, 64);"},
        {"if (thread == 0) bulk_wait_read<1>();\n    bar_sync(0, 64);",
         "bar_sync(0, 64);\n    if (thread == 0) bulk_wait_read<1>();"},
        {"fence_proxy_async();", ""},
        {"fence_proxy_async();\n    bar_sync(0, 64);", "fence_proxy_async();"},
        {"step % 2 * 512", "0"},
        {"bulk_commit();", ""},
        {"if (thread == 0) bulk_wait_read<0>();", ""}})
    for (uint64_t seed = 0; seed < 3; ++seed) {
      CAPTURE(part);
      CAPTURE(by);
      CAPTURE(seed);
      CHECK(run(replaced(turns, part, by), seed) != "");
    }
}

// TMA loads: swizzles, boxes of rank 1 to 3, zero fill out of bounds, delivery through an mbarrier.
#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace moejit;
using namespace moejit::test;

namespace {

// One thread loads a box; all read it back word by word, so that the raw shared-memory image
// reaches `image`.
const std::string copyBody = R"(
  const int base = shared_base();
  const int barrier = base + 32768;
  if (thread_index() == 0) {
    mbarrier_init(barrier, 1);
    fence_mbarrier_init();
  }
  bar_sync(0, 128);
  if (thread_index() == 0) {
    mbarrier_expect_tx(barrier, bytes);
    LOAD;
  }
  mbarrier_wait(barrier, 0);
  for (int i = thread_index() * 4; i < bytes; i += 512)
    st_global_b32(image, i, ld_shared_i32(base + i));
)";

std::string copySource(const std::string &load) {
  std::string body = copyBody;
  body.replace(body.find("LOAD"), 4, load);
  return kernelSource(
      "const __grid_constant__ TensorMap map, void *image, int bytes, int c0, int c1, int c2",
      body);
}

void fill(Buffer &buffer) {
  for (int64_t i = 0; i < buffer.bytes(); ++i)
    buffer.data()[i] = static_cast<uint8_t>(i * 7 + i / 256 * 13 + 1);
}

} // namespace

// The image of a swizzled tile is written out here by hand: 16-byte chunk c of 128-byte line l goes
// to chunk c ^ l.
TEST_CASE("a 2-D load places 16-byte chunks by swizzle and fills zeros out of bounds") {
  struct Case {
    Swizzle swizzle;
    int inner, lineMask;
  };
  const std::string source = copySource("tma_load_2d(base, map, c0, c1, barrier)");
  for (const Case c :
       {Case{Swizzle::None, 128, 0}, Case{Swizzle::None, 32, 0}, Case{Swizzle::B32, 32, 1},
        Case{Swizzle::B64, 64, 3}, Case{Swizzle::B128, 128, 7}})
    for (const auto &[x, y] :
         {std::pair{0, 0}, {64, 5}, {-16, -3}, {240, 30}, {1008, 0}, {0, -100}}) {
      CAPTURE(c.inner);
      CAPTURE(c.lineMask);
      CAPTURE(x);
      CAPTURE(y);
      const int rows = 24, extentX = 320, extentY = 40, pitch = 336;
      Buffer tensor("tensor", pitch * (extentY - 1) + extentX, false);
      Buffer image("image", rows * c.inner, true);
      fill(tensor);
      Result<EmulatorReport> report =
          TestLaunch(1, 128, 32768 + 8)
              .map(mapOf(tensor, ElementType::F8E4M3FN, {uint64_t(extentX), uint64_t(extentY)},
                         {uint64_t(pitch)}, {uint32_t(c.inner), uint32_t(rows)}, c.swizzle))
              .pointer(image)
              .integer(rows * c.inner)
              .integer(x)
              .integer(y)
              .integer(0)
              .range(tensor)
              .run(source);
      REQUIRE_MESSAGE(report, report.error().text());
      CHECK(report->tmaBytes == rows * c.inner);
      int wrong = 0;
      for (int r = 0; r < rows; ++r)
        for (int k = 0; k < c.inner; ++k) {
          const bool inside = y + r >= 0 && y + r < extentY && x + k >= 0 && x + k < extentX;
          const int expected = inside ? tensor.data()[(y + r) * pitch + x + k] : 0;
          const int linear = r * c.inner + k;
          const int line = linear / 128, chunk = linear % 128 / 16;
          const int place = line * 128 + (chunk ^ (line & c.lineMask)) * 16 + linear % 16;
          wrong += image.data()[place] != expected;
        }
      CHECK(wrong == 0);
    }
}

// A row loaded alone lands where it would in a full box (schedule study, pitfalls): swizzles go by
// address.
TEST_CASE("one-row swizzled boxes build the image of a full box") {
  Buffer tensor("tensor", 128 * 16, false), whole("image", 128 * 16, true),
      rowWise("image", 128 * 16, true);
  fill(tensor);
  for (const bool single : {false, true}) {
    const std::string load =
        single ? "for (int r = 0; r < 16; ++r) tma_load_2d(base + r * 128, map, 0, r, barrier)"
               : "tma_load_2d(base, map, 0, 0, barrier)";
    Result<EmulatorReport> report = TestLaunch(1, 128, 32768 + 8)
                                        .map(mapOf(tensor, ElementType::F8E4M3FN, {128, 16}, {128},
                                                   {128, single ? 1u : 16u}, Swizzle::B128))
                                        .pointer(single ? rowWise : whole)
                                        .integer(128 * 16)
                                        .integer(0)
                                        .integer(0)
                                        .integer(0)
                                        .range(tensor)
                                        .run(copySource(load));
    REQUIRE_MESSAGE(report, report.error().text());
  }
  CHECK(std::memcmp(whole.data(), rowWise.data(), 128 * 16) == 0);
}

TEST_CASE("loads of rank 1 and 3 count dimensions from the contiguous one") {
  Buffer tensor("tensor", 4 * 1000, false);
  for (int i = 0; i < 1000; ++i)
    tensor.as<float>()[i] = float(i);
  SUBCASE("rank 1, past the end") {
    Buffer image("image", 132 * 4, true);
    Result<EmulatorReport> report =
        TestLaunch(1, 128, 32768 + 8)
            .map(mapOf(tensor, ElementType::F32, {1000}, {}, {132}, Swizzle::None))
            .pointer(image)
            .integer(132 * 4)
            .integer(900)
            .integer(0)
            .integer(0)
            .range(tensor)
            .run(
                copySource("tma_load_1d_hint(base, map, c0, barrier, createpolicy_evict_first())"));
    REQUIRE_MESSAGE(report, report.error().text());
    for (int i = 0; i < 132; ++i)
      CHECK(image.as<float>()[i] == (900 + i < 1000 ? float(900 + i) : 0.0f));
  }
  SUBCASE("rank 3: [5][10][20] floats, box 4 x 2 x 3") {
    Buffer image("image", 24 * 4, true);
    Result<EmulatorReport> report =
        TestLaunch(1, 128, 32768 + 8)
            .map(mapOf(tensor, ElementType::F32, {20, 10, 5}, {80, 800}, {4, 2, 3}, Swizzle::None))
            .pointer(image)
            .integer(24 * 4)
            .integer(8)
            .integer(9)
            .integer(3)
            .range(tensor)
            .run(copySource("tma_load_3d(base, map, c0, c1, c2, barrier)"));
    REQUIRE_MESSAGE(report, report.error().text());
    for (int e = 0; e < 3; ++e)
      for (int r = 0; r < 2; ++r)
        for (int k = 0; k < 4; ++k) {
          const bool inside = 3 + e < 5 && 9 + r < 10;
          CHECK(image.as<float>()[(e * 2 + r) * 4 + k] ==
                (inside ? float((3 + e) * 200 + (9 + r) * 20 + 8 + k) : 0.0f));
        }
  }
}

// ldmatrix and mma.sync: which lane holds what, against matrices written out by element, and lanes
// that are not all there.
#include "tests/emulator/Harness.h"

#include "runtime/emulator/Numerics.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>

using namespace moejit;
using namespace moejit::test;

namespace {

/// `text` with its first `part` replaced by `by`.
std::string replaced(std::string text, const std::string &part, const std::string &by) {
  REQUIRE(contains(text, part));
  return text.replace(text.find(part), part.size(), by);
}

std::string errorOfBody(const std::string &body, Buffer &x, Buffer &y, uint64_t seed = 0) {
  TestLaunch launch(1, 64, 4096);
  launch.pointer(x).pointer(y);
  EmulatorOptions options = testOptions();
  options.seed = seed;
  return errorOf(launch,
                 kernelSource("const void *x, void *y", "  const int base = shared_base();\n"
                                                        "  const int thread = thread_index();\n"
                                                        "  const int lane = thread & 31;\n" +
                                                            body),
                 options);
}

/// Four matrices in shared memory, element (r, c) of matrix i being 1000 i + 10 r + c; rows are 48
/// bytes apart and matrices 512, and each of two warps loads them.
std::string loadSource(const std::string &call, int count) {
  return R"(
  for (int word = thread; word < 128; word += 64) {
    const int i = word / 32, r = word / 4 % 8, c = word % 4 * 2;
    const int low = 1000 * i + 10 * r + c;
    st_shared_i32(base + 512 * i + 48 * r + 2 * c, low | (low + 1) << 16);
  }
  bar_sync(0, 64);
  int v[)" +
         std::to_string(count) + "];\n  " + call +
         "(base + 512 * (lane / 8) + 48 * (lane % 8), v);\n" + "  for (int i = 0; i < " +
         std::to_string(count) + "; ++i)\n    st_global_b32(y, (thread * 4 + i) * 4, v[i]);\n";
}

} // namespace

TEST_CASE("ldmatrix gives each lane two elements of a row, or of a column") {
  for (const int count : {1, 2, 4})
    for (const bool isTransposed : {false, true}) {
      CAPTURE(count);
      CAPTURE(isTransposed);
      Buffer x("x", 16, false), y("y", 64 * 16, true);
      const std::string call =
          "ldmatrix_x" + std::to_string(count) + (isTransposed ? "_trans" : "");
      REQUIRE(errorOfBody(loadSource(call, count), x, y, count) == "");
      for (int t = 0; t < 64; ++t)
        for (int i = 0; i < count; ++i)
          for (int half = 0; half < 2; ++half) {
            const int along = 2 * (t % 4) + half, across = t % 32 / 4;
            const int wanted =
                1000 * i + (isTransposed ? 10 * along + across : 10 * across + along);
            CHECK(y.as<uint16_t>()[2 * (4 * t + i) + half] == wanted);
          }
    }
}

TEST_CASE("what ldmatrix reads must be there, for the lane that gets it") {
  Buffer x("x", 16, false), y("y", 64 * 16, true);
  const std::string right = loadSource("ldmatrix_x4", 4);
  SUBCASE("no barrier after the stores of the other warp") {
    CHECK(contains(errorOfBody(replaced(right, "bar_sync(0, 64);", ""), x, y), "ldmatrix_x4: "));
    CHECK(contains(errorOfBody(replaced(right, "bar_sync(0, 64);", "syncwarp();"), x, y),
                   "ldmatrix_x4: address of lane "));
  }
  SUBCASE("an address that is not a multiple of 16") {
    const std::string text =
        errorOfBody(replaced(right, "+ 48 * (lane % 8), v", "+ 44 * (lane % 8), v"), x, y);
    CHECK(contains(text, "ldmatrix_x4: address [shared_base + 0x2c] of lane 1 is not 16-byte"));
    CHECK(contains(text, "block 0 thread"));
    CHECK(contains(text, "ldmatrix_x4(base + 512")); // the line
  }
  SUBCASE("lanes that nothing is read for may give any address") {
    CHECK(errorOfBody(replaced(loadSource("ldmatrix_x2", 2), "base + 512 * (lane / 8)",
                               "(lane >= 16 ? 3 : base) + 512 * (lane / 8)"),
                      x, y) == "");
  }
  SUBCASE("past the end of shared memory") {
    CHECK(contains(
        errorOfBody(replaced(right, "base + 512 * (lane / 8)", "base + 4096 + 512 * (lane / 8)"), x,
                    y),
        "outside the block's 4096 bytes"));
  }
  SUBCASE("half of the warp") {
    const std::string text =
        errorOfBody(replaced(right, "ldmatrix_x4(base", "if (lane < 16) ldmatrix_x4(base"), x, y);
    CHECK(contains(text, "waits at ldmatrix_x4: 16 of 32 lanes have arrived"));
  }
  SUBCASE("another form in some lanes") {
    const std::string text = errorOfBody(
        replaced(right, "ldmatrix_x4(base",
                 "if (lane < 16)\n ldmatrix_x4_trans(base, v);\n else ldmatrix_x4(base"),
        x, y);
    CHECK(contains(text, "other lanes of the warp are at ldmatrix_x4"));
  }
}

namespace {

struct Format {
  const char *name;
  const char *a, *b;
  int bytes; ///< of an element
};

float decode(const std::string &type, const uint8_t *from) {
  uint16_t bits = from[0];
  if (type == "e4m3")
    return emulated::e4m3Values[bits];
  if (type == "e5m2")
    return emulated::e5m2Values[bits];
  bits = static_cast<uint16_t>(bits | from[1] << 8);
  return type == "bf16" ? std::bit_cast<float>(static_cast<uint32_t>(bits) << 16)
                        : emulated::widenF16(bits);
}

/// A [16][32 bytes], B [8][32 bytes] (its columns), C [16][8] floats; each of the two warps puts
/// its fragments together by the tables of the PTX ISA.
std::string mmaSource(const std::string &name) {
  return R"(
  const int g = lane >> 2, t = lane & 3;
  int a[4], b[2];
  float d[4];
  a[0] = ld_global_i32(x, g * 32 + t * 4);
  a[1] = ld_global_i32(x, (g + 8) * 32 + t * 4);
  a[2] = ld_global_i32(x, g * 32 + 16 + t * 4);
  a[3] = ld_global_i32(x, (g + 8) * 32 + 16 + t * 4);
  b[0] = ld_global_i32(x, 512 + g * 32 + t * 4);
  b[1] = ld_global_i32(x, 512 + g * 32 + 16 + t * 4);
  for (int i = 0; i < 4; ++i)
    d[i] = ld_global_f32(x, 768 + ((g + i / 2 * 8) * 8 + 2 * t + i % 2) * 4);
  )" + name +
         R"((d, a, b);
  for (int i = 0; i < 4; ++i)
    st_global_f32(y, (thread / 32 * 128 + (g + i / 2 * 8) * 8 + 2 * t + i % 2) * 4, d[i]);
)";
}

} // namespace

TEST_CASE("mma adds exact products in the order of k") {
  for (const Format &format : {Format{"m16n8k32_e4m3_e4m3", "e4m3", "e4m3", 1},
                               Format{"m16n8k32_e5m2_e4m3", "e5m2", "e4m3", 1},
                               Format{"m16n8k32_e4m3_e5m2", "e4m3", "e5m2", 1},
                               Format{"m16n8k32_e5m2_e5m2", "e5m2", "e5m2", 1},
                               Format{"m16n8k16_bf16_bf16", "bf16", "bf16", 2},
                               Format{"m16n8k16_f16_f16", "f16", "f16", 2}}) {
    CAPTURE(format.name);
    Buffer x("x", 768 + 512, false), y("y", 1024, true);
    std::mt19937 random(7);
    for (int i = 0; i < 768; ++i)
      x.data()[i] = static_cast<uint8_t>(random());
    // No infinities and NaN, which would hide all else.
    for (int i = 0; i < 768; i += format.bytes)
      while (!std::isfinite(decode(i < 512 ? format.a : format.b, x.data() + i)) ||
             std::abs(decode(i < 512 ? format.a : format.b, x.data() + i)) > 1e15f)
        for (int byte = 0; byte < format.bytes; ++byte)
          x.data()[i + byte] = static_cast<uint8_t>(random());
    for (int i = 0; i < 128; ++i)
      x.as<float>()[192 + i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 7;
    REQUIRE(errorOfBody(mmaSource(std::string("mma_") + format.name), x, y, 3) == "");
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column) {
        float sum = x.as<float>()[192 + 8 * row + column];
        for (int k = 0; k < 32; k += format.bytes)
          sum = std::fma(decode(format.a, x.data() + 32 * row + k),
                         decode(format.b, x.data() + 512 + 32 * column + k), sum);
        for (int warp = 0; warp < 2; ++warp)
          CHECK(std::bit_cast<uint32_t>(y.as<float>()[128 * warp + 8 * row + column]) ==
                std::bit_cast<uint32_t>(sum));
      }
  }
}

TEST_CASE("mma is a matter of the whole warp") {
  Buffer x("x", 768 + 512, false), y("y", 1024, true);
  std::fill_n(x.data(), x.bytes(), uint8_t(0));
  const std::string right = mmaSource("mma_m16n8k32_e4m3_e4m3");
  CHECK(errorOfBody(right, x, y) == "");
  CHECK(contains(errorOfBody(replaced(right, "mma_m16", "if (lane != 7) mma_m16"), x, y),
                 "waits at mma_m16n8k32_e4m3_e4m3: 31 of 32 lanes have arrived"));
  const std::string mixed = replaced(right, "mma_m16",
                                     "if (lane == 7) mma_m16n8k32_e5m2_e4m3(d, a, b);\n"
                                     "  else mma_m16");
  const std::string text = errorOfBody(mixed, x, y);
  CHECK(contains(text, "block 0 thread 7 (warp 0, lane 7): mma_m16n8k32_e5m2_e4m3: other lanes of "
                       "the warp are at mma_m16n8k32_e4m3_e4m3"));
  CHECK(contains(text, "mma_m16n8k32_e5m2_e4m3(d, a, b);")); // the line
}

// A tile goes through shared memory by cp.async, to fragments by ldmatrix, and through mma: what a
// decode kernel of this kind does. The product is that of whole matrices.
TEST_CASE("cp.async, ldmatrix and mma make a product") {
  constexpr int depth = 64;
  Buffer x("x", (16 + 8) * depth, false), y("y", 512, true);
  std::mt19937 random(11);
  for (int i = 0; i < (16 + 8) * depth; ++i)
    x.data()[i] = static_cast<uint8_t>(random() % 2 << 7 | (0x30 + random() % 16));
  REQUIRE(errorOfBody(R"(
  for (int i = thread; i < 96; i += 64)
    cp_async_cg_16(base + i / 4 * 80 + i % 4 * 16, x, i * 16);
  cp_async_commit();
  cp_async_wait<0>();
  bar_sync(0, 64);
  if (thread < 32) {
    float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int step = 0; step < 2; ++step) {
      int a[4], b[2];
      ldmatrix_x4(base + (lane % 16) * 80 + lane / 16 * 16 + step * 32, a);
      ldmatrix_x2(base + (16 + lane % 8) * 80 + lane / 8 % 2 * 16 + step * 32, b);
      mma_m16n8k32_e4m3_e4m3(d, a, b);
    }
    for (int i = 0; i < 4; ++i)
      st_global_f32(y, ((lane / 4 + i / 2 * 8) * 8 + 2 * (lane % 4) + i % 2) * 4, d[i]);
  }
)",
                      x, y, 5) == "");
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      double sum = 0;
      for (int k = 0; k < depth; ++k)
        sum += double(emulated::e4m3Values[x.data()[row * depth + k]]) *
               double(emulated::e4m3Values[x.data()[(16 + column) * depth + k]]);
      CHECK(y.as<float>()[8 * row + column] == float(sum)); // codes are such that no sum is rounded
    }
}

// The loop of a kernel before TMA: a ring of three stages that cp.async fills two steps ahead, one
// barrier a step.
TEST_CASE("a ring of stages runs clean, and each of its parts is needed") {
  constexpr int depth = 256, steps = depth / 32;
  const std::string ring = R"(
  const int stage0 = base;
  float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int step = 0; step < 2; ++step) {
    if (thread < 48)
      cp_async_cg_16(stage0 + step * 1152 + thread / 2 * 48 + thread % 2 * 16, x,
                     thread / 2 * 256 + step * 32 + thread % 2 * 16);
    cp_async_commit();
  }
  for (int step = 0; step < 8; ++step) {
    cp_async_wait<1>();
    bar_sync(0, 64);
    const int next = step + 2;
    if (next < 8 && thread < 48)
      cp_async_cg_16(stage0 + next % 3 * 1152 + thread / 2 * 48 + thread % 2 * 16, x,
                     thread / 2 * 256 + next * 32 + thread % 2 * 16);
    cp_async_commit();
    const int stage = stage0 + step % 3 * 1152;
    int a[4], b[2];
    ldmatrix_x4(stage + (lane % 16) * 48 + lane / 16 * 16, a);
    ldmatrix_x2(stage + (16 + lane % 8) * 48 + lane / 8 % 2 * 16, b);
    mma_m16n8k32_e4m3_e4m3(d, a, b);
  }
  for (int i = 0; i < 4; ++i)
    st_global_f32(y, (thread / 32 * 128 + (lane / 4 + i / 2 * 8) * 8 + 2 * (lane % 4) + i % 2) * 4,
                  d[i]);
)";
  Buffer x("x", (16 + 8) * depth, false), y("y", 1024, true);
  std::mt19937 random(13);
  for (int i = 0; i < (16 + 8) * depth; ++i)
    x.data()[i] = static_cast<uint8_t>(random() % 2 << 7 | (0x30 + random() % 16));
  for (uint64_t seed = 0; seed < 8; ++seed) {
    CAPTURE(seed);
    std::fill_n(y.data(), 1024, uint8_t(0xff));
    REQUIRE(errorOfBody(ring, x, y, seed) == "");
    for (int element = 0; element < 256; ++element) {
      const int row = element / 8 % 16, column = element % 8;
      double sum = 0;
      for (int k = 0; k < 32 * steps; ++k)
        sum += double(emulated::e4m3Values[x.data()[row * depth + k]]) *
               double(emulated::e4m3Values[x.data()[(16 + column) * depth + k]]);
      CHECK(y.as<float>()[element] == float(sum));
    }
  }
  for (const auto &[part, by] :
       {std::pair<std::string, std::string>{"cp_async_wait<1>();", "cp_async_wait<2>();"},
        {"cp_async_wait<1>();", ""},
        {"bar_sync(0, 64);", "syncwarp();"},
        {"bar_sync(0, 64);", "syncwarp(); if (step == 0) bar_sync(0, 64);"},
        {"next % 3", "next % 2"},
        {"    cp_async_wait<1>();\n    bar_sync(0, 64);",
         "    bar_sync(0, 64);\n    cp_async_wait<1>();"}})
    for (uint64_t seed = 0; seed < 3; ++seed) {
      CAPTURE(part);
      CAPTURE(seed);
      CHECK(errorOfBody(replaced(ring, part, by), x, y, seed) != "");
    }
}

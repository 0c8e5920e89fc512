// Operands of the kernels of tests/gpu/instructions.
#include "tests/gpu/InstructionTrials.h"

#include "runtime/emulator/DeviceTable.h"
#include "runtime/emulator/Mma.h"
#include "runtime/emulator/Numerics.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace moejit::gpu {

const std::vector<InstructionUnit> &instructionUnits() {
  static const std::vector<InstructionUnit> units = {
#include "InstructionUnits.inc"
  };
  return units;
}

namespace {

using Random = std::mt19937;

TrialBuffer randomBytes(const char *name, size_t count, Random &random) {
  TrialBuffer buffer = {name, std::vector<uint8_t>(count), false, {}};
  for (uint8_t &byte : buffer.bytes)
    byte = static_cast<uint8_t>(random());
  return buffer;
}

/// What nobody writes must stay.
TrialBuffer output(const char *name, size_t count) {
  return {name, std::vector<uint8_t>(count, 0xe7), true, {}};
}

TrialArgument pointer(size_t buffer) { return {TrialArgument::Kind::Pointer, buffer, {}, 0}; }
TrialArgument integer(int32_t value) { return {TrialArgument::Kind::Integer, 0, {}, value}; }

TrialArgument map(size_t buffer, ElementType type, std::vector<uint64_t> extents,
                  std::vector<uint64_t> strideBytes, std::vector<uint32_t> box, Swizzle swizzle) {
  TrialArgument argument = {TrialArgument::Kind::Map, buffer, {}, 0};
  argument.map.type = type;
  argument.map.swizzle = swizzle;
  argument.map.rank = static_cast<uint32_t>(extents.size());
  std::copy(extents.begin(), extents.end(), argument.map.extents.begin());
  std::copy(strideBytes.begin(), strideBytes.end(), argument.map.strideBytes.begin());
  std::copy(box.begin(), box.end(), argument.map.box.begin());
  return argument;
}

Trial cpAsync(Random &random) {
  Trial trial = {"cp-async", {}, {}};
  trial.buffers = {randomBytes("x", 4096 + 1024, random), output("y", 4096)};
  for (int thread = 0; thread < 64; ++thread) {
    const int32_t size = static_cast<int32_t>(random() % 17);
    std::memcpy(trial.buffers[0].bytes.data() + 2048 + 4 * thread, &size, 4);
  }
  trial.grids = {{"cp-async", 1, 64, 3072, {pointer(0), pointer(1)}}};
  return trial;
}

Trial cpAsyncBarrier(Random &random) {
  Trial trial = {"cp-async-barrier", {}, {}};
  trial.buffers = {randomBytes("x", 1024, random), output("y", 1024)};
  trial.grids = {{"cp-async-barrier", 1, 64, 2048, {pointer(0), pointer(1)}}};
  return trial;
}

Trial ldmatrix(Random &random) {
  Trial trial = {"ldmatrix", {}, {}};
  trial.buffers = {randomBytes("x", 1024, random), output("y", 4096)};
  trial.grids = {{"ldmatrix", 1, 64, 1024, {pointer(0), pointer(1)}}};
  return trial;
}

/// Boxes at random places inside the tensors and past their ends, swizzles in turn. The tensors of
/// y2 and y3 have rows that are no multiple of 16 bytes.
Trial tmaStore(Random &random, int round) {
  Trial trial = {"tma-store", {}, {}};
  trial.buffers = {output("y1", 1000 * 4), output("y2", 4096), output("y3", 4096),
                   randomBytes("x", 8192, random), output("z", 4096)};
  const Swizzle swizzles[] = {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128};
  const Swizzle swizzle = swizzles[round % 4];
  const uint32_t inner = swizzle == Swizzle::None ? 64 : 16u << static_cast<int>(swizzle);
  // Start addresses are multiples of 16 bytes; all maps share the column.
  const int32_t column = 16 * static_cast<int32_t>(random() % 9);
  const int32_t row = static_cast<int32_t>(random() % 24);
  const int32_t plane = static_cast<int32_t>(random() % 5);
  trial.grids = {
      {"tma-store",
       1,
       64,
       8192,
       {map(0, ElementType::F32, {1000}, {}, {256}, Swizzle::None),
        map(1, ElementType::F8E4M3FN, {123, 20}, {128}, {inner, 12}, swizzle),
        map(2, ElementType::BF16, {59, 7, 4}, {128, 896}, {32, 5, 3}, Swizzle::B64), pointer(3),
        pointer(1), pointer(4), integer(column), integer(row), integer(plane)}}};
  return trial;
}

/// The first follows x, in which every word is the index of another.
Trial dependentGrids(Random &random) {
  Trial trial = {"griddepcontrol", {}, {}};
  constexpr int count = 4096;
  trial.buffers = {randomBytes("x", 4 * count, random), output("h", 4 * count),
                   randomBytes("y", 4 * count, random)};
  trial.buffers[2].isWritten = true;
  for (int i = 0; i < count; ++i) {
    const int32_t next = static_cast<int32_t>(random() % count);
    std::memcpy(trial.buffers[0].bytes.data() + 4 * i, &next, 4);
  }
  trial.grids = {{"grid-first", count / 64, 64, 0, {pointer(0), pointer(1)}},
                 {"grid-second", count / 64, 64, 0, {pointer(1), pointer(2)}}};
  return trial;
}

/// The code of one element of a fragment. Exact: such that every sum of 32 products is a multiple
/// of 2^-4 below 2^10, which no order and no cut loses; else any that is finite.
uint32_t codeOf(int types, bool isExact, Random &random) {
  if (types == emulated::bf16_bf16 || types == emulated::f16_f16) {
    const float value = isExact ? static_cast<float>(static_cast<int>(random() % 17) - 8)
                                : std::ldexp(1.0f + static_cast<float>(random() % 4096) / 4096,
                                             static_cast<int>(random() % 16) - 8) *
                                      (random() % 2 ? -1.0f : 1.0f);
    return types == emulated::bf16_bf16 ? emulated::roundToBf16(value)
                                        : emulated::roundToF16(value);
  }
  // In both fp8 types: the forms share registers.
  while (true) {
    const uint32_t code = random() & 0xff;
    bool isRight = true;
    for (float value : {emulated::e4m3Values[code], emulated::e5m2Values[code]})
      isRight = isRight && std::isfinite(value) &&
                (!isExact || (std::abs(value) <= 4 && value * 4 == std::round(value * 4)));
    if (isRight)
      return code;
  }
}

/// Fragments of eight warps at `bytes`, 48 bytes a thread, as the kernels take them apart.
void readFragments(const uint8_t *bytes, int warp, emulated::MmaFragments &fragments,
                   uint32_t signs) {
  for (int lane = 0; lane < 32; ++lane) {
    const uint8_t *from = bytes + 48 * (32 * warp + lane);
    std::memcpy(fragments.a[lane], from, 16);
    std::memcpy(fragments.b[lane], from + 16, 8);
    std::memcpy(fragments.d[lane], from + 32, 16);
    for (int &word : fragments.a[lane])
      word = static_cast<int>(static_cast<uint32_t>(word) & ~signs);
    for (int &word : fragments.b[lane])
      word = static_cast<int>(static_cast<uint32_t>(word) & ~signs);
    for (float &value : fragments.d[lane])
      value = std::abs(value);
  }
}

Trial mma(const char *unit, const std::vector<int> &forms, bool isExact, Random &random) {
  Trial trial = {fmt::format("{}, {}", unit, isExact ? "exact sums" : "random"), {}, {}};
  constexpr int threads = 256;
  TrialBuffer x = {"x", std::vector<uint8_t>(48 * threads), false, {}};
  const bool isHalf = forms[0] >= emulated::bf16_bf16;
  for (int word = 0; word < 12 * threads; ++word) {
    uint32_t bits = 0;
    if (word % 12 < 6)
      for (int i = 0; i < (isHalf ? 2 : 4); ++i)
        bits |= codeOf(forms[0], isExact, random) << ((isHalf ? 16 : 8) * i);
    else if (word % 12 >= 8) {
      const float start = static_cast<float>(static_cast<int>(random() % 129) - 64);
      bits = std::bit_cast<uint32_t>(isExact ? start : start * 0.37f);
    }
    std::memcpy(x.bytes.data() + 4 * word, &bits, 4);
  }
  TrialBuffer y = output("y", 16 * forms.size() * threads);
  if (!isExact) {
    y.bounds.resize(4 * forms.size() * threads);
    for (size_t form = 0; form < forms.size(); ++form)
      for (int warp = 0; warp < threads / 32; ++warp) {
        emulated::MmaFragments sizes;
        readFragments(x.bytes.data(), warp, sizes, isHalf ? 0x80008000 : 0x80808080);
        emulated::multiplyFragments(sizes, forms[form]);
        for (int lane = 0; lane < 32; ++lane)
          for (int i = 0; i < 4; ++i)
            y.bounds[(32 * warp + lane) * 4 * forms.size() + 4 * form + i] =
                sizes.d[lane][i] * mmaBound;
      }
  }
  trial.buffers = {std::move(x), std::move(y)};
  trial.grids = {{unit, 1, threads, 0, {pointer(0), pointer(1)}}};
  return trial;
}

} // namespace

std::vector<Trial> makeTrials(int rounds) {
  using namespace emulated;
  Random random(20);
  std::vector<Trial> trials;
  const std::vector<int> fp8 = {e4m3_e4m3, e4m3_e5m2, e5m2_e4m3, e5m2_e5m2};
  for (int round = 0; round < rounds; ++round) {
    trials.push_back(cpAsync(random));
    trials.push_back(cpAsyncBarrier(random));
    trials.push_back(ldmatrix(random));
    trials.push_back(tmaStore(random, round));
    trials.push_back(dependentGrids(random));
    for (const bool isExact : {true, false}) {
      trials.push_back(mma("mma-fp8", fp8, isExact, random));
      trials.push_back(mma("mma-bf16", {bf16_bf16}, isExact, random));
      trials.push_back(mma("mma-f16", {f16_f16}, isExact, random));
    }
  }
  return trials;
}

} // namespace moejit::gpu

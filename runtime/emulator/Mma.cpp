// The layout of fragments is that of the PTX ISA, "Matrix Fragments for mma.m16n8k32" and
// "… mma.m16n8k16 with floating point type".
#include "runtime/emulator/Mma.h"

#include "runtime/emulator/DeviceTable.h"
#include "runtime/emulator/Numerics.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace moejit::emulated {
namespace {

/// Element `index` of a register that packs elements of 8 or 16 bits.
float elementOf(int word, int index, bool isOfA, int types) {
  const uint32_t bits = static_cast<uint32_t>(word);
  if (types == bf16_bf16)
    return std::bit_cast<float>((bits >> (16 * index)) << 16);
  if (types == f16_f16)
    return widenF16(static_cast<uint16_t>(bits >> (16 * index)));
  const bool isE5m2 = types & (isOfA ? 1 : 2);
  return (isE5m2 ? e5m2Values : e4m3Values)[bits >> (8 * index) & 0xff];
}

} // namespace

void multiplyFragments(MmaFragments &f, int types) {
  const int packed = types >= bf16_bf16 ? 2 : 4; // elements of a register
  const int depth = 8 * packed;
  float a[16][32], b[32][8];
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4, first = packed * (lane % 4);
    for (int i = 0; i < packed; ++i) {
      for (int reg = 0; reg < 4; ++reg)
        a[group + 8 * (reg % 2)][first + i + depth / 2 * (reg / 2)] =
            elementOf(f.a[lane][reg], i, true, types);
      for (int reg = 0; reg < 2; ++reg)
        b[first + i + depth / 2 * reg][group] = elementOf(f.b[lane][reg], i, false, types);
    }
  }
  for (int lane = 0; lane < 32; ++lane)
    for (int reg = 0; reg < 4; ++reg) {
      const int row = lane / 4 + 8 * (reg / 2), column = 2 * (lane % 4) + reg % 2;
      float sum = f.d[lane][reg];
      for (int k = 0; k < depth; ++k)
        sum = std::fma(a[row][k], b[k][column], sum);
      f.d[lane][reg] = sum;
    }
}

} // namespace moejit::emulated

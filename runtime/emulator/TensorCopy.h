// Tensor maps of the emulator and the boxes that TMA copies with them.
#pragma once

#include "runtime/TensorMap.h"
#include "runtime/emulator/DeviceTable.h"
#include "runtime/emulator/Text.h"

#include <array>
#include <cstdint>

namespace moejit::emulated {

class SharedMemory;

/// What the 128 bytes of an emulated TensorMap hold.
struct PackedMap {
  uint32_t magic = 0;
  uint8_t rank = 0;
  uint8_t elementBytes = 0;
  uint8_t swizzle = 0;
  uint8_t operand = 0;
  uint64_t address = 0;
  std::array<uint64_t, 5> extents = {};
  std::array<uint64_t, 4> strideBytes = {};
  std::array<uint16_t, 5> box = {};

  static constexpr uint32_t expectedMagic = 0x704d6d54;
  /// Bytes of one box, out-of-bounds elements included: what complete_tx counts.
  int boxBytes() const;
  /// Bytes from the first to past the last element of the tensor.
  uint64_t tensorBytes() const;
};

/// Packs `values` as the emulator's stand-in for cuTensorMapEncodeTiled. Refuses what the driver
/// would: see resolveTensorMap; also a swizzled box whose inner extent is not the swizzle span.
/// Errors: InvalidArgument.
Result<TensorMap> packTensorMap(const TensorMapValues &values);
/// The contents of `map`; `magic` tells whether packTensorMap made it.
PackedMap unpackTensorMap(const TensorMap &map);

enum class BoxUse { Load, Store };
/// What forbids a copy with `map` at `coordinates` to or from `shared`, in the hardware's rules:
/// rank, 128-byte aligned shared address, 16-byte aligned start address after coordinates, and of a
/// store no coordinate below 0 (measured on an H200). Empty when nothing does.
Text refuseBox(const PackedMap &map, const int *coordinates, int rank, int shared, BoxUse use);

/// Bytes [begin, end) of the tensor that a box covers in row `row` of its rows, from the tensor's
/// first byte; empty when none lies inside.
struct BoxRow {
  int64_t begin = 0, end = 0;
};
/// The same of a store, which writes whole 16 bytes: to the next multiple of 16 past the end of a
/// row of the tensor that is none (measured on an H200).
BoxRow storedRow(const PackedMap &map, const int *coordinates, int row);
/// How many rows a box has, and which bytes one of them covers.
int boxRows(const PackedMap &map);
BoxRow boxRow(const PackedMap &map, const int *coordinates, int row);

/// Copies one box to `dst`, swizzled by address bits, zeros where it is out of bounds. Byte states
/// stay as they are.
void copyBox(const PackedMap &map, const std::array<int, 5> &coordinates, SharedMemory &shared,
             int dst);

/// The span of the map's swizzle in bytes; 0: none.
int swizzleSpan(const PackedMap &map);
/// The address of byte `address` of an unswizzled image under a swizzle of span 32, 64 or 128 (else
/// itself): the 16-byte chunk number is xored with the number of the 128-byte line.
constexpr int swizzled(int address, int span) {
  const int mask = span == 128 ? 7 : span == 64 ? 3 : span == 32 ? 1 : 0;
  return address ^ (((address >> 7) & mask) << 4);
}

} // namespace moejit::emulated

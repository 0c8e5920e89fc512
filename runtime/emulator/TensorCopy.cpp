// Packing of tensor maps and the copy of one TMA box.
#include "runtime/emulator/TensorCopy.h"

#include "runtime/emulator/SharedMemory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace moejit::emulated {

static_assert(sizeof(PackedMap) <= sizeof(TensorMap));

static int spanOf(uint8_t swizzle) { return swizzle == 0 ? 0 : 16 << swizzle; }

int PackedMap::boxBytes() const {
  int bytes = elementBytes;
  for (int d = 0; d < rank; ++d)
    bytes *= box[d];
  return bytes;
}

uint64_t PackedMap::tensorBytes() const {
  uint64_t bytes = extents[0] * elementBytes;
  for (int d = 1; d < rank; ++d)
    bytes += (extents[d] - 1) * strideBytes[d - 1];
  return bytes;
}

Result<TensorMap> packTensorMap(const TensorMapValues &values) {
  const auto refuse = [&](std::string what) {
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("tensor map of {}: {}", operandName(values.operand), what)};
  };
  if (values.rank < 1 || values.rank > TensorMapValues::maxRank)
    return refuse(fmt::format("rank {} is not 1 to 5", values.rank));
  if (values.address % 16)
    return refuse(fmt::format("address {:#x} is not a multiple of 16", values.address));
  PackedMap map;
  map.magic = PackedMap::expectedMagic;
  map.rank = static_cast<uint8_t>(values.rank);
  map.elementBytes = static_cast<uint8_t>(elementBytes(values.type));
  map.swizzle = static_cast<uint8_t>(values.swizzle);
  map.operand = static_cast<uint8_t>(values.operand);
  map.address = values.address;
  for (uint32_t d = 0; d < values.rank; ++d) {
    if (values.extents[d] < 1 || values.extents[d] > (uint64_t(1) << 32))
      return refuse(
          fmt::format("extent {} of dimension {} is not 1 to 2^32", values.extents[d], d));
    if (values.box[d] < 1 || values.box[d] > 256)
      return refuse(fmt::format("box extent {} of dimension {} is not 1 to 256", values.box[d], d));
    if (d > 0 && (values.strideBytes[d - 1] % 16 || values.strideBytes[d - 1] >> 40))
      return refuse(
          fmt::format("stride of {} bytes of dimension {} is not a multiple of 16 below 2^40",
                      values.strideBytes[d - 1], d));
    map.extents[d] = values.extents[d];
    map.box[d] = static_cast<uint16_t>(values.box[d]);
    if (d > 0)
      map.strideBytes[d - 1] = values.strideBytes[d - 1];
  }
  const int inner = map.box[0] * map.elementBytes;
  if (inner % 16)
    return refuse(fmt::format("inner box of {} bytes is not a multiple of 16", inner));
  if (const int span = spanOf(map.swizzle); span && inner != span)
    return refuse(
        fmt::format("inner box of {} bytes under a swizzle of {} bytes: the emulator models "
                    "only boxes as wide as the swizzle",
                    inner, span));
  TensorMap packed = {};
  std::memcpy(&packed, &map, sizeof map);
  return packed;
}

PackedMap unpackTensorMap(const TensorMap &map) {
  PackedMap packed;
  std::memcpy(static_cast<void *>(&packed), &map, sizeof packed);
  return packed;
}

/// Distance of the box's first element from the tensor's, which may be negative.
static int64_t startOffset(const PackedMap &map, const int *coordinates) {
  int64_t offset = int64_t(coordinates[0]) * map.elementBytes;
  for (int d = 1; d < map.rank; ++d)
    offset += int64_t(coordinates[d]) * int64_t(map.strideBytes[d - 1]);
  return offset;
}

int swizzleSpan(const PackedMap &map) { return spanOf(map.swizzle); }

Text refuseBox(const PackedMap &map, const int *coordinates, int rank, int shared, BoxUse use) {
  if (map.magic != PackedMap::expectedMagic)
    return "the tensor map was not made by the emulator";
  if (map.rank != rank)
    return Text::format("a {} of rank {} uses a tensor map of rank {}",
                        use == BoxUse::Load ? "load" : "store", rank, map.rank);
  if (shared % 128)
    return Text::format("{} {} is not 128-byte aligned",
                        use == BoxUse::Load ? "destination" : "source",
                        SharedMemory::place(shared));
  if (const int64_t start = startOffset(map, coordinates); (map.address + start) % 16)
    return Text::format(
        "the box starts {} bytes into the tensor: its start address is not a multiple of "
        "16 (an illegal instruction on the GPU)",
        start);
  for (int d = 0; d < rank && use == BoxUse::Store; ++d)
    if (coordinates[d] < 0)
      return Text::format("coordinate {} of dimension {} is negative: a store may reach past the "
                          "end of a tensor, not begin before it (an illegal instruction on the "
                          "GPU)",
                          coordinates[d], d);
  return {};
}

int boxRows(const PackedMap &map) {
  int rows = 1;
  for (int d = 1; d < map.rank; ++d)
    rows *= map.box[d];
  return rows;
}

BoxRow boxRow(const PackedMap &map, const int *coordinates, int row) {
  int64_t offset = startOffset(map, coordinates);
  int rest = row;
  for (int d = 1; d < map.rank; ++d) {
    const int step = rest % map.box[d];
    rest /= map.box[d];
    const int64_t c = int64_t(coordinates[d]) + step;
    if (c < 0 || c >= int64_t(map.extents[d]))
      return {};
    offset += step * int64_t(map.strideBytes[d - 1]);
  }
  const int64_t first = std::max<int64_t>(0, -int64_t(coordinates[0]));
  const int64_t last = std::min<int64_t>(map.box[0], int64_t(map.extents[0]) - coordinates[0]);
  if (last <= first)
    return {};
  return {offset + first * map.elementBytes, offset + last * map.elementBytes};
}

BoxRow storedRow(const PackedMap &map, const int *coordinates, int row) {
  BoxRow inside = boxRow(map, coordinates, row);
  // A box starts at a multiple of 16 bytes, and so is its width.
  inside.end = inside.begin + (inside.end - inside.begin + 15) / 16 * 16;
  return inside;
}

void copyBox(const PackedMap &map, const std::array<int, 5> &coordinates, SharedMemory &shared,
             int dst) {
  const int inner = map.box[0] * map.elementBytes;
  const int span = spanOf(map.swizzle);
  const auto *tensor = reinterpret_cast<const uint8_t *>(map.address);
  const int rows = boxRows(map);
  alignas(16) uint8_t row[256 * 8];
  for (int r = 0; r < rows; ++r) {
    const BoxRow inside = boxRow(map, coordinates.data(), r);
    std::memset(row, 0, inner);
    // The row of the box begins where its coordinates say, inside the tensor or not.
    const int64_t skipped = std::max<int64_t>(0, -int64_t(coordinates[0])) * map.elementBytes;
    if (inside.end > inside.begin)
      std::memcpy(row + skipped, tensor + inside.begin, inside.end - inside.begin);
    const int rowAddress = dst + r * inner;
    if (span == 0) {
      std::memcpy(shared.at(rowAddress), row, inner);
      continue;
    }
    for (int c = 0; c < inner; c += 16)
      std::memcpy(shared.at(swizzled(rowAddress + c, span)), row + c, 16);
  }
}

} // namespace moejit::emulated

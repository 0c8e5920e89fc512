// From a tensor-map recipe and the tensors of one launch to the numbers of a CUtensorMap. Our own
// checks come first, so that a refusal names the operand; encoding into 128 bytes is left to the
// driver (encodeTensorMap) or the emulator.
#pragma once

#include "runtime/Artifact.h"

#include <array>
#include <cstdint>

namespace moejit {

struct DriverApi;
struct GemmArguments;

/// The numbers of one tiled tensor map; dimension 0 is the contiguous one. Entries at or past
/// `rank` are unused.
struct TensorMapValues {
  static constexpr uint32_t maxRank = 5;

  Operand operand = Operand::X;
  ElementType type = ElementType::F8E4M3FN;
  Swizzle swizzle = Swizzle::None;
  uint32_t rank = 0;
  uint64_t address = 0;                       ///< a multiple of 16
  std::array<uint64_t, maxRank> extents = {}; ///< elements, 1 to 2^32
  std::array<uint64_t, maxRank - 1> strideBytes =
      {}; ///< of dimensions 1 to rank - 1; multiples of 16, below 2^40
  std::array<uint32_t, maxRank> box = {}; ///< elements, 1 to 256
  bool operator==(const TensorMapValues &) const = default;
};

/// A CUtensorMap, as the driver wants it.
struct alignas(64) TensorMapBytes {
  std::array<uint64_t, 16> words = {};
};

/// Fills `recipe` in with the address, row count and strides of one launch. Extents of 0 become 1:
/// such a launch launches nothing, but its map must still encode. Checks what
/// cuTensorMapEncodeTiled requires (CUDA Driver API, tensor map object management). Errors:
/// InvalidArgument naming the operand, the value and the limit.
Result<TensorMapValues> resolveTensorMap(const Spec &spec, const TensorMapRecipe &recipe,
                                         const GemmArguments &arguments);

/// Encodes `values` with the driver's cuTensorMapEncodeTiled: no interleave, unit element strides,
/// 256-byte L2 promotion, zero fill out of bounds. Errors: DriverError naming the CUresult and the
/// operand.
Result<TensorMapBytes> encodeTensorMap(const DriverApi &driver, const TensorMapValues &values);

} // namespace moejit

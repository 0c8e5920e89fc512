// A compiled kernel and all that is needed to launch it without a compiler: launch data, cubin,
// PTX, source, keys.
#pragma once

#include "runtime/Result.h"
#include "runtime/Spec.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace moejit {

/// A tensor a launch is given.
enum class Operand : uint8_t {
  X,
  XScales,
  W,
  WScales,
  Offsets,
  ExpertIds,
  Counts,
  ExpertMap,
  Y,
  Workspace,
  Errors, ///< of a checked kernel: i64 [errorWords] (runtime/Checks.h)
  // Scratch, regions of the workspace (isScratch).
  Counters,        ///< i32 by which blocks share work out
  XQuantized,      ///< x of Spec::xType, which the launch made of its x
  XQuantizedScales ///< the scales of XQuantized, as quantizedGemm(spec) lays them out
};
inline constexpr Operand lastOperand = Operand::XQuantizedScales;
/// Whether `operand` is no tensor of the caller's but a region of the workspace.
constexpr bool isScratch(Operand operand) {
  return operand == Operand::Workspace || operand >= Operand::Counters;
}
const char *operandName(Operand operand);

/// A number of a launch: a constant, the row count, or an operand's row stride in bytes.
struct LaunchValue {
  enum class Kind : uint8_t { Constant, Rows, StrideBytes };
  Kind kind = Kind::Constant;
  int64_t constant = 0;         ///< Kind::Constant: the value
  Operand operand = Operand::X; ///< Kind::StrideBytes: whose row stride
  bool operator==(const LaunchValue &) const = default;
};

enum class Swizzle : uint8_t { None, B32, B64, B128 };

/// How the host builds one CUtensorMap (cuTensorMapEncodeTiled). Dimension 0 is the contiguous one.
struct TensorMapRecipe {
  Operand operand = Operand::X;
  ElementType type = ElementType::F8E4M3FN;
  std::vector<LaunchValue> extents;     ///< elements, rank 1 to 5
  std::vector<LaunchValue> strideBytes; ///< rank - 1 entries, multiples of 16
  std::vector<uint32_t> box;            ///< elements, each 1 to 256; inner bytes a multiple of 16
  Swizzle swizzle = Swizzle::None;
  bool operator==(const TensorMapRecipe &) const = default;
};

/// One parameter of the kernel function, in order.
struct KernelParameter {
  enum class Kind : uint8_t {
    TensorMap, ///< 128 bytes, by value, from `recipe`
    Pointer,   ///< device address of `operand`
    Rows,      ///< i32: S
    Stride,    ///< i64: row stride of `operand` in elements
  };
  Kind kind = Kind::Pointer;
  uint32_t recipe = 0; ///< index into LaunchData::tensorMaps
  Operand operand = Operand::X;
  bool operator==(const KernelParameter &) const = default;
};

/// Blocks of a launch: min(SM count · blocksPerSm, tiles that `rows` can need), a multiple of the
/// cluster. Tiles needed = (ceil(rows / tileM) + min(numExperts, rows) + zeroed) · ceil(n / tileN),
/// where `zeroed` is 2 when rows that no expert owns are zeroed (some lie before the first expert,
/// some after the last), else 0.
struct GridRule {
  int64_t tileM = 0;
  int64_t tileN = 0;
  int64_t n = 0; ///< columns; where blocks share a tile, whole tiles for each of them
  int64_t numExperts = 1;
  int64_t blocksPerSm = 1;
  bool operator==(const GridRule &) const = default;
};

/// A part of the workspace, for one scratch operand of the kernel. Regions lie one after the other
/// in their order, each on a multiple of 128 bytes, those that are not zeroed from byte 256 on:
/// what one kernel leaves zero no other writes.
struct WorkspaceRegion {
  static constexpr uint64_t alignBytes = 128, unzeroedFrom = 2 * alignBytes;
  static constexpr uint64_t maxBytes = uint64_t(1) << 40, maxRowBytes = uint64_t(1) << 30;

  Operand operand = Operand::Workspace; ///< Workspace: the counter of the tile queue
  uint64_t bytes = 0;                   ///< at most maxBytes
  uint64_t rowBytes = 0;                ///< as many more for each row of the launch
  bool isZeroed = false; ///< zeroed in-stream before the kernel; such regions come first
  bool operator==(const WorkspaceRegion &) const = default;
};

struct LaunchData {
  std::string entry = "moejit_kernel"; ///< symbol in the cubin
  GridRule grid;
  uint32_t threads = 0;
  uint32_t cluster = 1;
  uint32_t sharedBytes = 0; ///< dynamic shared memory
  /// The kernel leaves the zeroed regions of its workspace zero, as it wants to find them.
  bool cleansWorkspace = false;
  /// Every thread waits for the kernels before (griddepcontrol.wait) ahead of its first access to
  /// global memory: the launch asks for programmatic stream serialization.
  bool dependentLaunch = false;
  std::vector<WorkspaceRegion> workspace; ///< caller-owned memory
  std::vector<TensorMapRecipe> tensorMaps;
  std::vector<KernelParameter> parameters;
  bool operator==(const LaunchData &) const = default;
};

/// Bytes of workspace that a launch over `rows` rows needs.
uint64_t workspaceBytes(const LaunchData &launch, int64_t rows);
/// Bytes by which that grows with every row, apart from what alignment takes.
uint64_t workspaceBytesPerRow(const LaunchData &launch);
/// Bytes at the start of the workspace that are zeroed before the kernel: all zeroed regions.
uint64_t zeroedBytes(const LaunchData &launch);
/// Where the region of `operand` begins in the workspace of a launch over `rows` rows, and its
/// bytes; zeros when there is none.
struct RegionPlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
RegionPlace regionPlace(const LaunchData &launch, Operand operand, int64_t rows);

/// What ptxas reported.
struct ResourceUsage {
  uint32_t registers = 0;
  uint32_t spillStoreBytes = 0;
  uint32_t spillLoadBytes = 0;
  uint32_t stackBytes = 0;
  uint32_t staticSharedBytes = 0;
  bool operator==(const ResourceUsage &) const = default;
};

struct Artifact {
  static constexpr uint32_t formatMajor = 2;
  static constexpr uint32_t formatMinor = 1;

  Spec spec;
  std::string lookupKey; ///< full text
  std::string buildKey;  ///< full text; its SHA-256 names the entry
  std::string arch;      ///< sm_90a
  std::string planText;
  std::string nvrtcVersion; ///< "13.0"
  uint32_t minDriver = 0;   ///< least CUDA driver version as cuDriverGetVersion counts (13000)
  LaunchData launch;
  ResourceUsage resources;
  std::string cubin;
  std::string ptx;
  std::string source; ///< the CUDA C++ translation unit
  std::string compileLog;
  bool operator==(const Artifact &) const = default;
};

/// Bytes of `artifact`: magic, format, payload length, a SHA-256 over format, length and payload,
/// then the payload: tagged, length-prefixed, little-endian fields.
std::string serialize(const Artifact &artifact);
/// Reads what serialize wrote. Never crashes on hostile bytes. Errors: ParseError saying what is
/// damaged.
Result<Artifact> deserialize(std::string_view bytes);

} // namespace moejit

// The tensors of one launch, the checks they must pass, and the numbers a launcher needs. Shared by
// the GPU launcher and the emulator; touches no device and reads none of the data.
#pragma once

#include "runtime/Artifact.h"
#include "runtime/TensorMap.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace moejit {

/// A tensor in device memory (host memory for the emulator). Not owned.
struct TensorArgument {
  void *data = nullptr;
  int64_t rowStride = 0; ///< elements from one row to the next; 0: packed
};

/// What one launch of an expert GEMM works on. Unused operands stay null.
struct GemmArguments {
  TensorArgument x;         ///< [rows, K]
  TensorArgument xScales;   ///< as Spec::xScales lays them out; `rowStride` counts stored rows
  TensorArgument w;         ///< [E, N, K], contiguous
  TensorArgument wScales;   ///< as Spec::wScales lays them out
  TensorArgument offsets;   ///< grouped: i32 [E + 1]
  TensorArgument expertIds; ///< batched: i32 [rows]
  TensorArgument counts;    ///< masked: i32 [E]
  TensorArgument expertMap; ///< batched with a map: i32
  TensorArgument y;         ///< [rows, N]
  /// checked kernels: i64 [errorWords], zeroed by the caller; read it with describeChecks
  /// (runtime/Checks.h) once the launch has finished. Words of several launches add up.
  TensorArgument errors;
  int64_t rows = 0; ///< S; for masked all rows of the buffers, E · Mmax
  void *workspace =
      nullptr; ///< workspaceBytes(launch, rows) bytes; belongs to this launch until it has finished
  size_t workspaceBytes = 0;
  /// The words of the workspace that a launch zeroes are zero already: the caller zeroed all of it
  /// once, and it has since been used only by launches of kernels that leave them zero
  /// (LaunchData::cleansWorkspace, or nothing zeroed at all), each ended before the next begins.
  /// Then nothing is zeroed before such a kernel; others zero their words all the same.
  bool workspaceIsClean = false;
  int64_t smLimit = 0; ///< most SMs the launch may occupy; 0: all
};

/// The member of GemmArguments that is `operand`; null for the workspace and its regions.
TensorArgument GemmArguments::*memberOf(Operand operand);
/// The tensor `operand` of `arguments`. A scratch operand gives the whole workspace.
TensorArgument tensorOf(const GemmArguments &arguments, Operand operand);

/// Whether a launch of `spec` writes `operand`, which is no scratch: y, the error words, and the
/// scales that a quantization computes.
bool isOutput(const Spec &spec, Operand operand);

/// How an operand lies in memory, as `rows` stored rows of `columns` elements.
struct OperandLayout {
  int64_t rows = 0;         ///< stored rows; 0 when the extent is not known to the host (expertMap)
  int64_t columns = 0;      ///< elements of one stored row
  int64_t packedStride = 0; ///< elements from row to row when the argument says 0
  int64_t elementBytes = 0;
  int64_t alignBytes = 0; ///< of the address
  int64_t strideAlignBytes = 0;
};

/// The layout of `operand` in a launch of `spec` over `rows` rows. Pure.
OperandLayout operandLayout(const Spec &spec, Operand operand, int64_t rows);

/// The row stride of `operand` in elements: the argument's own, or the packed one where that is 0
/// or there is one row only.
int64_t rowStrideElements(const Spec &spec, const GemmArguments &arguments, Operand operand);
/// The same of `tensor`, which lies as `layout` says.
int64_t rowStrideElements(const TensorArgument &tensor, const OperandLayout &layout);

/// Most rows of one launch. Kernels count rows in i32, round them up to whole tiles of at most 256
/// rows, and add the phase of a granule of rows, which is below 2^20 (MJ022).
inline constexpr int64_t maxLaunchRows = INT32_MAX - (1 << 20) - 255;

/// Refuses what a launch could not survive: a null pointer of an operand the kernel reads,
/// misaligned addresses and strides, strides that are too small or that the kernel does not take,
/// y, errors or the workspace overlapping another operand, more than maxLaunchRows rows, a missing
/// workspace.
/// rows = 0 succeeds with null pointers. Errors: InvalidArgument naming the operand, the value and
/// the limit.
Result<void> checkArguments(const Spec &spec, const LaunchData &launch,
                            const GemmArguments &arguments);

/// Most tensor maps and parameters of a kernel: a launch keeps them on its stack. PTX has room for
/// 4 KiB of parameters, a map being 128 bytes of it.
inline constexpr size_t maxTensorMaps = 16, maxKernelParameters = 64;

/// One parameter of the kernel, ready to be passed by address.
struct LaunchParameter {
  KernelParameter::Kind kind = KernelParameter::Kind::Pointer;
  uint32_t tensorMap = 0; ///< Kind::TensorMap: index into LaunchPlan::tensorMaps
  uint64_t value = 0;     ///< otherwise: the pointer, the i32 or the i64, little-endian
};

/// All numbers of one launch. `blocks` 0: there is nothing to launch.
struct LaunchPlan {
  uint32_t blocks = 0; ///< a multiple of `cluster`
  uint32_t threads = 0;
  uint32_t cluster = 1;
  uint32_t sharedBytes = 0;
  uint64_t zeroedBytes = 0; ///< of the workspace, to be zeroed in-stream before the kernel; 0
                            ///< where they are zero
  void *workspace = nullptr;
  std::vector<TensorMapValues> tensorMaps; ///< in the order of LaunchData::tensorMaps
  std::vector<LaunchParameter> parameters; ///< in the order of LaunchData::parameters
};

/// Blocks of a launch by GridRule, on `smCount` SMs of which at most `smLimit` (0: all) may be
/// used. Errors: InvalidArgument when the limit is less than one cluster.
Result<uint32_t> gridBlocks(const Spec &spec, const LaunchData &launch, int64_t rows,
                            int64_t smCount, int64_t smLimit);

/// Checks `arguments`, then computes the grid, the tensor maps and the parameters. Errors: those of
/// checkArguments and resolveTensorMap; ParseError for launch data that cannot be launched.
Result<LaunchPlan> prepareLaunch(const Artifact &artifact, const GemmArguments &arguments,
                                 int64_t smCount);

} // namespace moejit

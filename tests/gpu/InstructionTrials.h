// Launches of single instructions: hand-written kernels (tests/gpu/instructions), random operands,
// and what of the results must be equal on a GPU and on the emulator. Launches nothing.
#pragma once

#include "runtime/TensorMap.h"

#include <cstdint>
#include <string>
#include <vector>

namespace moejit::gpu {

/// A printed kernel.
struct InstructionUnit {
  const char *name;
  const char *source;
};
/// Those of tests/gpu/instructions.
const std::vector<InstructionUnit> &instructionUnits();

/// A parameter of a kernel.
struct TrialArgument {
  enum class Kind { Pointer, Map, Integer } kind = Kind::Pointer;
  size_t buffer = 0;   ///< of a pointer or a map
  TensorMapValues map; ///< all but the address
  int32_t integer = 0;
};

struct TrialGrid {
  std::string unit;
  uint32_t blocks = 1;
  uint32_t threads = 32;
  uint32_t sharedBytes = 0;
  std::vector<TrialArgument> arguments;
};

struct TrialBuffer {
  std::string name;
  std::vector<uint8_t> bytes; ///< before the launch
  bool isWritten = false;     ///< kernels may write it
  /// Of a buffer of floats whose sums are not specified: how far apart the two results of each may
  /// be. Empty: the bytes are equal.
  std::vector<float> bounds;
};

/// One grid, or two of which the second is launched with programmatic stream serialization.
struct Trial {
  std::string name;
  std::vector<TrialBuffer> buffers;
  std::vector<TrialGrid> grids;
};

/// Each instruction with `rounds` sets of operands.
std::vector<Trial> makeTrials(int rounds);

/// How far apart two sums of mma.sync may be: this part of |c| + Σ |a · b|. See docs/emulator.md.
constexpr float mmaBound = 0x1p-20f;

} // namespace moejit::gpu

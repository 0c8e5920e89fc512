// Quantizations on a GPU: every kernel of the bundle at the edges, bit for bit what the oracle
// says, and how near to a plain copy they come.
#pragma once

#include "runtime/Jit.h"
#include "tests/gpu/Cases.h"
#include "tests/gpu/Device.h"
#include "tests/gpu/LaunchTests.h"
#include "tests/gpu/Report.h"
#include "tests/oracle/Quantization.h"

#include <string>
#include <vector>

namespace moejit::gpu {

/// One number of rows, and how the operands lie.
struct QuantizeLaunch {
  std::string name;
  int64_t rows = 0;
  oracle::QuantizeOptions options;
  bool isQuick = false;
};

/// No row, one, some with gaps between rows of everything, more tiles than blocks.
const std::vector<QuantizeLaunch> &quantizeLaunches();

/// Whether `entry` is run, in a quick run or a whole one.
bool isQuantizeCase(const Case &entry, bool isQuick);

/// Launches `entry` by the kernel for `expectedRows` and compares. Sets ok, compared and text of
/// `outcome`. `separate`: every tensor has an allocation of its exact size, for memory checkers.
void runQuantization(const Device &device, JitHandle &handle, const Case &entry,
                     const QuantizeLaunch &launch, int64_t expectedRows, bool separate,
                     uint64_t seed, Outcome &outcome);

/// Launch test: bytes a second of the catalogue's quantizations beside a copy on the device that
/// moves as many bytes.
Result<std::string> quantizeBandwidth(const LaunchContext &context);

} // namespace moejit::gpu

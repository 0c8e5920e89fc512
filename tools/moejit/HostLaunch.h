// The operands of one launch on the host, of a GEMM or of a quantization: what the emulator and a
// GPU need to run it.
#pragma once

#include "runtime/Arguments.h"
#include "tests/oracle/Problem.h"
#include "tests/oracle/Quantization.h"

#include <span>
#include <vector>

namespace moejit::tool {

/// One operand as bytes, which belong to the problem or to HostLaunch::storage.
struct OperandBytes {
  Operand operand;
  void *data; ///< outputs begin with canaries
  size_t bytes;
  int64_t rowStride;      ///< as TensorArgument counts
  size_t offsetBytes = 0; ///< where row 0 begins
  bool isOutput = false;  ///< the launch writes it
};

struct HostLaunch {
  int64_t rows = 0;
  std::vector<OperandBytes> operands;
  std::vector<std::vector<uint8_t>> storage; ///< operands that had to be converted
};

/// The launch of a GEMM; `errors`, the error words of a checked kernel, are raised. The arguments
/// outlive the result.
HostLaunch launchOf(oracle::HostProblem &problem, oracle::HostOutput &output,
                    std::span<int64_t> errors);
/// The launch of a quantization. The arguments outlive the result.
HostLaunch launchOf(oracle::QuantizeProblem &problem, oracle::QuantizeOutput &output);

} // namespace moejit::tool

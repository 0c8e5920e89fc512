// A model of a right kernel on real hardware, for testing the bound: fp8 wgmma that keeps 13
// fraction bits, fp32 promotion, rounding to the output type. Slow and plain; not an emulator of
// kernels.
#pragma once

#include "tests/oracle/Problem.h"

namespace moejit::oracle {

/// A defect to build into the model, so that tests can see the comparison fail.
enum class Defect {
  None,
  DropsLastK,      ///< the last 32 of K are not added
  SwapsXScales,    ///< each row is scaled by its neighbour's scale
  SwapsWScales,    ///< each K block is scaled by its neighbour's
  ReadsNextExpert, ///< row 0 of each expert uses the weights of the next one
  WritesUnowned,   ///< writes 1 into a row that nobody owns
  WritesPastRow,   ///< writes an element past N
};

/// What a kernel that follows the model writes for `problem` with row granules of 1 and e4m3
/// operands.
HostOutput runModel(const HostProblem &problem, Defect defect = Defect::None);

} // namespace moejit::oracle

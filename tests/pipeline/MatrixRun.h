// Takes kernels of the matrix to values on the emulator.
#pragma once

#include "tests/pipeline/MatrixCensus.h"

#include <cstdint>
#include <string>

namespace moejit::test::matrix {

/// What came of one kernel.
struct KernelOutcome {
  Spec spec;
  std::string plan;
  std::string wrong; ///< empty: compiled, and every launch right
  bool isCompiled = false;
  int64_t launches = 0;
  int64_t elements = 0;
  double worstRatio = 0; ///< of the worst element to its bound
};

/// Compiles the kernel of `choice` to source.
KernelOutcome compileOne(const Choice &choice);
/// Compiles it, launches it over edge shapes, and compares every element with the oracle. `seed`
/// draws operands, and which of the edges a large matrix takes (all with `takesAll`).
KernelOutcome computeOne(const Choice &choice, uint64_t seed, bool takesAll);

/// Outcomes, added up.
struct Tally {
  int64_t kernels = 0, compiled = 0, launches = 0, elements = 0, failed = 0;
  double worstRatio = 0;
  std::string worst; ///< spec and plan of the kernel that has it

  void add(const KernelOutcome &outcome);
};

} // namespace moejit::test::matrix

// Counts what the rule table says to every combination of the matrix, chooses kernels that cover
// every legal pair of values, and takes them to values on the emulator.
#pragma once

#include "tests/pipeline/MatrixSpecs.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace moejit::test::matrix {

/// What the rules say to some of the combinations.
struct Census {
  int64_t combinations = 0;
  std::map<std::string, int64_t> refused; ///< by the first rule that refuses
  std::vector<Choice> legal;

  void add(const Census &other);
};

/// Asks the rules about every `step`-th combination of layouts from `first` on. Every refusal names
/// a rule of the table; anything else is a failure, in `problem`.
Census takeCensus(int64_t first, int64_t step, std::string &problem);

/// A set of legal choices in which every pair of values occurs that some member of `legal` has.
/// Greedy: of 300 members, the one with most pairs that are in none yet. The same set on every
/// machine.
std::vector<Choice> coveringSet(const std::vector<Choice> &legal);

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

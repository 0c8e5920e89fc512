// Counts what the rule table says to every combination of the matrix, and chooses kernels that
// cover every legal pair of values. Compiles and runs nothing.
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

} // namespace moejit::test::matrix

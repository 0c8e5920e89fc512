// The faults that change nothing: a list in the tree, with a reason for each.
#pragma once

#include "tests/mutation/Mutants.h"

#include <string>
#include <vector>

namespace moejit::mutation {

/// One entry of equivalents.txt.
struct Equivalent {
  std::string kernel; ///< regular expressions, which match the whole of each
  std::string kind;
  std::string text;
  std::string change;
  int most = 0; ///< faults of one kernel that the entry may explain; 0: any number
  std::string reason;
  int line = 0; ///< in the file
};

/// Reads the file: `kernel | kind | text | change | most | reason` a line, `any` for 0; `#` starts
/// a comment. An entry that cannot be read is returned with an empty reason.
std::vector<Equivalent> readEquivalents(const std::string &path);
/// The number of the first entry that says why `mutant` of `kernel` changes nothing, or -1. `used`
/// counts, for this kernel, what each entry has explained so far.
int findEquivalent(const std::vector<Equivalent> &entries, const std::string &kernel,
                   const Mutant &mutant, std::vector<int> &used);

} // namespace moejit::mutation

// Turns a printed kernel into all its single-fault variants at once: one translation unit in which
// the variable `moejit_mutant` chooses the fault, so that a campaign compiles each kernel once.
// Knows the text the printer writes; runs nothing.
#pragma once

#include <string>
#include <vector>

namespace moejit::mutation {

/// What is altered. Every alteration of a kind is made wherever the text has one.
enum class Kind {
  Fence,     ///< a fence or a pin of registers is left out
  Wait,      ///< a wait is left out, or lets one more group of wgmmas be under way
  Phase,     ///< a wait for the other parity
  Arrive,    ///< an arrival is left out or made twice; expected bytes are not announced
  Commit,    ///< a group of wgmmas is not committed
  Barrier,   ///< threads do not meet
  Copy,      ///< a copy is left out, or one of its coordinates is off
  Store,     ///< a store is left out
  Other,     ///< any other call is left out
  Mask,      ///< a comparison is off by one or inverted, one side of an `and` is dropped
  Condition, ///< a guarded body runs always
  Constant,  ///< a constant is off by the unit its value has: offsets, strides, stage indices
  Loop,      ///< a loop leaves its first or last round out
};
constexpr int kindCount = static_cast<int>(Kind::Loop) + 1;
const char *kindName(Kind kind);

/// One single fault of a kernel.
struct Mutant {
  int number = 0; ///< value of `moejit_mutant` that makes it; 0 is the kernel as it is
  Kind kind = Kind::Other;
  int line = 0;       ///< of the printed source, from 1
  std::string text;   ///< that line, trimmed
  std::string change; ///< what is done to it: "left out", "49712 -> 49728"
};

/// Whether both make the same of the same kernel, as far as their texts tell; lines may differ.
bool isSameFault(const Mutant &a, const Mutant &b);

/// A kernel with its faults.
struct MutatedSource {
  std::string source; ///< defines `extern "C" int moejit_mutant`
  std::vector<Mutant> mutants;
  std::vector<std::string>
      unread; ///< statements in which no fault is made, as line numbers and text
};

/// Makes every single fault of the kernel in `source`, as printed by compiler/emit. Wrappers and
/// signature stay. Deterministic.
MutatedSource mutate(const std::string &source);

} // namespace moejit::mutation

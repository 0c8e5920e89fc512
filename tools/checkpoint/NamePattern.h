// Matches names of modules with the patterns that quantization configurations are written in. Takes
// time linear in the name's length for any pattern: patterns come from files of others.
#pragma once

#include "runtime/Result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace moejit::checkpoint {

/// A regular expression of Python's `re`, of the part that configurations use: literals, `.`,
/// classes, `\d \w \s` and their opposites, `\` before a punctuation mark, groups, `|`, `* + ?`,
/// `{m,n}` up to 64, `^` and `$`, and lazy forms, which match the same names. No look-around and no
/// references back.
class Regex {
public:
  /// Errors: InvalidArgument naming what is not understood.
  static Result<Regex> compile(std::string_view text);
  /// A beginning of `name` matches, as re.match says. Adds to `steps` what that took, about a
  /// nanosecond each.
  bool matchesStart(std::string_view name, uint64_t &steps) const;

private:
  friend class RegexCompiler;
  struct State {
    enum class Kind { Set, Split, Start, End, Accept } kind = Kind::Accept;
    int next = -1, other = -1;
    std::vector<bool> set; ///< 256 entries, of Kind::Set
  };
  std::vector<State> states;
  int start = 0;
};

/// `name` is matched by `pattern`, where `*` stands for anything, `?` for one character and `[…]`
/// for one of several (Python's fnmatch, without folding case). Adds to `steps` as Regex does.
bool matchesGlob(std::string_view pattern, std::string_view name, uint64_t &steps);

} // namespace moejit::checkpoint

// The command line: what each subcommand takes, its help, and reading it.
#pragma once

#include "runtime/Result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moejit::tool {

/// One option of a subcommand.
struct Option {
  const char *name;                       ///< "--emit"
  const char *value = nullptr;            ///< what it takes, such as "FILE"; null: nothing
  const char *help = "";                  ///< what it does, in a phrase
  const char *standard = nullptr;         ///< what holds without it
  std::vector<const char *> choices = {}; ///< the values there are; empty: any
};

class Arguments;

/// One subcommand.
struct Command {
  const char *name;
  const char *summary;     ///< one line, an imperative sentence
  const char *usage;       ///< what follows the name
  const char *description; ///< paragraphs, a line end after each; printed in lines that fit
  const char *examples;    ///< lines of shell and comments
  const char *exits;       ///< lines: which exit codes it gives, and when
  std::vector<Option> options;
  int (*run)(const Arguments &arguments);
};

/// Every subcommand, in the order the help lists them.
const std::vector<const Command *> &allCommands();
extern const Command compileCommand, runCommand, benchCommand, tuneCommand, explainCommand,
    aotCommand, cacheCommand, checkCommand, doctorCommand;

/// A command line that was read.
class Arguments {
public:
  bool has(std::string_view option) const { return given.contains(option); }
  /// The last value given; nothing when the option is absent.
  std::optional<std::string> value(std::string_view option) const;
  std::string valueOr(std::string_view option, std::string standard) const {
    return value(option).value_or(std::move(standard));
  }
  std::vector<std::string> values(std::string_view option) const;
  /// The value as a whole number from `least` to `most`. Errors: InvalidArgument.
  Result<std::optional<int64_t>> integer(std::string_view option, int64_t least,
                                         int64_t most) const;

  std::vector<std::string> words; ///< what is no option, in order

private:
  friend Result<Arguments> readArguments(const Command &, const std::vector<std::string> &);
  std::map<std::string, std::vector<std::string>, std::less<>> given;
};

/// Reads what follows the subcommand's name. Errors: InvalidArgument, naming the nearest option.
Result<Arguments> readArguments(const Command &command, const std::vector<std::string> &words);

/// The help of one subcommand, and of all.
std::string helpOf(const Command &command);
std::string helpOfAll();

/// The member of `known` that `word` was probably meant to be; nothing when none is near.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string> &known);

/// Options that several subcommands share.
std::vector<Option> withCommonOptions(std::vector<Option> own);
std::vector<Option> withExtentOptions(std::vector<Option> own);
/// --checked, of the subcommands that build kernels.
Option checkedOption();

} // namespace moejit::tool

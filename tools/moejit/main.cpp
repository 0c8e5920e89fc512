// The command moejit: picks the subcommand.
#include "compiler/generator_fingerprint.h"
#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>

namespace moejit::tool {

const std::vector<const Command *> &allCommands() {
  static const std::vector<const Command *> commands = {
      &compileCommand, &runCommand, &benchCommand, &tuneCommand,  &checkCommand,
      &explainCommand, &aotCommand, &cacheCommand, &doctorCommand};
  return commands;
}

static int dispatch(const std::vector<std::string> &words) {
  if (words.empty()) {
    std::fputs(helpOfAll().c_str(), stderr);
    return exitUnusable;
  }
  const std::string &name = words[0];
  auto named = [](const std::string &wanted) {
    auto found = std::find_if(allCommands().begin(), allCommands().end(),
                              [&](const Command *each) { return wanted == each->name; });
    return found == allCommands().end() ? nullptr : *found;
  };
  if (name == "--version")
    return print(fmt::format("moejit {} (generator {:.12}, MLIR {})\n", MOEJIT_VERSION,
                             generatorFingerprint, MOEJIT_MLIR_VERSION));
  if (name == "--help" || name == "-h" || name == "help") {
    const Command *about = words.size() > 1 ? named(words[1]) : nullptr;
    return print(about ? helpOf(*about) : helpOfAll());
  }
  const Command *command = named(name);
  bool isJson = std::find(words.begin(), words.end(), "--json") != words.end();
  if (!command) {
    std::vector<std::string> known;
    for (const Command *each : allCommands())
      known.push_back(each->name);
    std::optional<std::string> near = nearest(name, known);
    return fail(isJson, Error{ErrorCode::InvalidArgument,
                              fmt::format("no command '{}'{}", name,
                                          near ? fmt::format("; did you mean '{}'?", *near) : ""),
                              {fmt::format("the commands: {}", fmt::join(known, ", "))}});
  }
  std::vector<std::string> rest(words.begin() + 1, words.end());
  Result<Arguments> arguments = readArguments(*command, rest);
  if (!arguments)
    return fail(isJson, arguments.error());
  if (arguments->has("--help"))
    return print(helpOf(*command));
  return command->run(*arguments);
}

} // namespace moejit::tool

int main(int argc, char **argv) {
  // Nothing of moejit throws; the standard library may, above all for want of memory.
  try {
    return moejit::tool::dispatch(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::bad_alloc &) {
    std::fputs("error: out of memory\n", stderr);
    return moejit::tool::exitLacking;
  } catch (const std::exception &exception) {
    std::fputs(fmt::format("error: {}\n", exception.what()).c_str(), stderr);
    return moejit::tool::exitInternal;
  }
}

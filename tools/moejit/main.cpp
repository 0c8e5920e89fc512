// The command moejit: picks the subcommand.
#include "compiler/generator_fingerprint.h"
#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <new>

namespace moejit::tool {

const std::vector<const Command *> &allCommands() {
  static const std::vector<const Command *> commands = {
      &compileCommand, &runCommand, &benchCommand, &tuneCommand,  &checkCommand,
      &explainCommand, &aotCommand, &cacheCommand, &doctorCommand};
  return commands;
}

/// Takes the descriptors of standard streams that were closed: the next file that is opened would
/// get one, and what is printed would end in a kernel. Writing to stdout fails as it did.
static void takeClosedStreams() {
  for (int fd = 0; fd < 3; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      (void)open("/dev/null", fd == 1 ? O_RDONLY : O_RDWR); // the lowest free one is `fd`
}

static int dispatch(const std::vector<std::string> &words, bool isJson) {
  if (words.empty()) {
    std::fputs(helpOfAll().c_str(), stderr);
    return exitUnusable;
  }
  bool isHelp = words[0] == "--help" || words[0] == "-h" || words[0] == "help";
  if (isHelp && (words.size() == 1 || words[1][0] == '-'))
    return print(helpOfAll());
  const std::string &name = words[isHelp ? 1 : 0];
  auto named = [](const std::string &wanted) {
    auto found = std::find_if(allCommands().begin(), allCommands().end(),
                              [&](const Command *each) { return wanted == each->name; });
    return found == allCommands().end() ? nullptr : *found;
  };
  if (name == "--version")
    return print(fmt::format("moejit {} (generator {:.12}, MLIR {})\n", MOEJIT_VERSION,
                             generatorFingerprint, MOEJIT_MLIR_VERSION));
  const Command *command = named(name);
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
  if (isHelp)
    return print(helpOf(*command));
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
  using namespace moejit;
  tool::takeClosedStreams();
  // Of a file above the user's limit (ulimit -f) a write is to fail, and be told like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  bool isJson = std::find(words.begin(), words.end(), "--json") != words.end();
  // Nothing of moejit throws; the standard library may, above all for want of memory.
  try {
    return tool::dispatch(words, isJson);
  } catch (const std::bad_alloc &) {
    return tool::fail(isJson, Error{ErrorCode::Unavailable, "out of memory", {}});
  } catch (const std::exception &exception) {
    return tool::fail(isJson, Error{ErrorCode::Internal, exception.what(), {}});
  }
}

// Running the host compiler, and the folder of compiled units.
#include "runtime/emulator/Build.h"

#include "runtime/Sha256.h"
#include "runtime/emulator/Cluster.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace moejit {

EmulatedModule::~EmulatedModule() {
  if (handle)
    dlclose(handle);
}

namespace emulated {

static const unsigned char deviceText[] = {
#include "runtime/emulator/DeviceText.inc"
};

std::string deviceHeaderText() {
  return std::string(reinterpret_cast<const char *>(deviceText), sizeof deviceText);
}

/// The environment for programs. Without a PATH g++ is found all the same, and finds no cc1plus.
static std::vector<char *> programEnvironment() {
  static char standardPath[] = "PATH=/usr/bin:/bin";
  std::vector<char *> variables;
  bool hasPath = false;
  for (char **each = environ; each && *each; ++each) {
    variables.push_back(*each);
    hasPath = hasPath || std::strncmp(*each, "PATH=", 5) == 0;
  }
  if (!hasPath)
    variables.push_back(standardPath);
  variables.push_back(nullptr);
  return variables;
}

/// Runs a program with both outputs going to `logFile`. Returns its exit status, or -1.
static int runProgram(const std::vector<std::string> &words, const std::string &logFile) {
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, logFile.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = -1;
  const int failure = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(),
                                   programEnvironment().data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure)
    return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A name in `folder` no other thread or process uses.
static std::string temporaryName(const std::string &folder) {
  static std::atomic<unsigned> counter = 0;
  return fmt::format("{}/.{}-{}", folder, getpid(), counter++);
}

static Result<void> writeFile(const std::string &path, const std::string &text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    return Error{ErrorCode::IoError, fmt::format("cannot write {}", path)};
  return {};
}

/// Writes `text` to `path` unless it is there, by temporary file and rename.
static Result<void> putFile(const std::string &folder, const std::string &path,
                            const std::string &text) {
  std::error_code code;
  if (readAll(path) == text)
    return {};
  const std::string temporary = temporaryName(folder);
  if (Result<void> written = writeFile(temporary, text); !written)
    return written;
  std::filesystem::rename(temporary, path, code);
  if (code)
    return Error{ErrorCode::IoError, fmt::format("cannot rename to {}: {}", path, code.message())};
  return {};
}

/// Whether `compiler` with `flags` makes a shared object of `source`; `log` then holds what it
/// said. One that tells its version may still lack its back end, the assembler, the linker or the
/// library.
static bool canBuild(const std::string &compiler, const std::vector<std::string> &flags,
                     const std::string &source, const std::string &log) {
  const std::string unit = source + ".so";
  std::vector<std::string> words = {compiler, "-std=c++17", "-fPIC", "-shared", source, "-o", unit};
  words.insert(words.end(), flags.begin(), flags.end());
  const bool isBuilt = runProgram(words, log) == 0;
  unlink(unit.c_str());
  return isBuilt;
}

Result<HostCompiler> findCompiler(const std::string &wanted, const std::string &workFolder) {
  const std::string log = temporaryName(workFolder);
  const std::vector<std::string> names =
      wanted.empty() ? std::vector<std::string>{"c++", "g++", "clang++"} : std::vector{wanted};
  Result<HostCompiler> found =
      Error{ErrorCode::Unavailable,
            wanted.empty() ? "the emulator needs a C++ compiler: none of c++, g++ and clang++ runs"
                           : fmt::format("the compiler {} does not run", wanted)};
  const std::string trial = log + ".cpp";
  if (Result<void> written = writeFile(trial, "#include <utility>\n"); !written)
    return written.error();
  std::vector<std::string> broken; // that run and make nothing, and what they say
  for (const std::string &name : names) {
    if (runProgram({name, "--version"}, log) != 0)
      continue;
    HostCompiler compiler{name, readAll(log)};
    // g++ has it from version 12 on.
    compiler.setsVariables = canBuild(name, {"-ftrivial-auto-var-init=pattern"}, trial, log);
    if (compiler.setsVariables || canBuild(name, {}, trial, log)) {
      found = std::move(compiler);
      break;
    }
    std::string said = readAll(log);
    said.erase(said.find_last_not_of(" \n") + 1);
    broken.push_back(fmt::format("{}: {}", name, said));
  }
  unlink(log.c_str());
  unlink(trial.c_str());
  if (!found && !broken.empty())
    found = Error{ErrorCode::Unavailable,
                  wanted.empty() ? "the emulator needs a C++ compiler: of c++, g++ and clang++ "
                                   "none makes a shared object of a small file"
                                 : fmt::format("the compiler {} runs and makes no shared object of "
                                               "a small file",
                                               wanted),
                  std::move(broken)};
  return found;
}

Result<std::string> buildUnit(const HostCompiler &compiler, const std::string &workFolder,
                              const std::string &source) {
  std::vector<std::string> flags = {
      "-DMOEJIT_EMULATOR", "-O2", "-std=c++17", "-fPIC", "-g1", "-ffp-contract=off",
      "-fvisibility=hidden", "-w",
      // Device.h has what these call.
      "-fsanitize=signed-integer-overflow,integer-divide-by-zero,shift-exponent",
      "-fno-sanitize-recover=all",
      // A call at a kernel's end returns into the kernel too.
      "-fno-optimize-sibling-calls"};
  // Registers nobody has set hold no plausible value.
  if (compiler.setsVariables)
    flags.push_back("-ftrivial-auto-var-init=pattern");
  // g++ 12 undoes that where it splits arrays.
  if (compiler.version.find("Free Software Foundation") != std::string::npos)
    flags.push_back("-fno-tree-sra");
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma"))
    flags.push_back("-mfma");
#endif
  flags.insert(flags.end(), compiler.flags.begin(), compiler.flags.end());
  const std::string device = deviceHeaderText();
  const std::string deviceHash = sha256Hex(device).substr(0, 16);
  std::string key = fmt::format("{}\n{}\n{}\n", compiler.path, compiler.version, device);
  for (const std::string &flag : flags)
    key += flag + '\n';
  const std::string name = sha256Hex(key + source);
  const std::string result = fmt::format("{}/{}.so", workFolder, name);
  // Loading a unit that a crash cut short ends the process: it counts as absent.
  const std::string checksum = fmt::format("{}/{}.sha256", workFolder, name);
  std::error_code code;
  if (std::string unit = readAll(result); !unit.empty() && readAll(checksum) == sha256Hex(unit))
    return result;

  const std::string include = fmt::format("{}/include-{}", workFolder, deviceHash);
  const std::string headerFolder = include + "/runtime/emulator";
  std::filesystem::create_directories(headerFolder, code);
  if (code)
    return Error{ErrorCode::IoError,
                 fmt::format("cannot make {}: {}", headerFolder, code.message())};
  if (Result<void> put = putFile(headerFolder, headerFolder + "/Device.h", device); !put)
    return put.error();
  const std::string sourceFile = fmt::format("{}/{}.cpp", workFolder, name);
  if (Result<void> put = putFile(workFolder, sourceFile, source); !put)
    return put.error();

  const std::string object = temporaryName(workFolder);
  const std::string log = object + ".log";
  std::vector<std::string> words = {compiler.path};
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"-I", include, "-c", sourceFile, "-o", object + ".o"});
  int status = runProgram(words, log);
  // On its own, so that no runtime of the checks is linked.
  if (status == 0)
    status = runProgram({compiler.path, "-shared", object + ".o", "-o", object}, log);
  unlink((object + ".o").c_str());
  const std::string text = readAll(log);
  unlink(log.c_str());
  if (status != 0) {
    unlink(object.c_str());
    return Error{
        ErrorCode::CompileError,
        fmt::format("{} refuses the kernel for the emulator ({})", compiler.path, sourceFile),
        {text}};
  }
  const std::string digest = sha256Hex(readAll(object));
  std::filesystem::rename(object, result, code);
  if (code)
    return Error{ErrorCode::IoError,
                 fmt::format("cannot rename to {}: {}", result, code.message())};
  if (Result<void> put = putFile(workFolder, checksum, digest); !put)
    return put.error();
  return result;
}

std::string lineOf(const EmulatedModule &module, const void *site) {
  Dl_info unit;
  if (!site || dladdr(reinterpret_cast<const void *>(module.entry), &unit) == 0)
    return {};
  const std::string log = temporaryName(std::filesystem::path(module.path).parent_path());
  // The call ends where it returns to.
  const ptrdiff_t offset =
      static_cast<const char *>(site) - static_cast<const char *>(unit.dli_fbase) - 1;
  const int status =
      runProgram({"addr2line", "-i", "-e", module.path, fmt::format("{:#x}", offset)}, log);
  std::istringstream places(status == 0 ? readAll(log) : "");
  unlink(log.c_str());
  // From the innermost inlined function outwards: the first place in the kernel's own file.
  const std::string file = std::filesystem::path(module.path).stem().string() + ".cpp:";
  for (std::string place; std::getline(places, place);) {
    const size_t at = place.find(file);
    if (at == std::string::npos)
      continue;
    const int number = std::atoi(place.c_str() + at + file.size());
    // Beside the unit, wherever it was compiled.
    std::ifstream source(std::filesystem::path(module.path).replace_extension(".cpp"));
    std::string text;
    for (int i = 0; i < number; ++i)
      std::getline(source, text);
    text.erase(0, text.find_first_not_of(' '));
    return fmt::format("line {}: {}", number, text);
  }
  return {};
}

Result<std::shared_ptr<const EmulatedModule>> loadUnit(const std::string &path,
                                                       const std::string &entry) {
  auto module = std::make_shared<EmulatedModule>();
  module->path = path;
  module->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module->handle)
    return Error{ErrorCode::CompileError, fmt::format("cannot load {}: {}", path, dlerror())};
  void *function = dlsym(module->handle, (entry + "_emulated").c_str());
  void *parameter = dlsym(module->handle, (entry + "_parameter").c_str());
  if (!function || !parameter)
    return Error{ErrorCode::CompileError,
                 fmt::format("{} has no MOEJIT_EMULATED_KERNEL({})", path, entry)};
  module->entry = reinterpret_cast<decltype(module->entry)>(function);
  module->parameterBytes = reinterpret_cast<decltype(module->parameterBytes)>(parameter);
  module->entry(&deviceTable, nullptr);
  return std::shared_ptr<const EmulatedModule>(std::move(module));
}

} // namespace emulated
} // namespace moejit

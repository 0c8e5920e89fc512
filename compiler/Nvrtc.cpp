// Owns the door to NVRTC: finding and opening the library, one compilation, and reading its log.
#include "compiler/Nvrtc.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>

namespace moejit {

namespace {

using Program = struct ProgramState *;
using Status = int; // nvrtcResult; 0 is success

/// X(name, parameters): every function used, all of them returning nvrtcResult.
#define MOEJIT_NVRTC_SYMBOLS(X)                                                                    \
  X(nvrtcVersion, (int *, int *))                                                                  \
  X(nvrtcCreateProgram,                                                                            \
    (Program *, const char *, const char *, int, const char *const *, const char *const *))        \
  X(nvrtcDestroyProgram, (Program *))                                                              \
  X(nvrtcCompileProgram, (Program, int, const char *const *))                                      \
  X(nvrtcGetProgramLogSize, (Program, size_t *))                                                   \
  X(nvrtcGetProgramLog, (Program, char *))                                                         \
  X(nvrtcGetPTXSize, (Program, size_t *))                                                          \
  X(nvrtcGetPTX, (Program, char *))                                                                \
  X(nvrtcGetCUBINSize, (Program, size_t *))                                                        \
  X(nvrtcGetCUBIN, (Program, char *))

} // namespace

struct Nvrtc::Symbols {
#define MOEJIT_NVRTC_MEMBER(name, parameters) Status(*name) parameters = nullptr;
  MOEJIT_NVRTC_SYMBOLS(MOEJIT_NVRTC_MEMBER)
#undef MOEJIT_NVRTC_MEMBER
  const char *(*nvrtcGetErrorString)(Status) = nullptr;
};

//===- Opening --------------------------------------------------------------------------------===//

static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

/// The CUDA toolkits in their usual place, the newest name first.
static std::vector<std::string> toolkitFolders() {
  std::vector<std::string> folders;
  if (DIR *directory = opendir("/usr/local")) {
    while (const dirent *entry = readdir(directory))
      if (std::string_view(entry->d_name).substr(0, 4) == "cuda")
        folders.push_back("/usr/local/" + std::string(entry->d_name) + "/lib64");
    closedir(directory);
  }
  std::sort(folders.rbegin(), folders.rend());
  return folders;
}

static std::vector<std::string> candidates(const NvrtcOptions &options) {
  if (!options.libraryPath.empty())
    return {options.libraryPath};
  std::vector<std::string> paths(std::begin(sonames), std::end(sonames));
  std::vector<std::string> folders = toolkitFolders();
  folders.insert(folders.end(), options.folders.begin(), options.folders.end());
  for (const std::string &folder : folders)
    for (const char *soname : sonames)
      paths.push_back(folder + "/" + soname);
  return paths;
}

/// Whether the library in the file `path` ends before its segments do, as a full disk leaves it:
/// the loader maps such a file all the same, and dies of the first touch.
static bool isCutShort(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr head = {};
  bool isElf = file.read(reinterpret_cast<char *>(&head), sizeof head) &&
               std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
               head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phentsize == sizeof(Elf64_Phdr);
  if (!isElf)
    return false; // the loader says what it is
  file.seekg(0, std::ios::end);
  auto bytes = uint64_t(file.tellg());
  file.seekg(std::streamoff(head.e_phoff));
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    if (!file.read(reinterpret_cast<char *>(&segment), sizeof segment))
      return true;
    if (segment.p_type == PT_LOAD &&
        (segment.p_offset > bytes || segment.p_filesz > bytes - segment.p_offset))
      return true;
  }
  return false;
}

/// Null, and the reason in `reason`, unless `path` is an NVRTC with every function.
static std::shared_ptr<const Nvrtc::Symbols> loadSymbols(const std::string &path,
                                                         std::string &reason) {
  if (isCutShort(path)) {
    reason = path + ": the file is cut short";
    return nullptr;
  }
  // Never closed: NVRTC keeps threads and state of its own.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    reason = dlerror();
    return nullptr;
  }
  auto symbols = std::make_shared<Nvrtc::Symbols>();
  bool isComplete = true;
  auto load = [&](const char *name, auto &function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function || !isComplete)
      return;
    isComplete = false;
    reason = path + ": has no function " + name;
  };
#define MOEJIT_NVRTC_LOAD(name, parameters) load(#name, symbols->name);
  MOEJIT_NVRTC_SYMBOLS(MOEJIT_NVRTC_LOAD)
#undef MOEJIT_NVRTC_LOAD
  load("nvrtcGetErrorString", symbols->nvrtcGetErrorString);
  return isComplete ? symbols : nullptr;
}

/// Loads the built-ins of NVRTC `version` from beside it. NVRTC itself asks the loader for them by
/// name alone, which finds none, or those of another toolkit, when `path` is off the loader's path.
/// It says so if none are found.
static void loadBuiltins(const std::string &path, const std::string &version) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return;
  std::string builtins = path.substr(0, slash) + "/libnvrtc-builtins.so." + version;
  if (!isCutShort(builtins))
    dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
}

/// The one place where an nvrtcResult becomes an Error.
static Error nvrtcError(const Nvrtc::Symbols &symbols, Status status, const char *doing,
                        std::string log = {}) {
  constexpr Status invalidOption = 5, compilation = 6;
  bool isOurs = status != invalidOption && status != compilation;
  Error error{isOurs ? ErrorCode::Internal : ErrorCode::CompileError,
              std::string("NVRTC failed ") + doing + ": " + symbols.nvrtcGetErrorString(status)};
  if (!log.empty())
    error.notes.push_back(std::move(log));
  return error;
}

Result<Nvrtc> Nvrtc::open(const NvrtcOptions &options) {
  Error failure{ErrorCode::Unavailable, "NVRTC is not on this machine"};
  for (const std::string &path : candidates(options)) {
    std::string reason;
    Nvrtc nvrtc;
    nvrtc.symbols = loadSymbols(path, reason);
    if (!nvrtc.symbols) {
      failure.notes.push_back(std::move(reason));
      continue;
    }
    nvrtc.path = path;
    if (Status status = nvrtc.symbols->nvrtcVersion(&nvrtc.major, &nvrtc.minor))
      return nvrtcError(*nvrtc.symbols, status, "to tell its version");
    loadBuiltins(path, nvrtc.version());
    return nvrtc;
  }
  failure.notes.push_back("install the CUDA toolkit or the nvidia-cuda-nvrtc package, or give the "
                          "path of libnvrtc.so");
  return failure;
}

std::string Nvrtc::version() const { return std::to_string(major) + "." + std::to_string(minor); }

//===- Compiling ------------------------------------------------------------------------------===//

const std::vector<std::string> &Nvrtc::baseFlags() {
  // fmad=false: a fused multiply-add is an instruction of its own. The log of ptxas has the
  // resources.
  static const std::vector<std::string> flags = {"--std=c++17", "--fmad=false",
                                                 "--ptxas-options=-v"};
  return flags;
}

static bool isArchitecture(std::string_view arch) {
  return arch.substr(0, 3) == "sm_" && arch.size() >= 5 && arch.size() <= 9 &&
         std::all_of(arch.begin() + 3, arch.end(),
                     [](unsigned char c) { return std::isdigit(c) || std::islower(c); });
}

Result<NvrtcOutput> Nvrtc::compile(const std::string &source, std::string_view arch,
                                   const std::vector<std::string> &flags) const {
  if (!isArchitecture(arch))
    return Error{ErrorCode::InvalidArgument,
                 "an architecture reads like sm_90a, got '" + std::string(arch) + "'"};
  const Symbols &nvrtc = *symbols;
  Program program = nullptr;
  if (Status status = nvrtc.nvrtcCreateProgram(&program, source.c_str(), "moejit_kernel.cu", 0,
                                               nullptr, nullptr))
    return nvrtcError(nvrtc, status, "to take the source");
  struct Owner {
    const Symbols &nvrtc;
    Program program;
    ~Owner() { nvrtc.nvrtcDestroyProgram(&program); }
  } owner{nvrtc, program};

  std::vector<std::string> allFlags = baseFlags();
  allFlags.push_back("-arch=" + std::string(arch));
  allFlags.insert(allFlags.end(), flags.begin(), flags.end());
  std::vector<const char *> pointers;
  for (const std::string &flag : allFlags)
    pointers.push_back(flag.c_str());
  Status compiled =
      nvrtc.nvrtcCompileProgram(program, static_cast<int>(pointers.size()), pointers.data());

  Status status = 0;
  auto read = [&](auto getSize, auto get) {
    size_t size = 0;
    if (!status)
      status = getSize(program, &size);
    std::string bytes(status ? 0 : size, '\0');
    if (!status && size)
      status = get(program, bytes.data());
    return bytes;
  };
  auto withoutEnd = [](std::string text) { // sizes of texts count the final zero
    while (!text.empty() && text.back() == '\0')
      text.pop_back();
    return text;
  };
  NvrtcOutput output;
  output.log = withoutEnd(read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog));
  if (compiled)
    return nvrtcError(nvrtc, compiled, "to compile", std::move(output.log));
  output.ptx = withoutEnd(read(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX));
  output.cubin = read(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN);
  if (status)
    return nvrtcError(nvrtc, status, "to hand over its output");
  output.resources = parseResources(output.log);
  output.warnings = parsePerformanceWarnings(output.log);
  output.log = withoutTimes(output.log);
  output.versionMajor = major;
  output.versionMinor = minor;
  return output;
}

//===- The log --------------------------------------------------------------------------------===//

/// The number that stands right before `unit` in `line`, or `absent`.
static uint32_t numberBefore(std::string_view line, std::string_view unit, uint32_t absent) {
  size_t at = line.find(unit);
  if (at == std::string_view::npos || at == 0 || line[at - 1] != ' ')
    return absent;
  size_t end = at - 1, begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])))
    --begin;
  uint32_t number = absent;
  std::from_chars(line.data() + begin, line.data() + end, number);
  return number;
}

template <typename Function> static void forEachLine(std::string_view text, Function function) {
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    function(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

ResourceUsage parseResources(std::string_view log) {
  ResourceUsage used;
  forEachLine(log, [&](std::string_view line) {
    used.registers = numberBefore(line, "registers", used.registers);
    used.spillStoreBytes = numberBefore(line, "bytes spill stores", used.spillStoreBytes);
    used.spillLoadBytes = numberBefore(line, "bytes spill loads", used.spillLoadBytes);
    used.stackBytes = numberBefore(line, "bytes stack frame", used.stackBytes);
    used.staticSharedBytes = numberBefore(line, "bytes smem", used.staticSharedBytes);
  });
  return used;
}

std::string withoutTimes(std::string_view log) {
  std::string kept;
  forEachLine(log, [&](std::string_view line) {
    if (line.find("Compile time = ") == std::string_view::npos)
      kept.append(line).append("\n");
  });
  if (!kept.empty() && !log.ends_with('\n'))
    kept.pop_back();
  return kept;
}

std::vector<std::string> parsePerformanceWarnings(std::string_view log) {
  std::vector<std::string> warnings;
  forEachLine(log, [&](std::string_view line) {
    auto has = [&](std::string_view part) { return line.find(part) != std::string_view::npos; };
    // ptxas: C7508 ignores setmaxnreg; C7510 to C7518 serialise wgmma, for one reason each.
    bool isLoss = has("Potential Performance Loss") || has("(C7508)") ||
                  (has("setmaxnreg") && has("ignored")) || (has("wgmma") && has("serializ"));
    for (char digit = '0'; digit <= '8'; ++digit)
      isLoss = isLoss || has(std::string("(C751") + digit + ")");
    if (isLoss && std::find(warnings.begin(), warnings.end(), line) == warnings.end())
      warnings.emplace_back(line);
  });
  return warnings;
}

} // namespace moejit

// Compiles a printed translation unit to a shared object for the host, at most once for each
// source, and loads it.
#pragma once

#include "runtime/Result.h"
#include "runtime/emulator/DeviceTable.h"

#include <memory>
#include <string>
#include <vector>

namespace moejit {

/// A loaded shared object; unloaded with the last owner.
class EmulatedModule {
public:
  EmulatedModule() = default;
  EmulatedModule(const EmulatedModule &) = delete;
  EmulatedModule &operator=(const EmulatedModule &) = delete;
  ~EmulatedModule();

  void *handle = nullptr;
  std::string path;
  void (*entry)(const emulated::DeviceTable *, void **) = nullptr;
  int (*parameterBytes)(int) = nullptr;
};

namespace emulated {

/// A compiler that compiles and links, and what it says of itself.
struct HostCompiler {
  std::string path;
  std::string version;
  std::vector<std::string> flags = {}; ///< after the emulator's own
  bool setsVariables = true;           ///< whether it can give variables nobody has set a pattern
};

/// Tries `wanted`, or when it is empty the usual names on PATH, each on a small unit; writes only
/// in `workFolder`. Errors: Unavailable, with what compilers said that run and make nothing;
/// IoError.
Result<HostCompiler> findCompiler(const std::string &wanted, const std::string &workFolder);

/// The text of Device.h, which is built into this library.
std::string deviceHeaderText();

/// The shared object of `source` in `workFolder`, compiled unless it is there. Thread-safe, and
/// safe between processes (temporary file, then rename). Errors: CompileError with the compiler's
/// log; IoError.
Result<std::string> buildUnit(const HostCompiler &compiler, const std::string &workFolder,
                              const std::string &source);
/// The line of the kernel that called a wrapper which returns to `site`, and its text: `line 307:
/// st_global_v4(y, v82, vector);`. Empty when it is not to be had: it takes the program addr2line.
std::string lineOf(const EmulatedModule &module, const void *site);

/// Loads `path` and finds the entries of kernel `entry`. Errors: CompileError.
Result<std::shared_ptr<const EmulatedModule>> loadUnit(const std::string &path,
                                                       const std::string &entry);

} // namespace emulated
} // namespace moejit

// Owns the door to NVRTC: the library is found and opened when asked for, and compiles one
// translation unit held in memory. No include path, no toolkit header, no file is read.
#pragma once

#include "runtime/Artifact.h"
#include "runtime/Result.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace moejit {

struct NvrtcOptions {
  /// The library to open; empty: search. When given, nothing else is tried.
  std::string libraryPath = {};
  /// Folders searched last, such as the library folders of a Python environment's
  /// nvidia-cuda-nvrtc.
  std::vector<std::string> folders = {};
};

struct NvrtcOutput {
  std::string ptx;
  std::string cubin;
  std::string log;         ///< compiler and assembler messages, resources among them; no times
  ResourceUsage resources; ///< of the one kernel
  /// Lines of the log that mean lost speed: serialised wgmma, setmaxnreg ignored. The kernel is right
  /// all the same.
  std::vector<std::string> warnings;
  int versionMajor = 0;
  int versionMinor = 0;
};

/// An opened NVRTC. Cheap to copy; the library stays loaded for the life of the process.
/// Thread-safe.
class Nvrtc {
public:
  /// Opens `libraryPath`, or else the first of: libnvrtc.so.13, .12 and libnvrtc.so on the loader's
  /// path, the same in /usr/local/cuda*/lib64, the same in `folders`. Errors: Unavailable, with
  /// every attempt in its notes.
  static Result<Nvrtc> open(const NvrtcOptions &options);

  /// The options every compilation has, in order, without the architecture. Part of a kernel's key.
  static const std::vector<std::string> &baseFlags();

  /// Compiles `source` for `arch`, such as sm_90a, with baseFlags and `flags`. Errors: CompileError
  /// with the log in its notes; InvalidArgument when `arch` is malformed.
  Result<NvrtcOutput> compile(const std::string &source, std::string_view arch,
                              const std::vector<std::string> &flags = {}) const;

  int versionMajor() const { return major; }
  int versionMinor() const { return minor; }
  /// Such as "13.0".
  std::string version() const;
  /// What was opened.
  const std::string &libraryPath() const { return path; }

  struct Symbols;

private:
  std::shared_ptr<const Symbols> symbols;
  std::string path;
  int major = 0;
  int minor = 0;
};

/// What ptxas reported in `log` for its last kernel (`--ptxas-options=-v`). Zeros where it says
/// nothing.
ResourceUsage parseResources(std::string_view log);
/// `log` without the lines that say how long ptxas took: what is left is the same each time, and so
/// is the artifact that keeps it.
std::string withoutTimes(std::string_view log);
/// The lines of `log` that mean lost speed, once each, in order.
std::vector<std::string> parsePerformanceWarnings(std::string_view log);

} // namespace moejit

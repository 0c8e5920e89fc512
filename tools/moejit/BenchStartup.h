// What it takes until a kernel can be launched: compiling, finding, loading. Needs no GPU but for
// the last.
#pragma once

#include "tools/moejit/BenchRun.h"

#include <string>
#include <vector>

namespace moejit::tool {

/// Medians of one kernel.
struct StartupTimes {
  std::string kernel;
  int64_t rows = 0;
  double sourceMs = 0;  ///< passes and printing, up to the translation unit
  double compileMs = 0; ///< all of it, NVRTC included
  double diskMs = 0;    ///< a cache folder is opened, the kernel found and read
  double knownNs = 0;   ///< the kernel of a handle that has it
  double loadMs = 0;    ///< the binary into a context; 0 without a GPU
};

struct StartupOptions {
  int64_t repeats = 5;
  std::vector<int64_t> rowsPerExpert;
  KernelsOptions kernels;
  NvrtcOptions nvrtc;
};

/// Times every spec at every number of rows, with caches in a folder of its own that is removed
/// again. Ranges of one plan are timed once. Errors: Unavailable without NVRTC, those of compile.
Result<std::vector<StartupTimes>> measureStartup(const std::vector<BenchSpec> &specs,
                                                 const StartupOptions &options);

std::string startupText(const std::vector<StartupTimes> &times);
/// `{"format": 1, "startup": […]}`.
std::string startupJson(const std::vector<StartupTimes> &times);

} // namespace moejit::tool

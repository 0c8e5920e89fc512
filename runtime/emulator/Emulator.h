// The CPU emulator of printed kernels: compiles a CUDA C++ translation unit for the host and runs
// it, every CUDA thread a fiber, with the checks docs/emulator.md lists. For development: it turns
// text into host code and runs it.
#pragma once

#include "runtime/Arguments.h"
#include "runtime/Artifact.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace moejit {

struct EmulatorOptions {
  std::string compiler; ///< C++ compiler; empty: the first of c++, g++, clang++ that runs
  /// What `compiler --version` prints; empty: it is asked. With this and `compiler` given, none has
  /// to be there as long as the work folder holds every unit that is loaded.
  std::string compilerVersion;
  std::vector<std::string> compilerFlags; ///< after the emulator's own, such as -g and -O0
  std::string workFolder;            ///< compiled units are kept here; required, made when absent
  unsigned threads = 0;              ///< host threads for independent clusters; 0: one for each CPU
  int64_t smCount = 4;               ///< SMs of the emulated device: bounds the grid of launch()
  int64_t sharedBytesLimit = 232448; ///< dynamic shared memory a block may have
  size_t stackBytes = 128 << 10;     ///< of one emulated thread
  int loadLatency = 16;              ///< thread switches from a TMA load to its delivery
  int wgmmaLatency = 8; ///< thread switches from a whole group's commit to its completion
  uint64_t seed =
      0; ///< 0: round robin; else threads run in an order, and loads take times, drawn from it
  bool strictOperands =
      true; ///< unwritten operand bytes of a wgmma are an error; false: they count as NaN
  int64_t maxSteps = 0;    ///< thread switches of one cluster before it is stopped; 0: no limit
  double maxSeconds = 120; ///< of one launch; 0: no limit
};

/// What a launch did.
struct EmulatorReport {
  int64_t blocks = 0;
  int64_t steps = 0; ///< thread switches
  int64_t tmaLoads = 0;
  int64_t tmaBytes = 0;
  int64_t wgmmas = 0; ///< instructions, counted once for a warpgroup
  double seconds = 0;
};

/// Global memory a kernel may touch. Pointers it gets must lie in one of these; an access is
/// checked against the range its pointer lies in.
struct MemoryRange {
  std::string name; ///< for messages
  const void *base = nullptr;
  int64_t bytes = 0;
  bool writable = false;
  int64_t rowBytes =
      0; ///< of a matrix with gaps between its rows: bytes of a row that may be touched
  int64_t strideBytes = 0; ///< from row to row; 0: no gaps
  bool isScratch = false;  ///< it holds nothing at first but zeros in its first `zeroedBytes`
  int64_t zeroedBytes = 0;
};

/// A launch below the level of artifacts.
struct EmulatedLaunch {
  uint32_t blocks = 1;   ///< a multiple of `cluster`
  uint32_t threads = 32; ///< a multiple of 32, at most 1024
  uint32_t cluster = 1;
  uint32_t blocksPerSm = 1; ///< as in __launch_bounds__: bounds the registers a thread starts with
  int64_t sharedBytes = 0;
  /// Unwritten bytes of a wgmma's A count as NaN, strictOperands or not: the kernel gathers or
  /// loads only the rows it has, and drops the results of the others.
  bool gathersRows = false;
  /// The same of B: plans that swap operands multiply rows of x there.
  bool gathersColumns = false;
  std::vector<void *> arguments; ///< address of each parameter's value, in order
  std::vector<MemoryRange> ranges;
  bool storesOnce = false; ///< it is a fault to store a byte that another thread has stored
};

/// A compiled and loaded translation unit.
class EmulatedModule;

/// Thread-safe; launches may run at the same time.
class Emulator {
public:
  /// Finds the compiler. Errors: InvalidArgument without a work folder, Unavailable without a
  /// compiler.
  static Result<std::unique_ptr<Emulator>> create(EmulatorOptions options);
  virtual ~Emulator() = default;

  /// Runs `artifact` (its source) with `arguments` whose pointers are host memory: prepareLaunch,
  /// the workspace zeroed, then run(). Every operand's memory is bounded by the spec. Errors: those
  /// of prepareLaunch, load and run.
  virtual Result<EmulatorReport> launch(const Artifact &artifact,
                                        const GemmArguments &arguments) = 0;

  /// Runs two artifacts one after the other, as two Kernels launched on one stream: the second may
  /// start before the first has ended where its launch data say that it waits
  /// (LaunchData::dependentLaunch) and nothing is zeroed between the two. Errors: those of launch,
  /// with a note that says which launch it was, and of runDependent.
  virtual Result<std::pair<EmulatorReport, EmulatorReport>>
  launchDependent(const Artifact &first, const GemmArguments &firstArguments,
                  const Artifact &second, const GemmArguments &secondArguments) = 0;

  /// Compiles `source` (unless the work folder has it) and loads kernel `entry` of it. Errors:
  /// CompileError with the compiler's log, IoError.
  virtual Result<std::shared_ptr<const EmulatedModule>> load(const std::string &source,
                                                             const std::string &entry) = 0;
  Result<std::shared_ptr<const EmulatedModule>> load(const std::string &source) {
    return load(source, "moejit_kernel");
  }
  /// Runs `module`. Errors: InvalidArgument for a launch the hardware would refuse; Internal for
  /// whatever the kernel does wrong, naming block, thread, wrapper and place; also a deadlock or a
  /// limit.
  virtual Result<EmulatorReport> run(const EmulatedModule &module,
                                     const EmulatedLaunch &launch) = 0;

  /// Runs two grids of one stream, the second launched with programmatic stream serialization: it
  /// may start before the first has ended. So it is a fault of the second to read what the first
  /// writes, or to write what the first reads or writes, in a thread that has neither executed
  /// griddepcontrol_wait nor learnt from a thread of its block that has. Pointers of both launches
  /// are those of one memory. Errors: those of run(), with a note that says which grid it was.
  virtual Result<std::pair<EmulatorReport, EmulatorReport>>
  runDependent(const EmulatedModule &first, const EmulatedLaunch &firstLaunch,
               const EmulatedModule &second, const EmulatedLaunch &secondLaunch) = 0;

  virtual const EmulatorOptions &options() const = 0;
};

} // namespace moejit

// What the torture tests share: a compiler that takes milliseconds and can be told from every
// other, places that are cleaned up, processes, counters.
#pragma once

#include "runtime/Jit.h"
#include "tests/unit/Samples.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace moejit::torture {

/// How often something is done: `whole` with --whole, else `sample`.
int times(int whole, int sample);
/// Adds to a counter that is printed, in order of first use, when all tests are done.
void count(const std::string &what, int64_t howMany = 1);

/// The kernel that the fake compiler makes: a cubin of `cubinBytes` bytes that depend on spec,
/// target, plan and generator alone.
Artifact compiledBy(const GeneratorIdentity &generator, const Spec &spec, const Target &target,
                    const KernelPlan &plan, size_t cubinBytes);

/// `count` specs with kernels of their own.
std::vector<Spec> specs(int count);

/// A cache folder, a folder of counts beside it, and the compiler that counts there.
struct Place {
  /// Options of a cache in the folder that counts its warnings.
  CacheOptions cacheOptions();
  std::shared_ptr<Cache> openCache() { return openCache(cacheOptions()); }
  std::shared_ptr<Cache> openCache(CacheOptions options);
  /// Options of a Jit whose compiler takes `compileUs` and counts, also across processes.
  JitOptions jitOptions(std::shared_ptr<Cache> cache);
  /// Compilations so far, of all processes.
  int compiles() const;
  /// Whether `kernel` is the one the compiler makes for `rows` rows of `spec`.
  bool isRight(const Result<std::shared_ptr<Kernel>> &kernel, const Spec &spec, int64_t rows) const;
  /// Files that only those who work may leave: locks and temporary files.
  std::vector<std::string> leftovers() const;
  std::string path(const std::string &name) const { return folder.path + "/" + name; }

  samples::TemporaryFolder folder, counts;
  GeneratorIdentity generator = {"f00d", "13.0", "--fmad=false"};
  Target target;
  int compileUs = 1000;
  size_t cubinBytes = 5000;
  std::atomic<int> warnings = 0;
  std::vector<std::string> messages; ///< of the warnings; not across processes
};

/// Forks; `body` runs in the child, whose exit code it gives.
pid_t startProcess(const std::function<int()> &body);
/// Waits; the exit code, or minus the signal that ended it.
int waitFor(pid_t process);

std::string readAll(const std::string &path);
void writeAll(const std::string &path, const std::string &bytes);

/// Seconds since it was made.
class Stopwatch {
public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  }

private:
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};

} // namespace moejit::torture

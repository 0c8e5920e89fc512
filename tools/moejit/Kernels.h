// Kernels for the subcommands: the Jit over the cache folder the command line names, counting what
// is compiled. Adds no way of its own to make or keep kernels.
#pragma once

#include "compiler/Compile.h"
#include "runtime/Jit.h"
#include "tools/moejit/Json.h"
#include "tools/moejit/Options.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace moejit::tool {

struct KernelsOptions {
  Target target;
  CacheOptions cache;
  std::string nvrtc;                      ///< path of the library; empty: search
  std::vector<std::string> skippedPasses; ///< not empty: no cache folder is touched
  PlanRequest plan;                       ///< of every kernel
  bool isQuiet = false;                   ///< says nothing while a kernel takes time
  std::optional<Error> problem;           ///< why the options cannot be used: a bad --tuned
};

/// --cache, or the default folder. Errors: those of defaultCacheFolder; InvalidArgument for an
/// empty name, which a shell makes of a variable that is not set.
Result<std::string> cacheFolder(const Arguments &arguments);

/// --cache, --no-cache, --nvrtc, --skip-pass, --checked, --tuned, --bundle and --bundle-sha256.
/// Warnings of the cache go to stderr.
KernelsOptions kernelsOptions(const Arguments &arguments, const Target &target);

/// --bundle and --bundle-sha256, of the subcommands that run kernels.
std::vector<Option> withBundleOptions(std::vector<Option> own);

/// A kernel and how it came.
struct Got {
  std::shared_ptr<Kernel> kernel;
  PlannedRange range;      ///< of a bundle: the rows it serves, and the plan is this version's
  bool isCompiled = false; ///< else it was there
  double seconds = 0;
};

/// Thread-safe.
class Kernels {
public:
  /// Opens the cache and looks for NVRTC. Errors: those of Cache::open,
  /// and KernelsOptions::problem. Without NVRTC kernels are
  /// found by their lookup key; what is not there gives the Unavailable error.
  static Result<std::unique_ptr<Kernels>> open(KernelsOptions options);

  /// The kernel of `spec` for `rows` rows. Says on stderr when it takes time.
  Result<Got> get(const Spec &spec, int64_t rows);

  /// The kernel of `spec` under `plan`, whatever a chooser would take. Kept in the folder `plans`
  /// of the cache, where nobody looks for the kernel of a spec. Errors: those of compile and
  /// verifyPlan; Unavailable without NVRTC when it is not there.
  Result<Got> build(const Spec &spec, const KernelPlan &plan);

  int64_t compiled() const { return count; }
  Cache &cache() { return *store; }
  const Target &target() const { return options.target; }
  const PlanRequest &plan() const { return options.plan; }
  bool hasNvrtc() const { return !lacking; }
  /// Why there is no NVRTC.
  const Error &nvrtcError() const { return *lacking; }
  std::string nvrtcPath() const { return nvrtc.libraryPath; }
  const std::string &nvrtcVersion() const { return identity.nvrtcVersion; }

private:
  Kernels() = default;
  KernelsOptions options;
  NvrtcOptions nvrtc;
  GeneratorIdentity identity;
  std::optional<Error> lacking;
  std::shared_ptr<Cache> store;
  std::shared_ptr<Cache> plans; ///< of build(); opened when first needed
  std::mutex mutex;             ///< guards `plans`
  std::unique_ptr<Jit> jit;
  std::atomic<int64_t> count = 0;
};

/// The fields of one kernel: rows, plan, resources, key. Inside an object.
void writeKernel(JsonWriter &json, const Got &got);
/// `nvrtc`, `cache` and `compiled`. Inside an object.
void writeToolchain(JsonWriter &json, Kernels &kernels);

/// What ptxas reported, as lines for people.
std::string resourcesText(const Artifact &artifact);

} // namespace moejit::tool

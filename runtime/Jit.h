// From a spec and a row count to a kernel: the cache first, then the injected compile function,
// once for each kernel. Knows nothing about how kernels are made.
#pragma once

#include "runtime/Cache.h"
#include "runtime/Kernel.h"
#include "runtime/Keys.h"
#include "runtime/Plan.h"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace moejit {

/// Makes a kernel. Must be callable from several threads at once. The keys, plan text and
/// architecture of the result are set by the caller. A failure carries the compile log in its
/// notes.
using CompileFunction =
    std::function<Result<Artifact>(const Spec &, const Target &, const KernelPlan &)>;

struct JitOptions {
  std::shared_ptr<Cache> cache = {}; ///< null: kernels live and die with the Jit
  CompileFunction compile = {};      ///< empty: never compiles, finds kernels by lookup key alone
  Target target = {};
  PlanRequest plan = {};             ///< of every kernel; part of both keys
  GeneratorIdentity generator = {};  ///< of `compile`; part of the build key
  const DriverApi *driver = nullptr; ///< null: openDriver() when a kernel is launched
};

/// The kernels of one spec. Made by Jit::handle; valid as long as it is held, also after the Jit is
/// gone. Thread-safe. A launch whose kernel is ready hashes nothing and takes no lock of the Jit.
class JitHandle {
public:
  /// Launches over `arguments.rows` rows on `stream`, with the kernel planned for `expectedRows`
  /// rows (-1: for `arguments.rows`). Builds the kernel when it is not ready, except while `stream`
  /// is being captured. Errors: those of Jit::get and Kernel::launch.
  Result<void> launch(const GemmArguments &arguments, cu::Stream stream, int64_t expectedRows = -1);
  /// The kernel for `rows` rows, built when it is not ready. Does not load it.
  Result<std::shared_ptr<Kernel>> kernel(int64_t rows);
  const Spec &spec() const;

private:
  friend class Jit;
  struct State;
  explicit JitHandle(std::shared_ptr<State> shared) : state(std::move(shared)) {}
  std::shared_ptr<State> state;
};

/// Thread-safe. Concurrent requests for one kernel compile it once, in this process (key → future)
/// and, through the cache's locks, across processes.
class Jit {
public:
  explicit Jit(JitOptions options);
  ~Jit();
  Jit(const Jit &) = delete;
  Jit &operator=(const Jit &) = delete;

  /// The handle of `spec`; the same one for equal specs.
  JitHandle handle(const Spec &spec);

  /// The kernel of `spec` for `rows` rows. Errors: NotInCache without a compile function or in a
  /// bundle; what the compile function says; CompileError when its result has no sound image, which
  /// is then kept nowhere; InvalidArgument for negative rows. A failure is not remembered: the next
  /// call tries again.
  Result<std::shared_ptr<Kernel>> get(const Spec &spec, int64_t rows);
  /// As above for a launch on `stream`. Errors also: CaptureActive when the stream is being
  /// captured and the kernel is not ready; the capture stays usable.
  Result<std::shared_ptr<Kernel>> get(const Spec &spec, int64_t rows, cu::Stream stream);

  /// Builds, or finds, the kernels of every row range of `spec`: what ahead-of-time building is.
  Result<void> build(const Spec &spec);
  /// Gets the kernel for `rows` rows and loads it into the current context, so that a capture can
  /// launch it.
  Result<void> prepare(const Spec &spec, int64_t rows);
  /// Bytes of workspace that covers every launch of `spec` whose rows and expected rows are both up
  /// to `maxRows`. Builds the kernels it asks.
  Result<uint64_t> workspaceBytes(const Spec &spec, int64_t maxRows);

  const JitOptions &options() const;

private:
  friend class JitHandle;
  struct Shared;
  std::shared_ptr<Shared> shared;
};

/// Refuses an artifact that no driver could load: no image at all, or a cubin that is cut short.
/// Errors: CompileError.
Result<void> checkImage(const Artifact &artifact);

} // namespace moejit

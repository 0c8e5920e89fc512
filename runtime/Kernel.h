// One artifact on the devices of this process: loads its binary into each context that launches it,
// and launches.
#pragma once

#include "runtime/Arguments.h"
#include "runtime/Driver.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <vector>

namespace moejit {

/// A kernel that can be launched on any number of devices. Thread-safe.
///
/// Launches run on the given stream in the calling thread's current context; they allocate no
/// device memory and never synchronise. A binary stays loaded for the life of its context: a
/// captured graph may launch it after the Kernel is gone.
class Kernel {
public:
  /// Makes a kernel of `artifact`. Touches no driver: `driver` null means openDriver() at the first
  /// launch.
  explicit Kernel(std::shared_ptr<const Artifact> artifact, const DriverApi *driver = nullptr)
      : made(std::move(artifact)), api(driver) {}

  const Artifact &artifact() const { return *made; }
  /// Bytes of workspace that each launch in flight over up to `rows` rows needs.
  uint64_t workspaceBytes(int64_t rows) const {
    return moejit::workspaceBytes(made->launch, std::clamp<int64_t>(rows, 0, maxLaunchRows));
  }

  /// Loads the binary into the current context, so that the next launch may be captured. Errors:
  /// Unavailable without a driver, InvalidArgument without a current context, DriverError naming
  /// architecture, driver and NVRTC versions when the driver refuses both cubin and PTX.
  Result<void> load();

  /// Launches over `arguments.rows` rows; 0 rows launch nothing and need no driver. Zeroes the
  /// counters in the workspace in-stream first, unless they are clean. Errors: those of
  /// prepareLaunch and load; CaptureActive when `stream` is being captured and the kernel is not
  /// loaded in this context (the capture stays usable).
  Result<void> launch(const GemmArguments &arguments, cu::Stream stream);

private:
  struct Loaded {
    unsigned long long contextId = 0;
    cu::Function function = nullptr;
    int smCount = 0;
  };
  /// A tensor map as the driver encoded it in a context.
  struct EncodedMap {
    unsigned long long contextId = 0;
    TensorMapValues values;
    TensorMapBytes bytes;
  };
  Result<const DriverApi *> driver() const;
  Result<Loaded> findLoaded(const DriverApi &driver) const;
  Result<Loaded> loadHere(const DriverApi &driver, unsigned long long contextId);
  Result<cu::Module> loadModule(const DriverApi &driver, cu::Device device) const;
  Result<void> encodeMaps(const DriverApi &driver, unsigned long long contextId,
                          const std::vector<TensorMapValues> &values,
                          std::span<TensorMapBytes> maps);

  std::shared_ptr<const Artifact> made;
  const DriverApi *api;
  mutable std::shared_mutex mutex;
  std::vector<Loaded> loaded;
  std::mutex mapsMutex;
  std::vector<EncodedMap> lastMaps; ///< of the last launch; guarded by `mapsMutex`
};

/// Whether `stream` is being captured. Calls nothing that a capture forbids. Errors: DriverError.
Result<bool> isCapturing(const DriverApi &driver, cu::Stream stream);

/// The refusal of a kernel that is not ready while its stream captures.
Error captureActive(std::string_view what);

} // namespace moejit

// What a launch costs the host, without the driver's own part: nanoseconds of Kernel::launch on a
// driver that does nothing. Prints a line for each kind of launch; no test, since times are no
// facts.
#include "runtime/Kernel.h"

#include "Samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

using namespace moejit;

namespace {

constexpr int launchesPerRound = 20000, rounds = 15;

DriverApi idleDriver() {
  DriverApi api;
  api.ctxGetCurrent = [](cu::Context *context) {
    return *context = reinterpret_cast<cu::Context>(uintptr_t(1)), cu::success;
  };
  api.ctxGetDevice = [](cu::Device *device) { return *device = 0, cu::success; };
  api.ctxGetId = [](cu::Context, unsigned long long *id) { return *id = 1, cu::success; };
  api.exchangeCaptureMode = [](int *) { return cu::success; };
  api.deviceGetAttribute = [](int *value, int, cu::Device) { return *value = 132, cu::success; };
  api.moduleLoadData = [](cu::Module *, const void *) { return cu::success; };
  api.moduleGetFunction = [](cu::Function *function, cu::Module, const char *) {
    return *function = reinterpret_cast<cu::Function>(uintptr_t(1)), cu::success;
  };
  api.funcSetAttribute = [](cu::Function, int, int) { return cu::success; };
  api.memsetD8Async = [](cu::DevicePointer, unsigned char, size_t, cu::Stream) {
    return cu::success;
  };
  api.launchKernelEx = [](const cu::LaunchConfig *, cu::Function, void **, void **) {
    return cu::success;
  };
  api.tensorMapEncodeTiled = [](void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                                const uint32_t *, const uint32_t *, int, int, int,
                                int) { return cu::success; };
  return api;
}

/// The best of all rounds, in nanoseconds a launch.
double nsOf(const Artifact &artifact, bool movesActivations) {
  static const DriverApi driver = idleDriver();
  Kernel kernel(std::make_shared<const Artifact>(artifact), &driver);
  const auto at = [](uint64_t address) { return reinterpret_cast<void *>(address); };
  GemmArguments arguments;
  arguments.x.data = at(0x10000000);
  arguments.xScales.data = at(0x20000000);
  arguments.w.data = at(0x30000000);
  arguments.wScales.data = at(0x40000000);
  arguments.offsets.data = at(0x50000000);
  arguments.y.data = at(0x60000000);
  arguments.rows = 100;
  arguments.workspace = at(0x70000000);
  arguments.workspaceBytes = 1 << 20;
  arguments.workspaceIsClean = true;
  if (Result<void> loaded = kernel.load(); !loaded)
    fmt::print("{}\n", loaded.error().text());
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < launchesPerRound; ++i) {
      if (movesActivations)
        arguments.x.data = at(0x10000000 + 0x10000 * uint64_t(i % 64));
      if (Result<void> launched = kernel.launch(arguments, nullptr); !launched) {
        fmt::print("{}\n", launched.error().text());
        return 0;
      }
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count() / launchesPerRound);
  }
  return *std::min_element(times.begin(), times.end());
}

} // namespace

int main() {
  Artifact plain = samples::artifact();
  plain.launch.workspace = {{Operand::Workspace, 8, 0, true}};
  plain.launch.cleansWorkspace = true;
  Artifact fused = samples::quantizingArtifact();
  fused.launch.cleansWorkspace = true;
  fused.cubin = samples::cubin();
  fmt::print("GEMM, the same tensors: {:.0f} ns\n", nsOf(plain, false));
  fmt::print("GEMM, x elsewhere each time: {:.0f} ns\n", nsOf(plain, true));
  fmt::print("GEMM that quantizes x: {:.0f} ns\n", nsOf(fused, true));
}

// Layout of launches in memory, and the two ways to run them.
#include "tests/gpu/CalibrateRun.h"

#include "runtime/Checks.h"
#include "tests/oracle/Problem.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace moejit::gpu {

namespace {

constexpr size_t alignBytes = 256;
constexpr size_t gapBytes = 1024; ///< of poison between tensors

size_t roundUp(size_t value) { return (value + alignBytes - 1) / alignBytes * alignBytes; }

struct Freed {
  void operator()(uint8_t *bytes) const { std::free(bytes); }
};

Error onSide(const char *side, const Error &error) {
  Error told = error;
  told.message = fmt::format("{}: {}", side, error.message);
  return told;
}

} // namespace

LaunchBytes launchBytes(const LaunchImage &image, size_t &errorsAt) {
  LaunchBytes launch;
  launch.bytes = image.bytes;
  errorsAt = roundUp(launch.bytes.size() + gapBytes);
  launch.bytes.resize(errorsAt, oracle::poisonByte);
  launch.bytes.resize(errorsAt + errorWords * sizeof(int64_t), 0);
  launch.arguments = [&image, errorsAt](uint64_t base) {
    GemmArguments arguments = image.arguments(base);
    arguments.errors.data = reinterpret_cast<void *>(base + errorsAt);
    return arguments;
  };
  return launch;
}

QuantizeImage::QuantizeImage(const oracle::QuantizeProblem &problem, uint64_t workspaceBytes) {
  const oracle::QuantizeOutput output = oracle::QuantizeOutput::make(problem);
  size_t end = gapBytes;
  auto place = [&](size_t bytes) {
    LaunchImage::Place at = {end, bytes};
    end = roundUp(end + bytes + gapBytes);
    return at;
  };
  x = place(problem.x.size());
  scales = place(output.scales.size());
  workspace = place(workspaceBytes);
  y = place(output.y.size());
  launch.bytes.assign(end, oracle::poisonByte);
  auto put = [&](const LaunchImage::Place &at, const std::vector<uint8_t> &from) {
    if (!from.empty())
      std::memcpy(launch.bytes.data() + at.offset, from.data(), from.size());
  };
  put(x, problem.x);
  put(scales, output.scales);
  put(y, output.y);
  launch.arguments = [this, rows = problem.rows, xStride = problem.xStride,
                      yStride = problem.yStride, scaleStride = problem.scaleStride](uint64_t base) {
    constexpr size_t canary = oracle::QuantizeOutput::canaryBytes;
    auto at = [&](size_t offset) { return reinterpret_cast<void *>(base + offset); };
    GemmArguments arguments;
    arguments.rows = rows;
    arguments.x = {at(x.offset), xStride};
    arguments.xScales = {at(scales.offset + canary), scaleStride};
    arguments.y = {at(y.offset + canary), yStride};
    arguments.workspace = at(workspace.offset);
    arguments.workspaceBytes = workspace.bytes;
    return arguments;
  };
}

Result<std::unique_ptr<BothDevices>> BothDevices::create(const Device &device,
                                                         const std::string &workFolder) {
  EmulatorOptions options;
  options.workFolder = workFolder;
  options.threads = 1; // the callers are many
  options.smCount = device.info().smCount;
  Result<std::unique_ptr<Emulator>> emulator = Emulator::create(options);
  if (!emulator)
    return emulator.error();
  return std::unique_ptr<BothDevices>(new BothDevices(device, std::move(*emulator)));
}

Result<BothResults> BothDevices::run(Kernel &kernel, const LaunchBytes &launch,
                                     const std::string &what) {
  BothResults results;
  results.gpu = launch.bytes;
  {
    const std::lock_guard lock(gpu);
    running = what;
    if (memory.size() < launch.bytes.size())
      memory = DeviceMemory(device, launch.bytes.size() * 3 / 2);
    memory.upload(launch.bytes.data(), launch.bytes.size());
    Stream stream(device);
    Result<void> launched = kernel.launch(launch.arguments(memory.address()), stream.get());
    stream.wait();
    if (!launched)
      return onSide("on the GPU", launched.error());
    memory.download(results.gpu.data(), results.gpu.size());
    running.clear();
  }
  std::unique_ptr<uint8_t, Freed> here(
      static_cast<uint8_t *>(std::aligned_alloc(alignBytes, roundUp(launch.bytes.size()))));
  std::memcpy(here.get(), launch.bytes.data(), launch.bytes.size());
  Result<EmulatorReport> report =
      emulator->launch(kernel.artifact(), launch.arguments(reinterpret_cast<uint64_t>(here.get())));
  if (!report)
    return onSide("on the emulator", report.error());
  results.blocks = report->blocks;
  results.emulator.assign(here.get(), here.get() + launch.bytes.size());
  return results;
}

} // namespace moejit::gpu

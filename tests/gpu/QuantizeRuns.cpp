// Memory, launches and comparisons of quantizations.
#include "tests/gpu/QuantizeRuns.h"

#include <fmt/format.h>

#include <algorithm>

namespace moejit::gpu {
namespace {

/// A tensor of the host and its place on the device: all its bytes, or those from row 0 on alone.
class Tensor {
public:
  Tensor(const Device &device, std::vector<uint8_t> &bytes, size_t canary, bool separate)
      : host(bytes), offset(separate ? canary : 0), canary(separate ? 0 : canary),
        memory(device, std::max<size_t>(1, bytes.size() - 2 * offset)) {
    upload();
  }
  void upload() const { memory.upload(host.data() + offset, host.size() - 2 * offset); }
  void *row0() const { return reinterpret_cast<void *>(memory.address() + canary); }
  void download(std::vector<uint8_t> &to) const {
    memory.download(to.data() + offset, to.size() - 2 * offset);
  }

private:
  std::vector<uint8_t> &host;
  size_t offset; ///< bytes at both ends that stay on the host
  size_t canary; ///< bytes in front of row 0 on the device
  DeviceMemory memory;
};

} // namespace

const std::vector<QuantizeLaunch> &quantizeLaunches() {
  static const std::vector<QuantizeLaunch> launches = [] {
    oracle::QuantizeOptions padded;
    padded.xPadElements = 40;
    padded.yPadElements = 24;
    padded.scalePadWords = 5;
    oracle::QuantizeOptions plain;
    plain.hasSpecialValues = false;
    return std::vector<QuantizeLaunch>{
        {"no row", 0, {}, true},
        {"one row", 1, padded, true},
        {"some rows, gaps", 37, padded, true},
        {"a tile of rows", 32, {}},
        {"more tiles than blocks", 2049, {}},
        {"ordinary values", 300, plain},
    };
  }();
  return launches;
}

bool isQuantizeCase(const Case &entry, bool isQuick) {
  return entry.spec.computation == Computation::Quantize && (!isQuick || entry.isIn("quick"));
}

void runQuantization(const Device &device, JitHandle &handle, const Case &entry,
                     const QuantizeLaunch &launch, int64_t expectedRows, bool separate,
                     uint64_t seed, Outcome &outcome) {
  Result<std::shared_ptr<Kernel>> kernel = handle.kernel(expectedRows);
  if (!kernel) {
    outcome.text = kernel.error().text();
    return;
  }
  oracle::QuantizeProblem problem =
      oracle::makeQuantizeProblem(entry.spec, launch.rows, seed, launch.options);
  oracle::QuantizeOutput output = oracle::QuantizeOutput::make(problem);
  constexpr size_t canary = oracle::QuantizeOutput::canaryBytes;
  std::vector<uint8_t> workspaceBytes((*kernel)->workspaceBytes(launch.rows), 0xff);
  Tensor x(device, problem.x, 0, separate), y(device, output.y, canary, separate);
  Tensor scales(device, output.scales, canary, separate);
  Tensor workspace(device, workspaceBytes, 0, separate);
  GemmArguments arguments;
  arguments.rows = launch.rows;
  if (launch.rows > 0) {
    arguments.x = {x.row0(), problem.xStride};
    arguments.xScales = {scales.row0(), problem.scaleStride};
    arguments.y = {y.row0(), problem.yStride};
  }
  arguments.workspace = workspace.row0();
  arguments.workspaceBytes = workspaceBytes.size();
  Stream stream(device);
  const oracle::QuantizeOutput poisoned = output;
  // Twice: the second launch finds the workspace as the first left it.
  for (int i = 0; i < 2; ++i) {
    output = poisoned;
    y.upload();
    scales.upload();
    Result<void> launched = handle.launch(arguments, stream.get(), expectedRows);
    stream.wait();
    if (!launched) {
      outcome.ok = false;
      outcome.text = launched.error().text();
      return;
    }
    std::vector<uint8_t> xAfter(problem.x.size());
    x.download(xAfter);
    y.download(output.y);
    scales.download(output.scales);
    oracle::QuantizeComparison comparison = oracle::compareQuantized(problem, output);
    outcome.compared += comparison.codes;
    outcome.ok = comparison.ok() && xAfter == problem.x;
    outcome.text = comparison.text() + (xAfter == problem.x ? "" : "; x was overwritten");
    if (!outcome.ok)
      return;
  }
}

Result<std::string> quantizeBandwidth(const LaunchContext &context) {
  const Device &device = context.device;
  std::string text;
  std::unique_ptr<Jit> jit = context.makeJit();
  cu::Event begin = nullptr, end = nullptr;
  MOEJIT_GPU_CALL(device, eventCreate(&begin, 0));
  MOEJIT_GPU_CALL(device, eventCreate(&end, 0));
  // Everything runs on the legacy stream, as a copy between tensors of the device does.
  auto medianUs = [&](const DeviceMemory &flush,
                      const std::function<Result<void>()> &call) -> Result<double> {
    std::vector<double> times;
    for (int i = 0; i < (context.isQuick ? 3 : 21); ++i) {
      MOEJIT_GPU_CALL(device, memsetD8Async(flush.address(), 0, flush.size(), nullptr));
      MOEJIT_GPU_CALL(device, eventRecord(begin, nullptr));
      if (Result<void> called = call(); !called)
        return called.error();
      MOEJIT_GPU_CALL(device, eventRecord(end, nullptr));
      MOEJIT_GPU_CALL(device, eventSynchronize(end));
      float milliseconds = 0;
      MOEJIT_GPU_CALL(device, eventElapsedTime(&milliseconds, begin, end));
      times.push_back(double(milliseconds) * 1e3);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  };
  DeviceMemory flush(device, context.isQuick ? 1024 : size_t(2) << 26);
  for (const Case &entry : context.cases) {
    if (!entry.isIn("quantize-speed"))
      continue;
    JitHandle handle = jit->handle(entry.spec);
    for (int64_t rows :
         context.isQuick ? std::vector<int64_t>{8} : std::vector<int64_t>{64, 16384}) {
      oracle::QuantizeOptions plain;
      plain.hasSpecialValues = false;
      // Random bits of one row, repeated: what the values are does not matter to the time.
      oracle::QuantizeProblem row = oracle::makeQuantizeProblem(entry.spec, 1, 1, plain);
      oracle::QuantizeProblem shape = row;
      shape.rows = rows;
      bool isMnMajor = entry.spec.xScales.order == ScaleOrder::MnMajor;
      shape.scaleStride = isMnMajor ? (rows + 15) / 16 * 16 : row.scaleStride;
      size_t rowBytes = row.x.size(), scaleBytes = size_t(oracle::storedScaleBytes(shape));
      DeviceMemory x(device, rowBytes * size_t(rows)), y(device, size_t(row.yStride * rows));
      DeviceMemory scales(device, scaleBytes);
      std::vector<uint8_t> values(rowBytes * size_t(rows));
      for (int64_t r = 0; r < rows; ++r)
        std::copy(row.x.begin(), row.x.end(), values.begin() + int64_t(rowBytes) * r);
      x.upload(values.data(), values.size());
      Result<uint64_t> workspaceBytes = jit->workspaceBytes(entry.spec, rows);
      if (!workspaceBytes)
        return workspaceBytes.error();
      DeviceMemory workspace(device, std::max<size_t>(16, *workspaceBytes));
      GemmArguments arguments;
      arguments.rows = rows;
      arguments.x = {reinterpret_cast<void *>(x.address()), row.xStride};
      arguments.y = {reinterpret_cast<void *>(y.address()), row.yStride};
      arguments.xScales = {reinterpret_cast<void *>(scales.address()), shape.scaleStride};
      arguments.workspace = reinterpret_cast<void *>(workspace.address());
      arguments.workspaceBytes = *workspaceBytes;
      Result<double> kernelUs =
          medianUs(flush, [&] { return handle.launch(arguments, nullptr, rows); });
      if (!kernelUs)
        return kernelUs.error();
      // A copy reads and writes: half the bytes that the kernel moves make as many.
      double bytes = double(values.size()) + double(row.yStride * rows) + double(scaleBytes);
      size_t copied = std::min(size_t(bytes / 2), x.size());
      DeviceMemory target(device, copied);
      Result<double> copyUs = medianUs(flush, [&]() -> Result<void> {
        MOEJIT_GPU_CALL(device, memcpyDtoD(target.address(), x.address(), copied));
        return {};
      });
      if (!copyUs)
        return copyUs.error();
      double copyBytes = 2.0 * double(copied);
      text += fmt::format("{}{}, {} rows: {:.1f} µs, {:.0f} GB/s, {:.2f} of a copy's {:.0f} GB/s",
                          text.empty() ? "" : "; ", entry.name, rows, *kernelUs,
                          bytes / *kernelUs / 1e3, bytes / *kernelUs / (copyBytes / *copyUs),
                          copyBytes / *copyUs / 1e3);
    }
  }
  MOEJIT_GPU_CALL(device, eventDestroy(begin));
  MOEJIT_GPU_CALL(device, eventDestroy(end));
  if (text.empty())
    return Error{ErrorCode::NotFound, "the bundle has no quantization of the catalogue", {}};
  return text;
}

} // namespace moejit::gpu

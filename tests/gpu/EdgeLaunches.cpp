// Launches at the edges: checked kernels that report, a launch after another process's has faulted,
// and tensors past 2^31 elements.
#include "tests/gpu/LaunchTests.h"

#include "runtime/Checks.h"
#include "tests/oracle/Compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

namespace moejit::gpu {

using oracle::HostProblem;
using oracle::Routing;

namespace {

constexpr const char *blockCase = "grouped.w-block.x-group-mn.bf16.328x720";
constexpr const char *channelCase = "grouped.w-channel.x-token.bf16.328x720";

Error failure(std::string message) { return {ErrorCode::Internal, std::move(message), {}}; }

void *asPointer(cu::DevicePointer address) { return reinterpret_cast<void *>(address); }

/// A kernel's workspace.
DeviceMemory workspaceOf(const LaunchContext &context, Kernel &kernel, GemmArguments &arguments) {
  DeviceMemory memory(context.device, std::max<size_t>(16, kernel.workspaceBytes(arguments.rows)));
  arguments.workspace = asPointer(memory.address());
  arguments.workspaceBytes = memory.size();
  return memory;
}

/// What one launch of `problem` left: y with its canaries, and the error words.
struct Report {
  std::vector<uint8_t> output;
  std::array<int64_t, errorWords> errors = {};
};

Result<Report> launchOnce(const LaunchContext &context, Kernel &kernel,
                          const HostProblem &problem) {
  LaunchImage image(problem, kernel.workspaceBytes(problem.rows));
  DeviceMemory memory(context.device, image.bytes.size()),
      errors(context.device, errorWords * sizeof(int64_t));
  memory.upload(image.bytes.data(), image.bytes.size());
  Report report;
  errors.upload(report.errors.data(), errors.size());
  GemmArguments arguments = image.arguments(memory.address());
  arguments.errors.data = asPointer(errors.address());
  Stream stream(context.device);
  if (Result<void> launched = kernel.launch(arguments, stream.get()); !launched)
    return launched.error();
  stream.wait();
  errors.download(report.errors.data(), errors.size());
  const LaunchImage::Place &y = image.places[LaunchImage::Y];
  report.output.resize(y.bytes);
  memory.download(report.output.data(), y.bytes, y.offset);
  return report;
}

/// Something wrong with a problem, and what has to be reported of it.
struct Flaw {
  const char *name;
  std::function<void(HostProblem &)> make;
  std::vector<CheckFinding> findings;
};

std::vector<Flaw> flaws() {
  const auto setOffset = [](size_t index, int32_t value) {
    return [=](HostProblem &problem) { problem.offsets[index] = value; };
  };
  return {
      {"nothing", [](HostProblem &) {}, {}},
      {"an offset below 0", setOffset(0, -1), {{CheckKind::OffsetRange, 0}}},
      {"an offset past the rows", setOffset(6, 201), {{CheckKind::OffsetRange, 6}}},
      {"an offset that falls", setOffset(3, 0), {{CheckKind::OffsetOrder, 3}}},
      {"extreme offsets",
       [](HostProblem &problem) {
         problem.offsets[2] = INT_MAX;
         problem.offsets[4] = INT_MIN;
       },
       {{CheckKind::OffsetRange, 2}, {CheckKind::OffsetOrder, 3}}},
      {"scales of x and w",
       [](HostProblem &problem) {
         problem.xScales[11] = NAN;
         problem.xScales[7] = 0;
         problem.wScales[5] = -1;
         problem.wScales[2] = INFINITY;
       },
       {{CheckKind::XScale, 7}, {CheckKind::WScale, 2}}},
  };
}

} // namespace

Result<std::string> checkedKernels(const LaunchContext &context) {
  int launches = 0;
  PlanRequest request;
  request.checked = true;
  std::unique_ptr<Jit> plain = context.makeJit(), checked = context.makeJit(request);
  for (const char *name : {blockCase, channelCase}) {
    const Case *entry = context.find(name);
    if (!entry)
      return failure("the bundle has none of the kernels this test launches");
    for (const Flaw &flaw : flaws()) {
      // Every expert has rows, and every row an expert.
      HostProblem problem =
          oracle::makeProblem(entry->spec, 200, Routing::fromCounts({30, 40, 20, 50, 25, 35}), 71);
      flaw.make(problem);
      for (int64_t expectedRows : {0, 1 << 20}) {
        Result<std::shared_ptr<Kernel>> plainKernel = plain->get(entry->spec, expectedRows),
                                        checkedKernel = checked->get(entry->spec, expectedRows);
        if (!plainKernel)
          return plainKernel.error();
        if (!checkedKernel)
          return checkedKernel.error();
        Result<Report> without = launchOnce(context, **plainKernel, problem);
        if (!without)
          return without.error();
        Result<Report> with = launchOnce(context, **checkedKernel, problem);
        if (!with)
          return with.error();
        ++launches;
        if (checkFindings(without->errors) != std::vector<CheckFinding>())
          return failure("a kernel that is not checked has written error words");
        if (checkFindings(with->errors) != flaw.findings)
          return failure(fmt::format("{}, {}: reported '{}'", name, flaw.name,
                                     describeChecks(entry->spec, with->errors)));
        if (with->output != without->output)
          return failure(fmt::format("{}, {}: checks change the result", name, flaw.name));
      }
    }
  }
  return fmt::format("{} launches: each reports what is wrong and nothing else, the first index of "
                     "it, and gives the bits of the unchecked kernel",
                     launches);
}

int faultOnPurpose(const LaunchContext &context) {
  const Case *entry = context.find(blockCase);
  if (!entry)
    return 2;
  std::unique_ptr<Jit> jit = context.makeJit();
  HostProblem problem = oracle::makeProblem(entry->spec, 100, Routing::uniform(), 72);
  Result<std::shared_ptr<Kernel>> kernel = jit->get(entry->spec, 100);
  if (!kernel)
    return 2;
  LaunchImage image(problem, (*kernel)->workspaceBytes(100));
  DeviceMemory memory(context.device, image.bytes.size());
  memory.upload(image.bytes.data(), image.bytes.size());
  GemmArguments arguments = image.arguments(memory.address());
  arguments.y.data = reinterpret_cast<void *>(uintptr_t(4096)); // nobody's memory
  Stream stream(context.device);
  if (Result<void> launched = (*kernel)->launch(arguments, stream.get()); !launched)
    return 2;
  stream.wait(); // does not return: the context is lost
  return 1;
}

Result<std::string> afterAbort(const LaunchContext &context) {
  const Case *entry = context.find(blockCase);
  if (!entry)
    return failure("the bundle has none of the kernels this test launches");
  HostProblem problem = oracle::makeProblem(entry->spec, 300, Routing::skewed(), 73);
  std::unique_ptr<Jit> jit = context.makeJit();
  Result<std::shared_ptr<Kernel>> kernel = jit->get(entry->spec, 300);
  if (!kernel)
    return kernel.error();
  Result<Report> before = launchOnce(context, **kernel, problem);
  if (!before)
    return before.error();
  // Another process launches the same kernel with a pointer to nobody's memory.
  std::string folder = context.bundle->folder();
  folder.resize(folder.rfind('/'));
  std::vector<const char *> words = {"moejit-gpu-tests", folder.c_str(), "--fault", nullptr};
  pid_t child = fork();
  if (child == 0) {
    execv("/proc/self/exe", const_cast<char *const *>(words.data()));
    std::_Exit(127);
  }
  Result<Report> during = launchOnce(context, **kernel, problem);
  if (!during)
    return during.error();
  int status = 0;
  waitpid(child, &status, 0);
  bool isLost = WIFEXITED(status) && WEXITSTATUS(status) == 3;
  if (!isLost && !WIFSIGNALED(status))
    return failure(fmt::format("the other process was to lose its context, and ended with {}",
                               WEXITSTATUS(status)));
  Result<Report> after = launchOnce(context, **kernel, problem);
  if (!after)
    return after.error();
  oracle::HostOutput output = oracle::HostOutput::make(problem);
  output.bytes = after->output;
  oracle::Comparison comparison = oracle::compare(problem, oracle::reference(problem), output);
  if (!comparison.ok())
    return failure(comparison.text());
  if (before->output != after->output || before->output != during->output)
    return failure("launches before, during and after the fault give different bits");
  return fmt::format("another process {}; launches before, during and after give the same bits, "
                     "equal to the oracle",
                     isLost ? "lost its context to a write to nobody's memory"
                            : "died of a write to nobody's memory");
}

namespace {

/// y of `alone`, its rows taken from `rows`, two runs of `each` rows, one for each expert.
oracle::Comparison compareRuns(const HostProblem &alone, const oracle::OracleResult &reference,
                               const std::vector<std::vector<uint8_t>> &runs) {
  oracle::HostOutput output = oracle::HostOutput::make(alone);
  auto *to = static_cast<uint8_t *>(output.data());
  for (const std::vector<uint8_t> &run : runs) {
    std::memcpy(to, run.data(), run.size());
    to += run.size();
  }
  return oracle::compare(alone, reference, output);
}

} // namespace

// Liger-Kernel#1248: S · N past 2^31 elements. 64 rows an expert repeat, so that every row is
// known.
Result<std::string> rowsPast31Bits(const LaunchContext &context) {
  const Case *entry = context.find("wide.rows");
  if (context.isQuick || !entry)
    return context.isQuick ? Result<std::string>(std::string("not in the quick run"))
                           : Result<std::string>(failure("the bundle has no wide.rows"));
  constexpr int64_t rows = 1079839, split = 1 << 20, period = 64, chunk = 8192;
  const Spec &spec = entry->spec;
  const size_t rowBytes = size_t(spec.n) * 2;
  HostProblem alone =
      oracle::makeProblem(spec, 2 * period, Routing::fromCounts({period, period}), 74);
  oracle::OracleResult reference = oracle::reference(alone);
  auto sourceRow = [&](int64_t row) { return (row < split ? 0 : period) + row % period; };

  DeviceMemory x(context.device, size_t(rows * spec.k)), y(context.device, size_t(rows) * rowBytes),
      xScales(context.device, size_t(rows) * 4), w(context.device, alone.w.size()),
      wScales(context.device, alone.wScales.size() * 4), offsets(context.device, 12);
  std::vector<float> scales(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row)
    scales[size_t(row)] = alone.xScales[size_t(sourceRow(row))];
  std::vector<uint8_t> block(size_t(chunk * spec.k));
  for (int64_t first = 0; first < rows; first += chunk) {
    int64_t count = std::min(chunk, rows - first);
    // Chunks of one expert are alike.
    if (first == 0 || first == split)
      for (int64_t r = 0; r < chunk; ++r)
        std::memcpy(block.data() + r * spec.k,
                    alone.x.data() + sourceRow(first + r) * alone.xStride, size_t(spec.k));
    x.upload(block.data(), size_t(count * spec.k), size_t(first * spec.k));
  }
  const int32_t bounds[] = {0, int32_t(split), int32_t(rows)};
  xScales.upload(scales.data(), xScales.size());
  w.upload(alone.w.data(), w.size());
  wScales.upload(alone.wScales.data(), wScales.size());
  offsets.upload(bounds, sizeof bounds);

  GemmArguments arguments;
  arguments.rows = rows;
  arguments.x.data = asPointer(x.address());
  arguments.y.data = asPointer(y.address());
  arguments.xScales.data = asPointer(xScales.address());
  arguments.w.data = asPointer(w.address());
  arguments.wScales.data = asPointer(wScales.address());
  arguments.offsets.data = asPointer(offsets.address());
  std::unique_ptr<Jit> jit = context.makeJit();
  double worst = 0;
  for (int64_t expectedRows : {int64_t(0), rows}) {
    Result<std::shared_ptr<Kernel>> kernel = jit->get(spec, expectedRows);
    if (!kernel)
      return kernel.error();
    DeviceMemory workspace = workspaceOf(context, **kernel, arguments);
    Stream stream(context.device);
    if (Result<void> launched = (*kernel)->launch(arguments, stream.get()); !launched)
      return launched.error();
    stream.wait();
    std::vector<std::vector<uint8_t>> firsts(2, std::vector<uint8_t>(size_t(period) * rowBytes));
    y.download(firsts[0].data(), firsts[0].size());
    y.download(firsts[1].data(), firsts[1].size(), size_t(split) * rowBytes);
    oracle::Comparison comparison = compareRuns(alone, reference, firsts);
    if (!comparison.ok())
      return failure(comparison.text());
    worst = std::max(worst, comparison.worstRatio);
    std::vector<uint8_t> out(size_t(chunk) * rowBytes);
    for (int64_t first = 0; first < rows; first += chunk) {
      int64_t count = std::min(chunk, rows - first);
      y.download(out.data(), size_t(count) * rowBytes, size_t(first) * rowBytes);
      for (int64_t r = 0; r < count; ++r) {
        const uint8_t *like =
            firsts[first + r < split ? 0 : 1].data() + size_t((first + r) % period) * rowBytes;
        if (std::memcmp(out.data() + size_t(r) * rowBytes, like, rowBytes) != 0)
          return failure(fmt::format("row {} differs from row {}, which has the same operands",
                                     first + r, (first + r) % period));
      }
    }
  }
  return fmt::format("{} rows of {} and {} elements, {:.1f}·2^31 of y: every row has the bits of "
                     "the first with its operands; worst element {:.2f} of its bound",
                     rows, spec.k, spec.n, double(rows * spec.n) / 0x1p31, worst);
}

// Liger-Kernel#1296: E · N · K of 2^32 elements. Rows for the last expert before 2^31, the first
// after it, and the last of all.
Result<std::string> weightsPast31Bits(const LaunchContext &context) {
  const Case *entry = context.find("wide.experts");
  if (context.isQuick || !entry)
    return context.isQuick ? Result<std::string>(std::string("not in the quick run"))
                           : Result<std::string>(failure("the bundle has no wide.experts"));
  const Spec &spec = entry->spec;
  const size_t expertBytes = size_t(spec.n * spec.k),
               expertScales = size_t(((spec.n + 127) / 128) * ((spec.k + 127) / 128));
  constexpr int64_t used[] = {255, 256, 511};
  Spec small = spec;
  small.numExperts = 3;
  HostProblem alone = oracle::makeProblem(small, 200, Routing::fromCounts({40, 30, 130}), 75);
  LaunchImage image(alone, 16);
  DeviceMemory rest(context.device, image.bytes.size()),
      w(context.device, size_t(spec.numExperts) * expertBytes),
      wScales(context.device, size_t(spec.numExperts) * expertScales * 4),
      offsets(context.device, size_t(spec.numExperts + 1) * 4);
  rest.upload(image.bytes.data(), image.bytes.size());
  std::vector<int32_t> bounds = {0};
  for (int64_t e = 0; e < spec.numExperts; ++e) {
    bounds.push_back(bounds.back());
    for (size_t i = 0; i < 3; ++i)
      if (used[i] == e) {
        bounds.back() = alone.offsets[i + 1];
        w.upload(alone.w.data() + i * expertBytes, expertBytes, size_t(e) * expertBytes);
        wScales.upload(alone.wScales.data() + i * expertScales, expertScales * 4,
                       size_t(e) * expertScales * 4);
      }
  }
  offsets.upload(bounds.data(), offsets.size());
  GemmArguments arguments = image.arguments(rest.address());
  arguments.w.data = asPointer(w.address());
  arguments.wScales.data = asPointer(wScales.address());
  arguments.offsets.data = asPointer(offsets.address());
  std::unique_ptr<Jit> jit = context.makeJit();
  double worst = 0;
  oracle::OracleResult reference = oracle::reference(alone);
  for (int64_t expectedRows : {0, 1 << 20}) {
    Result<std::shared_ptr<Kernel>> kernel = jit->get(spec, expectedRows);
    if (!kernel)
      return kernel.error();
    DeviceMemory workspace = workspaceOf(context, **kernel, arguments);
    rest.upload(image.bytes.data(), image.bytes.size());
    Stream stream(context.device);
    if (Result<void> launched = (*kernel)->launch(arguments, stream.get()); !launched)
      return launched.error();
    stream.wait();
    std::vector<uint8_t> after(image.bytes.size());
    rest.download(after.data(), after.size());
    oracle::Comparison comparison = oracle::compare(alone, reference, image.output(after));
    if (!comparison.ok())
      return failure(comparison.text());
    worst = std::max(worst, comparison.worstRatio);
  }
  return fmt::format("{} experts of {} x {}, {:.1f}·2^31 elements: experts 255, 256 and {} are "
                     "right; worst element {:.2f} of its bound",
                     spec.numExperts, spec.n, spec.k,
                     double(spec.numExperts) * double(expertBytes) / 0x1p31, spec.numExperts - 1,
                     worst);
}

} // namespace moejit::gpu

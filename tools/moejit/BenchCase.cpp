// Makes and checks what is measured.
#include "tools/moejit/BenchCase.h"

#include "runtime/Checks.h"
#include "tests/oracle/Compare.h"
#include "tests/oracle/Fp8.h"
#include "tests/oracle/Quantization.h"
#include "tools/moejit/HostLaunch.h"
#include "tools/moejit/Routings.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace moejit::tool {

/// The host's side of a case: a GEMM's or a quantization's.
struct BenchCase::Host {
  oracle::HostProblem gemm;
  oracle::HostOutput gemmOutput;
  std::optional<oracle::OracleResult> expected;
  oracle::QuantizeProblem quantize;
  oracle::QuantizeOutput quantizeOutput;
  std::array<int64_t, errorWords> errors = {};
  HostLaunch given;
};

BenchCase::BenchCase(BenchDevice &device, Spec spec) : on(device), what(std::move(spec)) {}
BenchCase::~BenchCase() = default;

Result<std::unique_ptr<BenchCase>> BenchCase::make(BenchDevice &device, BenchWeights &weights,
                                                   const CaseRequest &request) {
  const Spec &spec = weights.spec;
  std::unique_ptr<BenchCase> made(new BenchCase(device, spec));
  made->routingName = request.routing;
  made->host = std::make_unique<Host>();
  Host &host = *made->host;
  if (spec.computation == Computation::Quantize) {
    oracle::QuantizeOptions plain;
    plain.hasSpecialValues = false;
    host.quantize = oracle::makeQuantizeProblem(spec, request.rows, request.seed, plain);
    host.quantizeOutput = oracle::QuantizeOutput::make(host.quantize);
    host.given = launchOf(host.quantize, host.quantizeOutput);
    made->launched = made->owned = made->least = made->most = request.rows;
    made->active = 1;
  } else {
    // A masked launch has all rows of its buffers, whoever owns them.
    bool isMasked = spec.dispatch == Dispatch::Masked;
    int64_t rows = isMasked ? spec.numExperts * spec.maxRows : request.rows;
    Result<oracle::Routing> routing = readRouting(
        spec.dispatch == Dispatch::Eager ? "uniform" : request.routing, spec, request.rows);
    if (!routing)
      return routing.error();
    using Kind = oracle::Routing::Kind;
    if (spec.dispatch != Dispatch::Eager && routing->kind != Kind::Offsets)
      routing = oracle::Routing::fromCounts(
          oracle::drawCounts(*routing, spec.numExperts, request.rows, request.seed + 1));
    if (weights.problem.w.empty())
      weights.problem = oracle::makeProblem(spec, rows, *routing, request.seed);
    else
      oracle::remakeRows(weights.problem, rows, *routing, request.seed);
    host.gemm = std::move(weights.problem);
    host.gemmOutput = oracle::HostOutput::make(host.gemm);
    host.given = launchOf(host.gemm, host.gemmOutput, host.errors);
    made->launched = rows;
    std::vector<int64_t> counts(size_t(spec.numExperts), 0);
    for (int32_t owner : oracle::rowOwners(host.gemm))
      if (owner >= 0)
        ++counts[size_t(owner)];
    std::erase(counts, 0);
    made->owned = std::accumulate(counts.begin(), counts.end(), int64_t(0));
    made->active = int64_t(counts.size());
    if (!counts.empty()) {
      made->least = *std::min_element(counts.begin(), counts.end());
      made->most = *std::max_element(counts.begin(), counts.end());
    }
    if (request.isChecked)
      host.expected = oracle::reference(host.gemm, oracle::Selection::sampled(host.gemm));
  }
  if (Result<void> uploaded = made->upload(weights); !uploaded)
    return uploaded.error();
  // The weights are for the next case, and x has done what it was for.
  weights.problem.spec = spec;
  weights.problem.w.swap(host.gemm.w);
  weights.problem.wScales.swap(host.gemm.wScales);
  host.gemm.x = host.gemm.xSource = {};
  host.given.storage.clear();
  return made;
}

Result<void> BenchCase::upload(BenchWeights &weights) {
  for (const OperandBytes &operand : host->given.operands) {
    bool isShared = operand.operand == Operand::W || operand.operand == Operand::WScales;
    std::shared_ptr<DeviceBuffer> buffer;
    if (isShared)
      buffer = weights.buffers[operand.operand];
    if (!buffer) {
      Result<DeviceBuffer> fresh = on.upload(operand.data, operand.bytes);
      if (!fresh)
        return fresh.error();
      buffer = std::make_shared<DeviceBuffer>(std::move(*fresh));
      if (isShared)
        weights.buffers[operand.operand] = buffer;
    }
    buffers[operand.operand] = buffer;
    arguments.*memberOf(operand.operand) = {
        reinterpret_cast<void *>(buffer->pointer() + operand.offsetBytes), operand.rowStride};
  }
  arguments.rows = host->given.rows;
  return {};
}

double BenchCase::operations() const {
  if (what.computation == Computation::Quantize)
    return 0;
  return 2.0 * double(owned) * double(what.n) * double(what.k);
}

double BenchCase::weightBytes() const {
  if (what.computation == Computation::Quantize)
    return double(owned) * double(what.k) * double(elementBytes(*what.quantizeFrom));
  return double(active) * double(what.n) * double(what.k);
}

double BenchCase::leastBytes() const {
  // Granules and extents are matched from the last dimension on: masked x has one more.
  auto scaleBytes = [](const ScaleLayout &layout, const std::vector<double> &extents) {
    double count = 1;
    for (size_t i = 0; i < extents.size(); ++i) {
      size_t at = layout.granule.size() - 1 - i;
      double extent = extents[extents.size() - 1 - i];
      if (i >= layout.granule.size() || layout.granule[at].kind == Granule::Kind::Whole)
        continue;
      bool isExtent = layout.granule[at].kind == Granule::Kind::Extent;
      count *= isExtent ? extent / double(layout.granule[at].extent) : 1;
    }
    return count * double(oracle::bytesOf(layout.type));
  };
  double x = double(owned) * double(what.k);
  double xBytes = what.quantizeFrom ? x * double(elementBytes(*what.quantizeFrom)) : x;
  if (what.computation == Computation::Quantize)
    return xBytes + x + scaleBytes(what.xScales, {double(owned), double(what.k)});
  double y = double(owned) * double(what.n) * double(elementBytes(what.outType));
  double scales = scaleBytes(what.wScales, {double(active), double(what.n), double(what.k)});
  if (!what.quantizeFrom)
    scales += scaleBytes(what.xScales, {double(owned), double(what.k)});
  return weightBytes() + xBytes + y + scales;
}

Result<CaseCheck> BenchCase::check(Kernel &kernel) {
  uint64_t needed = kernel.workspaceBytes(launched);
  if (needed > workspace.bytes()) {
    Result<DeviceBuffer> larger = on.allocate(size_t(needed));
    if (!larger)
      return larger.error();
    workspace = std::move(*larger);
    // A workspace may come uninitialised.
    if (Result<void> dirty = on.fill(workspace, oracle::poisonByte, size_t(needed)); !dirty)
      return dirty.error();
  }
  arguments.workspace = reinterpret_cast<void *>(workspace.pointer());
  arguments.workspaceBytes = workspace.bytes();
  for (const OperandBytes &operand : host->given.operands)
    if (operand.isOutput) {
      uint8_t value = operand.operand == Operand::Errors ? 0 : oracle::poisonByte;
      if (Result<void> filled = on.fill(*buffers[operand.operand], value, operand.bytes); !filled)
        return filled.error();
    }
  arguments.workspaceIsClean = false;
  if (Result<void> launchedHere = launch(kernel); !launchedHere)
    return launchedHere.error();
  if (Result<void> finished = on.synchronize(); !finished)
    return finished.error();
  // From here on as in an engine that zeroes its workspace once.
  const LaunchData &data = kernel.artifact().launch;
  allClean = allClean && (data.cleansWorkspace || zeroedBytes(data) == 0);
  if (workspace.bytes() > 0)
    if (Result<void> zeroed = on.fill(workspace, 0, workspace.bytes()); !zeroed)
      return zeroed.error();
  arguments.workspaceIsClean = allClean;

  CaseCheck result;
  bool isGemm = what.computation == Computation::Gemm;
  if (isGemm && !host->expected)
    return result;
  for (const OperandBytes &operand : host->given.operands)
    if (operand.isOutput)
      if (Result<void> copied = on.download(operand.data, *buffers[operand.operand], operand.bytes);
          !copied)
        return copied.error();
  result.isDone = true;
  if (isGemm) {
    oracle::Comparison comparison = oracle::compare(host->gemm, *host->expected, host->gemmOutput);
    result.isOk = comparison.ok();
    result.relativeError = comparison.relativeError;
    result.columns = int64_t(host->expected->selection.columns.size());
    result.text = comparison.text();
  } else {
    oracle::QuantizeComparison comparison =
        oracle::compareQuantized(host->quantize, host->quantizeOutput);
    result.isOk = comparison.ok();
    result.columns = what.k;
    result.text = comparison.text();
  }
  return result;
}

Result<void> BenchCase::launch(Kernel &kernel) { return kernel.launch(arguments, on.stream()); }

Result<void> BenchCase::readWeights() {
  Operand operand = what.computation == Computation::Quantize ? Operand::X : Operand::W;
  DeviceBuffer &buffer = *buffers[operand];
  return on.read(buffer, std::min(buffer.bytes(), size_t(weightBytes())));
}

void BenchCase::dropHost() { host.reset(); }

} // namespace moejit::tool

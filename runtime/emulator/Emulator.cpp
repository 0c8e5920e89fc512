// The emulator's door: compiling, checking a launch, and spreading its clusters over host threads.
#include "runtime/emulator/Emulator.h"

#include "runtime/Plan.h"
#include "runtime/emulator/Build.h"
#include "runtime/emulator/Cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

namespace moejit {

using namespace emulated;

namespace {

class HostEmulator final : public Emulator {
public:
  HostEmulator(EmulatorOptions options, HostCompiler compiler)
      : settings(std::move(options)), compiler(std::move(compiler)) {}

  Result<EmulatorReport> launch(const Artifact &artifact, const GemmArguments &arguments) override {
    return launch(artifact, arguments, nullptr, nullptr);
  }
  Result<std::pair<EmulatorReport, EmulatorReport>>
  launchDependent(const Artifact &first, const GemmArguments &firstArguments,
                  const Artifact &second, const GemmArguments &secondArguments) override;
  Result<std::shared_ptr<const EmulatedModule>> load(const std::string &source,
                                                     const std::string &entry) override;
  Result<EmulatorReport> run(const EmulatedModule &module, const EmulatedLaunch &launch) override {
    return run(module, launch, nullptr, nullptr);
  }
  Result<std::pair<EmulatorReport, EmulatorReport>>
  runDependent(const EmulatedModule &first, const EmulatedLaunch &firstLaunch,
               const EmulatedModule &second, const EmulatedLaunch &secondLaunch) override;
  const EmulatorOptions &options() const override { return settings; }

private:
  /// `footprint` is told what the launch touches; `before` is that of the grid before. Either may
  /// be null.
  Result<EmulatorReport> run(const EmulatedModule &module, const EmulatedLaunch &launch,
                             Footprint *footprint, const Footprint *before);
  /// `footprint` is made of the launch, unless it is null.
  Result<EmulatorReport> launch(const Artifact &artifact, const GemmArguments &arguments,
                                std::optional<Footprint> *footprint, const Footprint *before);

  const EmulatorOptions settings;
  const HostCompiler compiler;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const EmulatedModule>> modules; ///< guarded by `mutex`
};

Error refusal(std::string message) { return {ErrorCode::InvalidArgument, std::move(message)}; }

Result<void> checkLaunch(const EmulatedModule &module, const EmulatedLaunch &launch,
                         const EmulatorOptions &options) {
  if (launch.threads < 32 || launch.threads > 1024 || launch.threads % 32)
    return refusal(
        fmt::format("{} threads are not a multiple of 32 from 32 to 1024", launch.threads));
  if (launch.cluster < 1 || launch.cluster > 16 || launch.blocks < 1 ||
      launch.blocks % launch.cluster)
    return refusal(fmt::format("{} blocks in clusters of {}", launch.blocks, launch.cluster));
  if (launch.sharedBytes < 0 || launch.sharedBytes > options.sharedBytesLimit)
    return refusal(fmt::format("{} bytes of shared memory; a block may have {}", launch.sharedBytes,
                               options.sharedBytesLimit));
  size_t parameters = 0;
  while (module.parameterBytes(static_cast<int>(parameters)) > 0)
    ++parameters;
  if (parameters != launch.arguments.size())
    return refusal(fmt::format("the kernel has {} parameters, the launch {} arguments", parameters,
                               launch.arguments.size()));
  return {};
}

Result<std::shared_ptr<const EmulatedModule>> HostEmulator::load(const std::string &source,
                                                                 const std::string &entry) {
  Result<std::string> path = buildUnit(compiler, settings.workFolder, source);
  if (!path)
    return path.error();
  const std::lock_guard lock(mutex);
  std::shared_ptr<const EmulatedModule> &known = modules[*path + ' ' + entry];
  if (known)
    return known;
  Result<std::shared_ptr<const EmulatedModule>> loaded = loadUnit(*path, entry);
  if (loaded)
    known = *loaded;
  return loaded;
}

Result<EmulatorReport> HostEmulator::run(const EmulatedModule &module, const EmulatedLaunch &launch,
                                         Footprint *footprint, const Footprint *before) {
  if (Result<void> checked = checkLaunch(module, launch, settings); !checked)
    return checked.error();
  const auto begin = std::chrono::steady_clock::now();
  LaunchState state;
  state.options = &settings;
  state.launch = &launch;
  state.entry = module.entry;
  state.module = &module;
  state.deadline =
      begin + std::chrono::microseconds(static_cast<int64_t>(settings.maxSeconds * 1e6));
  state.footprint = footprint;
  state.before = before;
  state.order.reset(launch, before);
  const uint32_t clusters = launch.blocks / launch.cluster;
  const auto work = [&] {
    Cluster cluster(state);
    while (!state.stop) {
      const uint32_t index = state.nextCluster.fetch_add(1);
      if (index >= clusters || !cluster.run(index))
        break;
    }
    const std::lock_guard lock(state.mutex);
    --state.workers;
  };
  const unsigned wanted =
      settings.threads ? settings.threads : std::max(1u, std::thread::hardware_concurrency());
  const unsigned used = std::max(1u, std::min<unsigned>(wanted, clusters));
  state.workers = used;
  std::vector<std::thread> workers;
  for (unsigned i = 1; i < used; ++i)
    workers.emplace_back(work);
  work();
  for (std::thread &worker : workers)
    worker.join();
  if (state.stop) {
    if (const std::string line = lineOf(module, state.site); !line.empty())
      state.error.notes.push_back(line);
    return std::move(state.error);
  }
  EmulatorReport report;
  report.blocks = launch.blocks;
  report.steps = state.steps;
  report.tmaLoads = state.tmaLoads;
  report.tmaBytes = state.tmaBytes;
  report.wgmmas = state.wgmmas;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

Error told(Error error, const char *which) {
  error.notes.push_back(fmt::format("in the {} of two grids", which));
  return error;
}

Result<std::pair<EmulatorReport, EmulatorReport>>
HostEmulator::launchDependent(const Artifact &first, const GemmArguments &firstArguments,
                              const Artifact &second, const GemmArguments &secondArguments) {
  std::optional<Footprint> footprint;
  Result<EmulatorReport> one = launch(first, firstArguments, &footprint, nullptr);
  if (!one)
    return told(one.error(), "first");
  Result<EmulatorReport> two =
      launch(second, secondArguments, nullptr, footprint ? &*footprint : nullptr);
  if (!two)
    return told(two.error(), "second");
  return std::pair(*one, *two);
}

Result<std::pair<EmulatorReport, EmulatorReport>>
HostEmulator::runDependent(const EmulatedModule &first, const EmulatedLaunch &firstLaunch,
                           const EmulatedModule &second, const EmulatedLaunch &secondLaunch) {
  Footprint footprint(firstLaunch);
  Result<EmulatorReport> one = run(first, firstLaunch, &footprint, nullptr);
  if (!one)
    return told(one.error(), "first");
  Result<EmulatorReport> two = run(second, secondLaunch, nullptr, &footprint);
  if (!two)
    return told(two.error(), "second");
  return std::pair(*one, *two);
}

/// The host memory of every operand the kernel is given.
std::vector<MemoryRange> operandRanges(const Artifact &artifact, const GemmArguments &arguments) {
  std::vector<MemoryRange> ranges;
  const auto add = [&](Operand operand) {
    const char *name = operandName(operand);
    if (std::any_of(ranges.begin(), ranges.end(),
                    [&](const MemoryRange &range) { return range.name == name; }))
      return;
    const TensorArgument tensor = tensorOf(arguments, operand);
    const OperandLayout layout = operandLayout(artifact.spec, operand, arguments.rows);
    MemoryRange range;
    range.name = name;
    range.base = tensor.data;
    range.writable = isOutput(artifact.spec, operand) || isScratch(operand);
    const int64_t stride =
        rowStrideElements(artifact.spec, arguments, operand) * layout.elementBytes;
    const int64_t rowBytes = layout.columns * layout.elementBytes;
    if (isScratch(operand)) {
      const RegionPlace place = regionPlace(artifact.launch, operand, arguments.rows);
      range.base = static_cast<const char *>(tensor.data) + place.offset;
      range.bytes = static_cast<int64_t>(place.bytes);
      range.isScratch = true;
      const int64_t zeroed = static_cast<int64_t>(zeroedBytes(artifact.launch));
      range.zeroedBytes =
          std::clamp<int64_t>(zeroed - static_cast<int64_t>(place.offset), 0, range.bytes);
    } else if (layout.rows > 0) {
      range.bytes = (layout.rows - 1) * stride + rowBytes;
      if (layout.rows > 1 && stride > rowBytes) {
        range.rowBytes = rowBytes;
        range.strideBytes = stride;
      }
    }
    ranges.push_back(std::move(range));
  };
  for (const TensorMapRecipe &recipe : artifact.launch.tensorMaps)
    add(recipe.operand);
  for (const KernelParameter &parameter : artifact.launch.parameters)
    if (parameter.kind == KernelParameter::Kind::Pointer)
      add(parameter.operand);
  return ranges;
}

/// Whether what the caller, or the kernel, says to be zero is.
Result<void> checkClean(const uint8_t *workspace, uint64_t bytes, const char *when) {
  for (uint64_t i = 0; i < bytes; ++i)
    if (workspace[i] != 0)
      return refusal(fmt::format("workspace: byte {} of the {} that are said to be zero {} is {}",
                                 i, bytes, when, workspace[i]));
  return {};
}

Result<EmulatorReport> HostEmulator::launch(const Artifact &artifact,
                                            const GemmArguments &arguments,
                                            std::optional<Footprint> *footprint,
                                            const Footprint *before) {
  Result<LaunchPlan> plan = prepareLaunch(artifact, arguments, settings.smCount);
  if (!plan)
    return plan.error();
  if (plan->blocks == 0)
    return EmulatorReport{};
  Result<std::shared_ptr<const EmulatedModule>> module =
      load(artifact.source, artifact.launch.entry);
  if (!module)
    return module.error();
  std::vector<TensorMap> maps;
  for (const TensorMapValues &values : plan->tensorMaps) {
    Result<TensorMap> map = packTensorMap(values);
    if (!map)
      return map.error();
    maps.push_back(*map);
  }
  EmulatedLaunch launch;
  launch.blocks = plan->blocks;
  launch.threads = plan->threads;
  launch.cluster = plan->cluster;
  launch.blocksPerSm = static_cast<uint32_t>(artifact.launch.grid.blocksPerSm);
  launch.sharedBytes = plan->sharedBytes;
  for (LaunchParameter &parameter : plan->parameters) {
    const bool isMap = parameter.kind == KernelParameter::Kind::TensorMap;
    const int wanted = isMap ? 128 : parameter.kind == KernelParameter::Kind::Rows ? 4 : 8;
    const int index = static_cast<int>(launch.arguments.size());
    if (const int bytes = (*module)->parameterBytes(index); bytes != wanted)
      return Error{ErrorCode::Internal,
                   fmt::format("parameter {} of the kernel has {} bytes, the launch "
                               "data says {}",
                               index, bytes, wanted)};
    launch.arguments.push_back(isMap ? static_cast<void *>(&maps[parameter.tensorMap])
                                     : static_cast<void *>(&parameter.value));
  }
  // Plans that this version cannot read load no rows one by one.
  const Result<KernelPlan> made = parsePlan(artifact.planText);
  launch.gathersRows = artifact.spec.dispatch == Dispatch::Batched || (made && made->liveRows != 0);
  launch.gathersColumns = launch.gathersRows && made && made->swapOperands;
  launch.ranges = operandRanges(artifact, arguments);
  launch.storesOnce = true;
  // What no one promises to be zero is not.
  auto *workspace = static_cast<uint8_t *>(plan->workspace);
  const uint64_t zeroed = zeroedBytes(artifact.launch);
  const uint64_t bytes = workspaceBytes(artifact.launch, arguments.rows);
  // In a clean one lie words of other kernels, too.
  const uint64_t kept =
      arguments.workspaceIsClean ? std::min(bytes, WorkspaceRegion::unzeroedFrom) : zeroed;
  if (workspace)
    std::memset(workspace + kept, 0xff, bytes - kept);
  if (plan->zeroedBytes > 0)
    std::memset(workspace, 0, plan->zeroedBytes);
  else if (Result<void> clean = checkClean(workspace, zeroed, "before the launch"); !clean)
    return clean.error();
  if (footprint)
    footprint->emplace(launch);
  const bool mayStartEarly = artifact.launch.dependentLaunch && plan->zeroedBytes == 0;
  Result<EmulatorReport> report =
      run(**module, launch, footprint ? &**footprint : nullptr, mayStartEarly ? before : nullptr);
  if (report && artifact.launch.cleansWorkspace)
    if (Result<void> clean = checkClean(workspace, zeroed, "after the launch"); !clean)
      return clean.error();
  return report;
}

} // namespace

Result<std::unique_ptr<Emulator>> Emulator::create(EmulatorOptions options) {
  if (options.workFolder.empty())
    return refusal("the emulator needs a work folder");
  std::error_code code;
  std::filesystem::create_directories(options.workFolder, code);
  if (code)
    return Error{ErrorCode::IoError,
                 fmt::format("cannot make {}: {}", options.workFolder, code.message())};
  Result<HostCompiler> compiler =
      options.compilerVersion.empty()
          ? findCompiler(options.compiler, options.workFolder)
          : Result<HostCompiler>(HostCompiler{options.compiler, options.compilerVersion});
  if (!compiler)
    return compiler.error();
  compiler->flags = options.compilerFlags;
  return std::unique_ptr<Emulator>(std::make_unique<HostEmulator>(std::move(options), *compiler));
}

} // namespace moejit

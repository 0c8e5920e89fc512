// moejit run: one launch of a kernel on made-up data, checked against the oracle.
#include "tools/moejit/Emulation.h"
#include "tools/moejit/Gpu.h"
#include "tools/moejit/Input.h"
#include "tools/moejit/Kernels.h"
#include "tools/moejit/Report.h"
#include "tools/moejit/Routings.h"
#include "tools/moejit/TunedFiles.h"

#include "runtime/Checks.h"
#include "runtime/Rules.h"
#include "tests/oracle/Compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <numeric>

namespace moejit::tool {
namespace {

Error usage(std::string message, std::vector<std::string> notes = {}) {
  return Error{ErrorCode::InvalidArgument, std::move(message), std::move(notes)};
}

/// The numbers of the command line.
struct RunOptions {
  int64_t rows = 64;
  int64_t seed = 1;
  std::optional<int64_t> repeat;
  bool isCompared = false;
  bool isJson = false;
  std::optional<std::string> unitFolder; ///< of the emulator; nothing: a temporary one
  oracle::Routing routing;
  std::string routingName;
  oracle::ProblemOptions padding;
};

Result<RunOptions> readOptions(const Arguments &arguments, const Spec &spec) {
  RunOptions options;
  Result<std::optional<int64_t>> rows = arguments.integer("--tokens", 0, maxLaunchRows);
  if (!rows)
    return rows.error();
  options.rows = rows->value_or(options.rows);
  if (spec.dispatch == Dispatch::Masked)
    options.rows = spec.numExperts * spec.maxRows;
  Result<std::optional<int64_t>> seed = arguments.integer("--seed", 0, INT64_MAX);
  if (!seed)
    return seed.error();
  options.seed = seed->value_or(options.seed);
  Result<std::optional<int64_t>> repeat = arguments.integer("--repeat", 1, 1'000'000);
  if (!repeat)
    return repeat.error();
  options.repeat = *repeat;
  options.isCompared = arguments.has("--check");
  options.isJson = arguments.has("--json");
  options.routingName = arguments.valueOr("--routing", "uniform");
  Result<oracle::Routing> routing = readRouting(options.routingName, spec, options.rows);
  if (!routing)
    return routing.error();
  options.routing = *routing;
  if (arguments.has("--rows-padding")) {
    options.padding.xPadBytes = 48;
    options.padding.yPadElements = 24;
    // One scale a row is a vector, and has no gaps.
    options.padding.xScalePad = spec.xScales.kGranule() != 0 ? 8 : 0;
  }
  return options;
}

/// Bytes of host memory that are free for us; INT64_MAX when Linux does not say.
int64_t availableBytes() {
  int64_t kibibytes = INT64_MAX;
  if (std::FILE *file = std::fopen("/proc/meminfo", "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, file))
      if (long long value = 0; std::sscanf(line, "MemAvailable: %lld kB", &value) == 1)
        kibibytes = value;
    std::fclose(file);
  }
  return kibibytes == INT64_MAX ? INT64_MAX : kibibytes * 1024;
}

Result<void> checkBytes(double needed, std::string remedy) {
  double free = double(availableBytes());
  if (needed * 1.1 < free)
    return {};
  return Error{ErrorCode::Unavailable,
               fmt::format("the operands take {} of memory, {} are free",
                           bytesText(uint64_t(needed)), bytesText(uint64_t(free))),
               {std::move(remedy)}};
}

Result<void> checkMemory(const Spec &spec, const RunOptions &options) {
  if (spec.computation == Computation::Quantize) {
    // x, y, and the oracle's own: values and codes.
    double rowBytes = double(spec.k) * double(elementBytes(*spec.quantizeFrom) + 6) + 64;
    return checkBytes(double(options.rows) * rowBytes, "make the problem smaller: fewer --tokens");
  }
  double rowBytes = double(spec.k) + double(spec.n) * double(elementBytes(spec.outType)) + 64;
  double needed =
      double(spec.numExperts) * double(spec.n) * double(spec.k) + double(options.rows) * rowBytes;
  int64_t fewer = std::max<int64_t>(1, std::min<int64_t>(8, spec.numExperts));
  return checkBytes(
      needed,
      fmt::format("make the problem smaller: --experts {} --n 512 keeps the whole K", fewer));
}

/// Where the kernel runs.
struct Place {
  std::unique_ptr<Gpu> gpu; ///< null: the emulator
  Target target;
  std::string why; ///< auto: why the emulator
};

/// Whether `spec` compiles for the device; the reason in `why` if not.
bool fits(const Spec &spec, const DeviceInfo &info, Target &target, std::string &why) {
  Result<Target> found = parseTarget(info.arch());
  Result<void> legal = found ? requireLegal(spec, *found) : Result<void>(found.error());
  if (found)
    target = *found;
  if (!legal)
    why = fmt::format("{}: {}", info.name, legal.error().message);
  return bool(legal);
}

Result<Place> choosePlace(const Arguments &arguments, const Spec &spec) {
  Place place;
  Result<Target> target = loadTarget(arguments);
  if (!target)
    return target.error();
  place.target = *target;
  std::string device = arguments.valueOr("--device", "auto");
  if (device == "emulator")
    return place;
  Result<std::unique_ptr<Gpu>> gpu = Gpu::open();
  if (!gpu) {
    if (device == "gpu")
      return gpu.error();
    place.why = gpu.error().message;
    return place;
  }
  if (arguments.has("--arch") && target->arch != (*gpu)->info().arch())
    return usage(fmt::format("--arch {}: {} is {}", target->arch, (*gpu)->info().name,
                             (*gpu)->info().arch()),
                 {"use --device emulator to run kernels of another architecture"});
  bool isFit = fits(spec, (*gpu)->info(), place.target, place.why);
  if (isFit || device == "gpu")
    place.gpu = std::move(*gpu);
  return place;
}

/// What a run gave.
struct Outcome {
  std::string device;        ///< "NVIDIA H200, 132 SMs" or "emulator"
  std::optional<Got> kernel; ///< nothing: the translation unit alone was made
  std::optional<EmulatorReport> report;
  std::vector<float> milliseconds;
  std::optional<oracle::Comparison> comparison;
  std::optional<oracle::QuantizeComparison> quantized; ///< of a quantization
  bool isChecked = false; ///< by a checked kernel; `errors` are what it reported
  std::array<int64_t, errorWords> errors = {};
  int64_t ownedRows = 0;

  double median() const {
    std::vector<float> sorted = milliseconds;
    std::sort(sorted.begin(), sorted.end());
    size_t middle = sorted.size() / 2;
    return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0;
  }
  bool isWrong() const {
    return (comparison && !comparison->ok()) || (quantized && !quantized->ok());
  }
  /// What a quantization reads and writes, per second.
  double gigabytesPerSecond(const Spec &spec) const {
    double columns = double(spec.k) * double(elementBytes(*spec.quantizeFrom) + 1);
    return double(ownedRows) * columns / (median() * 1e-3) / 1e9;
  }
  /// Of rows that experts own, per second.
  double teraflops(const Spec &spec) const {
    double operations = 2.0 * double(ownedRows) * double(spec.n) * double(spec.k);
    return operations / (median() * 1e-3) / 1e12;
  }
};

/// Opens the cache, or the bundle, for `place`.
Result<std::unique_ptr<Kernels>> openKernels(const Arguments &arguments, const Place &place) {
  return Kernels::open(kernelsOptions(arguments, place.target));
}

/// The folder the emulator keeps compiled units in: inside the cache, which a bundle is not.
std::optional<std::string> emulatorFolder(const Arguments &arguments, const Cache &cache) {
  std::string folder = cache.folder();
  if (cache.mode() == CacheMode::Bundle) {
    Result<std::string> named = cacheFolder(arguments);
    folder = named && !arguments.has("--no-cache") ? *named : std::string();
  }
  return folder.empty() ? std::nullopt : std::optional(folder + "/emulator");
}

/// The artifact that the emulator runs: the kernel, or where there is no NVRTC its source alone.
Result<std::shared_ptr<const Artifact>> artifactFor(Kernels &kernels, const Spec &spec,
                                                    int64_t rows, Outcome &outcome) {
  Result<Got> got = kernels.get(spec, rows);
  if (got) {
    outcome.kernel = *got;
    return std::make_shared<const Artifact>(got->kernel->artifact());
  }
  if (kernels.hasNvrtc() || got.error().code != ErrorCode::Unavailable)
    return got.error();
  note("no NVRTC on this machine: the emulator runs the printed code, nothing is compiled for a "
       "GPU");
  const Target &target = kernels.target();
  Result<Artifact> made =
      compileToSource(spec, target, choosePlan(spec, target, rows, kernels.plan()));
  if (!made)
    return made.error();
  return std::make_shared<const Artifact>(std::move(*made));
}

using Runs = std::function<Result<void>(const HostLaunch &)>;

Result<void> runGemm(const RunOptions &options, const Spec &spec, Outcome &outcome,
                     const Runs &runs) {
  oracle::HostProblem problem;
  {
    Progress progress("making operands");
    problem = oracle::makeProblem(spec, options.rows, options.routing, uint64_t(options.seed),
                                  options.padding);
  }
  std::vector<int32_t> owners = oracle::rowOwners(problem);
  outcome.ownedRows = std::count_if(owners.begin(), owners.end(), [](int32_t e) { return e >= 0; });
  oracle::HostOutput output = oracle::HostOutput::make(problem);
  if (Result<void> ran = runs(launchOf(problem, output, outcome.errors)); !ran)
    return ran;
  if (options.isCompared) {
    Progress progress("computing the reference");
    oracle::OracleResult expected = oracle::reference(problem, oracle::Selection::sampled(problem));
    outcome.comparison = oracle::compare(problem, expected, output);
  }
  return {};
}

Result<void> runQuantization(const RunOptions &options, const Spec &spec, Outcome &outcome,
                             const Runs &runs) {
  oracle::QuantizeProblem problem;
  {
    Progress progress("making operands");
    oracle::QuantizeOptions memory;
    memory.xPadElements = options.padding.xPadBytes;
    memory.yPadElements = options.padding.yPadElements;
    memory.scalePadWords = options.padding.xScalePad;
    problem = oracle::makeQuantizeProblem(spec, options.rows, uint64_t(options.seed), memory);
  }
  outcome.ownedRows = options.rows;
  oracle::QuantizeOutput output = oracle::QuantizeOutput::make(problem);
  if (Result<void> ran = runs(launchOf(problem, output)); !ran)
    return ran;
  if (options.isCompared) {
    Progress progress("computing the reference");
    outcome.quantized = oracle::compareQuantized(problem, output);
  }
  return {};
}

/// `hasFault` becomes true when the emulator catches the kernel doing something wrong.
Result<Outcome> launch(const RunOptions &options, Place &place, Kernels &kernels, const Spec &spec,
                       bool &hasFault) {
  Outcome outcome;
  outcome.isChecked = kernels.plan().checked;
  std::shared_ptr<const Artifact> artifact;
  if (place.gpu) {
    outcome.device = fmt::format("{}, {} SMs", place.gpu->info().name, place.gpu->info().smCount);
    Result<Got> got = kernels.get(spec, options.rows);
    if (!got)
      return got.error();
    outcome.kernel = *got;
  } else {
    outcome.device = "emulator";
    Result<std::shared_ptr<const Artifact>> made =
        artifactFor(kernels, spec, options.rows, outcome);
    if (!made)
      return made.error();
    artifact = *made;
  }

  auto runs = [&](const HostLaunch &given) -> Result<void> {
    if (place.gpu) {
      Progress progress("running on the GPU");
      Result<std::vector<float>> times =
          place.gpu->run(*outcome.kernel->kernel, given, options.repeat.value_or(20));
      if (!times)
        return times.error();
      outcome.milliseconds = *times;
      return {};
    }
    Progress progress("running on the emulator");
    for (int64_t i = 0; i < options.repeat.value_or(1); ++i) {
      Result<EmulatorReport> report = emulate(*artifact, given, options.unitFolder, hasFault);
      if (!report)
        return report.error();
      outcome.report = *report;
    }
    return {};
  };
  Result<void> ran = spec.computation == Computation::Quantize
                         ? runQuantization(options, spec, outcome, runs)
                         : runGemm(options, spec, outcome, runs);
  if (!ran)
    return ran.error();
  return outcome;
}

void writeComparison(JsonWriter &json, const oracle::Comparison &check) {
  json.key("check").beginObject();
  json.field("ok", check.ok()).field("compared", check.compared);
  json.field("relativeError", check.relativeError).field("worstRatio", check.worstRatio);
  json.field("worstRow", check.worstRow).field("worstColumn", check.worstColumn);
  json.field("worstOut", check.worstOut).field("worstReference", check.worstReference);
  json.field("worstBound", check.worstBound).field("nonFinite", check.nonFinite);
  json.field("unownedRows", check.unownedRows).field("unownedWrong", check.unownedWrong);
  json.field("canary", check.canary).field("text", check.text()).endObject();
}

void writeComparison(JsonWriter &json, const oracle::QuantizeComparison &check) {
  json.key("check").beginObject();
  json.field("ok", check.ok()).field("compared", check.codes).field("wrongCodes", check.wrongCodes);
  json.field("scaleBytes", check.scaleBytes).field("wrongScaleBytes", check.wrongScaleBytes);
  json.field("first", check.first).field("canary", check.canary);
  json.field("text", check.text()).endObject();
}

std::string jsonOf(const std::string &name, const Spec &spec, const RunOptions &options,
                   const Place &place, Kernels &kernels, const Outcome &outcome) {
  JsonWriter json;
  json.beginObject().field("file", name).field("spec", canonicalText(spec));
  json.field("arch", place.target.arch).field("rows", options.rows);
  json.field("ownedRows", outcome.ownedRows).field("routing", options.routingName);
  json.field("seed", options.seed);
  json.field("device", place.gpu ? "gpu" : "emulator").field("deviceName", outcome.device);
  if (outcome.kernel) {
    json.key("kernel").beginObject();
    writeKernel(json, *outcome.kernel);
    json.endObject();
  }
  writeToolchain(json, kernels);
  if (!outcome.milliseconds.empty()) {
    json.field("repeat", outcome.milliseconds.size()).field("milliseconds", outcome.median());
    if (spec.computation == Computation::Quantize)
      json.field("gigabytesPerSecond", outcome.gigabytesPerSecond(spec));
    else
      json.field("teraflops", outcome.teraflops(spec));
    json.key("allMilliseconds").beginArray();
    for (float time : outcome.milliseconds)
      json.real(time);
    json.endArray();
  }
  if (outcome.report) {
    json.key("emulator").beginObject().field("seconds", outcome.report->seconds);
    json.field("blocks", outcome.report->blocks).field("steps", outcome.report->steps);
    json.field("wgmmas", outcome.report->wgmmas).field("tmaBytes", outcome.report->tmaBytes);
    json.endObject();
  }
  if (outcome.comparison)
    writeComparison(json, *outcome.comparison);
  if (outcome.quantized)
    writeComparison(json, *outcome.quantized);
  if (outcome.isChecked)
    json.field("reported", describeChecks(spec, outcome.errors));
  return json.endObject().text();
}

std::string textOf(const std::string &name, const Spec &spec, const RunOptions &options,
                   const Place &place, const Outcome &outcome) {
  std::string text = fmt::format("{}\n{}\n\n", name, describe(spec));
  auto line = [&](const char *left, const std::string &right) {
    text += fmt::format("{:<9} {}\n", left, right);
  };
  line("device", fmt::format("{} ({})", outcome.device, place.target.arch));
  bool isGemm = spec.computation == Computation::Gemm;
  line("rows", isGemm ? fmt::format("{}, of which experts own {} ({})", options.rows,
                                    outcome.ownedRows, options.routingName)
                      : fmt::format("{}", options.rows));
  if (outcome.kernel)
    line("kernel", fmt::format("{} registers, {} spilled, {} shared memory, {}",
                               outcome.kernel->kernel->artifact().resources.registers,
                               outcome.kernel->kernel->artifact().resources.spillStoreBytes,
                               bytesText(outcome.kernel->kernel->artifact().launch.sharedBytes),
                               outcome.kernel->isCompiled
                                   ? fmt::format("compiled in {:.1f} s", outcome.kernel->seconds)
                                   : "from cache"));
  if (!outcome.milliseconds.empty())
    line("time",
         fmt::format("{:.4f} ms, {} (median of {}, L2 flushed)", outcome.median(),
                     isGemm ? fmt::format("{:.1f} TFLOP/s of real rows", outcome.teraflops(spec))
                            : fmt::format("{:.0f} GB/s", outcome.gigabytesPerSecond(spec)),
                     outcome.milliseconds.size()));
  if (outcome.report)
    line("emulated",
         fmt::format("{} blocks, {} wgmmas, {} by TMA, in {:.1f} s", outcome.report->blocks,
                     outcome.report->wgmmas, bytesText(uint64_t(outcome.report->tmaBytes)),
                     outcome.report->seconds));
  if (outcome.comparison)
    line("check",
         (outcome.comparison->ok() ? "equal to the oracle, " : "") + outcome.comparison->text());
  if (outcome.quantized)
    line("check",
         (outcome.quantized->ok() ? "equal to the oracle, " : "") + outcome.quantized->text());
  if (outcome.isChecked) {
    std::string reported = describeChecks(spec, outcome.errors);
    line("reported", reported.empty() ? "nothing is wrong with routing and scales" : reported);
  }
  return text;
}

int run(const Arguments &arguments) {
  std::string name;
  Result<Spec> spec = loadOneSpec(arguments, name);
  if (!spec)
    return fail(arguments, spec.error());
  Result<RunOptions> options = readOptions(arguments, *spec);
  if (!options)
    return fail(arguments, options.error());
  Result<Place> place = choosePlace(arguments, *spec);
  if (!place)
    return fail(arguments, place.error());
  if (!place->gpu && !place->why.empty())
    note(fmt::format("no GPU to use ({}): running on the emulator", place->why));
  if (Result<void> legal = requireLegal(*spec, place->target); !legal)
    return fail(arguments, legal.error());
  if (Result<void> fits = checkMemory(*spec, *options); !fits)
    return fail(arguments, fits.error());
  Result<std::unique_ptr<Kernels>> kernels = openKernels(arguments, *place);
  if (!kernels)
    return fail(arguments, kernels.error());
  options->unitFolder = emulatorFolder(arguments, (*kernels)->cache());
  bool hasFault = false;
  Result<Outcome> outcome = launch(*options, *place, **kernels, *spec, hasFault);
  if (!outcome)
    return fail(arguments, outcome.error(), hasFault ? std::optional(exitWrong) : std::nullopt);
  int printed = print(options->isJson ? jsonOf(name, *spec, *options, *place, **kernels, *outcome)
                                      : textOf(name, *spec, *options, *place, *outcome));
  if (outcome->isWrong())
    return exitWrong;
  if (!checkFindings(outcome->errors).empty())
    return exitReported;
  return printed;
}

} // namespace

const Command runCommand = {
    "run",
    "Run a kernel on made-up data, time it, and compare it with the oracle",
    "FILE [--tokens N] [options]",
    "Makes random operands for N rows, gets the kernel from the cache (or compiles it), and "
    "launches it: on the GPU if this machine has one, else on the CPU emulator, which is "
    "exact and slow: keep problems small there with --experts and --n. --check compares with "
    "the product in double precision, element by element (large problems on all rows and a sample "
    "of columns), and looks at rows nobody owns and at canaries around the "
    "output.\nA row is one (token, expert) pair. Times are of launches "
    "alone, with a cold L2 cache; TFLOP/s count the rows that experts own, not tiles.",
    "  moejit run kernels/deepseek-v3.gate_up.mlir --tokens 64 --experts 4 --n 512 --check\n"
    "  moejit run kernels/mixtral-8x7b.down.mlir --tokens 8192 --device gpu --repeat 50\n"
    "  moejit run my.mlir --tokens 300 --routing skewed --seed 7 --check --json\n"
    "  echo '{\"counts\": [3, 0, 5, 0]}' > r.json\n"
    "  moejit run my.mlir --tokens 9 --experts 4 --routing r.json --check    # row 8 is nobody's\n"
    "  moejit run my.mlir --tokens 9 --experts 4 --routing r.json --checked  # reports bad "
    "routing\n"
    "  moejit run my.mlir --tokens 64 --bundle kernels.bundle               # never compiles",
    "  0  it ran, and with --check it is right\n"
    "  1  --check found a wrong result, the emulator found a fault, or a rule refuses the kernel\n"
    "  2  FILE or the routing cannot be used, or the command line is wrong\n"
    "  3  no GPU (--device gpu), no NVRTC or C++ compiler, no kernel in the bundle, or too little\n"
    "     memory\n"
    "  4  a pass or NVRTC failed\n"
    "  5  --checked: the kernel reported routing or scales that are wrong; results are as without",
    withCommonOptions(withBundleOptions(withExtentOptions({
        {"--tokens", "N", "rows to multiply; masked kernels take all rows of their buffers", "64"},
        {"--device",
         "WHERE",
         "auto, gpu or emulator; auto takes the GPU if there is one that fits",
         "auto",
         {"auto", "gpu", "emulator"}},
        {"--routing", "HOW",
         "rows of each expert: uniform, skewed (Zipf), exact (all alike), one-expert, empty, or a "
         "file with counts or offsets",
         "uniform"},
        {"--check", nullptr, "compare with the oracle; exit 1 when wrong"},
        checkedOption(),
        tunedOption(),
        {"--seed", "S", "of the operands and the routing", "1"},
        {"--rows-padding", nullptr, "leave poisoned gaps between the rows of x, its scales, and y"},
        {"--repeat", "R", "timed launches", "20 on a GPU, 1 on the emulator"},
        {"--arch", "ARCH", "the architecture the emulator runs kernels of", "sm_90a"},
    }))),
    run,
};

} // namespace moejit::tool

// moejit bench: the speed of kernels on the GPU, beside plain reads and a dense product.
#include "tools/moejit/BenchReport.h"
#include "tools/moejit/BenchStartup.h"
#include "tools/moejit/Input.h"
#include "tools/moejit/Nvrtcs.h"
#include "tools/moejit/Report.h"
#include "tools/moejit/Routings.h"
#include "tools/moejit/TunedFiles.h"

#include "runtime/Rules.h"

#include <fmt/format.h>

#include <cstdlib>

namespace moejit::tool {
namespace {

Error usage(std::string message, std::vector<std::string> notes = {}) {
  return Error{ErrorCode::InvalidArgument, std::move(message), std::move(notes)};
}

/// Numbers of the command line.
struct BenchOptions {
  std::vector<int64_t> rowsPerExpert, rows; ///< one of the two is empty
  std::vector<std::string> plans;           ///< overrides, `name=value,…`
  MeasureOptions measuring;
  CaseRequest request;
  int64_t flushMiB = 512;
  std::string ceiling; ///< "measure", "none" or a number
  double givenTeraflops = 0;
  int64_t jobs = 0;
};

/// --plan and the lines of --plans.
Result<std::vector<std::string>> planTexts(const Arguments &arguments) {
  std::vector<std::string> texts;
  for (const std::string &text : arguments.values("--plan")) {
    if (Result<KernelPlan> plan = parsePlan(text); !plan)
      return usage(fmt::format("--plan {}: {}", text, plan.error().message), plan.error().notes);
    texts.push_back(text);
  }
  for (const std::string &path : arguments.values("--plans")) {
    Result<std::vector<std::string>> lines = planLines(path);
    if (!lines)
      return lines.error();
    texts.insert(texts.end(), lines->begin(), lines->end());
  }
  return texts;
}

Result<BenchOptions> readOptions(const Arguments &arguments) {
  BenchOptions options;
  if (arguments.has("--rows") && arguments.has("--tokens"))
    return usage("--rows counts rows an expert, --tokens those of all experts: give one of them");
  Result<std::vector<int64_t>> rows =
      arguments.has("--tokens") ? numberList(arguments, "--tokens", 1, maxLaunchRows, "")
                                : numberList(arguments, "--rows", 1, maxLaunchRows, "16,128,512");
  if (!rows)
    return rows.error();
  (arguments.has("--tokens") ? options.rows : options.rowsPerExpert) = *rows;
  Result<std::vector<std::string>> plans = planTexts(arguments);
  if (!plans)
    return plans.error();
  options.plans = *plans;

  int64_t idleMs = 50, windowMs = 300, seed = 1;
  struct {
    const char *name;
    int64_t least, most;
    int64_t &value;
  } numbers[] = {{"--rounds", 1, 1000, options.measuring.rounds},
                 {"--repeat", 1, 10000, options.measuring.repeats},
                 {"--idle-ms", 0, 10000, idleMs},
                 {"--window-ms", 1, 60000, windowMs},
                 {"--flush-mib", 0, 16384, options.flushMiB},
                 {"--jobs", 1, 1024, options.jobs},
                 {"--seed", 0, INT64_MAX, seed}};
  for (auto &[name, least, most, value] : numbers) {
    Result<std::optional<int64_t>> given = arguments.integer(name, least, most);
    if (!given)
      return given.error();
    value = given->value_or(value);
  }
  options.measuring.idleMs = double(idleMs);
  options.measuring.windowMs = arguments.has("--sustained") ? double(windowMs) : 0;
  options.measuring.seed = options.request.seed = uint64_t(seed);
  options.request.routing = arguments.valueOr("--routing", "uniform");
  options.request.isChecked = !arguments.has("--no-check");
  options.ceiling = arguments.valueOr("--ceiling", "measure");
  if (options.ceiling != "measure" && options.ceiling != "none") {
    Result<std::optional<int64_t>> given = arguments.integer("--ceiling", 1, 1'000'000);
    if (!given)
      return usage(fmt::format("--ceiling takes measure, none, or TFLOP/s as a whole number; got "
                               "'{}'",
                               options.ceiling));
    options.givenTeraflops = double(**given);
  }
  if (std::optional<std::string> svg = arguments.value("--svg"))
    if (Result<void> writable = checkWritable(*svg); !writable)
      return writable.error();
  return options;
}

/// Points for every number of rows that `spec` can have.
void addPoints(BenchRun &run, size_t s, const BenchOptions &options) {
  const Spec &spec = run.specs[s].spec;
  auto add = [&](int64_t rows, int64_t perExpert) {
    int64_t most = spec.dispatch == Dispatch::Batched  ? batchedRowLimit
                   : spec.dispatch == Dispatch::Masked ? spec.numExperts * spec.maxRows
                                                       : maxLaunchRows;
    if (rows > most)
      note(fmt::format("{}: {} rows are left out, a launch has at most {}", run.specs[s].name, rows,
                       most));
    else
      run.points.push_back({s, rows, perExpert});
  };
  for (int64_t perExpert : options.rowsPerExpert)
    add(perExpert * spec.numExperts, perExpert);
  for (int64_t rows : options.rows)
    add(rows, 0);
}

/// The chosen plan of each point, and the given ones where they differ from it.
void addContenders(BenchRun &run, size_t point, const BenchOptions &options,
                   const Kernels &kernels) {
  const BenchPoint &at = run.points[point];
  const Spec &spec = run.specs[at.spec].spec;
  KernelPlan chosen = choosePlan(spec, kernels.target(), at.rows, kernels.plan());
  run.contenders.push_back({point, "chosen", chosen});
  for (const std::string &text : options.plans)
    if (Result<KernelPlan> plan = parsePlan(text, chosen); plan && !(*plan == chosen))
      run.contenders.push_back({point, text, *plan});
}

int bench(const Arguments &arguments, const BenchOptions &options, BenchDevice &device,
          Kernels &kernels, std::vector<BenchSpec> specs) {
  BenchRun run;
  run.specs = std::move(specs);
  for (size_t s = 0; s < run.specs.size(); ++s)
    addPoints(run, s, options);
  if (run.points.empty())
    return fail(arguments, usage("no kernel can have that many rows"));
  for (size_t p = 0; p < run.points.size(); ++p)
    addContenders(run, p, options, kernels);
  BenchHow how;
  if (options.ceiling == "measure") {
    run.specs.push_back(denseProduct());
    int64_t rows = run.specs.back().spec.n;
    run.points.push_back({run.specs.size() - 1, rows, rows});
    how.denseContender = run.contenders.size();
    run.contenders.push_back({run.points.size() - 1, "chosen", {}});
  }
  buildContenders(run, kernels, options.jobs);
  for (size_t i = 0; i < run.contenders.size(); ++i)
    if (const Contender &each = run.contenders[i];
        each.refusal && each.label == "chosen" && how.denseContender != i)
      return fail(arguments, *each.refusal);
  if (Result<void> prepared = prepare(run, device, options.request); !prepared)
    return fail(arguments, prepared.error());

  // The memory ceiling: far more than the L2 holds.
  how.memoryBytes = double(options.flushMiB > 0 ? options.flushMiB * 2 : 1024) * 1048576;
  Result<DeviceBuffer> memory = device.allocate(size_t(how.memoryBytes));
  if (!memory)
    return fail(arguments, memory.error());
  how.memoryItem = run.items.size();
  run.items.push_back(
      {"plain read", [&] { return device.read(*memory, size_t(how.memoryBytes)); }, false});

  Result<std::unique_ptr<ClockLog>> clocks = ClockLog::open();
  if (!clocks)
    note(clocks.error().message);
  how.measuring = options.measuring;
  how.measuring.clocks = clocks ? clocks->get() : nullptr;
  double begin = ClockLog::now();
  if (Result<void> measured = measure(device, run.items, how.measuring); !measured)
    return fail(arguments, measured.error());
  int64_t hostCalls = std::min<int64_t>(64, 4 * how.measuring.rounds * how.measuring.repeats);
  for (Contender &contender : run.contenders)
    if (!contender.refusal) {
      Result<double> us = hostUs(device, run.items[contender.item].call, hostCalls);
      if (!us)
        return fail(arguments, us.error());
      contender.hostUs = *us;
    }
  how.clocks = clocks ? (*clocks)->since(begin).text() : std::string();
  how.device = device.info().name;
  how.smCount = device.info().smCount;
  how.driver = cudaVersionText(device.info().driverVersion);
  how.nvrtc = kernels.nvrtcVersion();
  how.routing = options.request.routing;
  how.seed = int64_t(options.request.seed);
  how.flush = device.flushText();
  how.readText = device.readText();
  how.givenTeraflops = options.givenTeraflops;
  int printed = print(arguments.has("--json") ? benchJson(run, how) : benchText(run, how));
  // What was measured is on stdout, whatever becomes of the plot.
  if (std::optional<std::string> svg = arguments.value("--svg"))
    if (Result<void> written = writeFile(*svg, benchSvg(run, how)); !written)
      return fail(false, written.error());
  return isAnyWrong(run) ? int(exitWrong) : printed;
}

/// --startup: no launch is measured.
int startup(const Arguments &arguments, const BenchOptions &options,
            const std::vector<BenchSpec> &specs) {
  // From 12.9 on NVRTC keeps what it compiled in a folder of its own: cold is without it.
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  Result<Target> target = parseTarget("sm_90a");
  if (!target)
    return fail(arguments, target.error());
  StartupOptions wanted;
  wanted.repeats = options.measuring.rounds;
  wanted.rowsPerExpert = options.rowsPerExpert;
  wanted.nvrtc = findNvrtc(arguments.valueOr("--nvrtc", ""));
  wanted.kernels = kernelsOptions(arguments, *target);
  if (wanted.kernels.problem)
    return fail(arguments, *wanted.kernels.problem);
  if (options.rowsPerExpert.empty())
    return fail(arguments, usage("--startup takes --rows, not --tokens"));
  Result<std::vector<StartupTimes>> times = measureStartup(specs, wanted);
  if (!times)
    return fail(arguments, times.error());
  return print(arguments.has("--json") ? startupJson(*times) : startupText(*times));
}

int run(const Arguments &arguments) {
  Result<BenchOptions> options = readOptions(arguments);
  if (!options)
    return fail(arguments, options.error());
  // Files are read before a device is asked for: a mistake in one is found anywhere.
  Result<std::vector<BenchSpec>> specs = readBenchSpecs(arguments);
  if (!specs)
    return fail(arguments, specs.error());
  if (arguments.has("--startup"))
    return startup(arguments, *options, *specs);
  BenchDeviceOptions wanted;
  wanted.flushBytes = size_t(options->flushMiB) << 20;
  wanted.nvrtc = findNvrtc(arguments.valueOr("--nvrtc", ""));
  Result<std::unique_ptr<BenchDevice>> device = BenchDevice::open(wanted);
  if (!device)
    return fail(arguments, device.error());
  Result<Target> target = parseTarget((*device)->info().arch());
  if (!target)
    return fail(arguments, target.error());
  for (const BenchSpec &spec : *specs)
    if (Result<void> legal = requireLegal(spec.spec, *target); !legal)
      return fail(arguments, legal.error());
  Result<std::unique_ptr<Kernels>> kernels = Kernels::open(kernelsOptions(arguments, *target));
  if (!kernels)
    return fail(arguments, kernels.error());
  return bench(arguments, *options, **device, **kernels, std::move(*specs));
}

} // namespace

const Command benchCommand = {
    "bench",
    "Measure kernels on the GPU, beside plain reads of memory and a dense product",
    "FILES... [--rows LIST] [options]",
    "Measures every kernel at every number of rows in one process: kernels, a plain read of the "
    "active weights of each, a plain read of memory and a dense product take turns, in an order "
    "drawn anew for each round. Before each block of calls the GPU rests (a burst: it does not "
    "throttle), before each call the L2 cache is flushed; times are medians of CUDA events. "
    "Every output is compared with the oracle in all rows and a sample of columns before it is "
    "timed. A folder stands for the .mlir files in it.\n--rows counts rows an expert, drawn by "
    "--routing; --tokens counts those of the launch. TFLOP/s count rows that experts own. GB/s "
    "are of the active experts' weights, % of read is the time of reading them over the "
    "kernel's. --plan and --plans add other plans of the same kernels, beside the chosen "
    "ones.\nWith --sustained windows without pause or flush follow: clocks and power then are "
    "what they are under load. --startup measures, in place of launches, what comes before the "
    "first: compiling, finding in a cache, loading.",
    "  moejit bench kernels/deepseek-v3.*.mlir --rows 16,128,512\n"
    "  moejit bench kernels --json --svg roofline.svg > h200.json\n"
    "  moejit bench kernels/mixtral-8x7b.down.mlir --tokens 1024 --routing skewed --sustained\n"
    "  moejit bench my.mlir --rows 128 --plan tileM=64,stages=5 --plan raster=1",
    "  0  measured, and every result is right\n"
    "  1  a result is wrong (the table says which), or a rule refuses a kernel\n"
    "  2  a FILE, a plan or the routing cannot be used, or the command line is wrong\n"
    "  3  no GPU, not enough of its memory, no NVRTC, or no kernel in the bundle\n"
    "  4  a pass or NVRTC failed",
    withCommonOptions(withBundleOptions(withExtentOptions({
        {"--rows", "LIST", "rows an expert, with commas between them", "16,128,512"},
        {"--tokens", "LIST", "rows of a launch, as moejit run counts them, in place of --rows"},
        {"--routing", "HOW",
         "rows of each expert: uniform, skewed (Zipf), exact (all alike), one-expert, or a file",
         "uniform"},
        {"--seed", "S", "of operands, routing and order", "1"},
        {"--plan", "NAME=VALUE,...",
         "a plan beside the chosen one, by what differs; may be repeated"},
        {"--plans", "FILE", "such plans, one a line, # begins a comment"},
        {"--rounds", "R", "shuffled rounds", "5"},
        {"--repeat", "R", "calls in a block", "4"},
        {"--idle-ms", "MS", "rest before each block", "50"},
        {"--sustained", nullptr, "measure windows without pause too"},
        {"--window-ms", "MS", "length of such a window", "300"},
        {"--flush-mib", "MIB", "memory read before each call, so that the L2 holds no operands",
         "512"},
        {"--ceiling", "WHAT", "the dense product: measure, none, or TFLOP/s measured elsewhere",
         "measure"},
        {"--startup", nullptr,
         "measure what comes before the first launch in place of launches: compiling, finding in a "
         "cache, loading; needs no GPU"},
        {"--no-check", nullptr, "do not compare with the oracle"},
        {"--svg", "FILE", "write a roofline plot"},
        {"--jobs", "N", "kernels to compile at the same time", "one a CPU"},
        checkedOption(),
        tunedOption(),
    }))),
    run,
};

} // namespace moejit::tool

// moejit tune: measures plans of many kernels and keeps the fastest in a table.
#include "tools/moejit/BenchRun.h"
#include "tools/moejit/Input.h"
#include "tools/moejit/Meter.h"
#include "tools/moejit/Nvrtcs.h"
#include "tools/moejit/Report.h"
#include "tools/moejit/Routings.h"
#include "tools/moejit/TunedFiles.h"

#include "compiler/Nvrtc.h"
#include "runtime/FileLock.h"
#include "runtime/PlanModel.h"
#include "runtime/Rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <set>

namespace moejit::tool {
namespace {

Error usage(std::string message, std::vector<std::string> notes = {}) {
  return Error{ErrorCode::InvalidArgument, std::move(message), std::move(notes)};
}

struct TuneOptions {
  std::string output;
  std::vector<int64_t> rowsPerExpert;
  std::vector<std::string> plans; ///< --candidates; empty: generated ones
  MeasureOptions measuring;
  CaseRequest request;
  int64_t flushMiB = 512;
  int64_t jobs = 0;
  int64_t kept = 3; ///< plans of the first pass whose neighbours are measured
  double tolerance = 0.01;
  bool isAgain = false;
};

Result<TuneOptions> readOptions(const Arguments &arguments) {
  TuneOptions options;
  options.output = arguments.valueOr("-o", "");
  if (options.output.empty())
    return usage("no table to write: name one with -o FILE",
                 {"what is in it already is kept, and not measured again"});
  Result<std::vector<int64_t>> rows =
      numberList(arguments, "--rows", 1, maxLaunchRows, "4,16,64,128,256,512,1024");
  if (!rows)
    return rows.error();
  options.rowsPerExpert = *rows;
  std::sort(options.rowsPerExpert.begin(), options.rowsPerExpert.end());
  if (std::optional<std::string> path = arguments.value("--candidates")) {
    Result<std::vector<std::string>> plans = planLines(*path);
    if (!plans)
      return plans.error();
    options.plans = *plans;
  }
  int64_t idleMs = 20, seed = 1, permille = 10;
  options.measuring.rounds = 3;
  struct {
    const char *name;
    int64_t least, most;
    int64_t &value;
  } numbers[] = {{"--rounds", 1, 1000, options.measuring.rounds},
                 {"--repeat", 1, 10000, options.measuring.repeats},
                 {"--idle-ms", 0, 10000, idleMs},
                 {"--flush-mib", 0, 16384, options.flushMiB},
                 {"--jobs", 1, 1024, options.jobs},
                 {"--keep", 1, 100, options.kept},
                 {"--tolerance", 0, 1000, permille},
                 {"--seed", 0, INT64_MAX, seed}};
  for (auto &[name, least, most, value] : numbers) {
    Result<std::optional<int64_t>> given = arguments.integer(name, least, most);
    if (!given)
      return given.error();
    value = given->value_or(value);
  }
  options.measuring.idleMs = double(idleMs);
  options.measuring.seed = options.request.seed = uint64_t(seed);
  options.request.routing = arguments.valueOr("--routing", "uniform");
  options.tolerance = double(permille) / 1000;
  options.isAgain = arguments.has("--again");
  // A file that others expect to vanish (FileLock), whichever of us makes it.
  if (Result<void> writable = checkWritable(options.output + ".lock"); !writable)
    return writable.error();
  return options;
}

/// What became of one spec.
struct Tuned {
  std::vector<MeasuredRows> points;
  int64_t candidates = 0, spilling = 0, refused = 0, wrong = 0;
};

/// Times of the contenders of each point, as measured since `firstItem`.
std::vector<MeasuredRows> timesOf(const BenchRun &run, size_t firstContender) {
  std::vector<MeasuredRows> points(run.points.size());
  for (size_t p = 0; p < run.points.size(); ++p)
    points[p].rows = run.points[p].rows;
  for (size_t i = firstContender; i < run.contenders.size(); ++i) {
    const Contender &contender = run.contenders[i];
    if (!contender.refusal)
      points[contender.point].times.push_back(
          {contender.plan, median(run.items[contender.item].us)});
  }
  return points;
}

/// Tunes one spec on one device.
class SpecTuner {
public:
  SpecTuner(const TuneOptions &options, BenchDevice &device, Kernels &kernels, BenchSpec spec)
      : options(options), device(device), kernels(kernels) {
    run.specs.push_back(std::move(spec));
  }

  Result<Tuned> tune(const std::vector<int64_t> &rows) {
    const Spec &spec = run.specs[0].spec;
    for (int64_t count : rows)
      run.points.push_back({0, count, count / spec.numExperts});
    for (size_t p = 0; p < run.points.size(); ++p)
      if (Result<void> made = makePoint(run, device, options.request, p); !made)
        return made.error();

    std::vector<std::vector<KernelPlan>> wanted(run.points.size());
    for (size_t p = 0; p < run.points.size(); ++p)
      wanted[p] = firstPlans(run.points[p].rows);
    Result<std::vector<MeasuredRows>> first = pass(wanted, "first pass");
    if (!first || !options.plans.empty())
      return finish(first);

    // The fastest of each point, and all that differ from them in one decision.
    for (size_t p = 0; p < run.points.size(); ++p) {
      std::vector<PlanTime> times = (*first)[p].times;
      wanted[p] = {heuristic(run.points[p].rows)};
      std::sort(times.begin(), times.end(),
                [](const PlanTime &a, const PlanTime &b) { return a.us < b.us; });
      times.resize(std::min(times.size(), size_t(options.kept)));
      for (const PlanTime &time : times) {
        add(wanted[p], time.plan);
        for (const KernelPlan &near : neighbourPlans(time.plan, spec, kernels.target()))
          add(wanted[p], near);
      }
    }
    return finish(pass(wanted, "second pass"));
  }

private:
  KernelPlan heuristic(int64_t rows) const {
    return choosePlan(run.specs[0].spec, kernels.target(), rows, kernels.plan());
  }
  static void add(std::vector<KernelPlan> &plans, const KernelPlan &plan) {
    if (std::find(plans.begin(), plans.end(), plan) == plans.end())
      plans.push_back(plan);
  }
  std::vector<KernelPlan> firstPlans(int64_t rows) const {
    std::vector<KernelPlan> plans = {heuristic(rows)};
    for (const std::string &text : options.plans)
      if (Result<KernelPlan> plan = parsePlan(text, plans.front());
          plan && verifyPlan(*plan, run.specs[0].spec, kernels.target()))
        add(plans, *plan);
    if (options.plans.empty())
      for (const KernelPlan &plan : candidatePlans(run.specs[0].spec, kernels.target()))
        add(plans, plan);
    return plans;
  }

  /// Compiles, checks and times `wanted[p]` at each point p; the heuristic's plan comes first.
  Result<std::vector<MeasuredRows>> pass(const std::vector<std::vector<KernelPlan>> &wanted,
                                         const char *name) {
    size_t first = run.contenders.size();
    for (size_t p = 0; p < wanted.size(); ++p)
      for (const KernelPlan &plan : wanted[p])
        run.contenders.push_back({p, planDifference(plan, wanted[p].front()), plan});
    buildContenders(run, kernels, options.jobs, first);
    Meter meter(fmt::format("{}, {}: checking", run.specs[0].name, name),
                int64_t(run.contenders.size() - first));
    run.items.clear(); // those of an earlier pass are done
    std::set<std::string> spilling, refused;
    for (size_t i = first; i < run.contenders.size(); ++i) {
      Contender &contender = run.contenders[i];
      meter.step();
      // Contenders of each point are in order, the heuristic's first.
      bool isHeuristic = contender.label.empty();
      if (contender.refusal) {
        if (isHeuristic)
          return *contender.refusal;
        refused.insert(planText(contender.plan));
        continue;
      }
      const Artifact &artifact = contender.got.kernel->artifact();
      const ResourceUsage &used = artifact.resources;
      const bool isSlow = !parsePerformanceWarnings(artifact.compileLog).empty();
      if ((used.spillStoreBytes + used.spillLoadBytes > 0 || isSlow) && !isHeuristic) {
        spilling.insert(planText(contender.plan));
        contender.refusal = Error{ErrorCode::CompileError, "lacks registers", {}};
        continue;
      }
      if (Result<void> checked = checkContender(run, i); !checked)
        return checked.error();
      if (contender.check.isDone && !contender.check.isOk) {
        ++result.wrong;
        std::fputs(fmt::format("WRONG: {}, {} rows, {}: {}\n", run.specs[0].name,
                               run.points[contender.point].rows, planText(contender.plan),
                               contender.check.text)
                       .c_str(),
                   stderr);
        contender.refusal = Error{ErrorCode::Internal, "gives a wrong result", {}};
        if (isHeuristic)
          return *contender.refusal;
        run.items.pop_back();
      }
    }
    result.spilling += int64_t(spilling.size());
    result.refused += int64_t(refused.size());
    result.candidates += int64_t(run.contenders.size() - first);
    if (Result<void> measured = measure(device, run.items, options.measuring); !measured)
      return measured.error();
    return timesOf(run, first);
  }

  Result<Tuned> finish(const Result<std::vector<MeasuredRows>> &points) {
    if (!points)
      return points.error();
    result.points = *points;
    return result;
  }

  const TuneOptions &options;
  BenchDevice &device;
  Kernels &kernels;
  BenchRun run;
  Tuned result;
};

/// The row counts of `spec` that a launch can have and `table` has not.
std::vector<int64_t> openRows(const Spec &spec, const Target &target, const TuneOptions &options,
                              const TunedTable &table) {
  int64_t most = spec.dispatch == Dispatch::Batched  ? batchedRowLimit
                 : spec.dispatch == Dispatch::Masked ? spec.numExperts * spec.maxRows
                                                     : maxLaunchRows;
  std::vector<int64_t> rows;
  std::set<int64_t> known;
  if (const TunedSpec *tuned = table.find(spec, target); tuned && !options.isAgain)
    for (const TunedRange &range : tuned->ranges)
      known.insert(range.measuredRows);
  bool isOpen = false;
  for (int64_t perExpert : options.rowsPerExpert)
    if (int64_t count = perExpert * spec.numExperts; count <= most) {
      rows.push_back(count);
      isOpen |= !known.contains(count);
    }
  // Ranges depend on each other: all are measured again, or none.
  return isOpen ? rows : std::vector<int64_t>();
}

TunedTable headerOf(const BenchDevice &device, const Kernels &kernels, const TuneOptions &options) {
  TunedTable table;
  table.gpu = device.info().name;
  table.arch = kernels.target().arch;
  table.smCount = device.info().smCount;
  table.driver = cudaVersionText(device.info().driverVersion);
  table.nvrtc = kernels.nvrtcVersion();
  table.how =
      fmt::format("moejit tune: {} rounds of {} calls in shuffled order, {:g} ms idle before each "
                  "block, L2 {}, "
                  "medians; routing {}; plans within {:g} % of the fastest count as equal",
                  options.measuring.rounds, options.measuring.repeats, options.measuring.idleMs,
                  device.flushText(), options.request.routing, options.tolerance * 100);
  return table;
}

struct Summary {
  JsonWriter json;
  std::vector<std::vector<std::string>> rows = {
      {"kernel", "rows", "µs", "heuristic µs", "gain %", "differs from the heuristic's plan"}};
  int64_t wrong = 0, tuned = 0, kept = 0;
};

void report(Summary &summary, const BenchSpec &spec, const Target &target, const Tuned &tuned,
            const std::vector<TunedRange> &ranges, const PlanRequest &request) {
  summary.wrong += tuned.wrong;
  summary.json.beginObject().field("kernel", spec.name).field("spec", canonicalText(spec.spec));
  summary.json.field("candidates", tuned.candidates).field("spilling", tuned.spilling);
  summary.json.field("refused", tuned.refused).field("wrong", tuned.wrong);
  summary.json.key("rows").beginArray();
  for (const TunedRange &range : ranges) {
    KernelPlan usual = choosePlan(spec.spec, target, range.measuredRows, request);
    double gain = range.heuristicUs / range.us - 1;
    std::string differs = planDifference(range.plan, usual);
    summary.rows.push_back({spec.name, fmt::format("{}", range.measuredRows),
                            fmt::format("{:.1f}", range.us),
                            fmt::format("{:.1f}", range.heuristicUs),
                            fmt::format("{:.1f}", 100 * gain), differs.empty() ? "–" : differs});
    summary.json.beginObject().field("measuredRows", range.measuredRows).field("us", range.us);
    summary.json.field("heuristicUs", range.heuristicUs).field("plan", planText(range.plan));
    summary.json.field("differs", differs).endObject();
  }
  summary.json.endArray();
  // Every time, so that models can be fitted to them.
  summary.json.key("times").beginArray();
  for (const MeasuredRows &point : tuned.points)
    for (const PlanTime &time : point.times) {
      summary.json.beginObject().field("rows", point.rows).field("us", time.us);
      summary.json.field("modelUs", estimatePlan(time.plan, spec.spec, target, point.rows).us);
      summary.json.field("plan", planText(time.plan)).endObject();
    }
  summary.json.endArray().endObject();
}

/// The table in `path`; an empty one where there is none. Errors: those of readTunedTable.
Result<TunedTable> tableIn(const std::string &path) {
  std::error_code code;
  return std::filesystem::exists(path, code) ? readTunedTable(path) : TunedTable();
}

/// Adds `newer` to the table in `path`, to which other processes may be adding too, and returns all
/// of it. Errors: those of tableIn and mergeTuned; IoError.
Result<TunedTable> addTo(const std::string &path, const TunedTable &newer) {
  constexpr int waitMs = 10'000; // others only read and write it
  FileLock lock = FileLock::acquire(AT_FDCWD, path + ".lock", waitMs);
  Result<TunedTable> table = tableIn(path);
  if (!table)
    return table;
  if (Result<void> merged = mergeTuned(*table, newer); !merged)
    return merged.error();
  if (Result<void> written = writeFile(path + ".part", tunedTableJson(*table)); !written)
    return written.error();
  std::error_code code;
  std::filesystem::rename(path + ".part", path, code);
  if (code)
    return Error{ErrorCode::IoError, fmt::format("cannot write {}: {}", path, code.message())};
  return table;
}

int tune(const Arguments &arguments, const TuneOptions &options, BenchDevice &device,
         Kernels &kernels, const std::vector<BenchSpec> &specs) {
  Result<TunedTable> table = tableIn(options.output);
  if (!table)
    return fail(arguments, table.error());
  TunedTable header = headerOf(device, kernels, options);
  // A table of another GPU is refused before anything is measured.
  if (Result<void> fits = mergeTuned(*table, header); !fits)
    return fail(arguments, fits.error());
  Summary summary;
  summary.json.beginObject().field("table", options.output).key("specs").beginArray();
  for (const BenchSpec &spec : specs) {
    std::vector<int64_t> rows = openRows(spec.spec, kernels.target(), options, *table);
    std::fputs(fmt::format("{} of {}: {}{}\n", summary.tuned + summary.kept + 1, specs.size(),
                           spec.name, rows.empty() ? ": nothing to measure" : "")
                   .c_str(),
               stderr);
    if (rows.empty()) {
      ++summary.kept;
      continue;
    }
    Result<Tuned> tuned = SpecTuner(options, device, kernels, spec).tune(rows);
    if (!tuned)
      return fail(arguments, tuned.error());
    TunedTable newer = header;
    newer.specs = {{canonicalText(spec.spec), tunedRanges(tuned->points, options.tolerance)}};
    // After each kernel: what was measured is not lost, and another run goes on from there.
    table = addTo(options.output, newer);
    if (!table)
      return fail(arguments, table.error());
    report(summary, spec, kernels.target(), *tuned, newer.specs.front().ranges, kernels.plan());
    ++summary.tuned;
  }
  summary.json.endArray().field("tuned", summary.tuned).field("kept", summary.kept);
  summary.json.field("wrong", summary.wrong).endObject();
  int printed =
      print(arguments.has("--json") ? summary.json.text()
                                    : fmt::format("{}\n{} kernels tuned, {} were there, in {}\n",
                                                  moejit::tool::table(summary.rows), summary.tuned,
                                                  summary.kept, options.output));
  return summary.wrong > 0 ? int(exitWrong) : printed;
}

int run(const Arguments &arguments) {
  Result<TuneOptions> options = readOptions(arguments);
  if (!options)
    return fail(arguments, options.error());
  Result<std::vector<BenchSpec>> specs = readBenchSpecs(arguments);
  if (!specs)
    return fail(arguments, specs.error());
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
  KernelsOptions kernelOptions = kernelsOptions(arguments, *target);
  // The heuristic is what is compared with.
  kernelOptions.plan.tuned = nullptr;
  Result<std::unique_ptr<Kernels>> kernels = Kernels::open(std::move(kernelOptions));
  if (!kernels)
    return fail(arguments, kernels.error());
  if (!(*kernels)->hasNvrtc())
    return fail(arguments, (*kernels)->nvrtcError());
  return tune(arguments, *options, **device, **kernels, *specs);
}

} // namespace

const Command tuneCommand = {
    "tune",
    "Measure plans of kernels on the GPU and keep the fastest in a table",
    "FILES... -o FILE [options]",
    "For each kernel and number of rows measures tiles of every shape with the schedules that suit "
    "few and many rows, then everything that differs from the fastest of them in one decision, and "
    "keeps what won. Kernels are compiled in parallel before they are timed; those that spill "
    "registers are left out; every one is compared with the oracle. Times are taken as moejit "
    "bench takes them.\nThe table says for ranges of row counts which plan was fastest, its time "
    "and that of the plan chosen without a table. Give it to other commands with --tuned FILE; "
    "those in kernels/tuned come with the program. Kernels that are in FILE already are not "
    "measured again, and each is kept as soon as it is done, so an interrupted run goes on where "
    "it was.",
    "  moejit tune kernels -o kernels/tuned/nvidia-h200.json\n"
    "  moejit tune my.mlir --rows 16,128 -o my.json && moejit bench my.mlir --tuned my.json\n"
    "  printf 'stages=3\\nstages=4,raster=1\\n' > plans\n"
    "  moejit tune my.mlir --candidates plans -o my.json --json      # every time, for models",
    "  0  measured, or there already\n"
    "  1  a plan gave a wrong result (stderr says which; please report it), or a rule refuses a "
    "kernel\n"
    "  2  a FILE, the table or a plan cannot be used, or the command line is wrong\n"
    "  3  no GPU, not enough of its memory, or no NVRTC\n"
    "  4  a pass or NVRTC failed on the plan that is chosen without a table",
    withCommonOptions(withExtentOptions({
        {"-o", "FILE", "the table to write or add to"},
        {"--rows", "LIST", "rows an expert, with commas between them", "4,16,64,128,256,512,1024"},
        {"--candidates", "FILE",
         "plans in place of the generated ones, by what differs from the heuristic's, one a line"},
        {"--again", nullptr, "measure also what the table has"},
        {"--keep", "N", "plans of the first pass whose neighbours are measured", "3"},
        {"--tolerance", "PERMILLE", "plans so near the fastest count as equal", "10"},
        {"--routing", "HOW", "rows of each expert, as in moejit bench", "uniform"},
        {"--seed", "S", "of operands, routing and order", "1"},
        {"--rounds", "R", "shuffled rounds", "3"},
        {"--repeat", "R", "calls in a block", "4"},
        {"--idle-ms", "MS", "rest before each block", "20"},
        {"--flush-mib", "MIB", "memory read before each call", "512"},
        {"--jobs", "N", "kernels to compile at the same time", "one a CPU"},
    })),
    run,
};

} // namespace moejit::tool

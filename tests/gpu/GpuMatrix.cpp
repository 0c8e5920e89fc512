// moejit-gpu-tests: runs every kernel of a bundle under every edge routing, in never-compile mode,
// and compares all elements with the oracle; then the launch tests. A supervisor restarts worker
// processes, since a kernel that faults or hangs takes its process's context with it; the journal
// says where to go on.
#include "runtime/Jit.h"
#include "tests/gpu/Cases.h"
#include "tests/gpu/Device.h"
#include "tests/gpu/LaunchTests.h"
#include "tests/gpu/QuantizeRuns.h"
#include "tests/gpu/Report.h"
#include "tests/oracle/Compare.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace moejit;
using namespace moejit::gpu;

namespace {

constexpr int exitLost = 3;    ///< a kernel took the context with it; more work may be left
constexpr int exitTimeout = 4; ///< the time limit came first
constexpr int mostRestarts = 20;

struct Options {
  std::string folder, journal, markdown, lines, only;
  bool faults = false, isQuick = false, separate = false, shortensY = false, inProcess = false,
       withMatrix = true, withLaunch = true, listOnly = false, isWorker = false;
  unsigned threads = 0;
  double seconds = 0; ///< of everything; 0: no limit
  double hangSeconds = 10;
};

bool isNamed(const Options &options, const Case &entry) {
  return entry.name.find(options.only) != std::string::npos;
}
bool isGemmCase(const Options &options, const Case &entry) {
  return entry.spec.computation == Computation::Gemm &&
         entry.isIn(options.isQuick ? "quick" : "matrix") && isNamed(options, entry);
}

std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
double secondsSinceStart() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

/// One kernel of a case: a row range of the bundle.
struct PlanChoice {
  std::string name;
  int64_t expectedRows = 0;
};

/// The kernels that the bundle has for `spec`.
std::vector<PlanChoice> plansOf(Cache &bundle, const Spec &spec) {
  std::vector<PlanChoice> plans;
  std::string lookup = lookupKeyText(spec, Target());
  for (const IndexedRange &range : bundle.ranges(lookup)) {
    std::shared_ptr<const Artifact> artifact = bundle.findByLookup(lookup, range.minRows);
    std::string rows = range.maxRows == INT64_MAX ? fmt::format("rows from {}", range.minRows)
                                                  : fmt::format("rows to {}", range.maxRows);
    if (artifact)
      rows += fmt::format(", tile {}x{}", artifact->launch.grid.tileM, artifact->launch.grid.tileN);
    plans.push_back({rows, range.minRows});
  }
  return plans;
}

/// A worker's work: cases × routings, then the launch tests.
class Worker {
public:
  Worker(const Options &options, const Device &device, std::shared_ptr<Cache> bundle,
         const std::vector<Case> &cases, Journal &journal)
      : options(options), device(device), bundle(std::move(bundle)), cases(cases),
        journal(journal) {
    JitOptions jitOptions;
    jitOptions.cache = this->bundle;
    jitOptions.driver = &device.api();
    jit = std::make_unique<Jit>(std::move(jitOptions));
  }

  bool run() {
    if (options.withMatrix)
      runMatrix();
    if (options.withMatrix && !isLate())
      runQuantizations();
    if (options.withLaunch && !isLate())
      runLaunchTests();
    return !isLate();
  }

  static Outcome *current; ///< what the GPU is at, for whoever must say what was lost

private:
  struct Job {
    const Case *entry;
    RoutingCase routing;
    std::vector<PlanChoice> plans;
  };

  bool isLate() const { return options.seconds > 0 && secondsSinceStart() > options.seconds; }

  void report(const Outcome &outcome) {
    journal.add(outcome);
    std::lock_guard guard(printing);
    fmt::print("{}\n", lineOf(outcome));
    std::fflush(stdout);
  }

  void runMatrix() {
    std::vector<Job> jobs;
    for (const Case &entry : cases) {
      if (!isGemmCase(options, entry))
        continue;
      std::vector<PlanChoice> plans = plansOf(*bundle, entry.spec);
      if (plans.empty()) {
        Outcome outcome;
        outcome.subject = entry.name;
        outcome.situation = "lookup";
        outcome.text = "the bundle has no kernel of this spec";
        if (!journal.isDone(outcome))
          report(outcome);
      }
      for (RoutingCase &routing : routingsOf(entry))
        if (routing.isQuick || !options.isQuick)
          jobs.push_back({&entry, std::move(routing), plans});
    }
    std::atomic<size_t> next = 0;
    auto work = [&] {
      device.makeCurrent();
      for (size_t i = next++; i < jobs.size() && !isLate(); i = next++)
        runJob(jobs[i], i);
    };
    unsigned threads =
        options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> helpers;
    for (unsigned i = 1; i < threads; ++i)
      helpers.emplace_back(work);
    work();
    for (std::thread &helper : helpers)
      helper.join();
  }

  /// Quantizations need no fp64 reference, so one thread is enough.
  void runQuantizations() {
    device.makeCurrent();
    uint64_t seed = 5000;
    for (const Case &entry : cases) {
      if (!isQuantizeCase(entry, options.isQuick) || !isNamed(options, entry))
        continue;
      JitHandle handle = jit->handle(entry.spec);
      for (const QuantizeLaunch &launch : quantizeLaunches())
        for (const PlanChoice &plan : plansOf(*bundle, entry.spec)) {
          Outcome outcome;
          outcome.subject = entry.name;
          outcome.situation = launch.name;
          outcome.plan = plan.name;
          ++seed;
          if ((options.isQuick && !launch.isQuick) || isLate() || journal.isDone(outcome) ||
              journal.isLost(outcome.subject, plan.name))
            continue;
          journal.begin(outcome);
          current = &outcome;
          runQuantization(device, handle, entry, launch, plan.expectedRows, options.separate, seed,
                          outcome);
          current = nullptr;
          report(outcome);
        }
    }
  }

  void runJob(const Job &job, size_t index) {
    std::vector<std::pair<PlanChoice, Outcome>> open;
    for (const PlanChoice &plan : job.plans) {
      Outcome outcome;
      outcome.subject = job.entry->name;
      outcome.situation = job.routing.name;
      outcome.plan = plan.name;
      if (!journal.isDone(outcome) && !journal.isLost(outcome.subject, plan.name))
        open.emplace_back(plan, outcome);
    }
    if (open.empty())
      return;
    oracle::HostProblem problem = makeProblem(*job.entry, job.routing, 1000 + index);
    oracle::OracleResult reference = oracle::reference(problem, oracle::Selection::all(problem), 1);
    JitHandle handle = jit->handle(job.entry->spec);
    for (auto &[plan, outcome] : open) {
      runKernel(problem, reference, handle, plan, outcome);
      report(outcome);
    }
  }

  void runKernel(const oracle::HostProblem &problem, const oracle::OracleResult &reference,
                 JitHandle &handle, const PlanChoice &plan, Outcome &outcome) {
    Result<std::shared_ptr<Kernel>> kernel = handle.kernel(plan.expectedRows);
    if (!kernel) {
      outcome.text = kernel.error().text();
      return;
    }
    LaunchImage image(problem, (*kernel)->workspaceBytes(problem.rows));
    std::vector<uint8_t> after = image.bytes;
    Result<void> launched = options.separate ? launchSeparate(image, handle, plan, outcome, after)
                                             : launchTogether(image, handle, plan, outcome, after);
    if (!launched) {
      outcome.text = launched.error().text();
      return;
    }
    oracle::Comparison comparison = oracle::compare(problem, reference, image.output(after));
    std::string overwritten = image.inputsAreIntact(after);
    double expected = oracle::expectedRelativeError(problem.spec.outType, problem.spec.accumulate);
    // Few products of long exponents cancel: their sums are as exact as the bound says, no more.
    bool isClose =
        comparison.compared < 4096 || problem.spec.k < 128 || comparison.relativeError <= expected;
    outcome.relativeError = comparison.relativeError;
    outcome.worstRatio = comparison.worstRatio;
    outcome.compared = comparison.compared;
    if (comparison.worstRow >= 0)
      outcome.worst =
          fmt::format("{:.6g}, expected {:.6g} ± {:.1e} at [{}, {}]", comparison.worstOut,
                      comparison.worstReference, comparison.worstBound, comparison.worstRow,
                      comparison.worstColumn);
    outcome.ok = comparison.ok() && overwritten.empty() && isClose;
    if (!outcome.ok)
      outcome.text = comparison.text() + (overwritten.empty() ? "" : "; " + overwritten) +
                     (isClose ? "" : fmt::format("; relative error above {:.1e}", expected));
  }

  /// All tensors in one allocation, poison between them. One launch at a time: a fault is then this
  /// kernel's.
  Result<void> launchTogether(const LaunchImage &image, JitHandle &handle, const PlanChoice &plan,
                              Outcome &outcome, std::vector<uint8_t> &after) {
    std::lock_guard guard(gpu);
    current = &outcome;
    journal.begin(outcome);
    if (memory.size() < image.bytes.size())
      memory = DeviceMemory(device, image.bytes.size() * 3 / 2);
    Stream stream(device);
    memory.upload(image.bytes.data(), image.bytes.size());
    Result<void> launched =
        handle.launch(image.arguments(memory.address()), stream.get(), plan.expectedRows);
    stream.wait();
    if (launched)
      memory.download(after.data(), after.size());
    current = nullptr;
    return launched;
  }

  /// Every tensor in an allocation of its exact size, for memory checkers.
  Result<void> launchSeparate(const LaunchImage &image, JitHandle &handle, const PlanChoice &plan,
                              Outcome &outcome, std::vector<uint8_t> &after) {
    std::lock_guard guard(gpu);
    current = &outcome;
    journal.begin(outcome);
    std::array<DeviceMemory, LaunchImage::fieldCount> memories;
    std::array<cu::DevicePointer, LaunchImage::fieldCount> bases = {};
    auto placeOf = [&](size_t i) {
      LaunchImage::Place place = i == LaunchImage::Y ? image.exactY() : image.places[i];
      if (i == LaunchImage::Y && options.shortensY)
        place.bytes /= 2;
      return place;
    };
    for (size_t i = 0; i < memories.size(); ++i) {
      memories[i] = DeviceMemory(device, placeOf(i).bytes);
      bases[i] = memories[i].address();
      memories[i].upload(image.bytes.data() + placeOf(i).offset, placeOf(i).bytes);
    }
    Stream stream(device);
    Result<void> launched = handle.launch(image.arguments(bases), stream.get(), plan.expectedRows);
    stream.wait();
    if (launched)
      for (size_t i = 0; i < memories.size(); ++i)
        memories[i].download(after.data() + placeOf(i).offset, placeOf(i).bytes);
    current = nullptr;
    return launched;
  }

  void runLaunchTests() {
    LaunchContext context{device, bundle, cases, options.isQuick};
    device.makeCurrent();
    for (const LaunchTest &test : launchTests()) {
      Outcome outcome;
      outcome.subject = "launch";
      outcome.situation = test.name;
      if (journal.isDone(outcome) || isLate() ||
          (!options.only.empty() && outcome.situation.find(options.only) == std::string::npos))
        continue;
      journal.begin(outcome);
      current = &outcome;
      Result<std::string> result = test.run(context);
      current = nullptr;
      outcome.ok = bool(result);
      outcome.text = result ? *result : result.error().text();
      report(outcome);
    }
  }

  const Options &options;
  const Device &device;
  std::shared_ptr<Cache> bundle;
  const std::vector<Case> &cases;
  Journal &journal;
  std::unique_ptr<Jit> jit;
  std::mutex gpu; ///< guards `memory` and the launch in flight
  DeviceMemory memory;
  std::mutex printing;
};

Outcome *Worker::current = nullptr;
Journal *workerJournal = nullptr;

/// The context is gone: notes what it died of and leaves without any clean-up that could wait for
/// the GPU.
void leaveLost(const std::string &what) {
  if (Worker::current && workerJournal) {
    Worker::current->isLost = true;
    Worker::current->ok = false;
    Worker::current->text = what;
    workerJournal->add(*Worker::current);
    fmt::print("{}\n", lineOf(*Worker::current));
  } else
    fmt::print("LOST outside a launch: {}\n", what);
  std::fflush(stdout);
  std::_Exit(exitLost);
}

Result<std::shared_ptr<Cache>> openBundle(const std::string &folder) {
  CacheOptions options;
  options.folder = folder + "/bundle";
  options.mode = CacheMode::Bundle;
  options.log = [](const std::string &message) { fmt::print(stderr, "{}\n", message); };
  return Cache::open(std::move(options));
}

int runWorker(const Options &options, const std::vector<Case> &cases) {
  Journal journal(options.journal);
  if (!journal.isOpen())
    return fmt::print(stderr, "{} cannot be written\n", options.journal), 2;
  Result<std::shared_ptr<Cache>> bundle = openBundle(options.folder);
  if (!bundle)
    return fmt::print(stderr, "{}\n", bundle.error().text()), 2;
  workerJournal = &journal;
  onContextLost(leaveLost);
  Result<std::unique_ptr<Device>> device = Device::open(0);
  if (!device)
    return fmt::print(stderr, "{}\n", device.error().text()), 2;
  (*device)->hangSeconds = options.hangSeconds;
  Worker worker(options, **device, *bundle, cases, journal);
  return worker.run() ? 0 : exitTimeout;
}

/// Loses this process's context, for the test of those who go on without it.
int runFault(const Options &options, const std::vector<Case> &cases) {
  Result<std::shared_ptr<Cache>> bundle = openBundle(options.folder);
  if (!bundle)
    return fmt::print(stderr, "{}\n", bundle.error().text()), 2;
  onContextLost(leaveLost);
  Result<std::unique_ptr<Device>> device = Device::open(0);
  if (!device)
    return fmt::print(stderr, "{}\n", device.error().text()), 2;
  (*device)->makeCurrent();
  return faultOnPurpose({**device, *bundle, cases, true});
}

/// Checks that a full run makes.
size_t plannedChecks(const Options &options, Cache &bundle, const std::vector<Case> &cases) {
  size_t count = 0;
  if (options.withMatrix)
    for (const Case &entry : cases)
      if (isGemmCase(options, entry)) {
        size_t routings = 0;
        for (const RoutingCase &routing : routingsOf(entry))
          routings += routing.isQuick || !options.isQuick;
        count += routings * bundle.ranges(lookupKeyText(entry.spec, Target())).size();
      }
  if (options.withMatrix)
    for (const Case &entry : cases)
      if (isQuantizeCase(entry, options.isQuick) && isNamed(options, entry))
        for (const QuantizeLaunch &launch : quantizeLaunches())
          if (launch.isQuick || !options.isQuick)
            count += bundle.ranges(lookupKeyText(entry.spec, Target())).size();
  if (options.withLaunch)
    for (const LaunchTest &test : launchTests())
      count +=
          options.only.empty() || std::string(test.name).find(options.only) != std::string::npos;
  return count;
}

/// Runs this program again as a worker; its wait status.
int spawnWorker(const Options &options, int argc, char **argv) {
  std::vector<std::string> words(argv, argv + argc);
  double left = options.seconds > 0 ? std::max(1.0, options.seconds - secondsSinceStart()) : 0;
  for (const std::string &word : {std::string("--worker"), options.journal,
                                  std::string("--seconds"), fmt::format("{}", left)})
    words.push_back(word);
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = fork();
  if (child == 0) {
    execv("/proc/self/exe", arguments.data());
    std::_Exit(127);
  }
  int status = 0;
  // A process whose kernel hangs may not even die: give it its time, then go on without it.
  double limit = left > 0 ? left + 60 : 3600;
  auto begin = std::chrono::steady_clock::now();
  while (waitpid(child, &status, WNOHANG) == 0) {
    std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (waited.count() > limit) {
      kill(child, SIGKILL);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return status;
}

std::string deviceText() {
  Result<const DriverApi *> driver = openDriver();
  if (!driver)
    return driver.error().message;
  Result<DeviceInfo> info = deviceInfo(**driver, 0);
  Result<int> count = deviceCount(**driver);
  if (!info || !count)
    return "unknown device";
  return fmt::format("{} × {}, {} SMs, driver for CUDA {}.", *count, info->name, info->smCount,
                     cudaVersionText(info->driverVersion));
}

int finish(const Options &options, const std::vector<Outcome> &outcomes, size_t planned) {
  size_t failed = 0;
  for (const Outcome &outcome : outcomes)
    failed += !outcome.ok;
  size_t notRun = planned > outcomes.size() ? planned - outcomes.size() : 0;
  std::string summary = summaryOf(outcomes, notRun);
  if (!options.markdown.empty())
    std::ofstream(options.markdown) << markdownOf(outcomes, notRun, deviceText());
  if (!options.lines.empty())
    std::ofstream(options.lines) << everyLineOf(outcomes);
  fmt::print("\n{}{:.1f} s, {}\n", summary, secondsSinceStart(),
             failed || notRun ? "FAILED" : "all ok");
  return failed || notRun || outcomes.empty() ? 1 : 0;
}

int supervise(const Options &options, Cache &bundle, const std::vector<Case> &cases, int argc,
              char **argv) {
  std::remove(options.journal.c_str());
  size_t planned = plannedChecks(options, bundle, cases);
  for (int restart = 0; restart <= mostRestarts; ++restart) {
    int status = spawnWorker(options, argc, argv);
    bool isOver = status != -1 && WIFEXITED(status) && WEXITSTATUS(status) != exitLost;
    Journal journal(options.journal);
    // Begun and not ended: the process died of it.
    std::vector<Outcome> unfinished = journal.unfinished();
    if (!isOver)
      for (Outcome outcome : unfinished) {
        outcome.isLost = true;
        outcome.text = status != -1 && WIFSIGNALED(status)
                           ? fmt::format("the process died of signal {}", WTERMSIG(status))
                           : "the process did not end";
        fmt::print("{}\n", lineOf(outcome));
        journal.add(outcome);
      }
    if (isOver) {
      if (int code = WEXITSTATUS(status); code == 2 || code == 127)
        return code;
      break;
    }
    if (options.seconds > 0 && secondsSinceStart() > options.seconds)
      break;
    fmt::print("a worker was lost ({} so far); starting another\n", restart + 1);
  }
  Journal journal(options.journal);
  return finish(options, journal.outcomes(), planned);
}

constexpr const char *help =
    R"(usage: moejit-gpu-tests FOLDER [options]

Runs the kernels of FOLDER (made by moejit-gpu-bundle) on GPU 0, never compiling, and compares every
element with the oracle; then tests launches: graphs, captures, streams, threads, devices.

  --quick            a few kernels and routings, for compute-sanitizer
  --separate         every tensor in an allocation of its exact size
  --short-y          with --separate, y gets half its memory: a memory checker must notice
  --fault            launch a kernel that writes to nobody's memory: exit code 3 when the GPU notices
  --in-process       no worker processes: a lost context ends the run
  --no-matrix        launch tests only
  --no-launch        kernels only
  --only TEXT        only kernels, or launch tests, whose name contains TEXT
  --threads N        host threads that compute references (one for each core)
  --seconds N        stop after that time; what was not run counts as a failure
  --hang-seconds N   a launch that takes longer is lost (10)
  --journal FILE     results as they come (moejit-gpu-tests.journal in the current folder)
  --markdown FILE    tables for docs/results
  --lines FILE       every check as a row of a Markdown table
  --list             print what would run

exit code: 0 all ok, 1 something failed or was not run, 2 wrong usage, no bundle or no GPU
)";

int usage(const std::string &problem) {
  fmt::print(stderr, "moejit-gpu-tests: {}\n{}", problem, help);
  return 2;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  options.journal = "moejit-gpu-tests.journal";
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    auto flag = [&](const char *name, bool &target, bool value = true) {
      if (option != name)
        return false;
      target = value;
      return true;
    };
    if (option == "--help")
      return fmt::print("{}", help), 0;
    if (flag("--quick", options.isQuick) || flag("--separate", options.separate) ||
        flag("--fault", options.faults) || flag("--short-y", options.shortensY) ||
        flag("--in-process", options.inProcess) || flag("--list", options.listOnly) ||
        flag("--no-matrix", options.withMatrix, false) ||
        flag("--no-launch", options.withLaunch, false))
      continue;
    if (option[0] != '-') {
      if (!options.folder.empty())
        return usage(option + ": one folder is enough");
      options.folder = option;
      continue;
    }
    if (i + 1 == argc)
      return usage(option + ": unknown, or without its value");
    std::string value = argv[++i];
    if (option == "--only")
      options.only = value;
    else if (option == "--threads")
      options.threads = unsigned(std::max(1, std::atoi(value.c_str())));
    else if (option == "--seconds")
      options.seconds = std::atof(value.c_str());
    else if (option == "--hang-seconds")
      options.hangSeconds = std::atof(value.c_str());
    else if (option == "--journal")
      options.journal = value;
    else if (option == "--markdown")
      options.markdown = value;
    else if (option == "--lines")
      options.lines = value;
    else if (option == "--worker") {
      options.isWorker = true;
      options.journal = value;
    } else
      return usage(option + ": unknown");
  }
  if (options.folder.empty())
    return usage("which folder?");
  Result<std::vector<Case>> cases = readCases(options.folder);
  if (!cases)
    return fmt::print(stderr, "moejit-gpu-tests: {}\n", cases.error().text()), 2;
  if (options.faults)
    return runFault(options, *cases);
  if (options.isWorker)
    return runWorker(options, *cases);
  Result<std::shared_ptr<Cache>> bundle = openBundle(options.folder);
  if (!bundle)
    return fmt::print(stderr, "moejit-gpu-tests: {}\n", bundle.error().text()), 2;
  if (options.listOnly) {
    for (const Case &entry : *cases)
      if (isGemmCase(options, entry))
        for (const RoutingCase &routing : routingsOf(entry))
          if (routing.isQuick || !options.isQuick)
            for (const PlanChoice &plan : plansOf(**bundle, entry.spec))
              fmt::print("{}\t{}\t{}\n", entry.name, routing.name, plan.name);
    fmt::print(stderr, "{} checks\n", plannedChecks(options, **bundle, *cases));
    return 0;
  }
  if (options.inProcess) {
    std::remove(options.journal.c_str());
    int code = runWorker(options, *cases);
    if (code == 2)
      return code;
    Journal journal(options.journal);
    return finish(options, journal.outcomes(), plannedChecks(options, **bundle, *cases));
  }
  return supervise(options, **bundle, *cases, argc, argv);
}

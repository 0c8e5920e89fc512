// Finding and making kernels: once for each, across threads, processes and deaths.
#include "runtime/Jit.h"

#include "FakeDriver.h"
#include "Samples.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace moejit;

namespace {

/// What every compile function of these tests gives; the Jit sets the keys itself.
Artifact compiled() {
  Artifact artifact = samples::artifact();
  artifact.lookupKey = artifact.buildKey = artifact.planText = "";
  return artifact;
}

struct Fixture {
  std::shared_ptr<Cache> openCache(CacheMode mode = CacheMode::ReadWrite) {
    CacheOptions options;
    options.folder = folder.path;
    options.mode = mode;
    options.log = [this](const std::string &) { ++warnings; };
    Result<std::shared_ptr<Cache>> cache = Cache::open(std::move(options));
    REQUIRE(cache);
    return *cache;
  }
  JitOptions options(std::shared_ptr<Cache> cache) {
    JitOptions options;
    options.cache = std::move(cache);
    options.generator = {"f00d", "13.0", "--fmad=false"};
    options.compile = [this](const Spec &, const Target &, const KernelPlan &) {
      // One byte for each compile, in whichever process.
      int fd = open(counter().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      (void)!write(fd, "c", 1);
      close(fd);
      std::this_thread::sleep_for(std::chrono::milliseconds(compileMs));
      return Result<Artifact>(compiled());
    };
    return options;
  }
  std::string counter() const { return counts.path + "/compiles"; }
  int compiles() const {
    struct stat info = {};
    return stat(counter().c_str(), &info) == 0 ? int(info.st_size) : 0;
  }

  samples::TemporaryFolder folder, counts;
  std::atomic<int> warnings = 0;
  int compileMs = 5;
};

int64_t rangesOfSpec() { return int64_t(planRanges(samples::spec(), Target()).size()); }

} // namespace

TEST_CASE_FIXTURE(Fixture, "checked kernels lie beside the others, in one folder") {
  for (bool checked : {false, true, false, true}) {
    JitOptions made = options(openCache());
    made.plan.checked = checked;
    Jit jit(made);
    Result<std::shared_ptr<Kernel>> kernel = jit.get(samples::spec(), 1);
    REQUIRE(kernel);
    CHECK((*kernel)->artifact().lookupKey == lookupKeyText(samples::spec(), Target(), made.plan));
    CHECK(((*kernel)->artifact().planText.find("checked=true") != std::string::npos) == checked);
  }
  CHECK(compiles() == 2);
  // A runtime that never compiles finds each by what it asks for.
  JitOptions asking;
  asking.cache = openCache(CacheMode::ReadOnly);
  asking.plan.checked = true;
  CHECK((*Jit(asking).get(samples::spec(), 1))->artifact().planText.find("checked=true") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a kernel is made once, kept, and carries its keys") {
  Jit jit(options(openCache()));
  Result<std::shared_ptr<Kernel>> first = jit.get(samples::spec(), 1);
  REQUIRE(first);
  CHECK(*jit.get(samples::spec(), 1) == *first);
  CHECK(*jit.handle(samples::spec()).kernel(1) == *first);
  CHECK(compiles() == 1);
  const Artifact &artifact = (*first)->artifact();
  CHECK(artifact.lookupKey == lookupKeyText(samples::spec(), Target()));
  CHECK(artifact.planText == planText(choosePlan(samples::spec(), Target(), 1)));
  CHECK(artifact.buildKey ==
        buildKeyText(artifact.lookupKey, artifact.planText, {"f00d", "13.0", "--fmad=false"}));
}

TEST_CASE_FIXTURE(Fixture, "another Jit finds what one made, unless the generator changed") {
  REQUIRE(Jit(options(openCache())).build(samples::spec()));
  int made = compiles();
  Jit second(options(openCache()));
  REQUIRE(second.build(samples::spec()));
  CHECK(compiles() == made);
  JitOptions changed = options(openCache());
  changed.generator.nvrtcVersion = "13.1";
  REQUIRE(Jit(changed).get(samples::spec(), 1));
  CHECK(compiles() == made + 1);
}

TEST_CASE_FIXTURE(Fixture, "ahead-of-time building covers every row count without a compiler") {
  std::shared_ptr<Cache> cache = openCache();
  REQUIRE(Jit(options(cache)).build(samples::spec()));
  REQUIRE(cache->writeManifest());
  CHECK(compiles() <= rangesOfSpec());
  int made = compiles();
  for (CacheMode mode : {CacheMode::Bundle, CacheMode::ReadOnly, CacheMode::ReadWrite}) {
    JitOptions offline = options(openCache(mode));
    if (mode != CacheMode::Bundle) // a bundle never compiles, not even where it could
      offline.compile = nullptr;
    offline.generator = {};
    Jit jit(offline);
    for (int64_t rows : {0l, 1l, 64l, 65l, 4096l, 1l << 31, std::numeric_limits<int64_t>::max()}) {
      Result<std::shared_ptr<Kernel>> kernel = jit.get(samples::spec(), rows);
      REQUIRE(kernel);
      CHECK((*kernel)->artifact().planText ==
            planText(choosePlan(samples::spec(), Target(), rows)));
      CHECK(*jit.get(samples::spec(), rows) == *kernel);
    }
  }
  CHECK(compiles() == made);
}

// Kernels read the SM count when they are launched; plans alone are chosen by it.
TEST_CASE_FIXTURE(Fixture, "a bundle serves every device of its architecture, at every row count") {
  std::shared_ptr<Cache> cache = openCache();
  JitOptions made = options(cache);
  compileMs = 0;
  Spec batched = samples::spec();
  batched.dispatch = Dispatch::Batched;
  for (const Spec &spec : {samples::spec(), batched})
    REQUIRE(Jit(made).build(spec));
  REQUIRE(cache->writeManifest());
  int before = compiles();
  for (const Spec &spec : {samples::spec(), batched})
    for (int64_t smCount : {78, 114, 132}) {
      samples::FakeDriver driver;
      installFakeDriver(driver);
      driver.smCount = int(smCount);
      for (bool knowsDevice : {false, true}) {
        JitOptions offline = options(openCache(CacheMode::Bundle));
        offline.driver = &driver.api;
        if (knowsDevice) {
          offline.target.profile.name = "another";
          offline.target.profile.smCount = smCount;
        }
        Jit jit(offline);
        JitHandle handle = jit.handle(spec);
        for (int64_t rows = 0; rows <= 4096; ++rows) {
          Result<std::shared_ptr<Kernel>> kernel = handle.kernel(rows);
          REQUIRE(kernel);
          // The usual device's plan, which is the one of this row count.
          CHECK((*kernel)->artifact().planText == planText(choosePlan(spec, Target(), rows)));
        }
        CHECK(jit.workspaceBytes(spec, 4096));
        GemmArguments arguments;
        static char memory[64] alignas(16);
        arguments.x = arguments.w = {memory};
        arguments.xScales = arguments.wScales = arguments.offsets = {memory};
        arguments.expertIds = {memory};
        arguments.y = {reinterpret_cast<void *>(uintptr_t(1) << 40)};
        arguments.rows = 4096;
        driver.launches.clear();
        if (Result<void> launched = handle.launch(arguments, nullptr); !launched)
          FAIL(launched.error().text());
        REQUIRE(driver.launches.size() == 1);
        CHECK(driver.launches[0].config.grid[0] <= unsigned(smCount));
      }
    }
  CHECK(compiles() == before);
}

TEST_CASE_FIXTURE(Fixture, "a kernel of a bundle that was altered is refused by name") {
  std::shared_ptr<Cache> cache = openCache();
  REQUIRE(Jit(options(cache)).build(samples::spec()));
  REQUIRE(cache->writeManifest());
  for (const char *suffix : {".kernel", ".index"})
    for (const std::string &name : samples::filesIn(folder.path, suffix))
      std::ofstream(folder.path + "/" + name, std::ios::app) << "x";
  JitOptions offline;
  offline.cache = openCache(CacheMode::Bundle);
  Result<std::shared_ptr<Kernel>> refused = Jit(offline).get(samples::spec(), 7);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::ParseError);
  CHECK(refused.error().message.find("the bundle is not as it was made: ") == 0);
  CHECK(refused.error().message.find(".index: has ") != std::string::npos);
  // A cache says so beside the command that builds it again.
  offline.cache = openCache(CacheMode::ReadOnly);
  refused = Jit(offline).get(samples::spec(), 7);
  CHECK(refused.error().code == ErrorCode::NotInCache);
  REQUIRE_FALSE(refused.error().notes.empty());
  CHECK(refused.error().notes.back().find("the index is damaged") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a miss that may not compile says what to do") {
  JitOptions offline = options(openCache());
  offline.compile = nullptr;
  Jit jit(offline);
  Result<std::shared_ptr<Kernel>> missing = jit.get(samples::spec(), 7);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::NotInCache);
  CHECK(missing.error().message.find("not in the cache; build it with: moejit aot ") == 0);
  CHECK(missing.error().message.find(canonicalText(samples::spec())) != std::string::npos);
  CHECK(missing.error().message.find(" --cache '" + folder.path + "' --spec ") !=
        std::string::npos);
  // Made meanwhile, by another process say, it is found.
  REQUIRE(Jit(options(openCache())).build(samples::spec()));
  CHECK(jit.get(samples::spec(), 7));
}

TEST_CASE_FIXTURE(Fixture, "ranges of one plan that are asked for at once are all entered") {
  std::vector<PlannedRange> planned = planRanges(samples::spec(), Target());
  std::vector<int64_t> rows; // of ranges that share a plan
  for (const PlannedRange &range : planned)
    for (const PlannedRange &other : planned)
      if (range.minRows != other.minRows && planText(range.plan) == planText(other.plan)) {
        rows.push_back(range.minRows);
        break;
      }
  REQUIRE(rows.size() > 1);
  compileMs = 200;
  std::shared_ptr<Cache> cache = openCache();
  Jit jit(options(cache));
  std::vector<std::thread> threads;
  for (int64_t each : rows)
    threads.emplace_back([&, each] { CHECK(jit.get(samples::spec(), each)); });
  for (std::thread &thread : threads)
    thread.join();
  for (int64_t each : rows)
    CHECK(openCache(CacheMode::ReadOnly)
              ->findByLookup(lookupKeyText(samples::spec(), Target()), each));
}

TEST_CASE_FIXTURE(Fixture, "without a cache kernels live in the Jit") {
  Jit jit(options(nullptr));
  REQUIRE(jit.get(samples::spec(), 1));
  REQUIRE(jit.get(samples::spec(), 1));
  CHECK(compiles() == 1);
  CHECK(jit.get(samples::spec(), -1).error().code == ErrorCode::InvalidArgument);
}

TEST_CASE_FIXTURE(Fixture, "handles outlive their Jit") {
  std::optional<JitHandle> handle;
  {
    Jit jit(options(openCache()));
    handle = jit.handle(samples::spec());
  }
  CHECK(handle->kernel(1));
  CHECK(handle->spec() == samples::spec());
}

// flashinfer #4062: what a failed or short compile leaves must reach no one.
TEST_CASE_FIXTURE(Fixture, "a failed or short compile publishes nothing and is tried again") {
  enum class Outcome { Fails, NoImage, HalfImage, NoElf, Works } outcome = Outcome::Fails;
  JitOptions given = options(openCache());
  given.compile = [&](const Spec &, const Target &, const KernelPlan &) -> Result<Artifact> {
    Artifact artifact = compiled();
    artifact.compileLog = "the log";
    // Sections of 64 bytes at 64: 128 in all.
    artifact.cubin[40] = 64;
    artifact.cubin[58] = 64;
    artifact.cubin[60] = 1;
    artifact.cubin += std::string(64, 's');
    switch (outcome) {
    case Outcome::Fails:
      return Error{ErrorCode::CompileError, "NVRTC failed", {"the log"}};
    case Outcome::NoImage:
      artifact.cubin = artifact.ptx = "";
      break;
    case Outcome::HalfImage:
      artifact.cubin.resize(100);
      break;
    case Outcome::NoElf:
      artifact.cubin = "half";
      break;
    case Outcome::Works:
      break;
    }
    return artifact;
  };
  Jit jit(given);
  for (Outcome bad : {Outcome::Fails, Outcome::NoImage, Outcome::HalfImage, Outcome::NoElf}) {
    outcome = bad;
    Result<std::shared_ptr<Kernel>> refused = jit.get(samples::spec(), 1);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::CompileError);
    CHECK(refused.error().notes == std::vector<std::string>{"the log"});
    CHECK(samples::filesIn(folder.path).empty());
  }
  outcome = Outcome::Works;
  CHECK(jit.get(samples::spec(), 1));
}

TEST_CASE_FIXTURE(Fixture, "concurrent requests compile once, with a cache and without") {
  compileMs = 50;
  for (std::shared_ptr<Cache> cache : {openCache(), std::shared_ptr<Cache>()}) {
    int before = compiles();
    Jit jit(options(cache));
    std::vector<std::shared_ptr<Kernel>> kernels(8);
    std::vector<std::thread> threads;
    for (std::shared_ptr<Kernel> &kernel : kernels)
      threads.emplace_back([&] { kernel = *jit.get(samples::spec(), 1); });
    for (std::thread &thread : threads)
      thread.join();
    CHECK(compiles() == before + 1);
    for (const std::shared_ptr<Kernel> &kernel : kernels)
      CHECK(kernel == kernels[0]);
  }
}

// Two caches are two owners, as two processes are.
TEST_CASE_FIXTURE(Fixture, "two Jits on one folder compile once") {
  compileMs = 50;
  std::vector<std::thread> threads;
  std::atomic<int> found = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { found += bool(Jit(options(openCache())).get(samples::spec(), 1)); });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(found == 4);
  CHECK(compiles() == 1);
}

// DeepGEMM #301: eight ranks start on an empty cache.
TEST_CASE_FIXTURE(Fixture, "eight processes on an empty cache compile once, fifty times over") {
  compileMs = 2;
  for (int round = 0; round < 50; ++round) {
    std::filesystem::remove_all(folder.path);
    std::filesystem::remove(counter());
    int gate[2];
    REQUIRE(pipe(gate) == 0);
    std::vector<pid_t> children;
    for (int rank = 0; rank < 8; ++rank) {
      pid_t child = fork();
      if (child == 0) {
        close(gate[1]);
        char byte;
        (void)!read(gate[0], &byte, 1); // returns for all of them when the parent closes the gate
        Result<std::shared_ptr<Kernel>> kernel = Jit(options(openCache())).get(samples::spec(), 1);
        _exit(kernel && (*kernel)->artifact().cubin == samples::cubin() && warnings == 0 ? 0 : 1);
      }
      children.push_back(child);
    }
    close(gate[0]);
    close(gate[1]);
    for (pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      CHECK(status == 0);
    }
    CHECK(compiles() == 1);
    CHECK(samples::filesIn(folder.path, ".kernel").size() == 1);
    CHECK(samples::filesIn(folder.path).size() == 2); // and the index: no temporary file, no lock
  }
}

TEST_CASE_FIXTURE(Fixture, "a process killed while compiling leaves no stuck lock") {
  pid_t child = fork();
  if (child == 0) {
    JitOptions dying = options(openCache());
    dying.compile = [](const Spec &, const Target &, const KernelPlan &) -> Result<Artifact> {
      raise(SIGKILL);
      return compiled();
    };
    (void)Jit(dying).get(samples::spec(), 1);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(samples::filesIn(folder.path, ".lock").size() == 1); // the test is about something
  auto start = std::chrono::steady_clock::now();
  CHECK(Jit(options(openCache())).get(samples::spec(), 1));
  // Far less than the wait for a lock that somebody holds.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  CHECK(compiles() == 1);
  CHECK(samples::filesIn(folder.path).size() == 2);
  CHECK(warnings == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "a process killed while publishing leaves no bad entry and no leftovers") {
  Artifact artifact = samples::artifact();
  artifact.source.assign(1 << 16, 's');
  REQUIRE(openCache()->put(artifact, 0, 10));
  int stray = 0;
  // On a busy machine a child may be killed before it has begun: as long as none was in the middle.
  for (int round = 0; round < 40 || (stray == 0 && round < 1000); ++round) {
    pid_t child = fork();
    if (child == 0) {
      std::shared_ptr<Cache> cache = openCache();
      for (int i = 0;; ++i)
        (void)cache->put(artifact, i % 3, 10);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(4000 + 1371 * (round % 10)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    stray += int(samples::filesIn(folder.path, ".tmp").size());
    std::shared_ptr<Cache> cache = openCache();
    CHECK(samples::filesIn(folder.path, ".tmp").empty());
    CHECK(samples::filesIn(folder.path, ".lock").empty());
    std::shared_ptr<const Artifact> found = cache->findByBuildKey(artifact.buildKey);
    REQUIRE(found);
    CHECK(*found == artifact);
    CHECK(cache->findByLookup(artifact.lookupKey, 5));
    CHECK(warnings == 0);
  }
  CHECK(stray > 0); // some were killed in the middle
}

TEST_CASE_FIXTURE(Fixture,
                  "a process that hangs while compiling delays others by the wait limit only") {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  pid_t child = fork();
  if (child == 0) {
    JitOptions hanging = options(openCache());
    hanging.compile = [&](const Spec &, const Target &, const KernelPlan &) -> Result<Artifact> {
      (void)!write(ready[1], "r", 1);
      pause();
      return compiled();
    };
    (void)Jit(hanging).get(samples::spec(), 1);
    _exit(0);
  }
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CacheOptions impatient;
  impatient.folder = folder.path;
  impatient.buildWaitMs = 30;
  impatient.log = [this](const std::string &) { ++warnings; };
  CHECK(Jit(options(*Cache::open(impatient))).get(samples::spec(), 1));
  CHECK(warnings == 1);
  CHECK(compiles() == 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

// A plan may serve several ranges: one kernel, and the index knows all of them.
TEST_CASE_FIXTURE(Fixture, "a kernel found by build key is indexed for its rows") {
  REQUIRE(Jit(options(openCache())).build(samples::spec()));
  for (const std::string &name : samples::filesIn(folder.path, ".index"))
    std::filesystem::remove(folder.path + "/" + name);
  int made = compiles();
  REQUIRE(Jit(options(openCache())).build(samples::spec()));
  CHECK(compiles() == made);
  CHECK(int64_t(openCache()->ranges(lookupKeyText(samples::spec(), Target())).size()) ==
        rangesOfSpec());
}

// DeepGEMM #443
TEST_CASE_FIXTURE(Fixture, "a capture refuses what is not built, and takes what was prepared") {
  samples::FakeDriver driver;
  samples::installFakeDriver(driver);
  auto stream = reinterpret_cast<cu::Stream>(uintptr_t(0x77));
  JitOptions given = options(openCache());
  given.driver = &driver.api;
  Jit jit(given);
  GemmArguments arguments;
  auto at = [](uint64_t address) { return reinterpret_cast<void *>(address); };
  arguments.x.data = at(0x10000000);
  arguments.xScales.data = at(0x20000000);
  arguments.w.data = at(0x30000000);
  arguments.wScales.data = at(0x40000000);
  arguments.offsets.data = at(0x50000000);
  arguments.y.data = at(0x60000000);
  arguments.rows = 16;

  driver.captureStatus = 1;
  JitHandle handle = jit.handle(samples::spec());
  CHECK(handle.launch(arguments, stream).error().code == ErrorCode::CaptureActive);
  CHECK(jit.get(samples::spec(), 16, stream).error().code == ErrorCode::CaptureActive);
  CHECK(compiles() == 0);
  CHECK(driver.loads.empty());
  // An idle rank inside a capture has nothing to launch and is not refused.
  CHECK(handle.launch(GemmArguments(), stream));

  driver.captureStatus = 0;
  REQUIRE(jit.prepare(samples::spec(), 16));
  CHECK(driver.loads.size() == 1);
  driver.captureStatus = 1;
  CHECK(handle.launch(arguments, stream));
  CHECK(jit.get(samples::spec(), 16, stream));
  CHECK(driver.launches.size() == 1);
  CHECK(driver.loads.size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "expected rows choose the plan, never the work") {
  samples::FakeDriver driver;
  samples::installFakeDriver(driver);
  JitOptions given = options(nullptr);
  given.driver = &driver.api;
  Jit jit(given);
  std::vector<PlannedRange> ranges = planRanges(samples::spec(), Target());
  if (ranges.size() < 2)
    return;
  GemmArguments arguments;
  for (TensorArgument *tensor :
       {&arguments.x, &arguments.xScales, &arguments.w, &arguments.wScales, &arguments.offsets})
    tensor->data = reinterpret_cast<void *>(0x10000000);
  arguments.y.data = reinterpret_cast<void *>(0x60000000);
  arguments.rows = 1;
  JitHandle handle = jit.handle(samples::spec());
  REQUIRE(handle.launch(arguments, nullptr, ranges.back().minRows));
  CHECK(compiles() == 1);
  CHECK(*handle.kernel(ranges.back().minRows) != nullptr);
  CHECK(compiles() == 1);
}

TEST_CASE_FIXTURE(Fixture, "the workspace covers every kernel up to the row count") {
  JitOptions given = options(nullptr);
  int calls = 0;
  given.compile = [&](const Spec &, const Target &, const KernelPlan &) -> Result<Artifact> {
    Artifact artifact = compiled();
    artifact.launch.workspace = {
        {Operand::Workspace, calls++ == 0 ? 512u : 64u, 0, true}}; // the first range needs the most
    return artifact;
  };
  Jit jit(given);
  CHECK(*jit.workspaceBytes(samples::spec(), 0) == 512);
  CHECK(calls == 1);
  CHECK(*jit.workspaceBytes(samples::spec(), std::numeric_limits<int64_t>::max()) == 512);
  CHECK(jit.workspaceBytes(samples::spec(), -1).error().code == ErrorCode::InvalidArgument);
}

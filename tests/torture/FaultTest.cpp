// A failing file system: every call of every scenario fails once with every error, or for good; is
// done and says it failed; moves one byte; or is the last thing the process did.
#include "tests/torture/Faults.h"
#include "tests/torture/Torture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/stat.h>
#include <unistd.h>

using namespace moejit;
using namespace moejit::torture;
namespace fs = std::filesystem;

namespace {

constexpr int64_t noEnd = INT64_MAX;

/// What a file system may answer. ESTALE, ENOENT and ENOLCK are NFS's: a file that another host
/// replaced or removed, a lock server that is not there.
const std::pair<const char *, int> errors[] = {
    {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"ESTALE", ESTALE},
    {"ENOENT", ENOENT}, {"EACCES", EACCES}, {"EROFS", EROFS},   {"ENOLCK", ENOLCK},
    {"EMFILE", EMFILE}, {"ENOSYS", ENOSYS}, {"EINVAL", EINVAL},
};

/// A Place in one of the states in which kernels are asked for.
struct Scenes : Place {
  Scenes() {
    compileUs = 0;
    cubinBytes = 200;
    spec = samples::spec();
  }

  /// Empties the folder and lays out scene `which`.
  void set(int which) {
    fs::remove_all(folder.path);
    sizeLimit = 0;
    if (which == 0) // no folder at all
      return;
    Jit jit(jitOptions(openCache()));
    if (which == 1 || which == 2)
      REQUIRE(jit.get(spec, 1)); // the kernel is there
    else
      for (const Spec &other : specs(4))
        if (!(other == spec))
          REQUIRE(jit.get(other, 1)); // other kernels are, and there is no room
    if (which == 2) {
      std::string file = path(samples::filesIn(folder.path, ".kernel")[0]);
      writeAll(file, readAll(file).substr(0, 100)); // and is damaged
    }
    if (which == 3) {
      sizeLimit = 2 * fs::file_size(path(samples::filesIn(folder.path, ".kernel")[0])) + 100;
      writeAll(path(keyName("left") + ".1-2-3.tmp"), "half"); // and someone died here
      writeAll(path(keyName("left") + ".lock"), "");
    }
  }
  static constexpr int numScenes = 4;

  /// What every scene does: two ranges of a spec.
  bool act() {
    CacheOptions options = cacheOptions();
    options.sizeLimitBytes = sizeLimit;
    options.buildWaitMs = buildWaitMs;
    Result<std::shared_ptr<Cache>> cache = Cache::open(options);
    if (!cache)
      return false;
    Jit jit(jitOptions(*cache));
    return isRight(jit.get(spec, 1), spec, 1) && isRight(jit.get(spec, 100'000), spec, 100'000);
  }

  /// What holds whatever happened before: right kernels in a sound folder.
  bool heals() {
    warnings = 0;
    buildWaitMs = 60'000;                 // a lock that is stuck shows in the time
    bool isFine = act() && warnings <= 1; // one for an entry that was damaged before
    warnings = 0;
    int compiled = compiles();
    isFine = act() && isFine && warnings == 0 && compiles() == compiled;
    return isFine && leftovers().empty();
  }

  /// Acts under `faults`; whether all is as it has to be.
  bool survives(int scene, std::vector<Fault> faults, int mostWarnings) {
    set(scene);
    warnings = 0;
    messages.clear();
    buildWaitMs = 2000;
    alarm(60); // nothing waits for ever
    armFaults(std::move(faults));
    bool isFine = act();
    disarmFaults();
    alarm(0);
    told = warnings;
    return isFine && told <= mostWarnings;
  }

  Spec spec;
  uint64_t sizeLimit = 0;
  int buildWaitMs = 2000;
  int told = 0;
};

} // namespace

TEST_CASE_FIXTURE(Scenes,
                  "one call fails: the kernel is right, at most one warning, and it heals") {
  int64_t cases = 0, silent = 0;
  for (int scene = 0; scene < numScenes; ++scene) {
    set(scene);
    armFaults({});
    REQUIRE(act());
    std::vector<std::string> calls = disarmFaults();
    REQUIRE(calls.size() > 20);
    // A damaged entry, or a full folder, costs a warning of its own.
    int ownWarnings = scene == 2 ? 1 : 0;
    for (int64_t index = 0; index < int64_t(calls.size()); ++index)
      for (size_t e = 0; e < std::size(errors); ++e) {
        if (times(0, 1) && (size_t(index) + e) % 4) // a sample has every call and every error
          continue;
        for (Fault::Effect effect : {Fault::Effect::Fails, Fault::Effect::FailsDone}) {
          CAPTURE(scene);
          CAPTURE(calls[size_t(index)]);
          CAPTURE(index);
          CAPTURE(errors[e].first);
          CAPTURE(int(effect));
          CHECK(survives(scene, {{index, index, "", errors[e].second, effect}}, 1 + ownWarnings));
          CHECK(faultsThatHappened() == 1);
          silent += told == 0;
          CHECK(heals());
          ++cases;
        }
      }
  }
  count("faults: single calls that failed", cases);
  count("faults: of them worth no warning", silent);
}

TEST_CASE_FIXTURE(Scenes, "calls move one byte, or are interrupted: nobody notices") {
  for (int scene = 0; scene < numScenes; ++scene) {
    CAPTURE(scene);
    int own = scene == 2 ? 1 : 0;
    CHECK(survives(scene, {{0, noEnd, "write", 0, Fault::Effect::Short}}, own));
    CHECK(heals());
    CHECK(survives(scene, {{0, noEnd, "read", 0, Fault::Effect::Short}}, own));
    CHECK(heals());
    set(scene);
    armFaults({});
    REQUIRE(act());
    std::vector<std::string> calls = disarmFaults();
    for (int64_t index = 0; index < int64_t(calls.size()); ++index)
      if (calls[size_t(index)] == "write" || calls[size_t(index)] == "read") {
        CHECK(survives(scene, {{index, index, "", EINTR, Fault::Effect::Fails}}, own));
        CHECK(heals());
        count("faults: interrupted calls");
      }
  }
}

TEST_CASE_FIXTURE(Scenes, "a kind of call fails for good: the kernel is right, and nothing hangs") {
  const char *kinds[] = {"open",    "openat",    "flock",    "stat",      "fstat",
                         "fstatat", "faccessat", "renameat", "unlinkat",  "mkdir",
                         "fsync",   "read",      "write",    "utimensat", ""};
  double longest = 0;
  for (int scene = 0; scene < numScenes; ++scene)
    for (const char *kind : kinds)
      for (const auto &[name, error] : errors) {
        CAPTURE(scene);
        CAPTURE(kind);
        CAPTURE(name);
        Stopwatch watch;
        CHECK(survives(scene, {{0, noEnd, kind, error, Fault::Effect::Fails}}, 3));
        longest = std::max(longest, watch.seconds());
        bool isFine = heals();
        CHECK(isFine);
        count("faults: kinds of calls that failed for good");
      }
  CHECK(longest < 10);
  count("faults: longest of them, ms", int64_t(longest * 1000));
}

// NFS as it is at its worst: no locks, names that are stale, answers that get lost.
TEST_CASE_FIXTURE(Scenes,
                  "DeepGEMM#301: processes on a file system without locks get right kernels") {
  std::vector<Spec> asked = specs(3);
  for (int round = 0; round < times(50, 3); ++round) {
    fs::remove_all(folder.path);
    std::vector<pid_t> processes;
    for (int rank = 0; rank < 8; ++rank)
      processes.push_back(startProcess([&] {
        armFaults({{0, noEnd, "flock", rank % 2 ? ENOLCK : EOPNOTSUPP, Fault::Effect::Fails}});
        for (const Spec &each : asked)
          if (!isRight(Jit(jitOptions(openCache())).get(each, 1), each, 1))
            return 1;
        return warnings == 0 ? 0 : 2;
      }));
    for (pid_t process : processes)
      CHECK(waitFor(process) == 0);
    CHECK(samples::filesIn(folder.path).size() == 2 * asked.size()); // no lock file either
    count("faults: processes without locks", 8);
  }
}

TEST_CASE_FIXTURE(Scenes, "a process that dies at any call leaves right kernels and no lock") {
  for (int scene = 0; scene < numScenes; ++scene) {
    set(scene);
    armFaults({});
    REQUIRE(act());
    auto numCalls = int64_t(disarmFaults().size());
    for (int64_t index = 0; index < numCalls; ++index) {
      CAPTURE(scene);
      CAPTURE(index);
      set(scene);
      pid_t process = startProcess([&] {
        armFaults({{index, index, "", 0, Fault::Effect::Dies}});
        (void)act();
        return 0;
      });
      CHECK(waitFor(process) == -SIGKILL);
      Stopwatch watch;
      CHECK(heals());
      CHECK(watch.seconds() < 20);
      count("deaths: processes killed at a call, one at each");
    }
  }
}

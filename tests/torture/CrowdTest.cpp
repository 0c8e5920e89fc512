// Many processes on one folder: one compile a kernel, nothing wrong, nothing left.
#include "tests/torture/Torture.h"

#include <doctest/doctest.h>

#include <csignal>
#include <random>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace moejit;
using namespace moejit::torture;

// DeepGEMM #301, with eight times the ranks.
TEST_CASE_FIXTURE(Place, "DeepGEMM#301: 64 processes on one empty cache compile each kernel once") {
  constexpr int numProcesses = 64;
  std::vector<Spec> asked = specs(3);
  int rounds = times(50, 4);
  for (int round = 0; round < rounds; ++round) {
    std::filesystem::remove_all(folder.path);
    std::filesystem::remove(counts.path + "/compiles");
    int gate[2];
    REQUIRE(pipe(gate) == 0);
    std::vector<pid_t> processes;
    for (int rank = 0; rank < numProcesses; ++rank)
      processes.push_back(startProcess([&] {
        close(gate[1]);
        char byte;
        (void)!read(gate[0], &byte, 1); // returns for all of them when the parent closes the gate
        Jit jit(jitOptions(openCache()));
        for (size_t i = 0; i < asked.size(); ++i) {
          const Spec &spec = asked[(i + size_t(rank)) % asked.size()];
          if (!isRight(jit.get(spec, 1), spec, 1))
            return 1;
        }
        return warnings == 0 ? 0 : 2;
      }));
    close(gate[0]);
    close(gate[1]);
    int bad = 0;
    for (pid_t process : processes)
      bad += waitFor(process) != 0;
    CHECK(bad == 0);
    CHECK(compiles() == int(asked.size()));
    CHECK(samples::filesIn(folder.path).size() == 2 * asked.size()); // a kernel and an index each
    count("crowd: processes", numProcesses);
    count("crowd: kernels asked for", int64_t(numProcesses * asked.size()));
    count("crowd: compilations beyond one a kernel", compiles() - int(asked.size()));
    count("crowd: processes with an error, a wrong kernel or a warning", bad);
    count("crowd: files left besides kernels and indices",
          int64_t(samples::filesIn(folder.path).size() - 2 * asked.size()));
  }
  count("crowd: rounds", rounds);
}

// Processes that work on a few kernels without end; one of them is killed at some moment, and
// another takes its place.
TEST_CASE_FIXTURE(Place, "DeepGEMM#301: processes killed at random moments leave nothing wrong") {
  constexpr int numWorkers = 4;
  std::vector<Spec> asked = specs(4);
  cubinBytes = 60'000;
  compileUs = 500;
  auto work = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    while (true) {
      Jit jit(jitOptions(openCache()));
      for (int i = 0; i < 3; ++i) {
        const Spec &spec = asked[random() % asked.size()];
        int64_t rows = random() % 2 ? 1 : 100'000;
        if (!isRight(jit.get(spec, rows), spec, rows))
          return 3;
        if (warnings)
          return 4;
      }
      // What is there must be made again and again, for there to be something to interrupt.
      if (random() % 2)
        if (std::vector<std::string> names = samples::filesIn(folder.path, ".kernel");
            !names.empty())
          unlink(path(names[random() % names.size()]).c_str());
    }
  };
  std::mt19937_64 random(20);
  uint64_t started = 0;
  std::vector<pid_t> workers;
  for (int i = 0; i < numWorkers; ++i)
    workers.push_back(startProcess([&] { return work(started); })), ++started;
  int kills = times(1000, 60), wrong = 0, seenLeft = 0;
  double longestWait = 0;
  for (int kill = 0; kill < kills; ++kill) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
    pid_t &victim = workers[random() % workers.size()];
    ::kill(victim, SIGKILL);
    int status = waitFor(victim);
    CHECK(status == -SIGKILL); // else it had found something wrong
    wrong += status != -SIGKILL;
    if (kill % 10 == 0) {
      // What a dead process held is free for the living, and what is there is right.
      for (pid_t worker : workers)
        if (worker != victim) {
          ::kill(worker, SIGKILL);
          CHECK(waitFor(worker) == -SIGKILL);
        }
      seenLeft += int(leftovers().size());
      Stopwatch watch;
      for (const Spec &spec : asked)
        for (int64_t rows : {int64_t(1), int64_t(100'000)}) {
          bool isFine = isRight(Jit(jitOptions(openCache())).get(spec, rows), spec, rows);
          CHECK(isFine);
          wrong += !isFine;
        }
      longestWait = std::max(longestWait, watch.seconds());
      CHECK(warnings == 0);
      CHECK(leftovers().empty());
      for (pid_t &worker : workers)
        worker = startProcess([&] { return work(started); }), ++started;
    } else
      victim = startProcess([&] { return work(started); }), ++started;
  }
  for (pid_t worker : workers) {
    ::kill(worker, SIGKILL);
    waitFor(worker);
  }
  CHECK(longestWait < 10); // a stuck lock would take five minutes
  CHECK(seenLeft > 0);     // some died in the middle of something
  openCache();             // sweeps
  CHECK(leftovers().empty());
  count("kills: processes killed", kills);
  count("kills: wrong or half kernels, warnings", wrong + warnings);
  count("kills: locks and temporary files the dead had left", seenLeft);
  count("kills: of them still there after the next opening", int64_t(leftovers().size()));
  count("kills: longest time to get all eight kernels afterwards, ms", int64_t(longestWait * 1000));
  count("kills: compilations in all", compiles());
}

TEST_CASE_FIXTURE(Place, "the size limit holds while processes put at once") {
  std::vector<Spec> asked = specs(12);
  cubinBytes = 20'000;
  compileUs = 100;
  uint64_t entryBytes = serialize(compiledBy(generator, asked[0], target,
                                             choosePlan(asked[0], target, 1), cubinBytes))
                            .size() +
                        4000; // and keys, which the Jit adds
  uint64_t limit = 5 * entryBytes;
  int rounds = times(50, 5);
  for (int round = 0; round < rounds; ++round) {
    std::vector<pid_t> processes;
    for (int rank = 0; rank < 8; ++rank)
      processes.push_back(startProcess([&] {
        CacheOptions options = cacheOptions();
        options.sizeLimitBytes = limit;
        for (size_t i = 0; i < asked.size(); ++i) {
          const Spec &spec = asked[(i * 5 + size_t(rank)) % asked.size()];
          // A Jit of its own each time: it must go to the disk.
          if (!isRight(Jit(jitOptions(openCache(options))).get(spec, 1), spec, 1))
            return 1;
        }
        return warnings == 0 ? 0 : 2;
      }));
    for (pid_t process : processes)
      CHECK(waitFor(process) == 0);
    uint64_t total = 0;
    for (const std::string &name : samples::filesIn(folder.path, ".kernel"))
      total += std::filesystem::file_size(path(name));
    CHECK(total <= limit);
    CHECK(total > entryBytes); // something is kept
    CHECK(leftovers().empty());
    count("size limit: puts and finds", int64_t(8 * asked.size()));
    count("size limit: rounds that ended above it", total > limit);
  }
}

// triton #1556, sglang #34274: what is in the key keeps kernels apart, in one folder, at once.
TEST_CASE_FIXTURE(Place,
                  "triton#1556: architectures, NVRTC versions and installations share a folder") {
  // The same folder under two names, as two mounts of it are.
  samples::TemporaryFolder elsewhere;
  std::string alias = elsewhere.path + "/alias";
  std::filesystem::create_directory_symlink(folder.path, alias);
  std::vector<Spec> asked = specs(2);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < 16; ++rank)
    processes.push_back(startProcess([&] {
      target.arch = rank & 1 ? "sm_90a" : "sm_80";
      generator.nvrtcVersion = rank & 2 ? "13.0" : "12.8";
      CacheOptions options = cacheOptions();
      options.folder = rank & 4 ? folder.path : alias;
      for (int turn = 0; turn < 3; ++turn)
        for (const Spec &spec : asked)
          if (!isRight(Jit(jitOptions(openCache(options))).get(spec, 1), spec, 1))
            return 1;
      return warnings == 0 ? 0 : 2;
    }));
  for (pid_t process : processes)
    CHECK(waitFor(process) == 0);
  // Two specs, two architectures, two versions; where the folder lies makes no difference.
  CHECK(compiles() == 8);
  CHECK(samples::filesIn(folder.path, ".kernel").size() == 8);
  count("sharing: kernels of 2 specs, 2 architectures and 2 NVRTC versions from 2 paths",
        compiles());
}

// Every file of an entry, damaged in every way: one warning, the right kernel, a sound folder
// again.
#include "tests/torture/Torture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <sys/stat.h>
#include <unistd.h>

using namespace moejit;
using namespace moejit::torture;
namespace fs = std::filesystem;

namespace {

struct Damage {
  std::string name;
  std::function<void(const std::string &path, const std::string &good)> apply;
};

std::vector<Damage> damages(size_t size) {
  auto cut = [](size_t length) {
    return [length](const std::string &path, const std::string &good) {
      writeAll(path, good.substr(0, length));
    };
  };
  auto instead = [](auto make) {
    return [make](const std::string &path, const std::string &) {
      fs::remove(path);
      make(path);
    };
  };
  std::vector<Damage> all = {
      {"emptied", cut(0)},
      {"cut to one byte", cut(1)},
      {"cut in half", cut(size / 2)},
      {"cut by one byte", cut(size - 1)},
      {"longer by one byte",
       [](const std::string &path, const std::string &good) { writeAll(path, good + '\0'); }},
      {"of zeros, as a crash may leave it",
       [](const std::string &path, const std::string &good) {
         writeAll(path, std::string(good.size(), '\0'));
       }},
      {"replaced by a folder",
       instead([](const std::string &path) { fs::create_directory(path); })},
      {"replaced by a folder with files", instead([](const std::string &path) {
         fs::create_directories(path + "/a/b");
         writeAll(path + "/a/file", "x");
       })},
      {"replaced by a pipe", instead([](const std::string &path) { mkfifo(path.c_str(), 0600); })},
      {"replaced by a link to nothing",
       instead([](const std::string &path) { fs::create_symlink("/nowhere/at/all", path); })},
      {"replaced by a link to itself",
       instead([](const std::string &path) { fs::create_symlink(path, path); })},
      {"removed", instead([](const std::string &) {})},
  };
  size_t step = size_t(times(1, int(size / 64 + 1)));
  for (size_t at = 0; at < size; at += step)
    all.push_back({"bit " + std::to_string(at % 8) + " of byte " + std::to_string(at) + " flipped",
                   [at](const std::string &path, std::string bytes) {
                     bytes[at] = char(bytes[at] ^ (1 << (at % 8)));
                     writeAll(path, bytes);
                   }});
  return all;
}

} // namespace

// FreeToken #490
TEST_CASE_FIXTURE(Place, "FreeToken#490: every file of an entry, damaged in every way, heals") {
  compileUs = 0;
  cubinBytes = 64;
  Spec spec = specs(2)[0], other = specs(2)[1];
  REQUIRE(isRight(Jit(jitOptions(openCache())).get(spec, 1), spec, 1));
  std::vector<std::string> files = samples::filesIn(folder.path);
  REQUIRE(files.size() == 2);
  REQUIRE(isRight(Jit(jitOptions(openCache())).get(other, 1), other, 1));
  for (const std::string &file : files) {
    std::string good = readAll(path(file));
    bool isKernel = file.find(".kernel") != std::string::npos;
    for (const Damage &damage : damages(good.size())) {
      CAPTURE(file);
      CAPTURE(damage.name);
      damage.apply(path(file), good);
      int compiled = compiles();
      warnings = 0;
      CHECK(isRight(Jit(jitOptions(openCache())).get(spec, 1), spec, 1));
      CHECK(warnings == (damage.name == "removed" ? 0 : 1));
      CHECK(compiles() == compiled + (isKernel ? 1 : 0));
      // Healed, and the other kernel is untouched.
      CHECK(readAll(path(file)) == good);
      JitOptions offline = jitOptions(openCache());
      offline.compile = nullptr;
      for (const Spec &each : {spec, other})
        CHECK(isRight(Jit(offline).get(each, 1), each, 1));
      CHECK(samples::filesIn(folder.path).size() == 4);
      CHECK(warnings <= 1);
      count(isKernel ? "damage: kernels damaged, told once, built again, healed"
                     : "damage: indices damaged, told once, healed without building");
    }
  }
}

TEST_CASE_FIXTURE(Place,
                  "FreeToken#490: damage in a folder that cannot be written is built in memory") {
  compileUs = 0;
  Spec spec = samples::spec();
  REQUIRE(isRight(Jit(jitOptions(openCache())).get(spec, 1), spec, 1));
  std::string kernel = path(samples::filesIn(folder.path, ".kernel")[0]), good = readAll(kernel);
  for (const Damage &damage : damages(good.size())) {
    if (damage.name.find("bit ") == 0)
      continue;
    CAPTURE(damage.name);
    damage.apply(kernel, good);
    CacheOptions options = cacheOptions();
    options.mode = CacheMode::ReadOnly;
    warnings = 0;
    int compiled = compiles();
    Jit jit(jitOptions(openCache(options)));
    CHECK(isRight(jit.get(spec, 1), spec, 1));
    CHECK(isRight(jit.get(spec, 1), spec, 1));
    CHECK(compiles() == compiled + 1);
    CHECK(warnings == (damage.name == "removed" ? 0 : 1));
    std::error_code ignored;
    fs::remove_all(kernel, ignored);
    writeAll(kernel, good);
    count("damage: kernels damaged in a read-only folder, built in memory");
  }
}

TEST_CASE_FIXTURE(Place, "locks and temporary files replaced by others hold nobody up") {
  Spec spec = samples::spec();
  std::string lock = path(keyName(buildKeyText(lookupKeyText(spec, target),
                                               planText(choosePlan(spec, target, 1)), generator)) +
                          ".lock");
  const std::pair<const char *, std::function<void()>> makers[] = {
      {"a file", [&] { writeAll(lock, "x"); }},
      {"a folder", [&] { fs::create_directory(lock); }},
      {"a pipe", [&] { mkfifo(lock.c_str(), 0600); }},
      {"a link to nothing", [&] { fs::create_symlink("/nowhere/at/all", lock); }},
      {"a link to a file", [&] { fs::create_symlink(counts.path + "/compiles", lock); }},
      {"a file nobody may open", [&] { writeAll(lock, ""), chmod(lock.c_str(), 0); }},
  };
  for (const auto &[name, make] : makers) {
    CAPTURE(name);
    fs::remove_all(folder.path);
    REQUIRE(mkdir(folder.path.c_str(), 0700) == 0);
    make();
    Stopwatch watch;
    CHECK(isRight(Jit(jitOptions(openCache())).get(spec, 1), spec, 1));
    CHECK(watch.seconds() < 5);
    CHECK(samples::filesIn(folder.path, ".kernel").size() == 1);
    CHECK(warnings == 0);
  }
  CHECK(fs::exists(counts.path + "/compiles")); // no link was followed to be emptied or removed
  CHECK(compiles() == int(std::size(makers)));
  count("damage: kinds of files in place of a lock", int64_t(std::size(makers)));
}

TEST_CASE_FIXTURE(Place, "DeepGEMM#301: a compiler that crashes ends its own process only") {
  // The first process that compiles dies in the compiler, the others wait for it and go on.
  for (int signal : {SIGSEGV, SIGABRT, SIGKILL}) {
    fs::remove_all(folder.path);
    fs::remove(counts.path + "/compiles");
    fs::remove(counts.path + "/first");
    Spec spec = samples::spec();
    std::vector<pid_t> processes;
    for (int rank = 0; rank < 8; ++rank)
      processes.push_back(startProcess([&] {
        JitOptions options = jitOptions(openCache());
        options.compile = [&, make = options.compile](const Spec &asked, const Target &made,
                                                      const KernelPlan &plan) {
          if (mkdir((counts.path + "/first").c_str(), 0700) == 0) {
            usleep(20'000);
            ::signal(signal, SIG_DFL);
            raise(signal);
          }
          return make(asked, made, plan);
        };
        return isRight(Jit(options).get(spec, 1), spec, 1) && warnings == 0 ? 0 : 1;
      }));
    int died = 0, right = 0;
    for (pid_t process : processes) {
      int status = waitFor(process);
      died += status == -signal;
      right += status == 0;
    }
    CHECK(died == 1);
    CHECK(right == 7);
    CHECK(compiles() == 1);
    CHECK(leftovers().empty());
    count("compiler: crashes among 8 processes, of which 7 went on");
  }
}

// Folders and clocks that are not as they should be, beyond what tests/unit/CacheTest.cpp has.
#include "tests/torture/Torture.h"

#include <doctest/doctest.h>

#include <csignal>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace moejit;
using namespace moejit::torture;
namespace fs = std::filesystem;

namespace {

/// Becomes user nobody, where this is root.
bool becomeOrdinary() { return geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0); }

/// Gets a kernel twice through a cache in `folder`, from memory the second time; the number of
/// warnings, -1 for a wrong kernel.
int useOf(Place &place, std::optional<std::string> folder) {
  CacheOptions options = place.cacheOptions();
  options.folder = std::move(folder);
  Spec spec = samples::spec();
  place.warnings = 0;
  Jit jit(place.jitOptions(place.openCache(std::move(options))));
  for (int64_t rows : {int64_t(1), int64_t(100'000), int64_t(1)})
    if (!place.isRight(jit.get(spec, rows), spec, rows))
      return -1;
  return place.warnings;
}

} // namespace

// triton #518
TEST_CASE_FIXTURE(Place, "triton#518: folders that no one should use cost one warning") {
  REQUIRE(chmod(counts.path.c_str(), 0777) == 0);
  std::string tooLong;
  for (int part = 0; part < 60; ++part)
    tooLong += "/" + std::string(100, 'p');
  for (const std::string &unusable :
       {std::string("/"), std::string("/proc"), std::string("/dev/null"),
        std::string("/proc/1/fd/x"), folder.path + tooLong,
        folder.path + "/" + std::string(256, 'n') + "/cache",
        std::string("/moejit-no-such-root/cache")}) {
    CAPTURE(unusable);
    pid_t process = startProcess([&] {
      if (!becomeOrdinary())
        return 99;
      return useOf(*this, unusable);
    });
    CHECK(waitFor(process) == 1);
    count("folders: unusable ones, each with one warning and the kernel from memory");
  }
  CHECK(fs::is_empty(folder.path)); // nothing was made on the way to what cannot be
}

TEST_CASE_FIXTURE(Place, "triton#518: a home that is unset, /, empty, relative or someone else's") {
  REQUIRE(chmod(counts.path.c_str(), 0777) == 0);
  struct {
    const char *home, *xdg;
    int warnings;
  } const cases[] = {
      {nullptr, nullptr, 1},    {"/", nullptr, 1},         {"", nullptr, 1},
      {"relative", nullptr, 1}, {"/root", nullptr, 1},     {"/nonexistent", nullptr, 1},
      {nullptr, "/", 1},        {"/", "relative/path", 1}, {"/dev/null", nullptr, 1},
  };
  for (const auto &each : cases) {
    CAPTURE(std::string(each.home ? each.home : "unset"));
    CAPTURE(std::string(each.xdg ? each.xdg : "unset"));
    pid_t process = startProcess([&] {
      if (!becomeOrdinary())
        return 99;
      each.home ? setenv("HOME", each.home, 1) : unsetenv("HOME");
      each.xdg ? setenv("XDG_CACHE_HOME", each.xdg, 1) : unsetenv("XDG_CACHE_HOME");
      return useOf(*this, std::nullopt);
    });
    CHECK(waitFor(process) == each.warnings);
    count("folders: homes that will not do");
  }
}

TEST_CASE_FIXTURE(Place, "a file that may grow no further is as good as a full disk") {
  cubinBytes = 50'000;
  pid_t process = startProcess([&] {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit = {20'000, 20'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    return useOf(*this, folder.path);
  });
  CHECK(waitFor(process) == 1);
  CHECK(samples::filesIn(folder.path, ".kernel").empty());
  CHECK(leftovers().empty());
  CHECK(useOf(*this, folder.path) == 0);
  CHECK(samples::filesIn(folder.path, ".kernel").size() == 2);
}

TEST_CASE_FIXTURE(Place, "a full disk keeps kernels in memory, and takes them when there is room") {
  if (mount("none", folder.path.c_str(), "tmpfs", 0, "size=128k,mode=0700") != 0) {
    MESSAGE("not run: no file system may be mounted here");
    return;
  }
  cubinBytes = 60'000;
  // Two kernels are 120 KB and their keys: one fits.
  CHECK(useOf(*this, folder.path) == 1);
  CHECK(leftovers().empty());
  CHECK(samples::filesIn(folder.path, ".kernel").size() == 1);
  CHECK(useOf(*this, folder.path) == 1); // the same again: what is there is used
  cubinBytes = 30'000;
  generator.nvrtcVersion = "13.1";
  for (const std::string &name : samples::filesIn(folder.path))
    fs::remove(path(name));
  CHECK(useOf(*this, folder.path) == 0);
  CHECK(samples::filesIn(folder.path, ".kernel").size() == 2);
  // No block is free, and no inode: nothing can be made at all.
  writeAll(path("ballast"), std::string(200'000, 'b'));
  generator.nvrtcVersion = "13.2";
  CHECK(useOf(*this, folder.path) == 1);
  CHECK(leftovers().empty());
  count("folders: full disks");
  REQUIRE(umount(folder.path.c_str()) == 0);
}

TEST_CASE_FIXTURE(Place, "a folder on a read-only mount is read") {
  if (mount("none", folder.path.c_str(), "tmpfs", 0, "size=1m,mode=0700") != 0) {
    MESSAGE("not run: no file system may be mounted here");
    return;
  }
  CHECK(useOf(*this, folder.path) == 0);
  REQUIRE(mount("none", folder.path.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0);
  int compiled = compiles();
  CHECK(useOf(*this, folder.path) == 1); // that new kernels will not be kept
  CHECK(compiles() == compiled);
  generator.nvrtcVersion = "13.1";
  CHECK(useOf(*this, folder.path) == 1);
  CHECK(compiles() == compiled + 2);
  count("folders: read-only mounts");
  REQUIRE(umount(folder.path.c_str()) == 0);
}

TEST_CASE_FIXTURE(Place, "a folder removed or replaced under a running program") {
  Spec spec = samples::spec();
  {
    Jit jit(jitOptions(openCache()));
    REQUIRE(isRight(jit.get(spec, 1), spec, 1));
    fs::remove_all(folder.path);
    CHECK(isRight(jit.get(spec, 100'000), spec, 100'000));
    CHECK(warnings == 1);
    CHECK_FALSE(fs::exists(folder.path)); // it is not made again behind the user's back
  }
  {
    REQUIRE(mkdir(folder.path.c_str(), 0700) == 0);
    Jit jit(jitOptions(openCache()));
    REQUIRE(isRight(jit.get(spec, 1), spec, 1));
    // Another folder under the same name, which others can write: what was opened is used, not
    // this.
    fs::rename(folder.path, folder.path + ".old");
    REQUIRE(mkdir(folder.path.c_str(), 0777) == 0);
    REQUIRE(chmod(folder.path.c_str(), 0777) == 0);
    warnings = 0;
    CHECK(isRight(jit.get(spec, 100'000), spec, 100'000));
    CHECK(warnings == 0);
    CHECK(fs::is_empty(folder.path));
    CHECK(samples::filesIn(folder.path + ".old", ".kernel").size() == 2);
    fs::remove_all(folder.path + ".old");
  }
  count("folders: removed and replaced in use", 2);
}

// A clock that jumps shows in the times of files, and nowhere else.
TEST_CASE_FIXTURE(Place, "clocks that jump change neither kernels nor the size limit") {
  std::vector<Spec> asked = specs(4);
  cubinBytes = 3000;
  compileUs = 0;
  const int64_t seconds[] = {
      0, 1, -1'000'000'000, 4'000'000'000, 9'223'372'036, 9'223'372'037, 15'000'000'000};
  for (int64_t second : seconds)
    for (int64_t limitedTo : {0, 2}) {
      CAPTURE(second);
      fs::remove_all(folder.path);
      for (const Spec &spec : {asked[0], asked[1]})
        REQUIRE(Jit(jitOptions(openCache())).get(spec, 1));
      uint64_t bytes = 0;
      for (const std::string &name : samples::filesIn(folder.path)) {
        timespec times[2] = {{second, 0}, {second, 999'999'999}};
        REQUIRE(utimensat(AT_FDCWD, path(name).c_str(), times, 0) == 0);
        bytes = std::max<uint64_t>(bytes, fs::file_size(path(name)));
      }
      CacheOptions options = cacheOptions();
      options.sizeLimitBytes = uint64_t(limitedTo) * (bytes + 100);
      int compiled = compiles();
      for (const Spec &spec : {asked[0], asked[1], asked[2], asked[3]})
        CHECK(isRight(Jit(jitOptions(openCache(options))).get(spec, 1), spec, 1));
      CHECK(compiles() == compiled + 2); // the old ones were found, whatever their times
      CHECK(warnings == 0);
      CHECK(openCache()->list().size() == (limitedTo ? 2u : 4u));
      for (const CacheEntry &entry : openCache()->list())
        CHECK_FALSE(entry.damage);
      count("clocks: jumps, into the past and into the future");
    }
}

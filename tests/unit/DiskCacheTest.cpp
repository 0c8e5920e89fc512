// One folder on disk: ranges entered without locks, what a manifest in the folder protects, owners
// and modes of files.
#include "runtime/DiskCache.h"

#include "Samples.h"
#include "runtime/Cache.h"
#include "runtime/CacheAudit.h"
#include "runtime/Keys.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <fstream>
#include <limits>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace moejit;
namespace fs = std::filesystem;

namespace {

constexpr int64_t noEnd = std::numeric_limits<int64_t>::max();

struct Fixture {
  std::shared_ptr<Cache> open(CacheOptions options = {}) {
    options.folder = folder.path;
    options.log = [this](const std::string &message) { warnings.push_back(message); };
    Result<std::shared_ptr<Cache>> cache = Cache::open(std::move(options));
    REQUIRE(cache);
    return *cache;
  }
  std::shared_ptr<Cache> openIn(CacheMode mode) {
    CacheOptions options;
    options.mode = mode;
    return open(std::move(options));
  }
  std::string path(std::string_view name) const { return folder.path + "/" + std::string(name); }
  std::string kernel(int variant) const {
    return path(keyName(samples::artifact(variant).buildKey) + ".kernel");
  }
  void use(int variant, int64_t seconds) const {
    timespec times[2] = {{seconds, 0}, {seconds, 0}};
    REQUIRE(utimensat(AT_FDCWD, kernel(variant).c_str(), times, 0) == 0);
  }
  /// No lock of that name can be had, as on a file system without locks: opening a folder fails.
  /// Whoever opens the cache later clears it away.
  void takeLock(const std::string &stem) const { fs::create_directory(path(stem + ".lock")); }

  samples::TemporaryFolder folder;
  std::vector<std::string> warnings;
  const std::string lookup = samples::artifact().lookupKey;
  const std::string index = path(keyName(lookup) + ".index");
};

} // namespace

TEST_CASE_FIXTURE(Fixture, "without locks, threads drop none of each other's ranges") {
  constexpr int count = 12;
  // Of several caches, as aot has them.
  std::vector<std::shared_ptr<Cache>> caches;
  for (int t = 0; t < count; ++t)
    caches.push_back(open());
  takeLock(keyName(lookup));
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&, t] { CHECK(caches[size_t(t)]->put(samples::artifact(t), t, t)); });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(open()->ranges(lookup).size() == count);
  CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(Fixture,
                  "without locks, processes drop neither ranges nor lines of the manifest") {
  constexpr int count = 8;
  std::shared_ptr<Cache> cache = open();
  takeLock(keyName(lookup));
  takeLock("manifest");
  int gate[2];
  REQUIRE(pipe(gate) == 0);
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    children.push_back(fork());
    if (children.back() != 0)
      continue;
    char byte;
    (void)!read(gate[0], &byte, 1); // all begin at once
    bool isDone = bool(cache->put(samples::artifact(i), i, i)) && bool(cache->writeManifest());
    _exit(isDone ? 0 : 1);
  }
  REQUIRE(write(gate[1], "12345678", count) == count);
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  close(gate[0]);
  close(gate[1]);
  for (int i = 0; i < count; ++i)
    CHECK(openIn(CacheMode::Bundle)->findByLookup(lookup, i));
  CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(Fixture, "an index that another process is writing is not removed") {
  Result<std::unique_ptr<DiskCache>> disk = DiskCache::open(folder.path, CacheMode::ReadWrite, 0);
  REQUIRE(disk);
  REQUIRE((*disk)->storeRange(lookup, {0, 9, keyName("a kernel that is gone")}));
  const std::string name = keyName(lookup) + ".index";
  {
    FileLock writer = (*disk)->lockBuild(keyName(lookup), 0); // of the same name as the index's
    REQUIRE(writer.state() == FileLock::State::Held);
    CHECK(*(*disk)->removeIndex(name) == false);
    CHECK(fs::exists(index));
  }
  CHECK(*(*disk)->removeIndex(name) == true);
  CHECK(!fs::exists(index));
}

TEST_CASE_FIXTURE(Fixture, "who removes a stale index takes no range of a kernel that is put") {
  // Nobody holds a build's lock, as where bundles are merged: the index is there before its kernel.
  Result<std::unique_ptr<DiskCache>> disk = DiskCache::open(folder.path, CacheMode::ReadWrite, 0);
  REQUIRE(disk);
  std::atomic<bool> isDone = false;
  std::thread remover([&] {
    while (!isDone)
      (void)(*disk)->removeIndex(keyName(lookup) + ".index");
  });
  const Artifact artifact = samples::artifact();
  int lost = 0;
  for (int i = 0; i < 100; ++i) {
    REQUIRE((*disk)->remove(keyName(artifact.buildKey)));
    REQUIRE((*disk)->store(artifact, 0, 9));
    lost += (*disk)->ranges(lookup).ranges.size() != 1;
  }
  isDone = true;
  remover.join();
  CHECK(lost == 0);
}

TEST_CASE_FIXTURE(Fixture, "an index that cannot be written is told, and its kernel is found") {
  std::shared_ptr<Cache> cache = open();
  // Removing a mount point is refused, even to root.
  fs::create_directory(index);
  if (mount("none", index.c_str(), "tmpfs", 0, "size=64k") != 0) {
    MESSAGE("not run: no file system may be mounted here");
    return;
  }
  Result<void> put = cache->put(samples::artifact(), 0, noEnd);
  cache->serve(samples::artifact(), 0, 1);
  std::optional<Error> told = cache->storeProblem();
  bool isFound = bool(open()->findByBuildKey(samples::artifact().buildKey));
  REQUIRE(umount(index.c_str()) == 0);
  REQUIRE_FALSE(put);
  CHECK(put.error().message.find(index) != std::string::npos);
  REQUIRE(told);
  CHECK(told->message == put.error().message);
  CHECK(isFound);
  CHECK(warnings.size() == 2); // that it is damaged, and that it cannot be mended
}

TEST_CASE_FIXTURE(Fixture, "what a manifest in the folder lists is never evicted") {
  uint64_t size = serialize(samples::artifact(0)).size();
  for (int i : {0, 1}) {
    REQUIRE(open()->put(samples::artifact(i), i, i));
    use(i, 1000 + i);
  }
  REQUIRE(open()->writeManifest());
  CacheOptions options;
  options.sizeLimitBytes = size + 100; // the bundle alone is larger
  for (int i : {2, 3}) {
    REQUIRE(open(options)->put(samples::artifact(i), i, i));
    use(i, 1000 + i);
  }
  CHECK(fs::exists(kernel(0)));
  CHECK(fs::exists(kernel(1)));
  CHECK_FALSE(fs::exists(kernel(2))); // put later, and used longer ago than the last
  CHECK(fs::exists(kernel(3)));
  // A manifest that cannot be read may list anything; without one, all may go.
  std::ofstream(path("manifest.json")) << "{}";
  REQUIRE(open(options)->put(samples::artifact(4), 4, 4));
  CHECK(samples::filesIn(folder.path, ".kernel").size() == 4);
  fs::remove(path("manifest.json"));
  REQUIRE(open(options)->put(samples::artifact(5), 5, 5));
  CHECK(samples::filesIn(folder.path, ".kernel").size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "one warning before an index is changed that a manifest lists") {
  REQUIRE(open()->put(samples::artifact(0), 0, noEnd));
  REQUIRE(open()->writeManifest());
  // What is there already changes nothing.
  std::shared_ptr<Cache> cache = open();
  REQUIRE(cache->put(samples::artifact(0), 0, noEnd));
  cache->serve(samples::artifact(0), 0, noEnd);
  Artifact other = samples::artifact(1);
  other.lookupKey += "of another kernel\n";
  other.buildKey = other.lookupKey + "plan=" + other.planText + "\n";
  REQUIRE(cache->put(other, 0, noEnd));
  CHECK(warnings.empty());
  REQUIRE(cache->put(samples::artifact(1), 0, 9));
  REQUIRE(cache->put(samples::artifact(2), 10, 19));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find(keyName(lookup) + ".index, which manifest.json lists") !=
        std::string::npos);
  std::shared_ptr<Cache> serving = open();
  serving->serve(samples::artifact(0), 0, 9);
  CHECK(warnings.size() == 2);
  CacheOptions options;
  options.isBundleMaker = true; // the manifest follows
  REQUIRE(open(options)->put(samples::artifact(1), 0, 9));
  CHECK(warnings.size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "temporary files of a manifest are swept, and others' files are not") {
  const std::string left[] = {"manifest.json.4242-1700000000000000000-0.tmp",
                              "manifest.4242-1700000000000000000-0.tmp",
                              keyName(lookup) + ".4242-1700000000000000000-12.tmp"};
  const std::string foreign[] = {
      "manifest.json.bak.tmp",       "manifest.json..tmp",     "manifest.json.1-2.tmp",
      "manifest.json.1-2-.tmp",      "manifest.json.-1-2.tmp", "manifest.json.1-2-3-4.tmp",
      "manifest.json.1-2-3.tmp.tmp", keyName(lookup) + ".tmp", keyName(lookup) + ".mine.tmp"};
  for (const std::string &name : left)
    std::ofstream(path(name)) << "half";
  for (const std::string &name : foreign)
    std::ofstream(path(name)) << "mine";
  (void)open();
  for (const std::string &name : left)
    CHECK_MESSAGE(!fs::exists(path(name)), name);
  for (const std::string &name : foreign)
    CHECK_MESSAGE(fs::exists(path(name)), name);
}

TEST_CASE_FIXTURE(Fixture, "a file that others can write is damage, and is written anew") {
  REQUIRE(open()->put(samples::artifact(), 0, noEnd));
  REQUIRE(open()->writeManifest());
  for (const std::string &file : {kernel(0), index, path("manifest.json")})
    for (mode_t mode : {0620, 0602, 0666}) {
      REQUIRE(chmod(file.c_str(), mode) == 0);
      CHECK(auditFolder(folder.path)->damaged() == 1);
      CacheOptions options;
      options.folder = folder.path;
      options.mode = CacheMode::Bundle;
      Result<std::shared_ptr<Cache>> bundle = Cache::open(options);
      CHECK(bool(bundle) == (file != path("manifest.json")));
      Error error = bundle ? (*bundle)->damageOf(lookup, 1).value_or(Error()) : bundle.error();
      CHECK(error.message.find(file) != std::string::npos);
      CHECK(error.message.find("lets others write") != std::string::npos);
      REQUIRE(chmod(file.c_str(), 0644) == 0);
      CHECK(openIn(CacheMode::Bundle)->findByLookup(lookup, 1));
    }
  warnings.clear();
  REQUIRE(chmod(kernel(0).c_str(), 0666) == 0);
  CHECK_FALSE(open()->findByLookup(lookup, 1));
  CHECK(warnings.size() == 1);
  REQUIRE(open()->put(samples::artifact(), 0, noEnd));
  CHECK(open()->findByLookup(lookup, 1));
}

TEST_CASE_FIXTURE(Fixture,
                  "a file of another user is damage; root's is taken where nothing is written") {
  if (geteuid() != 0)
    return;
  REQUIRE(open()->put(samples::artifact(), 0, noEnd));
  REQUIRE(chown(kernel(0).c_str(), 65534, 65534) == 0);
  CHECK(auditFolder(folder.path)->damaged() == 1);
  CHECK_FALSE(open()->findByLookup(lookup, 1));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("owned by user 65534") != std::string::npos);
  // The folder and all but the kernel are the child's.
  for (const std::string &file : {folder.path, index})
    REQUIRE(chown(file.c_str(), 65534, 65534) == 0);
  REQUIRE(chown(kernel(0).c_str(), 0, 0) == 0);
  REQUIRE(chmod(kernel(0).c_str(), 0644) == 0);
  pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0)
      _exit(99);
    bool isRead = bool(openIn(CacheMode::ReadOnly)->findByLookup(lookup, 1));
    bool isUsed = bool(open()->findByLookup(lookup, 1));
    _exit(isRead && !isUsed ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

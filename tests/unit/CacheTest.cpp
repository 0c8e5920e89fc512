// The cache: hits and misses, damage, folders that will not do, eviction, bundles.
#include "runtime/Cache.h"

#include "Samples.h"
#include "runtime/Keys.h"
#include "runtime/Manifest.h"
#include "runtime/Sha256.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <limits>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace moejit;
namespace fs = std::filesystem;

namespace {

constexpr int64_t noEnd = std::numeric_limits<int64_t>::max();

struct Fixture {
  std::shared_ptr<Cache> open(CacheMode mode = CacheMode::ReadWrite, uint64_t sizeLimit = 0) {
    return openAt(folder.path, mode, sizeLimit);
  }
  std::shared_ptr<Cache> openAt(std::optional<std::string> path,
                                CacheMode mode = CacheMode::ReadWrite, uint64_t sizeLimit = 0) {
    CacheOptions options;
    options.folder = std::move(path);
    options.mode = mode;
    options.sizeLimitBytes = sizeLimit;
    options.log = [this](const std::string &message) { warnings.push_back(message); };
    Result<std::shared_ptr<Cache>> cache = Cache::open(std::move(options));
    REQUIRE(cache);
    return *cache;
  }
  std::string entryPath(const Artifact &artifact) const {
    return folder.path + "/" + keyName(artifact.buildKey) + ".kernel";
  }

  samples::TemporaryFolder folder;
  std::vector<std::string> warnings;
};

std::string readAll(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

void writeAll(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

int modeOf(const std::string &path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? int(info.st_mode & 07777) : -1;
}

/// Runs `body` in a child that is user nobody when we are root; gives its exit code.
template <typename Body> int asOrdinaryUser(const Body &body) {
  pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
      _exit(99);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST_CASE_FIXTURE(Fixture, "what is put is found again, in memory and by another cache") {
  Artifact artifact = samples::artifact();
  std::shared_ptr<Cache> first = open();
  CHECK_FALSE(first->findByBuildKey(artifact.buildKey));
  REQUIRE(first->put(artifact, 0, 64));
  std::shared_ptr<const Artifact> inMemory = first->findByBuildKey(artifact.buildKey);
  REQUIRE(inMemory);
  CHECK(first->findByBuildKey(artifact.buildKey) == inMemory);

  std::shared_ptr<Cache> second = open();
  std::shared_ptr<const Artifact> onDisk = second->findByBuildKey(artifact.buildKey);
  REQUIRE(onDisk);
  CHECK(*onDisk == artifact);
  CHECK(second->findByBuildKey(artifact.buildKey) == onDisk);
  CHECK(*open()->findByLookup(artifact.lookupKey, 64) == artifact);
  CHECK_FALSE(open()->findByLookup(artifact.lookupKey, 65));
  CHECK_FALSE(open()->findByLookup(artifact.lookupKey + "x", 1));
  CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(Fixture, "a put leaves one entry and its index, private, and nothing else") {
  Artifact artifact = samples::artifact();
  REQUIRE(open()->put(artifact, 0, noEnd));
  CHECK(samples::filesIn(folder.path).size() == 2);
  CHECK(samples::filesIn(folder.path, ".kernel").size() == 1);
  CHECK(samples::filesIn(folder.path, ".index").size() == 1);
  CHECK(modeOf(entryPath(artifact)) == 0600);
}

TEST_CASE("ranges give way to the newest") {
  using Ranges = std::vector<IndexedRange>;
  CHECK(withRange({}, {0, 9, "a"}) == Ranges{{0, 9, "a"}});
  CHECK(withRange({{0, 9, "a"}}, {10, noEnd, "b"}) == Ranges{{0, 9, "a"}, {10, noEnd, "b"}});
  CHECK(withRange({{0, 9, "a"}}, {0, 9, "b"}) == Ranges{{0, 9, "b"}});
  CHECK(withRange({{0, noEnd, "a"}}, {5, 6, "b"}) ==
        Ranges{{0, 4, "a"}, {5, 6, "b"}, {7, noEnd, "a"}});
  CHECK(withRange({{0, 4, "a"}, {5, noEnd, "c"}}, {3, 8, "b"}) ==
        Ranges{{0, 2, "a"}, {3, 8, "b"}, {9, noEnd, "c"}});
  CHECK(withRange({{3, 4, "a"}}, {0, noEnd, "b"}) == Ranges{{0, noEnd, "b"}});
}

TEST_CASE_FIXTURE(Fixture, "lookups follow the ranges, from disk and without one") {
  Artifact low = samples::artifact(0), high = samples::artifact(1);
  for (std::shared_ptr<Cache> cache : {open(), openAt("")}) {
    REQUIRE(cache->put(low, 0, 64));
    REQUIRE(cache->put(high, 65, noEnd));
    CHECK(cache->findByLookup(low.lookupKey, 0)->planText == low.planText);
    CHECK(cache->findByLookup(low.lookupKey, 64)->planText == low.planText);
    CHECK(cache->findByLookup(low.lookupKey, 65)->planText == high.planText);
    CHECK(cache->findByLookup(low.lookupKey, noEnd)->planText == high.planText);
    CHECK(cache->ranges(low.lookupKey).size() == 2);
  }
  CHECK(open()->findByLookup(low.lookupKey, 65)->planText == high.planText);
  CHECK(openAt("")->folder() == "");
  CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(Fixture, "what cannot be kept is refused") {
  std::shared_ptr<Cache> cache = open();
  CHECK(cache->put(Artifact(), 0, 1).error().code == ErrorCode::InvalidArgument);
  CHECK(cache->put(samples::artifact(), 2, 1).error().code == ErrorCode::InvalidArgument);
  CHECK(cache->put(samples::artifact(), -1, 1).error().code == ErrorCode::InvalidArgument);
}

// FreeToken #490: a damaged entry is a miss, said once, and the next put heals it. Others are
// untouched.
TEST_CASE_FIXTURE(Fixture, "every kind of damage is a miss that heals") {
  Artifact artifact = samples::artifact(0), other = samples::artifact(1);
  REQUIRE(open()->put(artifact, 0, 64));
  REQUIRE(open()->put(other, 65, noEnd));
  std::string path = entryPath(artifact), good = readAll(path);
  auto flipped = [&](size_t at) {
    std::string bytes = good;
    bytes[at] = char(bytes[at] ^ 1);
    return bytes;
  };
  std::vector<std::pair<const char *, std::function<void()>>> damages = {
      {"empty", [&] { writeAll(path, ""); }},
      {"one byte", [&] { writeAll(path, good.substr(0, 1)); }},
      {"half", [&] { writeAll(path, good.substr(0, good.size() / 2)); }},
      {"one short", [&] { writeAll(path, good.substr(0, good.size() - 1)); }},
      {"bit of the head", [&] { writeAll(path, flipped(30)); }},
      {"bit of the end", [&] { writeAll(path, flipped(good.size() - 1)); }},
      {"another kernel", [&] { writeAll(path, readAll(entryPath(other))); }},
      {"a folder", [&] { fs::remove(path), fs::create_directory(path); }},
      {"a full folder",
       [&] { fs::remove(path), fs::create_directory(path), writeAll(path + "/x", "x"); }},
      {"a pipe", [&] { fs::remove(path), mkfifo(path.c_str(), 0600); }},
      {"a link", [&] { fs::remove(path), fs::create_symlink(entryPath(other), path); }},
  };
  for (const auto &[name, damage] : damages) {
    CAPTURE(name);
    warnings.clear();
    damage();
    std::shared_ptr<Cache> cache = open();
    CHECK_FALSE(cache->findByBuildKey(artifact.buildKey));
    CHECK_FALSE(cache->findByBuildKey(artifact.buildKey));
    CHECK_FALSE(cache->findByLookup(artifact.lookupKey, 1));
    CHECK(warnings.size() == 1);
    CHECK(cache->findByBuildKey(other.buildKey));
    REQUIRE(cache->put(artifact, 0, 64));
    CHECK(readAll(path) == good);
    CHECK(open()->findByBuildKey(artifact.buildKey));
    CHECK(open()->findByLookup(artifact.lookupKey, 1));
    CHECK(samples::filesIn(folder.path, ".tmp").empty());
  }
  warnings.clear();
  fs::remove(path);
  CHECK_FALSE(open()->findByBuildKey(artifact.buildKey));
  CHECK(warnings.empty()); // absent is no damage
}

TEST_CASE_FIXTURE(Fixture, "a damaged index is a miss for lookups only, and heals") {
  Artifact artifact = samples::artifact();
  REQUIRE(open()->put(artifact, 0, 64));
  std::string path = folder.path + "/" + samples::filesIn(folder.path, ".index")[0];
  std::string good = readAll(path);
  for (size_t length = 0; length < good.size(); length += 7) {
    writeAll(path, good.substr(0, length));
    CHECK_FALSE(open()->findByLookup(artifact.lookupKey, 1));
  }
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = char(bytes[at] ^ 4);
    writeAll(path, bytes);
    CHECK_FALSE(open()->findByLookup(artifact.lookupKey, 1));
  }
  warnings.clear();
  std::shared_ptr<Cache> cache = open();
  CHECK_FALSE(cache->findByLookup(artifact.lookupKey, 1));
  CHECK_FALSE(cache->findByLookup(artifact.lookupKey, 1));
  CHECK(warnings.size() == 1);
  REQUIRE(cache->findByBuildKey(artifact.buildKey));
  cache->serve(artifact, 0, 64);
  CHECK(readAll(path) == good);
  CHECK(open()->findByLookup(artifact.lookupKey, 1));
}

TEST_CASE_FIXTURE(Fixture, "a fresh folder is private, with its missing parents") {
  mode_t old = umask(0);
  std::string path = folder.path + "/a/b/c";
  openAt(path);
  umask(old);
  for (const char *part : {"/a", "/a/b", "/a/b/c"})
    CHECK(modeOf(folder.path + part) == 0700);
}

// triton #518 and its relatives: the kernel is there all the same, from memory, with one warning.
TEST_CASE_FIXTURE(Fixture, "folders that will not do cost one warning") {
  Artifact artifact = samples::artifact();
  REQUIRE(open()->put(artifact, 0, 64));
  std::string file = folder.path + "/file";
  writeAll(file, "x");
  auto worksFromMemory = [&](std::optional<std::string> path) {
    warnings.clear();
    std::shared_ptr<Cache> cache = openAt(std::move(path));
    CHECK(cache->diskProblem());
    CHECK_FALSE(cache->findByBuildKey(artifact.buildKey)); // nothing is loaded from there
    CHECK(cache->put(artifact, 0, 64));
    CHECK(cache->findByBuildKey(artifact.buildKey));
    CHECK(cache->findByLookup(artifact.lookupKey, 3));
    CHECK(warnings.size() == 1);
  };
  SUBCASE("a regular file") { worksFromMemory(file); }
  SUBCASE("below a regular file") { worksFromMemory(file + "/cache"); }
  SUBCASE("a name too long") { worksFromMemory(folder.path + "/" + std::string(300, 'n')); }
  SUBCASE("writable by others") {
    chmod(folder.path.c_str(), 0777);
    worksFromMemory(folder.path);
    chmod(folder.path.c_str(), 0720);
    worksFromMemory(folder.path);
  }
  SUBCASE("owned by another user") {
    if (geteuid() != 0)
      return;
    REQUIRE(chown(folder.path.c_str(), 65534, 65534) == 0);
    worksFromMemory(folder.path);
  }
  SUBCASE("no home") {
    std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    worksFromMemory(std::nullopt);
    setenv("HOME", "/", 1);
    worksFromMemory(std::nullopt);
    setenv("HOME", home.c_str(), 1);
  }
}

TEST_CASE_FIXTURE(Fixture, "the default folder is below the user's cache folder") {
  std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  CHECK(*defaultCacheFolder() == "/xdg/moejit");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/someone", 1);
  CHECK(*defaultCacheFolder() == "/home/someone/.cache/moejit");
  unsetenv("XDG_CACHE_HOME");
  CHECK(*defaultCacheFolder() == "/home/someone/.cache/moejit");
  setenv("HOME", folder.path.c_str(), 1);
  CHECK(openAt(std::nullopt)->folder() == folder.path + "/.cache/moejit");
  CHECK(modeOf(folder.path + "/.cache/moejit") == 0700);
  setenv("HOME", home.c_str(), 1);
}

TEST_CASE_FIXTURE(Fixture, "a folder that cannot be written is read, with one warning") {
  Artifact artifact = samples::artifact(0), fresh = samples::artifact(1);
  if (geteuid() == 0) // the child becomes another user; make the folder its own
    REQUIRE(chown(folder.path.c_str(), 65534, 65534) == 0);
  int code = asOrdinaryUser([&] {
    if (!open()->put(artifact, 0, 64))
      return 1;
    chmod(folder.path.c_str(), 0500);
    std::shared_ptr<Cache> cache = open();
    if (!cache->findByBuildKey(artifact.buildKey))
      return 2;
    if (!cache->put(fresh, 65, 66) || !cache->findByBuildKey(fresh.buildKey))
      return 3;
    if (warnings.size() != 1 || !cache->diskProblem())
      return 4;
    if (samples::filesIn(folder.path, ".kernel").size() != 1)
      return 5;
    FileLock lock = cache->lockBuild(fresh.buildKey); // must not wait, nor leave a file
    chmod(folder.path.c_str(), 0700);
    return samples::filesIn(folder.path, ".lock").empty() ? 0 : 6;
  });
  CHECK(code == 0);
}

TEST_CASE_FIXTURE(Fixture, "a disk that refuses an entry costs one warning, and memory serves") {
  std::shared_ptr<Cache> cache = open(CacheMode::ReadWrite, 100); // no entry fits: as good as full
  Artifact artifact = samples::artifact();
  Result<void> refused = cache->put(artifact, 0, 64);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::IoError);
  CHECK_FALSE(cache->put(samples::artifact(1), 0, 64));
  CHECK(warnings.size() == 1);
  CHECK(cache->findByBuildKey(artifact.buildKey));
  CHECK(samples::filesIn(folder.path).empty());
}

TEST_CASE_FIXTURE(Fixture, "read-only mode finds and never writes") {
  Artifact artifact = samples::artifact(0), fresh = samples::artifact(1);
  REQUIRE(open()->put(artifact, 0, 64));
  std::shared_ptr<Cache> cache = open(CacheMode::ReadOnly);
  CHECK(cache->findByLookup(artifact.lookupKey, 64));
  REQUIRE(cache->put(fresh, 65, 66));
  CHECK(cache->findByLookup(artifact.lookupKey, 66)->planText == fresh.planText);
  CHECK_FALSE(open()->findByBuildKey(fresh.buildKey));
  std::shared_ptr<Cache> absent = openAt(folder.path + "/absent", CacheMode::ReadOnly);
  CHECK(absent->diskProblem());
  CHECK_FALSE(fs::exists(folder.path + "/absent"));
}

TEST_CASE_FIXTURE(Fixture, "the least recently used entries go first") {
  std::vector<Artifact> artifacts;
  for (int i = 0; i < 4; ++i)
    artifacts.push_back(samples::artifact(i));
  uint64_t limit = 3 * serialize(artifacts[0]).size() + 100;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(open(CacheMode::ReadWrite, limit)->put(artifacts[size_t(i)], i, i));
    timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
    utimensat(AT_FDCWD, entryPath(artifacts[size_t(i)]).c_str(), times, 0);
  }
  CHECK(open()->list().size() == 3);                    // looking is not using
  CHECK(open()->findByBuildKey(artifacts[0].buildKey)); // using is
  REQUIRE(open(CacheMode::ReadWrite, limit)->put(artifacts[3], 3, 3));
  CHECK(open()->findByBuildKey(artifacts[0].buildKey));
  CHECK_FALSE(open()->findByBuildKey(artifacts[1].buildKey));
  CHECK(open()->findByBuildKey(artifacts[2].buildKey));
  CHECK(open()->findByBuildKey(artifacts[3].buildKey));
}

TEST_CASE_FIXTURE(Fixture, "entries are listed, found by prefix and removed") {
  std::shared_ptr<Cache> cache = open();
  Artifact artifact = samples::artifact(0), other = samples::artifact(1);
  REQUIRE(cache->put(artifact, 0, 64));
  REQUIRE(cache->put(other, 65, noEnd));
  std::string name = keyName(artifact.buildKey);
  std::vector<CacheEntry> entries = cache->list();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].name < entries[1].name);
  Result<CacheEntry> entry = cache->info(name.substr(0, 8));
  REQUIRE(entry);
  CHECK(entry->name == name);
  CHECK(entry->arch == "sm_90a");
  CHECK(entry->planText == artifact.planText);
  CHECK(entry->spec == canonicalText(artifact.spec));
  CHECK(entry->ranges == std::vector<IndexedRange>{{0, 64, name}});
  CHECK(cache->info("").error().code == ErrorCode::InvalidArgument);
  CHECK(cache->info("zz").error().code == ErrorCode::NotFound);
  CHECK(*cache->read(name) == artifact);
  writeAll(entryPath(other), "x");
  CHECK(cache->info(keyName(other.buildKey))->damage);
  REQUIRE(cache->remove(name));
  CHECK_FALSE(cache->findByBuildKey(artifact.buildKey));
  CHECK(cache->list().size() == 1);
  CHECK(openAt("")->list().empty());
}

TEST_CASE_FIXTURE(Fixture, "a bundle is found by lookup key and never written") {
  Artifact artifact = samples::artifact();
  CacheOptions options;
  options.folder = folder.path;
  options.mode = CacheMode::Bundle;
  CHECK_FALSE(Cache::open(options)); // no manifest: no bundle
  {
    std::shared_ptr<Cache> cache = open();
    REQUIRE(cache->put(artifact, 0, noEnd));
    REQUIRE(cache->writeManifest());
  }
  std::string manifest = readAll(folder.path + "/manifest.json");
  CHECK(manifest.find(keyName(artifact.buildKey)) != std::string::npos);
  CHECK(manifest.find("\"formatMajor\": 2") != std::string::npos);
  std::vector<std::string> before = samples::filesIn(folder.path);
  std::shared_ptr<Cache> bundle = open(CacheMode::Bundle);
  CHECK(*bundle->findByLookup(artifact.lookupKey, 7) == artifact);
  CHECK(bundle->put(artifact, 0, 1).error().code == ErrorCode::InvalidArgument);
  CHECK(bundle->writeManifest().error().code == ErrorCode::InvalidArgument);
  CHECK(samples::filesIn(folder.path).size() == before.size());

  writeAll(folder.path + "/manifest.json", "{\"formatMajor\": 3}");
  Result<std::shared_ptr<Cache>> newer = Cache::open(options);
  REQUIRE_FALSE(newer);
  CHECK(newer.error().message.find("format 3, this runtime reads format 2") != std::string::npos);
  for (const char *text : {"", "{", "formatMajor", "\"formatMajor\":", "\"formatMajor\": x"}) {
    writeAll(folder.path + "/manifest.json", text);
    CHECK_FALSE(Cache::open(options));
  }
  options.folder = folder.path + "/absent";
  CHECK_FALSE(Cache::open(options));
}

TEST_CASE_FIXTURE(Fixture, "a manifest lists what serves rows, with the checksum of every file") {
  Artifact old = samples::artifact(0), low = samples::artifact(1), high = samples::artifact(2);
  high.minDriver = 12000;
  std::shared_ptr<Cache> cache = open();
  REQUIRE(cache->put(old, 0, noEnd));
  REQUIRE(cache->put(low, 0, 64));
  REQUIRE(cache->put(high, 65, noEnd)); // the old one serves nothing any more
  Result<std::string> digest = cache->writeManifest();
  REQUIRE(digest);
  std::string text = readAll(folder.path + "/manifest.json");
  CHECK(*digest == sha256Hex(text));
  Result<Manifest> manifest = parseManifest(text);
  REQUIRE(manifest);
  REQUIRE(manifest->kernels.size() == 2);
  CHECK(manifest->files.size() == 3); // two kernels, one index
  for (const auto &[name, file] : manifest->files) {
    std::string bytes = readAll(folder.path + "/" + name);
    CHECK(file.bytes == bytes.size());
    CHECK(file.sha256 == sha256Hex(bytes));
  }
  for (const ManifestKernel &kernel : manifest->kernels) {
    const Artifact &made = kernel.name == keyName(low.buildKey) ? low : high;
    CHECK(kernel.lookup == keyName(made.lookupKey));
    CHECK(kernel.arch == made.arch);
    CHECK(kernel.plan == made.planText);
    CHECK(kernel.spec == canonicalText(made.spec));
    CHECK(kernel.resources == made.resources);
    CHECK(kernel.minDriver == made.minDriver);
    CHECK(kernel.rows.size() == 1);
  }
  CHECK(manifest->minDriver() == 13000);
  // Writing it again changes nothing; the digest is a function of the contents.
  CHECK(*open()->writeManifest() == *digest);
  CHECK(samples::filesIn(folder.path, ".lock").empty());
}

TEST_CASE_FIXTURE(Fixture, "a pinned bundle takes its own manifest and no other") {
  REQUIRE(open()->put(samples::artifact(), 0, noEnd));
  std::string digest = *open()->writeManifest();
  CacheOptions options;
  options.folder = folder.path;
  options.mode = CacheMode::Bundle;
  options.manifestSha256 = digest;
  Result<std::shared_ptr<Cache>> bundle = Cache::open(options);
  REQUIRE(bundle);
  CHECK((*bundle)->manifestSha256() == digest);
  CHECK((*bundle)->findByLookup(samples::artifact().lookupKey, 1));
  for (std::string wrong : {std::string(), digest.substr(1), std::string(64, 'G')}) {
    options.manifestSha256 = wrong;
    CHECK(Cache::open(options).error().code == ErrorCode::InvalidArgument);
  }
  options.manifestSha256 = std::string(64, '0');
  Result<std::shared_ptr<Cache>> other = Cache::open(options);
  REQUIRE_FALSE(other);
  CHECK(other.error().code == ErrorCode::ParseError);
  CHECK(other.error().message.find(digest) != std::string::npos);
  // One space more is another manifest, though it says the same.
  options.manifestSha256 = digest;
  writeAll(folder.path + "/manifest.json", readAll(folder.path + "/manifest.json") + " ");
  CHECK(Cache::open(options).error().code == ErrorCode::ParseError);
  for (CacheMode mode : {CacheMode::ReadWrite, CacheMode::ReadOnly}) {
    options.mode = mode;
    CHECK(Cache::open(options).error().code == ErrorCode::InvalidArgument);
  }
}

TEST_CASE_FIXTURE(Fixture, "nothing of a bundle that was altered is found, and damageOf says why") {
  Artifact artifact = samples::artifact();
  REQUIRE(open()->put(artifact, 0, noEnd));
  REQUIRE(open()->writeManifest());
  Artifact forged = artifact;
  forged.cubin += "other code";
  std::string index = folder.path + "/" + keyName(artifact.lookupKey) + ".index";
  for (const std::string &path : {entryPath(artifact), index}) {
    const std::string sound = readAll(path);
    std::vector<std::string> contents = {"", sound.substr(0, sound.size() / 2),
                                         sound.substr(0, sound.size() - 1), sound + "x"};
    // Sound on its own, checksum and all, but not what the manifest lists.
    contents.push_back(path == index
                           ? indexText({artifact.lookupKey, {{1, 2, keyName(artifact.buildKey)}}})
                           : serialize(forged));
    for (size_t at = 0; at < sound.size(); at += 1 + sound.size() / 40) {
      contents.push_back(sound);
      contents.back()[at] = char(contents.back()[at] ^ 4);
    }
    for (const std::string &bytes : contents) {
      writeAll(path, bytes);
      std::shared_ptr<Cache> bundle = open(CacheMode::Bundle);
      CHECK_FALSE(bundle->findByLookup(artifact.lookupKey, 1));
      std::optional<Error> damage = bundle->damageOf(artifact.lookupKey, 1);
      REQUIRE(damage);
      CHECK(damage->message.find(path) != std::string::npos);
    }
    fs::remove(path);
    CHECK_FALSE(open(CacheMode::Bundle)->findByLookup(artifact.lookupKey, 1));
    CHECK(open(CacheMode::Bundle)->damageOf(artifact.lookupKey, 1)->message.find("not there") !=
          std::string::npos);
    fs::create_directory(path);
    CHECK(open(CacheMode::Bundle)->damageOf(artifact.lookupKey, 1));
    fs::remove(path);
    writeAll(path, sound);
    CHECK(open(CacheMode::Bundle)->findByLookup(artifact.lookupKey, 1));
    CHECK_FALSE(open(CacheMode::Bundle)->damageOf(artifact.lookupKey, 1));
  }
  // What was added later is not part of it.
  REQUIRE(open()->put(samples::artifact(1), 0, noEnd));
  CHECK(open(CacheMode::Bundle)->damageOf(artifact.lookupKey, 1)); // its index was changed
  CHECK_FALSE(open(CacheMode::Bundle)->findByBuildKey(samples::artifact(1).buildKey));
  REQUIRE(open()->writeManifest());
  CHECK(open(CacheMode::Bundle)->findByBuildKey(samples::artifact(1).buildKey));
}

TEST_CASE_FIXTURE(Fixture, "processes that fill one bundle leave a manifest of everything") {
  constexpr int processes = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(fork());
    if (children.back() != 0)
      continue;
    std::shared_ptr<Cache> cache = openAt(folder.path);
    Artifact artifact = samples::artifact(i);
    bool isDone = bool(cache->put(artifact, i, i)) && bool(cache->writeManifest());
    _exit(isDone ? 0 : 1);
  }
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  CHECK(parseManifest(readAll(folder.path + "/manifest.json"))->kernels.size() == processes);
  for (int i = 0; i < processes; ++i)
    CHECK(open(CacheMode::Bundle)->findByLookup(samples::artifact().lookupKey, i));
  CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(Fixture, "threads may put and find at once") {
  std::shared_ptr<Cache> cache = open();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        Artifact artifact = samples::artifact(i);
        if (!cache->put(artifact, i, i))
          ++wrong;
        std::shared_ptr<const Artifact> found = cache->findByBuildKey(artifact.buildKey);
        if (!found || !(*found == artifact))
          ++wrong;
        (void)cache->findByLookup(artifact.lookupKey, (i + t) % 12);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
  CHECK(samples::filesIn(folder.path, ".kernel").size() == 12);
  CHECK(samples::filesIn(folder.path).size() == 13);
  CHECK(open()->ranges(samples::artifact().lookupKey).size() == 12);
  CHECK(warnings.empty());
}

// Looking at folders, and clearing them.
#include "runtime/CacheAudit.h"

#include "Samples.h"
#include "runtime/Cache.h"
#include "runtime/Keys.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <fstream>
#include <limits>
#include <map>
#include <sys/stat.h>

using namespace moejit;

namespace {

struct Fixture {
  Fixture() {
    CacheOptions options;
    options.folder = folder.path;
    cache = *Cache::open(std::move(options));
  }
  void put(int variant, int64_t minRows, int64_t maxRows, int64_t usedSeconds) {
    REQUIRE(cache->put(samples::artifact(variant), minRows, maxRows));
    timespec times[2] = {{usedSeconds, 0}, {usedSeconds, 0}};
    REQUIRE(utimensat(AT_FDCWD, path(variant).c_str(), times, 0) == 0);
  }
  static std::string file(int variant) {
    return keyName(samples::artifact(variant).buildKey) + ".kernel";
  }
  std::string path(int variant) const { return folder.path + "/" + file(variant); }
  std::map<std::string, FileState> states() const {
    std::map<std::string, FileState> states;
    Result<FolderAudit> audit = auditFolder(folder.path);
    REQUIRE(audit);
    for (const AuditedFile &each : audit->files) {
      states[each.name] = each.state;
      // Whatever is not plainly sound says why.
      CHECK((each.state == FileState::Sound || !each.finding.empty()));
    }
    return states;
  }
  std::vector<std::string> clear(const ClearRequest &request) const {
    Result<Cleared> cleared = clearFolder(folder.path, request);
    REQUIRE(cleared);
    std::vector<std::string> names;
    for (const AuditedFile &each : cleared->removed)
      names.push_back(each.name);
    return names;
  }

  samples::TemporaryFolder folder;
  std::shared_ptr<Cache> cache;
  const std::string index = keyName(samples::artifact().lookupKey) + ".index";
};

} // namespace

TEST_CASE_FIXTURE(Fixture, "an audit tells sound, superseded and damaged files apart") {
  CHECK(states().empty());
  put(0, 0, 64, 1);
  put(1, 0, 64, 2);
  put(2, 65, 99, 3);
  CHECK(states() == std::map<std::string, FileState>{{file(0), FileState::Superseded},
                                                     {file(1), FileState::Sound},
                                                     {file(2), FileState::Sound},
                                                     {index, FileState::Sound}});
  std::ofstream(path(1), std::ios::app) << "x";
  std::ofstream(folder.path + "/" + index) << "junk";
  CHECK(states()[file(1)] == FileState::Damaged);
  CHECK(states()[index] == FileState::Damaged);
  CHECK(states()[file(2)] == FileState::Superseded); // no index names it any more
  CHECK(auditFolder(folder.path)->damaged() == 2);
  CHECK_FALSE(auditFolder(folder.path + "/absent"));
}

TEST_CASE_FIXTURE(Fixture, "a file at work is told from one that a dead process left") {
  put(0, 0, 9, 1);
  std::string left = keyName("left") + ".1-2-3.tmp";
  std::ofstream(folder.path + "/" + left) << "half";
  FileLock lock = cache->lockBuild("some key");
  REQUIRE(lock.state() == FileLock::State::Held);
  std::string held = keyName("some key") + ".lock";
  CHECK(states()[held] == FileState::InUse);
  CHECK(states()[left] == FileState::Stale);
  // Clearing removes the one and leaves the other.
  CHECK(clear({}) == std::vector<std::string>{left});
  CHECK(states()[held] == FileState::InUse);
  CHECK(lock.state() == FileLock::State::Held);
  CHECK(states().count(left) == 0);
}

TEST_CASE_FIXTURE(Fixture, "files of other names are somebody's, whatever they end in") {
  const std::vector<std::string> foreign = {
      "uv.lock",     "download.tmp",      "faiss.index",
      "data.kernel", "a.kernel",          "manifest.tmp",
      "manifest",    "manifest.json.gz",  std::string(64, 'F') + ".kernel",
      "notes.txt",   std::string(64, 'f')};
  for (const std::string &name : foreign)
    std::ofstream(folder.path + "/" + name) << "mine";
  put(0, 0, 9, 1);
  CacheOptions options;
  options.folder = folder.path;
  // The next needs the room of the first.
  options.sizeLimitBytes = std::filesystem::file_size(path(0)) + 100;
  cache = *Cache::open(options);
  put(1, 0, 9, 2);
  CHECK(cache->list().size() == 1);
  for (const std::string &name : foreign)
    CHECK_MESSAGE(states()[name] == FileState::Unknown, name);
  ClearRequest all;
  all.maxBytes = 0;
  CHECK(clear(all) == std::vector<std::string>{file(1)});
  for (const std::string &name : foreign) {
    CHECK_MESSAGE(std::filesystem::exists(folder.path + "/" + name), name);
    CHECK_MESSAGE(!isOurName(name), name);
  }
  std::string key(64, 'a');
  for (const std::string &name :
       {key + ".kernel", key + ".index", key + ".lock", key + ".1-2-3.tmp",
        std::string("manifest.json"), std::string("manifest.lock"),
        std::string("manifest.json.1-2-3.tmp")})
    CHECK_MESSAGE(isOurName(name), name);
}

TEST_CASE_FIXTURE(Fixture, "a bundle is compared with its manifest") {
  put(0, 0, 9, 1);
  put(1, 10, 99, 1);
  std::string digest = *cache->writeManifest();
  CHECK(auditFolder(folder.path)->manifestSha256 == digest);
  CHECK(auditFolder(folder.path)->damaged() == 0);
  put(2, 100, 999, 1); // changes the index that the manifest lists
  CHECK(states()[file(2)] == FileState::Unlisted);
  CHECK(states()[index] == FileState::Damaged);
  REQUIRE(cache->writeManifest());
  Artifact other = samples::artifact(0);
  other.ptx += "// sound, and not what was listed";
  std::ofstream(path(0), std::ios::binary) << serialize(other);
  std::filesystem::remove(path(1));
  CHECK(states()[file(0)] == FileState::Damaged);
  CHECK(states()[file(1)] == FileState::Missing);
  // What the manifest lists stays, whatever became of it.
  ClearRequest all;
  all.maxBytes = 0;
  all.olderThanNs = std::numeric_limits<int64_t>::max();
  all.takesSuperseded = true;
  CHECK(clear(all).empty());
  std::ofstream(folder.path + "/manifest.json") << "{}";
  CHECK(states()["manifest.json"] == FileState::Damaged);
  // A manifest that cannot be read may have listed anything.
  CHECK(clear(all).empty());
  std::filesystem::remove(folder.path + "/manifest.json");
  CHECK_FALSE(clear(all).empty());
}

TEST_CASE_FIXTURE(Fixture, "clearing takes what was asked for, least recently used first") {
  for (int i = 0; i < 4; ++i)
    put(i, i, i, 1000 + i);
  uint64_t size = std::filesystem::file_size(path(0));
  auto ask = [](bool isDryRun, std::optional<int64_t> seconds, std::optional<uint64_t> bytes) {
    ClearRequest request;
    request.isDryRun = isDryRun;
    if (seconds)
      request.olderThanNs = *seconds * 1'000'000'000;
    request.maxBytes = bytes;
    return request;
  };
  CHECK(clear(ask(true, {}, {})).empty());
  CHECK(clear(ask(true, 1001, {})) == std::vector<std::string>{file(0)});
  CHECK(clear(ask(true, {}, size * 2)) == std::vector<std::string>{file(0), file(1)});
  CHECK(clear(ask(true, 1001, size * 2)) == std::vector<std::string>{file(0), file(1)});
  CHECK(samples::filesIn(folder.path, ".kernel").size() == 4);
  Result<Cleared> cleared = clearFolder(folder.path, ask(false, 1001, size * 2));
  REQUIRE(cleared);
  CHECK(cleared->keptKernels == 2);
  CHECK(cleared->keptBytes == size * 2);
  CHECK(cleared->removedBytes == size * 2);
  CHECK(samples::filesIn(folder.path, ".kernel").size() == 2);
  // Lookups of what is gone are misses; the others are found by a cache that opens anew.
  CacheOptions options;
  options.folder = folder.path;
  std::shared_ptr<Cache> fresh = *Cache::open(options);
  CHECK_FALSE(fresh->findByLookup(samples::artifact().lookupKey, 0));
  CHECK(fresh->findByLookup(samples::artifact().lookupKey, 3));
  CHECK(clear(ask(false, {}, 0)).size() == 2);
  CHECK(states()[index] == FileState::Stale);
  CHECK(clear({}) == std::vector<std::string>{index});
  CHECK(states().empty());
}

TEST_CASE("a relative folder stays the one that was opened when the process goes elsewhere") {
  namespace fs = std::filesystem;
  samples::TemporaryFolder here, elsewhere;
  std::string kernel = keyName(samples::artifact().buildKey) + ".kernel";
  fs::path before = fs::current_path();
  fs::current_path(here.path);
  CacheOptions options;
  options.folder = "kept";
  std::shared_ptr<Cache> cache = *Cache::open(std::move(options));
  fs::current_path(elsewhere.path);
  // A folder in place of a kernel, and one of the same name where the process is.
  for (const std::string &root : {here.path, elsewhere.path})
    fs::create_directories(root + "/kept/" + kernel + "/below");
  Result<void> put = cache->put(samples::artifact(), 0, 64);
  Result<void> removed = cache->remove(keyName(samples::artifact(1).buildKey));
  fs::current_path(before);
  CHECK(put);
  CHECK(removed);
  CHECK(fs::is_regular_file(here.path + "/kept/" + kernel));
  CHECK(fs::exists(elsewhere.path + "/kept/" + kernel + "/below"));
}

// The text files of a cache folder: the index, with its checksum made right too, and the manifest
// of a bundle. The input is the file.
#include "runtime/Cache.h"
#include "runtime/Keys.h"
#include "runtime/Sha256.h"
#include "tests/fuzz/Fuzz.h"
#include "tests/unit/Samples.h"

#include <fcntl.h>
#include <unistd.h>

using namespace moejit;

const char *const fuzz::dictionary[] = {
    "moejit-index 1", "\"formatMajor\": 2", "\"kernels\": [",
    "\"name\": ",     "\"rows\": [[0, 9]]", "9223372036854775807",
    "\n0 9 ",         "../../etc/passwd",   nullptr};

namespace {

/// One folder for each process, in memory where there is such a place.
struct Folder {
  Folder() {
    for (const char *parent : {"/dev/shm", "/tmp"}) {
      path = std::string(parent) + "/moejit-fuzz-XXXXXX";
      if (mkdtemp(path.data()))
        return;
    }
    fuzz::require(false, "there is a place for a folder");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  void write(const std::string &name, std::string_view bytes) const {
    int fd = open((path + "/" + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz::require(fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == ssize_t(bytes.size()),
                  "the file can be written");
    close(fd);
  }
  std::string path;
};

void checkRanges(const std::vector<IndexedRange> &ranges) {
  for (size_t i = 0; i < ranges.size(); ++i)
    fuzz::require(ranges[i].name.size() == 64 && ranges[i].name.find('/') == std::string::npos,
                  "an index names kernels of its folder");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = fuzz::textOf(data, size);
  Folder folder;
  static const Artifact artifact = samples::artifact();
  static const std::string file = serialize(artifact);
  folder.write(keyName(artifact.buildKey) + ".kernel", file);

  // The index: as it is, and with its first line made right.
  size_t line = text.find('\n');
  std::string_view body = line == text.npos ? text : text.substr(line + 1);
  if (!body.empty() && body.back() == '\n')
    body.remove_suffix(1);
  std::string resealed = sha256Hex(body) + "\n" + std::string(body) + "\n";
  for (std::string_view index : {text, std::string_view(resealed)}) {
    folder.write(keyName(artifact.lookupKey) + ".index", index);
    CacheOptions options;
    options.folder = folder.path;
    options.mode = CacheMode::ReadOnly;
    std::shared_ptr<Cache> cache = *Cache::open(options);
    checkRanges(cache->ranges(artifact.lookupKey));
    for (int64_t rows : {int64_t(0), int64_t(5), INT64_MAX}) {
      std::shared_ptr<const Artifact> found = cache->findByLookup(artifact.lookupKey, rows);
      fuzz::require(!found || *found == artifact, "what is found is the kernel");
    }
    fuzz::require(cache->findByBuildKey(artifact.buildKey) != nullptr, "the kernel is there");
    // What a put makes of it can be read again.
    options.mode = CacheMode::ReadWrite;
    std::shared_ptr<Cache> writing = *Cache::open(options);
    fuzz::require(bool(writing->put(artifact, 0, 9)), "a put works beside any index");
    fuzz::require(writing->findByLookup(artifact.lookupKey, 9) != nullptr, "and is found");
  }

  folder.write("manifest.json", text);
  CacheOptions options;
  options.folder = folder.path;
  options.mode = CacheMode::Bundle;
  Result<std::shared_ptr<Cache>> bundle = Cache::open(options);
  if (bundle)
    (void)(*bundle)->findByLookup(artifact.lookupKey, 5);
  return 0;
}

// The kernel cache: memory over one folder on disk. Knows nothing about how kernels are made.
#pragma once

#include "runtime/DiskCache.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace moejit {

/// Takes one warning, without a line end. May be called from any thread.
using LogCallback = std::function<void(const std::string &message)>;

/// $XDG_CACHE_HOME/moejit when that is an absolute path, else $HOME/.cache/moejit. The one place of
/// the library that reads the environment. Errors: NotFound when neither is set, or HOME is `/`.
Result<std::string> defaultCacheFolder();

struct CacheOptions {
  /// Nothing: defaultCacheFolder(). Empty text: memory only.
  std::optional<std::string> folder = {};
  CacheMode mode = CacheMode::ReadWrite;
  uint64_t sizeLimitBytes = uint64_t(4) << 30; ///< of all entries on disk; 0: no limit
  int buildWaitMs =
      300'000; ///< longest wait for another process that builds the same kernel; then both build
  /// Bundle only: what the SHA-256 of manifest.json has to be, 64 lower-case hexadecimal
  /// characters. The manifest has the checksum of every other file, so that nothing altered is ever
  /// launched.
  std::optional<std::string> manifestSha256 = {};
  /// ReadWrite: who opens it makes the folder a bundle, and calls writeManifest() when all is
  /// there. Else a warning is given before a bundle is changed that lies in the folder.
  bool isBundleMaker = false;
  LogCallback log = {}; ///< silent when empty
};

/// What `moejit cache` shows of an entry.
struct CacheEntry {
  std::string name; ///< SHA-256 of the build key
  uint64_t bytes = 0;
  int64_t usedNs = 0; ///< last use, since the epoch
  std::string spec;   ///< canonical text
  std::string arch;
  std::string planText;
  std::string nvrtcVersion;
  uint32_t minDriver = 0;
  std::vector<IndexedRange> ranges; ///< row ranges it serves; empty: superseded
  std::optional<Error> damage;      ///< set: the rest but name, bytes and usedNs is empty
};

/// Finds and keeps artifacts. Thread-safe.
///
/// A damaged entry is a miss: reported through the log once, replaced by the next put(). The full
/// key text is compared on each hit. A folder that cannot be used (read-only, not ours, writable by
/// others, no home, a file) costs one warning; the cache then works from memory, and diskProblem()
/// says why.
class Cache {
public:
  /// Opens a cache. ReadWrite and ReadOnly fail only with InvalidArgument for a manifestSha256.
  /// Bundle fails when the folder is no usable bundle, or not the one that manifestSha256 pins.
  static Result<std::shared_ptr<Cache>> open(CacheOptions options);

  /// The artifact whose build key is `buildKey`; null when absent.
  std::shared_ptr<const Artifact> findByBuildKey(const std::string &buildKey);
  /// The artifact meant for `rows` rows of `lookupKey`, whatever built it; null when absent.
  std::shared_ptr<const Artifact> findByLookup(const std::string &lookupKey, int64_t rows);
  /// The row ranges known for `lookupKey`, ascending. Their kernels may be absent all the same.
  std::vector<IndexedRange> ranges(const std::string &lookupKey);

  /// Why findByLookup finds nothing although the folder names a kernel for `rows` rows of
  /// `lookupKey`: what is damaged, or in a bundle not what the manifest says. Nothing where the
  /// kernel is sound or simply absent. Reads the files again.
  std::optional<Error> damageOf(const std::string &lookupKey, int64_t rows) const;

  /// Keeps `artifact` for rows [minRows, maxRows], in memory and, in ReadWrite mode, on disk.
  /// Errors: InvalidArgument for an artifact without keys, an empty range or a bundle; IoError when
  /// the disk refused: it is kept in memory then, and the log has had one warning.
  Result<void> put(const Artifact &artifact, int64_t minRows, int64_t maxRows);

  /// Notes that `artifact`, found here before, also serves rows [minRows, maxRows]. Cheap when that
  /// is known.
  void serve(const Artifact &artifact, int64_t minRows, int64_t maxRows);

  /// Waits until no other process builds `buildKey`. Hold the result while building; look again
  /// after taking it. The state may be Busy or Unsupported: build alone then. Free when there is no
  /// disk.
  FileLock lockBuild(const std::string &buildKey);

  /// All entries on disk, by name.
  std::vector<CacheEntry> list();
  /// The one entry whose name starts with `namePrefix`. Errors: NotFound; InvalidArgument when
  /// several do.
  Result<CacheEntry> info(std::string_view namePrefix);
  /// The artifact behind info(). Errors: those of info(), ParseError for a damaged one.
  Result<Artifact> read(std::string_view namePrefix);
  /// Removes the entry `name` (in full) from disk and memory. Errors: IoError.
  Result<void> remove(const std::string &name);
  /// Makes the folder a bundle: writes manifest.json, which lists all sound entries that serve some
  /// rows, and the checksums of their files. Several processes that fill one folder may each call
  /// it: the last one lists everything, also where the file system has no locks. Returns the
  /// SHA-256 to pin. Errors: IoError; InvalidArgument unless ReadWrite.
  Result<std::string> writeManifest();

  CacheMode mode() const { return options.mode; }
  /// Where entries lie; empty when only memory is used.
  std::string folder() const;
  /// SHA-256 of the manifest that a bundle was opened by; empty for a cache.
  std::string manifestSha256() const { return disk ? disk->manifestSha256() : std::string(); }
  /// Why the disk is not used, or not written, although a folder was asked for.
  const std::optional<Error> &diskProblem() const { return problem; }
  /// Why the disk refused what was put first of all that it refused; nothing where it took all.
  std::optional<Error> storeProblem() const;

private:
  explicit Cache(CacheOptions cacheOptions) : options(std::move(cacheOptions)) {}
  void warnOnce(const std::string &topic, const std::string &message);
  std::shared_ptr<const Artifact> findByName(const std::string &name);
  std::shared_ptr<const Artifact> keep(Artifact artifact);
  CacheEntry entryOf(const DiskCache::File &file);
  Result<std::string> listing();
  void warnOfBundle(const Artifact &artifact, const IndexedRange &range);
  void refuse(const Error &error);

  CacheOptions options;
  std::unique_ptr<DiskCache> disk;
  std::optional<Error> problem;

  mutable std::mutex mutex;                                              ///< guards what follows
  std::unordered_map<std::string, std::shared_ptr<const Artifact>> kept; ///< by build key name
  std::unordered_map<std::string, std::vector<IndexedRange>> keptRanges; ///< by lookup key
  std::set<std::string> warned;
  std::optional<Error> refused; ///< by the disk, first of all
};

} // namespace moejit

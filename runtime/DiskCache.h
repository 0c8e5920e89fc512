// One folder of kernels on disk: entries, the index from lookup keys to row ranges, eviction. Every
// file operation goes through the descriptor of the folder that was checked at open. Decides
// nothing about when to compile.
#pragma once

#include "runtime/Artifact.h"
#include "runtime/CacheIndex.h"
#include "runtime/FileLock.h"
#include "runtime/Manifest.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moejit {

enum class CacheMode {
  ReadWrite, ///< finds and stores
  ReadOnly,  ///< finds; what is put stays in memory
  Bundle, ///< a folder made ahead of time: has a manifest, is never written and never compiled for
};

/// Whether a file of a cache folder has a name that only moejit gives: a SHA-256 or
/// `manifest.json`, and the suffix of a kernel, an index, a lock or a temporary file
/// (`.<process>-<time>-<n>.tmp`). What has another name is somebody's, and is neither read nor
/// removed, whatever it ends in (uv.lock, faiss.index).
bool isOurName(std::string_view name);

/// Makes `path` and its missing parents, each with mode 0700 whatever the umask. Returns 0, also
/// where they are there, or an errno.
int makeFolders(const std::string &path);

/// The kernel in `bytes`, a file that is named after the build key `name`. Errors: ParseError: no
/// artifact, one of another key, or one whose keys are not those of its spec and plan.
Result<Artifact> readKernel(std::string_view bytes, const std::string &name);

/// A folder checked to be ours alone. Thread-safe; several processes may share the folder.
///
/// Files: `<build key name>.kernel` (serialize), `<lookup key name>.index`, `<name>.lock` and
/// `*.tmp` while someone works, `manifest.json` in a bundle.
class DiskCache {
public:
  /// Opens `folder`; ReadWrite makes it, and missing parents, with mode 0700. Errors: IoError
  /// naming the folder and what is wrong: not a folder, owned by someone else, writable by others,
  /// not to be made or read; for Bundle also a missing manifest (NotFound), a damaged one, one of
  /// another format, or one whose SHA-256 is not `manifestSha256`, where that is given
  /// (ParseError).
  static Result<std::unique_ptr<DiskCache>>
  open(const std::string &folder, CacheMode mode, uint64_t sizeLimitBytes,
       const std::optional<std::string> &manifestSha256 = std::nullopt);
  ~DiskCache();
  DiskCache(const DiskCache &) = delete;
  DiskCache &operator=(const DiskCache &) = delete;

  /// Whether store() can be tried: ReadWrite, and the folder took no objection to writing at open.
  bool isWritable() const { return writable; }

  struct Loaded {
    std::optional<Artifact> artifact;
    std::optional<Error> damage; ///< something is there, and it is not a kernel of that name
  };
  /// Reads the entry `name`; neither member is set when there is none. Of a bundle only files count
  /// whose bytes have the checksum that the manifest gives: any other is damage, a missing one too.
  Loaded load(const std::string &name) const;
  /// Makes `name` the most recently used entry. Does nothing when the folder is not writable.
  void markUsed(const std::string &name) const;

  struct Ranges {
    std::vector<IndexedRange> ranges; ///< ascending
    std::optional<Error> damage;
  };
  /// The row ranges known for a lookup key. The full key text is compared.
  Ranges ranges(const std::string &lookupKey) const;

  /// Publishes `artifact` for rows [minRows, maxRows]: temporary file, fsync, atomic rename; then
  /// evicts the least recently used entries above the size limit, but none that a manifest.json in
  /// the folder lists. Errors: IoError; where only the index was refused, the kernel is there and
  /// is found by its build key.
  Result<void> store(const Artifact &artifact, int64_t minRows, int64_t maxRows) const;

  /// Enters `range` in the index of `lookupKey`, and leaves what others enter at the same time,
  /// also where the file system has no locks. Errors: IoError.
  Result<void> storeRange(const std::string &lookupKey, const IndexedRange &range) const;

  /// Whether storeRange would change an index that a manifest.json in the folder lists: as a bundle
  /// the folder is then no longer what it was.
  bool breaksBundle(const std::string &lookupKey, const IndexedRange &range) const;

  /// Waits for the right to build the kernel `name`, `waitMs` at most. See FileLock for the states.
  FileLock lockBuild(const std::string &name, int waitMs) const;

  struct File {
    std::string name; ///< build key name, without the suffix
    uint64_t bytes = 0;
    int64_t usedNs = 0; ///< last use, since the epoch
  };
  /// The entries there are, by name.
  std::vector<File> files() const;
  /// Removes the entry `name`. Errors: IoError.
  Result<void> remove(const std::string &name) const;
  /// What a file holds; nothing where it is absent or cannot be read.
  using Seen = std::optional<std::string>;
  /// From what a file holds, what it is to hold; nothing where it is right as it is.
  using Revision = std::function<Result<std::optional<std::string>>(const Seen &)>;
  /// Writes the file `name` as `revise` has it, and drops nothing that others write at the same
  /// time: where `lock`, the state of the lock on the file, is not Held, it looks again after a
  /// while, and revises what it finds. Errors: those of `revise`; IoError, which advises `remedy`
  /// where others replaced the file again and again.
  Result<void> replace(const std::string &name, FileLock::State lock, const std::string &remedy,
                       const Revision &revise) const;
  /// Waits for the right to write the manifest, as lockBuild does.
  FileLock lockManifest() const;

  /// The names of all files there are, sorted; names that begin with a dot are nobody's.
  std::vector<std::string> names() const;
  /// The file `name` as it is. Errors: NotFound; IoError, also for what is no file, and for one
  /// that others can write or own.
  Result<std::string> readFile(const std::string &name) const;
  /// Whether a process that lives holds the lock on the file `name`. Changes nothing.
  bool isHeld(const std::string &name) const;
  /// Removes the file `name`, or the folder that stands in its place. Errors: IoError.
  Result<void> removeFile(const std::string &name) const;
  /// Whether the kernel `name` is there, or a living process is building it.
  bool isExpected(const std::string &name) const;
  /// Removes the index `name` unless a kernel is expected that it names (a builder writes the index
  /// first), or another process is writing it. Returns whether it is gone. Errors: IoError.
  Result<bool> removeIndex(const std::string &name) const;

  /// SHA-256 of the manifest that the folder was opened by; empty unless Bundle.
  const std::string &manifestSha256() const { return manifestDigest; }

private:
  DiskCache() = default;
  Result<void> openManifest(const std::optional<std::string> &wantedSha256);
  Result<std::string> readListed(const std::string &name) const;
  Seen seen(const std::string &name) const;
  /// Returns false, and publishes nothing, where `before` is given and not what is there.
  Result<bool> publish(const std::string &finalName, const std::string &bytes,
                       const Seen *before = nullptr) const;
  void sweep() const;
  void evict(const std::string &keep) const;

  /// The turns of this object's threads at indexes. A file lock would do where there are any; none
  /// is waited for without end, as a forked child may find one taken for good.
  mutable std::array<std::timed_mutex, 16> turns;
  std::string path;
  int fd = -1;
  bool writable = false;
  bool takesRoot = false; ///< files that root owns, too
  uint64_t sizeLimit = 0;
  std::optional<Manifest> manifest; ///< of a bundle
  std::string manifestDigest;
};

} // namespace moejit

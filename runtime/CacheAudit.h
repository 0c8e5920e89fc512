// Looks at every file of a cache folder or a bundle, says what is wrong with it, and clears away
// what is of no use.
#pragma once

#include "runtime/DiskCache.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moejit {

enum class FileKind { Kernel, Index, Manifest, Leftover, Other };
const char *fileKindName(FileKind kind);

enum class FileState {
  Sound,
  InUse,      ///< a lock or temporary file of a process that lives
  Superseded, ///< a sound kernel that no index names: another serves its rows
  Unlisted,   ///< sound, but not of the bundle it lies in: the manifest does not list it
  Stale,      ///< an index whose kernels are all gone, or a file that a dead process left
  Unknown,    ///< nothing that belongs to a cache: not looked into
  Damaged,    ///< not what it claims to be, or not what the manifest lists
  Missing,    ///< listed by the manifest, and not there
};
const char *fileStateName(FileState state);

/// One file, and what became of it.
struct AuditedFile {
  std::string name;
  FileKind kind = FileKind::Other;
  FileState state = FileState::Sound;
  uint64_t bytes = 0;
  int64_t usedNs = 0;  ///< last use of a kernel, since the epoch
  std::string finding; ///< what is wrong or noteworthy, a phrase; empty when there is nothing
};

struct FolderAudit {
  std::string folder;
  std::vector<AuditedFile> files; ///< by name
  std::string manifestSha256;     ///< empty without a manifest.json
  std::optional<Manifest> manifest;

  /// Files that are Damaged or Missing.
  size_t damaged() const;
};

/// Reads all of `folder` and changes nothing: of kernels checksum and key, of indexes checksum, key
/// and whether their kernels are there, of a bundle every checksum of its manifest. What is damaged
/// is a finding, no error. Errors: those of DiskCache::open for ReadOnly.
Result<FolderAudit> auditFolder(const std::string &folder);

/// What clearFolder takes away, besides what no one can use: damaged files, indexes whose kernels
/// are all gone, and what dead processes left.
struct ClearRequest {
  bool isDryRun = false;                   ///< only says what would go
  bool takesSuperseded = false;            ///< kernels that no index names
  std::optional<int64_t> olderThanNs = {}; ///< kernels last used before that time since the epoch
  std::optional<uint64_t> maxBytes = {};   ///< least recently used kernels, until so many are left
};

struct Cleared {
  std::vector<AuditedFile> removed; ///< or would be; `finding` says why
  uint64_t removedBytes = 0;
  uint64_t keptBytes = 0; ///< of kernels
  size_t keptKernels = 0;
  size_t pinned = 0; ///< files that stay because the manifest lists them
};

/// Clears a cache folder. Of a bundle only what its manifest does not list is ever removed, and
/// where that is damaged only what dead processes left. Safe while others use the folder: what they
/// miss, they build again. Errors: those of auditFolder and, unless isDryRun, of DiskCache::open
/// for ReadWrite; IoError for a file that cannot be removed.
Result<Cleared> clearFolder(const std::string &folder, const ClearRequest &request);

} // namespace moejit

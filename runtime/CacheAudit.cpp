// Auditing reads; clearing removes what the audit found, through the folder's own descriptor.
#include "runtime/CacheAudit.h"

#include "runtime/Keys.h"
#include "runtime/Sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace moejit {
namespace {

bool endsWith(std::string_view name, std::string_view suffix) {
  return name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix;
}

FileKind kindOf(std::string_view name) {
  if (name == manifestName)
    return FileKind::Manifest;
  if (!isOurName(name))
    return FileKind::Other;
  if (endsWith(name, ".kernel"))
    return FileKind::Kernel;
  if (endsWith(name, ".index"))
    return FileKind::Index;
  return endsWith(name, ".lock") || endsWith(name, ".tmp") ? FileKind::Leftover : FileKind::Other;
}

/// `name` without its suffix.
std::string stemOf(std::string_view name) { return std::string(name.substr(0, name.rfind('.'))); }

/// One audit at work.
class Auditor {
public:
  explicit Auditor(const DiskCache &disk) : disk(disk) {
    for (const DiskCache::File &file : disk.files())
      used[file.name] = file.usedNs;
  }

  FolderAudit run(const std::string &folder) {
    audit.folder = folder;
    std::vector<std::string> names = disk.names();
    readManifest();
    // Indexes first: what they name decides about kernels.
    for (FileKind kind : {FileKind::Manifest, FileKind::Index, FileKind::Kernel, FileKind::Leftover,
                          FileKind::Other})
      for (const std::string &name : names)
        if (kindOf(name) == kind)
          addFile(name, kind);
    compareManifest();
    if (audit.manifest)
      for (const auto &[name, file] : audit.manifest->files)
        if (!std::binary_search(names.begin(), names.end(), name))
          audit.files.push_back({name, kindOf(name), FileState::Missing, file.bytes, 0,
                                 "the manifest lists it, and it is not there"});
    std::sort(audit.files.begin(), audit.files.end(),
              [](const AuditedFile &a, const AuditedFile &b) { return a.name < b.name; });
    return std::move(audit);
  }

private:
  void readManifest() {
    Result<std::string> text = disk.readFile(std::string(manifestName));
    if (!text)
      return;
    audit.manifestSha256 = sha256Hex(*text);
    if (Result<Manifest> parsed = parseManifest(*text))
      audit.manifest = std::move(*parsed);
    else
      manifestDamage = parsed.error().message;
  }

  void addFile(const std::string &name, FileKind kind) {
    AuditedFile file;
    file.name = name;
    file.kind = kind;
    if (kind == FileKind::Leftover) {
      // Looked at, not read: its owner may be writing.
      bool isHeld = disk.isHeld(name);
      file.state = isHeld ? FileState::InUse : FileState::Stale;
      file.finding = isHeld ? "of a process at work" : "of a process that is gone";
      audit.files.push_back(std::move(file));
      return;
    }
    if (kind == FileKind::Other) {
      file.state = FileState::Unknown;
      bool isOurs = name == "emulator" || name == "plans";
      file.finding = isOurs ? "a folder of moejit run, bench or tune; not looked into"
                            : "not written by moejit";
      audit.files.push_back(std::move(file));
      return;
    }
    Result<std::string> bytes = disk.readFile(name);
    if (!bytes && bytes.error().code == ErrorCode::NotFound)
      return; // removed meanwhile
    if (!bytes)
      damage(file, bytes.error().message);
    else {
      file.bytes = bytes->size();
      if (kind == FileKind::Manifest && !manifestDamage.empty())
        damage(file, manifestDamage);
      if (kind == FileKind::Index)
        lookAtIndex(file, *bytes);
      if (kind == FileKind::Kernel)
        lookAtKernel(file, *bytes);
      compareWithManifest(file, *bytes);
    }
    audit.files.push_back(std::move(file));
  }

  static void damage(AuditedFile &file, std::string finding) {
    file.state = FileState::Damaged;
    file.finding = std::move(finding);
  }

  void lookAtIndex(AuditedFile &file, const std::string &bytes) {
    std::optional<CacheIndex> index = parseIndex(bytes);
    if (!index)
      return damage(file, "the checksum does not fit, or it is no index");
    if (keyName(index->lookupKey) != stemOf(file.name))
      return damage(file, "holds the index of another key");
    size_t absent = 0;
    for (const IndexedRange &range : index->ranges) {
      served[range.name].push_back(range);
      // A builder writes the index first.
      absent += !disk.isExpected(range.name);
    }
    if (absent == 0)
      return;
    // Eviction leaves such ranges: a lookup there is a miss.
    file.finding =
        fmt::format("{} of {} row ranges have no kernel here", absent, index->ranges.size());
    if (absent == index->ranges.size())
      file.state = FileState::Stale;
  }

  void lookAtKernel(AuditedFile &file, const std::string &bytes) {
    std::string name = stemOf(file.name);
    if (auto found = used.find(name); found != used.end())
      file.usedNs = found->second;
    Result<Artifact> artifact = readKernel(bytes, name);
    if (!artifact)
      return damage(file, artifact.error().message);
    auto ranges = served.find(name);
    if (ranges == served.end()) {
      file.state = FileState::Superseded;
      file.finding = "no index names it";
      return;
    }
    found.emplace(name, manifestKernel(*artifact, ranges->second));
  }

  /// Checksums may fit a manifest whose lines do not: what those say is what others plan by.
  void compareManifest() {
    std::set<std::string> damaged;
    for (const AuditedFile &file : audit.files)
      if (file.state == FileState::Damaged)
        damaged.insert(file.name);
    auto manifest = std::find_if(audit.files.begin(), audit.files.end(),
                                 [](const auto &file) { return file.kind == FileKind::Manifest; });
    if (!audit.manifest || manifest == audit.files.end())
      return;
    std::set<std::string> listed;
    for (const ManifestKernel &kernel : audit.manifest->kernels) {
      auto there = found.find(kernel.name);
      bool isComparable = there != found.end() && !damaged.contains(kernel.name + ".kernel") &&
                          !damaged.contains(there->second.lookup + ".index");
      if (!listed.insert(kernel.name).second)
        damage(*manifest, fmt::format("it has kernel {:.12} twice", kernel.name));
      else if (isComparable && there->second != kernel)
        damage(*manifest,
               fmt::format("what it says of kernel {:.12} is not what lies here", kernel.name));
    }
    for (const auto &[name, kernel] : found)
      if (audit.manifest->files.contains(name + ".kernel") && !listed.contains(name))
        damage(*manifest,
               fmt::format("it lists the file of kernel {:.12} and no such kernel", name));
  }

  void compareWithManifest(AuditedFile &file, const std::string &bytes) {
    if (!audit.manifest || file.kind == FileKind::Manifest || file.state == FileState::Damaged)
      return;
    auto listed = audit.manifest->files.find(file.name);
    if (listed == audit.manifest->files.end()) {
      if (file.state == FileState::Sound) {
        file.state = FileState::Unlisted;
        file.finding = "the manifest does not list it";
      }
    } else if (sha256Hex(bytes) != listed->second.sha256) {
      damage(file, "its SHA-256 is not the one in the manifest");
    } else if (file.state == FileState::Stale) {
      damage(file, file.finding);
    }
  }

  const DiskCache &disk;
  FolderAudit audit;
  std::string manifestDamage;
  std::map<std::string, int64_t> used;                     ///< by kernel name
  std::map<std::string, std::vector<IndexedRange>> served; ///< by kernel name
  std::map<std::string, ManifestKernel> found;             ///< sound kernels that serve rows
};

} // namespace

const char *fileKindName(FileKind kind) {
  switch (kind) {
  case FileKind::Kernel:
    return "kernel";
  case FileKind::Index:
    return "index";
  case FileKind::Manifest:
    return "manifest";
  case FileKind::Leftover:
    return "leftover";
  case FileKind::Other:
    break;
  }
  return "other";
}

const char *fileStateName(FileState state) {
  switch (state) {
  case FileState::Sound:
    return "sound";
  case FileState::InUse:
    return "in use";
  case FileState::Superseded:
    return "superseded";
  case FileState::Unlisted:
    return "unlisted";
  case FileState::Stale:
    return "stale";
  case FileState::Unknown:
    return "unknown";
  case FileState::Damaged:
    return "damaged";
  case FileState::Missing:
    break;
  }
  return "missing";
}

size_t FolderAudit::damaged() const {
  return size_t(std::count_if(files.begin(), files.end(), [](const AuditedFile &file) {
    return file.state == FileState::Damaged || file.state == FileState::Missing;
  }));
}

Result<FolderAudit> auditFolder(const std::string &folder) {
  Result<std::unique_ptr<DiskCache>> disk = DiskCache::open(folder, CacheMode::ReadOnly, 0);
  if (!disk)
    return disk.error();
  return Auditor(**disk).run(folder);
}

Result<Cleared> clearFolder(const std::string &folder, const ClearRequest &request) {
  Result<FolderAudit> audit = auditFolder(folder);
  if (!audit)
    return audit.error();
  Cleared cleared;
  std::vector<AuditedFile> kept; // kernels that may still go, and their sizes
  // A manifest that cannot be read may list anything.
  bool hasManifest = std::any_of(audit->files.begin(), audit->files.end(),
                                 [](const auto &file) { return file.kind == FileKind::Manifest; });
  auto isPinned = [&](const AuditedFile &file) {
    return hasManifest && file.kind != FileKind::Leftover &&
           (file.kind == FileKind::Manifest || !audit->manifest ||
            audit->manifest->files.contains(file.name));
  };
  auto take = [&](AuditedFile file, const char *why) {
    if (why)
      file.finding = why;
    cleared.removedBytes += file.bytes;
    cleared.removed.push_back(std::move(file));
  };
  for (AuditedFile &file : audit->files) {
    bool isUseless = file.state == FileState::Stale || file.state == FileState::Damaged;
    bool isKernel = file.kind == FileKind::Kernel;
    bool isOld = isKernel && request.olderThanNs && file.usedNs < *request.olderThanNs;
    bool isSuperseded = file.state == FileState::Superseded && request.takesSuperseded;
    if (file.state == FileState::Missing || file.kind == FileKind::Other)
      continue;
    if (isPinned(file)) {
      cleared.pinned += isUseless || isOld;
      cleared.keptKernels += isKernel;
      cleared.keptBytes += isKernel ? file.bytes : 0;
    } else if (isUseless)
      take(std::move(file), nullptr);
    else if (isSuperseded)
      take(std::move(file), nullptr);
    else if (isOld)
      take(std::move(file), "not used for so long");
    else if (isKernel)
      kept.push_back(std::move(file));
  }
  std::sort(kept.begin(), kept.end(),
            [](const AuditedFile &a, const AuditedFile &b) { return a.usedNs < b.usedNs; });
  for (const AuditedFile &file : kept) {
    cleared.keptBytes += file.bytes;
    ++cleared.keptKernels;
  }
  for (AuditedFile &file : kept)
    if (request.maxBytes && cleared.keptBytes > *request.maxBytes) {
      cleared.keptBytes -= file.bytes;
      --cleared.keptKernels;
      take(std::move(file), "least recently used, above the size limit");
    }
  if (request.isDryRun || cleared.removed.empty())
    return cleared;
  // Opening to write removes what dead processes left; the rest goes one by one.
  Result<std::unique_ptr<DiskCache>> disk = DiskCache::open(folder, CacheMode::ReadWrite, 0);
  if (!disk)
    return disk.error();
  if (!(*disk)->isWritable())
    return Error{ErrorCode::IoError, fmt::format("cache folder {}: cannot be written", folder), {}};
  std::vector<AuditedFile> removed;
  for (AuditedFile &file : cleared.removed) {
    Result<bool> isGone = true;
    if (file.kind == FileKind::Index)
      isGone = (*disk)->removeIndex(file.name);
    else if (file.state == FileState::Damaged && (*disk)->load(stemOf(file.name)).artifact)
      isGone = false; // built anew meanwhile
    else if (file.kind != FileKind::Leftover)
      if (Result<void> done = (*disk)->removeFile(file.name); !done)
        return done.error();
    if (!isGone)
      return isGone.error();
    if (*isGone)
      removed.push_back(std::move(file));
    else
      cleared.removedBytes -= file.bytes;
  }
  cleared.removed = std::move(removed);
  return cleared;
}

} // namespace moejit

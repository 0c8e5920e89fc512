// The cache folder: checks at open, entries and index as single files published by rename, eviction
// and sweeping.
#include "runtime/DiskCache.h"

#include "runtime/Keys.h"
#include "runtime/Sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace moejit {
namespace {

constexpr std::string_view kernelSuffix = ".kernel";
constexpr int indexWaitMs = 5000;
constexpr int removeWaitMs = 1000;      // what is being written is not stale
constexpr int manifestWaitMs = 300'000; // whoever holds it reads every kernel
constexpr int temporaryWaitMs = 1000;
/// Without a lock: how often a file is written that others replace, and what is waited before
/// looking whether they did: longer than anyone takes from comparing to renaming.
constexpr int mostReplacements = 20;
constexpr int settleMs = 20;
/// No kernel comes near this; a larger file is not read at all.
constexpr int64_t maxEntryBytes = int64_t(1) << 30;

Error ioError(std::string what, int error) {
  return {
      ErrorCode::IoError, fmt::format("{}: {}", what, std::generic_category().message(error)), {}};
}

/// Since the epoch; what 64 bits do not hold, as a clock that jumped may leave it, is cut off.
int64_t nanoseconds(const timespec &time) {
  constexpr int64_t second = 1'000'000'000, most = INT64_MAX / second - 1;
  return std::clamp<int64_t>(time.tv_sec, -most, most) * second + time.tv_nsec;
}

bool hasSuffix(std::string_view name, std::string_view suffix) {
  return name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix;
}

/// Names of the files in an open folder. Empty when it cannot be read.
std::vector<std::string> fileNames(int folderFd) {
  std::vector<std::string> names;
  int fd = openat(folderFd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = fd < 0 ? nullptr : fdopendir(fd);
  if (!stream) {
    if (fd >= 0)
      close(fd);
    return names;
  }
  while (const dirent *entry = readdir(stream))
    if (entry->d_name[0] != '.')
      names.emplace_back(entry->d_name);
  closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

/// Unlike any other name, also of another process on another host.
std::string temporaryName(std::string_view finalName) {
  static std::atomic<uint64_t> counter = 0;
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{}.{}-{}-{}.tmp", finalName.substr(0, 64), getpid(),
                     std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(),
                     counter.fetch_add(1));
}

int writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return errno;
    bytes.remove_prefix(size_t(written));
  }
  if (fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP)
    return 0; // some file systems cannot; the checksum tells what a crash left
  return errno;
}

/// What temporaryName puts behind a name: `.<process>-<time>-<n>.tmp`.
bool isTemporarySuffix(std::string_view text) {
  if (!text.starts_with('.') || !text.ends_with(".tmp"))
    return false;
  text = text.substr(1, text.size() - std::min<size_t>(text.size(), 5));
  size_t digits = 0;
  int hyphens = 0;
  for (char c : text) {
    if (c == '-' && (digits == 0 || ++hyphens > 2))
      return false;
    if (c != '-' && (c < '0' || c > '9'))
      return false;
    digits = c == '-' ? 0 : digits + 1;
  }
  return hyphens == 2 && digits > 0;
}

std::string indexName(const std::string &lookupKey) { return keyName(lookupKey) + ".index"; }

} // namespace

int makeFolders(const std::string &path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at < path.size() && path[at] != '/')
      continue;
    std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0700) == 0) {
      chmod(part.c_str(), 0700); // a umask may have taken bits of ours
      continue;
    }
    int error = errno;
    struct stat info;
    if (stat(part.c_str(), &info) == 0)
      continue; // whether it will do as a folder shows when it is opened
    return error;
  }
  return 0;
}

Result<Artifact> readKernel(std::string_view bytes, const std::string &name) {
  Result<Artifact> artifact = deserialize(bytes);
  if (!artifact)
    return artifact;
  if (keyName(artifact->buildKey) != name)
    return Error{ErrorCode::ParseError, "holds the kernel of another key", {}};
  // A launch is checked against the spec, and found by the keys: they must speak of one kernel.
  std::string_view lookup = artifact->lookupKey, build = artifact->buildKey;
  bool isFit =
      lookup.starts_with(fmt::format("spec={}\n", canonicalText(artifact->spec))) &&
      build.starts_with(lookup) &&
      build.substr(lookup.size()).starts_with(fmt::format("plan={}\n", artifact->planText));
  if (!isFit)
    return Error{ErrorCode::ParseError, "its keys are of another spec or plan", {}};
  return artifact;
}

bool isOurName(std::string_view name) {
  size_t end = name.find('.');
  std::string_view stem = name.substr(0, end), rest = end < name.size() ? name.substr(end) : "";
  if (stem == "manifest") {
    // Temporaries of manifests had no `.json` in their names once.
    std::string_view last = rest.starts_with(".json.") ? rest.substr(5) : rest;
    return rest == ".json" || rest == ".lock" || isTemporarySuffix(last);
  }
  bool isKey = stem.size() == 64 && std::all_of(stem.begin(), stem.end(), [](char c) {
                 return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
               });
  return isKey &&
         (rest == kernelSuffix || rest == ".index" || rest == ".lock" || isTemporarySuffix(rest));
}

Result<std::unique_ptr<DiskCache>>
DiskCache::open(const std::string &folder, CacheMode mode, uint64_t sizeLimitBytes,
                const std::optional<std::string> &manifestSha256) {
  std::string what = fmt::format("cache folder {}", folder);
  if (mode == CacheMode::ReadWrite)
    if (int error = makeFolders(folder))
      return ioError(what, error);
  std::unique_ptr<DiskCache> cache(new DiskCache);
  cache->path = folder;
  cache->sizeLimit = sizeLimitBytes;
  cache->fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat info;
  if (cache->fd < 0 || fstat(cache->fd, &info) != 0)
    return ioError(what, errno);
  cache->takesRoot = mode != CacheMode::ReadWrite;
  if (info.st_uid != geteuid() && !(info.st_uid == 0 && cache->takesRoot))
    return Error{ErrorCode::IoError,
                 fmt::format("{}: owned by user {}, this is user {}", what, info.st_uid, geteuid()),
                 {"kernels are code: they are loaded only from folders of this user or of root"}};
  if (info.st_mode & (S_IWGRP | S_IWOTH))
    return Error{ErrorCode::IoError,
                 fmt::format("{}: mode {:04o} lets others write", what, info.st_mode & 07777),
                 {"kernels are code: chmod -R go-w the folder after checking what it holds"}};
  if (mode == CacheMode::Bundle)
    if (Result<void> opened = cache->openManifest(manifestSha256); !opened) {
      opened.error().message = fmt::format("{}: {}", what, opened.error().message);
      return opened.error();
    }
  cache->writable =
      mode == CacheMode::ReadWrite && faccessat(cache->fd, ".", W_OK | X_OK, AT_EACCESS) == 0;
  if (cache->writable)
    cache->sweep();
  return cache;
}

DiskCache::~DiskCache() {
  if (fd >= 0)
    close(fd);
}

Result<void> DiskCache::openManifest(const std::optional<std::string> &wantedSha256) {
  Result<std::string> text = readFile(std::string(manifestName));
  if (!text)
    return text.error();
  // What is parsed is what was hashed: the file is read once.
  manifestDigest = sha256Hex(*text);
  if (wantedSha256 && *wantedSha256 != manifestDigest)
    return Error{
        ErrorCode::ParseError,
        fmt::format("{} has SHA-256 {}, pinned is {}", manifestName, manifestDigest, *wantedSha256),
        {"nothing of this bundle is used: it is not the one the digest was taken of"}};
  Result<Manifest> parsed = parseManifest(*text);
  if (!parsed)
    return parsed.error();
  manifest = std::move(*parsed);
  return {};
}

Result<std::string> DiskCache::readListed(const std::string &name) const {
  if (!manifest)
    return readFile(name);
  std::string what = path + "/" + name;
  auto listed = manifest->files.find(name);
  if (listed == manifest->files.end())
    return Error{ErrorCode::NotFound, fmt::format("{}: the manifest has no such file", what), {}};
  Result<std::string> bytes = readFile(name);
  if (!bytes && bytes.error().code == ErrorCode::NotFound)
    return Error{ErrorCode::ParseError,
                 fmt::format("{}: the manifest lists it, and it is not there", what),
                 {}};
  if (!bytes)
    return bytes;
  if (bytes->size() != listed->second.bytes)
    return Error{ErrorCode::ParseError,
                 fmt::format("{}: has {} bytes, {} by the manifest", what, bytes->size(),
                             listed->second.bytes),
                 {}};
  if (std::string digest = sha256Hex(*bytes); digest != listed->second.sha256)
    return Error{
        ErrorCode::ParseError,
        fmt::format("{}: has SHA-256 {}, {} by the manifest", what, digest, listed->second.sha256),
        {}};
  return bytes;
}

Result<std::string> DiskCache::readFile(const std::string &name) const {
  std::string what = path + "/" + name;
  // O_NONBLOCK: a pipe put in place of a file must not hold us up.
  int file = openat(fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) {
    int number = errno;
    Error error = ioError(what, number);
    if (number == ELOOP) // of the last name: what lies elsewhere may be someone else's to write
      error = {ErrorCode::IoError,
               what + ": is a symbolic link, and none is followed",
               {"copy the folder with its contents: cp -rL"}};
    if (number == ENOENT)
      error.code = ErrorCode::NotFound;
    return error;
  }
  struct stat info;
  Error error;
  std::string bytes;
  if (fstat(file, &info) != 0)
    error = ioError(what, errno);
  else if (!S_ISREG(info.st_mode) || info.st_size > maxEntryBytes)
    error = {ErrorCode::IoError, what + ": not a file of sensible size", {}};
  else if (info.st_uid != geteuid() && !(info.st_uid == 0 && takesRoot))
    // It may have been hard-linked, or the folder given away: the folder's owner says nothing of
    // it.
    error = {ErrorCode::IoError,
             fmt::format("{}: owned by user {}, this is user {}", what, info.st_uid, geteuid()),
             {"kernels are code: they are loaded only from files of this user or of root"}};
  else if (info.st_mode & (S_IWGRP | S_IWOTH))
    error = {ErrorCode::IoError,
             fmt::format("{}: mode {:04o} lets others write", what, info.st_mode & 07777),
             {"kernels are code: chmod go-w the file after checking what it holds"}};
  else {
    bytes.resize(size_t(info.st_size));
    size_t filled = 0;
    while (filled < bytes.size()) {
      ssize_t got = read(file, bytes.data() + filled, bytes.size() - filled);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        error = ioError(what, errno);
      if (got <= 0)
        break;
      filled += size_t(got);
    }
    bytes.resize(filled);
  }
  close(file);
  if (!error.message.empty())
    return error;
  return bytes;
}

DiskCache::Loaded DiskCache::load(const std::string &name) const {
  Result<std::string> bytes = readListed(name + std::string(kernelSuffix));
  if (!bytes) {
    if (bytes.error().code == ErrorCode::NotFound)
      return {};
    return {std::nullopt, bytes.error()};
  }
  Result<Artifact> artifact = readKernel(*bytes, name);
  if (!artifact) {
    Error error = artifact.error();
    error.message = fmt::format("{}/{}{}: {}", path, name, kernelSuffix, error.message);
    return {std::nullopt, error};
  }
  return {std::move(*artifact), std::nullopt};
}

DiskCache::Ranges DiskCache::ranges(const std::string &lookupKey) const {
  std::string name = indexName(lookupKey);
  Result<std::string> text = readListed(name);
  if (!text) {
    if (text.error().code == ErrorCode::NotFound)
      return {};
    return {{}, text.error()};
  }
  std::optional<CacheIndex> index = parseIndex(*text);
  if (!index || index->lookupKey != lookupKey)
    return {
        {},
        Error{ErrorCode::ParseError, fmt::format("{}/{}: the index is damaged", path, name), {}}};
  return {std::move(index->ranges), std::nullopt};
}

DiskCache::Seen DiskCache::seen(const std::string &name) const {
  Result<std::string> bytes = readFile(name);
  return bytes ? Seen(std::move(*bytes)) : std::nullopt;
}

Result<bool> DiskCache::publish(const std::string &finalName, const std::string &bytes,
                                const Seen *before) const {
  bool isManifest = finalName == manifestName;
  std::string temporary =
      temporaryName(isManifest ? finalName : finalName.substr(0, finalName.find('.')));
  std::string what = path + "/" + finalName;
  // The lock marks the temporary file as alive: sweep() removes those whose owner died.
  FileLock lock = FileLock::acquire(fd, temporary, temporaryWaitMs);
  int file = lock.descriptor();
  if (lock.state() != FileLock::State::Held)
    file = openat(fd, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0)
    return ioError(what, errno);
  fchmod(file, 0600); // whatever the umask
  int error = writeAll(file, bytes);
  // Syncing may take long, and who has no lock may have published meanwhile.
  bool isReplaced = !error && before && seen(finalName) != *before;
  if (!error && !isReplaced && renameat(fd, temporary.c_str(), fd, finalName.c_str()) != 0) {
    error = errno;
    if (error == EISDIR || error == ENOTEMPTY || error == EEXIST) {
      // Damage can take the form of a folder, which a rename does not replace.
      (void)removeFile(finalName);
      error = renameat(fd, temporary.c_str(), fd, finalName.c_str()) == 0 ? 0 : errno;
    }
  }
  if (error || isReplaced)
    unlinkat(fd, temporary.c_str(), 0);
  if (lock.state() != FileLock::State::Held)
    close(file);
  lock.releaseKeepingFile();
  if (error)
    return ioError(what, error);
  if (!isReplaced)
    fsync(fd); // so that the name survives a crash as well as the bytes do
  return !isReplaced;
}

Result<void> DiskCache::replace(const std::string &name, FileLock::State lock,
                                const std::string &remedy, const Revision &revise) const {
  for (int round = 0; round <= mostReplacements; ++round) {
    Seen before = seen(name);
    Result<std::optional<std::string>> text = revise(before);
    if (!text)
      return text.error();
    if (!*text)
      return {};
    Result<bool> published = publish(name, **text, &before);
    if (!published)
      return published.error();
    if (*published && lock == FileLock::State::Held)
      return {};
    // Who read before this rename, and renames after it, drops what this one added. Not all wait
    // equally long, or two would replace each other for ever.
    auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    std::this_thread::sleep_for(std::chrono::milliseconds(settleMs + (now / 1000) % settleMs));
    if (*published && seen(name) == **text)
      return {};
  }
  return Error{ErrorCode::IoError,
               fmt::format("{}/{}: others replaced it {} times while it was written{}", path, name,
                           mostReplacements,
                           lock == FileLock::State::Held ? ", without its lock"
                                                         : ", and no lock can be had here"),
               {remedy}};
}

Result<void> DiskCache::storeRange(const std::string &lookupKey, const IndexedRange &range) const {
  std::unique_lock turn(turns[std::hash<std::string>()(lookupKey) % turns.size()],
                        std::chrono::milliseconds(indexWaitMs));
  FileLock lock = FileLock::acquire(fd, keyName(lookupKey) + ".lock", indexWaitMs);
  auto enter = [&](const Seen &before) -> Result<std::optional<std::string>> {
    std::optional<CacheIndex> index = before ? parseIndex(*before) : std::nullopt;
    if (!index || index->lookupKey != lookupKey)
      index = {lookupKey, {}}; // what is damaged is written anew
    std::vector<IndexedRange> merged = withRange(index->ranges, range);
    if (merged == index->ranges)
      return std::optional<std::string>();
    return std::optional(indexText({lookupKey, merged}));
  };
  return replace(indexName(lookupKey), lock.state(),
                 "let one process fill this folder, or several fill folders on a disk of their own "
                 "and join them: moejit cache merge",
                 enter);
}

bool DiskCache::breaksBundle(const std::string &lookupKey, const IndexedRange &range) const {
  Seen text = seen(std::string(manifestName));
  Result<Manifest> listing = parseManifest(text.value_or(""));
  if (!listing || !listing->files.contains(indexName(lookupKey)))
    return false;
  std::vector<IndexedRange> known = ranges(lookupKey).ranges;
  return withRange(known, range) != known;
}

Result<void> DiskCache::store(const Artifact &artifact, int64_t minRows, int64_t maxRows) const {
  std::string name = keyName(artifact.buildKey);
  std::string bytes = serialize(artifact);
  if (sizeLimit && bytes.size() > sizeLimit)
    return Error{ErrorCode::IoError,
                 fmt::format("{}: {} bytes are more than the size limit of {}", path, bytes.size(),
                             sizeLimit),
                 {}};
  // The index goes first: dying in between leaves a range without its kernel, which is a miss and
  // heals by itself. A kernel without its range is found by its build key.
  Result<void> indexed = storeRange(artifact.lookupKey, {minRows, maxRows, name});
  if (Result<bool> published = publish(name + std::string(kernelSuffix), bytes); !published)
    return published.error();
  evict(name);
  // Who clears the folder may have met the range before its kernel, and taken it for stale.
  return indexed ? storeRange(artifact.lookupKey, {minRows, maxRows, name}) : indexed;
}

FileLock DiskCache::lockBuild(const std::string &name, int waitMs) const {
  return FileLock::acquire(fd, name + ".lock", waitMs);
}

std::vector<DiskCache::File> DiskCache::files() const {
  std::vector<File> files;
  for (const std::string &name : fileNames(fd)) {
    struct stat info;
    if (!hasSuffix(name, kernelSuffix) || !isOurName(name) ||
        fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    files.push_back({name.substr(0, name.size() - kernelSuffix.size()), uint64_t(info.st_size),
                     nanoseconds(info.st_mtim)});
  }
  return files;
}

void DiskCache::evict(const std::string &keep) const {
  if (!sizeLimit)
    return;
  std::vector<File> all = files();
  uint64_t total = 0;
  for (const File &file : all)
    total += file.bytes;
  if (total <= sizeLimit)
    return;
  // What a bundle consists of stays, as it does when the folder is cleared; a manifest that cannot
  // be read may list anything.
  Result<std::string> text = readFile(std::string(manifestName));
  bool hasManifest = text || text.error().code != ErrorCode::NotFound;
  Result<Manifest> listing = parseManifest(text ? *text : std::string());
  if (hasManifest && !listing)
    return;
  std::sort(all.begin(), all.end(),
            [](const File &a, const File &b) { return a.usedNs < b.usedNs; });
  for (const File &file : all) {
    if (total <= sizeLimit)
      return;
    bool isListed = hasManifest && listing->files.contains(file.name + std::string(kernelSuffix));
    if (file.name != keep && !isListed && remove(file.name))
      total -= file.bytes;
  }
}

void DiskCache::sweep() const {
  for (const std::string &name : fileNames(fd)) {
    struct stat info;
    if (!isOurName(name) || !(hasSuffix(name, ".tmp") || hasSuffix(name, ".lock")) ||
        fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISREG(info.st_mode))
      FileLock::acquire(fd, name, 0).release(); // held by the living, unlinked for the dead
    else
      (void)removeFile(name); // nobody can hold what is no file
  }
}

void DiskCache::markUsed(const std::string &name) const {
  if (writable)
    utimensat(fd, (name + std::string(kernelSuffix)).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

Result<void> DiskCache::remove(const std::string &name) const {
  return removeFile(name + std::string(kernelSuffix));
}

Result<void> DiskCache::removeFile(const std::string &name) const {
  if (unlinkat(fd, name.c_str(), 0) != 0 && errno != ENOENT) {
    int error = errno;
    std::error_code failed;
    // By the descriptor: `path` may be relative, and the process in another folder by now.
    std::filesystem::remove_all(fmt::format("/proc/self/fd/{}/{}", fd, name), failed);
    if (failed)
      return ioError(path + "/" + name, error);
  }
  return {};
}

bool DiskCache::isExpected(const std::string &name) const {
  // In this order: the builder lets go when the kernel is there.
  if (isHeld(name + ".lock"))
    return true;
  struct stat info;
  return fstatat(fd, (name + std::string(kernelSuffix)).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<bool> DiskCache::removeIndex(const std::string &name) const {
  FileLock lock = FileLock::acquire(fd, name.substr(0, name.rfind('.')) + ".lock", removeWaitMs);
  // Its holder looks at the index no more when it has written it, and would miss what goes now.
  if (lock.state() == FileLock::State::Busy)
    return false;
  Result<std::string> text = readFile(name);
  std::optional<CacheIndex> index = text ? parseIndex(*text) : std::nullopt;
  if (index)
    for (const IndexedRange &range : index->ranges)
      if (isExpected(range.name))
        return false;
  // Without locks someone may have entered a range since.
  if (text && seen(name) != *text)
    return false;
  if (Result<void> removed = removeFile(name); !removed)
    return removed.error();
  if (!index || lock.state() == FileLock::State::Held)
    return true;
  // Or have found its range there, and stored the kernel meanwhile. Who stores it later than this
  // finds no range, and enters it.
  bool isGone = true;
  for (const IndexedRange &range : index->ranges)
    if (isExpected(range.name)) {
      isGone = false;
      if (Result<void> entered = storeRange(index->lookupKey, range); !entered)
        return entered.error();
    }
  return isGone;
}

std::vector<std::string> DiskCache::names() const { return fileNames(fd); }

bool DiskCache::isHeld(const std::string &name) const {
  int file = openat(fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0)
    return false;
  bool isHeld = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return isHeld;
}

FileLock DiskCache::lockManifest() const {
  return FileLock::acquire(fd, "manifest.lock", manifestWaitMs);
}

} // namespace moejit

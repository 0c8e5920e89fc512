// Memory over disk: hits in memory touch no file, hits on disk are kept in memory.
#include "runtime/Cache.h"

#include "runtime/Keys.h"
#include "runtime/Sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace moejit {
namespace {

const IndexedRange *rangeOf(const std::vector<IndexedRange> &ranges, int64_t rows) {
  for (const IndexedRange &range : ranges)
    if (range.minRows <= rows && rows <= range.maxRows)
      return &range;
  return nullptr;
}

} // namespace

Result<std::string> defaultCacheFolder() {
  const char *cache = std::getenv("XDG_CACHE_HOME");
  if (cache && cache[0] == '/' && cache[1])
    return std::string(cache) + "/moejit";
  const char *home = std::getenv("HOME");
  if (home && home[0] == '/' && home[1])
    return std::string(home) + "/.cache/moejit";
  return Error{ErrorCode::NotFound,
               "no default cache folder: HOME is unset or /, and so is XDG_CACHE_HOME",
               {"name a folder of your own in CacheOptions::folder"}};
}

Result<std::shared_ptr<Cache>> Cache::open(CacheOptions options) {
  std::shared_ptr<Cache> cache(new Cache(std::move(options)));
  CacheMode mode = cache->options.mode;
  if (const std::optional<std::string> &pinned = cache->options.manifestSha256) {
    if (mode != CacheMode::Bundle)
      return Error{ErrorCode::InvalidArgument,
                   "manifestSha256 pins a bundle: a cache has no manifest",
                   {"open the folder with CacheMode::Bundle"}};
    if (!isSha256(*pinned))
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("manifestSha256: '{}' is no SHA-256 (64 of 0-9 and a-f)", *pinned),
                   {"moejit aot prints it; sha256sum manifest.json gives it too"}};
  }
  if (cache->options.folder && cache->options.folder->empty() && mode != CacheMode::Bundle)
    return cache;
  Result<std::string> folder =
      cache->options.folder ? Result<std::string>(*cache->options.folder) : defaultCacheFolder();
  if (!folder)
    cache->problem = folder.error();
  else if (Result<std::unique_ptr<DiskCache>> disk = DiskCache::open(
               *folder, mode, cache->options.sizeLimitBytes, cache->options.manifestSha256);
           !disk)
    cache->problem = disk.error();
  else {
    cache->options.folder = *folder;
    cache->disk = std::move(*disk);
    if (mode == CacheMode::ReadWrite && !cache->disk->isWritable())
      cache->problem = Error{ErrorCode::IoError,
                             fmt::format("cache folder {}: cannot be written", *folder),
                             {"kernels in it are used; new ones are kept in memory"}};
  }
  if (cache->problem && mode == CacheMode::Bundle)
    return *cache->problem;
  if (cache->problem)
    cache->warnOnce(
        "folder", fmt::format("{}; new kernels are kept in memory only", cache->problem->message));
  return cache;
}

void Cache::warnOnce(const std::string &topic, const std::string &message) {
  {
    std::lock_guard guard(mutex);
    if (!warned.insert(topic).second)
      return;
  }
  if (options.log)
    options.log(message);
}

std::string Cache::folder() const { return disk ? *options.folder : std::string(); }

std::shared_ptr<const Artifact> Cache::keep(Artifact artifact) {
  auto shared = std::make_shared<const Artifact>(std::move(artifact));
  std::lock_guard guard(mutex);
  kept[keyName(shared->buildKey)] = shared;
  return shared;
}

std::shared_ptr<const Artifact> Cache::findByName(const std::string &name) {
  {
    std::lock_guard guard(mutex);
    auto found = kept.find(name);
    if (found != kept.end())
      return found->second;
  }
  if (!disk)
    return nullptr;
  DiskCache::Loaded loaded = disk->load(name);
  if (loaded.damage)
    warnOnce(name, loaded.damage->message + "; it counts as absent");
  if (!loaded.artifact)
    return nullptr;
  disk->markUsed(name);
  return keep(std::move(*loaded.artifact));
}

std::shared_ptr<const Artifact> Cache::findByBuildKey(const std::string &buildKey) {
  std::shared_ptr<const Artifact> found = findByName(keyName(buildKey));
  return found && found->buildKey == buildKey ? found : nullptr;
}

std::vector<IndexedRange> Cache::ranges(const std::string &lookupKey) {
  if (disk) {
    DiskCache::Ranges onDisk = disk->ranges(lookupKey);
    if (onDisk.damage)
      warnOnce(keyName(lookupKey), onDisk.damage->message + "; it counts as absent");
    if (!onDisk.ranges.empty())
      return std::move(onDisk.ranges);
  }
  std::lock_guard guard(mutex);
  auto found = keptRanges.find(lookupKey);
  return found == keptRanges.end() ? std::vector<IndexedRange>() : found->second;
}

std::shared_ptr<const Artifact> Cache::findByLookup(const std::string &lookupKey, int64_t rows) {
  {
    std::lock_guard guard(mutex);
    auto ranges = keptRanges.find(lookupKey);
    const IndexedRange *range =
        ranges == keptRanges.end() ? nullptr : rangeOf(ranges->second, rows);
    auto found = range ? kept.find(range->name) : kept.end();
    if (found != kept.end() && found->second->lookupKey == lookupKey)
      return found->second;
  }
  std::vector<IndexedRange> known = ranges(lookupKey);
  const IndexedRange *range = rangeOf(known, rows);
  std::shared_ptr<const Artifact> found = range ? findByName(range->name) : nullptr;
  return found && found->lookupKey == lookupKey ? found : nullptr;
}

std::optional<Error> Cache::damageOf(const std::string &lookupKey, int64_t rows) const {
  if (!disk)
    return std::nullopt;
  DiskCache::Ranges known = disk->ranges(lookupKey);
  if (known.damage)
    return known.damage;
  const IndexedRange *range = rangeOf(known.ranges, rows);
  return range ? disk->load(range->name).damage : std::nullopt;
}

Result<void> Cache::put(const Artifact &artifact, int64_t minRows, int64_t maxRows) {
  if (artifact.lookupKey.empty() || artifact.buildKey.empty())
    return Error{ErrorCode::InvalidArgument, "an artifact without keys cannot be kept", {}};
  if (minRows < 0 || minRows > maxRows)
    return Error{
        ErrorCode::InvalidArgument, fmt::format("no rows lie in [{}, {}]", minRows, maxRows), {}};
  if (options.mode == CacheMode::Bundle)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("the bundle {} is never written", folder()),
                 {"open its folder in ReadWrite mode to add kernels"}};
  keep(artifact);
  {
    std::lock_guard guard(mutex);
    std::vector<IndexedRange> &known = keptRanges[artifact.lookupKey];
    known = withRange(known, {minRows, maxRows, keyName(artifact.buildKey)});
  }
  if (!disk || !disk->isWritable())
    return {};
  warnOfBundle(artifact, {minRows, maxRows, keyName(artifact.buildKey)});
  Result<void> stored = disk->store(artifact, minRows, maxRows);
  if (!stored)
    refuse(stored.error());
  return stored;
}

void Cache::refuse(const Error &error) {
  warnOnce("store", error.message + "; new kernels are kept in memory only");
  std::lock_guard guard(mutex);
  if (!refused)
    refused = error;
}

void Cache::warnOfBundle(const Artifact &artifact, const IndexedRange &range) {
  if (!options.isBundleMaker && disk->breaksBundle(artifact.lookupKey, range))
    warnOnce(
        "bundle",
        fmt::format("cache folder {}: new kernels change {}.index, which {} lists: the folder "
                    "is no longer the bundle that it was; fill bundles with moejit aot -o, and "
                    "give other programs a cache folder of their own",
                    folder(), keyName(artifact.lookupKey), manifestName));
}

std::optional<Error> Cache::storeProblem() const {
  std::lock_guard guard(mutex);
  return refused;
}

void Cache::serve(const Artifact &artifact, int64_t minRows, int64_t maxRows) {
  IndexedRange range{minRows, maxRows, keyName(artifact.buildKey)};
  std::vector<IndexedRange> known = ranges(artifact.lookupKey);
  if (std::find(known.begin(), known.end(), range) != known.end())
    return;
  {
    std::lock_guard guard(mutex);
    std::vector<IndexedRange> &inMemory = keptRanges[artifact.lookupKey];
    inMemory = withRange(inMemory, range);
  }
  if (!disk || !disk->isWritable())
    return;
  warnOfBundle(artifact, range);
  if (Result<void> stored = disk->storeRange(artifact.lookupKey, range); !stored)
    refuse(stored.error());
}

FileLock Cache::lockBuild(const std::string &buildKey) {
  if (!disk || !disk->isWritable())
    return {};
  FileLock lock = disk->lockBuild(keyName(buildKey), options.buildWaitMs);
  if (lock.state() == FileLock::State::Busy)
    warnOnce("busy", fmt::format("cache folder {}: another process has been building the same "
                                 "kernel for {} ms; building it here too",
                                 folder(), options.buildWaitMs));
  return lock;
}

CacheEntry Cache::entryOf(const DiskCache::File &file) {
  CacheEntry entry;
  entry.name = file.name;
  entry.bytes = file.bytes;
  entry.usedNs = file.usedNs;
  DiskCache::Loaded loaded = disk->load(file.name);
  if (!loaded.artifact) {
    entry.damage = loaded.damage.value_or(
        Error{ErrorCode::NotFound, fmt::format("{}: removed meanwhile", file.name), {}});
    return entry;
  }
  const Artifact &artifact = *loaded.artifact;
  entry.spec = canonicalText(artifact.spec);
  entry.arch = artifact.arch;
  entry.planText = artifact.planText;
  entry.nvrtcVersion = artifact.nvrtcVersion;
  entry.minDriver = artifact.minDriver;
  for (const IndexedRange &range : disk->ranges(artifact.lookupKey).ranges)
    if (range.name == file.name)
      entry.ranges.push_back(range);
  return entry;
}

std::vector<CacheEntry> Cache::list() {
  std::vector<CacheEntry> entries;
  if (disk)
    for (const DiskCache::File &file : disk->files())
      entries.push_back(entryOf(file));
  return entries;
}

Result<CacheEntry> Cache::info(std::string_view namePrefix) {
  std::vector<DiskCache::File> matches;
  if (disk)
    for (const DiskCache::File &file : disk->files())
      if (file.name.compare(0, namePrefix.size(), namePrefix) == 0)
        matches.push_back(file);
  if (matches.empty())
    return Error{
        ErrorCode::NotFound, fmt::format("no entry of the cache begins with '{}'", namePrefix), {}};
  if (matches.size() > 1)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("{} entries of the cache begin with '{}'", matches.size(), namePrefix),
                 {matches[0].name, matches[1].name}};
  return entryOf(matches[0]);
}

Result<Artifact> Cache::read(std::string_view namePrefix) {
  Result<CacheEntry> entry = info(namePrefix);
  if (!entry)
    return entry.error();
  if (entry->damage)
    return *entry->damage;
  DiskCache::Loaded loaded = disk->load(entry->name);
  if (loaded.artifact)
    return std::move(*loaded.artifact);
  return loaded.damage.value_or(Error{ErrorCode::NotFound, entry->name, {}});
}

Result<void> Cache::remove(const std::string &name) {
  {
    std::lock_guard guard(mutex);
    kept.erase(name);
  }
  return disk ? disk->remove(name) : Result<void>();
}

/// The manifest of what lies in the folder.
Result<std::string> Cache::listing() {
  Manifest manifest;
  auto addFile = [&](const std::string &name) -> Result<void> {
    Result<std::string> bytes = disk->readFile(name);
    if (!bytes)
      return bytes.error();
    manifest.files[name] = {bytes->size(), sha256Hex(*bytes)};
    return {};
  };
  for (const CacheEntry &entry : list()) {
    if (entry.damage || entry.ranges.empty())
      continue;
    DiskCache::Loaded loaded = disk->load(entry.name);
    if (!loaded.artifact)
      continue; // removed meanwhile
    ManifestKernel kernel = manifestKernel(*loaded.artifact, entry.ranges);
    for (const std::string &name : {kernel.name + ".kernel", kernel.lookup + ".index"})
      if (Result<void> added = addFile(name); !added)
        return added.error();
    manifest.kernels.push_back(std::move(kernel));
  }
  return manifestJson(manifest);
}

Result<std::string> Cache::writeManifest() {
  if (!disk || !disk->isWritable())
    return problem.value_or(
        Error{ErrorCode::InvalidArgument, "only a writable cache folder becomes a bundle", {}});
  // Who lists last has seen what everyone has put: a list made earlier must not replace it.
  FileLock lock = disk->lockManifest();
  if (lock.state() == FileLock::State::Busy)
    return Error{ErrorCode::IoError,
                 fmt::format("cache folder {}: another process has been writing the manifest for "
                             "minutes",
                             folder()),
                 {"call again when it has ended"}};
  std::string text;
  auto list = [&](const DiskCache::Seen &before) -> Result<std::optional<std::string>> {
    Result<std::string> listed = listing();
    if (!listed)
      return listed.error();
    text = *listed;
    return before == text ? std::nullopt : std::optional(text);
  };
  Result<void> written = disk->replace(std::string(manifestName), lock.state(),
                                       "call again when they have ended", list);
  if (!written)
    return written.error();
  return sha256Hex(text);
}

} // namespace moejit

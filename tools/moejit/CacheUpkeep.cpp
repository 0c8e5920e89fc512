// moejit cache verify, gc and merge.
#include "tools/moejit/CacheUpkeep.h"

#include "runtime/Cache.h"
#include "runtime/CacheAudit.h"
#include "runtime/Keys.h"
#include "tools/moejit/Kernels.h"
#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

namespace moejit::tool {
namespace {

Error usage(std::string message, std::vector<std::string> notes = {}) {
  return {ErrorCode::InvalidArgument, std::move(message), std::move(notes)};
}

/// `text` as a number with one of `units` behind it. Errors: InvalidArgument naming the option.
Result<double> quantity(const char *option, const std::string &text,
                        const std::vector<std::pair<const char *, double>> &units) {
  double number = 0;
  const char *end = text.data() + text.size();
  auto [rest, code] = std::from_chars(text.data(), end, number);
  std::string unit(rest, end);
  if (code == std::errc() && number >= 0 && std::isfinite(number))
    for (const auto &[name, factor] : units)
      if (unit == name)
        return number * factor;
  std::string names;
  for (const auto &[name, factor] : units)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", *name ? name : "nothing");
  return usage(fmt::format("{} takes a number and a unit ({}), got '{}'", option, names, text));
}

void writeFile(JsonWriter &json, const AuditedFile &file) {
  json.beginObject().field("file", file.name).field("kind", fileKindName(file.kind));
  json.field("state", fileStateName(file.state)).field("bytes", file.bytes);
  json.field("finding", file.finding).endObject();
}

/// "3fa9c1… .kernel": enough to find a file by.
std::string shortName(const std::string &name) {
  size_t dot = name.find('.');
  return dot > 12 && dot != std::string::npos ? name.substr(0, 12) + name.substr(dot) : name;
}

Result<ClearRequest> clearRequest(const Arguments &arguments) {
  ClearRequest request;
  request.isDryRun = arguments.has("--dry-run");
  request.takesSuperseded = arguments.has("--superseded");
  if (std::optional<std::string> text = arguments.value("--max-size")) {
    Result<double> bytes = quantity("--max-size", *text,
                                    {{"", 1},
                                     {"K", 1024.},
                                     {"M", 1024. * 1024},
                                     {"G", 1024. * 1024 * 1024},
                                     {"T", 1024. * 1024 * 1024 * 1024}});
    if (!bytes)
      return bytes.error();
    request.maxBytes = uint64_t(std::min(*bytes, 1e18));
  }
  if (std::optional<std::string> text = arguments.value("--older-than")) {
    Result<double> seconds =
        quantity("--older-than", *text, {{"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}});
    if (!seconds)
      return seconds.error();
    auto now = std::chrono::system_clock::now().time_since_epoch();
    int64_t nowNs = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    request.olderThanNs = nowNs - int64_t(std::min(*seconds, 9e9) * 1e9);
  }
  return request;
}

/// Removes, or with --dry-run counts, the indexes of the kernels that `cleared` took: those that
/// name no other. clearFolder itself would find them at its next call.
Result<void> clearIndexes(const std::string &folder, bool isDryRun, Cleared &cleared) {
  constexpr std::string_view kernelSuffix = ".kernel", indexSuffix = ".index";
  std::set<std::string> taken;
  for (const AuditedFile &file : cleared.removed)
    if (file.kind == FileKind::Kernel)
      taken.insert(file.name.substr(0, file.name.size() - kernelSuffix.size()));
  if (taken.empty())
    return {};
  Result<std::unique_ptr<DiskCache>> disk =
      DiskCache::open(folder, isDryRun ? CacheMode::ReadOnly : CacheMode::ReadWrite, 0);
  if (!disk)
    return disk.error();
  Result<std::string> listed = (*disk)->readFile(std::string(manifestName));
  Result<Manifest> manifest = listed ? parseManifest(*listed) : Result<Manifest>(listed.error());
  for (const std::string &name : (*disk)->names()) {
    if (!isOurName(name) || !name.ends_with(indexSuffix) ||
        (manifest && manifest->files.contains(name)))
      continue;
    Result<std::string> text = (*disk)->readFile(name);
    std::optional<CacheIndex> index = text ? parseIndex(*text) : std::nullopt;
    if (!index)
      continue;
    bool namesTaken = false, namesOther = false;
    for (const IndexedRange &range : index->ranges) {
      bool isTaken = taken.contains(range.name);
      namesTaken |= isTaken;
      namesOther |= !isTaken && (*disk)->isExpected(range.name);
    }
    if (!namesTaken || namesOther)
      continue;
    Result<bool> isGone = isDryRun ? Result<bool>(true) : (*disk)->removeIndex(name);
    if (!isGone)
      return isGone.error();
    if (!*isGone)
      continue; // another process writes it, or builds a kernel of it
    cleared.removedBytes += text->size();
    cleared.removed.push_back(
        {name, FileKind::Index, FileState::Stale, text->size(), 0, "of kernels that are removed"});
  }
  return {};
}

/// Refuses `folder` where a file is damaged, or listed by its manifest and gone: what that held
/// would be left out.
Result<void> requireSound(const std::string &folder) {
  Result<FolderAudit> audit = auditFolder(folder);
  if (!audit)
    return audit.error();
  for (const AuditedFile &file : audit->files) {
    if (file.state != FileState::Damaged && file.state != FileState::Missing)
      continue;
    std::string path = folder + "/" + file.name;
    bool isNamed = file.finding.starts_with(path);
    return Error{ErrorCode::ParseError,
                 isNamed ? file.finding : fmt::format("{}: {}", path, file.finding),
                 {fmt::format("damaged or missing in {}: {}; moejit cache verify --cache {} names "
                              "all; nothing was merged",
                              folder, audit->damaged(), folder),
                  audit->manifestSha256.empty()
                      ? "moejit cache gc removes what is damaged from a cache"
                      : "copy the bundle again, or build it again (moejit aot)"}};
  }
  return {};
}

/// Refuses to make the manifest of `folder` anew where the old one lists a kernel that is lost by
/// now, and not in `merged`: `cache` is of the folder, `entries` what lies there.
Result<void> requireNothingLost(const std::string &folder, Cache &cache,
                                const std::vector<CacheEntry> &entries,
                                const std::map<std::string, size_t> &merged) {
  Result<std::unique_ptr<DiskCache>> disk = DiskCache::open(folder, CacheMode::ReadOnly, 0);
  if (!disk)
    return disk.error();
  Result<std::string> text = (*disk)->readFile(std::string(manifestName));
  Result<Manifest> manifest = text ? parseManifest(*text) : Result<Manifest>(text.error());
  if (!manifest)
    return {};
  std::map<std::string, const CacheEntry *> byName;
  for (const CacheEntry &entry : entries)
    byName[entry.name] = &entry;
  for (const ManifestKernel &kernel : manifest->kernels) {
    auto found = byName.find(kernel.name);
    bool isThere = found != byName.end() && !found->second->damage;
    // Without ranges it is superseded, as long as its index is there to say by what.
    if (isThere && found->second->ranges.empty())
      if (Result<Artifact> artifact = cache.read(kernel.name); artifact)
        isThere = !cache.ranges(artifact->lookupKey).empty();
    if (!isThere && !merged.contains(kernel.name))
      return Error{
          ErrorCode::ParseError,
          fmt::format("{}: its manifest lists kernel {}, which is lost: it or its index {}.index "
                      "is damaged or missing",
                      folder, kernel.name, kernel.lookup),
          {"merge a folder that has it, too, or copy the bundle again; nothing was merged"}};
  }
  return {};
}

/// A kernel to merge, and where it came from.
struct Source {
  std::string folder, name;
  IndexedRange range;
};

} // namespace

int verifyCache(const Arguments &arguments) {
  std::optional<std::string> pinned = arguments.value("--bundle-sha256");
  if (pinned && !isSha256(*pinned))
    return fail(arguments, usage(fmt::format("--bundle-sha256 takes a SHA-256 (64 of 0-9 and a-f), "
                                             "got '{}'",
                                             *pinned)));
  Result<std::string> folder = cacheFolder(arguments);
  if (!folder)
    return fail(arguments, folder.error());
  Result<FolderAudit> audit = auditFolder(*folder);
  if (!audit)
    return fail(arguments, audit.error());
  bool isPinBroken = pinned && *pinned != audit->manifestSha256;
  std::map<FileState, size_t> counts;
  uint64_t bytes = 0;
  size_t kernels = 0;
  std::vector<std::vector<std::string>> rows = {{"file", "state", "what"}};
  JsonWriter json;
  json.beginObject().field("folder", *folder);
  if (!audit->manifestSha256.empty())
    json.field("manifestSha256", audit->manifestSha256);
  if (pinned)
    json.field("pinned", *pinned);
  json.key("files").beginArray();
  for (const AuditedFile &file : audit->files) {
    ++counts[file.state];
    bytes += file.bytes;
    kernels += file.kind == FileKind::Kernel && file.state != FileState::Missing;
    writeFile(json, file);
    if (file.state != FileState::Sound || !file.finding.empty())
      rows.push_back({shortName(file.name), fileStateName(file.state), file.finding});
  }
  bool isSound = audit->damaged() == 0 && !isPinBroken;
  json.endArray().field("kernels", kernels).field("bytes", bytes);
  json.field("damaged", audit->damaged()).field("sound", isSound).endObject();
  ExitCode exit = isSound ? exitOk : exitWrong;
  if (arguments.has("--json")) {
    int printed = print(json.text());
    return printed == exitOk ? exit : printed;
  }
  std::string text = rows.size() > 1 ? table(rows) + "\n" : "";
  std::string summary;
  for (const auto &[state, count] : counts)
    summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count, fileStateName(state));
  text += fmt::format("{} files, {} kernels, {}, in {}\n{}\n", audit->files.size(), kernels,
                      bytesText(bytes), *folder, summary.empty() ? "nothing" : summary);
  if (!audit->manifestSha256.empty())
    text += fmt::format("manifest SHA-256 {}{}\n", audit->manifestSha256,
                        isPinBroken ? fmt::format(": pinned is {}", *pinned)
                        : pinned    ? ", as pinned"
                                    : "");
  else if (isPinBroken)
    text += "there is no manifest.json, and one is pinned\n";
  if (!isSound)
    text += !audit->manifestSha256.empty() || pinned
                ? "not as it was made: copy the bundle again, or build it again (moejit aot)\n"
                : "damaged files count as absent; moejit cache gc removes them\n";
  int printed = print(text);
  return printed == exitOk ? exit : printed;
}

int clearCache(const Arguments &arguments) {
  Result<ClearRequest> request = clearRequest(arguments);
  if (!request)
    return fail(arguments, request.error());
  Result<std::string> folder = cacheFolder(arguments);
  if (!folder)
    return fail(arguments, folder.error());
  Result<Cleared> cleared = clearFolder(*folder, *request);
  if (!cleared)
    return fail(arguments, cleared.error());
  if (Result<void> done = clearIndexes(*folder, request->isDryRun, *cleared); !done)
    return fail(arguments, done.error());
  // Whatever else there was is gone by then.
  bool isAbove = request->maxBytes && cleared->keptBytes > *request->maxBytes;
  if (arguments.has("--json")) {
    JsonWriter json;
    json.beginObject().field("folder", *folder).field("dryRun", request->isDryRun);
    json.key("removed").beginArray();
    for (const AuditedFile &file : cleared->removed)
      writeFile(json, file);
    json.endArray().field("removedBytes", cleared->removedBytes);
    json.field("keptKernels", cleared->keptKernels).field("keptBytes", cleared->keptBytes);
    json.field("pinned", cleared->pinned).field("aboveMaxSize", isAbove).endObject();
    return print(json.text());
  }
  std::vector<std::vector<std::string>> rows = {{"file", "size", "last used", "why"}};
  for (const AuditedFile &file : cleared->removed)
    rows.push_back({shortName(file.name), bytesText(file.bytes),
                    file.usedNs ? timeText(file.usedNs) : "-", file.finding});
  std::string text = rows.size() > 1 ? table(rows) + "\n" : "";
  text += fmt::format("{} files, {}, {}; {} kernels, {}, stay in {}\n", cleared->removed.size(),
                      bytesText(cleared->removedBytes),
                      request->isDryRun ? "would be removed" : "removed", cleared->keptKernels,
                      bytesText(cleared->keptBytes), *folder);
  if (cleared->pinned)
    text += fmt::format("{} more, damaged or not used for so long, stay: the bundle's manifest "
                        "lists them or cannot be read\n",
                        cleared->pinned);
  if (isAbove)
    text += "more than --max-size stay: of a bundle nothing goes that its manifest lists, or may "
            "list where it cannot be read\n";
  return print(text);
}

int mergeCaches(const Arguments &arguments) {
  std::vector<std::string> folders(arguments.words.begin() + 1, arguments.words.end());
  std::optional<std::string> output = arguments.value("-o");
  if (!output || output->empty())
    return fail(arguments, usage("merge needs -o DIR, the folder to make or add to"));
  // Everything is read and compared before anything is written; what the output holds, too.
  std::map<std::string, std::vector<Source>> byLookup;
  std::vector<Artifact> artifacts;
  std::map<std::string, size_t> byName;
  std::vector<std::string> read = folders;
  std::error_code code;
  bool isAdded = std::find(folders.begin(), folders.end(), *output) == folders.end() &&
                 std::filesystem::exists(*output, code);
  if (isAdded)
    read.push_back(*output);
  for (size_t i = 0; i < read.size(); ++i) {
    const std::string &folder = read[i];
    bool isOutput = isAdded && i + 1 == read.size();
    if (Result<void> sound = isOutput ? Result<void>() : requireSound(folder); !sound)
      return fail(arguments, sound.error());
    CacheOptions options;
    options.folder = folder;
    options.mode = CacheMode::ReadOnly;
    Result<std::shared_ptr<Cache>> cache = Cache::open(options);
    if (!cache || (*cache)->diskProblem())
      return fail(arguments, cache ? *(*cache)->diskProblem() : cache.error());
    std::vector<CacheEntry> entries = (*cache)->list();
    // Last of all, so that what the others have is known.
    if (isOutput)
      if (Result<void> kept = requireNothingLost(folder, **cache, entries, byName); !kept)
        return fail(arguments, kept.error());
    for (const CacheEntry &entry : entries) {
      if (entry.damage && isOutput)
        continue; // counts as absent there, and is no part of what is made
      if (entry.damage) {
        Error error = *entry.damage;
        error.notes.push_back(
            fmt::format("moejit cache verify --cache {} says more; nothing was merged", folder));
        return fail(arguments, error);
      }
      Result<Artifact> artifact = (*cache)->read(entry.name);
      if (!artifact)
        return fail(arguments, artifact.error());
      for (const IndexedRange &range : entry.ranges)
        for (Source &other : byLookup[artifact->lookupKey])
          if (other.name != entry.name && other.range.minRows <= range.maxRows &&
              range.minRows <= other.range.maxRows)
            return fail(
                arguments,
                usage(fmt::format("{} of {} and {} of {} serve the same rows of one spec",
                                  entry.name, folder, other.name, other.folder),
                      {fmt::format("moejit cache diff {0}/{1}.kernel {2}/{3}.kernel says in what "
                                   "they differ; nothing was merged",
                                   folder, entry.name, other.folder, other.name)}));
      if (isOutput)
        continue;
      for (const IndexedRange &range : entry.ranges)
        byLookup[artifact->lookupKey].push_back({folder, entry.name, range});
      if (!entry.ranges.empty() && byName.emplace(entry.name, artifacts.size()).second)
        artifacts.push_back(std::move(*artifact));
    }
  }
  if (artifacts.empty())
    return fail(arguments, usage(fmt::format("no kernel that serves any rows lies in {}",
                                             fmt::join(folders, ", "))));
  CacheOptions options;
  options.folder = *output;
  options.sizeLimitBytes = 0;
  Result<std::shared_ptr<Cache>> merged = Cache::open(options);
  if (!merged || (*merged)->diskProblem())
    return fail(arguments, merged ? *(*merged)->diskProblem() : merged.error());
  for (const auto &[lookup, sources] : byLookup)
    for (const Source &source : sources)
      if (Result<void> put = (*merged)->put(artifacts[byName.at(source.name)], source.range.minRows,
                                            source.range.maxRows);
          !put)
        return fail(arguments, put.error());
  Result<std::string> digest = (*merged)->writeManifest();
  if (!digest)
    return fail(arguments, digest.error());
  if (arguments.has("--json")) {
    JsonWriter json;
    json.beginObject().field("folder", *output).field("kernels", artifacts.size());
    return print(json.field("manifestSha256", *digest).endObject().text());
  }
  return print(fmt::format("{} kernels of {} folders in {}\nmanifest SHA-256 {}\n",
                           artifacts.size(), folders.size(), *output, *digest));
}

} // namespace moejit::tool

// moejit cache: what lies in a cache folder or a bundle.
#include "tools/moejit/CacheUpkeep.h"
#include "tools/moejit/Kernels.h"
#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace moejit::tool {
namespace {

std::string rangesText(const std::vector<IndexedRange> &ranges) {
  if (ranges.empty())
    return "superseded";
  std::vector<std::string> texts;
  for (const IndexedRange &range : ranges)
    texts.push_back(rowsText(range.minRows, range.maxRows));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// "grouped E256 N4096 K7168 bf16": enough to tell kernels apart in a list.
std::string shortSpec(const std::string &text) {
  Result<Spec> spec = parseSpec(text);
  if (!spec)
    return text;
  return fmt::format("{} E{} N{} K{} {} x {} -> {}", dispatchName(spec->dispatch), spec->numExperts,
                     spec->n, spec->k, spec->xScales.granuleText(), spec->wScales.granuleText(),
                     elementTypeName(spec->outType));
}

/// The fields of `entry`, inside an object.
void writeFields(JsonWriter &json, const CacheEntry &entry) {
  json.field("key", entry.name).field("bytes", entry.bytes);
  json.field("usedNs", entry.usedNs);
  if (entry.damage) {
    json.field("damage", entry.damage->message);
    return;
  }
  json.field("spec", entry.spec).field("arch", entry.arch).field("planText", entry.planText);
  json.field("nvrtcVersion", entry.nvrtcVersion).field("minDriver", entry.minDriver);
  json.key("ranges").beginArray();
  for (const IndexedRange &range : entry.ranges) {
    json.beginObject().field("minRows", range.minRows);
    if (range.maxRows == INT64_MAX)
      json.key("maxRows").null();
    else
      json.field("maxRows", range.maxRows);
    json.endObject();
  }
  json.endArray();
}

int list(const Arguments &arguments, Cache &cache) {
  std::vector<CacheEntry> entries = cache.list();
  std::vector<std::vector<std::string>> rows = {
      {"key", "size", "last used", "arch", "rows", "kernel"}};
  JsonWriter json;
  json.beginObject().field("folder", cache.folder()).key("entries").beginArray();
  uint64_t bytes = 0;
  for (const CacheEntry &entry : entries) {
    bytes += entry.bytes;
    json.beginObject();
    writeFields(json, entry);
    json.endObject();
    std::string key = entry.name.substr(0, 12);
    if (entry.damage)
      rows.push_back({key, bytesText(entry.bytes), timeText(entry.usedNs), "-", "-",
                      "damaged: " + entry.damage->message});
    else
      rows.push_back({key, bytesText(entry.bytes), timeText(entry.usedNs), entry.arch,
                      rangesText(entry.ranges), shortSpec(entry.spec)});
  }
  json.endArray().field("bytes", bytes).endObject();
  if (arguments.has("--json"))
    return print(json.text());
  std::string text = entries.empty() ? "" : table(rows) + "\n";
  return print(text + fmt::format("{} kernel{}, {}, in {}\n", entries.size(),
                                  entries.size() == 1 ? "" : "s", bytesText(bytes),
                                  cache.folder()));
}

int info(const Arguments &arguments, Cache &cache, const std::string &key) {
  Result<CacheEntry> entry = cache.info(key);
  if (!entry)
    return fail(arguments, entry.error());
  if (entry->damage) {
    Error error = *entry->damage;
    error.code = ErrorCode::ParseError;
    error.notes.push_back("a damaged entry counts as absent: the next compile replaces it");
    return fail(arguments, error);
  }
  Result<Artifact> artifact = cache.read(entry->name);
  if (!artifact)
    return fail(arguments, artifact.error());
  if (arguments.has("--json")) {
    JsonWriter json;
    json.beginObject();
    writeFields(json, *entry);
    json.field("registers", artifact->resources.registers);
    json.field("spillStoreBytes", artifact->resources.spillStoreBytes);
    json.field("spillLoadBytes", artifact->resources.spillLoadBytes);
    json.field("sharedBytes", artifact->launch.sharedBytes + artifact->resources.staticSharedBytes);
    json.field("threads", artifact->launch.threads);
    json.field("workspaceBytes", workspaceBytes(artifact->launch, 0));
    json.field("workspaceBytesPerRow", workspaceBytesPerRow(artifact->launch));
    json.field("cubinBytes", artifact->cubin.size()).field("ptxBytes", artifact->ptx.size());
    json.field("lookupKey", artifact->lookupKey).field("buildKey", artifact->buildKey);
    return print(json.endObject().text());
  }
  std::string text;
  auto line = [&](const char *left, const std::string &right) {
    text += fmt::format("{:<14} {}\n", left, right);
  };
  line("key", entry->name);
  line("kernel", shortSpec(entry->spec));
  line("spec", entry->spec);
  line("arch", entry->arch);
  line("rows", rangesText(entry->ranges));
  line("plan", entry->planText);
  line("last used", timeText(entry->usedNs));
  line("size", bytesText(entry->bytes));
  line("made by", fmt::format("NVRTC {}; needs a driver of CUDA {} or later", entry->nvrtcVersion,
                              cudaVersionText(int(entry->minDriver))));
  return print(text + resourcesText(*artifact));
}

int run(const Arguments &arguments) {
  std::string what = arguments.words.empty() ? "" : arguments.words[0];
  size_t words = arguments.words.size();
  if (what == "verify" && words == 1)
    return verifyCache(arguments);
  if (what == "gc" && words == 1)
    return clearCache(arguments);
  if (what == "diff")
    return diffKernels(arguments);
  if (what == "merge")
    return mergeCaches(arguments);
  bool isInfo = what == "info";
  if ((what != "ls" && !isInfo) || words != (isInfo ? 2 : 1) ||
      (isInfo && arguments.words[1].empty()))
    return fail(arguments,
                Error{ErrorCode::InvalidArgument,
                      "expected: moejit cache ls, info KEY, verify, gc, diff A B, or merge DIR...",
                      {"a KEY may be cut short, as long as one kernel alone starts with it"}});
  CacheOptions options;
  options.mode = CacheMode::ReadOnly;
  options.folder = arguments.value("--cache");
  Result<std::shared_ptr<Cache>> cache = Cache::open(options);
  if (!cache)
    return fail(arguments, cache.error());
  if ((*cache)->diskProblem())
    return fail(arguments, *(*cache)->diskProblem());
  return isInfo ? info(arguments, **cache, arguments.words[1]) : list(arguments, **cache);
}

} // namespace

/// "2026-01-31 12:00" of the local clock.
std::string timeText(int64_t ns) {
  std::time_t seconds = std::time_t(ns / 1'000'000'000);
  std::tm parts = {};
  char text[32] = "?";
  if (localtime_r(&seconds, &parts))
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

const Command cacheCommand = {
    "cache",
    "Look at the kernels in a cache folder or a bundle, check them, clear them away",
    "ls | info KEY | verify | gc | diff A B | merge DIR... -o DIR [options]",
    "ls prints a line for each kernel; info all that is known of one, its keys included with "
    "--json. A kernel whose rows are 'superseded' was replaced by one of a newer moejit or "
    "NVRTC.\n"
    "verify reads every file and says what is damaged, left over or, of a bundle, not what its "
    "manifest says. It changes nothing.\n"
    "gc removes what no one can use (damaged files, what dead processes left), and what "
    "--superseded, --older-than and --max-size name. Of a bundle it removes nothing that the "
    "manifest lists.\n"
    "diff says in which fields of their keys two kernels differ, and so why one was built though "
    "the other was there. merge joins folders, such as those of moejit aot --shard, into one "
    "bundle.",
    "  moejit cache ls\n"
    "  moejit cache info 3fa9\n"
    "  moejit cache verify --cache kernels.bundle --bundle-sha256 1f2e...\n"
    "  moejit cache gc --superseded --older-than 30d --max-size 2G --dry-run\n"
    "  moejit cache diff 3fa9 77c0\n"
    "  moejit cache merge first second -o kernels.bundle",
    "  0  printed, removed or merged; verify: all is sound\n"
    "  1  verify: something is damaged or missing, or the manifest is not the pinned one\n"
    "  2  no such folder or key, the entry is damaged, or folders disagree",
    {{"--cache", "DIR", "the folder", "$XDG_CACHE_HOME/moejit or ~/.cache/moejit"},
     {"--bundle-sha256", "DIGEST", "verify: what the SHA-256 of the manifest has to be"},
     {"--dry-run", nullptr, "gc: only say what would be removed"},
     {"--superseded", nullptr, "gc: also kernels that no row range names any more"},
     {"--older-than", "TIME", "gc: also kernels not used for so long, such as 12h, 30d or 8w"},
     {"--max-size", "SIZE",
      "gc: also the least recently used, until so much is left, such as 500M or 2G"},
     {"-o", "DIR", "merge: the folder to make or add to"},
     {"--json", nullptr, "print one JSON object on stdout"},
     {"--help", nullptr, "print this"}},
    run,
};

} // namespace moejit::tool

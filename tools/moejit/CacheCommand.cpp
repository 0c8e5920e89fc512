// moejit cache: what lies in a cache folder or a bundle.
#include "tools/moejit/CacheUpkeep.h"
#include "tools/moejit/Kernels.h"
#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
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

/// The folder of --cache, to look at.
Result<std::shared_ptr<Cache>> openFolder(const Arguments &arguments) {
  Result<std::string> folder = cacheFolder(arguments);
  if (!folder)
    return folder.error();
  CacheOptions options;
  options.mode = CacheMode::ReadOnly;
  options.folder = *folder;
  Result<std::shared_ptr<Cache>> cache = Cache::open(std::move(options));
  if (cache && (*cache)->diskProblem())
    return *(*cache)->diskProblem();
  return cache;
}

int list(const Arguments &arguments) {
  Result<std::shared_ptr<Cache>> opened = openFolder(arguments);
  if (!opened)
    return fail(arguments, opened.error());
  Cache &cache = **opened;
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

int info(const Arguments &arguments) {
  Result<std::shared_ptr<Cache>> opened = openFolder(arguments);
  if (!opened)
    return fail(arguments, opened.error());
  Cache &cache = **opened;
  Result<CacheEntry> entry = cache.info(arguments.words[1]);
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
    text += fmt::format("{:<14} {}\n", left, printable(right, false));
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

/// What follows `moejit cache`.
struct Part {
  const char *name;
  const char *usage;
  size_t leastWords, mostWords;     ///< behind the name
  std::vector<std::string> options; ///< besides --json and --help
  int (*run)(const Arguments &arguments);
};

const std::vector<Part> &allParts() {
  static const std::vector<Part> parts = {
      {"ls", "ls", 0, 0, {"--cache"}, list},
      {"info", "info KEY", 1, 1, {"--cache"}, info},
      {"verify", "verify", 0, 0, {"--cache", "--bundle-sha256"}, verifyCache},
      {"gc",
       "gc",
       0,
       0,
       {"--cache", "--dry-run", "--superseded", "--older-than", "--max-size"},
       clearCache},
      {"diff", "diff A B", 2, 2, {"--cache"}, diffKernels},
      {"merge", "merge DIR... -o DIR", 1, SIZE_MAX, {"-o"}, mergeCaches}};
  return parts;
}

int run(const Arguments &arguments) {
  std::vector<std::string> usages;
  const Part *part = nullptr;
  for (const Part &each : allParts()) {
    usages.push_back(each.usage);
    if (!arguments.words.empty() && arguments.words[0] == each.name)
      part = &each;
  }
  if (!part)
    return fail(arguments, Error{ErrorCode::InvalidArgument,
                                 fmt::format("expected: moejit cache {}", fmt::join(usages, ", ")),
                                 {}});
  size_t words = arguments.words.size() - 1;
  bool isNamed = std::none_of(arguments.words.begin(), arguments.words.end(),
                              [](const std::string &word) { return word.empty(); });
  if (words < part->leastWords || words > part->mostWords || !isNamed)
    return fail(arguments,
                Error{ErrorCode::InvalidArgument,
                      fmt::format("expected: moejit cache {}", part->usage),
                      {"a KEY may be cut short, as long as one kernel alone starts with it"}});
  // Left out of account, --dry-run would let merge write.
  for (const Option &option : cacheCommand.options) {
    std::string name = option.name;
    bool isTaken = name == "--json" || std::find(part->options.begin(), part->options.end(),
                                                 name) != part->options.end();
    if (arguments.has(name) && !isTaken)
      return fail(arguments, Error{ErrorCode::InvalidArgument,
                                   fmt::format("moejit cache {} takes no {}", part->name, name),
                                   {fmt::format("{}: {}", name, option.help)}});
  }
  return part->run(arguments);
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
    "--superseded, --older-than and --max-size name, with the indexes of those. Of a bundle it "
    "removes nothing that the manifest lists, and says so.\n"
    "diff says in which fields of their keys two kernels differ, and so why one was built though "
    "the other was there. merge joins folders, such as those of moejit aot --shard, into one "
    "bundle; it refuses a folder of which anything is damaged or missing.",
    "  moejit cache ls\n"
    "  moejit cache info 3fa9\n"
    "  moejit cache verify --cache kernels.bundle --bundle-sha256 1f2e...\n"
    "  moejit cache gc --superseded --older-than 30d --max-size 2G --dry-run\n"
    "  moejit cache diff 3fa9 77c0\n"
    "  moejit cache merge first second -o kernels.bundle",
    "  0  printed, removed or merged; verify: all is sound\n"
    "  1  verify: something is damaged or missing, or the manifest is not the pinned one\n"
    "  2  no such folder or key, the entry or a folder to merge is damaged, or folders disagree",
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

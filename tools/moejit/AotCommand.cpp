// moejit aot: the Jit's own compile and put, for all kernels of descriptions and checkpoints on
// many architectures, into a folder.
#include "runtime/Keys.h"
#include "tools/moejit/Kernels.h"
#include "tools/moejit/Parallel.h"
#include "tools/moejit/Report.h"
#include "tools/moejit/TunedFiles.h"
#include "tools/moejit/Wanted.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <set>

namespace moejit::tool {
namespace {

/// One row range of a spec, to be served by a kernel.
struct Task {
  std::string name; ///< of the launch
  Spec spec;
  Kernels *kernels;
  int64_t rows; ///< the first of the range
  Result<Got> got = Error{};
};

/// Tasks of one kernel: ranges of one spec that have the same plan.
using Unit = std::vector<Task>;

/// An architecture: its kernels, and what they are wanted for.
struct Place {
  std::unique_ptr<Kernels> kernels;
  WantedLaunches wanted;
};

/// Part `index` of `count` parts.
struct Shard {
  int64_t index = 0, count = 1;
};

/// `I/N`, the first of which is 0/N.
Result<Shard> readShard(const Arguments &arguments) {
  std::optional<std::string> text = arguments.value("--shard");
  Shard shard;
  if (!text)
    return shard;
  const char *end = text->data() + text->size();
  auto [slash, code] = std::from_chars(text->data(), end, shard.index);
  bool isRead = code == std::errc() && slash != end && *slash == '/';
  if (isRead) {
    auto [rest, last] = std::from_chars(slash + 1, end, shard.count);
    isRead = last == std::errc() && rest == end;
  }
  if (!isRead || shard.count < 1 || shard.index < 0 || shard.index >= shard.count)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("--shard takes I/N with I from 0 to N - 1, got '{}'", *text),
                 {"--shard 0/2 and --shard 1/2 build the halves of a bundle"}};
  return shard;
}

std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin)
      parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The units of all places, in the order of the command line.
Result<std::vector<Unit>> planUnits(const Arguments &arguments, const std::vector<Place> &places) {
  Result<std::optional<int64_t>> rows = arguments.integer("--rows", 0, INT64_MAX);
  if (!rows)
    return rows.error();
  std::vector<Unit> units;
  for (const Place &place : places)
    for (const WantedLaunch &launch : place.wanted.launches) {
      std::map<std::string, size_t> byPlan;
      for (const PlannedRange &range :
           planRanges(launch.spec, place.kernels->target(), place.kernels->plan())) {
        bool isWanted = *rows ? range.minRows <= **rows && **rows <= range.maxRows
                              : range.minRows <= launch.maxRows && range.maxRows >= launch.minRows;
        if (!isWanted)
          continue;
        auto [found, isNew] = byPlan.emplace(planText(range.plan), units.size());
        if (isNew)
          units.emplace_back();
        units[found->second].push_back(
            {launch.name, launch.spec, place.kernels.get(), range.minRows});
      }
    }
  return units;
}

/// Units of this shard alone: every `count`-th.
std::vector<Unit> unitsOf(std::vector<Unit> units, const Shard &shard) {
  std::vector<Unit> own;
  for (size_t i = 0; i < units.size(); ++i)
    if (int64_t(i) % shard.count == shard.index)
      own.push_back(std::move(units[i]));
  return own;
}

/// What is printed at the end.
struct Summary {
  size_t planned = 0; ///< units of all shards
  std::string digest; ///< of the manifest; empty without one
  Shard shard;
  bool isClosed = false; ///< every wanted row count was found
  double seconds = 0;
};

int report(const Arguments &arguments, const std::vector<Unit> &units,
           const std::vector<Place> &places, const Summary &summary) {
  std::vector<std::vector<std::string>> rows = {
      {"launch", "arch", "rows", "registers", "spills", "cubin", "kernel"}};
  Cache &cache = places[0].kernels->cache();
  JsonWriter json;
  json.beginObject().field("folder", cache.folder()).field("bundle", !summary.digest.empty());
  if (!summary.digest.empty())
    json.field("manifestSha256", summary.digest);
  json.field("shard", summary.shard.index).field("shards", summary.shard.count);
  json.field("closed", summary.isClosed).field("seconds", summary.seconds);
  json.key("refused").beginArray();
  for (const Place &place : places)
    for (const std::string &text : place.wanted.refused)
      json.string(text);
  json.endArray().key("kernels").beginArray();
  int64_t compiled = 0;
  uint64_t bytes = 0;
  uint32_t minDriver = 0;
  for (const Unit &unit : units) {
    const Artifact &made = unit[0].got->kernel->artifact();
    bytes += made.cubin.size();
    minDriver = std::max(minDriver, made.minDriver);
    for (const Task &task : unit) {
      const Artifact &artifact = task.got->kernel->artifact();
      compiled += task.got->isCompiled;
      json.beginObject().field("file", task.name).field("arch", artifact.arch);
      json.field("spec", canonicalText(task.spec));
      writeKernel(json, *task.got);
      json.endObject();
      rows.push_back({task.name, artifact.arch,
                      rowsText(task.got->range.minRows, task.got->range.maxRows),
                      fmt::format("{}", artifact.resources.registers),
                      fmt::format("{}", artifact.resources.spillStoreBytes +
                                            artifact.resources.spillLoadBytes),
                      bytesText(artifact.cubin.size()),
                      task.got->isCompiled ? fmt::format("compiled in {:.1f} s", task.got->seconds)
                                           : "was there"});
    }
  }
  json.endArray().field("compiled", compiled).field("minDriver", minDriver);
  json.field("cubinBytes", bytes).endObject();
  if (arguments.has("--json"))
    return print(json.text());
  if (units.empty())
    return print(
        fmt::format("shard {} of {} has nothing to do: only {} kernels are wanted in all; {} "
                    "stays as it was\n",
                    summary.shard.index, summary.shard.count, summary.planned, cache.folder()));
  std::string text = fmt::format(
      "{}\n{} kernels ({} compiled) in {}\ncubins {}, {:.1f} s; needs a driver for CUDA {} or "
      "later\n",
      table(rows), units.size(), compiled, cache.folder(), bytesText(bytes), summary.seconds,
      cudaVersionText(int(minDriver)));
  if (summary.shard.count > 1)
    text += fmt::format("shard {} of {}: build the others into this folder, or join their folders "
                        "with moejit cache merge\n",
                        summary.shard.index, summary.shard.count);
  if (summary.isClosed)
    text += "closed: every row count that was asked for has its kernel here\n";
  if (!summary.digest.empty())
    text += fmt::format("manifest SHA-256 {}\n", summary.digest);
  return print(text);
}

/// Opens the folder for each architecture of --arch and gathers what is wanted of it.
Result<std::vector<Place>> openPlaces(const Arguments &arguments) {
  std::vector<Place> places;
  std::optional<std::string> output = arguments.value("-o");
  std::set<std::string> named;
  for (const std::string &name : split(arguments.valueOr("--arch", "sm_90a"))) {
    if (!named.insert(name).second)
      continue;
    Result<Target> target = parseTarget(name);
    if (!target)
      return target.error();
    KernelsOptions options = kernelsOptions(arguments, *target);
    options.isQuiet = true;
    if (output) {
      options.cache.folder = *output;
      options.cache.sizeLimitBytes = 0; // a bundle is whole
      options.cache.isBundleMaker = true;
    }
    Place place;
    Result<WantedLaunches> wanted = wantedLaunches(arguments, *target);
    if (!wanted)
      return wanted.error();
    place.wanted = std::move(*wanted);
    Result<std::unique_ptr<Kernels>> opened = Kernels::open(std::move(options));
    if (!opened)
      return opened.error();
    if (!(*opened)->hasNvrtc())
      return (*opened)->nvrtcError();
    // Kernels that stay in memory would be lost.
    Cache &cache = (*opened)->cache();
    if (cache.diskProblem())
      return *cache.diskProblem();
    if (cache.folder().empty())
      return Error{ErrorCode::InvalidArgument, "kernels need a folder: name one with -o DIR", {}};
    place.kernels = std::move(*opened);
    places.push_back(std::move(place));
  }
  if (places.empty())
    return Error{ErrorCode::InvalidArgument, "--arch names no architecture", {}};
  return places;
}

/// Builds all units, `jobs` at a time. Errors: that of the first unit that failed, the others are
/// built; IoError where a folder did not take what was built.
Result<void> build(std::vector<Unit> &units, const std::vector<Place> &places, int64_t jobs) {
  Tally tally("kernels", units.size());
  forEachParallel(units.size(), jobs, [&](size_t i) {
    bool isMade = false;
    for (Task &task : units[i]) {
      task.got = task.kernels->get(task.spec, task.rows);
      isMade |= task.got && task.got->isCompiled;
    }
    tally.add(isMade);
  });
  size_t failed = 0;
  Result<void> first;
  for (const Unit &unit : units)
    for (const Task &task : unit)
      if (!task.got && failed++ == 0) {
        Error error = task.got.error();
        error.message = fmt::format("{}: {}", task.name, error.message);
        first = error;
      }
  for (const Place &place : places)
    if (std::optional<Error> refused = place.kernels->cache().storeProblem(); refused && first) {
      // They were built, and would be lost.
      first = *refused;
      first.error().notes.push_back("what was kept stays: with room for the rest the same command "
                                    "goes on from there");
    }
  if (failed > 1)
    first.error().notes.push_back(fmt::format("{} others failed too", failed - 1));
  return first;
}

/// Looks whether the manifest in `folder` has every row range that this run has a kernel for:
/// another process may have replaced what this one entered. Errors: IoError naming what is missing.
Result<void> checkListed(const std::vector<Unit> &units, const std::string &folder) {
  Result<std::unique_ptr<DiskCache>> disk = DiskCache::open(folder, CacheMode::ReadOnly, 0);
  if (!disk)
    return disk.error();
  Result<std::string> text = (*disk)->readFile(std::string(manifestName));
  if (!text)
    return text.error();
  Result<Manifest> manifest = parseManifest(*text);
  if (!manifest)
    return manifest.error();
  std::map<std::string, std::set<std::pair<int64_t, int64_t>>> listed;
  for (const ManifestKernel &kernel : manifest->kernels)
    listed[kernel.name].insert(kernel.rows.begin(), kernel.rows.end());
  Error missing{ErrorCode::IoError,
                fmt::format("{}: {} does not list all that this run built", folder, manifestName),
                {}};
  for (const Unit &unit : units)
    for (const Task &task : unit) {
      std::string name = keyName(task.got->kernel->artifact().buildKey);
      if (!listed[name].contains({task.got->range.minRows, task.got->range.maxRows}))
        missing.notes.push_back(
            fmt::format("{}, {} rows: kernel {:.12} is not listed for them", task.name,
                        rowsText(task.got->range.minRows, task.got->range.maxRows), name));
    }
  if (missing.notes.empty())
    return {};
  missing.notes.push_back(
      "another process changes this folder: when it has ended, the same command "
      "adds what is missing");
  return missing;
}

/// Opens what was made as those do who launch from it, and asks for every row count. Errors:
/// Internal naming what is missing.
Result<void> checkClosed(const std::vector<Place> &places, const std::string &digest) {
  std::vector<std::string> gaps;
  for (const Place &place : places) {
    CacheOptions options;
    options.folder = place.kernels->cache().folder();
    options.mode = CacheMode::Bundle;
    options.manifestSha256 = digest;
    Result<std::shared_ptr<Cache>> bundle = Cache::open(std::move(options));
    if (!bundle)
      return bundle.error();
    for (std::string &gap :
         gapsIn(*bundle, place.kernels->target(), place.kernels->plan(), place.wanted.launches))
      gaps.push_back(std::move(gap));
  }
  if (gaps.empty())
    return {};
  return Error{ErrorCode::Internal, "the bundle lacks kernels that were built", gaps};
}

int run(const Arguments &arguments) {
  auto begin = std::chrono::steady_clock::now();
  Summary summary;
  Result<std::optional<int64_t>> jobs = arguments.integer("--jobs", 1, 1024);
  if (!jobs)
    return fail(arguments, jobs.error());
  Result<Shard> shard = readShard(arguments);
  if (!shard)
    return fail(arguments, shard.error());
  summary.shard = *shard;
  Result<std::vector<Place>> places = openPlaces(arguments);
  if (!places)
    return fail(arguments, places.error());
  for (const Place &place : *places)
    for (const std::string &text : place.wanted.refused)
      note("left out: " + text);
  Result<std::vector<Unit>> planned = planUnits(arguments, *places);
  if (!planned)
    return fail(arguments, planned.error());
  summary.planned = planned->size();
  std::vector<Unit> units = unitsOf(std::move(*planned), *shard);
  if (Result<void> built = build(units, *places, jobs->value_or(0)); !built)
    return fail(arguments, built.error());
  if (arguments.has("-o") && !units.empty()) {
    Result<std::string> written = (*places)[0].kernels->cache().writeManifest();
    if (!written)
      return fail(arguments, written.error());
    summary.digest = *written;
    if (Result<void> listed = checkListed(units, (*places)[0].kernels->cache().folder()); !listed)
      return fail(arguments, listed.error());
    if (shard->count == 1 && !arguments.has("--rows")) {
      if (Result<void> closed = checkClosed(*places, *written); !closed)
        return fail(arguments, closed.error());
      summary.isClosed = true;
    }
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report(arguments, units, *places, summary);
}

} // namespace

const Command aotCommand = {
    "aot",
    "Build kernels ahead of time into a folder that is then used without compiling",
    "PATHS... -o DIR [options]",
    "A PATH is a kernel description, or a checkpoint: its config.json, its folder, or a folder of "
    "either. Builds every kernel that these need on every architecture, for any number of tokens "
    "(or those of --tokens), as a running program would, and writes a manifest: DIR is then a "
    "bundle, which moejit run --bundle DIR and the runtime use without a compiler "
    "(CacheMode::Bundle). Then it opens DIR as they do and asks for every row count.\n"
    "Of a checkpoint come the GEMMs of its FP8 experts on one rank, in every form that is legal, "
    "and the quantizations of their activations. Forms that a rule refuses are named on stderr.\n"
    "Kernels that are in DIR already are not built again: a run that was interrupted goes on where "
    "it was, and runs of --shard may fill one DIR. The digest that is printed pins the bundle "
    "(--bundle-sha256). No GPU is needed. Without -o the kernels go to the cache folder, so that "
    "nothing compiles later.",
    "  moejit aot kernels/deepseek-v3.*.mlir -o deepseek.bundle\n"
    "  moejit aot DeepSeek-V3/config.json --tp 8 --tokens 1:8192 -o deepseek.bundle\n"
    "  moejit aot DeepSeek-V3/config.json --tp 8 --shard 0/2 -o first     # 1/2 elsewhere\n"
    "  moejit run my.mlir --tokens 64 --bundle my.bundle --check",
    "  0  every kernel is in the folder\n"
    "  1  a rule refuses a kernel, or every form of a checkpoint's GEMM\n"
    "  2  a PATH or the folder cannot be used, nothing is FP8, or the command line is wrong\n"
    "  3  there is no NVRTC on this machine\n"
    "  4  a pass or NVRTC failed",
    withCommonOptions(withExtentOptions(withCheckpointOptions({
        {"-o", "DIR", "the folder to make or add to", "the cache folder, without a manifest"},
        {"--arch", "LIST", "architectures, with commas between them", "sm_90a"},
        {"--rows", "N", "only the kernels for N rows"},
        checkedOption(),
        tunedOption(),
        {"--jobs", "N", "kernels to build at the same time", "one a CPU"},
        {"--shard", "I/N", "only every N-th kernel, beginning with the I-th, from 0"},
    }))),
    run,
};

} // namespace moejit::tool

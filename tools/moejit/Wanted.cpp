// From words on a command line to launches and their row counts.
#include "tools/moejit/Wanted.h"

#include "runtime/Rules.h"
#include "tools/checkpoint/Checkpoint.h"
#include "tools/moejit/Input.h"
#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <initializer_list>
#include <map>

namespace moejit::tool {
namespace {

namespace fs = std::filesystem;

struct TokenRange {
  int64_t least = 1, most = 0;
  bool isGiven = false;
};

/// `N` or `N:M`.
Result<TokenRange> readTokens(const Arguments &arguments) {
  std::optional<std::string> text = arguments.value("--tokens");
  if (!text)
    return TokenRange{};
  TokenRange range;
  range.isGiven = true;
  constexpr int64_t limit = int64_t(1) << 31;
  const char *at = text->data(), *end = at + text->size();
  auto [rest, code] = std::from_chars(at, end, range.least);
  bool isRange = code == std::errc() && rest != end && *rest == ':';
  if (code == std::errc() && rest == end) {
    range.most = range.least;
    range.least = 1;
  } else if (isRange) {
    auto last = std::from_chars(rest + 1, end, range.most);
    code = last.ec;
    rest = last.ptr;
  }
  if (code != std::errc() || rest != end || range.least < 0 || range.most < range.least ||
      range.most > limit)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("--tokens takes FIRST:LAST, or LAST for 1:LAST, up to {}, got '{}'",
                             limit, *text),
                 {}};
  return range;
}

/// The members of `known` that `option` names, all without it.
Result<std::vector<std::string>> readChoices(const Arguments &arguments, const char *option,
                                             const std::vector<std::string> &known) {
  std::string text = arguments.valueOr(option, "all");
  if (text == "all")
    return known;
  std::vector<std::string> chosen;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    if (std::find(known.begin(), known.end(), word) == known.end())
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("{} takes some of {} with commas between them, got '{}'", option,
                               fmt::join(known, ", "), word),
                   {}};
    chosen.push_back(word);
    begin = end + 1;
  }
  return chosen;
}

bool contains(const std::vector<std::string> &words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Gathers launches; a spec that comes again widens the rows of the first.
class Gatherer {
public:
  Gatherer(const Arguments &arguments, const Target &target)
      : arguments(arguments), target(target) {}

  Result<void> readOptions() {
    Result<TokenRange> range = readTokens(arguments);
    if (!range)
      return range.error();
    tokens = *range;
    Result<std::vector<std::string>> forms =
        readChoices(arguments, "--dispatch", {"eager", "batched", "grouped", "masked"});
    if (!forms)
      return forms.error();
    dispatches = *forms;
    Result<std::vector<std::string>> kinds =
        readChoices(arguments, "--input", {"fp8", "bf16", "quantize"});
    if (!kinds)
      return kinds.error();
    inputs = *kinds;
    constexpr int64_t mostRanks = 65536;
    for (auto [option, number, most] :
         {std::tuple("--tp", &split.tp, mostRanks), std::tuple("--ep", &split.ep, mostRanks),
          std::tuple("--masked-rows", &maskedRows, int64_t(1) << 24)}) {
      Result<std::optional<int64_t>> given = arguments.integer(option, 1, most);
      if (!given)
        return given.error();
      if (*given)
        *number = **given;
    }
    if (maskedRows == 0 && arguments.has("--dispatch") && contains(dispatches, "masked"))
      return Error{ErrorCode::InvalidArgument,
                   "--dispatch masked needs --masked-rows M",
                   {"M is the row count of each expert's buffer, which is part of the kernel"}};
    return {};
  }

  Result<void> addDescription(const std::string &file) {
    Result<Spec> spec = loadSpec(arguments, file);
    if (!spec)
      return spec.error();
    std::string name = file.empty() ? "the given spec" : file;
    if (Result<void> legal = requireLegal(*spec, target); !legal) {
      Error error = legal.error();
      error.message = fmt::format("{}: {}", name, error.message);
      return error;
    }
    add(name, *spec, tokens.isGiven ? tokens.least : 0, tokens.isGiven ? tokens.most : INT64_MAX);
    return {};
  }

  Result<void> addCheckpoints(const std::string &path) {
    Result<std::vector<checkpoint::Checkpoint>> found = checkpoint::readCheckpoints(path);
    if (!found)
      return found.error();
    for (const checkpoint::Checkpoint &each : *found) {
      if (!each.needsFp8()) {
        withoutFp8.push_back(fmt::format("{}: no FP8 experts{}{}", each.path,
                                         each.routed.why.empty() ? "" : ": ", each.routed.why));
        continue;
      }
      if (Result<void> added = addCheckpoint(each); !added)
        return added;
    }
    return {};
  }

  Result<WantedLaunches> finish() {
    for (const std::string &text : withoutFp8)
      if (!wanted.launches.empty())
        note(text);
    if (wanted.launches.empty())
      return Error{ErrorCode::InvalidArgument, "there is nothing to build", withoutFp8};
    return std::move(wanted);
  }

private:
  Result<void> addCheckpoint(const checkpoint::Checkpoint &each) {
    Result<std::vector<checkpoint::ExpertGemm>> gemms =
        checkpoint::expertGemms(each, split, {target, maskedRows});
    if (!gemms) {
      Error error = gemms.error();
      error.message = fmt::format("{}: {}", each.path, error.message);
      return error;
    }
    for (const checkpoint::ExpertGemm &gemm : *gemms) {
      std::string place = fmt::format("{}: {}", each.path, gemm.projection);
      size_t before = wanted.launches.size();
      std::vector<std::string> refusals;
      bool isWanted = false;
      for (const checkpoint::ExpertLaunch &launch : gemm.launches)
        isWanted |= addLaunch(each, gemm, launch, place, refusals);
      // A GEMM that no form serves is a refusal; a form less is something to know.
      if (isWanted && wanted.launches.size() == before && !served(gemm))
        return Error{ErrorCode::RuleViolation, fmt::format("{}: no form is legal", place),
                     refusals};
      wanted.refused.insert(wanted.refused.end(), refusals.begin(), refusals.end());
    }
    return {};
  }

  /// Whether some launch of `gemm` is among the wanted, of an earlier GEMM of the same spec.
  bool served(const checkpoint::ExpertGemm &gemm) const {
    return std::any_of(gemm.launches.begin(), gemm.launches.end(), [&](const auto &launch) {
      return bySpec.contains(canonicalText(launch.spec));
    });
  }

  /// Whether the command line asks for `launch`; adds it where it is legal.
  bool addLaunch(const checkpoint::Checkpoint &each, const checkpoint::ExpertGemm &gemm,
                 const checkpoint::ExpertLaunch &launch, const std::string &place,
                 std::vector<std::string> &refusals) {
    bool isShared = gemm.projection.rfind("shared ", 0) == 0;
    // Every token visits the shared expert, whatever form the others take.
    if (!isShared && !contains(dispatches, dispatchName(launch.dispatch)))
      return false;
    bool isFp8 = launch.input == checkpoint::Input::Fp8;
    std::string ranks = int64_t(launch.ranks.size()) == split.tp
                            ? ""
                            : fmt::format(" of ranks {}", fmt::join(launch.ranks, ","));
    std::string name = fmt::format("{} {}{}{}", place, dispatchName(launch.dispatch),
                                   isFp8 ? "" : " from bf16", ranks);
    auto [least, most] = rowsOf(each, launch, isShared);
    if (isFp8 && launch.dispatch != Dispatch::Masked && contains(inputs, "quantize")) {
      Spec quantize =
          quantizeSpec(launch.spec.k, ElementType::BF16, launch.spec.xType, launch.spec.xScales);
      if (checkSpec(quantize, target).empty())
        add(fmt::format("{} quantization", place), quantize, least, most);
    }
    if (!contains(inputs, isFp8 ? "fp8" : "bf16"))
      return false;
    if (!launch.violations.empty()) {
      refusals.push_back(fmt::format("{}: {}", name, launch.violations.front().text()));
      return true;
    }
    int64_t limit = launch.dispatch == Dispatch::Batched ? batchedRowLimit : INT64_MAX;
    add(name, launch.spec, std::min(least, limit), std::min(most, limit));
    return true;
  }

  /// The row counts of `launch`, for the tokens of --tokens.
  std::pair<int64_t, int64_t> rowsOf(const checkpoint::Checkpoint &each,
                                     const checkpoint::ExpertLaunch &launch, bool isShared) const {
    // The plan of a masked launch is chosen by rows that someone expects, which may be any.
    bool isOpen = !tokens.isGiven || launch.dispatch == Dispatch::Masked;
    int64_t most = INT64_MAX, least = 0;
    if (!isOpen && (isShared || launch.dispatch == Dispatch::Eager)) {
      most = tokens.most;
      least = isShared ? tokens.least : std::min<int64_t>(1, tokens.least);
    } else if (!isOpen && each.topK > 0) {
      // A row is one (token, expert) pair. With expert parallelism any part of them comes here.
      most = tokens.most * each.topK;
      least = split.ep > 1 ? 0 : tokens.least * each.topK;
    }
    return {least, most};
  }

  void add(const std::string &name, const Spec &spec, int64_t least, int64_t most) {
    auto [found, isNew] = bySpec.emplace(canonicalText(spec), wanted.launches.size());
    if (isNew) {
      wanted.launches.push_back({name, spec, least, most});
      return;
    }
    WantedLaunch &known = wanted.launches[found->second];
    known.minRows = std::min(known.minRows, least);
    known.maxRows = std::max(known.maxRows, most);
  }

  const Arguments &arguments;
  const Target &target;
  TokenRange tokens;
  std::vector<std::string> dispatches, inputs, withoutFp8;
  checkpoint::Parallelism split;
  int64_t maskedRows = 0;
  WantedLaunches wanted;
  std::map<std::string, size_t> bySpec;
};

/// Whether `path` is a checkpoint, or a folder of them: no description.
bool isCheckpoint(const std::string &path) {
  std::error_code code;
  if (!fs::is_directory(path, code))
    return fs::path(path).extension() == ".json";
  for (fs::directory_iterator entry(path, code), end; !code && entry != end; entry.increment(code))
    if (entry->path().extension() == ".mlir")
      return false;
  return true;
}

/// Refuses options that have nothing to do with any PATH: who splits a description with --tp would
/// get the kernels of the whole.
Result<void> requireUse(const Arguments &arguments, size_t checkpoints, size_t descriptions) {
  auto refuse = [&](std::initializer_list<const char *> options, const char *owner) {
    for (const char *option : options)
      if (arguments.has(option))
        return Result<void>(Error{ErrorCode::InvalidArgument,
                                  fmt::format("{} is of a {}, and no PATH is one", option, owner),
                                  {}});
    return Result<void>();
  };
  if (checkpoints == 0)
    return refuse({"--tp", "--ep", "--dispatch", "--input", "--masked-rows"}, "checkpoint");
  if (descriptions == 0)
    return refuse({"--kernel", "--experts", "--n", "--k"}, "description");
  return {};
}

} // namespace

Result<WantedLaunches> wantedLaunches(const Arguments &arguments, const Target &target) {
  if (!arguments.words.empty() && arguments.has("--spec"))
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("--spec stands for a PATH, got {} too", arguments.words[0]),
                 {}};
  if (arguments.words.empty() && !arguments.has("--spec"))
    return Error{ErrorCode::InvalidArgument,
                 "no PATH given",
                 {"give one or more descriptions, or a checkpoint's config.json"}};
  Gatherer gatherer(arguments, target);
  if (Result<void> read = gatherer.readOptions(); !read)
    return read.error();
  if (arguments.has("--spec"))
    if (Result<void> added = gatherer.addDescription(""); !added)
      return added.error();
  size_t checkpoints =
      size_t(std::count_if(arguments.words.begin(), arguments.words.end(), isCheckpoint));
  size_t descriptions = arguments.words.size() - checkpoints + arguments.has("--spec");
  if (Result<void> fits = requireUse(arguments, checkpoints, descriptions); !fits)
    return fits.error();
  for (const std::string &word : arguments.words) {
    if (isCheckpoint(word)) {
      if (Result<void> added = gatherer.addCheckpoints(word); !added)
        return added.error();
      continue;
    }
    Result<std::vector<std::string>> files = kernelFiles({word});
    if (!files)
      return files.error();
    for (const std::string &file : *files)
      if (Result<void> added = gatherer.addDescription(file); !added)
        return added.error();
  }
  return gatherer.finish();
}

std::vector<Option> withCheckpointOptions(std::vector<Option> own) {
  std::vector<Option> options = {
      {"--tp", "N", "of a checkpoint: tensor-parallel ranks, which split every expert", "1"},
      {"--ep", "N", "of a checkpoint: expert-parallel ranks, which split the experts", "1"},
      {"--tokens", "FIRST:LAST",
       "kernels for so many tokens alone: rows of a description, tokens times experts a token of a "
       "checkpoint",
       "any number"},
      {"--dispatch", "LIST", "of a checkpoint: some of eager, batched, grouped, masked", "all"},
      {"--input", "LIST",
       "of a checkpoint: some of fp8 (GEMMs of quantized activations), quantize (launches that "
       "make those), bf16 (GEMMs that quantize themselves)",
       "all"},
      {"--masked-rows", "M", "of a checkpoint: rows of each expert's buffer in masked launches",
       "no masked launches"},
  };
  options.insert(options.begin(), own.begin(), own.end());
  return options;
}

std::vector<std::string> gapsIn(const std::shared_ptr<Cache> &cache, const Target &target,
                                const PlanRequest &plan, const std::vector<WantedLaunch> &wanted) {
  JitOptions options;
  options.cache = cache;
  options.target = target;
  options.plan = plan;
  Jit jit(std::move(options));
  std::vector<std::string> gaps;
  for (const WantedLaunch &launch : wanted) {
    JitHandle handle = jit.handle(launch.spec);
    std::vector<IndexedRange> ranges = cache->ranges(lookupKeyText(launch.spec, target, plan));
    for (int64_t rows = launch.minRows;;) {
      Result<std::shared_ptr<Kernel>> kernel = handle.kernel(rows);
      // Every row count of a range is served by the range's kernel, or none is.
      auto range = std::find_if(ranges.begin(), ranges.end(),
                                [&](const IndexedRange &each) { return each.maxRows >= rows; });
      bool isInside = range != ranges.end() && range->minRows <= rows;
      int64_t last = range == ranges.end() ? INT64_MAX
                     : isInside            ? range->maxRows
                                           : range->minRows - 1;
      last = std::min(last, launch.maxRows);
      if (!kernel)
        gaps.push_back(fmt::format("{}, {} rows: {}", launch.name, rowsText(rows, last),
                                   isInside ? kernel.error().message : "no kernel"));
      if (last >= launch.maxRows)
        break;
      rows = last + 1;
    }
  }
  return gaps;
}

} // namespace moejit::tool

// Asks the rules, for the split that is wanted and for those near it.
#include "tools/checkpoint/Check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace moejit::checkpoint {
namespace {

/// What is said of a projection that is not FP8: of no rule, unlike a dispatch that is not reached.
bool isOfOtherFormat(const Verdict &verdict) {
  return verdict.outcome == Outcome::NotApplicable && verdict.ruleId.empty();
}

/// How bad a verdict is.
int rank(const Verdict &verdict) {
  if (isOfOtherFormat(verdict))
    return -1;
  switch (verdict.outcome) {
  case Outcome::Runs:
    return 0;
  case Outcome::RunsElse:
    return 1;
  case Outcome::Unknown:
    return 2;
  case Outcome::Refused:
    return 3;
  case Outcome::NotApplicable:
    return 4;
  }
  return 4;
}

int archNumber(const Target &target) {
  int number = 90;
  std::string_view text = target.arch;
  if (text.starts_with("sm_"))
    std::from_chars(text.data() + 3, text.data() + text.size(), number);
  return number;
}

std::vector<Verdict> judgeAll(const Checkpoint &checkpoint, const EngineChoice &choice,
                              const std::string &dispatch, const Parallelism &split, int arch) {
  const Experts &experts = checkpoint.routed;
  int64_t part = experts.intermediate / split.tp;
  std::vector<Verdict> verdicts;
  for (bool isDown : {false, true}) {
    int64_t n = isDown ? experts.input : experts.isGated ? 2 * part : part;
    int64_t k = isDown ? part : experts.input;
    const Scheme &scheme = isDown ? experts.down : experts.up;
    if (!scheme.isFp8) {
      Verdict none;
      none.outcome = Outcome::NotApplicable;
      none.fact = "This projection is not FP8.";
      verdicts.push_back(std::move(none));
      continue;
    }
    EngineCase given = {checkpoint, experts, scheme, isDown, n, k, part, split, arch};
    verdicts.push_back(judge(*choice.engine, choice.version, dispatch, given));
  }
  return verdicts;
}

const Verdict &worst(const std::vector<Verdict> &verdicts) {
  return *std::max_element(verdicts.begin(), verdicts.end(),
                           [](const Verdict &a, const Verdict &b) { return rank(a) < rank(b); });
}

DispatchCheck checkDispatch(const Checkpoint &checkpoint, const EngineChoice &choice,
                            const std::string &dispatch, const CheckOptions &options) {
  int arch = archNumber(options.target);
  DispatchCheck result;
  result.choice = choice;
  result.dispatch = dispatch;
  result.verdicts = judgeAll(checkpoint, choice, dispatch, options.split, arch);
  result.overall = worst(result.verdicts);
  auto isFine = [&](const Parallelism &split) {
    return works(worst(judgeAll(checkpoint, choice, dispatch, split, arch)).outcome);
  };
  for (int64_t tp = 1; tp <= 64 && tp <= checkpoint.routed.intermediate; ++tp)
    if (checkpoint.routed.intermediate % tp == 0 && isFine({tp, options.split.ep}))
      result.workingTp.push_back(tp);
  int64_t ranks = options.split.tp * options.split.ep;
  result.worksWithEp = !works(result.overall.outcome) && options.split.tp > 1 &&
                       checkpoint.routed.count % ranks == 0 && isFine({1, ranks});
  return result;
}

MoejitCheck checkMoejit(const std::vector<ExpertGemm> &gemms, Dispatch dispatch, int64_t tp) {
  MoejitCheck result;
  result.dispatch = dispatch;
  result.isLegal = true;
  std::set<std::string> kernels;
  for (const ExpertGemm &gemm : gemms) {
    if (gemm.projection.starts_with("shared") || !gemm.scheme.isFp8)
      continue;
    std::set<int64_t> served;
    for (const ExpertLaunch &launch : gemm.launches) {
      if (launch.dispatch != dispatch)
        continue;
      if (launch.violations.empty()) {
        served.insert(launch.ranks.begin(), launch.ranks.end());
        if (launch.input == Input::Fp8)
          kernels.insert(canonicalText(launch.spec));
      } else if (result.violations.empty()) {
        result.violations = launch.violations;
      }
    }
    if (int64_t(served.size()) == tp)
      continue;
    result.isLegal = false;
    if (result.why.empty())
      result.why = gemm.why;
  }
  if (result.isLegal)
    result.violations.clear();
  result.kernels = int64_t(kernels.size());
  return result;
}

} // namespace

bool Check::hasWorking(const Engine &engine) const {
  return std::any_of(dispatches.begin(), dispatches.end(), [&](const DispatchCheck &each) {
    return each.choice.engine == &engine && works(each.overall.outcome);
  });
}

bool Check::hasWorking(const EngineChoice &choice) const {
  return std::any_of(dispatches.begin(), dispatches.end(), [&](const DispatchCheck &each) {
    return each.choice == choice && works(each.overall.outcome);
  });
}

Result<Check> check(const Checkpoint &checkpoint, const CheckOptions &options) {
  Check result;
  GemmOptions gemmOptions;
  gemmOptions.target = options.target;
  Result<TensorReport> tensors = checkTensorFiles(checkpoint);
  if (!tensors)
    return tensors.error();
  if (!tensors->source.empty())
    result.tensors = *tensors;
  Result<std::vector<ExpertGemm>> gemms = expertGemms(checkpoint, options.split, gemmOptions);
  if (!gemms) {
    result.splitProblem = gemms.error();
    return result;
  }
  result.gemms = std::move(*gemms);
  for (Dispatch dispatch : {Dispatch::Eager, Dispatch::Batched, Dispatch::Grouped})
    result.moejit.push_back(checkMoejit(result.gemms, dispatch, options.split.tp));
  for (const EngineChoice &choice : options.engines)
    for (const char *dispatch : choice.engine->dispatches)
      result.dispatches.push_back(checkDispatch(checkpoint, choice, dispatch, options));
  for (const ExpertGemm &gemm : result.gemms)
    if (!gemm.projection.starts_with("shared") && !gemm.scheme.isFp8)
      result.notes.push_back(fmt::format("{} of the experts is not FP8 ({}): verdicts are of the "
                                         "other projection alone, and whether an engine takes "
                                         "such experts was not read",
                                         gemm.projection, gemm.scheme.name));
  if (checkpoint.shared && Checkpoint::isFp8(*checkpoint.shared)) {
    const Experts &shared = *checkpoint.shared;
    int64_t part = shared.intermediate / options.split.tp;
    int64_t block = std::max(shared.up.blockN, shared.down.blockK);
    if (shared.up.weights == Strategy::Block && block > 0 && part % block != 0)
      result.notes.push_back(
          fmt::format("the shared experts are split too: {} / tp {} = {}, no multiple of block {}; "
                      "engines check their dense layers on their own",
                      shared.intermediate, options.split.tp, part, block));
  }
  return result;
}

Result<std::vector<EngineChoice>> parseEngines(const std::string &text) {
  std::vector<EngineChoice> choices;
  std::vector<std::string> names;
  auto add = [&](const EngineChoice &choice) {
    if (std::none_of(choices.begin(), choices.end(), [&](const EngineChoice &other) {
          return other.engine == choice.engine && other.versionText() == choice.versionText();
        }))
      choices.push_back(choice);
  };
  for (const Engine &engine : allEngines())
    names.push_back(engine.name);
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word == "all") {
      for (const Engine &engine : allEngines())
        add({&engine, ""});
      continue;
    }
    size_t at = word.find('@');
    const Engine *engine = findEngine(word.substr(0, at));
    bool hasVersion = at != std::string::npos;
    if (!engine || (hasVersion && at + 1 == word.size()))
      return Error{
          ErrorCode::InvalidArgument,
          fmt::format("no engine '{}'", word),
          {fmt::format("the engines: {}, each with @VERSION; or all", fmt::join(names, ", "))}};
    add({engine, hasVersion ? word.substr(at + 1) : ""});
  }
  return choices;
}

} // namespace moejit::checkpoint

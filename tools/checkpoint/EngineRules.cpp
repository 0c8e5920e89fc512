// Reads the table of engines' rules: verdicts, versions, the generated page.
#include "tools/checkpoint/EngineRules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace moejit::checkpoint {

const char *outcomeName(Outcome outcome) {
  constexpr std::array names = {"runs as configured", "runs as something else", "refused",
                                "not applicable", "unknown"};
  return names[size_t(outcome)];
}

const char *evidenceName(Evidence evidence) {
  constexpr std::array names = {"run", "read", "inferred", "unknown"};
  return names[size_t(evidence)];
}

const Engine *findEngine(std::string_view name) {
  auto found = std::find_if(allEngines().begin(), allEngines().end(),
                            [&](const Engine &engine) { return name == engine.name; });
  return found == allEngines().end() ? nullptr : &*found;
}

bool isRelease(std::string_view version) {
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  size_t plus = std::min(version.find('+'), version.size());
  std::string_view local = version.substr(plus);
  if (!local.empty() &&
      (local.size() == 1 || !std::all_of(local.begin() + 1, local.end(), [&](char c) {
         return isDigit(c) || isLetter(c) || c == '.';
       })))
    return false;
  bool hasNumber = false; // since the last dot
  for (char c : version.substr(0, plus)) {
    if (!isDigit(c) && !(c == '.' && hasNumber))
      return false;
    hasNumber = c != '.';
  }
  return hasNumber;
}

int compareVersions(std::string_view a, std::string_view b) {
  a = a.substr(0, a.find('+'));
  b = b.substr(0, b.find('+'));
  auto next = [](std::string_view &text) {
    int64_t number = 0;
    size_t end = std::min(text.find('.'), text.size());
    for (char c : text.substr(0, end)) {
      if (c < '0' || c > '9')
        break;
      number = std::min<int64_t>(number * 10 + (c - '0'), 1'000'000'000);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
    return number;
  };
  while (!a.empty() || !b.empty()) {
    int64_t left = next(a), right = next(b);
    if (left != right)
      return left < right ? -1 : 1;
  }
  return 0;
}

/// `rule` was executed in this version and on this architecture; what works, on one rank alone:
/// nothing was split.
static bool wasRun(const EngineRule &rule, std::string_view version, const EngineCase &given) {
  constexpr int arch = 90;
  bool isWhole = given.split.tp == 1 && given.split.ep == 1;
  return given.arch == arch && (isWhole || !works(rule.outcome)) &&
         std::any_of(rule.basis.ran.begin(), rule.basis.ran.end(),
                     [&](const char *ran) { return compareVersions(ran, version) == 0; });
}

/// The verdict at a version that was read.
static Verdict judgeAt(const Engine &engine, std::string_view version, std::string_view dispatch,
                       const EngineCase &given) {
  Verdict verdict;
  for (const EngineRule &rule : allEngineRules()) {
    bool isOfDispatch = rule.dispatches.empty() ||
                        std::find(rule.dispatches.begin(), rule.dispatches.end(), dispatch) !=
                            rule.dispatches.end();
    bool isOfVersion = (!*rule.since || compareVersions(version, rule.since) >= 0) &&
                       (!*rule.until || compareVersions(version, rule.until) < 0);
    if (engine.name != std::string_view(rule.engine) || !isOfDispatch || !isOfVersion)
      continue;
    std::optional<std::string> detail = rule.meets(given);
    if (!detail)
      continue;
    verdict.outcome = rule.outcome;
    verdict.evidence = rule.outcome == Outcome::Unknown ? Evidence::Unknown
                       : wasRun(rule, version, given)   ? Evidence::Run
                                                        : rule.basis.evidence;
    verdict.ruleId = rule.id;
    verdict.detail = *detail;
    verdict.fact = rule.fact;
    verdict.source = rule.source;
    verdict.remedy = rule.remedy;
    return verdict;
  }
  verdict.outcome = Outcome::Runs;
  verdict.evidence = Evidence::Read;
  verdict.source = fmt::format("{} {}: {}", engine.name, version, engine.source);
  return verdict;
}

Verdict judge(const Engine &engine, std::string_view version, std::string_view dispatch,
              const EngineCase &given) {
  if (version.empty())
    version = engine.newest();
  Verdict unknown;
  if (!isRelease(version)) {
    unknown.fact =
        fmt::format("{} {} is no version that was read ({}): those are releases, numbers "
                    "and dots.",
                    engine.name, version, fmt::join(engine.versions, ", "));
    return unknown;
  }
  const char *below = nullptr, *above = nullptr;
  for (const char *read : engine.versions) {
    int order = compareVersions(read, version);
    if (order <= 0)
      below = read;
    if (order >= 0 && !above)
      above = read;
  }
  if (!below || !above) {
    unknown.fact =
        fmt::format("{} {} is {} than what was read ({}).", engine.name, version,
                    below ? "newer" : "older", below ? engine.newest() : engine.versions.front());
    return unknown;
  }
  Verdict verdict = judgeAt(engine, below, dispatch, given);
  if (below == above)
    return verdict;
  Verdict later = judgeAt(engine, above, dispatch, given);
  if (later.outcome != verdict.outcome || later.ruleId != verdict.ruleId) {
    unknown.fact = fmt::format("{} {} was not read, and {} and {} differ here.", engine.name,
                               version, below, above);
    return unknown;
  }
  if (verdict.evidence != Evidence::Unknown)
    verdict.evidence = Evidence::Inferred;
  return verdict;
}

/// "run in 5.17.0 and 5.24.0, read".
static std::string basisText(const Basis &basis) {
  const char *evidence = evidenceName(basis.evidence);
  if (basis.ran.empty())
    return evidence;
  std::vector<std::string> ran(basis.ran.begin(), basis.ran.end());
  std::string last = std::move(ran.back());
  ran.pop_back();
  return fmt::format("run in {}{}{}, {}", fmt::join(ran, ", "), ran.empty() ? "" : " and ", last,
                     evidence);
}

std::string renderEngineRulesMarkdown() {
  std::string text =
      "# What engines do\n\n"
      "Generated from the table in `tools/checkpoint/*Rules.cpp`; a test compares the two. "
      "[Engines](../engines.md)\nsays how to read it. These are facts about other projects, not "
      "rules of moejit's.\n";
  for (const Engine &engine : allEngines()) {
    std::vector<std::string> dispatches(engine.dispatches.begin(), engine.dispatches.end());
    text += fmt::format("\n## {}\n\nRead: {} ({}). Dispatches: {}.\n\n"
                        "| rule | dispatch | versions | outcome | known by | fact | source |\n"
                        "|---|---|---|---|---|---|---|\n",
                        engine.name, fmt::join(engine.versions, ", "), engine.source,
                        fmt::join(dispatches, ", "));
    for (const EngineRule &rule : allEngineRules()) {
      if (std::string_view(rule.engine) != engine.name)
        continue;
      std::vector<std::string> of(rule.dispatches.begin(), rule.dispatches.end());
      std::string versions = fmt::format(
          "{}{}{}", *rule.since ? "from " : "", rule.since,
          *rule.until ? fmt::format("{}before {}", *rule.since ? " " : "", rule.until) : "");
      text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", rule.id,
                          of.empty() ? "all" : fmt::format("{}", fmt::join(of, ", ")),
                          versions.empty() ? "all read" : versions, outcomeName(rule.outcome),
                          basisText(rule.basis), rule.fact, rule.source);
    }
  }
  return text;
}

} // namespace moejit::checkpoint

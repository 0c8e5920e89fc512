// The way from combinations to counts, and from choices to values.
#include "tests/pipeline/MatrixRun.h"

#include "runtime/Rules.h"
#include "tests/pipeline/Runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <memory>

namespace moejit::test::matrix {

namespace {

/// Pairs of a value of one factor and a value of another, numbered.
class Pairs {
public:
  static constexpr int mostLevels = 16;
  static constexpr size_t count = size_t(FactorCount * FactorCount) * mostLevels * mostLevels;

  template <typename Visit> static void each(const Choice &choice, Visit visit) {
    for (int a = 0; a < FactorCount; ++a)
      for (int b = a + 1; b < FactorCount; ++b)
        visit(size_t(((a * FactorCount + b) * mostLevels + choice[a]) * mostLevels + choice[b]));
  }
  void add(const Choice &choice) {
    each(choice, [&](size_t pair) { members.set(pair); });
  }
  void remove(const Choice &choice) {
    each(choice, [&](size_t pair) { members.reset(pair); });
  }
  int64_t common(const Choice &choice) const {
    int64_t sum = 0;
    each(choice, [&](size_t pair) { sum += members[pair]; });
    return sum;
  }
  bool empty() const { return members.none(); }

private:
  std::bitset<count> members;
};

} // namespace

void Census::add(const Census &other) {
  combinations += other.combinations;
  for (const auto &[id, count] : other.refused)
    refused[id] += count;
  legal.insert(legal.end(), other.legal.begin(), other.legal.end());
}

Census takeCensus(int64_t first, int64_t step, std::string &problem) {
  Census census;
  for (int64_t index = first; index < numLayouts(); index += step) {
    Choice choice = choiceAt(index);
    ++census.combinations;
    std::vector<Violation> violations = checkSpec(specOf(choice), Target());
    if (violations.empty()) {
      census.legal.push_back(choice);
      continue;
    }
    if (!findRule(violations.front().ruleId) || violations.front().message.empty())
      problem = fmt::format("refused without a reason: {}", canonicalText(specOf(choice)));
    ++census.refused[violations.front().ruleId];
  }
  return census;
}

std::vector<Choice> coveringSet(const std::vector<Choice> &legal) {
  auto missing = std::make_unique<Pairs>();
  for (const Choice &choice : legal)
    missing->add(choice);
  std::vector<Choice> chosen;
  oracle::Random random(2);
  // Where chance finds nothing more, what is left is looked for in order.
  size_t next = 0;
  while (!missing->empty()) {
    Choice best{};
    int64_t most = 0;
    for (int i = 0; i < 300; ++i) {
      const Choice &choice = legal[random.below(legal.size())];
      if (int64_t gain = missing->common(choice); gain > most) {
        most = gain;
        best = choice;
      }
    }
    for (; most == 0 && next < legal.size(); ++next)
      if (int64_t gain = missing->common(legal[next]); gain > 0) {
        most = gain;
        best = legal[next];
      }
    missing->remove(best);
    chosen.push_back(best);
  }
  return chosen;
}

namespace {

Artifact compileInto(KernelOutcome &outcome, const Choice &choice) {
  outcome.spec = specOf(choice);
  KernelPlan plan = planOf(choice, outcome.spec);
  outcome.plan = planText(plan);
  Result<Artifact> artifact = compileToSource(outcome.spec, Target(), plan);
  if (!artifact) {
    outcome.wrong = artifact.error().text();
    return {};
  }
  outcome.isCompiled = true;
  return std::move(*artifact);
}

} // namespace

KernelOutcome compileOne(const Choice &choice) {
  KernelOutcome outcome;
  compileInto(outcome, choice);
  return outcome;
}

KernelOutcome computeOne(const Choice &choice, uint64_t seed, bool takesAll) {
  KernelOutcome outcome;
  Artifact artifact = compileInto(outcome, choice);
  if (!outcome.isCompiled)
    return outcome;
  std::vector<LaunchCase> launches = edgeCases(outcome.spec, artifact.launch.grid.tileM);
  if (!takesAll) {
    // Half of the edges, others for every kernel.
    oracle::Random random(seed);
    random.shuffle(launches);
    launches.resize((launches.size() + 1) / 2);
  }
  for (size_t i = 0; i < launches.size(); ++i) {
    LaunchResult result =
        run(artifact, launches[i], seed + i, i % 2 ? ThreadOrder::Random : ThreadOrder::RoundRobin);
    ++outcome.launches;
    outcome.elements += result.compared;
    outcome.worstRatio = std::max(outcome.worstRatio, result.worstRatio);
    if (!result.wrong.empty() && outcome.wrong.empty())
      outcome.wrong =
          fmt::format("{}, {} rows: {}", launches[i].name, launches[i].rows, result.wrong);
  }
  return outcome;
}

void Tally::add(const KernelOutcome &outcome) {
  ++kernels;
  compiled += outcome.isCompiled;
  launches += outcome.launches;
  elements += outcome.elements;
  failed += !outcome.wrong.empty();
  if (outcome.worstRatio > worstRatio) {
    worstRatio = outcome.worstRatio;
    worst = canonicalText(outcome.spec) + "\n" + outcome.plan;
  }
}

} // namespace moejit::test::matrix

// Every combination of layouts, dispatch and steps around them is either refused by a rule or
// computed right; the fast part of it. MatrixReport.cpp does all of it.
#include "tests/pipeline/MatrixRun.h"
#include "tests/pipeline/Runner.h"

#include "runtime/Rules.h"

#include <doctest/doctest.h>

#include <set>

using namespace moejit;
using namespace moejit::test;
using namespace moejit::test::matrix;

namespace {

/// Of the combinations, every 53rd: 53 shares no factor with the levels, so all of them take turns.
constexpr int64_t censusStep = 53;

const Census &fastCensus() {
  static const Census census = [] {
    std::string problem;
    Census taken = takeCensus(0, censusStep, problem);
    CHECK_MESSAGE(problem.empty(), problem);
    return taken;
  }();
  return census;
}

void report(const KernelOutcome &outcome) {
  if (!outcome.wrong.empty())
    FAIL_CHECK(canonicalText(outcome.spec), "\n  plan: ", outcome.plan, "\n  ", outcome.wrong);
}

/// Every `shards`-th kernel of the covering set, from `first` on.
void runShard(size_t first, size_t shards) {
  const std::vector<Choice> chosen = coveringSet(fastCensus().legal);
  Tally tally;
  for (size_t i = first; i < chosen.size(); i += shards) {
    KernelOutcome outcome = computeOne(chosen[i], 100 + i, /*takesAll=*/false);
    report(outcome);
    tally.add(outcome);
  }
  MESSAGE(tally.kernels, " kernels of ", chosen.size(), ", ", tally.launches, " launches, ",
          tally.elements, " elements, the worst at ", tally.worstRatio, " of its bound");
}

} // namespace

TEST_CASE("the matrix refuses by rules that the table has, and lowers the rest") {
  const Census &census = fastCensus();
  int64_t refused = 0;
  for (const auto &[id, count] : census.refused) {
    MESSAGE(id, " refuses ", count);
    refused += count;
  }
  MESSAGE(census.combinations, " combinations, ", refused, " refused, ", census.legal.size(),
          " legal");
  CHECK(refused + int64_t(census.legal.size()) == census.combinations);
  // What no rule refuses has a source. Here some of it, by turns; all in MatrixReport.
  const size_t step = std::max<size_t>(1, census.legal.size() / 200);
  for (size_t i = 0; i < census.legal.size(); i += step)
    report(compileOne(census.legal[i]));
}

TEST_CASE("the matrix trips every rule that says something is not lowered yet") {
  // Else a rule could be dead, or a layout missing here.
  for (const Rule &rule : allRules())
    if (rule.kind == Rule::Kind::Unsupported &&
        std::string_view(rule.id) != "MJ109") { // another architecture
      CAPTURE(std::string(rule.id));
      CHECK(fastCensus().refused.contains(rule.id));
    }
}

TEST_CASE("the covering set of the matrix has every dispatch, scheme and step") {
  const std::vector<Choice> chosen = coveringSet(fastCensus().legal);
  MESSAGE(chosen.size(), " kernels");
  std::set<int> dispatches, activations, weights, plans;
  for (const Choice &choice : chosen) {
    dispatches.insert(choice[DispatchForm]);
    activations.insert(choice[XGranule]);
    weights.insert(choice[WGranule]);
    plans.insert(choice[Plan]);
  }
  CHECK(dispatches.size() == levels[DispatchForm]);
  CHECK(activations.size() == levels[XGranule] - 2); // two that no rule allows
  CHECK(weights.size() >= 9);
  CHECK(plans.size() == levels[Plan]);
}

TEST_CASE("a kernel of the matrix that reads a wrong scale is seen to be wrong") {
  Choice choice{};
  choice[N] = 6;
  REQUIRE(checkSpec(specOf(choice), Target()).empty());
  KernelOutcome right = computeOne(choice, 1, /*takesAll=*/true);
  report(right);
  Spec spec = specOf(choice);
  Artifact artifact = build(spec, planOf(choice, spec));
  // Another scale of a block of weights, whose columns are rows where operands are swapped.
  const bool isSwapped = planOf(choice, spec).swapOperands;
  const std::string scale = isSwapped ? "const float rowScale = " : "const float columnScale = ";
  const size_t at = artifact.source.find(scale);
  REQUIRE(at != std::string::npos);
  artifact.source.insert(at + scale.size(), "1.5f * ");
  // The first loop is that of the fewest rows.
  LaunchCase launch{"a tile", isSwapped ? 8 : 64, oracle::Routing::oneExpert()};
  CHECK(!run(artifact, launch, 1, ThreadOrder::RoundRobin).wrong.empty());
}

TEST_CASE("matrix part 0") { runShard(0, 6); }
TEST_CASE("matrix part 1") { runShard(1, 6); }
TEST_CASE("matrix part 2") { runShard(2, 6); }
TEST_CASE("matrix part 3") { runShard(3, 6); }
TEST_CASE("matrix part 4") { runShard(4, 6); }
TEST_CASE("matrix part 5") { runShard(5, 6); }

// The way from choices to values.
#include "tests/pipeline/MatrixRun.h"

#include "tests/pipeline/Runner.h"

#include <fmt/format.h>

#include <algorithm>

namespace moejit::test::matrix {

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

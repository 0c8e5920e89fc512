// Random Specs, plans and subsets of passes, for as long as one likes. Not part of ctest: run
// moejit-pipeline-tests --test-case=soak --no-skip
#include "compiler/Pipeline.h"
#include "runtime/Rules.h"
#include "tests/oracle/Random.h"
#include "tests/pipeline/MatrixSpecs.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>

#include <chrono>

using namespace moejit;
using namespace moejit::test;

namespace {

KernelPlan randomPlan(oracle::Random &random, const Spec &spec) {
  const auto any = [&](std::initializer_list<int64_t> values) {
    return values.begin()[random.below(values.size())];
  };
  KernelPlan plan;
  do {
    plan.tileM = any({64, 128, 192});
    plan.tileN = any({64, 128, 192, 256});
    plan.stages = any({1, 2, 3, 5});
    plan.warpgroups = any({1, 2, 2, 3, 4});
    plan.split = random.below(2) ? WarpgroupSplit::Rows : WarpgroupSplit::Columns;
    plan.specializeWarps = random.below(4) != 0;
    plan.producerRegs = 40;
    plan.consumerRegs = plan.warpgroups <= 2 ? 232 : plan.warpgroups == 3 ? 152 : 104;
    plan.scheduler = random.below(2) ? SchedulerKind::Queue : SchedulerKind::Static;
    plan.raster = any({1, 2, 5, 16});
    plan.store = random.below(2) ? StorePath::Direct : StorePath::Staged;
    plan.liveRows = any({0, 0, 8, 16, 32, 64});
    plan.swapOperands = random.below(2);
    plan.fitRows = plan.swapOperands ? any({0, 16, 32, 64}) : 0;
    plan.tailRows = any({0, 0, 8, 16, 24, 32});
    plan.skipEmptyRows = random.below(2);
    plan.hoistRelease = random.below(2);
    plan.unrollSlots = random.below(2);
    plan.prefetchTile = random.below(2);
    plan.checked = random.below(4) == 0;
    plan.cleanWorkspace = random.below(4) != 0;
    plan.dependentLaunch = random.below(4) == 0;
    plan.cluster = any({1, 2});
    plan.splitK = any({1, 1, 2, 4});
    plan.clusterSide = random.below(2) ? ClusterSide::Rows : ClusterSide::Columns;
    plan.weightPolicy = random.below(2) ? CachePolicy::EvictFirst : CachePolicy::Normal;
  } while (!verifyPlan(plan, spec, Target()));
  return plan;
}

} // namespace

TEST_CASE("soak" * doctest::skip()) {
  const uint64_t seed =
      static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  oracle::Random random(seed);
  MESSAGE("seed ", seed);
  const auto begin = std::chrono::steady_clock::now();
  int kernels = 0, refused = 0;
  while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(120)) {
    Spec spec = matrix::specOf(matrix::randomChoice(random));
    if (!checkSpec(spec, Target()).empty())
      continue;
    KernelPlan plan = randomPlan(random, spec);
    CompileOptions options;
    for (const std::string &pass : optionalPasses())
      // What is checked is asked below, so these stay.
      if (random.below(3) == 0 && !pass.starts_with("tile-check-"))
        options.skippedPasses.push_back(pass);
    std::string what = canonicalText(spec) + "\n  plan: " + planText(plan) + "\n  without:";
    for (const std::string &pass : options.skippedPasses)
      what += " " + pass;
    Result<Artifact> artifact = compileToSource(spec, Target(), plan, options);
    if (!artifact) {
      ++refused;
      MESSAGE(what, "\n", artifact.error().text());
      continue;
    }
    ++kernels;
    checkAll(*artifact, edgeCases(spec, plan.tileM), what);
  }
  MESSAGE(kernels, " kernels, ", refused, " refused");
}

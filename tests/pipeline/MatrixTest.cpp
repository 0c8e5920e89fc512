// Every layout of scales that the rules allow, crossed with dispatch, output type, accumulation,
// extents and plan: the whole way from a Spec to values, on the emulator.
#include "runtime/Rules.h"
#include "tests/pipeline/MatrixSpecs.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>

#include <array>
#include <set>

using namespace moejit;
using namespace moejit::test;
using namespace moejit::test::matrix;

namespace {

bool isLegal(const Choice &choice) { return checkSpec(specOf(choice), Target()).empty(); }

using Pair = std::array<int, 4>; ///< factor, value, factor, value

std::set<Pair> pairsOf(const Choice &choice) {
  std::set<Pair> pairs;
  for (int a = 0; a < FactorCount; ++a)
    for (int b = a + 1; b < FactorCount; ++b)
      pairs.insert({a, choice[a], b, choice[b]});
  return pairs;
}

/// Every pair of values that some legal Spec has.
std::set<Pair> legalPairs() {
  std::set<Pair> pairs;
  oracle::Random random(1);
  for (int i = 0; i < 60000; ++i)
    if (Choice choice = randomChoice(random); isLegal(choice))
      pairs.merge(pairsOf(choice));
  return pairs;
}

/// A pairwise-covering set: until every legal pair of values is in some member, take of 300 random
/// legal choices the one with most pairs that are in none yet. The same set on every machine.
std::vector<Choice> coveringSet() {
  std::set<Pair> missing = legalPairs();
  std::vector<Choice> chosen;
  oracle::Random random(2);
  while (!missing.empty()) {
    Choice best{};
    size_t most = 0;
    for (int i = 0; i < 300 || most == 0; ++i) {
      Choice choice = randomChoice(random);
      if (!isLegal(choice))
        continue;
      size_t gain = 0;
      for (const Pair &pair : pairsOf(choice))
        gain += missing.count(pair);
      if (gain > most) {
        most = gain;
        best = choice;
      }
    }
    for (const Pair &pair : pairsOf(best))
      missing.erase(pair);
    chosen.push_back(best);
  }
  return chosen;
}

/// Every `shards`-th member of the set, from `first` on.
void runShard(size_t first, size_t shards) {
  const std::vector<Choice> chosen = coveringSet();
  for (size_t i = first; i < chosen.size(); i += shards) {
    Spec spec = specOf(chosen[i]);
    std::vector<PlannedRange> ranges = planRanges(spec, Target());
    REQUIRE(ranges.size() == 2);
    const KernelPlan &plan = ranges[chosen[i][Plan]].plan;
    checkAll(build(spec, plan), edgeCases(spec, plan.tileM),
             canonicalText(spec) + "\n  plan: " + planText(plan));
  }
}

} // namespace

TEST_CASE("the matrix covers every legal pair of layouts, in every dispatch") {
  const std::vector<Choice> chosen = coveringSet();
  std::set<std::pair<int, int>> layouts;
  std::set<std::pair<int, int>> dispatched;
  for (const Choice &choice : chosen) {
    layouts.insert({choice[Weights], choice[Activations]});
    dispatched.insert({choice[DispatchForm], choice[Activations]});
  }
  int legal = 0;
  Choice choice{};
  choice[N] = 6;
  choice[K] = 3;
  for (choice[Weights] = 0; choice[Weights] < levels[Weights]; ++choice[Weights])
    for (choice[Activations] = 0; choice[Activations] < levels[Activations];
         ++choice[Activations]) {
      bool isOneLegal = isLegal(choice);
      legal += isOneLegal;
      CHECK(layouts.count({choice[Weights], choice[Activations]}) >= isOneLegal);
    }
  MESSAGE(legal, " pairs of layouts, ", chosen.size(), " kernels");
  // Weights per tensor, expert, channel and 128x128; activations of every kind, groups in three
  // orders.
  CHECK(legal >= 28);
  CHECK(dispatched.size() >= 20);
}

TEST_CASE("matrix part 0") { runShard(0, 6); }
TEST_CASE("matrix part 1") { runShard(1, 6); }
TEST_CASE("matrix part 2") { runShard(2, 6); }
TEST_CASE("matrix part 3") { runShard(3, 6); }
TEST_CASE("matrix part 4") { runShard(4, 6); }
TEST_CASE("matrix part 5") { runShard(5, 6); }

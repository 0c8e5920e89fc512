// Every layout of scales that the rules allow, crossed with dispatch, output type, accumulation,
// extents and plan: the whole way from a Spec to values, on the emulator.
#include "runtime/Rules.h"
#include "tests/oracle/Random.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>

#include <array>
#include <set>

using namespace moejit;
using namespace moejit::test;

namespace {

/// What a kernel of the matrix is made of: one value of each factor.
enum Factor {
  Weights,
  Activations,
  DispatchForm,
  Out,
  Accumulation,
  Unowned,
  N,
  K,
  Experts,
  Plan,
  FactorCount
};
using Choice = std::array<int, FactorCount>;
constexpr Choice levels = {4, 7, 2, 3, 2, 2, 6, 4, 3, 2};

// 8: less than an instruction's share. 192, 200: no multiple of the tile, or of a fragment. 320: a
// whole tile and a quarter. 264: a tile and one group of eight columns. 128: one narrow tile.
constexpr int64_t columns[] = {8, 128, 192, 200, 264, 320};
// 16: the least. 128: one step. 208: a tail of five 16-byte groups, no multiple of 32. 384: three
// steps.
constexpr int64_t depths[] = {16, 128, 208, 384};
constexpr ElementType outTypes[] = {ElementType::BF16, ElementType::F16, ElementType::F32};

ScaleLayout activations(int choice) {
  ScaleLayout layout;
  layout.granule = {Granule::whole(), Granule::whole()};
  switch (choice) {
  case 0: // static per tensor
    break;
  case 1: // static per expert
    layout.granule[0] = Granule::expert();
    break;
  case 2: // dynamic per tensor
    layout.source = ScaleSource::Dynamic;
    break;
  case 3: // dynamic per token
    layout.granule[0] = Granule::of(1);
    layout.source = ScaleSource::Dynamic;
    break;
  default: // dynamic 1x128: row-major, m contiguous and aligned, m contiguous
    layout.granule = {Granule::of(1), Granule::of(128)};
    layout.source = ScaleSource::Dynamic;
    layout.order = choice == 4 ? ScaleOrder::RowMajor : ScaleOrder::MnMajor;
    layout.alignBytes = choice == 5 ? 16 : 0;
  }
  return layout;
}

ScaleLayout weights(int choice, Dispatch dispatch) {
  ScaleLayout layout;
  const Granule one = Granule::of(1), whole = Granule::whole(), block = Granule::of(128);
  const std::vector<Granule> granules[] = {
      {whole, whole, whole}, {one, whole, whole}, {one, one, whole}, {one, block, block}};
  layout.granule = granules[choice];
  if (dispatch == Dispatch::Eager)
    layout.granule.erase(layout.granule.begin());
  return layout;
}

Spec specOf(const Choice &choice) {
  Spec spec;
  spec.dispatch = choice[DispatchForm] ? Dispatch::Eager : Dispatch::Grouped;
  spec.numExperts = choice[DispatchForm] ? 1 : 3 + choice[Experts];
  spec.n = columns[choice[N]];
  spec.k = depths[choice[K]];
  spec.outType = outTypes[choice[Out]];
  spec.accumulate = choice[Accumulation] ? Accumulate::Fast : Accumulate::Exact;
  spec.skipped = choice[Unowned] ? Skipped::Untouched : Skipped::Zeroed;
  spec.xScales = activations(choice[Activations]);
  spec.wScales = weights(choice[Weights], spec.dispatch);
  return spec;
}

bool isLegal(const Choice &choice) { return checkSpec(specOf(choice), Target()).empty(); }

using Pair = std::array<int, 4>; ///< factor, value, factor, value

std::set<Pair> pairsOf(const Choice &choice) {
  std::set<Pair> pairs;
  for (int a = 0; a < FactorCount; ++a)
    for (int b = a + 1; b < FactorCount; ++b)
      pairs.insert({a, choice[a], b, choice[b]});
  return pairs;
}

Choice randomChoice(oracle::Random &random) {
  Choice choice;
  for (int f = 0; f < FactorCount; ++f)
    choice[f] = static_cast<int>(random.below(levels[f]));
  return choice;
}

/// Every pair of values that some legal Spec has.
std::set<Pair> legalPairs() {
  std::set<Pair> pairs;
  oracle::Random random(1);
  for (int i = 0; i < 20000; ++i)
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

TEST_CASE("the matrix covers every legal pair of layouts") {
  std::set<std::pair<int, int>> layouts;
  for (const Choice &choice : coveringSet())
    layouts.insert({choice[Weights], choice[Activations]});
  int legal = 0;
  Choice choice{};
  choice[N] = 2;
  choice[K] = 3;
  for (choice[Weights] = 0; choice[Weights] < levels[Weights]; ++choice[Weights])
    for (choice[Activations] = 0; choice[Activations] < levels[Activations];
         ++choice[Activations]) {
      bool isOneLegal = isLegal(choice);
      legal += isOneLegal;
      CHECK(layouts.count({choice[Weights], choice[Activations]}) == isOneLegal);
    }
  MESSAGE(legal, " pairs of layouts, ", coveringSet().size(), " kernels");
  CHECK(legal >= 24);
}

TEST_CASE("matrix part 0") { runShard(0, 4); }
TEST_CASE("matrix part 1") { runShard(1, 4); }
TEST_CASE("matrix part 2") { runShard(2, 4); }
TEST_CASE("matrix part 3") { runShard(3, 4); }

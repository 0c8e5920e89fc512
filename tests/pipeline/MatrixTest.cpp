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
  Types,
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
constexpr Choice levels = {9, 10, 3, 3, 3, 2, 2, 7, 4, 3, 2};

constexpr Dispatch dispatches[] = {Dispatch::Grouped, Dispatch::Eager, Dispatch::Masked};
// 8: less than an instruction's share. 192, 200: no multiple of the tile, or of a fragment. 320: a
// whole tile and a quarter. 264: a tile and one group of eight columns. 128: one narrow tile.
// 256: two parts, each whole blocks.
constexpr int64_t columns[] = {8, 128, 192, 200, 264, 320, 256};
// 16: the least. 128: one step. 208: a tail of five 16-byte groups, no multiple of 32. 384: three
// steps.
constexpr int64_t depths[] = {16, 128, 208, 384};
constexpr ElementType outTypes[] = {ElementType::BF16, ElementType::F16, ElementType::F32};

ScaleLayout activations(int choice, Dispatch dispatch) {
  const Granule one = Granule::of(1), whole = Granule::whole();
  const std::vector<Granule> granules[] = {
      {whole, whole},             // static per tensor
      {Granule::expert(), whole}, // static per expert
      {whole, whole},             // dynamic per tensor
      {one, whole},               // dynamic per token
      {one, Granule::of(128)},    // row-major
      {one, Granule::of(128)},    // m contiguous, aligned
      {one, Granule::of(128)},    // m contiguous
      {one, Granule::of(256)},    // more than a step of K, row-major
      {one, Granule::of(64)},     // less than a step, m contiguous and aligned
      {one, Granule::of(32)},     // the least there is, row-major
  };
  ScaleLayout layout;
  layout.granule = granules[choice];
  layout.source = choice < 2 ? ScaleSource::Static : ScaleSource::Dynamic;
  const bool isMnMajor = choice == 5 || choice == 6 || choice == 8;
  layout.order = isMnMajor ? ScaleOrder::MnMajor : ScaleOrder::RowMajor;
  layout.alignBytes = choice == 5 || choice == 8 ? 16 : 0;
  if (dispatch == Dispatch::Masked) {
    const bool isPerExpert = layout.granule[0].kind == Granule::Kind::Expert;
    if (isPerExpert)
      layout.granule[0] = whole;
    layout.granule.insert(layout.granule.begin(),
                          isPerExpert || layout.granule[0].kind == Granule::Kind::Extent ? one
                                                                                         : whole);
  }
  return layout;
}

ScaleLayout weights(int choice, Dispatch dispatch) {
  const Granule one = Granule::of(1), whole = Granule::whole();
  const std::vector<Granule> granules[] = {{whole, whole, whole},
                                           {one, whole, whole},
                                           {one, one, whole},
                                           {one, Granule::of(128), Granule::of(128)},
                                           {one, Granule::of(64), Granule::of(128)},
                                           {one, Granule::of(256), Granule::of(256)},
                                           {one, one, Granule::of(64)},
                                           {one, Granule::of(32), whole},
                                           {one, Granule::of(128), Granule::of(128)}};
  ScaleLayout layout;
  layout.parts = choice == 8 ? 2 : 1;
  layout.granule = granules[choice];
  if (dispatch == Dispatch::Eager)
    layout.granule.erase(layout.granule.begin());
  return layout;
}

Spec specOf(const Choice &choice) {
  Spec spec;
  spec.dispatch = dispatches[choice[DispatchForm]];
  spec.numExperts = spec.dispatch == Dispatch::Eager ? 1 : 3 + choice[Experts];
  if (spec.dispatch == Dispatch::Masked)
    spec.maxRows = 148; // a tile of 128 and 20 rows
  spec.n = columns[choice[N]];
  spec.k = depths[choice[K]];
  spec.xType = choice[Types] == 1 ? ElementType::F8E5M2 : ElementType::F8E4M3FN;
  spec.wType = choice[Types] == 2 ? ElementType::F8E5M2 : ElementType::F8E4M3FN;
  spec.outType = outTypes[choice[Out]];
  spec.accumulate = choice[Accumulation] ? Accumulate::Fast : Accumulate::Exact;
  spec.skipped = choice[Unowned] ? Skipped::Untouched : Skipped::Zeroed;
  spec.xScales = activations(choice[Activations], spec.dispatch);
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

// Layouts of scales that the factors of the matrix do not reach, and shards of one tensor: the
// whole way from a Spec to values, on the emulator.
#include "runtime/Rules.h"
#include "tests/oracle/ScaleGeometry.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

using namespace moejit;
using namespace moejit::test;

namespace {

const Granule one = Granule::of(1), whole = Granule::whole(), expert = Granule::expert();
constexpr ElementType ue8m0 = ElementType::F8E8M0FNU;
constexpr ScaleOrder mnMajor = ScaleOrder::MnMajor;

Granule of(int64_t extent) { return Granule::of(extent); }

Spec specOf(std::vector<Granule> x, std::vector<Granule> w, int64_t n = 200, int64_t k = 336) {
  Spec spec;
  spec.numExperts = 3;
  spec.n = n;
  spec.k = k;
  spec.outType = ElementType::F32;
  spec.xScales.granule = std::move(x);
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales.granule = std::move(w);
  return spec;
}

Spec with(Spec spec, const std::function<void(Spec &)> &edit) {
  edit(spec);
  return spec;
}

/// `spec` on buffers of a tile of 64 and 11 rows; `first` is the granule of x on experts.
Spec masked(Spec spec, Granule first = one) {
  spec.dispatch = Dispatch::Masked;
  spec.maxRows = 75;
  spec.xScales.granule.insert(spec.xScales.granule.begin(), first);
  if (!spec.xScales.phase.empty())
    spec.xScales.phase.insert(spec.xScales.phase.begin(), 0);
  return spec;
}

Spec batched(Spec spec) {
  spec.dispatch = Dispatch::Batched;
  return spec;
}

void setType(ScaleLayout &layout, int64_t packing, ScaleOrder order, int64_t alignBytes) {
  layout.type = ue8m0;
  layout.packing = packing;
  layout.order = order;
  layout.alignBytes = alignBytes;
}

struct Case {
  const char *name;
  Spec spec;
  int plan = 0; ///< of planRanges
};

const std::vector<Granule> groups = {one, of(128)}, blocks = {one, of(128), of(128)},
                           mx = {one, of(32)}, mxWeights = {one, one, of(32)};

/// Granules of every kind along rows, N and K.
std::vector<Case> granuleCases() {
  return {
      {"blocks of 24 columns", specOf(groups, {one, of(24), of(128)})},
      {"blocks of 320 columns", specOf(groups, {one, of(320), of(128)}, 648, 144), 1},
      {"blocks of 8 columns", specOf(groups, {one, of(8), of(64)}, 72)},
      {"blocks of 96 of K", specOf({one, of(96)}, {one, of(96), of(96)})},
      {"blocks of all experts", specOf(groups, {whole, of(48), of(128)})},
      {"blocks of K alone", specOf({whole, of(64)}, {one, whole, of(128)})},
      {"an expert's groups, mn_major",
       with(specOf({expert, of(128)}, {whole, whole, of(128)}),
            [](Spec &s) { s.xScales.order = s.wScales.order = mnMajor; })},
      {"a vector a buffer, padded", with(masked(specOf({one, whole}, {one, one, whole})),
                                         [](Spec &s) {
                                           s.xScales.alignBytes = s.wScales.alignBytes = 16;
                                           s.wScales.order = mnMajor;
                                         })},
      {"scales of tokens and channels, padded", with(specOf({one, whole}, {one, one, whole}),
                                                     [](Spec &s) {
                                                       s.xScales.alignBytes = 16;
                                                       s.wScales.alignBytes = 16;
                                                     })},
      {"groups of 4 rows, sorted", batched(specOf({of(4), of(128)}, blocks))},
      {"groups of 3 rows, from the second on, in buffers",
       masked(with(specOf({of(3), of(64)}, blocks), [](Spec &s) { s.xScales.phase = {1, 0}; }))},
      {"groups of 2 rows, mn_major and padded, in buffers",
       masked(with(specOf({of(2), of(128)}, blocks),
                   [](Spec &s) {
                     s.xScales.order = mnMajor;
                     s.xScales.alignBytes = 16;
                   })),
       1},
      {"groups of all buffers' rows alike", masked(specOf(groups, blocks), whole)},
  };
}

/// Powers of two, single and four in a word.
std::vector<Case> powerCases() {
  return {
      {"MX on both sides, bytes", with(specOf(mx, mxWeights),
                                       [](Spec &s) {
                                         setType(s.xScales, 1, ScaleOrder::RowMajor, 0);
                                         setType(s.wScales, 1, ScaleOrder::RowMajor, 0);
                                       })},
      {"MX on both sides, words in mn_major",
       with(specOf(mx, mxWeights),
            [](Spec &s) {
              setType(s.xScales, 4, mnMajor, 16);
              setType(s.wScales, 4, mnMajor, 16);
            }),
       1},
      {"MX in buffers, bytes in mn_major", masked(with(specOf(mx, mxWeights),
                                                       [](Spec &s) {
                                                         setType(s.xScales, 1, mnMajor, 32);
                                                         setType(s.wScales, 1, mnMajor, 16);
                                                       }))},
      {"groups and blocks, words", with(specOf(groups, blocks, 200, 1040),
                                        [](Spec &s) {
                                          setType(s.xScales, 4, mnMajor, 16);
                                          setType(s.wScales, 4, ScaleOrder::RowMajor, 0);
                                        })},
      {"groups and blocks, bytes; sorted", batched(with(specOf(groups, blocks),
                                                        [](Spec &s) {
                                                          setType(s.xScales, 1, mnMajor, 0);
                                                          setType(s.wScales, 1, mnMajor, 0);
                                                        }))},
      {"tokens and channels, words", with(specOf({one, whole}, {one, one, whole}),
                                          [](Spec &s) {
                                            setType(s.xScales, 4, ScaleOrder::RowMajor, 0);
                                            setType(s.wScales, 4, mnMajor, 16);
                                          })},
      {"words of groups that start inside one", with(specOf(mx, {one, of(64), of(64)}, 136),
                                                     [](Spec &s) {
                                                       setType(s.xScales, 4, ScaleOrder::RowMajor,
                                                               16);
                                                       setType(s.wScales, 4, mnMajor, 0);
                                                       s.xScales.phase = {0, 16};
                                                       s.wScales.phase = {0, 24, 48};
                                                     })},
  };
}

/// Parts and phases.
std::vector<Case> shardCases() {
  const auto parts = [](std::vector<Granule> w, int64_t n, bool interleaved,
                        std::vector<int64_t> phase = {}) {
    return with(specOf(groups, std::move(w), n, 144), [&](Spec &s) {
      s.wScales.parts = 2;
      s.wScales.interleaved = interleaved;
      s.wScales.phase = phase;
    });
  };
  return {
      // Report vllm#54178: 160 rows a rank of gate and of up; the seam is inside a block of 128.
      {"ragged parts", parts(blocks, 320, false)},
      {"ragged parts that start inside a block", parts(blocks, 320, false, {0, 32, 0}), 1},
      {"interleaved parts", parts(blocks, 320, true, {0, 64, 0})},
      {"one scale a part", parts({one, whole, whole}, 200, false)},
      {"one scale an interleaved part", parts({one, whole, of(128)}, 72, true)},
      {"granules of K that start apart", with(specOf(groups, {one, of(128), of(64)}),
                                              [](Spec &s) {
                                                s.xScales.phase = {0, 96};
                                                s.wScales.phase = {0, 100, 32};
                                                s.xScales.order = mnMajor;
                                                s.xScales.alignBytes = 16;
                                              })},
      {"a granule of several steps that starts inside",
       with(specOf({one, whole}, {one, one, of(512)}, 72),
            [](Spec &s) { s.wScales.phase = {0, 0, 336}; })},
      {"80 of K at a time, sorted", batched(with(specOf(groups, blocks, 72, 80),
                                                 [](Spec &s) {
                                                   s.xScales.phase = {0, 80};
                                                   s.wScales.phase = {0, 0, 80};
                                                 }))},
  };
}

std::vector<LaunchCase> launchesOf(const Spec &spec) {
  oracle::ProblemOptions padded;
  padded.xPadBytes = 16;
  padded.xScalePad = 5;
  if (spec.dispatch == Dispatch::Masked)
    return {
        {"buffers", 3 * spec.maxRows, oracle::Routing::fromCounts({70, 0, spec.maxRows}), padded}};
  return {{"rows", 77, oracle::Routing::fromCounts({5, 66, 6}), padded, true}};
}

void check(const std::vector<Case> &cases) {
  for (const Case &test : cases) {
    REQUIRE_MESSAGE(checkSpec(test.spec, Target()).empty(), test.name, ": ",
                    requireLegal(test.spec, Target()).error().text());
    const KernelPlan plan = planRanges(test.spec, Target())[size_t(test.plan)].plan;
    checkAll(build(test.spec, plan), launchesOf(test.spec),
             std::string(test.name) + "\n  " + canonicalText(test.spec));
  }
}

/// The part of `whole` that a rank holds: rows [n, n + spec.n / parts) of each part of w, and
/// elements [k, k + spec.k) of K, both with the scales that cover them.
oracle::HostProblem shardOf(const oracle::HostProblem &whole, const Spec &spec, int64_t n,
                            int64_t k) {
  oracle::HostProblem shard = whole;
  shard.spec = spec;
  shard.xStride = shard.xScaleStride = 0;
  const oracle::HostProblem shape = oracle::makeProblem(spec, whole.rows, {}, 1);
  shard.xStride = shape.xStride;
  shard.yStride = shape.yStride;
  shard.xScaleStride = shape.xScaleStride;
  shard.x.assign(shape.x.size(), oracle::poisonByte);
  shard.w.resize(shape.w.size());
  shard.xScales.assign(shape.xScales.size(), NAN);
  shard.wScales.assign(shape.wScales.size(), NAN);
  const auto wholeX = oracle::ScaleGeometry::ofX(whole.spec, whole.rows, whole.xScaleStride);
  const auto wholeW = oracle::ScaleGeometry::ofW(whole.spec);
  const auto x = oracle::ScaleGeometry::ofX(spec, whole.rows, shard.xScaleStride);
  const auto w = oracle::ScaleGeometry::ofW(spec);
  for (int64_t row = 0; row < whole.rows; ++row)
    for (int64_t i = 0; i < spec.k; ++i) {
      shard.x[size_t(row * shard.xStride + i)] = whole.x[size_t(row * whole.xStride + k + i)];
      shard.xScales[size_t(x.index(0, row, i))] =
          whole.xScales[size_t(wholeX.index(0, row, k + i))];
    }
  const int64_t parts = spec.wScales.parts, perPart = spec.n / parts,
                wholePart = whole.spec.n / parts;
  for (int64_t e = 0; e < spec.numExperts; ++e)
    for (int64_t row = 0; row < spec.n; ++row)
      for (int64_t i = 0; i < spec.k; ++i) {
        const int64_t from = row / perPart * wholePart + n + row % perPart;
        shard.w[size_t((e * spec.n + row) * spec.k + i)] =
            whole.w[size_t((e * whole.spec.n + from) * whole.spec.k + k + i)];
        shard.wScales[size_t(w.index(e, row, i))] =
            whole.wScales[size_t(wholeW.index(e, from, k + i))];
      }
  return shard;
}

void checkShard(const oracle::HostProblem &shard) {
  REQUIRE(checkSpec(shard.spec, Target()).empty());
  const Artifact artifact = build(shard.spec, planRanges(shard.spec, Target())[0].plan);
  const LaunchResult result = run(artifact, shard, ThreadOrder::RoundRobin);
  CHECK(result.wrong == "");
  CHECK(result.compared == shard.rows * shard.spec.n);
}

} // namespace

TEST_CASE("granules of every kind") { check(granuleCases()); }
TEST_CASE("scales that are powers of two") { check(powerCases()); }
TEST_CASE("parts and phases") { check(shardCases()); }

// Byte 0 is an fp32 subnormal, and a shift alone would make it 0; 254 is the largest.
TEST_CASE("the least and the largest power of two") {
  for (int64_t packing : {1, 4}) {
    const Spec spec = with(specOf(mx, mxWeights, 72, 144), [&](Spec &s) {
      setType(s.xScales, packing, mnMajor, 16);
      setType(s.wScales, packing, mnMajor, 0);
    });
    oracle::HostProblem problem = problemOf(spec, launchesOf(spec)[0], 3);
    const auto set = [](std::vector<float> &scales, int exponent, int next) {
      for (size_t i = 0; i < scales.size(); ++i)
        if (!std::isnan(scales[i]))
          scales[i] = std::ldexp(1.0f, i % 3 ? exponent : next);
    };
    set(problem.xScales, -127, -126);
    set(problem.wScales, 127, 126);
    const std::vector<uint8_t> bytes = oracle::storedScales(spec.xScales, problem.xScales);
    REQUIRE(std::count(bytes.begin(), bytes.end(), 0) > 0);
    const Artifact artifact = build(spec, planRanges(spec, Target())[0].plan);
    CHECK(run(artifact, problem, ThreadOrder::RoundRobin).wrong == "");
  }
}

// Report vllm#54178: gate and up of 320 rows each have ⌈320 / 128⌉ = 3 rows of scales each, and a
// rank's 160 rows start inside a block. What ranks compute is what one computes that has it all.
TEST_CASE("columns sharded over two ranks are those of the whole") {
  Spec all = specOf(groups, blocks, 640, 128);
  all.numExperts = 2;
  all.wScales.parts = 2;
  const oracle::HostProblem problem =
      oracle::makeProblem(all, 9, oracle::Routing::fromCounts({4, 5}), 7);
  const std::vector<double> expected = oracle::reference(problem).reference;
  for (int64_t ranks : {2, 4})
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t rows = 320 / ranks, first = rank * rows;
      Spec spec = all;
      spec.n = 2 * rows;
      spec.wScales.phase = {0, first % 128, 0};
      const oracle::HostProblem shard = shardOf(problem, spec, first, 0);
      const std::vector<double> part = oracle::reference(shard).reference;
      bool isSame = true;
      for (int64_t row = 0; row < problem.rows; ++row)
        for (int64_t n = 0; n < spec.n; ++n)
          isSame &= part[size_t(row * spec.n + n)] ==
                    expected[size_t(row * all.n + n / rows * 320 + first + n % rows)];
      CHECK(isSame);
      if (ranks == 2 || rank == 3)
        checkShard(shard);
    }
}

// The scale tensor has the same shape with and without the phase, so no shape check could see it.
TEST_CASE("a shard that starts inside a block is wrong where the phase is forgotten") {
  Spec all = specOf(groups, blocks, 640, 128);
  all.wScales.parts = 2;
  const oracle::HostProblem problem =
      oracle::makeProblem(all, 9, oracle::Routing::fromCounts({4, 5, 0}), 7);
  Spec spec = all, forgotten = all;
  spec.n = forgotten.n = 320;
  spec.wScales.phase = {0, 32, 0};
  REQUIRE(scaleShape(spec.wScales, wShape(spec), 3) ==
          scaleShape(forgotten.wScales, wShape(forgotten), 3));
  const Artifact artifact = build(forgotten, planRanges(forgotten, Target())[0].plan);
  CHECK(run(artifact, shardOf(problem, spec, 160, 0), ThreadOrder::RoundRobin).wrong != "");
}

// The other projection: a rank's K starts inside a block of w and inside a group of x.
TEST_CASE("K sharded over four ranks sums up to the whole") {
  Spec all = specOf(groups, blocks, 136, 640);
  all.numExperts = 2;
  const oracle::HostProblem problem =
      oracle::makeProblem(all, 9, oracle::Routing::fromCounts({4, 5}), 8);
  const std::vector<double> expected = oracle::reference(problem).reference;
  std::vector<double> sum(expected.size());
  for (int64_t rank = 0; rank < 4; ++rank) {
    Spec spec = all;
    spec.k = 160;
    spec.xScales.phase = {0, rank * 160 % 128};
    spec.wScales.phase = {0, 0, rank * 160 % 128};
    const oracle::HostProblem shard = shardOf(problem, spec, 0, rank * 160);
    const std::vector<double> part = oracle::reference(shard).reference;
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += part[i];
    if (rank % 2 == 1)
      checkShard(shard);
  }
  double worst = 0;
  for (size_t i = 0; i < sum.size(); ++i)
    worst = std::max(worst, std::abs(sum[i] - expected[i]));
  CHECK(worst < 1e-9);
}

TEST_CASE(
    "scales of several rows each, where rows are columns of a wgmma and experts' begin anywhere") {
  KernelPlan plan;
  plan.tileN = 128;
  plan.swapOperands = true;
  for (int64_t rows : {2, 4, 32, 128})
    for (bool isBatched : {false, true}) {
      Spec spec = specOf({of(rows), of(128)}, {one, one, of(128)}, 136);
      if (isBatched)
        spec = batched(spec);
      plan.store = StorePath::Direct;
      plan.fitRows = rows == 4 ? 0 : 32; // widths that are read early, and those that are not
      checkAll(build(spec, plan), edgeCases(spec, plan.tileM), canonicalText(spec));
    }
}

// Hand-worked answers for every scale layout and for the row contract. Codes: 1, 2 and 3 are exact
// in e4m3.
#include "tests/oracle/Oracle.h"

#include "tests/oracle/Fp8.h"
#include "tests/oracle/Problem.h"
#include "tests/oracle/ScaleGeometry.h"

#include <chrono>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace moejit;
using namespace moejit::oracle;

namespace {

std::vector<uint8_t> codes(std::initializer_list<double> values) {
  std::vector<uint8_t> all;
  for (double value : values)
    all.push_back(encodeE4M3(value));
  return all;
}

Spec makeSpec(int64_t numExperts, int64_t n, int64_t k, std::vector<Granule> x,
              std::vector<Granule> w) {
  Spec spec;
  spec.numExperts = numExperts;
  spec.n = n;
  spec.k = k;
  spec.xScales.granule = std::move(x);
  spec.wScales.granule = std::move(w);
  return spec;
}

/// A problem of 2 rows with packed operands; offsets as given.
HostProblem makeSmall(Spec spec, std::vector<int32_t> offsets, std::vector<uint8_t> x,
                      std::vector<uint8_t> w, std::vector<float> xScales,
                      std::vector<float> wScales) {
  HostProblem problem;
  problem.rows = int64_t(x.size()) / spec.k;
  problem.xStride = spec.k;
  problem.yStride = spec.n;
  problem.spec = std::move(spec);
  problem.offsets = std::move(offsets);
  problem.x = std::move(x);
  problem.w = std::move(w);
  problem.xScales = std::move(xScales);
  problem.wScales = std::move(wScales);
  return problem;
}

const Granule whole = Granule::whole(), one = Granule::of(1), byExpert = Granule::expert();

} // namespace

// x = [1 2; 3 1], one expert's w = [1 1; 2 -1], the other's = [3 0; 0 2]; row 0 is expert 0's, row
// 1 expert 1's. Unscaled: row 0 = [1+2, 2-2] = [3, 0]; row 1 = [9, 2].
static HostProblem twoByTwo(std::vector<Granule> x, std::vector<Granule> w,
                            std::vector<float> xScales, std::vector<float> wScales) {
  return makeSmall(makeSpec(2, 2, 2, std::move(x), std::move(w)), {0, 1, 2}, codes({1, 2, 3, 1}),
                   codes({1, 1, 2, -1, 3, 0, 0, 2}), std::move(xScales), std::move(wScales));
}

TEST_CASE("per tensor: one scale each") {
  HostProblem problem = twoByTwo({whole, whole}, {whole, whole, whole}, {2}, {10});
  CHECK(reference(problem).reference == std::vector<double>{60, 0, 180, 40});
}

TEST_CASE("per expert: static scales on both sides") {
  HostProblem problem = twoByTwo({byExpert, whole}, {one, whole, whole}, {2, 5}, {10, 100});
  CHECK(reference(problem).reference == std::vector<double>{60, 0, 4500, 1000});
}

TEST_CASE("per channel weights and per token activations") {
  HostProblem problem = twoByTwo({one, whole}, {one, one, whole}, {2, 5}, {10, 20, 100, 200});
  CHECK(reference(problem).reference == std::vector<double>{60, 0, 4500, 2000});
}

TEST_CASE("blocks: x by groups of K, w by blocks, ragged N and K") {
  // K = 3 in groups of 2, N = 3 in blocks of 2: the last group and block are of one element.
  // Expert 0: w = [1 1 1; 1 2 3; 2 0 1], scales [1 10; 100 1000]; row [1 2 3], scales [1 0.5].
  Spec spec = makeSpec(1, 3, 3, {one, Granule::of(2)}, {one, Granule::of(2), Granule::of(2)});
  HostProblem problem = makeSmall(spec, {0, 1}, codes({1, 2, 3}),
                                  codes({1, 1, 1, 1, 2, 3, 2, 0, 1}), {1, 0.5}, {1, 10, 100, 1000});
  CHECK(reference(problem).reference == std::vector<double>{(1 + 2) * 1 + 3 * 0.5 * 10,
                                                            (1 + 4) * 1 + 9 * 0.5 * 10,
                                                            2 * 100 + 3 * 0.5 * 1000});
}

TEST_CASE("two parts: gate and up have scale rows of their own") {
  // N = 6 in two parts of 3, blocks of 2: 2 scale rows a part, [0 0 1 | 2 2 3]; undivided it would
  // be [0 0 1 1 2 2].
  Spec spec = makeSpec(1, 6, 1, {whole, whole}, {one, Granule::of(2), one});
  spec.wScales.parts = 2;
  HostProblem problem =
      makeSmall(spec, {0, 1}, codes({1}), codes({1, 1, 1, 1, 1, 1}), {1}, {1, 10, 100, 1000});
  CHECK(ScaleGeometry::ofW(spec).logicalSize() == 4);
  CHECK(reference(problem).reference == std::vector<double>{1, 1, 10, 100, 100, 1000});

  problem.spec.wScales.parts = 1;
  problem.wScales = {1, 10, 100};
  CHECK(reference(problem).reference == std::vector<double>{1, 1, 10, 10, 100, 100});

  // Interleaved rows g u g u g u: the scale rows alternate too.
  problem.spec.wScales.parts = 2;
  problem.spec.wScales.interleaved = true;
  problem.wScales = {1, 10, 100, 1000};
  CHECK(reference(problem).reference == std::vector<double>{1, 10, 1, 10, 100, 1000});

  // A whole granule is whole within a part: one scale for gate, one for up.
  problem.spec.wScales.granule = {one, whole, whole};
  problem.spec.wScales.interleaved = false;
  problem.wScales = {1, 10};
  CHECK(reference(problem).reference == std::vector<double>{1, 1, 1, 10, 10, 10});
}

TEST_CASE("phase: a shard that starts inside a granule") {
  // K = 3 starting one element inside its first granule of 2: groups [0], [1 2].
  Spec spec = makeSpec(1, 2, 3, {one, Granule::of(2)}, {one, Granule::of(2), Granule::of(2)});
  spec.xScales.phase = {0, 1};
  spec.wScales.phase = {0, 1, 1};
  HostProblem problem =
      makeSmall(spec, {0, 1}, codes({1, 2, 3}), codes({1, 1, 1, 1, 1, 1}), {1, 10}, {1, 2, 4, 8});
  CHECK(reference(problem).reference == std::vector<double>{1 * 1 + 5 * 20.0, 1 * 4 + 5 * 80.0});
}

TEST_CASE("mn_major scales with a row stride and an alignment") {
  Spec spec = makeSpec(1, 1, 4, {one, Granule::of(2)}, {whole, whole, whole});
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  CHECK(ScaleGeometry::ofX(spec, 3).kStride == 4);
  float nan = std::numeric_limits<float>::quiet_NaN();
  HostProblem problem = makeSmall(spec, {0, 3}, codes({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
                                  codes({1, 1, 1, 1}), {1, 2, 3, nan, 10, 20, 30, nan}, {1});
  CHECK(reference(problem).reference == std::vector<double>{22, 44, 66});
  problem.xScaleStride = 5;
  problem.xScales = {1, 2, 3, nan, nan, 10, 20, 30, nan, nan};
  CHECK(reference(problem).reference == std::vector<double>{22, 44, 66});
}

TEST_CASE("packed scales: four along K in a word, the first in its lowest byte") {
  // K = 5 groups of one element; 2 words a row, the last three bytes of the second unused.
  Spec spec = makeSpec(1, 1, 5, {one, one}, {whole, whole, whole});
  spec.xScales.type = ElementType::F8E8M0FNU;
  spec.xScales.packing = 4;
  float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<uint8_t> x = codes({1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  HostProblem problem =
      makeSmall(spec, {0, 2}, x, codes({1, 1, 1, 1, 1}),
                {1, 2, 4, 8, 16, nan, nan, nan, 32, 64, 128, 256, 512, nan, nan, nan}, {1});
  const std::vector<double> expected = {1 + 2 + 4 + 8 + 16, 32 + 64 + 128 + 256 + 512};
  CHECK(ScaleGeometry::ofX(spec, 2).stride == 2);
  CHECK(reference(problem).reference == expected);
  CHECK(storedScales(spec.xScales, {1, 2, 4, 8}) == std::vector<uint8_t>{127, 128, 129, 130});

  // DeepGEMM's form: the words of all rows, then the next words; rows of words padded to 16 bytes.
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  CHECK(ScaleGeometry::ofX(spec, 2).stride == 4);
  problem =
      makeSmall(spec, {0, 2}, x, codes({1, 1, 1, 1, 1}),
                {1,  2,   4,   8,   32,  64,  128, 256, nan, nan, nan, nan, nan, nan, nan, nan,
                 16, nan, nan, nan, 512, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan},
                {1});
  CHECK(reference(problem).reference == expected);
}

TEST_CASE("an alignment pads rows of one scale, too") {
  Spec spec = makeSpec(2, 2, 1, {one, whole}, {one, one, whole});
  spec.xScales.alignBytes = spec.wScales.alignBytes = 16;
  float nan = std::numeric_limits<float>::quiet_NaN();
  HostProblem problem =
      makeSmall(spec, {0, 1, 2}, codes({1, 1}), codes({1, 1, 1, 1}), {1, nan, nan, nan, 10},
                {1, nan, nan, nan, 2, nan, nan, nan, 3, nan, nan, nan, 4});
  CHECK(ScaleGeometry::ofX(spec, 2).stride == 4);
  CHECK(ScaleGeometry::ofW(spec).storedSize() == 16);
  CHECK(reference(problem).reference == std::vector<double>{1, 2, 30, 40});
}

TEST_CASE("an expert's groups of K lie as a row's would, in either order") {
  Spec spec = makeSpec(2, 1, 2, {Granule::expert(), one}, {whole, whole, whole});
  HostProblem problem =
      makeSmall(spec, {0, 1, 2}, codes({1, 1, 1, 1}), codes({1, 1, 1, 1}), {1, 2, 10, 20}, {1});
  CHECK(reference(problem).reference == std::vector<double>{3, 30});
  problem.spec.xScales.order = ScaleOrder::MnMajor;
  CHECK(scaleShape(problem.spec.xScales, {-1, 2}, 2) == std::vector<int64_t>{2, 2});
  problem.xScales = {1, 10, 2, 20};
  problem.xScaleStride = 2;
  CHECK(reference(problem).reference == std::vector<double>{3, 30});
}

TEST_CASE("mn_major weight scales: N is contiguous") {
  Spec spec = makeSpec(1, 2, 4, {whole, whole}, {one, one, Granule::of(2)});
  spec.wScales.order = ScaleOrder::MnMajor;
  HostProblem problem =
      makeSmall(spec, {0, 1}, codes({1, 1, 1, 1}), codes({1, 1, 1, 1, 1, 1, 1, 1}), {1},
                {1, 2, 10, 20}); // [K block][n]
  CHECK(reference(problem).reference == std::vector<double>{22, 44});
}

TEST_CASE("eager: every row is the one expert's, w is [N, K]") {
  Spec spec = makeSpec(1, 2, 2, {one, whole}, {one, whole});
  spec.dispatch = Dispatch::Eager;
  HostProblem problem =
      makeSmall(spec, {}, codes({1, 2, 3, 1}), codes({1, 1, 2, -1}), {2, 5}, {10, 100});
  CHECK(reference(problem).reference == std::vector<double>{60, 0, 200, 2500});
  CHECK(rowOwners(problem) == std::vector<int32_t>{0, 0});
}

TEST_CASE("grouped rows: offsets are clamped to a running maximum") {
  Spec spec = makeSpec(3, 1, 1, {whole, whole}, {whole, whole, whole});
  HostProblem problem = makeSmall(spec, {}, codes({1, 1, 1, 1, 1}), codes({1, 2, 3}), {1}, {1});
  auto owners = [&](std::vector<int32_t> offsets) {
    problem.offsets = std::move(offsets);
    return rowOwners(problem);
  };
  using Owners = std::vector<int32_t>;
  CHECK(owners({0, 2, 2, 5}) == Owners{0, 0, 2, 2, 2});
  CHECK(owners({1, 2, 3, 4}) ==
        Owners{-1, 0, 1, 2, -1});                        // rows before the first and after the last
  CHECK(owners({0, 3, 1, 4}) == Owners{0, 0, 0, 2, -1}); // a step back owns nothing
  CHECK(owners({-7, 2, 99, 3}) == Owners{0, 0, 1, 1, 1}); // out of range on both sides
  CHECK(owners({5, 5, 5, 5}) == Owners{-1, -1, -1, -1, -1});
  CHECK(owners({INT32_MAX, 0, 0, INT32_MIN}) == Owners{-1, -1, -1, -1, -1});
  problem.offsets = {1, 2, 3, 4};
  CHECK(reference(problem).reference == std::vector<double>{0, 1, 2, 3, 0});
}

TEST_CASE("batched and masked rows") {
  Spec spec = makeSpec(2, 1, 1, {whole, whole}, {whole, whole, whole});
  spec.dispatch = Dispatch::Batched;
  HostProblem problem = makeSmall(spec, {}, codes({1, 1, 1, 1}), codes({1, 2}), {1}, {1});
  problem.expertIds = {1, -1, 0, 2};
  CHECK(reference(problem).reference == std::vector<double>{2, 0, 1, 0});
  problem.spec.expertMapSize = 3;
  problem.expertMap = {-1, 0, 1}; // global 0 lives elsewhere
  CHECK(reference(problem).reference == std::vector<double>{1, 0, 0, 2});
  problem.expertIds = {3, 2, 1, -5};
  CHECK(reference(problem).reference == std::vector<double>{0, 2, 1, 0});

  problem.spec.dispatch = Dispatch::Masked;
  problem.spec.maxRows = 2;
  problem.spec.xScales.granule = {one, one, whole}; // [E, Mmax, K]
  problem.xScales = {10, 100, 1000, 10000};
  problem.counts = {1, 7};
  CHECK(reference(problem).reference == std::vector<double>{10, 0, 2000, 20000});
  problem.spec.xScales.granule = {whole, whole, whole};
  problem.xScales = {1};
  CHECK(reference(problem).reference == std::vector<double>{1, 0, 2, 2});
  problem.counts = {-3, 0};
  CHECK(reference(problem).reference == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("a poisoned row that nobody owns disturbs no other row") {
  HostProblem problem = twoByTwo({whole, whole}, {whole, whole, whole}, {1}, {1});
  problem.offsets = {1, 1, 2};
  problem.x[0] = problem.x[1] = 0x7f;
  CHECK(reference(problem).reference == std::vector<double>{0, 0, 9, 2});
}

TEST_CASE("e5m2 operands, mixed with e4m3") {
  HostProblem problem = twoByTwo({whole, whole}, {whole, whole, whole}, {1}, {1});
  problem.spec.xType = ElementType::F8E5M2;
  problem.x = {encodeE5M2(4), encodeE5M2(-1), encodeE5M2(16384), encodeE5M2(0)};
  CHECK(reference(problem).reference == std::vector<double>{3, 9, 49152, 0});
}

// The tiled kernel against the definition written as plainly as possible.
static double plainly(const HostProblem &problem, int64_t row, int64_t column) {
  int32_t expert = rowOwners(problem)[row];
  if (expert < 0)
    return 0;
  ScaleGeometry x = ScaleGeometry::ofX(problem.spec, problem.rows, problem.xScaleStride);
  ScaleGeometry w = ScaleGeometry::ofW(problem.spec);
  double sum = 0;
  for (int64_t k = 0; k < problem.spec.k; ++k)
    sum += double(decodeE4M3(problem.x[row * problem.xStride + k])) *
           problem.xScales[x.index(expert, row, k)] *
           decodeE4M3(problem.w[(expert * problem.spec.n + column) * problem.spec.k + k]) *
           problem.wScales[w.index(expert, column, k)];
  return sum;
}

TEST_CASE("tiles, steps and threads do not change the answer") {
  struct Case {
    const char *reason;
    int64_t n, k;
    std::vector<Granule> x, w;
    int64_t parts;
    std::vector<int64_t> phase;
  };
  const Granule g128 = Granule::of(128);
  for (const Case &c : {
           Case{"blocks, n and k ragged", 200, 336, {one, g128}, {one, g128, g128}, 1, {}},
           Case{"two parts of 100", 200, 256, {one, g128}, {one, g128, g128}, 2, {}},
           Case{"no K scales, k below one step", 24, 16, {one, whole}, {one, one, whole}, 1, {}},
           Case{"shard with a phase on K", 40, 320, {one, g128}, {one, g128, g128}, 1, {0, 64}},
           Case{
               "groups of 32", 24, 160, {one, Granule::of(32)}, {one, one, Granule::of(32)}, 1, {}},
       }) {
    CAPTURE(c.reason);
    Spec spec = makeSpec(5, c.n, c.k, c.x, c.w);
    spec.wScales.parts = c.parts;
    spec.xScales.phase = c.phase;
    if (!c.phase.empty())
      spec.wScales.phase = {0, 0, c.phase[1]};
    HostProblem problem = makeProblem(spec, 150, Routing::fromCounts({0, 65, 1, 0, 70}), 3,
                                      {.leadingRows = 5, .xPadBytes = 16});
    Selection all = Selection::all(problem);
    OracleResult parallel = reference(problem, all, 3), serial = reference(problem, all, 1);
    CHECK(parallel.reference == serial.reference);
    CHECK(parallel.bound == serial.bound);
    double worst = 0;
    for (int64_t r = 0; r < problem.rows; ++r)
      for (int64_t n = 0; n < c.n; n += 7) {
        double wanted = plainly(problem, r, n), got = parallel.reference[r * c.n + n];
        worst = std::max(worst, std::fabs(got - wanted) / (1e-30 + parallel.bound[r * c.n + n]));
      }
    CHECK(worst < 1e-6); // fp64 rounding in another order, far below the bound
  }
}

TEST_CASE("a sampled reference is part of the full one") {
  Spec spec = makeSpec(3, 512, 64, {one, whole}, {one, one, whole});
  HostProblem problem = makeProblem(spec, 70, Routing::uniform(), 9);
  OracleResult full = reference(problem);
  Selection selection = Selection::sampled(problem, 70 * 64 * 40, 5);
  CHECK(selection.rows.size() == 70);
  REQUIRE(selection.columns.size() == 40);
  CHECK(selection.columns.front() == 0);
  CHECK(selection.columns.back() == 511);
  OracleResult part = reference(problem, selection);
  for (size_t r = 0; r < 70; ++r)
    for (size_t c = 0; c < 40; ++c)
      REQUIRE(part.reference[r * 40 + c] == full.reference[r * 512 + selection.columns[c]]);
  CHECK(Selection::sampled(problem).columns.size() == 512); // all of it is affordable
}

TEST_CASE("the oracle and the runtime agree on how many scales a layout has") {
  struct Case {
    std::vector<Granule> granule;
    int64_t parts;
    std::vector<int64_t> phase;
    ScaleOrder order;
  };
  const Granule g128 = Granule::of(128);
  for (const Case &c : {Case{{whole, whole, whole}, 1, {}, ScaleOrder::RowMajor},
                        Case{{one, whole, whole}, 1, {}, ScaleOrder::RowMajor},
                        Case{{one, whole, whole}, 2, {}, ScaleOrder::RowMajor},
                        Case{{one, one, whole}, 1, {}, ScaleOrder::RowMajor},
                        Case{{one, g128, g128}, 1, {}, ScaleOrder::RowMajor},
                        Case{{one, g128, g128}, 2, {}, ScaleOrder::MnMajor},
                        Case{{one, g128, g128}, 2, {0, 64, 32}, ScaleOrder::RowMajor}}) {
    Spec spec = makeSpec(5, 328, 432, {one, g128}, c.granule);
    spec.wScales.parts = c.parts;
    spec.wScales.phase = c.phase;
    spec.wScales.order = c.order;
    int64_t size = 1;
    for (int64_t extent : scaleShape(spec.wScales, {5, 328, 432}, 5))
      size *= extent;
    CHECK(ScaleGeometry::ofW(spec).logicalSize() == size);
    CHECK(ScaleGeometry::ofX(spec, 77).logicalSize() == 77 * 4);
    CHECK(scaleShape(spec.xScales, {77, 432}, 5) == std::vector<int64_t>{77, 4});
  }
}

TEST_CASE("no rows, and rows without owners") {
  Spec spec = makeSpec(2, 8, 16, {one, whole}, {one, one, whole});
  HostProblem none = makeProblem(spec, 0, Routing::uniform(), 1);
  CHECK(reference(none).reference.empty());
  HostProblem unowned = makeProblem(spec, 3, Routing::empty(), 1);
  CHECK(reference(unowned).reference == std::vector<double>(24, 0.0));
}

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("the reference is fast enough to check real shapes with") {
  const Granule g128 = Granule::of(128);
  Spec spec = makeSpec(1, 256, 7168, {one, g128}, {one, g128, g128});
  HostProblem problem = makeProblem(spec, 256, Routing::uniform(), 1);
  auto begin = std::chrono::steady_clock::now();
  OracleResult result = reference(problem);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  MESSAGE("256 x 256 x 7168 in " << seconds << " s"); // 0.25 s on two idle cores
  CHECK(std::isfinite(result.reference.back()));
  CHECK(seconds < 30);
}
#endif

// What went wrong in other projects, at extents the emulator takes; docs/reports.md lists which
// report is tested where. A name begins with the report it comes from.
#include "tests/oracle/Fp8.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace moejit;
using namespace moejit::test;
using oracle::Routing;

namespace {

Spec perTensor(int64_t experts, int64_t n, int64_t k) {
  Spec spec;
  spec.numExperts = experts;
  spec.n = n;
  spec.k = k;
  spec.xScales.granule = {Granule::whole(), Granule::whole()};
  spec.wScales.granule = {Granule::of(1), Granule::whole(), Granule::whole()};
  return spec;
}

Spec blockScaled(Dispatch dispatch, int64_t experts, int64_t n, int64_t k, int64_t maxRows = 0) {
  Spec spec = perTensor(experts, n, k);
  spec.dispatch = dispatch;
  spec.maxRows = maxRows;
  spec.xScales.granule = {Granule::of(1), Granule::of(128)};
  if (dispatch == Dispatch::Masked)
    spec.xScales.granule.insert(spec.xScales.granule.begin(), Granule::of(1));
  spec.xScales.source = ScaleSource::Dynamic;
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  if (dispatch == Dispatch::Eager)
    spec.wScales.granule.erase(spec.wScales.granule.begin());
  return spec;
}

void check(const Artifact &artifact, const oracle::HostProblem &problem) {
  std::string wrong = run(artifact, problem, ThreadOrder::RoundRobin).wrong;
  CHECK_MESSAGE(wrong.empty(), wrong);
}

} // namespace

// Tiles wider than N wrote into the next row, and read past N and K. Every tile of every shape, not
// the one a heuristic picks.
TEST_CASE("kernels-community#1153: a tile wider than N stays in its row, whatever the tile") {
  constexpr int64_t columns[] = {128, 16, 48, 160, 192, 352}, depths[] = {64, 176, 192, 320};
  int turn = 0;
  for (int64_t n : columns)
    for (int64_t tileN : {64, 128, 192, 256}) {
      Spec spec = perTensor(2, n, depths[turn++ % 4]);
      KernelPlan plan = choosePlan(spec, Target(), 3);
      plan.tileN = tileN;
      plan.tileM = turn % 3 ? 64 : 128;
      plan.stages = 2;
      CAPTURE(canonicalText(spec));
      CAPTURE(tileN);
      // Rows of y lie apart, poison between them; the canaries are looked at too.
      oracle::ProblemOptions options;
      options.yPadElements = 8;
      check(build(spec, plan), oracle::makeProblem(spec, 3, Routing::uniform(), 7, options));
    }
}

// Counts that are no multiple of the tile gave wrong results; no limit was written down.
TEST_CASE("DeepGEMM#15: every count of rows is right, in each form of dispatch") {
  const std::vector<int64_t> counts = {1, 7, 8, 16, 63, 64, 65, 127, 128, 129};
  for (Dispatch dispatch :
       {Dispatch::Grouped, Dispatch::Masked, Dispatch::Batched, Dispatch::Eager}) {
    const bool isEager = dispatch == Dispatch::Eager;
    Spec spec =
        blockScaled(dispatch, isEager ? 1 : 4, 256, 256, dispatch == Dispatch::Masked ? 130 : 0);
    for (int64_t expectedRows : {1, 100000}) {
      Artifact artifact = build(spec, choosePlan(spec, Target(), expectedRows));
      for (size_t i = 0; i < counts.size(); ++i) {
        CAPTURE(counts[i]);
        if (isEager) {
          check(artifact, oracle::makeProblem(spec, counts[i], Routing::uniform(), 7));
          continue;
        }
        // One expert has the count alone, the others the counts that follow it.
        std::vector<int64_t> each = {counts[i], i % 2 ? 0 : counts[(i + 3) % 10], 0,
                                     i % 2 ? counts[(i + 7) % 10] : 1};
        int64_t rows =
            dispatch == Dispatch::Masked ? 4 * spec.maxRows : each[0] + each[1] + each[2] + each[3];
        check(artifact, oracle::makeProblem(spec, rows, Routing::fromCounts(each), 7));
      }
    }
  }
}

// One group of one row stalled: many column tiles, nothing else. At the extents of the report.
TEST_CASE("DeepGEMM#178: one group of one row, N = 24576, ends") {
  Spec spec = blockScaled(Dispatch::Grouped, 1, 24576, 1536);
  Artifact artifact = build(spec, choosePlan(spec, Target(), 1));
  check(artifact, oracle::makeProblem(spec, 1, Routing::oneExpert(), 7));
}

// Very uneven counts with many empty groups hung the masked kernel. Counts of the report over 32,
// in buffers as much smaller; the hint may change speed only.
TEST_CASE("sglang#7869: uneven counts and empty groups end, whatever rows are expected") {
  const std::vector<int64_t> counts = {125, 45, 0, 0, 0, 0, 0, 18, 16, 0, 1, 1, 39, 0, 0, 7};
  for (auto [n, k] : {std::pair<int64_t, int64_t>{192, 256}, {256, 128}}) {
    Spec spec = blockScaled(Dispatch::Masked, 16, n, k, 128);
    oracle::HostProblem problem =
        oracle::makeProblem(spec, 16 * 128, Routing::fromCounts(counts), 7);
    for (int64_t expected : {1, 114, 4096})
      check(build(spec, choosePlan(spec, Target(), expected)), problem);
  }
}

// -1 was turned into an address. Indices of the report; rows of nobody are zeroed, or untouched.
TEST_CASE("DeepGEMM#113: rows of index -1 are neither read nor written") {
  for (Skipped skipped : {Skipped::Zeroed, Skipped::Untouched}) {
    Spec spec = blockScaled(Dispatch::Batched, 2, 136, 256);
    spec.skipped = skipped;
    Artifact artifact = build(spec, choosePlan(spec, Target(), 384));
    oracle::HostProblem problem = oracle::makeProblem(spec, 384, Routing::oneExpert(0), 7);
    std::fill(problem.expertIds.begin() + 128, problem.expertIds.begin() + 201, 1);
    std::fill(problem.expertIds.begin() + 201, problem.expertIds.end(), -1);
    // Nobody's rows are poison.
    for (int64_t row = 201; row < 384; ++row)
      std::memset(problem.x.data() + row * problem.xStride, oracle::poisonByte, size_t(spec.k));
    check(artifact, problem);
    for (int32_t &id : problem.expertIds)
      id = id == -1 ? 2 : id; // the same for E and more
    check(artifact, problem);
  }
}

// An idle rank has no rows, null pointers, and may not abort.
TEST_CASE("sglang#38773: no rows succeed with null pointers, and the next launch is right") {
  for (Dispatch dispatch :
       {Dispatch::Grouped, Dispatch::Masked, Dispatch::Batched, Dispatch::Eager}) {
    Spec spec = blockScaled(dispatch, dispatch == Dispatch::Eager ? 1 : 3, 128, 4096,
                            dispatch == Dispatch::Masked ? 4 : 0);
    Artifact artifact = build(spec, choosePlan(spec, Target(), 0));
    GemmArguments nothing;
    Result<EmulatorReport> report = emulator().launch(artifact, nothing);
    REQUIRE_MESSAGE(bool(report), report.error().text());
    CHECK(report->blocks == 0);
    GemmArguments missing;
    missing.rows = dispatch == Dispatch::Masked ? 12 : 3;
    Result<EmulatorReport> refused = emulator().launch(artifact, missing);
    REQUIRE(!refused);
    CHECK(refused.error().code == ErrorCode::InvalidArgument);
    check(artifact, oracle::makeProblem(spec, missing.rows, Routing::uniform(), 7));
  }
}

// Padding rows of a scale buffer hold recycled memory: NaN, all ones, anything.
TEST_CASE("vllm#49784: what lies in the padding of packed scales changes no bit") {
  Spec spec = blockScaled(Dispatch::Grouped, 2, 128, 1024);
  spec.xScales.type = spec.wScales.type = ElementType::F8E8M0FNU;
  spec.xScales.packing = 4;
  Artifact artifact = build(spec, choosePlan(spec, Target(), 5));
  // Two rows of five words, each padded to eight.
  oracle::HostProblem problem = oracle::makeProblem(spec, 5, Routing::fromCounts({2, 3}), 7);
  REQUIRE(problem.xScaleStride == 8);
  std::vector<uint8_t> first;
  for (float padding : {NAN, 0.0f, 1e30f, -1.0f}) {
    for (int64_t word : {5, 6, 7, 13, 14, 15})
      for (int64_t byte = 0; byte < 4; ++byte)
        problem.xScales[size_t(4 * word + byte)] = padding;
    LaunchResult result = run(artifact, problem, ThreadOrder::RoundRobin);
    CHECK_MESSAGE(result.wrong.empty(), result.wrong);
    if (first.empty())
      first = result.output.bytes;
    CHECK(result.output.bytes == first);
  }
}

// Checked kernels: they report what is wrong with routing and scales, the same in every thread
// order, and compute what the unchecked ones do.
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <climits>
#include <cmath>

using namespace moejit;
using namespace moejit::test;

namespace {

constexpr float notANumber = NAN, infinity = INFINITY;

Spec groupedBlocks() {
  Spec spec;
  spec.numExperts = 4;
  spec.n = 192;
  spec.k = 272;
  spec.xScales.granule = {Granule::of(1), Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  return spec;
}

Spec groupedTokens() {
  Spec spec = groupedBlocks();
  spec.xScales = {};
  spec.xScales.granule = {Granule::of(1), Granule::whole()};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales.granule = {Granule::of(1), Granule::of(1), Granule::whole()};
  return spec;
}

Spec perExpert() {
  Spec spec = groupedBlocks();
  spec.xScales = {};
  spec.xScales.granule = {Granule::expert(), Granule::whole()};
  spec.wScales.granule = {Granule::of(1), Granule::whole(), Granule::whole()};
  return spec;
}

Spec maskedBlocks() {
  Spec spec = groupedBlocks();
  spec.dispatch = Dispatch::Masked;
  spec.maxRows = 72;
  spec.xScales.granule.insert(spec.xScales.granule.begin(), Granule::of(1));
  return spec;
}

Spec batchedTokens() {
  Spec spec = groupedTokens();
  spec.dispatch = Dispatch::Batched;
  return spec;
}

Artifact checkedKernel(const Spec &spec, int64_t rows = 100000) {
  PlanRequest request;
  request.checked = true;
  return build(spec, choosePlan(spec, Target(), rows, request));
}

/// Runs `problem`; run() compares findings with their definition, and values with the oracle where
/// the oracle has any. Gives what was to be found.
std::string report(const Artifact &artifact, const oracle::HostProblem &problem) {
  for (ThreadOrder order : {ThreadOrder::RoundRobin, ThreadOrder::Random}) {
    std::string wrong = run(artifact, problem, order).wrong;
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
  std::array<int64_t, errorWords> words = {};
  for (const CheckFinding &finding : expectedFindings(problem))
    words[size_t(finding.kind)] = checkWord(finding.index);
  return describeChecks(artifact.spec, words);
}

oracle::HostProblem problemFor(const Spec &spec, std::vector<int32_t> offsets, int64_t rows) {
  return oracle::makeProblem(spec, rows, oracle::Routing::fromOffsets(std::move(offsets)), 5);
}

} // namespace

TEST_CASE("a checked kernel reports nothing about a correct launch") {
  for (const Spec &spec :
       {groupedBlocks(), groupedTokens(), perExpert(), maskedBlocks(), batchedTokens()}) {
    CAPTURE(canonicalText(spec));
    Artifact artifact = checkedKernel(spec);
    int64_t rows = spec.dispatch == Dispatch::Masked ? spec.numExperts * spec.maxRows : 150;
    oracle::HostProblem problem =
        oracle::makeProblem(spec, rows, oracle::Routing::fromCounts({70, 0, 3, 20}), 5);
    CHECK(report(artifact, problem) == "");
  }
}

TEST_CASE("a checked kernel reports offsets that leave the rows or fall") {
  Artifact artifact = checkedKernel(groupedBlocks());
  const Spec &spec = artifact.spec;
  struct Case {
    std::vector<int32_t> offsets;
    const char *text;
  };
  const Case cases[] = {
      {{0, 30, 30, 60, 80}, ""},
      {{4, 30, 30, 60, 70}, ""}, // rows before the first expert and after the last are nobody's
      {{-1, 30, 30, 60, 80}, "offsets: entry 0 lies outside the rows"},
      {{0, 30, 30, 60, 81}, "offsets: entry 4 lies outside the rows"},
      {{0, 30, 29, 60, 80}, "offsets: entry 2 is less than the one before"},
      {{0, INT_MAX, 29, INT_MIN, 80},
       "offsets: entry 1 lies outside the rows; offsets: entry 2 is less than the one before"}};
  for (const Case &each : cases)
    CHECK(report(artifact, problemFor(spec, each.offsets, 80)) == each.text);
}

TEST_CASE("a checked kernel reports counts that are no buffer's") {
  Artifact artifact = checkedKernel(maskedBlocks());
  const Spec &spec = artifact.spec;
  oracle::HostProblem problem = oracle::makeProblem(spec, spec.numExperts * spec.maxRows,
                                                    oracle::Routing::fromCounts({72, 72, 0, 5}), 5);
  CHECK(report(artifact, problem) == "");
  problem.counts[1] = 73;
  problem.counts[2] = -1;
  CHECK(report(artifact, problem) == "counts: that of expert 1 is not from 0 to 72");
}

TEST_CASE("a checked kernel reports ids below -1, and takes others for other ranks'") {
  Artifact artifact = checkedKernel(batchedTokens());
  const Spec &spec = artifact.spec;
  oracle::HostProblem problem = oracle::makeProblem(spec, 40, oracle::Routing::uniform(), 5);
  problem.expertIds[7] = -1;
  problem.expertIds[8] = 4;
  problem.expertIds[9] = INT_MAX;
  CHECK(report(artifact, problem) == "");
  problem.expertIds[31] = INT_MIN;
  problem.expertIds[12] = -2;
  CHECK(report(artifact, problem) == "expertIds: that of row 12 is below -1");
}

// A calibration that missed an expert leaves zero, whose reciprocal is infinite; the other forms of
// a scale that is none: NaN, infinity, a negative one.
TEST_CASE("vllm#45212: a checked kernel names the expert whose scale is missing") {
  Artifact artifact = checkedKernel(perExpert());
  const Spec &spec = artifact.spec;
  for (float missing : {0.0f, -0.0f, notANumber, infinity, -infinity, -1.0f}) {
    CAPTURE(missing);
    oracle::HostProblem problem = problemFor(spec, {0, 20, 40, 60, 80}, 80);
    problem.xScales[2] = missing;
    // Rows of the expert are what the arithmetic gives; the oracle has no bound for them.
    LaunchResult result = run(artifact, problem, ThreadOrder::RoundRobin);
    CHECK(result.wrong.find("reported") == std::string::npos);
    CHECK(expectedFindings(problem) == std::vector<CheckFinding>{{CheckKind::XScale, 2}});
  }
  // Routed to nobody, it is not read, and every other row is right.
  oracle::HostProblem problem = problemFor(spec, {0, 20, 40, 40, 80}, 80);
  problem.xScales[2] = 0;
  CHECK(report(artifact, problem) == "");
  problem.wScales[3] = notANumber;
  CHECK(expectedFindings(problem) == std::vector<CheckFinding>{{CheckKind::WScale, 3}});
  CHECK(run(artifact, problem, ThreadOrder::RoundRobin).wrong.find("reported") ==
        std::string::npos);
}

TEST_CASE("a checked kernel finds the first bad scale of a layout, and ignores scales of nobody") {
  for (const Spec &spec : {groupedBlocks(), groupedTokens()}) {
    CAPTURE(canonicalText(spec));
    Artifact artifact = checkedKernel(spec);
    oracle::HostProblem problem = problemFor(spec, {4, 30, 30, 60, 70}, 80);
    // Row 75 is nobody's, and so are the weights of expert 1.
    auto geometry = [&](int64_t row) { return size_t(row); };
    problem.xScales[geometry(75)] = notANumber;
    problem.xScales[geometry(2)] = 0;
    size_t perExpertScales = problem.wScales.size() / 4;
    problem.wScales[perExpertScales] = -1;
    CHECK(report(artifact, problem) == "");
    problem.xScales[geometry(66)] = infinity;
    problem.xScales[geometry(17)] = 0;
    problem.wScales[2 * perExpertScales + 1] = notANumber;
    problem.wScales[3 * perExpertScales - 1] = 0;
    CHECK(expectedFindings(problem) ==
          std::vector<CheckFinding>{{CheckKind::XScale, 17},
                                    {CheckKind::WScale, int64_t(2 * perExpertScales + 1)}});
    for (ThreadOrder order : {ThreadOrder::RoundRobin, ThreadOrder::Random})
      CHECK(run(artifact, problem, order).wrong.find("reported") == std::string::npos);
  }
}

TEST_CASE("denormal scales are scales") {
  Artifact artifact = checkedKernel(groupedTokens());
  oracle::HostProblem problem = problemFor(artifact.spec, {0, 10, 20, 30, 40}, 40);
  problem.xScales[3] = 1e-41f;
  // So that the product of both scales is no denormal, which would lose bits.
  for (float &scale : problem.wScales)
    scale *= 0x1p40f;
  CHECK(report(artifact, problem) == "");
}

TEST_CASE("a kernel that is not checked has no operand for errors") {
  for (bool checked : {false, true}) {
    PlanRequest request;
    request.checked = checked;
    Artifact artifact = build(groupedBlocks(), choosePlan(groupedBlocks(), Target(), 100, request));
    bool hasErrors = false;
    for (const KernelParameter &parameter : artifact.launch.parameters)
      hasErrors |= parameter.operand == Operand::Errors;
    CHECK(hasErrors == checked);
    CHECK((artifact.source.find("red_max_global_i64") != std::string::npos) == checked);
  }
}

// The way of a Spec from the compiler's door to a comparison.
#include "tests/pipeline/Runner.h"

#include "tests/oracle/ScaleGeometry.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <climits>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

namespace moejit::test {

using oracle::Routing;

EmulatorOptions &emulatorOptions(ThreadOrder order) {
  const auto make = [](uint64_t seed) {
    EmulatorOptions made;
    made.seed = seed;
    made.workFolder = MOEJIT_TEST_WORK_FOLDER;
    made.maxSeconds = 60;
    return made;
  };
  static EmulatorOptions inTurn = make(0), shuffled = make(20);
  return order == ThreadOrder::Random ? shuffled : inTurn;
}

Emulator &emulator(ThreadOrder order) {
  const auto make = [](ThreadOrder order) {
    const EmulatorOptions &options = emulatorOptions(order);
    Result<std::unique_ptr<Emulator>> made = Emulator::create(options);
    if (!made)
      FAIL(made.error().text());
    return std::move(*made);
  };
  static const std::unique_ptr<Emulator> inTurn = make(ThreadOrder::RoundRobin),
                                         shuffled = make(ThreadOrder::Random);
  return order == ThreadOrder::Random ? *shuffled : *inTurn;
}

Artifact build(const Spec &spec, const KernelPlan &plan,
               const std::vector<std::string> &skippedPasses) {
  CompileOptions options;
  options.skippedPasses = skippedPasses;
  Result<Artifact> artifact = compileToSource(spec, Target(), plan, options);
  if (!artifact) {
    FAIL_CHECK(canonicalText(spec), "\n", planText(plan), "\n", artifact.error().text());
    return {};
  }
  return std::move(*artifact);
}

namespace {

/// `counts` for exactly `experts` experts: the middle is dropped or repeated, the ends stay.
std::vector<int64_t> fitted(std::vector<int64_t> counts, int64_t experts) {
  while (static_cast<int64_t>(counts.size()) > experts)
    counts.erase(counts.begin() + counts.size() / 2);
  while (static_cast<int64_t>(counts.size()) < experts)
    counts.insert(counts.begin() + counts.size() / 2, counts[counts.size() / 2]);
  return counts;
}

LaunchCase ofCounts(std::string name, std::vector<int64_t> counts, int64_t experts) {
  counts = fitted(std::move(counts), experts);
  int64_t rows = 0;
  for (int64_t count : counts)
    rows += count;
  return {std::move(name), rows, Routing::fromCounts(counts)};
}

} // namespace

std::vector<LaunchCase> edgeCases(const Spec &spec, int64_t tileRows) {
  const int64_t t = tileRows, e = spec.numExperts;
  oracle::ProblemOptions padded;
  padded.xPadBytes = 48;
  padded.yPadElements = 24;
  padded.xScalePad = 5;
  std::vector<LaunchCase> cases = {{"no row", 0},
                                   {"one row", 1, Routing::oneExpert(e - 1), padded}};
  if (spec.dispatch == Dispatch::Eager) {
    cases.push_back({"a few rows", 7});
    cases.push_back({"one row short of a tile", t - 1, {}, padded});
    cases.push_back({"a tile", t});
    cases.push_back({"one row past a tile", t + 1, {}, padded, true});
    cases.push_back({"more tiles than blocks", 5 * t + 9});
    return cases;
  }
  if (spec.dispatch == Dispatch::Masked) {
    // A launch has the rows of all buffers; experts differ by how many of theirs are in use.
    cases.clear();
    const int64_t most = spec.maxRows, rows = e * most;
    const auto add = [&](const char *name, std::vector<int64_t> counts) {
      cases.push_back({name, rows, Routing::fromCounts(fitted(std::move(counts), e)), padded});
    };
    add("empty first and last, tile + 1", {0, std::min(t + 1, most), 1, 0});
    add("empty in between, tile - 1", {t - 1, 0, 7, std::min(t, most)});
    add("whole buffers, counts past them", {most, most, 0, most});
    add("no expert owns a row", {0, 0, 0});
    add("one expert owns rows", {0, most - 1, 0, 0});
    cases.push_back({"no row", 0, Routing::empty()});
    return cases;
  }
  cases.push_back(ofCounts("empty first and last, tile + 1", {0, t + 1, 1, 0}, e));
  cases.push_back(ofCounts("empty in between, tile - 1", {t - 1, 0, 0, 2 * t + 1, 7}, e));
  cases.push_back(ofCounts("whole tiles", {t, 2 * t, t / 2, t}, e));
  cases.push_back({"one expert owns all", 2 * t + 3, Routing::oneExpert(e / 2), padded, true});
  cases.push_back({"skewed, more tiles than blocks", 4 * t + 5, Routing::skewed(), padded});
  cases.push_back({"no expert owns a row", t + 6, Routing::empty()});

  LaunchCase unowned{"rows before and after those of experts", 2 * t + 9, Routing::uniform(),
                     padded};
  unowned.options.leadingRows = 5;
  unowned.options.trailingRows = t + 2;
  cases.push_back(unowned);
  LaunchCase leading{"most rows come before the first expert", 2 * t, Routing::uniform()};
  leading.options.leadingRows = 2 * t - 3;
  cases.push_back(leading);

  if (spec.dispatch == Dispatch::Batched) {
    // Rows lie in any order, those of nobody among them; there are no offsets to be wrong.
    LaunchCase some = ofCounts("rows of nobody among the others", {3, t, 0, 20}, e);
    some.rows += 11;
    cases.push_back(some);
    std::erase_if(cases, [](const LaunchCase &launch) {
      return launch.options.leadingRows + launch.options.trailingRows > 0;
    });
    return cases;
  }

  // Clamped: into [0, S], and never below the boundary before.
  std::vector<int32_t> falling, extreme, late;
  const int32_t s = static_cast<int32_t>(t + 40);
  for (int64_t i = 0; i <= e; ++i) {
    falling.push_back(static_cast<int32_t>(i % 2 ? s - 3 * i : 11 * i - 9));
    extreme.push_back(i % 2 ? INT_MAX : INT_MIN);
    late.push_back(i == 0 ? s + 7 : 3);
  }
  cases.push_back({"offsets that fall and leave the rows", s, Routing::fromOffsets(falling)});
  cases.push_back({"extreme offsets", s, Routing::fromOffsets(extreme)});
  cases.push_back({"the first offset past all rows", s, Routing::fromOffsets(late), padded});
  return cases;
}

namespace {

/// The least of the indices that are wrong, for each kind.
class Findings {
public:
  void add(CheckKind kind, int64_t index) {
    auto [at, isNew] = least.emplace(kind, index);
    if (!isNew)
      at->second = std::min(at->second, index);
  }
  std::vector<CheckFinding> inOrder() const {
    std::vector<CheckFinding> all;
    for (const auto &[kind, index] : least)
      all.push_back({kind, index});
    return all;
  }

private:
  std::map<CheckKind, int64_t> least;
};

bool isUsable(float scale) { return std::isfinite(scale) && scale > 0; }

} // namespace

std::vector<CheckFinding> expectedFindings(const oracle::HostProblem &problem) {
  const Spec &spec = problem.spec;
  Findings findings;
  for (size_t i = 0; i < problem.offsets.size(); ++i) {
    if (problem.offsets[i] < 0 || problem.offsets[i] > problem.rows)
      findings.add(CheckKind::OffsetRange, int64_t(i));
    if (i > 0 && problem.offsets[i] < problem.offsets[i - 1])
      findings.add(CheckKind::OffsetOrder, int64_t(i));
  }
  for (size_t e = 0; e < problem.counts.size(); ++e)
    if (problem.counts[e] < 0 || problem.counts[e] > spec.maxRows)
      findings.add(CheckKind::CountRange, int64_t(e));
  for (size_t r = 0; r < problem.expertIds.size(); ++r)
    if (problem.expertIds[r] < -1 ||
        (spec.expertMapSize > 0 && problem.expertIds[r] >= spec.expertMapSize))
      findings.add(CheckKind::IdRange, int64_t(r));
  for (size_t i = 0; i < problem.expertMap.size(); ++i)
    if (problem.expertMap[i] < -1 || problem.expertMap[i] >= spec.numExperts)
      findings.add(CheckKind::MapRange, int64_t(i));
  // Only scales that some product is multiplied with: rows that experts own, and their experts.
  std::vector<int32_t> owners = oracle::rowOwners(problem);
  auto xScales = oracle::ScaleGeometry::ofX(spec, problem.rows, problem.xScaleStride);
  auto wScales = oracle::ScaleGeometry::ofW(spec);
  for (int64_t row = 0; row < problem.rows; ++row) {
    if (owners[size_t(row)] < 0)
      continue;
    for (int64_t k = 0; k < spec.k; k += 16) {
      int64_t at = xScales.index(owners[size_t(row)], row, k);
      if (!spec.quantizeFrom && !isUsable(problem.xScales[size_t(at)]))
        findings.add(CheckKind::XScale, at / xScales.packing);
    }
  }
  std::set<int32_t> users(owners.begin(), owners.end());
  users.erase(-1);
  for (int32_t expert : users)
    for (int64_t n = 0; n < spec.n; ++n)
      for (int64_t k = 0; k < spec.k; k += 16) {
        int64_t at = wScales.index(expert, n, k);
        if (!isUsable(problem.wScales[size_t(at)]))
          findings.add(CheckKind::WScale, at / wScales.packing);
      }
  return findings.inOrder();
}

oracle::HostProblem problemOf(const Spec &spec, const LaunchCase &launch, uint64_t seed) {
  oracle::ProblemOptions memory = launch.options;
  if (spec.xScales.kGranule() == 0)
    memory.xScalePad = 0; // a vector of scales has no rows to pad
  oracle::HostProblem problem =
      oracle::makeProblem(spec, launch.rows, launch.routing, seed, memory);
  // Counts are clamped to the buffers: full and empty ones may say more and less.
  for (int32_t &count : problem.counts)
    count = count == spec.maxRows ? INT_MAX : count == 0 ? INT_MIN : count;
  return problem;
}

void KeptWorkspace::bind(GemmArguments &arguments) {
  words.resize(std::max<size_t>(words.size(), arguments.workspaceBytes / 8 + 2));
  arguments.workspace = words.data();
  arguments.workspaceIsClean = true;
}

LaunchResult run(const Artifact &artifact, const oracle::HostProblem &problem, ThreadOrder order,
                 bool misalignScales, const oracle::OracleResult *reference, int64_t smLimit,
                 KeptWorkspace *kept) {
  const Spec &spec = artifact.spec;
  oracle::HostOutput output = oracle::HostOutput::make(problem);
  // Scales read one by one need no more alignment than a word has.
  const bool isCopiedInBulk = spec.xScales.alignBytes > 0;
  const size_t shift =
      misalignScales && !isCopiedInBulk ? size_t(elementBytes(spec.xScales.storedType())) : 0;
  const std::vector<uint8_t> stored = oracle::storedScales(spec.xScales, problem.xScales),
                             wScales = oracle::storedScales(spec.wScales, problem.wScales);
  std::vector<uint64_t> xScales((stored.size() + shift) / 8 + 2);
  std::memcpy(reinterpret_cast<uint8_t *>(xScales.data()) + shift, stored.data(), stored.size());

  GemmArguments arguments;
  arguments.rows = problem.rows;
  arguments.smLimit = smLimit;
  const auto bind = [](const auto &values) {
    return TensorArgument{
        values.empty() ? nullptr : const_cast<void *>(static_cast<const void *>(values.data())), 0};
  };
  if (spec.quantizeFrom)
    arguments.x = {const_cast<uint8_t *>(problem.xSource.data()), problem.xSourceStride};
  else
    arguments.x = {const_cast<uint8_t *>(problem.x.data()), problem.xStride};
  arguments.w = bind(problem.w);
  arguments.xScales = {reinterpret_cast<uint8_t *>(xScales.data()) + shift,
                       spec.xScales.kGranule() ? problem.xScaleStride : 0};
  arguments.wScales = bind(wScales);
  arguments.offsets = bind(problem.offsets);
  arguments.expertIds = bind(problem.expertIds);
  arguments.counts = bind(problem.counts);
  arguments.expertMap = bind(problem.expertMap);
  arguments.y = {output.data(), problem.yStride};
  std::array<int64_t, errorWords> errors = {};
  arguments.errors.data = errors.data();
  arguments.workspaceBytes = workspaceBytes(artifact.launch, arguments.rows);
  std::vector<uint64_t> workspace(arguments.workspaceBytes / 8 + 18, ~uint64_t(0));
  arguments.workspace = workspace.data();
  if (kept)
    kept->bind(arguments);

  LaunchResult result;
  Result<EmulatorReport> report = emulator(order).launch(artifact, arguments);
  result.output = output;
  if (!report) {
    result.wrong = report.error().text();
    return result;
  }
  if (problem.rows == 0) {
    result.wrong = report->blocks == 0 ? "" : "launched blocks for no row";
    return result;
  }
  oracle::Comparison comparison =
      oracle::compare(problem, reference ? *reference : oracle::reference(problem), output);
  result.worstRatio = comparison.worstRatio;
  result.compared = comparison.compared;
  if (!comparison.ok())
    result.wrong = comparison.text();
  const bool isChecked = artifact.planText.find("checked=true") != std::string::npos;
  const std::vector<CheckFinding> expected =
      isChecked ? expectedFindings(problem) : std::vector<CheckFinding>();
  if (checkFindings(errors) != expected) {
    std::array<int64_t, errorWords> words = {};
    for (const CheckFinding &finding : expected)
      words[size_t(finding.kind)] = checkWord(finding.index);
    result.wrong += fmt::format("reported '{}', expected '{}'", describeChecks(spec, errors),
                                describeChecks(spec, words));
  }
  return result;
}

LaunchResult run(const Artifact &artifact, const LaunchCase &launch, uint64_t seed,
                 ThreadOrder order) {
  return run(artifact, problemOf(artifact.spec, launch, seed), order, launch.misalignScales);
}

std::string runQuantization(const Artifact &artifact, const oracle::QuantizeProblem &problem,
                            ThreadOrder order, KeptWorkspace *kept) {
  oracle::QuantizeOutput output = oracle::QuantizeOutput::make(problem);
  GemmArguments arguments;
  arguments.rows = problem.rows;
  arguments.x = {const_cast<uint8_t *>(problem.x.data()), problem.xStride};
  arguments.xScales = {output.scaleData(), problem.scaleStride};
  arguments.y = {output.yData(), problem.yStride};
  arguments.workspaceBytes = workspaceBytes(artifact.launch, problem.rows);
  std::vector<uint64_t> workspace(arguments.workspaceBytes / 8 + 2, ~uint64_t(0));
  arguments.workspace = workspace.data();
  if (kept)
    kept->bind(arguments);
  Result<EmulatorReport> report = emulator(order).launch(artifact, arguments);
  if (!report)
    return report.error().text();
  oracle::QuantizeComparison comparison = oracle::compareQuantized(problem, output);
  return comparison.ok() ? "" : "codes differ: " + comparison.text();
}

void checkAll(const Artifact &artifact, const std::vector<LaunchCase> &launches,
              const std::string &what) {
  if (artifact.source.empty())
    return;
  int reported = 0;
  for (size_t i = 0; i < launches.size(); ++i) {
    std::string wrong =
        run(artifact, launches[i], 100 + i, i % 2 ? ThreadOrder::Random : ThreadOrder::RoundRobin)
            .wrong;
    if (wrong.empty())
      continue;
    if (++reported > 3)
      break;
    FAIL_CHECK(what, "\n  launch: ", launches[i].name, ", ", launches[i].rows, " rows\n  ", wrong);
  }
}

} // namespace moejit::test

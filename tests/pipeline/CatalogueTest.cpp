// The kernels that come with moejit (kernels/*.mlir) on the emulator: all of K, and every plan of
// every range of rows, with fewer experts and a few column tiles. Minutes: ctest --preset long.
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace moejit;
using namespace moejit::test;

namespace {

std::vector<std::filesystem::path> catalogue() {
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(MOEJIT_SOURCE_DIR "/kernels"))
    if (entry.path().extension() == ".mlir")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// `spec` with the least of experts, columns and buffers in which every edge of `plan`'s tiles is
/// left: two whole tiles of columns and one of another width, in each part where there are parts.
Spec reduced(Spec spec, const KernelPlan &plan) {
  if (spec.computation == Computation::Quantize)
    return spec;
  spec.numExperts = std::min<int64_t>(spec.numExperts, 4);
  if (spec.expertMapSize > 0)
    spec.expertMapSize = 6;
  spec.n = std::min(spec.n, 2 * plan.tileN + 128);
  if (spec.dispatch == Dispatch::Masked)
    spec.maxRows = std::min(spec.maxRows, 2 * plan.tileM + 8);
  return spec;
}

/// Of the launches of Runner.h those that a K of thousands leaves time for.
std::vector<LaunchCase> launchesOf(const Spec &spec, const KernelPlan &plan) {
  std::vector<LaunchCase> launches = edgeCases(spec, plan.tileM);
  const bool isMasked = spec.dispatch == Dispatch::Masked;
  std::erase_if(launches, [&](const LaunchCase &launch) {
    return launch.rows == 0 || (!isMasked && launch.rows > 3 * plan.tileM + 8);
  });
  launches.resize(std::min<size_t>(launches.size(), 4));
  return launches;
}

void runKernel(const std::filesystem::path &file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  Result<Spec> spec = parseMlir(text.str(), file.string(), "", [](const std::string &) {});
  REQUIRE_MESSAGE(spec, file.string(), ": ", spec.error().text());
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> plans;
  int launches = 0;
  for (const PlannedRange &range : planRanges(*spec, Target())) {
    if (std::find(plans.begin(), plans.end(), planText(range.plan)) != plans.end())
      continue;
    plans.push_back(planText(range.plan));
    const std::string what = file.stem().string() + ", " + plans.back();
    const Artifact artifact = build(reduced(*spec, range.plan), range.plan);
    if (artifact.source.empty())
      continue; // build has failed a check
    if (spec->computation == Computation::Quantize) {
      for (int64_t rows : {1, 37, 300}) {
        const std::string wrong = runQuantization(
            artifact, oracle::makeQuantizeProblem(*spec, rows, 70 + static_cast<uint64_t>(rows)),
            rows % 2 ? ThreadOrder::Random : ThreadOrder::RoundRobin);
        CHECK_MESSAGE(wrong.empty(), what, ", ", rows, " rows: ", wrong);
        ++launches;
      }
      continue;
    }
    const std::vector<LaunchCase> cases = launchesOf(artifact.spec, range.plan);
    CHECK(!cases.empty());
    checkAll(artifact, cases, what);
    launches += static_cast<int>(cases.size());
  }
  std::fprintf(stderr, "%s: %zu plans, %d launches, %.1f s\n", file.stem().c_str(), plans.size(),
               launches,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

/// Every other kernel, so that two processes share them.
void runPart(size_t part) {
  // Of a launch, on a machine that may be busy with other things.
  for (ThreadOrder order : {ThreadOrder::RoundRobin, ThreadOrder::Random})
    emulatorOptions(order).maxSeconds = 900;
  const std::vector<std::filesystem::path> files = catalogue();
  REQUIRE(files.size() > 1);
  for (size_t i = part; i < files.size(); i += 2)
    SUBCASE(files[i].stem().c_str()) { runKernel(files[i]); }
}

} // namespace

TEST_CASE("catalogue part 0") { runPart(0); }
TEST_CASE("catalogue part 1") { runPart(1); }

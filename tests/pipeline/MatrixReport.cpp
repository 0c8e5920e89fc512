// Runs the whole matrix and writes docs/results/matrix-emulator.md.
#include "tests/pipeline/MatrixReport.h"

#include "runtime/Rules.h"
#include "tests/pipeline/MatrixRun.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace moejit::test::matrix {

namespace {

constexpr const char *help =
    R"(usage: moejit-pipeline-tests --matrix-report [-o FILE] [--step N] [--compile N] [--compute N] [--threads N]

Asks the rules about every N-th combination of layouts (1), compiles N of the legal ones to source
(20000), computes N kernels on the emulator over all edge shapes (400; first those that cover every
legal pair of values) and compares every element with the oracle. Writes the counts to FILE.
)";

/// Does `work` for every index below `count`, on `threads` threads.
void forEach(int64_t count, unsigned threads, const std::function<void(int64_t)> &work) {
  std::atomic<int64_t> next = 0;
  auto loop = [&] {
    for (int64_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::thread> helpers;
  for (unsigned t = 1; t < threads; ++t)
    helpers.emplace_back(loop);
  loop();
  for (std::thread &helper : helpers)
    helper.join();
}

Census wholeCensus(const ReportOptions &options, std::string &problem) {
  std::vector<Census> parts(options.threads);
  std::vector<std::string> problems(options.threads);
  forEach(options.threads, options.threads, [&](int64_t i) {
    parts[size_t(i)] = takeCensus(i * options.censusStep, options.censusStep * options.threads,
                                  problems[size_t(i)]);
  });
  Census all;
  for (size_t i = 0; i < parts.size(); ++i) {
    all.add(parts[i]);
    if (!problems[i].empty())
      problem = problems[i];
  }
  return all;
}

/// The kernels to compute: those that cover, then others drawn from the legal ones.
std::vector<Choice> chooseComputed(const Census &census, int64_t count, size_t &covering) {
  // A cover of some is one of all pairs long before all are looked at.
  std::vector<Choice> sample;
  size_t step = std::max<size_t>(1, census.legal.size() / 100000);
  for (size_t i = 0; i < census.legal.size(); i += step)
    sample.push_back(census.legal[i]);
  std::vector<Choice> chosen = coveringSet(sample);
  covering = chosen.size();
  oracle::Random random(3);
  while (int64_t(chosen.size()) < count)
    chosen.push_back(census.legal[random.below(census.legal.size())]);
  return chosen;
}

std::string page(const Census &census, const Tally &compiled, const Tally &computed,
                 size_t covering, const std::vector<std::string> &failures) {
  std::string text =
      "# The matrix on the emulator\n\n"
      "Written by `moejit-pipeline-tests --matrix-report -o docs/results/matrix-emulator.md`.\n\n"
      "Every combination of dispatch form, granule, storage order, alignment, type, packing, parts "
      "and phase of both sides' scales, quantization on the way and expert map\n"
      "(`tests/pipeline/MatrixSpecs.cpp`); data and output types, accumulation, rows nobody owns, "
      "N, K, experts, plans and checked kernels go along by turns. Each combination is either "
      "refused by\na rule, or must compile and compute right; how many of those did is below.\n\n"
      "| combinations | count |\n|---|--:|\n";
  int64_t refused = 0;
  for (const auto &[id, count] : census.refused)
    refused += count;
  text += fmt::format("| all | {} |\n| refused | {} |\n| legal | {} |\n\n", census.combinations,
                      refused, census.legal.size());
  text += "| refused first by | count | rule |\n|---|--:|---|\n";
  for (const auto &[id, count] : census.refused)
    text += fmt::format("| {} | {} | {} |\n", id, count, findRule(id)->summary);
  text +=
      fmt::format("\n| of the legal ones | kernels | launches | elements | failed | worst error "
                  "/ bound |\n|---|--:|--:|--:|--:|--:|\n"
                  "| compiled to source | {} | | | {} | |\n"
                  "| computed, all edge shapes | {} | {} | {} | {} | {:.3f} |\n\n"
                  "{} of the computed kernels cover every pair of values that is legal "
                  "together; the others are drawn.\n",
                  compiled.kernels, compiled.failed, computed.kernels, computed.launches,
                  computed.elements, computed.failed, computed.worstRatio, covering);
  if (!computed.worst.empty())
    text += fmt::format("\nThe worst element is of\n\n```\n{}\n```\n", computed.worst);
  if (!failures.empty()) {
    text += "\n## Failures\n\n";
    for (const std::string &failure : failures)
      text += fmt::format("```\n{}\n```\n", failure);
  }
  return text;
}

bool readNumber(const std::string &text, int64_t least, int64_t &number) {
  auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && rest == text.data() + text.size() && number >= least;
}

} // namespace

int runReport(int argc, char **argv) {
  ReportOptions options;
  int64_t threads = options.threads;
  for (int i = 2; i < argc; i += 2) {
    std::string option = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    bool isRead = true;
    if (option == "-o")
      options.path = value;
    else if (option == "--step")
      isRead = readNumber(value, 1, options.censusStep);
    else if (option == "--compile")
      isRead = readNumber(value, 0, options.compiledKernels);
    else if (option == "--compute")
      isRead = readNumber(value, 0, options.computedKernels);
    else if (option == "--threads")
      isRead = readNumber(value, 1, threads);
    else
      isRead = false;
    if (!isRead || value.empty())
      return fmt::print(stderr, "{}", help), 2;
  }
  options.threads = static_cast<unsigned>(std::min<int64_t>(threads, 256));

  auto begin = std::chrono::steady_clock::now();
  auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::string problem;
  Census census = wholeCensus(options, problem);
  fmt::print("{} combinations, {} legal, in {:.0f} s\n", census.combinations, census.legal.size(),
             seconds());
  if (!problem.empty())
    return fmt::print("{}\n", problem), 1;

  std::mutex mutex;
  std::vector<std::string> failures;
  Tally compiled, computed;
  auto note = [&](Tally &tally, const KernelOutcome &outcome) {
    std::lock_guard guard(mutex);
    tally.add(outcome);
    if (!outcome.wrong.empty()) {
      failures.push_back(canonicalText(outcome.spec) + "\n" + outcome.plan + "\n" + outcome.wrong);
      fmt::print("FAILED {}\n", failures.back());
    }
  };
  int64_t legal = int64_t(census.legal.size());
  int64_t count = std::min(options.compiledKernels, legal);
  forEach(count, options.threads,
          [&](int64_t i) { note(compiled, compileOne(census.legal[size_t(i * legal / count)])); });
  fmt::print("{} compiled to source, {} failed, after {:.0f} s\n", compiled.kernels,
             compiled.failed, seconds());
  size_t covering = 0;
  std::vector<Choice> chosen = chooseComputed(census, options.computedKernels, covering);
  forEach(int64_t(chosen.size()), options.threads, [&](int64_t i) {
    note(computed, computeOne(chosen[size_t(i)], 1000 + uint64_t(i), /*takesAll=*/true));
  });
  fmt::print("{} kernels computed ({} cover), {} launches, {} elements, {} failed, worst {:.3f} of "
             "its bound, after {:.0f} s\n",
             computed.kernels, covering, computed.launches, computed.elements, computed.failed,
             computed.worstRatio, seconds());
  if (!options.path.empty())
    std::ofstream(options.path) << page(census, compiled, computed, covering, failures);
  return failures.empty() ? 0 : 1;
}

} // namespace moejit::test::matrix

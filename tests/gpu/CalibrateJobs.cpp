// Chooses kernels and operands, launches them on both devices and tallies what comes back.
#include "tests/gpu/CalibrateJobs.h"

#include "runtime/Checks.h"
#include "tests/gpu/CalibrateProblems.h"
#include "tests/oracle/Compare.h"
#include "tests/oracle/Fp8.h"
#include "tests/oracle/TensorCoreModel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <climits>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

namespace moejit::gpu {

namespace {

/// "grouped.w-block.x-group.bf16.328x720.suffix" in words.
std::vector<std::string> wordsOf(const std::string &name) {
  std::vector<std::string> words;
  size_t begin = 0;
  while (begin <= name.size()) {
    size_t end = std::min(name.find('.', begin), name.size());
    words.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

/// Dispatch, layout and output type of a case: the extents left out.
std::string familyOf(const Case &entry) {
  std::vector<std::string> words = wordsOf(entry.name);
  if (words.size() < 5 || words[0] == "generated")
    return entry.name;
  std::string family = fmt::format("{}, {} {}, {}", words[0], words[1], words[2], words[3]);
  for (size_t i = 5; i < words.size(); ++i)
    family += ", " + words[i];
  return family;
}

/// Routings that reach the edges of tiles, rows of nobody, and counts and offsets out of range.
std::vector<RoutingCase> calibratedRoutings(const Case &entry, bool isQuick) {
  static const std::set<std::string> names = {
      "tile 64 ± 1",   "both ends unowned",   "offsets decreasing",
      "129 rows",      "counts out of range", "rows of nobody among the others",
      "padded strides"};
  std::vector<RoutingCase> chosen;
  for (RoutingCase &routing : routingsOf(entry))
    if (names.count(routing.name))
      chosen.push_back(std::move(routing));
  if (isQuick && chosen.size() > 1)
    chosen.erase(chosen.begin() + 1, chosen.end());
  return chosen;
}

/// Whether the model of tests/oracle says every bit of a random result: scales of both sides belong
/// to the step of K, so that nothing is left to the order in which a kernel applies them.
bool isModelled(const Spec &spec) {
  return spec.xScales.kGranule() != 0 && spec.wScales.kGranule() != 0 &&
         spec.xType == ElementType::F8E4M3FN && spec.wType == ElementType::F8E4M3FN &&
         spec.accumulate == Accumulate::Exact && spec.xScales.phase.empty();
}

/// Tallies the N columns of rows that experts own. `bounds`: of all rows, or empty.
static void compareOwned(const LaunchImage &image, const BothResults &results,
                         const std::vector<double> &bounds, const std::string &what, Tally &tally) {
  const oracle::HostProblem &problem = *image.problem;
  std::vector<int32_t> owners = oracle::rowOwners(problem);
  const int64_t bytes = oracle::bytesOf(problem.spec.outType);
  const size_t y = image.exactY().offset;
  for (int64_t r = 0; r < problem.rows; ++r) {
    if (owners[size_t(r)] < 0)
      continue;
    const size_t at = y + size_t(r * problem.yStride * bytes);
    compareElements({problem.spec.outType, results.gpu.data() + at, results.emulator.data() + at,
                     problem.spec.n},
                    bounds.empty() ? nullptr : bounds.data() + r * problem.spec.n,
                    fmt::format("row {} of {}", r, what), tally);
  }
}

static void compareWithModel(const LaunchImage &image, const BothResults &results, Tally &tally) {
  const oracle::HostProblem &problem = *image.problem;
  oracle::HostOutput model = oracle::runModel(problem);
  BothResults pair = results;
  std::memcpy(pair.emulator.data() + image.places[LaunchImage::Y].offset, model.bytes.data(),
              model.bytes.size());
  Tally beside;
  compareOwned(image, pair, {}, "the model", beside);
  tally.modelElements = beside.elements;
  tally.modelEqual = beside.equal;
}

} // namespace

bool CalibrateOptions::takes(const std::string &name) const {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string &text) {
           return name.find(text) != std::string::npos;
         });
}

std::vector<const Case *> calibratedGemms(const std::vector<Case> &cases,
                                          const CalibrateOptions &options) {
  static const std::set<std::string> everywhere = {
      "w-tensor x-tensor",  "w-expert x-expert",   "w-channel x-token", "w-block x-group",
      "w-block x-group-mn", "w-tensor x-group-mn", "w-block x-token"};
  std::set<std::string> taken;
  std::vector<const Case *> chosen, later;
  for (const Case &entry : cases) {
    if (entry.spec.computation != Computation::Gemm || !entry.isIn("matrix") ||
        !options.takes(entry.name))
      continue;
    std::vector<std::string> words = wordsOf(entry.name);
    const bool isPlain = words.size() == 5 && words[1].rfind("w-", 0) == 0 &&
                         words[2].rfind("x-", 0) == 0 && !std::isdigit(words[1][2]);
    const bool isAsked = options.takesAll ||
                         (!entry.isIn("generated") && entry.spec.numExperts <= 64 &&
                          (!isPlain || everywhere.count(words[1] + " " + words[2])) &&
                          !(words[0] == "masked" && words[2] == "scales" && words[1].size() > 5));
    // Of the plain layouts 16-bit and f32 results; the former hide most of how sums were rounded.
    std::string family = familyOf(entry);
    if (isPlain && entry.spec.outType == ElementType::F16 &&
        entry.spec.dispatch != Dispatch::Masked)
      continue;
    if (options.isQuick ? !entry.isIn("quick") : !isAsked)
      continue;
    if (!taken.insert(family).second && !options.takesAll)
      continue;
    (entry.isIn("quick") ? chosen : later).push_back(&entry);
  }
  chosen.insert(chosen.end(), later.begin(), later.end());
  return chosen;
}

Calibration::Calibration(const CalibrateOptions &options, const Device &device, BothDevices &both,
                         std::shared_ptr<Cache> bundle, const std::vector<Case> &cases)
    : options(options), device(device), both(both), bundle(std::move(bundle)), cases(cases) {
  JitOptions jitOptions;
  jitOptions.cache = this->bundle;
  jitOptions.driver = &device.api();
  jit = std::make_unique<Jit>(jitOptions);
  jitOptions.plan.checked = true;
  checkedJit = std::make_unique<Jit>(jitOptions);
}

bool Calibration::run() {
  std::vector<Job> jobs = plan();
  std::atomic<size_t> next = 0, ran = 0;
  auto work = [&] {
    device.makeCurrent();
    for (size_t i = next++; i < jobs.size(); i = next++) {
      if (options.seconds > 0 && options.secondsSinceStart() > options.seconds)
        break;
      const double begin = options.secondsSinceStart();
      Result<void> done = jobs[i].run();
      ++ran;
      if (!done) {
        Tally tally;
        tally.failures = 1;
        tally.first = fmt::format("{}: {}", jobs[i].name, done.error().text());
        tallies.add(Section::Specified, "launches that ended in an error", tally);
      }
      fmt::print(stderr, "{:6.1f} s {}: {:.1f} s\n", options.secondsSinceStart(), jobs[i].name,
                 options.secondsSinceStart() - begin);
    }
  };
  const unsigned threads =
      options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < threads; ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  if (ran < jobs.size())
    page.notRun = fmt::format("{} of {} kernels and problems, for want of time", jobs.size() - ran,
                              jobs.size());
  return ran == jobs.size();
}

const Case *Calibration::find(const std::string &name) const {
  for (const Case &entry : cases)
    if (entry.name == name && options.takes(name))
      return &entry;
  return nullptr;
}

std::vector<Calibration::Job> Calibration::plan() {
  std::vector<Job> jobs;
  auto put = [&](const std::string &what, const char *name, auto method) {
    if (const Case *entry = find(name))
      jobs.push_back({fmt::format("{}, {}", what, name),
                      [this, entry, method] { return (this->*method)(*entry); }});
  };
  put("probes", "eager.w-channel.x-token.f32.328x720", &Calibration::runProbes);
  put("sums", "eager.w-channel.x-token.f32.328x720", &Calibration::runSums);
  for (const char *name :
       {"eager.w-channel.x-token.f32.328x720", "grouped.w-channel.x-token.f32.328x720.e5m2-e4m3",
        "grouped.w-channel.x-token.f32.328x720.e4m3-e5m2",
        "grouped.w-channel.x-token.f32.328x720.e5m2-e5m2"})
    put("every pair of codes", name, &Calibration::runPairs);
  for (const char *name :
       {"grouped.w-channel.x-token.bf16.328x720", "grouped.w-channel.x-token.f16.328x720",
        "eager.w-channel.x-token.f32.328x720"})
    put("roundings", name, &Calibration::runRoundings);
  for (const Case &entry : cases)
    if (entry.spec.computation == Computation::Quantize &&
        (!options.isQuick || entry.isIn("quick")) && options.takes(entry.name))
      for (int64_t expectedRows : firstRows(entry, *jit))
        jobs.push_back({entry.name, [this, &entry, expectedRows] {
                          return runQuantization(entry, expectedRows);
                        }});
  for (const Case &entry : cases)
    if (entry.isIn("checked") && options.takes(entry.name))
      for (int64_t expectedRows : firstRows(entry, *checkedJit))
        jobs.push_back({"checked " + entry.name,
                        [this, &entry, expectedRows] { return runChecked(entry, expectedRows); }});
  for (const Case *entry : calibratedGemms(cases, options)) {
    std::vector<int64_t> ranges = firstRows(*entry, *jit);
    for (size_t i = 0; i < ranges.size(); ++i)
      jobs.push_back({fmt::format("{}, rows from {}", entry->name, ranges[i]),
                      [this, entry, rows = ranges[i], isFirst = i == 0] {
                        return runGemm(*entry, rows, isFirst);
                      }});
  }
  return jobs;
}

std::vector<int64_t> Calibration::firstRows(const Case &entry, const Jit &from) const {
  std::vector<int64_t> rows;
  for (const IndexedRange &range :
       bundle->ranges(lookupKeyText(entry.spec, Target(), from.options().plan)))
    rows.push_back(range.minRows);
  if (options.isQuick && rows.size() > 1)
    rows.erase(rows.begin(), rows.end() - 1);
  else if (!options.takesAll && !entry.isIn("quick") && rows.size() > 2)
    rows.erase(rows.begin() + 1, rows.end() - 1);
  return rows;
}

Result<void> Calibration::launchGemm(Kernel &kernel, const oracle::HostProblem &problem,
                                     const std::string &what, const Use &use) {
  LaunchImage image(problem, kernel.workspaceBytes(problem.rows));
  size_t errorsAt = 0;
  LaunchBytes launch = launchBytes(image, errorsAt);
  Result<BothResults> results = both.run(kernel, launch, what);
  if (!results)
    return results.error();
  use(image, *results, errorsAt);
  return {};
}

void Calibration::compareRest(const Kernel &kernel, const LaunchImage &image,
                              const BothResults &results, const std::string &what) {
  const oracle::HostProblem &problem = *image.problem;
  const Spec &spec = problem.spec;
  std::vector<int32_t> owners = oracle::rowOwners(problem);
  const int64_t bytes = oracle::bytesOf(spec.outType);
  const LaunchImage::Place y = image.places[LaunchImage::Y];
  const size_t row0 = image.exactY().offset;
  Tally nobody, outside;
  nobody.launches = outside.launches = 1;
  auto compare = [&](size_t from, size_t to, const char *part, Tally &tally) {
    compareBytes(results.gpu.data() + from, results.emulator.data() + from, int64_t(to - from),
                 fmt::format("{} of {}", part, what), tally);
  };
  size_t end = y.offset;
  for (int64_t r = 0; r < problem.rows; ++r) {
    const size_t at = row0 + size_t(r * problem.yStride * bytes);
    compare(end, at, "padding of y", outside);
    end = at + size_t(spec.n * bytes);
    if (owners[size_t(r)] < 0)
      compare(at, end, "rows of nobody", nobody);
  }
  compare(end, results.gpu.size(), "what follows y", outside);
  compare(0, image.places[LaunchImage::Workspace].offset, "the operands", outside);
  const char *dispatch = dispatchName(spec.dispatch);
  if (nobody.elements > 0)
    tallies.add(Section::Specified,
                fmt::format("rows that nobody owns, {}, {}", dispatch,
                            spec.skipped == Skipped::Zeroed ? "zeroed" : "untouched"),
                nobody);
  tallies.add(Section::Specified,
              fmt::format("operands, padding and canaries, {} (bytes)", dispatch), outside);
  if (!spec.quantizeFrom)
    return;
  const size_t workspace = image.places[LaunchImage::Workspace].offset;
  Tally quantized;
  quantized.launches = 1;
  // A code may be a NaN, whose sign nobody specifies: that of a row of nobody is one.
  const RegionPlace codes =
      regionPlace(kernel.artifact().launch, Operand::XQuantized, problem.rows);
  compareElements({spec.xType, results.gpu.data() + workspace + codes.offset,
                   results.emulator.data() + workspace + codes.offset, int64_t(codes.bytes)},
                  nullptr, "the codes of " + what, quantized);
  const RegionPlace scales =
      regionPlace(kernel.artifact().launch, Operand::XQuantizedScales, problem.rows);
  compare(workspace + scales.offset, workspace + scales.offset + scales.bytes, "the scales",
          quantized);
  tallies.add(Section::Specified,
              fmt::format("x quantized in the launch, {}: codes and scales (bytes)", dispatch),
              quantized);
}

Result<void> Calibration::runGemm(const Case &entry, int64_t expectedRows, bool isFirstRange) {
  Result<std::shared_ptr<Kernel>> kernel = jit->get(entry.spec, expectedRows);
  if (!kernel)
    return kernel.error();
  std::vector<RoutingCase> routings = calibratedRoutings(entry, options.isQuick);
  for (size_t i = 0; i < routings.size(); ++i)
    for (bool isExact : {true, false}) {
      oracle::HostProblem problem = gpu::makeProblem(entry, routings[i], 9000 + i);
      if (isExact)
        makeExact(problem);
      const std::string what = fmt::format("{}, {}, rows from {}{}", entry.name, routings[i].name,
                                           expectedRows, isExact ? ", exact sums" : "");
      Result<void> launched = launchGemm(
          **kernel, problem, what,
          [&](const LaunchImage &image, const BothResults &results, size_t) {
            Tally tally;
            tally.launches = 1;
            std::vector<double> bounds;
            if (!isExact) {
              oracle::OracleResult reference =
                  oracle::reference(problem, oracle::Selection::all(problem), 1);
              bounds = std::move(reference.bound);
              for (size_t e = 0; e < bounds.size(); ++e)
                bounds[e] += oracle::halfUlp(entry.spec.outType,
                                             std::fabs(reference.reference[e]) + bounds[e]);
            }
            compareOwned(image, results, bounds, what, tally);
            if (!isExact && i == 0 && isFirstRange && isModelled(entry.spec))
              compareWithModel(image, results, tally);
            tallies.add(isExact ? Section::Exact : Section::Random, familyOf(entry), tally);
            compareRest(**kernel, image, results, what);
          });
      if (!launched)
        return launched;
    }
  return {};
}

Result<void> Calibration::runPairs(const Case &entry) {
  return runAllRanges(entry, everyPairOfCodes(entry.spec),
                      fmt::format("every pair of codes, {} x {}", elementTypeName(entry.spec.xType),
                                  elementTypeName(entry.spec.wType)));
}
Result<void> Calibration::runRoundings(const Case &entry) {
  return runAllRanges(
      entry, everyRounding(entry.spec),
      fmt::format("scales and rounding of results to {}", elementTypeName(entry.spec.outType)));
}
Result<void> Calibration::runAllRanges(const Case &entry, const oracle::HostProblem &problem,
                                       const std::string &family) {
  for (int64_t rows : firstRows(entry, *jit)) {
    Result<std::shared_ptr<Kernel>> kernel = jit->get(entry.spec, rows);
    if (!kernel)
      return kernel.error();
    const std::string what = fmt::format("{}, rows from {}", family, rows);
    Result<void> launched = launchGemm(
        **kernel, problem, what, [&](const LaunchImage &image, const BothResults &results, size_t) {
          Tally tally;
          tally.launches = 1;
          compareOwned(image, results, {}, what, tally);
          tallies.add(Section::Specified, family, tally);
        });
    if (!launched)
      return launched;
  }
  return {};
}

Result<void> Calibration::runProbes(const Case &entry) {
  Probes made = makeProbes(entry.spec);
  Result<std::shared_ptr<Kernel>> kernel = jit->get(entry.spec, made.problem.rows);
  if (!kernel)
    return kernel.error();
  return launchGemm(**kernel, made.problem, "probes",
                    [&](const LaunchImage &image, const BothResults &results, size_t) {
                      const oracle::HostOutput model = oracle::runModel(made.problem);
                      const size_t y = image.exactY().offset;
                      auto sums = [&](int64_t row) {
                        std::array<float, 3> all = {};
                        const size_t at = size_t(row * made.problem.yStride) * 4;
                        std::memcpy(&all[0], results.gpu.data() + y + at, 4);
                        std::memcpy(&all[1], results.emulator.data() + y + at, 4);
                        std::memcpy(&all[2], static_cast<const uint8_t *>(model.data()) + at, 4);
                        return all;
                      };
                      for (size_t p = 0; p < made.kinds.size(); ++p) {
                        ProbeRow row;
                        row.name = made.kinds[p].name;
                        for (int engine = 0; engine < 3; ++engine)
                          for (int shift = 1; shift <= Probes::shifts; ++shift) {
                            const double sum = double(
                                sums(int64_t(p) * Probes::shifts + shift - 1)[size_t(engine)]);
                            const double exact = made.exactSum(p, shift);
                            if (sum == exact && row.exactTo[engine] == shift - 1)
                              row.exactTo[engine] = shift;
                            if (sum != made.exactSum(p, shift, false))
                              row.noticedTo[engine] = shift;
                            if (engine == 0 && sum != exact && row.lostSum.empty())
                              row.lostSum = fmt::format("{:.10g}, exactly {:.10g}", sum, exact);
                          }
                        page.probes.push_back(row);
                      }
                    });
}

Result<void> Calibration::runSums(const Case &entry) {
  const oracle::HostProblem problem = makeSums(entry.spec);
  Result<std::shared_ptr<Kernel>> kernel = jit->get(entry.spec, problem.rows);
  if (!kernel)
    return kernel.error();
  return launchGemm(
      **kernel, problem, "sums", [&](const LaunchImage &image, const BothResults &results, size_t) {
        std::vector<float> sums(size_t(problem.rows * problem.yStride));
        std::memcpy(sums.data(), results.gpu.data() + image.exactY().offset, image.exactY().bytes);
        page.sums = scoreModels(problem, sums.data());
      });
}

Result<void> Calibration::runQuantization(const Case &entry, int64_t expectedRows) {
  Result<std::shared_ptr<Kernel>> kernel = jit->get(entry.spec, expectedRows);
  if (!kernel)
    return kernel.error();
  const bool isGiven = entry.spec.xScales.source == ScaleSource::Static;
  oracle::QuantizeOptions padded;
  padded.xPadElements = 40;
  padded.yPadElements = 24;
  padded.scalePadWords = 5;
  for (int64_t rows : {1, 37, 300})
    if (Result<void> ran = runQuantized(
            **kernel,
            oracle::makeQuantizeProblem(entry.spec, rows, uint64_t(rows),
                                        rows == 37 ? padded : oracle::QuantizeOptions()),
            "quantization: " + entry.name, fmt::format("{}, {} rows", entry.name, rows));
        !ran)
      return ran;
  for (float scale : isGiven ? std::vector<float>{1, 0.3f, 96} : std::vector<float>{1})
    if (Result<void> ran = runQuantized(
            **kernel, everyValue(entry.spec, scale, isGiven ? 0 : 3),
            fmt::format("every {} value to {}, {}", elementTypeName(*entry.spec.quantizeFrom),
                        elementTypeName(entry.spec.xType),
                        isGiven ? "given scales" : "among others"),
            fmt::format("every value by {}, scale {}", entry.name, scale));
        !ran)
      return ran;
  return {};
}

Result<void> Calibration::runQuantized(Kernel &kernel, const oracle::QuantizeProblem &problem,
                                       const std::string &family, const std::string &what) {
  QuantizeImage image(problem, kernel.workspaceBytes(problem.rows));
  Result<BothResults> results = both.run(kernel, image.launch, what);
  if (!results)
    return results.error();
  Tally tally;
  tally.launches = 1;
  auto at = [&](const std::vector<uint8_t> &bytes, const LaunchImage::Place &place) {
    return bytes.data() + place.offset;
  };
  compareElements({problem.spec.xType, at(results->gpu, image.y), at(results->emulator, image.y),
                   int64_t(image.y.bytes)},
                  nullptr, "codes of " + what, tally);
  compareBytes(at(results->gpu, image.scales), at(results->emulator, image.scales),
               int64_t(image.scales.bytes), "scales of " + what, tally);
  tallies.add(Section::Specified, family, tally);
  Tally operands;
  operands.launches = 1;
  compareBytes(results->gpu.data(), results->emulator.data(), int64_t(image.scales.offset),
               "x of " + what, operands);
  tallies.add(Section::Specified, "operands of quantizations (bytes)", operands);
  return {};
}

Result<void> Calibration::runChecked(const Case &entry, int64_t expectedRows) {
  Result<std::shared_ptr<Kernel>> kernel = checkedJit->get(entry.spec, expectedRows);
  if (!kernel)
    return kernel.error();
  using Flaw = std::function<void(oracle::HostProblem &)>;
  const std::pair<const char *, Flaw> flaws[] = {
      {"nothing wrong", [](oracle::HostProblem &) {}},
      {"offsets",
       [](oracle::HostProblem &problem) {
         problem.offsets[2] = INT_MAX;
         problem.offsets[4] = INT_MIN;
       }},
      {"scales",
       [](oracle::HostProblem &problem) {
         problem.xScales[11] = NAN;
         problem.xScales[7] = 0;
         problem.wScales[5] = -1;
         problem.wScales[2] = INFINITY;
       }},
  };
  for (const auto &[name, make] : flaws) {
    oracle::HostProblem problem = oracle::makeProblem(
        entry.spec, 200, oracle::Routing::fromCounts({30, 40, 20, 50, 25, 35}), 71);
    makeExact(problem);
    make(problem);
    const std::string what = fmt::format("checked {}, {}", entry.name, name);
    Result<void> launched = launchGemm(
        **kernel, problem, what,
        [&](const LaunchImage &image, const BothResults &results, size_t errorsAt) {
          Tally words, y;
          words.launches = y.launches = 1;
          compareBytes(results.gpu.data() + errorsAt, results.emulator.data() + errorsAt,
                       errorWords * int64_t(sizeof(int64_t)), "error words of " + what, words);
          compareOwned(image, results, {}, what, y);
          tallies.add(Section::Specified, "error words of checked kernels (bytes)", words);
          tallies.add(Section::Specified, "results of checked kernels on flawed operands", y);
        });
    if (!launched)
      return launched;
  }
  return {};
}

} // namespace moejit::gpu

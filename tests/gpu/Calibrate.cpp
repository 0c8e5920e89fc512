// moejit-gpu-calibrate: runs the kernels of a bundle on a GPU and on the emulator, with the same
// operands, and tells where the bits agree and how far apart they are where the hardware's
// arithmetic is not specified. The emulator is no oracle here: what is right is moejit-gpu-tests'
// business.
#include "tests/gpu/CalibrateJobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

using namespace moejit;
using namespace moejit::gpu;

namespace {

struct Options : CalibrateOptions {
  std::string folder, markdown, work = "calibrate-units";
  bool checksModels = false;
};

const BothDevices *watched = nullptr;

/// The context is gone: what it was at is all that can be told.
void leaveLost(const std::string &what) {
  fmt::print(stderr, "moejit-gpu-calibrate: {} was lost: {}\n",
             watched && !watched->current().empty() ? watched->current() : "the context", what);
  std::fflush(nullptr);
  std::_Exit(3);
}

/// Whether the scores name the model that sums were made by.
int checkModels(const std::vector<Case> &cases) {
  for (const Case &entry : cases) {
    if (entry.name != "eager.w-channel.x-token.f32.328x720")
      continue;
    const oracle::HostProblem problem = makeSums(entry.spec);
    for (const SumModel &model : {SumModel(), SumModel{14, 16, false, true, 13}}) {
      std::vector<float> sums(size_t(problem.rows * problem.yStride));
      for (int64_t r = 0; r < problem.rows; ++r)
        for (int64_t n = 0; n < problem.spec.n; ++n)
          sums[size_t(r * problem.yStride + n)] = modelSum(problem, model, r, n);
      const SumScore best = scoreModels(problem, sums.data()).front();
      if (best.model.text() != model.text() || best.equalAll != best.comparedAll) {
        fmt::print(stderr, "sums by '{}' were taken for '{}'\n", model.text(), best.model.text());
        return 1;
      }
    }
    return fmt::print("sums are known by their models\n"), 0;
  }
  return fmt::print(stderr, "the folder lacks the eager kernel that sums are made for\n"), 2;
}

int calibrate(const Options &options) {
  Result<std::vector<Case>> cases = readCases(options.folder);
  if (!cases)
    return fmt::print(stderr, "moejit-gpu-calibrate: {}\n", cases.error().text()), 2;
  if (options.checksModels)
    return checkModels(*cases);
  CacheOptions cacheOptions;
  cacheOptions.folder = options.folder + "/bundle";
  cacheOptions.mode = CacheMode::Bundle;
  cacheOptions.log = [](const std::string &message) { fmt::print(stderr, "{}\n", message); };
  Result<std::shared_ptr<Cache>> bundle = Cache::open(std::move(cacheOptions));
  if (!bundle)
    return fmt::print(stderr, "moejit-gpu-calibrate: {}\n", bundle.error().text()), 2;
  onContextLost(leaveLost);
  Result<std::unique_ptr<Device>> device = Device::open(0);
  if (!device)
    return fmt::print(stderr, "moejit-gpu-calibrate: {}\n", device.error().text()), 2;
  Result<std::unique_ptr<BothDevices>> both = BothDevices::create(**device, options.work);
  if (!both)
    return fmt::print(stderr, "moejit-gpu-calibrate: {}\n", both.error().text()), 2;
  watched = both->get();

  Calibration calibration(options, **device, **both, *bundle, *cases);
  const bool isComplete = calibration.run();
  const std::vector<std::string> failures = calibration.tallies.failures();
  calibration.page.where =
      fmt::format("{}, {} SMs, driver for CUDA {}; the emulator on {} threads, {:.0f} s in all.",
                  (*device)->info().name, (*device)->info().smCount,
                  cudaVersionText((*device)->info().driverVersion),
                  std::thread::hardware_concurrency(), options.secondsSinceStart());
  const std::string page = calibrationPage(calibration.tallies.all(), calibration.page);
  if (!options.markdown.empty())
    std::ofstream(options.markdown) << page;
  fmt::print("{}", page);
  for (const std::string &failure : failures)
    fmt::print(stderr, "DIFFERS {}\n", failure);
  if (!isComplete)
    fmt::print(stderr, "not run: {}\n", calibration.page.notRun);
  fmt::print(stderr, "{:.1f} s, {}\n", options.secondsSinceStart(),
             failures.empty() ? "as it must be" : "DIFFERENT");
  return failures.empty() && !calibration.tallies.all().empty() ? 0 : 1;
}

constexpr const char *help =
    R"(usage: moejit-gpu-calibrate FOLDER [options]

Runs kernels of FOLDER (made by moejit-gpu-bundle) on GPU 0 and on the emulator, with the same
operands, and compares the results bit for bit. Prints a page of tables.

  --markdown FILE  the same page
  --work FOLDER    where the emulator keeps what it compiles (calibrate-units in the current folder)
  --threads N      launches on the emulator at once (one for each core)
  --seconds N      begin nothing new after that time; the page says what was left out
  --only TEXT      only kernels whose name contains TEXT; may be given several times
  --quick          few kernels, and one launch of each
  --all            every kernel of the matrix
  --check-models   launch nothing: whether sums made by a model are told to be that model's

exit code: 0 equal where every bit is specified and within twice the bound elsewhere, 1 not so,
2 wrong usage, no bundle, no GPU or no C++ compiler, 3 a kernel took the GPU's context with it
)";

int usage(const std::string &problem) {
  fmt::print(stderr, "moejit-gpu-calibrate: {}\n{}", problem, help);
  return 2;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    if (option == "--help")
      return fmt::print("{}", help), 0;
    if (option == "--check-models") {
      options.checksModels = true;
      continue;
    }
    if (option == "--quick" || option == "--all") {
      (option == "--quick" ? options.isQuick : options.takesAll) = true;
      continue;
    }
    if (option.rfind("--", 0) != 0) {
      if (!options.folder.empty())
        return usage(option + ": one folder is enough");
      options.folder = option;
      continue;
    }
    if (i + 1 == argc)
      return usage(option + ": unknown, or without its value");
    std::string value = argv[++i];
    if (option == "--markdown")
      options.markdown = value;
    else if (option == "--work")
      options.work = value;
    else if (option == "--only")
      options.only.push_back(value);
    else if (option == "--threads")
      options.threads = unsigned(std::max(1, std::atoi(value.c_str())));
    else if (option == "--seconds")
      options.seconds = std::atof(value.c_str());
    else
      return usage(option + ": unknown");
  }
  if (options.folder.empty())
    return usage("which folder?");
  return calibrate(options);
}

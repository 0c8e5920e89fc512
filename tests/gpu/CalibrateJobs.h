// The launches that a calibration makes on both devices, and what of each is compared. Decides
// nothing about whether a result is right.
#pragma once

#include "runtime/Jit.h"
#include "tests/gpu/CalibrateRun.h"
#include "tests/gpu/CalibrateTally.h"
#include "tests/gpu/Cases.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace moejit::gpu {

struct CalibrateOptions {
  std::vector<std::string> only; ///< kernels whose name contains one of these; none: all
  bool isQuick = false, takesAll = false;
  unsigned threads = 0; ///< 0: one for each core
  double seconds = 0;   ///< from `started` on; nothing is begun after them; 0: no limit
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();

  bool takes(const std::string &name) const;
  double secondsSinceStart() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  }
};

/// Of the many layouts of the matrix: every kind of scale once in every dispatch, grouped ones with
/// more; one spec of each family. `isQuick`: those of the group; `takesAll`: every one.
std::vector<const Case *> calibratedGemms(const std::vector<Case> &cases,
                                          const CalibrateOptions &options);

class Calibration {
public:
  /// All references must outlive it.
  Calibration(const CalibrateOptions &options, const Device &device, BothDevices &both,
              std::shared_ptr<Cache> bundle, const std::vector<Case> &cases);

  /// Runs everything; false when something was left out for want of time.
  bool run();

  Tallies tallies;
  PageParts page; ///< all but `where`

private:
  struct Job {
    std::string name;
    std::function<Result<void>()> run;
  };
  /// What is done with the results of a launch: the image they lie in, and where error words are.
  using Use = std::function<void(const LaunchImage &, const BothResults &, size_t errorsAt)>;

  const Case *find(const std::string &name) const;
  std::vector<Job> plan();
  /// The least row count of each kernel that the bundle has for `entry`; of most specs only the
  /// first and the last, in a quick run the last alone.
  std::vector<int64_t> firstRows(const Case &entry, const Jit &from) const;

  Result<void> launchGemm(Kernel &kernel, const oracle::HostProblem &problem,
                          const std::string &what, const Use &use);
  /// Tallies what owns no arithmetic: rows of nobody, padding, canaries, operands, and what the
  /// launch quantized.
  void compareRest(const Kernel &kernel, const LaunchImage &image, const BothResults &results,
                   const std::string &what);

  Result<void> runGemm(const Case &entry, int64_t expectedRows, bool isFirstRange);
  Result<void> runPairs(const Case &entry);
  Result<void> runRoundings(const Case &entry);
  Result<void> runAllRanges(const Case &entry, const oracle::HostProblem &problem,
                            const std::string &family);
  Result<void> runProbes(const Case &entry);
  Result<void> runSums(const Case &entry);
  Result<void> runQuantization(const Case &entry, int64_t expectedRows);
  Result<void> runQuantized(Kernel &kernel, const oracle::QuantizeProblem &problem,
                            const std::string &family, const std::string &what);
  Result<void> runChecked(const Case &entry, int64_t expectedRows);

  const CalibrateOptions &options;
  const Device &device;
  BothDevices &both;
  const std::shared_ptr<Cache> bundle;
  const std::vector<Case> &cases;
  std::unique_ptr<Jit> jit, checkedJit;
};

} // namespace moejit::gpu

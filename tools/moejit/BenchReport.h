// What a benchmark says: a table for people, JSON for machines, a roofline plot.
#pragma once

#include "tools/moejit/BenchRun.h"

#include <optional>
#include <string>

namespace moejit::tool {

/// How it was measured, and the ceilings of the run.
struct BenchHow {
  std::string device, driver, nvrtc, routing, flush, readText, clocks;
  int smCount = 0;
  int64_t seed = 1;
  MeasureOptions measuring;
  std::optional<size_t> denseContender; ///< of BenchRun::contenders
  double givenTeraflops = 0;            ///< --ceiling; 0: denseContender's
  size_t memoryItem = 0;                ///< of BenchRun::items: a read of memoryBytes
  double memoryBytes = 0;
};

/// TFLOP/s of the compute ceiling; 0: there is none.
double computeCeiling(const BenchRun &run, const BenchHow &how);
/// GB/s of a plain read.
double memoryCeiling(const BenchRun &run, const BenchHow &how);

/// Whether a contender that was checked is wrong.
bool isAnyWrong(const BenchRun &run);

std::string benchText(const BenchRun &run, const BenchHow &how);
/// `{"format": 1, "device", "how", "ceilings", "lines": […]}`; tools/bench prints the same.
std::string benchJson(const BenchRun &run, const BenchHow &how);
std::string benchSvg(const BenchRun &run, const BenchHow &how);

} // namespace moejit::tool

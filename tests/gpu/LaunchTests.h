// What a launch promises besides its result: graphs, captures, streams, threads, devices, host
// time.
#pragma once

#include "runtime/Jit.h"
#include "tests/gpu/Cases.h"
#include "tests/gpu/Device.h"
#include "tests/gpu/Report.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace moejit::gpu {

/// What launch tests share.
struct LaunchContext {
  const Device &device;
  std::shared_ptr<Cache> bundle;
  const std::vector<Case> &cases;
  bool isQuick = false; ///< fewer repetitions

  /// A Jit of its own, which has loaded nothing.
  std::unique_ptr<Jit> makeJit(const PlanRequest &plan = {}) const;
  const Case *find(std::string_view name) const;
};

struct LaunchTest {
  const char *name;
  /// Numbers for the report; errors are failures.
  std::function<Result<std::string>(const LaunchContext &)> run;
};

const std::vector<LaunchTest> &launchTests();

/// The tests of EdgeLaunches.cpp.
Result<std::string> checkedKernels(const LaunchContext &context);
Result<std::string> afterAbort(const LaunchContext &context);
Result<std::string> rowsPast31Bits(const LaunchContext &context);
Result<std::string> weightsPast31Bits(const LaunchContext &context);

/// Launches a kernel that writes to nobody's memory and waits for it: the context, and with it the
/// process, is lost. Returns 1 when it is not, 2 when there was nothing to launch.
int faultOnPurpose(const LaunchContext &context);

} // namespace moejit::gpu

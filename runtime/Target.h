// What a kernel is built for: an architecture with its suffix, and the profile of a device that
// plans are chosen by.
#pragma once

#include "runtime/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moejit {

/// What a plan may depend on. The SM count is for choosing plans only; kernels read the grid they
/// are launched with.
struct DeviceProfile {
  std::string name = "h200";
  int64_t smCount = 132;
  int64_t l2Bytes = 60ll << 20;
  int64_t bandwidthGBps = 4300; ///< measured device copy, bytes read and written
  int64_t sharedBytesPerBlock = 232448;
  bool operator==(const DeviceProfile &) const = default;
};

struct Target {
  std::string arch = "sm_90a";
  DeviceProfile profile;
  bool operator==(const Target &) const = default;
};

/// Architectures parseTarget knows, ascending. Rules say which of them are supported.
std::vector<std::string> knownArchitectures();
/// Target for an architecture name (sm_90a…), with the default profile of that architecture.
/// Errors: InvalidArgument naming the known architectures.
Result<Target> parseTarget(std::string_view arch);
/// Stable text of `target`, part of every key.
std::string canonicalText(const Target &target);

} // namespace moejit

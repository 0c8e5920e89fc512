// Known architectures with the default device profile of each.
#include "runtime/Target.h"

#include <fmt/format.h>

namespace moejit {

namespace {

struct KnownArchitecture {
  const char *arch;
  DeviceProfile profile;
};

/// sm_90a is measured. The others hold vendor peak figures until a device of that kind is measured;
/// shared memory per block is the opt-in limit of the CUDA C++ Programming Guide, "Compute
/// Capabilities".
const std::vector<KnownArchitecture> &architectures() {
  static const std::vector<KnownArchitecture> table = {
      {"sm_80", {"a100", 108, 40ll << 20, 1555, 166912}},
      {"sm_89", {"l40s", 142, 96ll << 20, 864, 101376}},
      {"sm_90a", {}},
      {"sm_100a", {"b200", 148, 126ll << 20, 8000, 232448}},
      {"sm_120a", {"rtx5090", 170, 96ll << 20, 1792, 101376}},
  };
  return table;
}

/// `name` with everything but letters, digits, '.', '-' and '_' percent-encoded, so that no name
/// can forge a field.
std::string encoded(std::string_view name) {
  std::string text;
  for (char c : name) {
    bool isPlain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   c == '.' || c == '-' || c == '_';
    if (isPlain)
      text += c;
    else
      text += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

} // namespace

std::vector<std::string> knownArchitectures() {
  std::vector<std::string> names;
  for (const KnownArchitecture &known : architectures())
    names.push_back(known.arch);
  return names;
}

Result<Target> parseTarget(std::string_view arch) {
  for (const KnownArchitecture &known : architectures())
    if (arch == known.arch)
      return Target{known.arch, known.profile};
  Error error{ErrorCode::InvalidArgument,
              fmt::format("unknown architecture '{}', expected one of {}", arch,
                          fmt::join(knownArchitectures(), ", "))};
  for (const KnownArchitecture &known : architectures())
    if (fmt::format("{}a", arch) == known.arch)
      error.notes.push_back(
          fmt::format("{} has the instructions moejit needs, {} has not", known.arch, arch));
  return error;
}

std::string canonicalText(const Target &target) {
  const DeviceProfile &profile = target.profile;
  return fmt::format("arch={};device={};sms={};l2Bytes={};bandwidthGBps={};sharedBytesPerBlock={}",
                     encoded(target.arch), encoded(profile.name), profile.smCount, profile.l2Bytes,
                     profile.bandwidthGBps, profile.sharedBytesPerBlock);
}

} // namespace moejit

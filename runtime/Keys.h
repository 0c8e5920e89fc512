// Texts that identify kernels, and the names files get from them. A key holds contents and versions
// only: no path, no environment, no time.
#pragma once

#include "runtime/Plan.h"
#include "runtime/Spec.h"
#include "runtime/Target.h"

#include <string>
#include <string_view>

namespace moejit {

/// What turns a spec and a plan into a kernel. Two generators with equal identity make equal
/// kernels.
struct GeneratorIdentity {
  std::string fingerprint;  ///< hash of the sorted contents of the compiler's sources
  std::string nvrtcVersion; ///< "13.0"
  std::string flags;        ///< compile options, in order
  bool operator==(const GeneratorIdentity &) const = default;
};

/// What a launch asks for: canonical spec and target (architecture with suffix, device profile),
/// one `name=value` line each, and what is asked of the plan where that is not the usual. Bundles
/// resolve by this text alone.
std::string lookupKeyText(const Spec &spec, const Target &target, const PlanRequest &request = {});

/// What one kernel is: the lookup key, the plan, the generator's identity and the artifact format.
/// The JIT loads only entries whose whole text equals this.
std::string buildKeyText(std::string_view lookupKey, std::string_view planText,
                         const GeneratorIdentity &generator);

/// The name of a key on disk: SHA-256 as 64 hexadecimal characters.
std::string keyName(std::string_view keyText);

} // namespace moejit

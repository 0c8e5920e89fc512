// The quantizations of the bundle.
#pragma once

#include "runtime/Spec.h"

#include <string>
#include <vector>

namespace moejit::gpu {

struct QuantizeSpec {
  std::string name;
  Spec spec;
  bool isQuick = false; ///< worth running under a memory checker
};

/// Quantizations of their own: every source and result, kind of granule and storage of scales; K
/// with a tail.
std::vector<QuantizeSpec> quantizeSpecs();

} // namespace moejit::gpu

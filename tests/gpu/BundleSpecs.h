// Which kernels the GPU tests run. Compiles none.
#pragma once

#include "runtime/Result.h"
#include "runtime/Spec.h"
#include "runtime/Tuned.h"

#include <string>
#include <vector>

namespace moejit::gpu {

/// A kernel for the GPU: its name, the groups it is in with spaces between them (matrix, quick,
/// light, many, generated, wide, checked, catalogue, decode, quantize, quantize-speed), and what it
/// is.
struct BundleEntry {
  std::string name;
  std::string groups;
  Spec spec;
};

struct BundleSpecs {
  std::vector<BundleEntry> entries;
  TunedTable families; ///< the plans of those that have others than the heuristic's
};

/// All kernels, the longest to compile first. `kernels` is the folder of the catalogue. Errors:
/// NotFound when it holds no description; those of parseMlir.
Result<BundleSpecs> bundleSpecs(const std::string &kernels);

} // namespace moejit::gpu

// Reads the launch data that `tile-lower-kernel` left on a ptx.kernel.
#pragma once

#include "compiler/dialect/ptx/Ptx.h"
#include "runtime/Artifact.h"
#include "runtime/Result.h"

namespace moejit {

/// The launch data of `kernel`, from its attributes tile.parameters, tile.tensor_maps and
/// tile.grid. Errors: Internal naming what is missing or unknown.
Result<LaunchData> launchDataFromKernel(ptx::KernelOp kernel);

} // namespace moejit

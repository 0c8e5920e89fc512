// Runs a kernel on the CPU emulator.
#pragma once

#include "runtime/emulator/Emulator.h"
#include "tests/oracle/Problem.h"

#include <optional>
#include <string>

namespace moejit::tool {

/// Launches `artifact` on the emulator. `folder` keeps compiled units; nothing: a folder that is
/// gone afterwards. `hasFault` becomes true when the kernel itself did something wrong. Errors:
/// those of Emulator.
Result<EmulatorReport> emulate(const Artifact &artifact, const oracle::HostProblem &problem,
                               oracle::HostOutput &output, std::optional<std::string> folder,
                               bool &hasFault);

} // namespace moejit::tool

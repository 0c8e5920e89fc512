// Runs a kernel on the CPU emulator.
#pragma once

#include "runtime/emulator/Emulator.h"
#include "tools/moejit/HostLaunch.h"

#include <optional>
#include <string>

namespace moejit::tool {

/// Launches `artifact` on the emulator, with the operands of `given`. `folder` keeps compiled
/// units; nothing: a folder that is gone afterwards. `hasFault` becomes true when the kernel itself
/// did something wrong. Errors: those of Emulator.
Result<EmulatorReport> emulate(const Artifact &artifact, const HostLaunch &given,
                               std::optional<std::string> folder, bool &hasFault);

} // namespace moejit::tool

// Where NVRTC lies on this machine, as the command sees it.
#pragma once

#include "compiler/Nvrtc.h"

#include <string>
#include <vector>

namespace moejit::tool {

/// Library folders relative to the program at `executable`: ../lib of an unpacked archive, and the
/// cuda-wheels folder beside it or of the build folder it lies in.
std::vector<std::string> foldersBeside(const std::string &executable);

/// Path of the running program.
std::string executablePath();

/// Options that open `given`, or else what the loader, a CUDA toolkit or the folders beside this
/// program offer. When there is no NVRTC the options fail with every attempt in the notes.
NvrtcOptions findNvrtc(const std::string &given);

} // namespace moejit::tool

// The parts of moejit cache that look after folders: verify, gc, merge, diff.
#pragma once

#include "tools/moejit/Options.h"

#include <string>

namespace moejit::tool {

/// Each runs one of them on the folder of --cache, prints what it found, and returns the exit code.
/// What they take after their names was counted before.
int verifyCache(const Arguments &arguments);
int clearCache(const Arguments &arguments);
/// Joins the folders that the words after "merge" name into the one of -o.
int mergeCaches(const Arguments &arguments);
/// Compares the kernels that the two words after "diff" name: keys of the folder, cut short or not,
/// or paths of *.kernel files.
int diffKernels(const Arguments &arguments);

/// "2026-01-31 12:00" of the local clock.
std::string timeText(int64_t ns);

} // namespace moejit::tool

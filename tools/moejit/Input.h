// From the command line to a legal Spec and a Target.
#pragma once

#include "runtime/Spec.h"
#include "runtime/Target.h"
#include "tools/moejit/Options.h"

#include <string>
#include <vector>

namespace moejit::tool {

/// A file as it is. Errors: IoError, InvalidArgument for what is larger than `limitBytes`.
Result<std::string> readFile(const std::string &path, uint64_t limitBytes = 64u << 20);

/// The one word that names a file. Errors: InvalidArgument when there is none, or several.
Result<std::string> oneFile(const Arguments &arguments);

/// The kernel of FILE (or of --spec), with --experts, --n and --k put in. Diagnostics of the file
/// go to stderr as they come. Errors: those of readFile, parseMlir and parseSpec; InvalidArgument
/// for extents that cannot be.
Result<Spec> loadSpec(const Arguments &arguments, const std::string &file);
/// The same for a command of one file; `name` becomes what to call it.
Result<Spec> loadOneSpec(const Arguments &arguments, std::string &name);

/// The files that `words` name: files as they are, of folders every *.mlir in them, sorted. Errors:
/// InvalidArgument when there is none; IoError.
Result<std::vector<std::string>> kernelFiles(const std::vector<std::string> &words);

/// `option` as whole numbers from `least` to `most` with commas between them. Errors:
/// InvalidArgument.
Result<std::vector<int64_t>> numberList(const Arguments &arguments, const char *option,
                                        int64_t least, int64_t most, const std::string &standard);

/// --arch, or sm_90a.
Result<Target> loadTarget(const Arguments &arguments);

/// "grouped, 256 experts, N 4096, K 7168, f8E4M3FN x f8E4M3FN -> bf16".
std::string describe(const Spec &spec);

} // namespace moejit::tool

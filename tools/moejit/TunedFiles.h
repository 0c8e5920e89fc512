// Tables of tuned plans as the subcommands take them: those that come with the program, or --tuned.
#pragma once

#include "runtime/Tuned.h"
#include "tools/moejit/Options.h"

#include <memory>
#include <string>

namespace moejit::tool {

/// Reads a table. Errors: those of readFile and parseTunedTable, with the file's name.
Result<TunedTable> readTunedTable(const std::string &path);

/// The table that plans for `target` are chosen by: that of --tuned FILE, none for --tuned none,
/// else the one of this architecture and number of SMs that comes with the program. Null: none.
Result<std::shared_ptr<const TunedTable>> tunedTable(const Arguments &arguments,
                                                     const Target &target);

/// --tuned, of the subcommands that choose plans.
Option tunedOption();

} // namespace moejit::tool

// Finds the tuning table of a command line.
#include "tools/moejit/TunedFiles.h"

#include "tools/moejit/Input.h"

#include <fmt/format.h>

namespace moejit::tool {

extern const char *const tunedTexts[]; // generated, ends with null

Result<TunedTable> readTunedTable(const std::string &path) {
  Result<std::string> text = readFile(path);
  if (!text)
    return text.error();
  Result<TunedTable> table = parseTunedTable(*text);
  if (!table) {
    Error error = table.error();
    error.message = fmt::format("{}: {}", path, error.message);
    return error;
  }
  return table;
}

Result<std::shared_ptr<const TunedTable>> tunedTable(const Arguments &arguments,
                                                     const Target &target) {
  std::string given = arguments.valueOr("--tuned", "");
  if (given == "none")
    return std::shared_ptr<const TunedTable>();
  if (!given.empty()) {
    Result<TunedTable> table = readTunedTable(given);
    if (!table)
      return table.error();
    return std::make_shared<const TunedTable>(std::move(*table));
  }
  for (const char *const *text = tunedTexts; *text; ++text) {
    Result<TunedTable> table = parseTunedTable(*text);
    if (!table)
      return Error{ErrorCode::Internal, "a table of this program: " + table.error().message, {}};
    if (table->arch == target.arch && table->smCount == target.profile.smCount)
      return std::make_shared<const TunedTable>(std::move(*table));
  }
  return std::shared_ptr<const TunedTable>();
}

Option tunedOption() {
  return {"--tuned", "FILE",
          "the table of measured plans (moejit tune) that plans are chosen by; none: the heuristic "
          "alone",
          "the one that comes with the program"};
}

} // namespace moejit::tool

// How `moejit check` shows what it found: a table and details, or JSON.
#pragma once

#include "tools/checkpoint/Check.h"
#include "tools/moejit/Json.h"

#include <optional>
#include <string>
#include <vector>

namespace moejit::tool {

/// One configuration, or why it could not be used.
struct CheckedFile {
  std::string path;
  std::optional<Error> error;
  std::optional<checkpoint::Checkpoint> checkpoint;
  std::optional<checkpoint::Check> check; ///< nothing when nothing of it is FP8
  std::string nothingToDo;                ///< why, then
  std::vector<std::string> unmet;         ///< what --require or --engine asked for and is not so
  int exit = 0;
};

/// The report of one file, as people read it. Details of single verdicts follow the table.
std::string checkText(const CheckedFile &file, const checkpoint::CheckOptions &options);
/// One line a file, for many files.
std::string checkTable(const std::vector<CheckedFile> &files);
/// All of it, as one object.
std::string checkJson(const std::vector<CheckedFile> &files,
                      const checkpoint::CheckOptions &options, int exit);

} // namespace moejit::tool

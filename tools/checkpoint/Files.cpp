// Finds the configurations at a path.
#include "tools/checkpoint/Checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace moejit::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr size_t mostBytes = size_t(64) << 20; ///< of a configuration
constexpr const char *quantName = "hf_quant_config.json";

Result<std::string> readText(const std::string &path) {
  std::FILE *file = std::fopen(path.c_str(), "rb");
  std::string bytes;
  char buffer[1 << 16];
  size_t count = 0;
  while (file && bytes.size() <= mostBytes &&
         (count = std::fread(buffer, 1, sizeof buffer, file)) > 0)
    bytes.append(buffer, count);
  int problem = errno;
  bool isRead = file && !std::ferror(file);
  if (file)
    std::fclose(file);
  if (!isRead)
    return Error{
        ErrorCode::IoError, fmt::format("cannot read {}: {}", path, std::strerror(problem)), {}};
  if (bytes.size() > mostBytes)
    return Error{
        ErrorCode::InvalidArgument, fmt::format("{} has more than {} bytes", path, mostBytes), {}};
  return bytes;
}

/// Whether `path` is there to be read. Pipes and devices are passed over, they may never end; what
/// cannot be read for another reason (a link that leads nowhere, a folder) is told where it is
/// read: passed over, a checkpoint that is there in part would be judged by the rest.
bool isThere(const fs::path &path) {
  std::error_code problem;
  if (!fs::exists(fs::symlink_status(path, problem)))
    return false;
  fs::file_type type = fs::status(path, problem).type();
  return type != fs::file_type::fifo && type != fs::file_type::socket &&
         type != fs::file_type::character && type != fs::file_type::block;
}

/// The hf_quant_config.json that belongs to `config`; empty when there is none.
std::string quantBeside(const fs::path &config) {
  std::string name = config.filename().string();
  fs::path beside = config.parent_path() / quantName;
  constexpr std::string_view end = "_config.json";
  if (name.ends_with(end))
    beside = config.parent_path() / (name.substr(0, name.size() - end.size()) + "_" + quantName);
  else if (name != "config.json")
    return "";
  return isThere(beside) ? beside.string() : "";
}

/// Entries of a folder by name. Errors: IoError.
Result<std::vector<fs::path>> entriesOf(const fs::path &folder) {
  std::error_code problem;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end;
       at.increment(problem))
    entries.push_back(at->path());
  if (problem)
    return Error{ErrorCode::IoError,
                 fmt::format("cannot read {}: {}", folder.string(), problem.message()),
                 {}};
  std::sort(entries.begin(), entries.end());
  return entries;
}

} // namespace

Result<std::vector<std::string>> findConfigs(const std::string &path) {
  std::error_code problem;
  fs::file_status status = fs::status(path, problem);
  if (!fs::exists(status))
    return Error{ErrorCode::IoError,
                 fmt::format("cannot read {}: {}", path,
                             problem ? problem.message() : std::strerror(ENOENT)),
                 {"give a config.json, the folder of a checkpoint, or a folder of several"}};
  if (!fs::is_directory(status))
    return std::vector<std::string>{path};
  if (isThere(fs::path(path) / "config.json"))
    return std::vector<std::string>{(fs::path(path) / "config.json").string()};
  Result<std::vector<fs::path>> entries = entriesOf(path);
  if (!entries)
    return entries.error();
  std::vector<std::string> configs;
  for (const fs::path &entry : *entries) {
    std::error_code ignored;
    if (fs::is_directory(entry, ignored)) {
      if (isThere(entry / "config.json"))
        configs.push_back((entry / "config.json").string());
    } else if (std::string name = entry.filename().string(); name.ends_with(".json") &&
                                                             !name.ends_with(quantName) &&
                                                             !name.ends_with(".index.json")) {
      if (isThere(entry))
        configs.push_back(entry.string());
    }
  }
  if (configs.empty())
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("{} has no config.json, and no folder in it has one", path),
                 {}};
  return configs;
}

Result<Checkpoint> readCheckpoint(const std::string &config) {
  Result<std::string> text = readText(config);
  if (!text)
    return text.error();
  std::string quantText;
  if (std::string beside = quantBeside(config); !beside.empty()) {
    Result<std::string> read = readText(beside);
    if (!read)
      return read.error();
    if (read->empty())
      return Error{ErrorCode::ParseError, beside + ": an empty file", {}};
    quantText = *read;
  }
  return parseCheckpoint(config, *text, quantText);
}

Result<std::vector<Checkpoint>> readCheckpoints(const std::string &path) {
  Result<std::vector<std::string>> configs = findConfigs(path);
  if (!configs)
    return configs.error();
  std::vector<Checkpoint> checkpoints;
  for (const std::string &config : *configs) {
    Result<Checkpoint> checkpoint = readCheckpoint(config);
    if (!checkpoint)
      return checkpoint.error();
    checkpoints.push_back(std::move(*checkpoint));
  }
  return checkpoints;
}

} // namespace moejit::checkpoint

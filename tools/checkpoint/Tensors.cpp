// safetensors: eight bytes of length, a JSON header of that length, data. An index maps names to
// files.
#include "tools/checkpoint/Tensors.h"

#include "runtime/JsonReader.h"

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

constexpr uint64_t mostHeaderBytes = 100'000'000; ///< the format's own limit
constexpr uint64_t mostIndexBytes = uint64_t(256) << 20;

Error broken(const std::string &path, const std::string &what) {
  return Error{ErrorCode::ParseError, fmt::format("{}: {}", path, what), {}};
}

/// What the index places in one file, and its header lacks.
struct Lacking {
  int64_t count = 0;
  std::string first; ///< one of the names
};

/// Bytes of one element, or 0 for a type that is not known.
int64_t typeBytes(std::string_view type) {
  static const std::map<std::string_view, int64_t> bytes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
      {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8}};
  auto found = bytes.find(type);
  return found == bytes.end() ? 0 : found->second;
}

/// The first `most` bytes of a file, and its size.
Result<std::pair<std::string, uint64_t>> readStart(const std::string &path, uint64_t offset,
                                                   uint64_t most) {
  std::error_code problem;
  uint64_t size = fs::file_size(path, problem);
  if (problem)
    return Error{
        ErrorCode::IoError, fmt::format("cannot read {}: {}", path, problem.message()), {}};
  std::FILE *file = std::fopen(path.c_str(), "rb");
  if (!file)
    return Error{
        ErrorCode::IoError, fmt::format("cannot read {}: {}", path, std::strerror(errno)), {}};
  uint64_t wanted = offset < size ? std::min(most, size - offset) : 0;
  std::string bytes(size_t(wanted), '\0');
  bool isRead = std::fseek(file, long(offset), SEEK_SET) == 0 &&
                std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size();
  std::fclose(file);
  if (!isRead)
    return Error{ErrorCode::IoError, fmt::format("cannot read {}", path), {}};
  return std::pair(std::move(bytes), size);
}

/// The shape and type of one entry of a header, whose data has to lie in `dataBytes`.
Result<TensorInfo> readEntry(const std::string &path, const std::string &name,
                             const JsonValue &value, uint64_t dataBytes) {
  TensorInfo info;
  const JsonValue *type = value.find("dtype");
  const JsonValue *shape = value.find("shape");
  const JsonValue *offsets = value.find("data_offsets");
  if (!type || type->kind != JsonValue::Kind::String || !shape ||
      shape->kind != JsonValue::Kind::Array || !offsets || offsets->items.size() != 2)
    return broken(path, fmt::format("{} has no dtype, shape and data_offsets", name));
  info.type = type->text;
  uint64_t count = 1;
  for (const JsonValue &item : shape->items) {
    std::optional<int64_t> extent = item.integer();
    // Times the eight bytes of the largest type it fits 64 bits.
    bool isLegal = extent && *extent >= 0 &&
                   (*extent == 0 || count <= (uint64_t(1) << 60) / uint64_t(*extent));
    if (!isLegal || shape->items.size() > 16)
      return broken(path, fmt::format("{} has a shape that is none", name));
    count *= uint64_t(*extent);
    info.shape.push_back(*extent);
  }
  std::optional<int64_t> begin = offsets->items[0].integer(), end = offsets->items[1].integer();
  if (!begin || !end || *begin < 0 || *end < *begin || uint64_t(*end) > dataBytes)
    return broken(path, fmt::format("{} has data_offsets outside the file", name));
  int64_t element = typeBytes(info.type);
  if (element > 0 && uint64_t(*end - *begin) != count * uint64_t(element))
    return broken(path, fmt::format("{} has {} bytes, its shape and type ask for {}", name,
                                    *end - *begin, count * uint64_t(element)));
  return info;
}

} // namespace

Result<TensorMap> readSafetensorsHeader(const std::string &path) {
  Result<std::pair<std::string, uint64_t>> start = readStart(path, 0, 8);
  if (!start)
    return start.error();
  uint64_t length = 0;
  for (size_t i = start->first.size(); i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(start->first[i]);
  if (start->first.size() < 8 || length > mostHeaderBytes || length > start->second - 8)
    return broken(path, "no safetensors file: its length of header is not in it");
  Result<std::pair<std::string, uint64_t>> header = readStart(path, 8, length);
  if (!header)
    return header.error();
  JsonOptions options;
  options.maxValues = size_t(1) << 24;
  Result<JsonValue> root = parseJson(header->first, options);
  if (!root || root->kind != JsonValue::Kind::Object)
    return broken(path, root ? "the header is no object" : root.error().message);
  TensorMap tensors;
  for (const auto &[name, value] : root->members) {
    if (name == "__metadata__")
      continue;
    Result<TensorInfo> info = readEntry(path, name, value, start->second - 8 - length);
    if (!info)
      return info.error();
    tensors.emplace(name, std::move(*info));
  }
  return tensors;
}

Result<TensorMap> readSafetensorsIndex(const std::string &path) {
  Result<std::pair<std::string, uint64_t>> text = readStart(path, 0, mostIndexBytes + 1);
  if (!text)
    return text.error();
  if (text->first.size() > mostIndexBytes)
    return broken(path, fmt::format("more than {} bytes", mostIndexBytes));
  Result<JsonValue> root = parseJson(text->first);
  if (!root)
    return broken(path, root.error().message);
  const JsonValue *map = root->find("weight_map");
  if (!map || map->kind != JsonValue::Kind::Object)
    return broken(path, "no weight_map");
  TensorMap tensors;
  for (const auto &[name, value] : map->members) {
    if (value.kind != JsonValue::Kind::String)
      return broken(path, fmt::format("weight_map has no file for {}", name));
    tensors.emplace(name, TensorInfo{"", {}, value.text});
  }
  return tensors;
}

Result<TensorReport> checkTensorFiles(const Checkpoint &checkpoint) {
  fs::path folder = fs::path(checkpoint.path).parent_path();
  if (folder.empty())
    folder = ".";
  if (fs::path(checkpoint.path).filename() != "config.json")
    return TensorReport();
  TensorMap tensors;
  std::vector<std::string> files;
  std::error_code problem;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end;
       at.increment(problem))
    if (at->path().extension() == ".safetensors")
      files.push_back(at->path().string());
  std::sort(files.begin(), files.end());
  // As the link itself: one that leads nowhere is there, and cannot be read.
  std::string index = (folder / "model.safetensors.index.json").string();
  std::error_code ignored;
  bool hasIndex = fs::exists(fs::symlink_status(index, ignored));
  std::string source;
  std::map<std::string, TensorMap, std::less<>> headers;
  if (!files.empty()) {
    for (const std::string &file : files) {
      Result<TensorMap> header = readSafetensorsHeader(file);
      if (!header)
        return header.error();
      headers.emplace(fs::path(file).filename().string(), std::move(*header));
    }
    source = fmt::format("{} safetensors header{}", files.size(), files.size() == 1 ? "" : "s");
  } else if (!hasIndex) {
    return TensorReport();
  }
  std::map<std::string, Lacking, std::less<>> lacking; // by file
  if (hasIndex) {
    Result<TensorMap> names = readSafetensorsIndex(index);
    if (!names)
      return names.error();
    // What is placed in a file that is not here is known by its name: a folder may hold a part.
    std::erase_if(*names, [&](const auto &entry) {
      const auto &[name, info] = entry;
      auto header = headers.find(info.file);
      if (header == headers.end() || header->second.contains(name))
        return false;
      Lacking &found = lacking[info.file];
      if (found.count++ == 0)
        found.first = name;
      return true;
    });
    tensors = std::move(*names);
    source += source.empty() ? "the index" : " and the index";
  }
  for (auto &[file, header] : headers) {
    for (const auto &[name, info] : header)
      tensors.erase(name); // a header tells more than the index
    tensors.merge(header);
  }
  TensorReport report = checkTensors(checkpoint, tensors);
  report.source = std::move(source);
  std::vector<std::string> first;
  for (const auto &[file, found] : lacking)
    first.push_back(fmt::format("{} lacks {} tensor{} that the index places there, such as {}",
                                file, found.count, found.count == 1 ? "" : "s", found.first));
  report.findingCount += int64_t(first.size());
  report.findings.insert(report.findings.begin(), first.begin(), first.end());
  report.findings.resize(std::min(report.findings.size(), mostFindings));
  return report;
}

} // namespace moejit::checkpoint

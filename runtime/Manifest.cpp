// The manifest as JSON: written by hand, read strictly.
#include "runtime/Manifest.h"

#include "runtime/JsonReader.h"
#include "runtime/Keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace moejit {
namespace {

constexpr int64_t noEnd = std::numeric_limits<int64_t>::max();

/// `text` as a JSON string.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else if (uint8_t(c) < 0x20)
      result += fmt::format("\\u{:04x}", int(c));
    else
      result += c;
  }
  return result + '"';
}

std::string rowsJson(const std::vector<std::pair<int64_t, int64_t>> &rows) {
  std::string text;
  for (auto [first, last] : rows)
    text += fmt::format("{}[{}, {}]", text.empty() ? "" : ", ", first,
                        last == noEnd ? "null" : fmt::format("{}", last));
  return "[" + text + "]";
}

/// Takes fields of one object, and remembers the first that was not what it had to be.
class Fields {
public:
  Fields(const JsonValue &object, std::string place) : object(object), place(std::move(place)) {}

  std::string text(std::string_view name) {
    const JsonValue *value = object.find(name);
    if (value && value->kind == JsonValue::Kind::String)
      return value->text;
    blame(name, "a string");
    return "";
  }
  uint64_t number(std::string_view name, int64_t most = int64_t(1) << 53) {
    const JsonValue *value = object.find(name);
    std::optional<int64_t> number = value ? value->integer() : std::nullopt;
    if (number && *number >= 0 && *number <= most)
      return uint64_t(*number);
    blame(name, "a whole number");
    return 0;
  }
  std::string sha256(std::string_view name) {
    std::string digest = text(name);
    if (!isSha256(digest))
      blame(name, "a SHA-256");
    return digest;
  }
  void blame(std::string_view name, std::string_view expected) {
    if (problem.empty())
      problem = fmt::format("{}: '{}' is not {}", place, name, expected);
  }

  std::string problem;

private:
  const JsonValue &object;
  std::string place;
};

Error damaged(std::string what) {
  return {ErrorCode::ParseError,
          fmt::format("{} is damaged: {}", manifestName, what),
          {"build the bundle again: moejit aot"}};
}

/// `value` as closed ranges; nothing when it is something else.
std::optional<std::vector<std::pair<int64_t, int64_t>>> parseRows(const JsonValue *value) {
  if (!value || value->kind != JsonValue::Kind::Array)
    return std::nullopt;
  std::vector<std::pair<int64_t, int64_t>> rows;
  for (const JsonValue &item : value->items) {
    if (item.kind != JsonValue::Kind::Array || item.items.size() != 2)
      return std::nullopt;
    std::optional<int64_t> first = item.items[0].integer(), last = item.items[1].integer();
    if (item.items[1].kind == JsonValue::Kind::Null)
      last = noEnd;
    if (!first || !last || *first < 0 || *last < *first ||
        (!rows.empty() && *first <= rows.back().second))
      return std::nullopt;
    rows.emplace_back(*first, *last);
  }
  return rows;
}

Result<ManifestKernel> parseKernel(const JsonValue &value, size_t at) {
  Fields fields(value, fmt::format("kernel {}", at));
  ManifestKernel kernel;
  kernel.name = fields.sha256("name");
  kernel.lookup = fields.sha256("lookup");
  if (auto rows = parseRows(value.find("rows")))
    kernel.rows = std::move(*rows);
  else
    fields.blame("rows", "ascending ranges");
  constexpr int64_t most = std::numeric_limits<uint32_t>::max();
  kernel.arch = fields.text("arch");
  kernel.spec = fields.text("spec");
  kernel.plan = fields.text("plan");
  kernel.nvrtc = fields.text("nvrtc");
  kernel.minDriver = uint32_t(fields.number("minDriver", most));
  kernel.resources.registers = uint32_t(fields.number("registers", most));
  kernel.resources.spillStoreBytes = uint32_t(fields.number("spillStoreBytes", most));
  kernel.resources.spillLoadBytes = uint32_t(fields.number("spillLoadBytes", most));
  kernel.resources.stackBytes = uint32_t(fields.number("stackBytes", most));
  kernel.resources.staticSharedBytes = uint32_t(fields.number("staticSharedBytes", most));
  kernel.sharedBytes = fields.number("sharedBytes");
  kernel.threads = fields.number("threads");
  if (!fields.problem.empty())
    return damaged(fields.problem);
  return kernel;
}

} // namespace

bool isSha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

uint32_t Manifest::minDriver() const {
  uint32_t least = 0;
  for (const ManifestKernel &kernel : kernels)
    least = std::max(least, kernel.minDriver);
  return least;
}

ManifestKernel manifestKernel(const Artifact &artifact, const std::vector<IndexedRange> &ranges) {
  ManifestKernel kernel;
  kernel.name = keyName(artifact.buildKey);
  kernel.lookup = keyName(artifact.lookupKey);
  for (const IndexedRange &range : ranges)
    kernel.rows.emplace_back(range.minRows, range.maxRows);
  kernel.arch = artifact.arch;
  kernel.spec = canonicalText(artifact.spec);
  kernel.plan = artifact.planText;
  kernel.nvrtc = artifact.nvrtcVersion;
  kernel.minDriver = artifact.minDriver;
  kernel.resources = artifact.resources;
  kernel.sharedBytes = artifact.launch.sharedBytes + artifact.resources.staticSharedBytes;
  kernel.threads = artifact.launch.threads;
  return kernel;
}

std::string manifestJson(const Manifest &manifest) {
  std::string text =
      fmt::format("{{\n  \"formatMajor\": {},\n  \"formatMinor\": {},\n  \"minDriver\": {},\n"
                  "  \"kernels\": [",
                  Artifact::formatMajor, Artifact::formatMinor, manifest.minDriver());
  const char *separator = "\n";
  for (const ManifestKernel &kernel : manifest.kernels) {
    const ResourceUsage &used = kernel.resources;
    text += fmt::format(
        "{}    {{\"name\": {},\n     \"lookup\": {},\n     \"rows\": {}, \"arch\": {}, \"nvrtc\": "
        "{}, \"minDriver\": {},\n     \"registers\": {}, \"spillStoreBytes\": {}, "
        "\"spillLoadBytes\": {}, \"stackBytes\": {},\n     \"staticSharedBytes\": {}, "
        "\"sharedBytes\": {}, \"threads\": {},\n     \"spec\": {},\n     \"plan\": {}}}",
        separator, quoted(kernel.name), quoted(kernel.lookup), rowsJson(kernel.rows),
        quoted(kernel.arch), quoted(kernel.nvrtc), kernel.minDriver, used.registers,
        used.spillStoreBytes, used.spillLoadBytes, used.stackBytes, used.staticSharedBytes,
        kernel.sharedBytes, kernel.threads, quoted(kernel.spec), quoted(kernel.plan));
    separator = ",\n";
  }
  text += "\n  ],\n  \"files\": {";
  separator = "\n";
  for (const auto &[name, file] : manifest.files) {
    text += fmt::format("{}    {}: {{\"bytes\": {}, \"sha256\": \"{}\"}}", separator, quoted(name),
                        file.bytes, file.sha256);
    separator = ",\n";
  }
  return text + "\n  }\n}\n";
}

Result<Manifest> parseManifest(std::string_view text) {
  Result<JsonValue> json = parseJson(text);
  if (!json)
    return damaged(json.error().message);
  const JsonValue *major = json->find("formatMajor");
  std::optional<int64_t> format = major ? major->integer() : std::nullopt;
  if (!format)
    return damaged("it names no format");
  if (*format != Artifact::formatMajor)
    return Error{ErrorCode::ParseError,
                 fmt::format("the manifest has format {}, this runtime reads format {}", *format,
                             Artifact::formatMajor),
                 {"build the bundle again with this version: moejit aot"}};
  const JsonValue *kernels = json->find("kernels"), *files = json->find("files");
  if (!kernels || kernels->kind != JsonValue::Kind::Array || !files ||
      files->kind != JsonValue::Kind::Object)
    return damaged("it has no list of kernels, or none of files with their checksums");
  Manifest manifest;
  for (const auto &[name, value] : files->members) {
    Fields fields(value, name);
    ManifestFile file{fields.number("bytes"), fields.sha256("sha256")};
    if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos)
      fields.blame("name", "the name of a file of the folder");
    if (!fields.problem.empty())
      return damaged(fields.problem);
    manifest.files.emplace(name, std::move(file));
  }
  for (const JsonValue &value : kernels->items) {
    Result<ManifestKernel> kernel = parseKernel(value, manifest.kernels.size());
    if (!kernel)
      return kernel.error();
    for (const std::string &file : {kernel->name + ".kernel", kernel->lookup + ".index"})
      if (!manifest.files.contains(file))
        return damaged(
            fmt::format("kernel {}: {} is not among the files", manifest.kernels.size(), file));
    manifest.kernels.push_back(std::move(*kernel));
  }
  return manifest;
}

} // namespace moejit

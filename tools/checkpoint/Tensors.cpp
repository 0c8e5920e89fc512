// safetensors: eight bytes of length, a JSON header of that length, data. An index maps names to
// files.
#include "tools/checkpoint/Tensors.h"

#include "runtime/JsonReader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>

namespace moejit::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t mostHeaderBytes = 100'000'000; ///< the format's own limit
constexpr uint64_t mostIndexBytes = uint64_t(256) << 20;
constexpr size_t mostFindings = 50;

Error broken(const std::string &path, const std::string &what) {
  return Error{ErrorCode::ParseError, fmt::format("{}: {}", path, what), {}};
}

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

/// A tensor of an expert, by its name.
struct ExpertTensor {
  int64_t layer = 0;
  int64_t expert = 0; ///< -1: all experts in one tensor
  std::string projection;
  std::string kind; ///< "weight", "scale", "input_scale"
};

std::optional<int64_t> numberOf(std::string_view text) {
  int64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool isWhole = code == std::errc() && end == text.data() + text.size() && value >= 0;
  return isWhole ? std::optional(value) : std::nullopt;
}

std::string kindOf(std::string_view word) {
  if (word == "weight")
    return "weight";
  for (const char *name : {"weight_scale_inv", "weight_scale", "scale", "qscale_weight"})
    if (word == name)
      return "scale";
  for (const char *name : {"input_scale", "activation_scale", "qscale_act"})
    if (word == name)
      return "input_scale";
  return "";
}

/// "…layers.3.mlp.experts.7.gate_proj.weight" and its like; nothing for other names.
std::optional<ExpertTensor> parseName(std::string_view name) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('.', begin), name.size());
    words.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  ExpertTensor tensor;
  bool hasLayer = false;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    // Layers that predict further tokens are counted from 0 too, and are no part of the others.
    if (words[i].starts_with("mtp"))
      return std::nullopt;
    if (words[i] == "layers")
      if (std::optional<int64_t> layer = numberOf(words[i + 1])) {
        tensor.layer = *layer;
        hasLayer = true;
      }
    if (words[i] != "experts" || !hasLayer)
      continue;
    std::optional<int64_t> expert = numberOf(words[i + 1]);
    if (expert && i + 4 == words.size()) {
      tensor.expert = *expert;
      tensor.projection = words[i + 2];
      tensor.kind = kindOf(words[i + 3]);
      static const std::map<std::string, std::string> synonyms = {
          {"w1", "gate_proj"}, {"w3", "up_proj"}, {"w2", "down_proj"}};
      if (auto found = synonyms.find(tensor.projection); found != synonyms.end())
        tensor.projection = found->second;
      return tensor.kind.empty() ? std::nullopt : std::optional(tensor);
    }
    return std::nullopt;
  }
  return std::nullopt;
}

bool isFp8Type(const std::string &type) { return type == "F8_E4M3" || type == "F8_E5M2"; }

std::string shapeText(const std::vector<int64_t> &shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Compares experts one by one.
class Comparison {
public:
  Comparison(const Checkpoint &checkpoint, const TensorMap &tensors)
      : checkpoint(checkpoint), tensors(tensors) {}

  TensorReport run() {
    report.tensors = int64_t(tensors.size());
    gather();
    report.layers = int64_t(layers.size());
    if (layers.empty())
      return std::move(report);
    int64_t scaledLayers = 0;
    for (const auto &[layer, experts] : layers) {
      bool hasScales = std::any_of(experts.begin(), experts.end(), [](const auto &entry) {
        return std::any_of(entry.second.begin(), entry.second.end(),
                           [](const auto &projection) { return projection.second.scale; });
      });
      scaledLayers += hasScales;
      compareLayer(layer, experts, hasScales);
    }
    const Experts &routed = checkpoint.routed;
    if (routed.fp8Layers > scaledLayers)
      find(fmt::format("{} layers have scales for their experts, the configuration says {}",
                       scaledLayers, routed.fp8Layers));
    if (routed.layers > report.layers)
      find(fmt::format("{} layers have experts, the configuration says {}", report.layers,
                       routed.layers));
    return std::move(report);
  }

private:
  struct Parts {
    const TensorInfo *weight = nullptr, *scale = nullptr, *input = nullptr;
  };
  using ExpertMap = std::map<int64_t, std::map<std::string, Parts>>;

  void gather() {
    for (const auto &[name, info] : tensors) {
      report.hasTypes = report.hasTypes || !info.type.empty();
      std::optional<ExpertTensor> tensor = parseName(name);
      if (!tensor)
        continue;
      Parts &parts = layers[tensor->layer][tensor->expert][tensor->projection];
      (tensor->kind == "weight"  ? parts.weight
       : tensor->kind == "scale" ? parts.scale
                                 : parts.input) = &info;
    }
  }

  void find(std::string text) {
    ++report.findingCount;
    if (report.findings.size() < mostFindings)
      report.findings.push_back(std::move(text));
  }

  void compareLayer(int64_t layer, const ExpertMap &experts, bool hasScales) {
    const Experts &routed = checkpoint.routed;
    std::vector<std::string> wanted = {"up_proj", "down_proj"};
    if (routed.isGated)
      wanted.insert(wanted.begin(), "gate_proj");
    static const std::map<std::string, Parts> none;
    for (int64_t expert = 0; expert < routed.count; ++expert) {
      auto found = experts.find(expert);
      const std::map<std::string, Parts> &projections =
          found == experts.end() ? none : found->second;
      for (const std::string &projection : wanted) {
        auto at = projections.find(projection);
        Parts parts = at == projections.end() ? Parts() : at->second;
        std::string where = fmt::format("layer {}, {}, expert {}", layer, projection, expert);
        if (!parts.weight) {
          find(fmt::format("{}: no weight", where));
          continue;
        }
        compare(where, parts, projection == "down_proj", hasScales);
      }
    }
    if (!experts.empty() && experts.rbegin()->first >= routed.count)
      find(fmt::format("layer {}: expert {}, the configuration says {} experts", layer,
                       experts.rbegin()->first, routed.count));
  }

  void compare(const std::string &where, const Parts &parts, bool isDown, bool hasScales) {
    const Experts &routed = checkpoint.routed;
    const Scheme &scheme = isDown ? routed.down : routed.up;
    bool hasType = !parts.weight->type.empty();
    bool isFp8 = hasType ? isFp8Type(parts.weight->type) : hasScales && scheme.isFp8;
    // Layers that the configuration leaves out are stored in 16 bits, and need nothing.
    if (!isFp8 && !(hasType && hasScales && scheme.isFp8))
      return;
    if (!isFp8)
      return find(fmt::format("{}: the weight is {}, in a layer that has FP8 scales", where,
                              parts.weight->type));
    if (!scheme.isFp8)
      return find(fmt::format("{}: the weight is {}, the configuration says {}", where,
                              parts.weight->type, scheme.name));
    std::vector<int64_t> shape = {isDown ? routed.input : routed.intermediate,
                                  isDown ? routed.intermediate : routed.input};
    if (hasType && parts.weight->shape != shape)
      find(fmt::format("{}: the weight is {}, expected {}", where, shapeText(parts.weight->shape),
                       shapeText(shape)));
    if (!parts.scale)
      find(fmt::format("{}: no weight scale", where));
    else if (!parts.scale->type.empty())
      compareScale(where, *parts.scale, scheme, shape);
    if (scheme.source != ScaleSource::Static)
      return;
    report.hasStaticScales = true;
    if (!parts.input)
      return find(fmt::format("{}: no activation scale (input_scale), and the scheme is static: "
                              "no value is made up for it",
                              where));
    if (!parts.input->type.empty())
      compareOne(where + ", activation scale", *parts.input);
  }

  /// A tensor of one value.
  void compareOne(const std::string &where, const TensorInfo &info) {
    bool isOne = std::all_of(info.shape.begin(), info.shape.end(),
                             [](int64_t extent) { return extent == 1; });
    if (!isOne)
      find(fmt::format("{}: {}, expected one value", where, shapeText(info.shape)));
    checkType(where, info, ElementType::F32);
  }

  void checkType(const std::string &where, const TensorInfo &info, ElementType scale) {
    bool isFloat = info.type == "F32" || info.type == "BF16" || info.type == "F16";
    bool isPower = scale == ElementType::F8E8M0FNU && (info.type == "F8_E8M0" || info.type == "U8");
    if (!isFloat && !isPower)
      find(fmt::format("{}: scales of type {}, expected F32{}", where, info.type,
                       scale == ElementType::F8E8M0FNU ? " or F8_E8M0" : ""));
  }

  void compareScale(const std::string &where, const TensorInfo &info, const Scheme &scheme,
                    const std::vector<int64_t> &shape) {
    if (scheme.weights == Strategy::Tensor)
      return compareOne(where + ", weight scale", info);
    bool isBlock = scheme.weights == Strategy::Block;
    int64_t blockN = isBlock ? scheme.blockN : 1, blockK = isBlock ? scheme.blockK : shape[1];
    std::vector<int64_t> wanted = {(shape[0] + blockN - 1) / blockN,
                                   (shape[1] + blockK - 1) / blockK};
    bool isColumn = !isBlock && info.shape == std::vector<int64_t>{shape[0]};
    if (info.shape != wanted && !isColumn)
      find(fmt::format("{}: weight scales are {}, expected {}", where, shapeText(info.shape),
                       shapeText(wanted)));
    checkType(where + ", weight scale", info, scheme.scaleType);
  }

  const Checkpoint &checkpoint;
  const TensorMap &tensors;
  std::map<int64_t, ExpertMap> layers;
  TensorReport report;
};

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
  for (const auto &[name, value] : map->members)
    tensors.emplace(name, TensorInfo());
  return tensors;
}

TensorReport checkTensors(const Checkpoint &checkpoint, const TensorMap &tensors) {
  return Comparison(checkpoint, tensors).run();
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
  std::string index = (folder / "model.safetensors.index.json").string();
  std::error_code ignored;
  bool hasIndex = fs::is_regular_file(index, ignored);
  std::string source;
  if (!files.empty()) {
    for (const std::string &file : files) {
      Result<TensorMap> header = readSafetensorsHeader(file);
      if (!header)
        return header.error();
      tensors.merge(*header);
    }
    source = fmt::format("{} safetensors header{}", files.size(), files.size() == 1 ? "" : "s");
  } else if (!hasIndex) {
    return TensorReport();
  }
  if (hasIndex) {
    // What the index names and no file here has is known by its name: a folder may hold a part.
    Result<TensorMap> names = readSafetensorsIndex(index);
    if (!names)
      return names.error();
    tensors.merge(*names);
    source += source.empty() ? "the index" : " and the index";
  }
  TensorReport report = checkTensors(checkpoint, tensors);
  report.source = std::move(source);
  return report;
}

} // namespace moejit::checkpoint

// Spells of compressed-tensors and modelopt, as schemes.
#include "tools/checkpoint/Schemes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace moejit::checkpoint {
namespace {

constexpr int64_t maxExtent = (int64_t(1) << 31) - 1;

int64_t whole(const JsonValue &value, const std::string &name, Problem &problem) {
  std::optional<int64_t> number = value.integer();
  if (!number || *number < 1 || *number > maxExtent)
    problem.set(fmt::format("{} is no whole number from 1 to {}", name, maxExtent));
  return number.value_or(1);
}

} // namespace

std::string lower(std::string text) {
  for (char &c : text)
    c = char(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string stringOf(const JsonValue *value) {
  return value && value->kind == JsonValue::Kind::String ? value->text : std::string();
}

bool readBlock(const JsonValue *value, const std::string &name, int64_t &blockN, int64_t &blockK,
               Problem &problem) {
  if (!value || value->kind == JsonValue::Kind::Null)
    return false;
  if (value->kind == JsonValue::Kind::String) {
    size_t cross = value->text.find('x');
    auto number = [&](std::string_view part) {
      int64_t result = 0;
      for (char c : part)
        result = c >= '0' && c <= '9' && result < maxExtent ? result * 10 + (c - '0') : -maxExtent;
      return part.empty() ? -1 : result;
    };
    std::string_view text = value->text;
    blockN = cross == std::string::npos ? -1 : number(text.substr(0, cross));
    blockK = cross == std::string::npos ? -1 : number(text.substr(cross + 1));
    if (blockN < 1 || blockK < 1 || blockN > maxExtent || blockK > maxExtent)
      problem.set(fmt::format("{} is \"{}\", expected such as \"128x128\"", name, value->text));
    return true;
  }
  if (value->kind != JsonValue::Kind::Array || value->items.size() != 2) {
    problem.set(fmt::format("{} is no list of two numbers", name));
    return true;
  }
  blockN = whole(value->items[0], name, problem);
  blockK = whole(value->items[1], name, problem);
  return true;
}

void nameScheme(Scheme &scheme) {
  if (!scheme.isFp8)
    return;
  std::string weights = strategyName(scheme.weights);
  if (scheme.weights == Strategy::Block)
    weights = fmt::format("block {}x{}", scheme.blockN, scheme.blockK);
  std::string activations = strategyName(scheme.activations);
  if (scheme.activations == Strategy::Group)
    activations = fmt::format("group {}", scheme.group);
  scheme.name =
      fmt::format("fp8, {} weights x {} {} activations{}", weights,
                  scheme.source == ScaleSource::Static ? "static" : "dynamic", activations,
                  scheme.scaleType == ElementType::F8E8M0FNU ? ", ue8m0 scales" : "");
  if (scheme.weightText == "-")
    scheme.weightText = strategyName(scheme.weights);
  if (scheme.activationText == "-")
    scheme.activationText = strategyName(scheme.activations);
}

CompressedSide readCompressedSide(const JsonValue *value, const std::string &name,
                                  Problem &problem) {
  CompressedSide side;
  if (!value || value->kind != JsonValue::Kind::Object)
    return side;
  side.isThere = true;
  const JsonValue *bits = value->find("num_bits");
  int64_t count = bits ? whole(*bits, name + ".num_bits", problem) : 8;
  std::string type = lower(stringOf(value->find("type")));
  side.type = fmt::format("{} {}", type.empty() ? "int" : type, count);
  side.isFp8 = type == "float" && count == 8;
  const JsonValue *dynamic = value->find("dynamic");
  side.isDynamic = dynamic && (dynamic->boolean || dynamic->kind == JsonValue::Kind::String);
  const JsonValue *group = value->find("group_size");
  std::optional<int64_t> size = group ? group->integer() : std::nullopt;
  side.group = size.value_or(0);
  if (side.group < -1 || side.group > maxExtent)
    problem.set(fmt::format("{}.group_size is no size of a group", name));
  readBlock(value->find("block_structure"), name + ".block_structure", side.blockN, side.blockK,
            problem);
  std::string scale = lower(stringOf(value->find("scale_dtype")));
  if (contains(scale, "e8m0") || contains(scale, "uint8"))
    side.scaleType = ElementType::F8E8M0FNU;
  side.strategyText = lower(stringOf(value->find("strategy")));
  if (side.strategyText.empty()) {
    side.isDefaulted = true;
    side.strategyText = side.blockN > 0  ? "block"
                        : side.group > 0 ? "group"
                        : side.group < 0 ? "channel"
                                         : "tensor";
  }
  static const std::map<std::string, Strategy> strategies = {
      {"tensor", Strategy::Tensor}, {"channel", Strategy::Channel}, {"token", Strategy::Token},
      {"group", Strategy::Group},   {"block", Strategy::Block},
  };
  auto found = strategies.find(side.strategyText);
  side.strategy = found == strategies.end() ? Strategy::Other : found->second;
  const JsonValue *symmetric = value->find("symmetric");
  if (symmetric && symmetric->kind == JsonValue::Kind::Boolean && !symmetric->boolean && side.isFp8)
    side.strategy = Strategy::Other;
  return side;
}

Scheme compressedScheme(const CompressedSide &weights, const CompressedSide &activations,
                        const std::string &field, Problem &problem) {
  Scheme scheme;
  scheme.field = field;
  scheme.isFp8 = weights.isFp8 && activations.isFp8;
  if (!scheme.isFp8) {
    scheme.name = fmt::format("{} weights x {} activations", weights.type,
                              activations.isThere ? activations.type : "16-bit");
    return scheme;
  }
  scheme.weights = weights.strategy;
  scheme.blockN = weights.blockN;
  scheme.blockK = weights.blockK;
  if (weights.strategy == Strategy::Group) { // a row of weights in groups is a block one row high
    scheme.weights = Strategy::Block;
    scheme.blockN = 1;
    scheme.blockK = weights.group;
  }
  if (scheme.weights == Strategy::Block && (scheme.blockN < 1 || scheme.blockK < 1))
    problem.set(fmt::format("{}.weights has no block_structure (or group_size)", field));
  scheme.activations = activations.strategy;
  scheme.group = activations.group;
  if (activations.strategy == Strategy::Group && scheme.group < 1)
    problem.set(fmt::format("{}.input_activations has no group_size", field));
  if (activations.strategy == Strategy::Block) { // 1 x 128 is a group, however it is spelled
    scheme.activations = activations.blockN == 1 ? Strategy::Group : Strategy::Other;
    scheme.group = activations.blockK;
  }
  scheme.source = activations.isDynamic ? ScaleSource::Dynamic : ScaleSource::Static;
  scheme.scaleType = weights.scaleType;
  scheme.weightText = weights.strategyText;
  scheme.activationText = activations.strategyText;
  scheme.isStrategyDefaulted = weights.isDefaulted || activations.isDefaulted;
  nameScheme(scheme);
  return scheme;
}

Scheme modelOptScheme(const std::string &algorithm, const std::string &field) {
  Scheme scheme;
  scheme.field = field;
  scheme.name = algorithm.empty() ? "none" : algorithm;
  std::string name = lower(algorithm);
  if (name == "fp8") {
    scheme.isFp8 = true;
    scheme.weights = scheme.activations = Strategy::Tensor;
    scheme.source = ScaleSource::Static;
  } else if (name == "fp8_per_channel_per_token") {
    scheme.isFp8 = true;
    scheme.weights = Strategy::Channel;
    scheme.activations = Strategy::Token;
  } else if (name == "mxfp8") {
    scheme.isFp8 = true;
    scheme.weights = Strategy::Block;
    scheme.blockN = 1;
    scheme.blockK = scheme.group = 32;
    scheme.activations = Strategy::Group;
    scheme.scaleType = ElementType::F8E8M0FNU;
  } else {
    return scheme;
  }
  nameScheme(scheme);
  return scheme;
}

} // namespace moejit::checkpoint

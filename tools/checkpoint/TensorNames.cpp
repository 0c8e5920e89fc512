// Words between dots: a layer, then the experts, then a projection.
#include "tools/checkpoint/TensorNames.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace moejit::checkpoint {
namespace {

std::vector<std::string_view> wordsOf(std::string_view name) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('.', begin), name.size());
    words.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::optional<int64_t> numberOf(std::string_view text) {
  int64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool isWhole = code == std::errc() && end == text.data() + text.size() && value >= 0;
  return isWhole ? std::optional(value) : std::nullopt;
}

/// "weight" and its like, behind a projection and a dot.
std::optional<TensorPart> partOf(std::string_view word) {
  if (word == "weight")
    return TensorPart::Weight;
  for (const char *name : {"weight_scale_inv", "weight_scale", "scale", "qscale_weight"})
    if (word == name)
      return TensorPart::Scale;
  for (const char *name : {"input_scale", "activation_scale", "qscale_act"})
    if (word == name)
      return TensorPart::InputScale;
  return std::nullopt;
}

/// The projection of one expert.
std::optional<std::string> projectionOf(std::string_view word) {
  for (auto [name, other] :
       {std::pair("gate_proj", "w1"), std::pair("up_proj", "w3"), std::pair("down_proj", "w2")})
    if (word == name || word == other)
      return name;
  return std::nullopt;
}

/// "gate_up_proj_scale_inv" and its like.
std::optional<ExpertTensor> fusedOf(int64_t layer, std::string_view word) {
  for (std::string_view projection : {"gate_up_proj", "up_proj", "down_proj"}) {
    if (!word.starts_with(projection))
      continue;
    std::string_view rest = word.substr(projection.size());
    for (auto [suffix, part] :
         {std::pair("", TensorPart::Weight), std::pair("_scale_inv", TensorPart::Scale),
          std::pair("_weight_scale", TensorPart::Scale),
          std::pair("_activation_scale", TensorPart::InputScale),
          std::pair("_input_scale", TensorPart::InputScale)})
      if (rest == suffix)
        return ExpertTensor{layer, std::nullopt, std::string(projection), part};
  }
  return std::nullopt;
}

} // namespace

TensorName parseTensorName(std::string_view name) {
  std::vector<std::string_view> words = wordsOf(name);
  // Layers that predict further tokens are counted from 0 too, and are no part of the others.
  if (std::any_of(words.begin(), words.end(),
                  [](std::string_view word) { return word.starts_with("mtp"); }))
    return {};
  TensorName result;
  std::optional<int64_t> layer;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    size_t behind = words.size() - i - 1;
    if (words[i] == "layers")
      if (std::optional<int64_t> number = numberOf(words[i + 1]))
        layer = number;
    if (words[i] == "experts") {
      result.isOfExperts = true;
      if (!layer)
        continue;
      if (behind == 1) {
        result.tensor = fusedOf(*layer, words[i + 1]);
        return result;
      }
      std::optional<int64_t> expert = numberOf(words[i + 1]);
      if (!expert || behind != 3)
        return result;
      std::optional<std::string> projection = projectionOf(words[i + 2]);
      std::optional<TensorPart> part = partOf(words[i + 3]);
      if (projection && part)
        result.tensor = ExpertTensor{*layer, expert, *projection, *part};
      return result;
    }
    if (words[i] == "moe" && layer && behind == 2 && words[i + 1].ends_with("_proj")) {
      std::optional<std::string> projection = projectionOf(words[i + 1]);
      std::optional<TensorPart> part = partOf(words[i + 2]);
      result.isOfExperts = true;
      if (projection && part)
        result.tensor = ExpertTensor{*layer, std::nullopt, *projection, *part};
      return result;
    }
  }
  return result;
}

} // namespace moejit::checkpoint

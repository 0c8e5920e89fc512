// Reads the shapes of a model's experts from a configuration. Fields have many names; models have
// none here.
#include "tools/checkpoint/Config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace moejit::checkpoint {
namespace {

constexpr int64_t maxExtent = (int64_t(1) << 31) - 1;
constexpr int64_t maxCount = 1 << 16; ///< experts
constexpr int64_t maxLayers = 4096;   ///< of which each is compared with every name excluded

bool hasAny(const JsonValue &object, std::initializer_list<const char *> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char *name) { return object.find(name) != nullptr; });
}

/// The object below `value` that `fits`, at most three levels down; null when there is none.
/// Towers for images and sound have hidden sizes too, and quantizations are not models.
template <typename Fits>
const JsonValue *findObject(const JsonValue &value, const Fits &fits, int depth) {
  if (value.kind != JsonValue::Kind::Object || depth > 3)
    return nullptr;
  if (fits(value))
    return &value;
  for (const auto &[name, member] : value.members) {
    bool isOther = false;
    for (const char *part : {"vision", "audio", "quant", "image", "speech", "talker", "draft"})
      isOther = isOther || name.find(part) != std::string::npos;
    if (isOther)
      continue;
    if (const JsonValue *found = findObject(member, fits, depth + 1))
      return found;
  }
  return nullptr;
}

constexpr std::initializer_list<const char *> expertFields = {
    "n_routed_experts", "num_routed_experts", "num_experts",     "num_local_experts",
    "moe_num_experts",  "n_experts",          "num_moe_experts", "num_experts_per_layer"};
constexpr std::initializer_list<const char *> hiddenFields = {"hidden_size", "d_model", "n_embd",
                                                              "dim"};

} // namespace

const char *methodName(Method method) {
  switch (method) {
  case Method::None:
    return "none";
  case Method::Fp8:
    return "fp8";
  case Method::CompressedTensors:
    return "compressed-tensors";
  case Method::ModelOpt:
    return "modelopt";
  case Method::Other:
    return "other";
  }
  return "";
}

const char *strategyName(Strategy strategy) {
  constexpr std::array names = {"none", "tensor", "channel", "token", "group", "block", "other"};
  return names[size_t(strategy)];
}

Fields::Fields(const JsonValue &root) {
  const JsonValue *nested =
      findObject(root, [](const JsonValue &object) { return hasAny(object, expertFields); }, 0);
  if (!nested)
    nested =
        findObject(root, [](const JsonValue &object) { return hasAny(object, hiddenFields); }, 0);
  // ffn_config and its like hold the experts' fields alone: what is around them counts too.
  if (nested && nested != &root) {
    objects.push_back(nested);
    if (!hasAny(*nested, hiddenFields))
      if (const JsonValue *outer = findObject(
              root, [](const JsonValue &object) { return hasAny(object, hiddenFields); }, 0);
          outer && outer != &root)
        objects.push_back(outer);
  }
  objects.push_back(&root);
}

const JsonValue *Fields::find(std::initializer_list<const char *> names, std::string *found) {
  for (const JsonValue *object : objects)
    for (const char *name : names)
      if (const JsonValue *value = object->find(name);
          value && value->kind != JsonValue::Kind::Null) {
        if (found)
          *found = name;
        return value;
      }
  return nullptr;
}

void Fields::fail(std::string what) {
  if (firstProblem.empty())
    firstProblem = std::move(what);
}

int64_t Fields::integer(std::initializer_list<const char *> names, int64_t least, int64_t most,
                        std::string *found) {
  std::string name;
  const JsonValue *value = find(names, &name);
  if (!value)
    return 0;
  if (found)
    *found = name;
  bool isList = value->kind == JsonValue::Kind::Array;
  if (isList && value->items.empty())
    return 0;
  const JsonValue &one = isList ? value->items.front() : *value;
  std::optional<int64_t> number = one.integer();
  if (isList)
    for (const JsonValue &item : value->items)
      if (item.integer() != number) {
        fail(fmt::format("{} differs from layer to layer, which is not supported", name));
        return 0;
      }
  if (!number || *number < least || *number > most) {
    fail(number ? fmt::format("{} is {}, expected a whole number from {} to {}", name, *number,
                              least, most)
                : fmt::format("{} is no whole number from {} to {}", name, least, most));
    return 0;
  }
  return *number;
}

bool Fields::flag(std::initializer_list<const char *> names, bool standard) {
  const JsonValue *value = find(names);
  return value && value->kind == JsonValue::Kind::Boolean ? value->boolean : standard;
}

std::string Fields::text(std::initializer_list<const char *> names, std::string standard) {
  const JsonValue *value = find(names);
  return value && value->kind == JsonValue::Kind::String ? value->text : std::move(standard);
}

std::vector<int64_t> expertLayers(Fields &fields, int64_t layers) {
  std::vector<int64_t> chosen;
  // One entry a layer.
  if (const JsonValue *list = fields.find(
          {"layers_block_type", "mlp_layer_types", "moe_layer_freq", "moe_layer_pattern"});
      list && list->kind == JsonValue::Kind::Array && !list->items.empty()) {
    for (size_t i = 0; i < list->items.size(); ++i) {
      const JsonValue &item = list->items[i];
      bool isText = item.kind == JsonValue::Kind::String;
      if (isText ? item.text == "moe" || item.text == "sparse" : item.integer().value_or(0) != 0)
        chosen.push_back(int64_t(i));
    }
    return chosen;
  }
  if (std::string pattern = fields.text({"hybrid_override_pattern"}, ""); !pattern.empty()) {
    for (size_t i = 0; i < pattern.size(); ++i)
      if (pattern[i] == 'E')
        chosen.push_back(int64_t(i));
    return chosen;
  }
  if (const JsonValue *list = fields.find({"moe_layers"});
      list && list->kind == JsonValue::Kind::Array && !list->items.empty()) {
    for (const JsonValue &item : list->items)
      if (std::optional<int64_t> index = item.integer(); index && *index >= 0 && *index < maxLayers)
        chosen.push_back(*index);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }
  // A first layer, a last one, and a step.
  int64_t first = fields.integer({"first_k_dense_replace", "moe_layer_start_index"}, 0, maxCount);
  int64_t last = fields.integer({"moe_layer_end_index"}, -1, maxCount);
  std::string stepField;
  int64_t step =
      std::max<int64_t>(fields.integer({"moe_layer_freq", "moe_layer_interval",
                                        "decoder_sparse_step", "interleave_moe_layer_step"},
                                       0, maxCount, &stepField),
                        1);
  std::set<int64_t> dense;
  if (const JsonValue *list = fields.find({"mlp_only_layers"}))
    for (const JsonValue &item : list->items)
      dense.insert(item.integer().value_or(-1));
  // moe_layer_freq counts from layer 0, the others take the last layer of each step.
  int64_t offset = stepField == "moe_layer_freq" ? 0 : step - 1;
  for (int64_t i = first; i < layers; ++i)
    if (i % step == offset && !dense.contains(i) && (last <= 0 || i <= last))
      chosen.push_back(i);
  return chosen;
}

ModuleNames::ModuleNames(const std::vector<std::string> &patterns) {
  constexpr std::string_view marker = "layers.";
  constexpr size_t most = 16; ///< each prefix is tried with each container
  for (const std::string &pattern : patterns) {
    if (pattern.starts_with("re:") || pattern.size() > 300)
      continue;
    std::string_view text = pattern;
    size_t at = text.find(marker);
    if (at == std::string_view::npos || at > 64)
      continue;
    std::string_view rest = text.substr(at + marker.size());
    size_t number = 0;
    while (number < rest.size() && (std::isdigit(static_cast<unsigned char>(rest[number])) ||
                                    (number == 0 && rest[number] == '*')))
      ++number;
    if (number == 0 || text.find('*') < at)
      continue;
    // The layers that predict further tokens are called apart, and are not all there is.
    if (text.substr(0, at).find("mtp") == std::string_view::npos && prefixes.size() < most)
      prefixes.insert(std::string(text.substr(0, at + marker.size())));
    if (number >= rest.size() || rest[number] != '.')
      continue;
    rest.remove_prefix(number + 1);
    for (const char *word : {"router", "experts", "shared_expert", "gate"}) {
      size_t found = rest.find(word);
      if (found == std::string_view::npos || (found > 0 && rest[found - 1] != '.'))
        continue;
      // "gate" is the router where it ends the name; gate_proj is a projection.
      std::string_view after = rest.substr(found + std::string_view(word).size());
      if (std::string_view(word) == "gate" && !after.empty() && after[0] != '.' && after[0] != '*')
        continue;
      bool isOther = rest.substr(0, found).find("attn") != std::string_view::npos;
      if (!isOther && containers.size() < most)
        containers.insert(std::string(rest.substr(0, found)));
    }
  }
  if (prefixes.empty())
    prefixes = {"model.layers.", "model.language_model.layers.", "language_model.model.layers.",
                "backbone.layers.", "layers."};
  if (containers.empty())
    containers = {"mlp.", "block_sparse_moe.", "feed_forward.", "mixer.", "ffn.", "moe."};
}

ModuleNames::Candidates ModuleNames::of(int64_t layer, Projection projection, bool isShared) const {
  std::vector<std::string> words =
      projection == Projection::Gate ? std::vector<std::string>{"gate_proj", "w1"}
      : projection == Projection::Up ? std::vector<std::string>{"up_proj", "w3"}
                                     : std::vector<std::string>{"down_proj", "w2"};
  std::vector<std::string> groups =
      isShared ? std::vector<std::string>{"shared_experts", "shared_expert"}
               : std::vector<std::string>{"experts"};
  Candidates candidates;
  for (const std::string &prefix : prefixes)
    for (const std::string &container : containers)
      for (const std::string &group : groups) {
        std::string parent = fmt::format("{}{}.{}{}", prefix, layer, container, group);
        for (const std::string &word : words)
          candidates.leaves.push_back(parent + (isShared ? "." : ".0.") + word);
        if (!isShared)
          candidates.parents.push_back(parent + ".0");
        candidates.parents.push_back(std::move(parent));
      }
  return candidates;
}

Result<Checkpoint> parseCheckpoint(const std::string &path, const std::string &configText,
                                   const std::string &quantText) {
  JsonOptions options;
  options.allowsNonFinite = true;
  Result<JsonValue> root = parseJson(configText, options);
  if (!root)
    return Error{ErrorCode::ParseError, fmt::format("{}: {}", path, root.error().message), {}};
  if (root->kind != JsonValue::Kind::Object)
    return Error{ErrorCode::ParseError, fmt::format("{}: no JSON object", path), {}};
  Result<JsonValue> quant = JsonValue();
  if (!quantText.empty()) {
    quant = parseJson(quantText, options);
    if (!quant)
      return Error{ErrorCode::ParseError,
                   fmt::format("hf_quant_config.json beside {}: {}", path, quant.error().message),
                   {}};
    if (!quant->find("quantization"))
      return Error{ErrorCode::ParseError,
                   fmt::format("hf_quant_config.json beside {}: has no \"quantization\"", path),
                   {}};
  }
  Fields fields(*root);
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.modelType = fields.text({"model_type"}, "");
  checkpoint.hidden = fields.integer(hiddenFields, 1, maxExtent);
  checkpoint.layers =
      fields.integer({"num_hidden_layers", "n_layers", "n_layer", "num_layers"}, 1, maxLayers);
  checkpoint.topK = fields.integer({"num_experts_per_tok", "num_experts_per_token", "moe_top_k",
                                    "moe_topk", "moe_k", "top_k_experts", "experts_per_token",
                                    "num_selected_experts", "router_topk"},
                                   1, maxCount);
  checkpoint.activation = fields.text(
      {"mlp_hidden_act", "hidden_act", "hidden_activation", "activation_function"}, "silu");

  Experts &routed = checkpoint.routed;
  std::string countField;
  routed.count = fields.integer(expertFields, 0, maxCount, &countField);
  for (const char *other : expertFields)
    if (std::string otherField; routed.count > 0)
      if (int64_t count = fields.integer({other}, 0, maxCount, &otherField);
          !otherField.empty() && count != routed.count)
        checkpoint.notes.push_back(fmt::format("{} is {} and {} is {}: the former is taken",
                                               countField, routed.count, otherField, count));
  if (routed.count > 0 && checkpoint.hidden == 0 && fields.problem().empty())
    fields.fail("no hidden_size (or d_model, n_embd, dim)");

  routed.input = fields.integer({"moe_latent_size", "routed_expert_hidden_size"}, 1, maxExtent);
  if (routed.input == 0)
    routed.input = checkpoint.hidden;
  std::string sizeField;
  routed.intermediate =
      fields.integer({"moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size",
                      "expert_ffn_hidden_size", "ffn_hidden_size", "intermediate_size", "d_ff"},
                     1, maxExtent, &sizeField);
  if (routed.count > 0 && routed.intermediate == 0 && fields.problem().empty())
    fields.fail("no moe_intermediate_size (or intermediate_size)");
  routed.isGated = checkpoint.activation != "relu2" && checkpoint.activation != "relu_squared";
  routed.hasBias =
      fields.flag({"mlp_bias", "moe_bias", "expert_bias", "experts_bias", "use_bias"}, false);

  if (routed.count > 0) {
    std::string sharedField;
    int64_t count = fields.integer(
        {"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"},
        0, maxCount, &sharedField);
    int64_t width =
        fields.integer({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                        "shared_intermediate_size"},
                       0, maxExtent);
    if (width > 0 && sharedField.empty())
      count = 1;
    if (count > 0 && width == 0 && routed.intermediate <= maxExtent / count)
      width = count * routed.intermediate;
    if (count > 0 && width > 0) {
      checkpoint.shared = routed;
      checkpoint.shared->isShared = true;
      checkpoint.shared->count = count;
      checkpoint.shared->input = checkpoint.hidden; // never in the latent space
      checkpoint.shared->intermediate = width;
    }
  }
  std::vector<int64_t> layers = expertLayers(fields, checkpoint.layers);
  if (layers.size() > size_t(maxLayers))
    fields.fail(fmt::format("a list has an entry for each of {} layers", layers.size()));
  routed.layers = int64_t(layers.size());
  if (checkpoint.shared)
    checkpoint.shared->layers = routed.layers;

  const JsonValue *quantization = fields.find({"quantization_config", "compression_config"});
  const JsonValue *hfQuant = quant->find("quantization");
  if (!fields.problem().empty())
    return Error{ErrorCode::InvalidArgument, fmt::format("{}: {}", path, fields.problem()), {}};
  if (Result<void> read = readQuantization(quantization, hfQuant, fields, layers, checkpoint);
      !read)
    return Error{read.error().code, fmt::format("{}: {}", path, read.error().message),
                 read.error().notes};
  return checkpoint;
}

} // namespace moejit::checkpoint

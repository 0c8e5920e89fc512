// Reads what configurations say of quantization: transformers' fp8, compressed-tensors and
// modelopt. One scheme for each projection of routed and shared experts, by their modules' names.
#include "tools/checkpoint/Config.h"
#include "tools/checkpoint/NamePattern.h"
#include "tools/checkpoint/Schemes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

namespace moejit::checkpoint {
namespace {

std::vector<std::string> stringsOf(const JsonValue *value) {
  std::vector<std::string> strings;
  if (value)
    for (const JsonValue &item : value->items)
      if (item.kind == JsonValue::Kind::String)
        strings.push_back(item.text);
  return strings;
}

/// A pattern of an exclusion or a target, made ready.
struct Pattern {
  enum class Kind {
    Literal, ///< names a module, or one above it
    Suffix,  ///< also the end of a name, as in transformers' lists
    Glob,
    Regex
  };
  Kind kind = Kind::Literal;
  std::string text;
  std::optional<Regex> regex;

  /// Adds to `steps` what it took.
  bool matches(std::string_view name, uint64_t &steps) const {
    steps += 8; // what a literal costs
    switch (kind) {
    case Kind::Regex:
      return regex->matchesStart(name, steps);
    case Kind::Glob:
      return matchesGlob(text, name, steps);
    case Kind::Suffix:
      if (name.ends_with(text))
        return true;
      [[fallthrough]];
    case Kind::Literal:
      return name == text || (name.size() > text.size() && name.starts_with(text) &&
                              (name[text.size()] == '.' || text.ends_with('.')));
    }
    return false;
  }
};

class QuantizationReader {
public:
  QuantizationReader(Fields &fields, const std::vector<int64_t> &layers, Checkpoint &checkpoint)
      : fields(fields), layers(layers), checkpoint(checkpoint) {}

  Result<void> read(const JsonValue *quantization, const JsonValue *hfQuant) {
    std::string method =
        lower(stringOf(quantization ? quantization->find("quant_method") : nullptr));
    const JsonValue *algorithm = quantization ? quantization->find("quant_algo") : nullptr;
    bool isModelOpt = method == "modelopt" || method == "modelopt_fp4" ||
                      method == "modelopt_mixed" || (method.empty() && (algorithm || hfQuant));
    if (!quantization && !hfQuant) {
      excuse("no quantization_config: the weights are not quantized");
      return {};
    }
    if (isModelOpt)
      readModelOpt(quantization, hfQuant);
    else if (method == "fp8" || method == "mxfp8")
      readFp8(*quantization, method);
    else if (method == "compressed-tensors" || method == "compressed_tensors" ||
             (method.empty() && quantization->find("config_groups")))
      readCompressedTensors(*quantization);
    else if (method.empty())
      fail("quantization_config has no quant_method, and none of the fields that tell it");
    else
      readOther(method);
    if (!problem.text.empty())
      return Error{ErrorCode::InvalidArgument, problem.text, {}};
    return {};
  }

private:
  /// Nothing is FP8, for one reason.
  void excuse(const std::string &why) {
    checkpoint.routed.why = why;
    if (checkpoint.shared)
      checkpoint.shared->why = why;
  }

  void fail(std::string what) { problem.set(std::move(what)); }

  // What names exclude.

  std::vector<Pattern> patternsOf(const std::vector<std::string> &texts, Pattern::Kind plain) {
    std::vector<Pattern> patterns;
    constexpr size_t most = 100000;
    if (texts.size() > most)
      fail(fmt::format("more than {} names of modules", most));
    for (const std::string &text : texts) {
      Pattern pattern;
      pattern.text = text;
      pattern.kind = plain;
      bool isRegex = text.starts_with("re:");
      // transformers reads its list as regular expressions too; a '*' is the only sign of one.
      bool isWild = plain == Pattern::Kind::Suffix && text.find('*') != std::string::npos;
      if (isRegex || isWild) {
        Result<Regex> regex = Regex::compile(isRegex ? std::string_view(text).substr(3) : text);
        if (regex) {
          pattern.kind = Pattern::Kind::Regex;
          pattern.regex = *regex;
        } else if (isWild) {
          pattern.kind = Pattern::Kind::Glob;
        } else {
          fail(regex.error().message);
        }
      } else if (plain == Pattern::Kind::Glob && text.find_first_of("*?[") == std::string::npos) {
        pattern.kind = Pattern::Kind::Literal;
      }
      if (!text.empty())
        patterns.push_back(std::move(pattern));
    }
    return patterns;
  }

  /// Some pattern names the module or one around it. Stops, with a problem, when there is no end to
  /// the comparing.
  bool isExcluded(const std::vector<Pattern> &patterns, const ModuleNames::Candidates &names) {
    for (const auto *candidates : {&names.parents, &names.leaves})
      for (const Pattern &pattern : patterns) {
        bool isMatch =
            std::any_of(candidates->begin(), candidates->end(), [&](const std::string &name) {
              return steps > mostSteps || pattern.matches(name, steps);
            });
        if (steps > mostSteps) {
          fail("too many names of modules to compare with too many layers");
          return false;
        }
        if (isMatch)
          return true;
      }
    return false;
  }

  /// Fills in schemes of all experts: `schemeOf` gives that of one projection by its names.
  template <typename SchemeOf> void assign(const ModuleNames &names, const SchemeOf &schemeOf) {
    assignTo(checkpoint.routed, names, schemeOf);
    if (checkpoint.shared)
      assignTo(*checkpoint.shared, names, schemeOf);
  }

  template <typename SchemeOf>
  void assignTo(Experts &experts, const ModuleNames &names, const SchemeOf &schemeOf) {
    if (experts.count == 0)
      return;
    std::vector<int64_t> visited = layers;
    if (visited.empty())
      visited = {0};
    // Layers by what holds of them; most checkpoints have one kind.
    struct Kind {
      Scheme up, down;
      int64_t layers = 0;
    };
    std::vector<Kind> kinds;
    bool hasMixedGate = false;
    for (int64_t layer : visited) {
      Scheme up = schemeOf(names.of(layer, Projection::Up, experts.isShared));
      Scheme down = schemeOf(names.of(layer, Projection::Down, experts.isShared));
      if (experts.isGated) {
        Scheme gate = schemeOf(names.of(layer, Projection::Gate, experts.isShared));
        if (!(gate == up)) {
          hasMixedGate = true;
          up.isFp8 = false;
          up.name = fmt::format("{} for gate, {} for up", gate.name, up.name);
        }
      }
      if (!problem.text.empty())
        return;
      auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind &each) {
        return each.up == up && each.down == down;
      });
      if (kind == kinds.end())
        kind = kinds.insert(kinds.end(), Kind{up, down, 0});
      ++kind->layers;
    }
    auto isFp8 = [](const Kind &kind) { return kind.up.isFp8 || kind.down.isFp8; };
    std::stable_sort(kinds.begin(), kinds.end(), [&](const Kind &a, const Kind &b) {
      return isFp8(a) != isFp8(b) ? isFp8(a) : a.layers > b.layers;
    });
    const Kind &first = kinds.front();
    experts.up = first.up;
    experts.down = first.down;
    const char *who = experts.isShared ? "shared experts" : "experts";
    if (hasMixedGate)
      checkpoint.notes.push_back(fmt::format(
          "gate and up of the {} are quantized differently: they are no one GEMM", who));
    if (!isFp8(first)) {
      experts.why = fmt::format("the {} are not FP8: {}{}", who, first.up.name,
                                first.up.field.empty() ? "" : " (" + first.up.field + ")");
      return;
    }
    experts.fp8Layers = layers.empty() ? 0 : first.layers;
    for (size_t i = 1; i < kinds.size(); ++i)
      checkpoint.notes.push_back(
          fmt::format("{} of the {} layers with {} are otherwise: {}{}", kinds[i].layers,
                      visited.size(), who, kinds[i].up.name,
                      kinds[i].up.name == kinds[i].down.name
                          ? ""
                          : fmt::format(", {} for down", kinds[i].down.name)));
  }

  // Methods.

  void readFp8(const JsonValue &config, const std::string &method) {
    checkpoint.method = Method::Fp8;
    checkpoint.methodText = method;
    Scheme scheme;
    scheme.isFp8 = true;
    std::string scheme_fmt = lower(stringOf(config.find("scale_fmt")));
    if (scheme_fmt == "ue8m0") {
      scheme.scaleType = ElementType::F8E8M0FNU;
      checkpoint.methodText += " ue8m0";
    } else if (!scheme_fmt.empty() && scheme_fmt != "float" && scheme_fmt != "fp32") {
      return fail(fmt::format(
          "quantization_config.scale_fmt is \"{}\", expected \"float\" or \"ue8m0\"", scheme_fmt));
    }
    if (std::string format = lower(stringOf(config.find("fmt"))); contains(format, "e5m2"))
      scheme.weightType = ElementType::F8E5M2;
    std::string activation = lower(stringOf(config.find("activation_scheme")));
    if (activation.empty()) {
      activation = "dynamic";
      checkpoint.hasActivationScheme = false;
      checkpoint.notes.push_back("quantization_config has no activation_scheme: \"dynamic\", as "
                                 "transformers takes it; sglang asks for one");
    }
    if (activation != "dynamic" && activation != "static")
      return fail(fmt::format("quantization_config.activation_scheme is \"{}\", expected "
                              "\"dynamic\" or \"static\"",
                              activation));
    scheme.source = activation == "static" ? ScaleSource::Static : ScaleSource::Dynamic;
    const JsonValue *block = config.find("weight_block_size");
    bool isBlock = readBlock(block, "quantization_config.weight_block_size", scheme.blockN,
                             scheme.blockK, problem);
    if (method == "mxfp8") {
      isBlock = true;
      scheme.blockN = 1;
      scheme.blockK = 32;
      scheme.scaleType = ElementType::F8E8M0FNU;
    }
    scheme.weights = isBlock ? Strategy::Block : Strategy::Tensor;
    scheme.isStrategyDefaulted = !block && !isBlock;
    scheme.field = isBlock ? "quantization_config.weight_block_size" : "quantization_config";
    if (scheme.source == ScaleSource::Static || !isBlock) {
      scheme.activations = Strategy::Tensor;
    } else {
      scheme.activations = Strategy::Group;
      scheme.group = scheme.blockK;
    }
    if (scheme.isStrategyDefaulted)
      checkpoint.notes.push_back(
          "quantization_config has no weight_block_size: one scale a tensor, "
          "as sglang and vllm take it; transformers takes [128, 128]");
    if (std::string dispatch = stringOf(config.find("dispatch")); !dispatch.empty()) {
      checkpoint.dispatch = dispatch;
      checkpoint.notes.push_back(
          "quantization_config.dispatch is no field of transformers; there the model's "
          "experts_implementation chooses");
    }
    nameScheme(scheme);
    std::string experts = lower(stringOf(config.find("expert_dtype")));
    if (experts.empty())
      experts = lower(fields.text({"expert_dtype"}, ""));
    std::vector<std::string> texts;
    for (const char *name : {"modules_to_not_convert", "ignored_layers"})
      for (std::string &text : stringsOf(config.find(name)))
        texts.push_back(std::move(text));
    std::vector<Pattern> excluded = patternsOf(texts, Pattern::Kind::Suffix);
    ModuleNames names(texts);
    Scheme none;
    none.name = "excluded";
    none.field = "quantization_config.modules_to_not_convert";
    assign(names, [&](const ModuleNames::Candidates &candidates) {
      return isExcluded(excluded, candidates) ? none : scheme;
    });
    // Experts of another type than the rest of the model; what all tokens visit is of the rest.
    if (!experts.empty() && !contains(experts, "fp8") && !contains(experts, "e4m3")) {
      checkpoint.routed.up = checkpoint.routed.down = Scheme();
      checkpoint.routed.up.name = checkpoint.routed.down.name = experts;
      checkpoint.routed.fp8Layers = 0;
      checkpoint.routed.why =
          fmt::format("the experts are not FP8: expert_dtype is \"{}\"", experts);
    }
  }

  void readCompressedTensors(const JsonValue &config) {
    checkpoint.method = Method::CompressedTensors;
    checkpoint.methodText = "compressed-tensors";
    if (std::string format = stringOf(config.find("format")); !format.empty())
      checkpoint.methodText += " " + format;
    const JsonValue *groups = config.find("config_groups");
    if (!groups || groups->kind != JsonValue::Kind::Object || groups->members.empty())
      return fail("quantization_config.config_groups is no object with a group in it");
    if (groups->members.size() > 1000)
      return fail("quantization_config.config_groups has more than 1000 groups");
    struct Group {
      Scheme scheme;
      std::vector<Pattern> targets;
      bool isOfLinear = false; ///< a target is the class Linear
    };
    std::vector<Group> made;
    std::vector<std::string> mentioned = stringsOf(config.find("ignore"));
    std::vector<Pattern> ignored = patternsOf(mentioned, Pattern::Kind::Literal);
    for (const auto &[name, value] : groups->members) {
      std::string field = "quantization_config.config_groups." + name;
      Group group;
      CompressedSide weights =
          readCompressedSide(value.find("weights"), field + ".weights", problem);
      CompressedSide activations = readCompressedSide(value.find("input_activations"),
                                                      field + ".input_activations", problem);
      group.scheme = compressedScheme(weights, activations, field, problem);
      std::vector<std::string> targets = stringsOf(value.find("targets"));
      if (targets.empty()) {
        checkpoint.notes.push_back(
            fmt::format("{} has no targets: every linear layer is taken to be meant", field));
        targets = {"Linear"};
      }
      std::vector<std::string> named;
      for (const std::string &target : targets)
        (target == "Linear" || contains(target, "MoE") || contains(target, "Experts")
             ? group.isOfLinear = true
             : (named.push_back(target), true));
      group.targets = patternsOf(named, Pattern::Kind::Literal);
      mentioned.insert(mentioned.end(), named.begin(), named.end());
      if (group.scheme.isStrategyDefaulted)
        checkpoint.notes.push_back(fmt::format(
            "{} names no strategy: \"tensor\" without a group_size, as compressed-tensors takes it",
            field));
      made.push_back(std::move(group));
    }
    ModuleNames names(mentioned);
    Scheme none;
    none.name = "ignored";
    none.field = "quantization_config.ignore";
    Scheme untargeted;
    untargeted.name = "no group targets them";
    untargeted.field = "quantization_config.config_groups";
    assign(names, [&](const ModuleNames::Candidates &candidates) {
      if (isExcluded(ignored, candidates))
        return none;
      for (const Group &group : made)
        if (isExcluded(group.targets, {candidates.leaves, candidates.parents}))
          return group.scheme;
      for (const Group &group : made)
        if (group.isOfLinear)
          return group.scheme;
      return untargeted;
    });
  }

  void readModelOpt(const JsonValue *config, const JsonValue *hfQuant) {
    checkpoint.method = Method::ModelOpt;
    auto both = [&](const char *name) {
      const JsonValue *value = hfQuant ? hfQuant->find(name) : nullptr;
      bool isThere = value && value->kind != JsonValue::Kind::Null;
      return isThere || !config ? value : config->find(name);
    };
    std::string where = hfQuant ? "hf_quant_config.json" : "quantization_config";
    std::string algorithm = stringOf(both("quant_algo"));
    if (algorithm.empty())
      return fail(where + " has no quant_algo");
    checkpoint.methodText = "modelopt " + algorithm;
    if (config && !stringOf(config->find("quant_method")).empty() && hfQuant) {
      std::string other = stringOf(config->find("quant_algo"));
      if (!other.empty() && other != algorithm)
        checkpoint.notes.push_back(
            fmt::format("hf_quant_config.json says {}, quantization_config {}: the former is taken",
                        algorithm, other));
    }
    std::vector<std::string> texts;
    for (const JsonValue *source : {hfQuant, config})
      for (const char *name : {"exclude_modules", "ignore"})
        if (source)
          for (std::string &text : stringsOf(source->find(name)))
            texts.push_back(std::move(text));
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    std::vector<Pattern> excluded = patternsOf(texts, Pattern::Kind::Glob);
    std::vector<std::string> mentioned = texts;
    bool isMixed = lower(algorithm).starts_with("mixed");
    std::map<std::string, Scheme, std::less<>> perLayer;
    const JsonValue *quantizedLayers = both("quantized_layers");
    if (isMixed && quantizedLayers)
      for (const auto &[name, value] : quantizedLayers->members) {
        perLayer[name] =
            modelOptScheme(stringOf(value.find("quant_algo")), where + " quantized_layers");
        mentioned.push_back(name);
      }
    if (isMixed && perLayer.empty())
      return fail(where + " is MIXED_PRECISION and has no quantized_layers");
    ModuleNames names(mentioned);
    Scheme scheme = modelOptScheme(algorithm, where + " quant_algo");
    Scheme none;
    none.name = "excluded";
    none.field = where + " exclude_modules";
    Scheme unlisted;
    unlisted.name = "not listed";
    unlisted.field = where + " quantized_layers";
    assign(names, [&](const ModuleNames::Candidates &candidates) {
      if (isExcluded(excluded, candidates))
        return none;
      if (!isMixed)
        return scheme;
      for (const auto *list : {&candidates.leaves, &candidates.parents})
        for (const std::string &name : *list)
          if (auto found = perLayer.find(name); found != perLayer.end())
            return found->second;
      return unlisted;
    });
  }

  void readOther(const std::string &method) {
    checkpoint.method = Method::Other;
    checkpoint.methodText = method;
    if (contains(method, "fp8"))
      return fail(fmt::format("quantization_config.quant_method is \"{}\", which is FP8 of a kind "
                              "that is not read; known: fp8, mxfp8, compressed-tensors, modelopt",
                              method));
    excuse(fmt::format("the experts are not FP8: quant_method is \"{}\"", method));
  }

  Fields &fields;
  const std::vector<int64_t> &layers;
  Checkpoint &checkpoint;
  Problem problem;
  static constexpr uint64_t mostSteps = 1'000'000'000; ///< a second or two
  uint64_t steps = 0;
};

} // namespace

Result<void> readQuantization(const JsonValue *quantization, const JsonValue *hfQuant,
                              Fields &fields, const std::vector<int64_t> &layers,
                              Checkpoint &checkpoint) {
  return QuantizationReader(fields, layers, checkpoint).read(quantization, hfQuant);
}

} // namespace moejit::checkpoint

// Compares the tensors of experts with what a configuration says: one by one, or all experts of a
// layer in one tensor.
#include "tools/checkpoint/TensorNames.h"
#include "tools/checkpoint/Tensors.h"

#include <fmt/format.h>

#include <algorithm>

namespace moejit::checkpoint {
namespace {

bool isFp8Type(const std::string &type) { return type == "F8_E4M3" || type == "F8_E5M2"; }

std::string shapeText(const std::vector<int64_t> &shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// `front`, and `back` behind it.
std::vector<int64_t> joined(std::vector<int64_t> front, const std::vector<int64_t> &back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

/// The tensors of one projection.
struct Parts {
  const TensorInfo *weight = nullptr, *scale = nullptr, *input = nullptr;
};
using Projections = std::map<std::string, Parts>;

struct Layer {
  std::map<int64_t, Projections> experts; ///< with tensors of their own
  Projections fused;                      ///< all experts in a tensor

  bool hasScales() const {
    auto hasScale = [](const Projections &projections) {
      return std::any_of(projections.begin(), projections.end(),
                         [](const auto &projection) { return projection.second.scale; });
    };
    return hasScale(fused) || std::any_of(experts.begin(), experts.end(), [&](const auto &expert) {
             return hasScale(expert.second);
           });
  }
};

/// What the tensors of a projection have to be.
struct Wanted {
  std::string where; ///< layer, projection and experts, for findings
  bool isDown = false;
  std::vector<int64_t> experts; ///< the extent in front of all others; empty: one expert
  int64_t rows = 0, columns = 0;
  int64_t parts = 1; ///< 2: gate above up

  std::vector<int64_t> shape() const { return joined(experts, {rows, columns}); }
};

class Comparison {
public:
  Comparison(const Checkpoint &checkpoint, const TensorMap &tensors)
      : checkpoint(checkpoint), tensors(tensors) {}

  TensorReport run() {
    report.tensors = int64_t(tensors.size());
    gather();
    report.layers = int64_t(layers.size());
    if (layers.empty()) {
      find(fmt::format("none of the tensors has a name of experts that is understood "
                       "(…layers.3.mlp.experts.7.gate_proj.weight, …layers.3.mlp.experts."
                       "gate_up_proj): nothing was compared{}",
                       unreadCount > 0 ? fmt::format("; {}", unreadText()) : ""));
      return std::move(report);
    }
    int64_t scaledLayers = 0;
    for (const auto &[number, layer] : layers) {
      bool hasScales = layer.hasScales();
      scaledLayers += hasScales;
      if (layer.fused.empty())
        compareExperts(number, layer.experts, hasScales);
      else
        compareFused(number, layer, hasScales);
    }
    const Experts &routed = checkpoint.routed;
    // A configuration without a number of layers says that some are FP8.
    if (scaledLayers == 0 && routed.fp8Layers == 0)
      find(fmt::format("no layer has scales for its experts, the configuration says {}",
                       routed.up.isFp8 ? routed.up.name : routed.down.name));
    if (routed.fp8Layers > scaledLayers)
      find(fmt::format("{} layers have scales for their experts, the configuration says {}",
                       scaledLayers, routed.fp8Layers));
    if (routed.layers > report.layers)
      find(fmt::format("{} layers have experts, the configuration says {}", report.layers,
                       routed.layers));
    if (report.findingCount > 0 && unreadCount > 0)
      findFirst(unreadText());
    return std::move(report);
  }

private:
  void gather() {
    for (const auto &[name, info] : tensors) {
      TensorName parsed = parseTensorName(name);
      if (!parsed.tensor) {
        if (parsed.isOfExperts && unreadCount++ == 0)
          unread = name;
        continue;
      }
      const ExpertTensor &tensor = *parsed.tensor;
      ++(info.type.empty() ? report.untyped : report.typed);
      Layer &layer = layers[tensor.layer];
      Projections &projections = tensor.expert ? layer.experts[*tensor.expert] : layer.fused;
      Parts &parts = projections[tensor.projection];
      (tensor.part == TensorPart::Weight  ? parts.weight
       : tensor.part == TensorPart::Scale ? parts.scale
                                          : parts.input) = &info;
    }
  }

  void find(std::string text) {
    ++report.findingCount;
    if (report.findings.size() < mostFindings)
      report.findings.push_back(std::move(text));
  }
  void findFirst(std::string text) {
    ++report.findingCount;
    report.findings.insert(report.findings.begin(), std::move(text));
    report.findings.resize(std::min(report.findings.size(), mostFindings));
  }

  std::string unreadText() const {
    return fmt::format("{} name{} of experts' tensors {} not understood, such as {}", unreadCount,
                       unreadCount == 1 ? "" : "s", unreadCount == 1 ? "is" : "are", unread);
  }

  void compareExperts(int64_t layer, const std::map<int64_t, Projections> &experts,
                      bool hasScales) {
    const Experts &routed = checkpoint.routed;
    std::vector<std::string> wanted = {"up_proj", "down_proj"};
    if (routed.isGated)
      wanted.insert(wanted.begin(), "gate_proj");
    static const Projections none;
    for (int64_t expert = 0; expert < routed.count; ++expert) {
      auto found = experts.lower_bound(expert);
      int64_t next = found == experts.end() ? routed.count : std::min(found->first, routed.count);
      if (next > expert && report.findings.size() >= mostFindings) {
        // No more are told: counted together, or a name a layer would cost as much as all experts.
        report.findingCount += (next - expert) * int64_t(wanted.size());
        expert = next - 1;
        continue;
      }
      const Projections &projections = next > expert ? none : found->second;
      for (const std::string &projection : wanted) {
        auto at = projections.find(projection);
        Parts parts = at == projections.end() ? Parts() : at->second;
        Wanted one;
        one.where = fmt::format("layer {}, {}, expert {}", layer, projection, expert);
        if (!parts.weight) {
          find(fmt::format("{}: no weight", one.where));
          continue;
        }
        one.isDown = projection == "down_proj";
        one.rows = one.isDown ? routed.input : routed.intermediate;
        one.columns = one.isDown ? routed.intermediate : routed.input;
        compare(one, parts, hasScales);
      }
    }
    if (!experts.empty() && experts.rbegin()->first >= routed.count)
      find(fmt::format("layer {}: expert {}, the configuration says {} experts", layer,
                       experts.rbegin()->first, routed.count));
  }

  void compareFused(int64_t number, const Layer &layer, bool hasScales) {
    const Experts &routed = checkpoint.routed;
    Projections fused = layer.fused;
    // FP8Experts calls the activation scale of experts without a gate so, too.
    if (auto both = fused.find("gate_up_proj");
        !routed.isGated && both != fused.end() && !both->second.weight && !both->second.scale) {
      fused["up_proj"].input = both->second.input;
      fused.erase(both);
    }
    bool isMixed = !layer.experts.empty();
    if (isMixed)
      find(fmt::format("layer {}: {} of all experts in one tensor, and expert {} with tensors of "
                       "its own: one of the two is not read",
                       number, layer.fused.begin()->first, layer.experts.begin()->first));
    std::vector<std::string> wanted = {"up_proj", "down_proj"};
    if (routed.isGated && fused.contains("gate_proj"))
      wanted.insert(wanted.begin(), "gate_proj");
    else if (routed.isGated)
      wanted.front() = "gate_up_proj";
    bool isSquare = true, hasWeight = false;
    for (const std::string &projection : wanted) {
      auto at = fused.find(projection);
      Parts parts = at == fused.end() ? Parts() : at->second;
      Wanted one;
      one.where = fmt::format("layer {}, {}, all experts", number, projection);
      if (!parts.weight) {
        if (!isMixed)
          find(fmt::format("{}: no weight", one.where));
        continue;
      }
      one.isDown = projection == "down_proj";
      one.experts = {routed.count};
      one.parts = projection == "gate_up_proj" ? 2 : 1;
      one.rows = one.isDown ? routed.input : one.parts * routed.intermediate;
      one.columns = one.isDown ? routed.intermediate : routed.input;
      isSquare = isSquare && one.rows == one.columns;
      hasWeight = hasWeight || isFp8Type(parts.weight->type);
      compare(one, parts, hasScales);
    }
    if (isSquare && hasWeight)
      find(fmt::format("layer {}: the weights of all experts are square, so that [experts, N, K] "
                       "and [experts, K, N] look alike",
                       number));
    for (const auto &[projection, parts] : fused)
      if (std::find(wanted.begin(), wanted.end(), projection) == wanted.end())
        find(fmt::format("layer {}, {}, all experts: not expected of experts {} a gate", number,
                         projection, routed.isGated ? "with" : "without"));
  }

  void compare(const Wanted &wanted, const Parts &parts, bool hasScales) {
    const std::string &where = wanted.where;
    const Experts &routed = checkpoint.routed;
    const Scheme &scheme = wanted.isDown ? routed.down : routed.up;
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
    const char *type = scheme.weightType == ElementType::F8E5M2 ? "F8_E5M2" : "F8_E4M3";
    if (hasType && parts.weight->type != type)
      find(fmt::format("{}: the weight is {}, expected {}", where, parts.weight->type, type));
    bool isTransposed = false;
    if (hasType && parts.weight->shape != wanted.shape()) {
      isTransposed = !wanted.experts.empty() &&
                     parts.weight->shape == joined(wanted.experts, {wanted.columns, wanted.rows});
      find(fmt::format("{}: the weight is {}, {}expected {}{}", where,
                       shapeText(parts.weight->shape),
                       isTransposed ? "which is [experts, K, N], as Llama 4 has it: " : "",
                       shapeText(wanted.shape()), isTransposed ? ", [experts, N, K]" : ""));
    }
    if (!parts.scale)
      find(fmt::format("{}: no weight scale", where));
    else if (!parts.scale->type.empty())
      compareScale(wanted, *parts.scale, scheme, isTransposed);
    if (scheme.source != ScaleSource::Static)
      return;
    report.hasStaticScales = true;
    if (!parts.input)
      return find(fmt::format("{}: no activation scale ({}), and the scheme is static: "
                              "no value is made up for it",
                              where, wanted.experts.empty() ? "input_scale" : "_activation_scale"));
    if (!parts.input->type.empty())
      compareValues(where + ", activation scale", *parts.input, wanted.experts, 1);
  }

  /// A tensor of one value, or of one for each expert; or, of gate above up, of one for each.
  void compareValues(const std::string &where, const TensorInfo &info,
                     const std::vector<int64_t> &experts, int64_t parts) {
    std::vector<int64_t> shape = info.shape;
    while (shape.size() > experts.size() && shape.back() == 1)
      shape.pop_back();
    if (shape != experts && !(parts > 1 && shape == joined(experts, {parts})))
      find(fmt::format("{}: {}, expected {}", where, shapeText(info.shape),
                       experts.empty() ? "one value"
                       : parts > 1     ? fmt::format("{} or {}", shapeText(joined(experts, {1, 1})),
                                                     shapeText(joined(experts, {parts, 1})))
                                       : shapeText(experts)));
    checkType(where, info, ElementType::F32);
  }

  void checkType(const std::string &where, const TensorInfo &info, ElementType scale) {
    bool isFloat = info.type == "F32" || info.type == "BF16" || info.type == "F16";
    bool isPower = scale == ElementType::F8E8M0FNU && (info.type == "F8_E8M0" || info.type == "U8");
    if (!isFloat && !isPower)
      find(fmt::format("{}: scales of type {}, expected F32{}", where, info.type,
                       scale == ElementType::F8E8M0FNU ? " or F8_E8M0" : ""));
  }

  void compareScale(const Wanted &wanted, const TensorInfo &info, const Scheme &scheme,
                    bool isTransposed) {
    const std::string &where = wanted.where;
    if (scheme.weights == Strategy::Tensor)
      return compareValues(where + ", weight scale", info, wanted.experts, wanted.parts);
    bool isBlock = scheme.weights == Strategy::Block;
    int64_t blockN = isBlock ? scheme.blockN : 1, blockK = isBlock ? scheme.blockK : wanted.columns;
    auto blocksOf = [](int64_t extent, int64_t block) { return (extent + block - 1) / block; };
    // FP8Experts of transformers 5.12 and later keeps a row for gate and one for up, however short.
    int64_t rows = std::max(blocksOf(wanted.rows, blockN), wanted.parts);
    int64_t columns = blocksOf(wanted.columns, blockK);
    std::vector<int64_t> shape = joined(wanted.experts, {rows, columns});
    bool isColumn = !isBlock && info.shape == joined(wanted.experts, {wanted.rows});
    int64_t apart = wanted.parts * blocksOf(wanted.rows / wanted.parts, blockN);
    bool isApart = info.shape == joined(wanted.experts, {apart, columns});
    if (info.shape != shape && !isColumn && !isTransposed)
      find(fmt::format("{}: weight scales are {}, expected {}{}", where, shapeText(info.shape),
                       shapeText(shape),
                       isApart ? ": gate and up have blocks of their own, and one tensor of both "
                                 "has blocks across"
                               : ""));
    checkType(where + ", weight scale", info, scheme.scaleType);
  }

  const Checkpoint &checkpoint;
  const TensorMap &tensors;
  std::map<int64_t, Layer> layers;
  int64_t unreadCount = 0; ///< names of experts' tensors that are none that is known
  std::string unread;      ///< the first of them
  TensorReport report;
};

} // namespace

TensorReport checkTensors(const Checkpoint &checkpoint, const TensorMap &tensors) {
  return Comparison(checkpoint, tensors).run();
}

} // namespace moejit::checkpoint

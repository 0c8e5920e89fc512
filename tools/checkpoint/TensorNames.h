// Names of experts' tensors: which layer, expert and projection a name means, and what of it. Knows
// names alone; what has to be there is Tensors.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace moejit::checkpoint {

/// What of a projection a tensor holds.
enum class TensorPart { Weight, Scale, InputScale };

/// A tensor of an expert, or of all experts of a layer.
struct ExpertTensor {
  int64_t layer = 0;
  std::optional<int64_t> expert; ///< nothing: all experts are in this tensor
  std::string projection; ///< gate_proj, up_proj, down_proj; gate_up_proj of all experts alone
  TensorPart part = TensorPart::Weight;
};

/// What a name says.
struct TensorName {
  /// It speaks of experts that are routed to, and not of layers that predict further tokens.
  bool isOfExperts = false;
  std::optional<ExpertTensor> tensor; ///< nothing where the name is none that is known
};

/// Understands tensors of one expert, …layers.3.mlp.experts.7.gate_proj.weight: w1, w3 and w2 are
/// the projections too, and weight_scale_inv, weight_scale, scale, qscale_weight, input_scale,
/// activation_scale and qscale_act the scales.
///
/// Of all experts …layers.3.mlp.experts.gate_up_proj, down_proj and (without a gate) up_proj: with
/// _scale_inv and _activation_scale behind them as in FP8Experts of transformers 5, with
/// _weight_scale and _input_scale as modelopt exports them (TensorRT-LLM,
/// modules/fused_moe/quantization.py, FUSED_GATE_UP_PROJ). And …layers.3.moe.gate_proj.weight,
/// up_proj and down_proj with the scales of single experts: Step 3.7 (transformers 5.24.0,
/// conversion_mapping.py, step3p7).
TensorName parseTensorName(std::string_view name);

} // namespace moejit::checkpoint

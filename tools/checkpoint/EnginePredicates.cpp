// Each says what of the case meets the condition, with its numbers.
#include "tools/checkpoint/EnginePredicates.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace moejit::checkpoint::meets {
namespace {

using Answer = std::optional<std::string>;

Answer when(bool holds, std::string text) { return holds ? Answer(std::move(text)) : std::nullopt; }

bool isBlock(const EngineCase &given) { return given.scheme.weights == Strategy::Block; }
bool isTensor(const EngineCase &given) { return given.scheme.weights == Strategy::Tensor; }
bool isCompressed(const EngineCase &given) {
  return given.checkpoint.method == Method::CompressedTensors;
}
bool hasStatic(const EngineCase &given) { return given.scheme.source == ScaleSource::Static; }

/// Weights of `strategy` with activations of another, static or dynamic.
bool isPair(const EngineCase &given, Strategy weights, Strategy activations, ScaleSource source) {
  return given.scheme.weights == weights && given.scheme.activations == activations &&
         given.scheme.source == source;
}
bool isBlock128(const EngineCase &given) {
  return isBlock(given) && given.scheme.blockN == 128 && given.scheme.blockK == 128 &&
         given.scheme.activations == Strategy::Group && given.scheme.group == 128 &&
         !hasStatic(given);
}
bool isBlockDynamic(const EngineCase &given) {
  return isBlock(given) && !isMx(given) && given.scheme.activations == Strategy::Group &&
         !hasStatic(given);
}
bool isChannelToken(const EngineCase &given) {
  return isPair(given, Strategy::Channel, Strategy::Token, ScaleSource::Dynamic);
}

std::string sidesText(const EngineCase &given) {
  return fmt::format("weights: {}, activations: {} {}", given.scheme.weightText,
                     hasStatic(given) ? "static" : "dynamic", given.scheme.activationText);
}
std::string blockText(const EngineCase &given) {
  return isBlock(given) ? fmt::format("block {}x{}", given.scheme.blockN, given.scheme.blockK)
                        : fmt::format("{} scales, no blocks", strategyName(given.scheme.weights));
}
std::string partText(const EngineCase &given) {
  return fmt::format("I {} / tp {} = {}", given.experts.intermediate, given.split.tp, given.part);
}
std::string fieldText(const EngineCase &given) { return given.scheme.field; }

} // namespace

Answer always(const EngineCase &) { return std::string(); }

Answer isNotFp8Method(const EngineCase &given) {
  return when(given.checkpoint.method != Method::Fp8, given.checkpoint.methodText);
}
Answer isMxMethod(const EngineCase &given) {
  // " ue8m0" follows where scale_fmt says it.
  return when(given.checkpoint.methodText.starts_with("mxfp8"), "quant_method mxfp8");
}
Answer hasBias(const EngineCase &given) {
  return when(given.experts.hasBias, "the configuration says that experts have a bias");
}
Answer isLatent(const EngineCase &given) {
  return when(given.experts.input != given.checkpoint.hidden,
              fmt::format("experts take {} columns, hidden_size is {}", given.experts.input,
                          given.checkpoint.hidden));
}
Answer hasNoGate(const EngineCase &given) {
  return when(!given.experts.isGated, fmt::format("no gate: {}", given.checkpoint.activation));
}
Answer hasOtherActivation(const EngineCase &given) {
  const std::string &name = given.checkpoint.activation;
  return when(name != "silu" && name != "swish" && name != "swiglu",
              fmt::format("the activation is {}", name));
}
Answer lacksActivationScheme(const EngineCase &given) {
  return when(given.checkpoint.method == Method::Fp8 && !given.checkpoint.hasActivationScheme,
              "quantization_config has no activation_scheme");
}
Answer lacksBlockSize(const EngineCase &given) {
  return when(given.checkpoint.method == Method::Fp8 && given.scheme.isStrategyDefaulted,
              "quantization_config has no weight_block_size");
}

Answer isStatic(const EngineCase &given) {
  return when(hasStatic(given), given.checkpoint.method == Method::Fp8
                                    ? "activation_scheme is static"
                                    : sidesText(given));
}
Answer isTensorStatic(const EngineCase &given) {
  return when(isTensor(given) && hasStatic(given), sidesText(given));
}
Answer isTensorDynamic(const EngineCase &given) {
  return when(isTensor(given) && !hasStatic(given), sidesText(given));
}
Answer isTensorGated(const EngineCase &given) {
  return when(isTensor(given) && given.experts.isGated && !given.isDown,
              hasStatic(given)
                  ? "gate and up have a weight scale each, and each expert an activation scale"
                  : "gate and up have a weight scale each");
}
Answer isTensorStaticAlone(const EngineCase &given) {
  return when(isTensor(given) && hasStatic(given), "each expert has an activation scale");
}
Answer isUpOfTensor(const EngineCase &given) {
  return when(isTensor(given) && given.experts.isGated && !given.isDown,
              "gate_up has scales [E, 2, 1]");
}
Answer isSquareBlockDynamic(const EngineCase &given) {
  bool isSquare = given.scheme.blockN == given.scheme.blockK &&
                  (given.scheme.blockN == 64 || given.scheme.blockN == 128);
  return when(isBlockDynamic(given) && isSquare, blockText(given));
}
Answer isBlockStatic(const EngineCase &given) {
  return when(isBlock(given) && hasStatic(given), sidesText(given));
}
Answer isNotBlock(const EngineCase &given) { return when(!isBlock(given), blockText(given)); }
Answer isNotBlock128(const EngineCase &given) {
  return when(!isBlock128(given),
              isBlock(given) && hasStatic(given) ? sidesText(given) : blockText(given));
}
Answer isNotBlock128OrRow(const EngineCase &given) {
  bool isRow = isBlock(given) && given.scheme.blockN == 1 && given.scheme.blockK == 128;
  bool isSquare = isBlock(given) && given.scheme.blockN == 128 && given.scheme.blockK == 128;
  return when(!isRow && !isSquare, blockText(given));
}
Answer isNotSquare128(const EngineCase &given) {
  bool isSquare = isBlock(given) && given.scheme.blockN == 128 && given.scheme.blockK == 128;
  return when(!isSquare, blockText(given));
}
Answer isOtherBlock(const EngineCase &given) {
  return when(isBlock(given) && !isMx(given) && isNotSquare128(given), blockText(given));
}
Answer isPowerScale(const EngineCase &given) {
  return when(given.scheme.scaleType == ElementType::F8E8M0FNU, "scale_fmt is ue8m0");
}
Answer isMxBelow100(const EngineCase &given) {
  return given.arch < 100 ? isMx(given) : std::nullopt;
}
Answer isMxFrom100(const EngineCase &given) {
  return given.arch >= 100 ? isMx(given) : std::nullopt;
}
Answer isE5M2(const EngineCase &given) {
  return when(given.scheme.weightType == ElementType::F8E5M2, "weights are e5m2");
}
Answer isMx(const EngineCase &given) {
  return when(isBlock(given) && given.scheme.blockN == 1 && given.scheme.blockK == 32,
              "MXFP8: a scale for 32 values of a row");
}
Answer isChannelTokenStatic(const EngineCase &given) {
  return when(isPair(given, Strategy::Channel, Strategy::Token, ScaleSource::Static),
              fmt::format("{}: weights.strategy is channel, input_activations.strategy is token, "
                          "input_activations.dynamic is false",
                          fieldText(given)));
}
Answer isMixed(const EngineCase &given) {
  bool isKnown =
      isBlock(given) || (isTensor(given) && given.scheme.activations == Strategy::Tensor) ||
      (given.scheme.weights == Strategy::Channel && given.scheme.activations == Strategy::Token);
  return when(isCompressed(given) && !isKnown,
              fmt::format("{}: weights.strategy is {}, input_activations.strategy is {}",
                          fieldText(given), given.scheme.weightText, given.scheme.activationText));
}
Answer isCompressedBlockTensorStatic(const EngineCase &given) {
  return when(isCompressed(given) && isBlock(given) && hasStatic(given) &&
                  given.scheme.activations == Strategy::Tensor,
              sidesText(given));
}
Answer isCompressedBlockStatic(const EngineCase &given) {
  return when(isCompressed(given) && isBlock(given) && hasStatic(given), sidesText(given));
}
Answer isFp8BlockStatic(const EngineCase &given) {
  return when(given.checkpoint.method == Method::Fp8 && isBlock(given) && hasStatic(given),
              fmt::format("weight_block_size is [{}, {}], activation_scheme is static",
                          given.scheme.blockN, given.scheme.blockK));
}
Answer isCompressedNoGate(const EngineCase &given) {
  return when(isCompressed(given) && !given.experts.isGated, "no gate");
}
Answer isCompressedBlockOther(const EngineCase &given) {
  return when(isCompressed(given) && isBlock(given) && !hasStatic(given) &&
                  (given.scheme.activations != Strategy::Group ||
                   given.scheme.group != given.scheme.blockK),
              sidesText(given));
}
Answer isNotCompressed(const EngineCase &given) {
  return when(!isCompressed(given), given.checkpoint.methodText);
}
Answer isModelOptOther(const EngineCase &given) {
  return when(given.checkpoint.method == Method::ModelOpt && !isTensor(given),
              given.checkpoint.methodText);
}
Answer isNotForTriton(const EngineCase &given) {
  bool isTensorToken = isPair(given, Strategy::Tensor, Strategy::Token, ScaleSource::Dynamic);
  bool isTensorTensor = isTensor(given) && given.scheme.activations == Strategy::Tensor;
  return when(!isBlockDynamic(given) && !isChannelToken(given) && !isTensorToken && !isTensorTensor,
              sidesText(given));
}
Answer isNotForCutlass(const EngineCase &given) {
  bool isTensorTensor = isTensor(given) && given.scheme.activations == Strategy::Tensor;
  return when(!isChannelToken(given) && !isTensorTensor, sidesText(given));
}
Answer isNotForDeepGemm(const EngineCase &given) {
  return isMxFrom100(given) ? std::nullopt : isNotBlock128(given);
}
Answer isNotForFlashInferCutlass(const EngineCase &given) {
  bool isTensorTensor = isPair(given, Strategy::Tensor, Strategy::Tensor, ScaleSource::Static);
  return when(!isTensorTensor && !isBlock128(given), sidesText(given));
}
Answer isNotForFlashInferTrtllm(const EngineCase &given) {
  bool isTensorTensor = isPair(given, Strategy::Tensor, Strategy::Tensor, ScaleSource::Static);
  return when(!isTensorTensor && !isBlock128(given) && !isMx(given), sidesText(given));
}
Answer isNotChannelToken(const EngineCase &given) {
  return when(!isChannelToken(given), sidesText(given));
}

static Answer archAnswer(const EngineCase &given, bool holds) {
  return when(holds, fmt::format("--arch is sm_{}", given.arch));
}
Answer isBelow89(const EngineCase &given) { return archAnswer(given, given.arch < 89); }
Answer isBelow90(const EngineCase &given) { return archAnswer(given, given.arch < 90); }
Answer isBelow100(const EngineCase &given) { return archAnswer(given, given.arch < 100); }
Answer isNot100(const EngineCase &given) {
  return archAnswer(given, given.arch < 100 || given.arch >= 110);
}
Answer isNot90Or100(const EngineCase &given) {
  return archAnswer(given, given.arch != 90 && (given.arch < 100 || given.arch >= 110));
}
Answer isFloatScaleOn100(const EngineCase &given) {
  return when(given.arch >= 100 && given.arch < 110 && given.scheme.scaleType == ElementType::F32,
              "fp32 scales on SM100");
}
Answer isBlockOn100(const EngineCase &given) {
  return when(given.arch != 90 && isBlock(given), "block scales on another architecture than SM90");
}

Answer isBlockRagged(const EngineCase &given) {
  if (!isBlock(given))
    return std::nullopt;
  const Scheme &scheme = given.scheme;
  std::vector<std::string> parts;
  if (given.n % scheme.blockN != 0)
    parts.push_back(fmt::format("N {} % {} = {}", given.n, scheme.blockN, given.n % scheme.blockN));
  if (given.k % scheme.blockK != 0)
    parts.push_back(fmt::format("K {} % {} = {}", given.k, scheme.blockK, given.k % scheme.blockK));
  return when(!parts.empty(), fmt::format("{}: {}", partText(given), fmt::join(parts, " and ")));
}
Answer isColumnsRagged(const EngineCase &given) {
  int64_t block = given.scheme.blockK;
  return when(
      isBlock(given) && given.k % block != 0,
      fmt::format("{}: K {} is no multiple of block_k {}", partText(given), given.k, block));
}
Answer hasSeam(const EngineCase &given) {
  return when(!given.isDown && isBlock(given) && given.experts.isGated &&
                  given.part % given.scheme.blockN != 0,
              fmt::format("{}, which is no multiple of {}: gate's last block of scales and up's "
                          "first share a row",
                          partText(given), given.scheme.blockN));
}
Answer isSplitInBlock(const EngineCase &given) {
  int64_t block = given.isDown ? given.scheme.blockK : given.scheme.blockN;
  return when(isBlock(given) && given.split.tp > 1 && given.part % block != 0,
              fmt::format("{}, which is no multiple of {}: ranks begin inside a block of scales",
                          partText(given), block));
}
Answer partBreaksRows(const EngineCase &given) {
  return when(!given.isDown && isBlock(given) && given.part % given.scheme.blockN != 0,
              fmt::format("{}, {}: {} rows of gate and of up are no multiple of block_n {}",
                          partText(given), blockText(given), given.part, given.scheme.blockN));
}
Answer compressedPartBreaksRows(const EngineCase &given) {
  return isCompressed(given) ? partBreaksRows(given) : std::nullopt;
}
Answer partBreaksColumns(const EngineCase &given) {
  return when(given.isDown && isBlock(given) && given.split.tp > 1 &&
                  given.part % given.scheme.blockK != 0,
              fmt::format("{}, {}: {} columns of down are no multiple of block_k {}",
                          partText(given), blockText(given), given.part, given.scheme.blockK));
}
Answer isNotOf16(const EngineCase &given) {
  return when(given.n % 16 != 0 || given.k % 16 != 0,
              fmt::format("N {} and K {} are not both multiples of 16", given.n, given.k));
}
Answer nIsNotOf8(const EngineCase &given) {
  return when(given.n % 8 != 0, fmt::format("N {} is no multiple of 8", given.n));
}
Answer scaleRowsDiffer(const EngineCase &given) {
  if (!isBlock(given) || given.isDown || !given.experts.isGated)
    return std::nullopt;
  int64_t block = given.scheme.blockN;
  int64_t stored = 2 * ((given.part + block - 1) / block);
  int64_t asked = (given.n + block - 1) / block;
  return when(stored != asked,
              fmt::format("{}: gate and up have {} rows of scales, {} rows of weights ask for {}",
                          partText(given), stored, given.n, asked));
}
Answer isNotRefinable(const EngineCase &given) {
  if (!isBlock(given))
    return std::nullopt;
  const Scheme &scheme = given.scheme;
  bool isWhole =
      given.part % scheme.blockN == 0 && (given.split.tp == 1 || given.part % scheme.blockK == 0);
  int64_t common =
      std::gcd(std::gcd(scheme.blockN, scheme.blockK), std::gcd(given.part, given.experts.input));
  return when(!isWhole && common < 32,
              fmt::format("{}, {}: the largest block that divides all is {}, and 32 is the least",
                          partText(given), blockText(given), common));
}
Answer isRefinableFp8(const EngineCase &given) {
  if (!isBlock(given) || given.checkpoint.method != Method::Fp8)
    return std::nullopt;
  const Scheme &scheme = given.scheme;
  bool isWhole =
      given.part % scheme.blockN == 0 && (given.split.tp == 1 || given.part % scheme.blockK == 0);
  int64_t common =
      std::gcd(std::gcd(scheme.blockN, scheme.blockK), std::gcd(given.part, given.experts.input));
  return when(!isWhole && common >= 32,
              fmt::format("{}, {}: scales are repeated for blocks of {}x{}", partText(given),
                          blockText(given), common, common));
}
Answer isSmallForDeepGemm(const EngineCase &given) {
  // vllm decides by down's weight, [E, H, I / tp], for both GEMMs: its N is I / tp, its K is H.
  // On SM100 scales are powers of two, and DeepGEMM is taken whatever the shape.
  int64_t n = given.part, k = given.experts.input;
  if (given.arch >= 100)
    return std::nullopt;
  return when(n % 128 != 0 || k % 128 != 0 || n <= 512,
              fmt::format("{}, H {}: one is no multiple of 128, or I / tp is at most 512",
                          partText(given), k));
}

} // namespace moejit::checkpoint::meets

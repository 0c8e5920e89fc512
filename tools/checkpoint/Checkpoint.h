// What a checkpoint's configuration says of its experts, and the GEMMs a rank runs for them. Reads
// names and numbers, never weights; goes by fields, never by the names of models. Knows nothing of
// what other engines accept (EngineRules.h).
#pragma once

#include "runtime/Result.h"
#include "runtime/Rules.h"
#include "runtime/Spec.h"
#include "runtime/Target.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moejit::checkpoint {

/// Who wrote the quantization, by the fields it has.
enum class Method { None, Fp8, CompressedTensors, ModelOpt, Other };
const char *methodName(Method method);

/// What one scale covers. `Block`: blockN x blockK of weights. `Group`: `group` values of a row.
/// `Token` and `Channel`: a row of activations, of weights. `Other`: none of these.
enum class Strategy { None, Tensor, Channel, Token, Group, Block, Other };
const char *strategyName(Strategy strategy);

/// How one projection is quantized.
struct Scheme {
  bool isFp8 = false; ///< 8-bit floats on both sides, which is what moejit computes
  /// "fp8 block 128x128 x group 128 dynamic", "nvfp4", "none": what to call it.
  std::string name = "none";
  std::string weightText = "-";     ///< the weights' strategy as the file spells it
  std::string activationText = "-"; ///< the activations' strategy as the file spells it
  Strategy weights = Strategy::None;
  int64_t blockN = 0, blockK = 0; ///< of Strategy::Block
  Strategy activations = Strategy::None;
  int64_t group = 0; ///< of Strategy::Group
  ScaleSource source = ScaleSource::Dynamic;
  ElementType weightType = ElementType::F8E4M3FN;
  /// What the scales hold: F32, or F8E8M0FNU for powers of two, whatever they are stored as.
  ElementType scaleType = ElementType::F32;
  bool isStrategyDefaulted = false; ///< the file names no strategy: `Tensor`, as its format says
  std::string field;                ///< where it says so: "quantization_config.weight_block_size"
  bool operator==(const Scheme &) const = default;
};

/// Experts of one shape: the routed ones, or the shared one that every token visits.
struct Experts {
  bool isShared = false;
  int64_t count = 0; ///< routed experts; 1 for shared ones, which are one MLP
  int64_t input = 0; ///< H: columns of gate and up, rows of down; the latent size if there is one
  int64_t intermediate = 0; ///< I, before any split
  bool isGated = true;      ///< gate and up; else up alone
  bool hasBias = false;
  int64_t layers = 0;    ///< layers that have them; 0 when the file does not say
  int64_t fp8Layers = 0; ///< of these, the ones that `scheme` holds for
  Scheme up, down;       ///< of gate and up, and of down, in the layers they are FP8 in, if any
  std::string why;       ///< why nothing of it is FP8; empty when something is
  bool operator==(const Experts &) const = default;
};

struct Checkpoint {
  std::string path; ///< of the config.json, as it was found
  std::string modelType;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t topK = 0;                ///< experts a token; 0 when the file does not say
  std::string activation = "silu"; ///< of the MLP, as the file spells it
  Method method = Method::None;
  std::string methodText; ///< "fp8", "compressed-tensors", "modelopt NVFP4": as the file spells it
  bool hasActivationScheme = true; ///< Method::Fp8: the file has the field
  std::string dispatch; ///< quantization_config.dispatch, which transformers does not have
  Experts routed;       ///< count 0: a model without experts
  std::optional<Experts> shared;
  std::vector<std::string> notes; ///< what was assumed, and what reads like a mistake

  /// Some GEMM of the routed experts is FP8. Shared experts alone are dense layers.
  bool needsFp8() const { return isFp8(routed); }
  static bool isFp8(const Experts &experts) {
    return experts.count > 0 && (experts.up.isFp8 || experts.down.isFp8);
  }
};

/// The configurations at `path`, as readCheckpoints looks for them.
Result<std::vector<std::string>> findConfigs(const std::string &path);
/// The checkpoints at `path`: a config.json (or any *.json that is one), a folder that holds
/// config.json, or a folder of such files and folders, sorted; two levels deep at most. An
/// hf_quant_config.json beside config.json (for NAME_config.json: NAME_hf_quant_config.json) is
/// read with it. A file of a folder of many that is no configuration is an error too. Errors:
/// IoError; ParseError and InvalidArgument naming file, field and value.
Result<std::vector<Checkpoint>> readCheckpoints(const std::string &path);
/// The checkpoint of one file of findConfigs. Errors: as readCheckpoints.
Result<Checkpoint> readCheckpoint(const std::string &config);
/// One configuration from its texts; `quantText` is that of hf_quant_config.json, or empty.
Result<Checkpoint> parseCheckpoint(const std::string &path, const std::string &configText,
                                   const std::string &quantText);

/// How the experts are split. tp splits each expert's intermediate, ep the experts; shared experts
/// are split by tp alone.
struct Parallelism {
  int64_t tp = 1;
  int64_t ep = 1;
};

/// What a launch is given as activations.
enum class Input {
  Fp8, ///< codes and scales
  Bf16 ///< plain values, which the launch quantizes
};

/// One launch that serves a GEMM, or the rules that forbid it.
struct ExpertLaunch {
  Dispatch dispatch = Dispatch::Grouped;
  Input input = Input::Fp8;
  /// Tensor-parallel ranks, ascending, that run this very kernel: they differ where a rank begins
  /// inside a block of scales.
  std::vector<int64_t> ranks;
  Spec spec;
  std::vector<Violation> violations; ///< empty: moejit compiles `spec`
};

/// One GEMM of one rank.
struct ExpertGemm {
  std::string projection; ///< "gate_up", "up", "down"; "shared gate_up" and so on
  int64_t n = 0, k = 0;   ///< of this rank
  int64_t experts = 0;    ///< of this rank
  Scheme scheme;
  std::vector<ExpertLaunch> launches; ///< empty when the scheme is not FP8, or has no meaning
  std::string why;                    ///< why there are none
};

struct GemmOptions {
  Target target;
  int64_t maskedRows = 0; ///< Mmax of masked launches; 0: none of them
};

/// The GEMMs that one rank of `parallelism` runs, those of the routed experts first. Errors:
/// InvalidArgument where tp does not divide an intermediate size or ep the experts, with the values
/// that do.
Result<std::vector<ExpertGemm>> expertGemms(const Checkpoint &checkpoint,
                                            const Parallelism &parallelism,
                                            const GemmOptions &options = {});

} // namespace moejit::checkpoint

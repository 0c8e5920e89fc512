// Configurations of checkpoints: config.json and, after a line of %%%, hf_quant_config.json. What
// is understood is split over ranks, and the specs that come of it are taken or refused by the
// rules.
#include "runtime/Plan.h"
#include "tests/fuzz/Fuzz.h"
#include "tools/checkpoint/Check.h"

#include <functional>
#include <string>

using namespace moejit;
using namespace moejit::checkpoint;

const char *const fuzz::dictionary[] = {"\"quantization_config\": {",
                                        "\"quant_method\": ",
                                        "\"fp8\"",
                                        "\"compressed-tensors\"",
                                        "\"modelopt\"",
                                        "\"weight_block_size\": [128, 128]",
                                        "\"activation_scheme\": ",
                                        "\"dynamic\"",
                                        "\"static\"",
                                        "\"config_groups\": {",
                                        "\"group_0\": {",
                                        "\"targets\": [\"Linear\"]",
                                        "\"ignore\": [",
                                        "\"re:.*\"",
                                        "\"strategy\": ",
                                        "\"tensor\"",
                                        "\"channel\"",
                                        "\"token\"",
                                        "\"block\"",
                                        "\"group\"",
                                        "\"block_structure\": [128, 128]",
                                        "\"num_bits\": 8",
                                        "\"type\": \"float\"",
                                        "\"text_config\": {",
                                        "\"num_experts\": ",
                                        "\"n_routed_experts\": ",
                                        "\"num_local_experts\": ",
                                        "\"moe_intermediate_size\": ",
                                        "\"hidden_size\": ",
                                        "\"num_hidden_layers\": ",
                                        "\"n_shared_experts\": ",
                                        "\"modules_to_not_convert\": [",
                                        "\"scale_fmt\": \"ue8m0\"",
                                        "null",
                                        "true",
                                        "[]",
                                        "{}",
                                        "%%%",
                                        "\"exclude_modules\": [",
                                        "\"quant_algo\": \"FP8\"",
                                        "model.layers.*.mlp.experts",
                                        "(a|b)*",
                                        "Infinity",
                                        "NaN",
                                        nullptr};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(fuzz::textOf(data, size));
  size_t split = text.find("\n%%%\n");
  Result<Checkpoint> checkpoint =
      parseCheckpoint("fuzz/config.json", text.substr(0, split),
                      split == std::string::npos ? std::string() : text.substr(split + 5));
  if (!checkpoint) {
    ErrorCode code = checkpoint.error().code;
    fuzz::require(code == ErrorCode::ParseError || code == ErrorCode::InvalidArgument,
                  "a refusal says what kind it is");
    return 0;
  }
  for (Parallelism parallelism : {Parallelism{1, 1}, Parallelism{8, 1}, Parallelism{2, 4}})
    for (int64_t maskedRows : {0, 512}) {
      GemmOptions options;
      options.maskedRows = maskedRows;
      Result<std::vector<ExpertGemm>> gemms = expertGemms(*checkpoint, parallelism, options);
      if (!gemms)
        continue;
      for (const ExpertGemm &gemm : *gemms)
        for (const ExpertLaunch &launch : gemm.launches) {
          fuzz::require(checkSpec(launch.spec, options.target).size() == launch.violations.size(),
                        "a launch has the violations of its spec");
          Result<Spec> again = parseSpec(canonicalText(launch.spec));
          fuzz::require(again && *again == launch.spec, "a spec's text reads as the spec");
          fuzz::require(!planRanges(launch.spec, options.target).empty(), "and has plans");
        }
    }
  // Every engine at every split takes its time: one input in eight, always the same ones.
  if (!checkpoint->needsFp8() || std::hash<std::string>()(text) % 8 != 0)
    return 0;
  static const std::vector<EngineChoice> engines = *parseEngines("all");
  CheckOptions options;
  options.split = {4, 1};
  options.engines = engines;
  Result<Check> checked = check(*checkpoint, options);
  fuzz::require(checked || checked.error().code == ErrorCode::IoError ||
                    checked.error().code == ErrorCode::ParseError,
                "a check ends in verdicts, or says which file it could not read");
  return 0;
}

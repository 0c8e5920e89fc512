// The engines, and the table of their rules.
#include "tools/checkpoint/EngineRules.h"

namespace moejit::checkpoint {

std::vector<EngineRule> transformersRules();
std::vector<EngineRule> sglangRules();
std::vector<EngineRule> vllmRules();
std::vector<EngineRule> libraryRules();

const std::vector<Engine> &allEngines() {
  static const std::vector<Engine> engines = {
      {"transformers",
       {"5.5.0", "5.5.4", "5.8.1", "5.12.0", "5.17.0", "5.24.0"},
       "wheels of the releases; the hub's finegrained-fp8 kernel, versions 1, 2 and 4",
       {"eager", "batched_mm", "grouped_mm", "deepgemm"}},
      {"sglang",
       {"0.5.12", "0.5.23"},
       "wheel of the release",
       {"fused_moe", "deep_gemm", "cutlass"}},
      {"vllm",
       {"0.33.0"},
       "wheel of the release",
       {"triton", "deep_gemm", "cutlass", "flashinfer_cutlass", "flashinfer_trtllm", "marlin"}},
      {"deepgemm", {"2026.06"}, "repository as of mid-2026", {"contiguous", "masked"}},
      {"flashinfer",
       {"2026.06"},
       "repository as of mid-2026",
       {"group_gemm_fp8_nt_groupwise", "cutlass_fused_moe", "trtllm_fp8_block_scale_moe"}},
      {"torch", {"2026.06"}, "repository as of mid-2026", {"scaled_grouped_mm"}},
  };
  return engines;
}

const std::vector<EngineRule> &allEngineRules() {
  static const std::vector<EngineRule> rules = [] {
    std::vector<EngineRule> all;
    for (auto *part : {transformersRules, sglangRules, vllmRules, libraryRules}) {
      std::vector<EngineRule> some = part();
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  return rules;
}

} // namespace moejit::checkpoint

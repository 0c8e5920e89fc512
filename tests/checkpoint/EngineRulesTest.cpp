// The table of engines' rules, case by case: each rule is met by a case and not by one near it.
#include "tests/checkpoint/Models.h"

#include "tools/checkpoint/Check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

using namespace moejit;
using namespace moejit::checkpoint;

namespace {

const std::string block = fp8Block(), blockStatic = fp8Block("static"),
                  tensorStatic = fp8Tensor("static"), tensorDynamic = fp8Tensor("dynamic");
const std::string ue8m0 = "{\"quant_method\": \"fp8\", \"activation_scheme\": \"dynamic\", "
                          "\"weight_block_size\": [128, 128], \"scale_fmt\": \"ue8m0\"}";
const std::string noBlockSize = "{\"quant_method\": \"fp8\", \"activation_scheme\": \"dynamic\"}";
const std::string noScheme = "{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}";
const std::string mx = "{\"quant_method\": \"mxfp8\", \"activation_scheme\": \"dynamic\"}";
const std::string mxPower = "{\"quant_method\": \"mxfp8\", \"activation_scheme\": \"dynamic\", "
                            "\"scale_fmt\": \"ue8m0\"}";
const std::string e5m2 = "{\"quant_method\": \"fp8\", \"activation_scheme\": \"dynamic\", "
                         "\"weight_block_size\": [128, 128], \"fmt\": \"e5m2\"}";
const std::string channelToken =
    compressed("\"strategy\": \"channel\"", "\"strategy\": \"token\", \"dynamic\": true");
const std::string channelTokenStatic =
    compressed("\"strategy\": \"channel\"", "\"strategy\": \"token\", \"dynamic\": false");
const std::string channelTensor =
    compressed("\"strategy\": \"channel\"", "\"strategy\": \"tensor\", \"dynamic\": true");
const std::string ctTensor =
    compressed("\"strategy\": \"tensor\"", "\"strategy\": \"tensor\", \"dynamic\": false");
const std::string ctTensorDynamic =
    compressed("\"strategy\": \"tensor\"", "\"strategy\": \"tensor\", \"dynamic\": true");
const std::string ctBlock =
    compressed("\"strategy\": \"block\", \"block_structure\": [128, 128]",
               "\"strategy\": \"group\", \"group_size\": 128, \"dynamic\": true");
const std::string ctBlockTensorStatic =
    compressed("\"strategy\": \"block\", \"block_structure\": [128, 128]",
               "\"strategy\": \"tensor\", \"dynamic\": false");
const std::string ctBlockGroupStatic =
    compressed("\"strategy\": \"block\", \"block_structure\": [128, 128]",
               "\"strategy\": \"group\", \"group_size\": 128, \"dynamic\": false");
const std::string ctBlockToken =
    compressed("\"strategy\": \"block\", \"block_structure\": [128, 128]",
               "\"strategy\": \"token\", \"dynamic\": true");
const std::string modelOpt = "{\"quant_method\": \"modelopt\", \"quant_algo\": \"FP8\"}";
const std::string modelOptChannel =
    "{\"quant_method\": \"modelopt\", \"quant_algo\": \"FP8_PER_CHANNEL_PER_TOKEN\"}";
const std::string modelOptMx = "{\"quant_method\": \"modelopt\", \"quant_algo\": \"MXFP8\"}";
const char *noGate = "\"mlp_hidden_act\": \"relu2\", ";
const char *gelu = "\"mlp_hidden_act\": \"gelu\", ";

/// What a rule is tried on.
struct Try {
  std::string quantization;
  int64_t intermediate = 1024;
  int64_t tp = 1;
  std::string more = "";
  int arch = 90;
  std::string version = "";
  std::string hidden = "";
};

struct Row {
  const char *rule;
  const char *dispatch;
  bool isDown;
  Try met, near;
};

constexpr bool up = false, down = true;
constexpr const char *latent = "\"moe_latent_size\": 1024, ";
constexpr const char *bias = "\"mlp_bias\": true, ";
constexpr const char *odd = "\"moe_latent_size\": 1032, ";

const std::vector<Row> &allRows() {
  static const std::vector<Row> rows = {
      {"transformers-method", "eager", up, {channelToken}, {block}},
      {"transformers-mx", "eager", up, {mx}, {block}},
      {"transformers-mx", "deepgemm", up, {mxPower, 1024, 1, "", 100}, {ue8m0, 1024, 1, "", 100}},
      {"transformers-e5m2", "deepgemm", up, {e5m2}, {block}},
      {"transformers-bias", "grouped_mm", up, {block, 1024, 1, bias}, {block}},
      {"transformers-latent", "eager", down, {block, 1024, 1, latent}, {block}},
      {"transformers-static", "batched_mm", up, {tensorStatic}, {tensorDynamic}},
      {"transformers-static", "grouped_mm", down, {blockStatic}, {block}},
      {"transformers-deepgemm-arch", "deepgemm", up, {block, 1024, 1, "", 89}, {block}},
      {"transformers-deepgemm-scale",
       "deepgemm",
       up,
       {block, 1024, 1, "", 100},
       {ue8m0, 1024, 1, "", 100}},
      {"transformers-deepgemm-static", "deepgemm", up, {blockStatic}, {block}},
      {"transformers-block-default", "eager", up, {noBlockSize}, {tensorDynamic}},
      {"transformers-deepgemm-block",
       "deepgemm",
       up,
       {fp8Block("dynamic", 64, 128)},
       {fp8Block("dynamic", 1, 128)}},
      {"transformers-block-whole", "batched_mm", down, {block, 768, 4}, {block, 768, 2}},
      {"transformers-block-whole", "grouped_mm", up, {block, 768, 8}, {block, 768, 4}},
      {"transformers-deepgemm-square",
       "deepgemm",
       up,
       {fp8Block("dynamic", 1, 128), 1024, 1, "", 90, "5.8.1"},
       {fp8Block("dynamic", 1, 128)}},
      {"sglang-mx-arch", "fused_moe", up, {mx, 1024, 1, "", 90, "0.5.12"}, {mx}},
      {"transformers-tensor-fused", "grouped_mm", up, {tensorDynamic}, {block}},
      {"transformers-tensor-fused", "eager", up, {tensorStatic}, {tensorStatic, 1024, 1, noGate}},
      {"transformers-eager-flat",
       "eager",
       up,
       {blockStatic, 1024, 1, "", 90, "5.5.4"},
       {blockStatic}},
      {"transformers-eager-columns", "eager", down, {block, 192, 1, "", 90, "5.5.4"}, {block, 192}},
      {"transformers-tensor-static-kernel",
       "eager",
       down,
       {tensorStatic, 1024, 1, "", 90, "5.12.0"},
       {tensorStatic}},
      {"transformers-tensor-static-bits",
       "eager",
       up,
       {tensorStatic, 1024, 1, "", 90, "5.8.1"},
       {tensorDynamic, 1024, 1, "", 90, "5.8.1"}},
      {"transformers-deepgemm-seam", "deepgemm", up, {block, 192}, {block, 256}},
      {"transformers-block", "grouped_mm", up, {block}, {fp8Block("dynamic", 64, 128)}},
      {"transformers-scale-format", "eager", up, {ue8m0, 1024, 1, "", 90, "5.8.1"}, {ue8m0}},
      {"vllm-marlin-block", "marlin", up, {fp8Block("dynamic", 64, 64)}, {block}},
      {"transformers-tensor-static", "eager", down, {tensorStatic}, {tensorDynamic}},
      {"transformers-tensor-row", "batched_mm", down, {tensorDynamic}, {block}},
      {"transformers-seam", "eager", up, {block, 192}, {block, 256}},
      {"transformers-split", "eager", down, {block, 768, 4}, {block, 768, 3}},
      {"transformers-eager-static", "eager", up, {blockStatic}, {block}},

      {"sglang-channel-static", "fused_moe", up, {channelTokenStatic}, {channelToken}},
      {"sglang-mixed", "fused_moe", down, {channelTensor}, {ctTensorDynamic}},
      {"sglang-block-static-tensor", "fused_moe", up, {ctBlockTensorStatic}, {ctBlock}},
      {"sglang-block-static", "fused_moe", up, {ctBlockGroupStatic}, {ctBlock}},
      {"sglang-fp8-block-static", "fused_moe", up, {blockStatic}, {block}},
      {"sglang-fp8-scheme", "fused_moe", up, {noScheme}, {block}},
      {"sglang-compressed-rows", "fused_moe", up, {ctBlock, 192}, {block, 192}},
      {"sglang-block-activations", "fused_moe", up, {ctBlockToken}, {ctBlock}},
      {"sglang-modelopt", "fused_moe", up, {modelOptChannel}, {modelOpt}},
      {"sglang-compressed-gate", "fused_moe", up, {channelToken, 1024, 1, noGate}, {channelToken}},
      {"sglang-block-rows", "fused_moe", up, {block, 192}, {block, 256}},
      {"sglang-block-columns", "fused_moe", down, {block, 768, 4}, {block, 192, 1}},
      {"sglang-deepgemm-gate", "deep_gemm", up, {block, 1024, 1, noGate}, {block}},
      {"sglang-deepgemm-activation", "deep_gemm", up, {block, 1024, 1, gelu}, {block}},
      {"sglang-deepgemm-arch", "deep_gemm", up, {block, 1024, 1, "", 89}, {block}},
      {"sglang-deepgemm-block", "deep_gemm", up, {fp8Block("dynamic", 64, 64)}, {block}},
      {"sglang-cutlass-block", "cutlass", up, {channelToken}, {block}},
      {"sglang-cutlass-arch", "cutlass", up, {block, 1024, 1, "", 89}, {block}},
      {"sglang-mx", "fused_moe", up, {mx}, {block}},
      {"sglang-mx", "fused_moe", down, {mx}, {mx, 1024, 1, "", 100}},
      {"sglang-mx-unread", "fused_moe", up, {mx, 1024, 1, "", 100}, {mx}},
      {"sglang-mx-unread", "deep_gemm", up, {mx, 1024, 1, "", 100, "0.5.12"}, {mx}},
      {"sglang-e5m2", "cutlass", up, {e5m2}, {block}},
      {"sglang-requantized", "fused_moe", up, {tensorDynamic}, {tensorDynamic, 1024, 1, noGate}},
      {"sglang-largest-scale", "fused_moe", down, {tensorStatic}, {tensorDynamic}},

      {"vllm-channel-static", "triton", up, {channelTokenStatic}, {channelToken}},
      {"vllm-mixed", "triton", up, {channelTensor}, {ctTensor}},
      {"vllm-block-static", "triton", up, {ctBlockTensorStatic}, {ctBlock}},
      {"vllm-fp8-block-static", "marlin", up, {blockStatic}, {block}},
      {"vllm-modelopt", "triton", up, {modelOptMx}, {modelOpt}},
      {"vllm-cutlass-method", "cutlass", up, {tensorStatic}, {ctTensor}},
      {"vllm-cutlass-gate", "cutlass", up, {channelToken, 1024, 1, noGate}, {channelToken}},
      {"vllm-cutlass-pair", "cutlass", up, {ctBlock}, {channelToken}},
      {"vllm-deepgemm-arch", "deep_gemm", up, {block, 1024, 1, "", 89}, {block}},
      {"vllm-deepgemm-gate", "deep_gemm", up, {block, 1024, 1, noGate}, {block}},
      {"vllm-deepgemm-activation", "deep_gemm", up, {block, 1024, 1, gelu}, {block}},
      {"vllm-deepgemm-pair", "deep_gemm", up, {channelToken}, {ctBlock}},
      {"vllm-deepgemm-pair", "deep_gemm", up, {mx}, {mx, 1024, 1, "", 100}},
      {"vllm-mx-unread", "deep_gemm", up, {mx, 1024, 1, "", 100}, {mx}},
      {"vllm-mx-unread",
       "flashinfer_trtllm",
       up,
       {mx, 1024, 1, "", 100},
       {block, 1024, 1, "", 100}},
      {"vllm-mx-unread", "marlin", up, {mx, 1024, 1, "", 100}, {mx}},
      {"vllm-e5m2", "triton", up, {e5m2}, {block}},
      {"vllm-flashinfer-arch", "flashinfer_cutlass", up, {block, 1024, 1, "", 89}, {block}},
      {"vllm-flashinfer-block-arch",
       "flashinfer_cutlass",
       up,
       {block, 1024, 1, "", 100},
       {tensorStatic, 1024, 1, "", 100}},
      {"vllm-flashinfer-pair", "flashinfer_cutlass", up, {channelToken}, {tensorStatic}},
      {"vllm-trtllm-arch", "flashinfer_trtllm", up, {block}, {block, 1024, 1, "", 100}},
      {"vllm-trtllm-pair",
       "flashinfer_trtllm",
       up,
       {channelToken, 1024, 1, "", 100},
       {mx, 1024, 1, "", 100}},
      {"vllm-triton-arch", "triton", up, {block, 1024, 1, "", 80}, {block}},
      {"vllm-triton-pair", "triton", up, {mx}, {block}},
      {"vllm-block-refine", "triton", up, {block, 640, 2}, {block, 640, 1}},
      {"vllm-block-coarse", "triton", up, {block, 640, 8}, {block, 640, 4}},
      {"vllm-block-rows", "triton", up, {ctBlock, 640, 2}, {ctBlock, 640, 1}},
      {"vllm-block-columns", "flashinfer_cutlass", down, {block, 640, 2}, {block, 640, 5}},
      {"vllm-deepgemm-fallback", "deep_gemm", up, {block, 512}, {block, 1024}},
      {"vllm-deepgemm-fallback", "deep_gemm", down, {block, 512}, {block, 512, 1, "", 100}},
      {"vllm-marlin", "marlin", up, {block}, {block, 640, 2}},
      {"vllm-requantized", "triton", up, {tensorStatic}, {tensorStatic, 1024, 1, noGate}},
      {"vllm-largest-scale", "triton", down, {modelOpt}, {tensorDynamic}},

      {"deepgemm-arch", "contiguous", up, {block, 1024, 1, "", 120}, {block}},
      {"deepgemm-block", "masked", up, {channelToken}, {block}},
      {"deepgemm-block", "masked", up, {mx}, {mx, 1024, 1, "", 100}},
      {"deepgemm-mx", "masked", up, {mx, 1024, 1, "", 100}, {mx}},
      {"deepgemm-e5m2", "contiguous", up, {e5m2}, {block}},
      {"flashinfer-e5m2",
       "group_gemm_fp8_nt_groupwise",
       up,
       {e5m2, 1024, 1, "", 100},
       {block, 1024, 1, "", 100}},
      {"torch-e5m2", "scaled_grouped_mm", up, {e5m2}, {channelToken}},
      {"torch-mx", "scaled_grouped_mm", up, {mx, 1024, 1, "", 100}, {mx}},
      {"deepgemm-scale", "contiguous", up, {block, 1024, 1, "", 100}, {ue8m0, 1024, 1, "", 100}},
      {"deepgemm-n", "contiguous", up, {block, 1026}, {block, 1024}},
      {"deepgemm-rows", "contiguous", up, {block, 192}, {block, 96}},
      {"deepgemm-seam", "contiguous", up, {block, 96}, {block, 128}},
      {"deepgemm-split", "masked", down, {block, 768, 4}, {block, 768, 2}},
      {"flashinfer-groupwise-arch",
       "group_gemm_fp8_nt_groupwise",
       up,
       {block},
       {block, 1024, 1, "", 100}},
      {"flashinfer-trtllm-arch",
       "trtllm_fp8_block_scale_moe",
       up,
       {block},
       {block, 1024, 1, "", 100}},
      {"flashinfer-cutlass-arch", "cutlass_fused_moe", up, {block, 1024, 1, "", 100}, {block}},
      {"flashinfer-block", "cutlass_fused_moe", up, {channelToken}, {block}},
      {"flashinfer-seam", "cutlass_fused_moe", up, {block, 192}, {block, 256}},
      {"flashinfer-split", "cutlass_fused_moe", down, {block, 768, 4}, {block, 768, 2}},
      {"torch-arch", "scaled_grouped_mm", up, {channelToken, 1024, 1, "", 89}, {channelToken}},
      {"torch-pair", "scaled_grouped_mm", up, {block}, {channelToken}},
      {"torch-extents",
       "scaled_grouped_mm",
       down,
       {channelToken, 1024, 1, odd},
       {channelToken, 1024, 1, latent}},
  };
  return rows;
}

Verdict verdictOf(const char *rule, const char *dispatch, bool isDown, const Try &given) {
  std::string_view id = rule;
  const Engine *engine = findEngine(id.substr(0, id.find('-')));
  REQUIRE_MESSAGE(engine, rule);
  REQUIRE_MESSAGE(std::any_of(engine->dispatches.begin(), engine->dispatches.end(),
                              [&](std::string_view each) { return each == dispatch; }),
                  rule << " " << dispatch);
  Checkpoint model = modelOf(given.quantization, given.intermediate, given.more);
  const Experts &experts = model.routed;
  int64_t part = experts.intermediate / given.tp;
  const Scheme &scheme = isDown ? experts.down : experts.up;
  REQUIRE_MESSAGE(scheme.isFp8, rule);
  EngineCase one = {model,
                    experts,
                    scheme,
                    isDown,
                    isDown            ? experts.input
                    : experts.isGated ? 2 * part
                                      : part,
                    isDown ? part : experts.input,
                    part,
                    {given.tp, 1},
                    given.arch};
  return judge(*engine, given.version, dispatch, one);
}

} // namespace

TEST_CASE("each rule is met by its case, and not by one near it") {
  std::set<std::string> met;
  for (const Row &row : allRows()) {
    Verdict verdict = verdictOf(row.rule, row.dispatch, row.isDown, row.met);
    CHECK_MESSAGE(verdict.ruleId == row.rule, row.rule << " " << row.dispatch);
    CHECK(!verdict.fact.empty());
    CHECK(!verdict.source.empty());
    Verdict near = verdictOf(row.rule, row.dispatch, row.isDown, row.near);
    CHECK_MESSAGE(near.ruleId != row.rule, row.rule << " " << row.dispatch);
    met.insert(row.rule);
  }
  std::set<std::string> ids;
  for (const EngineRule &rule : allEngineRules()) {
    CHECK_MESSAGE(ids.insert(rule.id).second, rule.id << " is there twice");
    CHECK_MESSAGE(findEngine(rule.engine), rule.id);
    CHECK_MESSAGE(std::string_view(rule.id).starts_with(std::string(rule.engine) + "-"), rule.id);
    CHECK_MESSAGE(met.contains(rule.id), rule.id << " has no case");
  }
}

TEST_CASE("moejit's rules are none of an engine's") {
  for (const EngineRule &rule : allEngineRules())
    for (const char *text : {rule.id, rule.fact, rule.source, rule.remedy}) {
      CHECK(std::string_view(text).find("MJ") == std::string_view::npos);
      CHECK(std::string_view(text).find("moejit") == std::string_view::npos);
    }
}

TEST_CASE("what was not read of e5m2, and of MXFP8 on SM100, is never fine") {
  for (const Engine &engine : allEngines())
    for (const char *version : engine.versions)
      for (const char *dispatch : engine.dispatches)
        for (bool isDown : {up, down})
          for (int arch : {90, 100, 120})
            for (const std::string &quantization : {e5m2, mx, mxPower, modelOptMx}) {
              if (arch < 100 && quantization != e5m2)
                continue;
              Verdict verdict = verdictOf((std::string(engine.name) + "-any").c_str(), dispatch,
                                          isDown, {quantization, 1024, 1, "", arch, version});
              CHECK_MESSAGE(!works(verdict.outcome), engine.name << " " << version << " "
                                                                 << dispatch << " sm_" << arch
                                                                 << " " << quantization);
            }
}

TEST_CASE("versions that nobody read are unknown, and never fine") {
  for (const Engine &engine : allEngines()) {
    std::string newest = engine.newest();
    // A post or a pre-release of what was read is other code.
    for (std::string version :
         {newest + ".1", newest + ".post9", newest + ".dev0", newest + "rc1", newest + "+",
          newest + "+a-b", newest + ".", "v" + newest, std::string("abc"), std::string("1..2"),
          std::string("9999"), std::string("0.0.1")})
      for (const char *dispatch : engine.dispatches) {
        Verdict verdict = verdictOf((std::string(engine.name) + "-any").c_str(), dispatch, false,
                                    {block, 1024, 1, "", 90, version});
        CHECK(verdict.outcome == Outcome::Unknown);
        CHECK(verdict.evidence == Evidence::Unknown);
        CHECK(!works(verdict.outcome));
        CHECK(verdict.fact.find(version) != std::string::npos);
      }
  }
  CHECK(compareVersions("0.33.0", "0.33") == 0);
  CHECK(compareVersions("0.9", "0.33") < 0);
  CHECK(compareVersions("0.33.1", "0.33.0") > 0);
  CHECK(compareVersions("", "0") == 0);
  CHECK(compareVersions("0.33.0+cu129", "0.33") == 0);
  Try local = {channelToken, 1024, 1, "", 90, "0.33.0+cu129.1"};
  CHECK(verdictOf("vllm-any", "deep_gemm", up, local).evidence == Evidence::Run);
  local.version = "0.33.0.post1";
  Verdict post = verdictOf("vllm-any", "deep_gemm", up, local);
  CHECK(post.evidence == Evidence::Unknown);
  CHECK(post.fact.find("no version that was read") != std::string::npos);
  CHECK(compareVersions("99999999999999999999", "1") > 0);
}

TEST_CASE("a version between two that were read is inferred where they agree") {
  auto at = [](const char *version, const std::string &quantization, const char *dispatch) {
    return verdictOf("transformers-any", dispatch, up, {quantization, 1024, 1, "", 90, version});
  };
  CHECK(at("5.8.1", block, "deepgemm").evidence == Evidence::Read);
  CHECK(at("5.10.0", block, "deepgemm").outcome == Outcome::Runs);
  CHECK(at("5.10.0", block, "deepgemm").evidence == Evidence::Inferred);
  CHECK(at("5.10.0", tensorStatic, "batched_mm").outcome == Outcome::Refused);
  CHECK(at("5.10.0", fp8Block("dynamic", 1, 128), "deepgemm").outcome == Outcome::Unknown);
  // Eager took one scale a tensor of gate and up until FP8Experts kept two.
  CHECK(at("5.5.0", tensorStatic, "eager").outcome == Outcome::Runs);
  CHECK(at("5.5.0", tensorStatic, "eager").evidence == Evidence::Read);
  CHECK(at("5.5.4", tensorStatic, "eager").evidence == Evidence::Run);
  CHECK(at("5.10.0", tensorStatic, "eager").outcome == Outcome::Unknown);
  CHECK(at("5.12.0", tensorStatic, "eager").outcome == Outcome::Refused);
}

TEST_CASE("engines are chosen by name and version") {
  CHECK(parseEngines("all")->size() == allEngines().size());
  Result<std::vector<EngineChoice>> two = parseEngines("vllm@0.9,torch");
  REQUIRE(bool(two));
  CHECK(two->size() == 2);
  CHECK((*two)[0].version == "0.9");
  CHECK(parseEngines("all,vllm,all")->size() == allEngines().size());
  CHECK(parseEngines("vllm,vllm@0.33.0,vllm@0.9,vllm@0.9")->size() == 2);
  for (const char *bad : {"", "vlm", "vllm@", "vllm,", "@1"}) {
    Result<std::vector<EngineChoice>> refused = parseEngines(bad);
    REQUIRE_MESSAGE(!refused, bad);
    CHECK(refused.error().notes[0].find("sglang") != std::string::npos);
  }
}

TEST_CASE("a projection that is not FP8 decides nothing") {
  auto checkOf = [](const char *ignored, const char *pair = "\"strategy\": \"token\", "
                                                            "\"dynamic\": true") {
    std::string quantization = compressed("\"strategy\": \"channel\"", pair);
    quantization.replace(quantization.find("lm_head"), 7, ignored);
    CheckOptions options;
    options.engines = *parseEngines("vllm,transformers");
    return *check(modelOf(quantization), options);
  };
  for (bool isUp : {true, false}) {
    Check half = checkOf(isUp ? "re:.*(gate|up)_proj$" : "re:.*down_proj$");
    CHECK(half.hasWorking(*findEngine("vllm")));
    for (const DispatchCheck &each : half.dispatches) {
      CHECK(each.verdicts[isUp ? 0 : 1].outcome == Outcome::NotApplicable);
      const Verdict &other = each.verdicts[isUp ? 1 : 0];
      CHECK(each.overall.outcome == other.outcome);
      CHECK(each.overall.ruleId == other.ruleId);
      CHECK((each.workingTp.size() > 1) == works(other.outcome));
      // A dispatch that such checkpoints do not reach is told by its rule.
      if (each.choice.engine == findEngine("transformers"))
        CHECK(each.overall.ruleId == "transformers-method");
    }
    for (const MoejitCheck &each : half.moejit) {
      CHECK(each.isLegal);
      CHECK(each.kernels == 1);
    }
    REQUIRE(half.notes.size() == 1);
    CHECK(half.notes[0].starts_with(isUp ? "gate_up of the experts is not FP8 (ignored)"
                                         : "down of the experts is not FP8 (ignored)"));
  }
  // What is refused of the other one is refused.
  Check refused = checkOf("re:.*(gate|up)_proj$", "\"strategy\": \"token\", \"dynamic\": false");
  CHECK(!refused.hasWorking(*findEngine("vllm")));
  CHECK(refused.dispatches.front().overall.outcome == Outcome::Refused);
  CHECK(!refused.moejit.front().isLegal);
}

TEST_CASE("docs/generated/engine-rules.md is the table") {
  std::string text = renderEngineRulesMarkdown();
  std::ifstream file(MOEJIT_SOURCE_DIR "/docs/generated/engine-rules.md");
  std::stringstream there;
  there << file.rdbuf();
  bool isSame = there.str() == text;
  // Written beside the test program, wherever it runs.
  if (!isSame)
    std::ofstream(MOEJIT_PAGES_DIR "/engine-rules.md") << text;
  CHECK_MESSAGE(isSame, "copy " MOEJIT_PAGES_DIR "/engine-rules.md over the page");
}

// vllm#54178: the number in the message, 80, was taken for the fused width; 2·320 is a multiple of
// 128, and 320 is not.
TEST_CASE("vllm#54178: I / tp decides, and the message says so") {
  struct {
    int64_t intermediate;
    std::vector<int64_t> fine, refused;
  } rows[] = {{640, {1}, {2, 4, 8}},  {512, {1, 2, 4}, {8}},  {768, {1, 2}, {4, 8}},
              {1408, {1}, {2, 4, 8}}, {1536, {1, 2, 4}, {8}}, {6400, {1, 2}, {4, 8}}};
  for (const auto &row : rows) {
    Checkpoint model = modelOf(block, row.intermediate);
    CheckOptions options;
    options.engines = *parseEngines("sglang");
    for (int64_t tp : row.fine) {
      options.split = {tp, 1};
      CHECK_MESSAGE(check(model, options)->hasWorking(*findEngine("sglang")),
                    row.intermediate << " tp " << tp);
    }
    for (int64_t tp : row.refused) {
      options.split = {tp, 1};
      Result<Check> refused = check(model, options);
      CHECK_MESSAGE(!refused->hasWorking(*findEngine("sglang")), row.intermediate << " tp " << tp);
      const DispatchCheck &first = refused->dispatches.front();
      std::string text = first.verdicts[0].detail;
      for (const std::string &part :
           {fmt::format("I {} / tp {} = {}", row.intermediate, tp, row.intermediate / tp),
            std::string("block 128x128"), std::string("rows of gate and of up")})
        CHECK_MESSAGE(text.find(part) != std::string::npos, text);
      CHECK(first.verdicts[1].detail.find("columns of down") != std::string::npos);
      for (int64_t fine : row.fine)
        CHECK(std::count(first.workingTp.begin(), first.workingTp.end(), fine) == 1);
      CHECK(std::count(first.workingTp.begin(), first.workingTp.end(), tp) == 0);
      CHECK(first.worksWithEp); // whole experts on as many ranks
      options.split = {1, tp};
      CHECK(check(model, options)->hasWorking(*findEngine("sglang")));
    }
  }
}

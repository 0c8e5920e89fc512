// The table of engines' rules beside what engines did when they were executed: each line of
// tests/engines/results decides a verdict of its version, or it is said why it decides none; and
// what the table calls run has such a line.
#include "tests/checkpoint/Models.h"

#include "runtime/JsonReader.h"
#include "tools/checkpoint/Check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

using namespace moejit;
using namespace moejit::checkpoint;

namespace {

struct Line {
  JsonValue json;
  std::string of(const char *name) const { return textOf(json, name); }
  bool has(const char *name, const char *part) const {
    return of(name).find(part) != std::string::npos;
  }
};

/// The lines of `engine` in all files of results.
std::vector<Line> linesOf(const std::string &engine) {
  std::vector<Line> lines;
  for (const auto &entry :
       std::filesystem::directory_iterator(MOEJIT_SOURCE_DIR "/tests/engines/results")) {
    std::ifstream file(entry.path());
    for (std::string text; std::getline(file, text);) {
      Result<JsonValue> json = parseJson(text);
      REQUIRE_MESSAGE(bool(json), entry.path());
      if (textOf(*json, "engine") == engine)
        lines.push_back({std::move(*json)});
    }
  }
  return lines;
}

/// The number behind `name` in a case, such as 160 of "I=160".
int64_t numberAfter(const std::string &text, const std::string &name, int64_t otherwise) {
  size_t at = text.find(name);
  if (at == std::string::npos)
    return otherwise;
  std::from_chars(text.data() + at + name.size(), text.data() + text.size(), otherwise);
  return otherwise;
}

/// What the table says of both GEMMs of one line, and of both together.
DispatchCheck checkOf(const Checkpoint &model, const Line &line, const char *dispatch,
                      int64_t tp = 1) {
  CheckOptions options;
  options.split = {tp, 1};
  options.engines = *parseEngines(line.of("engine") + "@" + line.of("version"));
  Result<Check> checked = check(model, options);
  REQUIRE(bool(checked));
  auto found = std::find_if(checked->dispatches.begin(), checked->dispatches.end(),
                            [&](const DispatchCheck &each) { return each.dispatch == dispatch; });
  REQUIRE_MESSAGE(found != checked->dispatches.end(), dispatch);
  return *found;
}

std::string ruleAt(const Verdict &verdict, const Line &line) {
  return verdict.ruleId + " " + line.of("version");
}

/// Rules with the versions in which a line decided them.
using Decided = std::set<std::string>;

/// What was raised is refused by a rule that was run and that names what is raised.
void checkRaised(const Verdict &verdict, const Line &line, Decided &decided) {
  CHECK(outcomeName(verdict.outcome) == std::string(outcomeName(Outcome::Refused)));
  CHECK_MESSAGE(verdict.evidence == Evidence::Run, verdict.ruleId);
  std::string exception = line.of("exception");
  if (line.of("step") != "arguments of compressed-tensors")
    CHECK_MESSAGE(verdict.fact.find(exception == "AssertionError" ? "assert" : exception) !=
                      std::string::npos,
                  verdict.fact);
  decided.insert(ruleAt(verdict, line));
}

/// Every rule that says it was run has a line that decides it, and is known otherwise too.
void checkClaims(const char *engine, const Decided &decided) {
  for (const EngineRule &rule : allEngineRules()) {
    CHECK(rule.basis.evidence != Evidence::Run);
    if (std::string_view(rule.engine) != engine)
      continue;
    const std::vector<const char *> &versions = findEngine(engine)->versions;
    for (const char *version : rule.basis.ran) {
      CHECK(std::find(versions.begin(), versions.end(), std::string_view(version)) !=
            versions.end());
      CHECK_MESSAGE(decided.contains(std::string(rule.id) + " " + version),
                    rule.id << " " << version);
    }
  }
}

// transformers_dispatch.py.

Checkpoint transformersModel(const std::string &name) {
  std::string scheme = name.find("static") != std::string::npos ? "static" : "dynamic";
  int64_t block = name.find("64x64") != std::string::npos ? 64 : 128;
  std::string blocks = name.starts_with("tensor") ? "null" : fmt::format("[{}, {}]", block, block);
  const char *format = name.find("ue8m0") != std::string::npos ? ", \"scale_fmt\": \"ue8m0\"" : "";
  Result<Checkpoint> model = parseCheckpoint(
      "config.json",
      fmt::format("{{\"model_type\": \"made_up\", \"hidden_size\": 256, "
                  "\"moe_intermediate_size\": {}, \"num_experts\": 4, \"num_experts_per_tok\": 2, "
                  "\"num_hidden_layers\": 1, \"hidden_act\": \"silu\", \"quantization_config\": "
                  "{{\"quant_method\": \"fp8\", \"activation_scheme\": \"{}\", "
                  "\"weight_block_size\": {}{}}}}}",
                  numberAfter(name, "I=", 128), scheme, blocks, format),
      "");
  REQUIRE(bool(model));
  return *model;
}

/// Why a line decides nothing that the table says; empty where it does.
std::string undecidedWhy(const Line &line) {
  std::string exception = line.of("exception");
  bool isRefusal = exception == "NotImplementedError" || exception == "ValueError" ||
                   exception == "AssertionError";
  bool isKernel = line.of("hub_kernel") != "absent" && line.of("device") != "cpu";
  if (line.of("dispatch") == "deepgemm_megamoe")
    return "a dispatch for another format";
  if (line.has("case", "ids of no expert") || line.has("case", "id "))
    return "routing is no part of a checkpoint";
  if (line.has("case", "no token") && exception.empty())
    return "no row is computed";
  if (exception == "TypeError" && line.has("message", "'scale_fmt'"))
    return "the quantizer of this version hands over no scale_fmt, only the program that ran does";
  if (exception == "ImportError" || (!isKernel && !isRefusal))
    return "a kernel or the GPU is absent";
  return "";
}

// sglang_predicates.py and vllm_predicates.py: "weights tensor, inputs token dynamic, …".

std::string argumentsOf(const std::string &text, bool isWeight) {
  std::string strategy = text.substr(0, text.find_first_of(" ,"));
  if (strategy == "block")
    return fmt::format("\"strategy\": \"block\", \"block_structure\": [{}, {}]",
                       numberAfter(text, "x", 128), numberAfter(text, "x", 128));
  if (strategy.starts_with("group"))
    strategy = "group";
  std::string result = fmt::format("\"strategy\": \"{}\"", strategy);
  if (strategy == "group")
    result += ", \"group_size\": 128";
  if (!isWeight)
    result +=
        text.find("static") != std::string::npos ? ", \"dynamic\": false" : ", \"dynamic\": true";
  return result;
}

/// The model of a case, with `intermediate` rows of gate.
Checkpoint compressedModel(const std::string &name, int64_t intermediate) {
  const std::string weights = "weights ", inputs = ", inputs ";
  size_t middle = name.find(inputs);
  REQUIRE(middle != std::string::npos);
  std::string left = name.substr(weights.size(), middle - weights.size()),
              right = name.substr(middle + inputs.size());
  return modelOf(compressed(argumentsOf(left, true), argumentsOf(right, false)), intermediate);
}

} // namespace

TEST_CASE("transformers: each run decides its verdicts, and they agree") {
  Decided decided;
  std::map<std::string, int> undecided;
  int raised = 0, ran = 0;
  for (const Line &line : linesOf("transformers")) {
    std::string name = line.of("case");
    INFO(line.of("version"), " ", line.of("dispatch"), ", ", name, ", ", line.of("device"));
    if (std::string why = undecidedWhy(line); !why.empty()) {
      ++undecided[why];
      continue;
    }
    DispatchCheck check = checkOf(transformersModel(name), line, line.of("dispatch").c_str());
    // The module's two scales of gate and up were replaced by one: this decides of down alone.
    bool isDownAlone = line.has("case", "one scale an expert") && line.of("version") != "5.5.4";
    if (line.of("outcome") == "raises") {
      ++raised;
      checkRaised(check.overall, line, decided);
      continue;
    }
    ++ran;
    REQUIRE(line.of("outcome") == "ok");
    const JsonValue *error = line.json.find("error_scheme");
    REQUIRE((error && error->kind == JsonValue::Kind::Number));
    for (size_t gemm = isDownAlone; gemm < 2; ++gemm) {
      const Verdict &verdict = check.verdicts[gemm];
      CHECK_MESSAGE(works(verdict.outcome), verdict.ruleId);
      CHECK_MESSAGE(verdict.evidence == Evidence::Run, verdict.ruleId);
      CHECK(error->number < (verdict.ruleId == "transformers-tensor-static-bits" ? 4e-2 : 4e-3));
      decided.insert(ruleAt(verdict, line));
    }
  }
  checkClaims("transformers", decided);
  CHECK(raised == 106);
  CHECK(ran == 61);
  for (const auto &[why, count] : undecided)
    MESSAGE(count << " lines decide nothing: " << why);
}

TEST_CASE("what was run of transformers is read at the versions beside, and elsewhere") {
  auto evidenceOf = [](const char *version, const char *arch, Parallelism split = {}) {
    CheckOptions options;
    options.split = split;
    options.engines = *parseEngines(std::string("transformers@") + version);
    options.target.arch = arch;
    return check(modelOf(fp8Block()), options)->dispatches[0].overall.evidence;
  };
  CHECK(evidenceOf("5.17.0", "sm_90a") == Evidence::Run);
  CHECK(evidenceOf("5.12.0", "sm_90a") == Evidence::Read);
  CHECK(evidenceOf("5.18.0", "sm_90a") == Evidence::Inferred);
  CHECK(evidenceOf("5.17.0", "sm_100a") == Evidence::Read);
  CHECK(evidenceOf("5.17.0", "sm_90a", {2, 1}) == Evidence::Read);
  CHECK(evidenceOf("5.17.0", "sm_90a", {1, 2}) == Evidence::Read);
}

TEST_CASE("sglang: each run decides its verdicts, and they agree") {
  Decided decided;
  int raised = 0, taken = 0;
  for (const Line &line : linesOf("sglang")) {
    std::string name = line.of("case");
    INFO(name);
    int64_t shards = numberAfter(name, " of ", 1);
    Checkpoint model = compressedModel(name, shards * numberAfter(name, "I=", 0));
    DispatchCheck check = checkOf(model, line, "fused_moe", shards);
    if (line.of("outcome") == "raises") {
      ++raised;
      checkRaised(check.overall, line, decided);
    } else {
      // Weights are made; what the kernels compute was not run.
      ++taken;
      CHECK_MESSAGE(check.overall.outcome != Outcome::Refused, check.overall.ruleId);
      CHECK(check.overall.evidence != Evidence::Run);
    }
  }
  checkClaims("sglang", decided);
  CHECK(raised == 15);
  CHECK(taken == 7);
}

TEST_CASE("vllm: each run decides its verdicts, and they agree") {
  const std::map<std::string, std::pair<const char *, const char *>> backends = {
      {"TRITON", {"triton", "vllm-triton-pair"}},
      {"DEEPGEMM", {"deep_gemm", "vllm-deepgemm-pair"}},
      {"VLLM_CUTLASS", {"cutlass", "vllm-cutlass-pair"}},
      {"FLASHINFER_CUTLASS", {"flashinfer_cutlass", "vllm-flashinfer-pair"}},
      {"MARLIN", {"marlin", "vllm-marlin-block"}}};
  Decided decided;
  int refused = 0, taken = 0;
  for (const Line &line : linesOf("vllm")) {
    std::string name = line.of("case"), kernel = line.of("dispatch");
    INFO(kernel, ", ", name);
    auto backend = backends.find(kernel.substr(0, kernel.find(':')));
    if (backend == backends.end()) {
      CHECK((kernel.starts_with("BATCHED_") || kernel == "choice")); // the table has none of them
      continue;
    }
    auto [dispatch, rule] = backend->second;
    DispatchCheck check = checkOf(compressedModel(name, 1024), line, dispatch);
    bool isTaken = line.json.find("scheme")->boolean;
    ++(isTaken ? taken : refused);
    for (const Verdict &verdict : check.verdicts) {
      CHECK((verdict.evidence == Evidence::Run) == (verdict.ruleId == rule));
      if (isTaken)
        CHECK_MESSAGE(verdict.ruleId != rule, verdict.ruleId);
      else
        CHECK_MESSAGE(!works(verdict.outcome), verdict.ruleId);
      if (verdict.ruleId == rule)
        decided.insert(ruleAt(verdict, line));
    }
  }
  checkClaims("vllm", decided);
  CHECK(refused == 33);
  CHECK(taken == 22);
}

// Configurations with what is expected of them: those of tests/cases/configs always, and those of
// the folder that MOEJIT_CASES names where it is there. What is known to be wrong in the
// expectations is listed here and in docs/engines.md.
#include "tests/checkpoint/Models.h"

#include "runtime/JsonReader.h"
#include "tools/checkpoint/Check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

using namespace moejit;
using namespace moejit::checkpoint;

namespace {

/// Where an engine's source decides otherwise than the expectation. The rule is the one that says
/// so.
struct Correction {
  const char *file;
  const char *expected; ///< what the expectation begins with
  const char *engine, *dispatch;
  const char *rule;
};
constexpr Correction corrections[] = {
    // FP8Experts asserts that there is no bias: transformers 5.24.0,
    // integrations/finegrained_fp8.py.
    {"ambiguous--biased-experts.json", "OK", "transformers", "eager", "transformers-bias"},
    {"ambiguous--biased-experts.json", "HAZARD", "transformers", "eager", "transformers-bias"},
    {"ambiguous--biased-experts.json", "OK", "transformers", "batched_mm", "transformers-bias"},
    {"ambiguous--biased-experts.json", "OK", "transformers", "grouped_mm", "transformers-bias"},
    // FP8Experts keeps two scales of gate and up where there is one a tensor, and the kernel
    // asserts
    // that there is one: run, docs/results/engines.md.
    {"ambiguous--static-per-tensor-batched.json", "OK", "transformers", "eager",
     "transformers-tensor-fused"},
    {"reconstructed--Mistral-Small-4-119B-2603.json", "OK", "transformers", "eager",
     "transformers-tensor-fused"},
    // Eager hands the static scale of each expert to the block kernel: the same file.
    {"invalid--block-static-fp8.json", "REJECT", "transformers", "eager",
     "transformers-eager-static"},
    {"invalid--block-static-fp8.json", "REJECT", "transformers", "eager", "transformers-seam"},
};

std::string readAll(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int64_t numberOf(const JsonValue &line, const char *name) {
  const JsonValue *value = line.find(name);
  return value ? value->integer().value_or(0) : 0;
}

/// The expectation agrees with the outcome: HAZARD is what runs as something else.
bool agrees(std::string_view expected, Outcome outcome) {
  if (expected.starts_with("OK"))
    return works(outcome);
  if (expected.starts_with("HAZARD"))
    return outcome == Outcome::RunsElse;
  if (expected.starts_with("REJECT"))
    return outcome == Outcome::Refused;
  if (expected == "n/a")
    return outcome == Outcome::NotApplicable;
  return false;
}

void compareFacts(const JsonValue &line, const Checkpoint &model) {
  const Experts &routed = model.routed;
  CHECK(routed.count == numberOf(line, "experts"));
  CHECK(model.topK == numberOf(line, "top_k"));
  CHECK(model.hidden == numberOf(line, "hidden"));
  CHECK(routed.input == numberOf(line, "expert_hidden"));
  CHECK((model.shared ? model.shared->count : 0) == numberOf(line, "shared"));
  CHECK(model.needsFp8() == line.find("needs_fp8_experts")->boolean);
  if (routed.count > 0) {
    CHECK(routed.intermediate == numberOf(line, "intermediate"));
    CHECK(routed.isGated == line.find("gated")->boolean);
  }
  if (!model.needsFp8())
    return;
  const Scheme &scheme = routed.up;
  std::string weight = textOf(line, "weight"), activation = textOf(line, "activation");
  CHECK(weight.substr(0, weight.find('(')) == strategyName(scheme.weights));
  std::string ours = strategyName(scheme.activations);
  if (scheme.activations == Strategy::Group)
    ours += std::to_string(scheme.group);
  else if (scheme.activationText == "channel")
    ours = "channel";
  CHECK(activation.substr(0, activation.find('(')) == ours);
  CHECK(textOf(line, "scheme") == scaleSourceName(scheme.source));
  if (scheme.weights == Strategy::Block)
    CHECK(textOf(line, "block") == fmt::format("{}x{}", scheme.blockN, scheme.blockK));
  CHECK(textOf(line, "scale") == (scheme.scaleType == ElementType::F32 ? "fp32" : "ue8m0"));
  CHECK(scheme.isStrategyDefaulted ==
        (weight.find("default") != std::string::npos ||
         model.path.find("Instruct-FP8-static") != std::string::npos));
}

/// Compares one line at one tp. Counts the corrections it needs.
void compareVerdicts(const JsonValue &line, const JsonValue &expected, const Checkpoint &model,
                     int64_t tp, std::map<const Correction *, int> &used) {
  CheckOptions options;
  options.split = {tp, 1};
  options.engines = *parseEngines("transformers,sglang");
  Result<Check> result = check(model, options);
  REQUIRE(bool(result));
  std::string file = textOf(line, "file");
  auto shape = [&](const char *name) {
    const JsonValue *list = expected.find(name);
    return std::pair(list->items[0].integer(), list->items[1].integer());
  };
  CHECK(shape("gate_up") ==
        std::pair(std::optional(result->gemms[0].n), std::optional(result->gemms[0].k)));
  CHECK(shape("down") ==
        std::pair(std::optional(result->gemms[1].n), std::optional(result->gemms[1].k)));
  struct {
    const char *field, *engine, *dispatch;
  } columns[] = {{"eager", "transformers", "eager"},
                 {"batched_mm", "transformers", "batched_mm"},
                 {"grouped_mm", "transformers", "grouped_mm"},
                 {"fused_moe", "sglang", "fused_moe"}};
  for (const auto &column : columns) {
    std::string want = textOf(expected, column.field);
    for (const DispatchCheck &each : result->dispatches) {
      if (each.choice.engine->name != std::string_view(column.engine) ||
          each.dispatch != column.dispatch)
        continue;
      const Correction *correction = nullptr;
      for (const Correction &one : corrections)
        if (file == one.file && want.starts_with(one.expected) &&
            each.choice.engine->name == std::string_view(one.engine) &&
            each.dispatch == one.dispatch && each.overall.ruleId == one.rule)
          correction = &one;
      if (correction)
        ++used[correction];
      // A correction that corrects nothing is wrong itself.
      CHECK_MESSAGE(agrees(want, each.overall.outcome) == (correction == nullptr),
                    file << " tp " << tp << " " << column.field << ": " << want << ", ours "
                         << outcomeName(each.overall.outcome) << " " << each.overall.ruleId);
    }
  }
}

void compareFolder(const std::filesystem::path &folder) {
  std::ifstream lines(folder / "expected.jsonl");
  REQUIRE_MESSAGE(bool(lines), folder);
  std::map<const Correction *, int> used;
  std::string text;
  int64_t count = 0;
  while (std::getline(lines, text)) {
    Result<JsonValue> line = parseJson(text);
    REQUIRE(bool(line));
    std::string file = textOf(*line, "file");
    CAPTURE(file);
    Result<Checkpoint> model = readCheckpoint((folder / file).string());
    REQUIRE_MESSAGE(bool(model), (model ? "" : model.error().text()));
    compareFacts(*line, *model);
    for (int64_t tp : {1, 2, 4, 8}) {
      const JsonValue *expected = line->find(fmt::format("tp{}", tp));
      if (!expected || !model->needsFp8())
        continue;
      compareVerdicts(*line, *expected, *model, tp, used);
    }
    if (!model->needsFp8())
      CHECK_MESSAGE((model->routed.count == 0 || !model->routed.why.empty()), file);
    ++count;
  }
  CHECK(count > 20);
  for (const Correction &correction : corrections)
    CHECK_MESSAGE(used[&correction] > 0, correction.file << " " << correction.rule);
}

} // namespace

TEST_CASE("the configurations of tests/cases come out as expected") {
  compareFolder(MOEJIT_SOURCE_DIR "/tests/cases/configs");
}

TEST_CASE("further configurations come out as expected") {
  const char *folder = std::getenv("MOEJIT_CASES");
  if (!folder) {
    MESSAGE("not run: MOEJIT_CASES names no folder with an expected.jsonl");
    return;
  }
  compareFolder(folder);
}

TEST_CASE("the corrections are in docs/engines.md") {
  std::string text = readAll(MOEJIT_SOURCE_DIR "/docs/engines.md");
  for (const Correction &correction : corrections) {
    std::string file = correction.file;
    CHECK(text.find(file.substr(0, file.find(".json"))) != std::string::npos);
    CHECK(text.find(correction.rule) != std::string::npos);
  }
}

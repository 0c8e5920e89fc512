// Reading configurations: fields and their many names, quantizations, what is excluded, hostile
// texts.
#include "tests/checkpoint/Models.h"
#include "tools/checkpoint/NamePattern.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <random>

using namespace moejit;
using namespace moejit::checkpoint;

namespace {

Checkpoint read(const std::string &text, const std::string &quant = "") {
  Result<Checkpoint> model = parseCheckpoint("config.json", text, quant);
  REQUIRE_MESSAGE(bool(model), (model ? "" : model.error().text()));
  return *model;
}

/// The message of what cannot be read.
std::string refusal(const std::string &text) {
  Result<Checkpoint> model = parseCheckpoint("config.json", text, "");
  CHECK_MESSAGE(!model, text);
  return model ? "" : model.error().message;
}

std::string fp8With(const std::string &fields) {
  return "{\"quant_method\": \"fp8\", \"activation_scheme\": \"dynamic\", \"weight_block_size\": "
         "[128, 128], " +
         fields + "}";
}

} // namespace

TEST_CASE("experts are found under each of their names, and never by the model's") {
  for (const char *name : {"n_routed_experts", "num_routed_experts", "num_experts",
                           "num_local_experts", "moe_num_experts", "n_experts"})
    for (const char *topK : {"num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_k",
                             "top_k_experts", "experts_per_token"}) {
      Checkpoint model = read(fmt::format("{{\"{}\": 12, \"{}\": 3, \"hidden_size\": 64, "
                                          "\"intermediate_size\": 32}}",
                                          name, topK));
      CHECK(model.routed.count == 12);
      CHECK(model.topK == 3);
      CHECK(model.routed.intermediate == 32);
    }
  // A list with one value for each layer, nested twice, beside a tower with a size of its own.
  Checkpoint nested =
      read("{\"vision_config\": {\"hidden_size\": 7, \"num_experts\": 5}, \"thinker_config\": "
           "{\"text_config\": {\"d_model\": 64, \"moe_num_experts\": [6, 6], "
           "\"moe_intermediate_size\": [16, 16], \"mlp_hidden_act\": \"relu2\"}}}");
  CHECK(nested.routed.count == 6);
  CHECK(nested.hidden == 64);
  CHECK(nested.routed.intermediate == 16);
  CHECK(!nested.routed.isGated);
  Checkpoint ffn = read("{\"d_model\": 64, \"ffn_config\": {\"moe_num_experts\": 4, "
                        "\"ffn_hidden_size\": 32, \"moe_top_k\": 2}}");
  CHECK(ffn.routed.count == 4);
  CHECK(ffn.hidden == 64);
  CHECK(ffn.routed.intermediate == 32);
  Checkpoint latent =
      modelOf(fp8Block(), 1024, "\"moe_latent_size\": 256, \"n_shared_experts\": 2, ");
  CHECK(latent.routed.input == 256);
  REQUIRE(latent.shared);
  CHECK(latent.shared->input == 2048);
  CHECK(latent.shared->intermediate == 2048);
}

TEST_CASE("fields that contradict or cannot be are named") {
  CHECK(refusal("[]").find("no JSON object") != std::string::npos);
  CHECK(refusal("{\"num_experts\": 4, \"hidden_size\": 64}").find("moe_intermediate_size") !=
        std::string::npos);
  CHECK(refusal("{\"num_experts\": 4, \"intermediate_size\": 64}").find("hidden_size") !=
        std::string::npos);
  for (const char *bad : {"-1", "1.5", "\"8\"", "1e300", "99999999", "[8, 9]", "{}"})
    CHECK_MESSAGE(
        refusal(fmt::format("{{\"num_experts\": {}, \"hidden_size\": 64, \"intermediate_size\": "
                            "64}}",
                            bad))
                .find("num_experts") != std::string::npos,
        bad);
  auto quantized = [&](const std::string &text) { return refusal(configText(text)); };
  CHECK(
      quantized("{\"quant_method\": \"fp8\", \"activation_scheme\": \"statik\"}").find("statik") !=
      std::string::npos);
  for (const char *block : {"[128]", "[0, 128]", "[-1, 128]", "[1.5, 2]", "128", "{}"})
    CHECK_MESSAGE(
        quantized(fmt::format("{{\"quant_method\": \"fp8\", \"weight_block_size\": {}}}", block))
                .find("weight_block_size") != std::string::npos,
        block);
  CHECK(quantized(fp8With("\"scale_fmt\": \"bf16\"")).find("scale_fmt") != std::string::npos);
  CHECK(quantized("{}").find("quant_method") != std::string::npos);
  CHECK(quantized("{\"quant_method\": \"compressed-tensors\"}").find("config_groups") !=
        std::string::npos);
  CHECK(quantized("{\"quant_method\": \"modelopt\"}").find("quant_algo") != std::string::npos);
  CHECK(quantized("{\"quant_method\": \"fbgemm_fp8\"}").find("fbgemm_fp8") != std::string::npos);
}

TEST_CASE("what a list excludes is not FP8") {
  struct {
    const char *list;
    bool isRouted, isShared;
  } rows[] = {
      {"\"lm_head\"", true, true},
      {"\"mlp.experts\"", false, true},
      {"\"model.layers.0.mlp.experts\", \"model.layers.1.mlp.experts\", "
       "\"model.layers.2.mlp.experts\", \"model.layers.3.mlp.experts\"",
       false, true},
      {"\"model.layers.1.mlp.experts\"", true, true},
      {"\"model.layers.1\"", true, true},
      {"\"model.layers\"", false, false},
      {"\"gate\"", true, true},
      {"\"model.layers.0.mlp.gate\"", true, true},
      {"\"mlp.shared_experts\"", true, false},
      {"\"model.layers.*.mlp.experts\"", false, true},
      {"\"model.layers.*.mlp\"", false, false},
      {"\"model.layers.*.self_attn\"", true, true},
  };
  for (const auto &row : rows)
    for (const char *field : {"modules_to_not_convert", "ignored_layers"}) {
      CAPTURE(row.list);
      Checkpoint model = modelOf(fp8With(fmt::format("\"{}\": [{}]", field, row.list)), 1024,
                                 "\"n_shared_experts\": 1, ");
      CHECK(Checkpoint::isFp8(model.routed) == row.isRouted);
      CHECK(Checkpoint::isFp8(*model.shared) == row.isShared);
      CHECK(model.routed.why.empty() == row.isRouted);
    }
  Checkpoint one = modelOf(fp8With("\"modules_to_not_convert\": [\"model.layers.1.mlp.experts\"]"));
  CHECK(one.routed.fp8Layers == 3);
  CHECK(one.routed.layers == 4);
  CHECK(!one.notes.empty());
  // "model.layers.1" is not the beginning of "model.layers.10".
  Checkpoint many = read("{\"num_experts\": 2, \"hidden_size\": 64, \"intermediate_size\": 64, "
                         "\"num_hidden_layers\": 12, \"quantization_config\": " +
                         fp8With("\"modules_to_not_convert\": [\"model.layers.1\"]") + "}");
  CHECK(many.routed.fp8Layers == 11);
}

TEST_CASE("compressed-tensors: groups, targets and what is ignored") {
  const std::string sides =
      "\"weights\": {\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"channel\"}, "
      "\"input_activations\": {\"num_bits\": 8, \"type\": \"float\", \"strategy\": \"token\", "
      "\"dynamic\": true}";
  const std::string narrow = "\"weights\": {\"num_bits\": 4, \"type\": \"int\", \"strategy\": "
                             "\"group\", \"group_size\": 32}, \"input_activations\": null";
  auto model = [&](const std::string &groups, const std::string &ignore) {
    return modelOf("{\"quant_method\": \"compressed-tensors\", \"config_groups\": {" + groups +
                   "}, \"ignore\": [" + ignore + "]}");
  };
  std::string all = "\"g\": {\"targets\": [\"Linear\"], " + sides + "}";
  CHECK(model(all, "\"lm_head\"").needsFp8());
  CHECK(model(all, "\"re:.*mlp.gate$\"").needsFp8());
  CHECK(model(all, "\"re:.*mlp\\\\.(gate|up|gate_up|down)_proj.*\"").needsFp8());
  CHECK(!model(all, "\"re:.*experts.*\"").needsFp8());
  CHECK(!model(all, "\"re:.*mlp.*\"").needsFp8());
  // Names go before classes; experts and the rest may differ.
  std::string experts = "\"a\": {\"targets\": [\"Linear\"], " + narrow +
                        "}, \"b\": {\"targets\": [\"re:.*experts.*(gate|up|down)_proj$\"], " +
                        sides + "}";
  CHECK(model(experts, "").needsFp8());
  std::string others = "\"a\": {\"targets\": [\"Linear\"], " + sides +
                       "}, \"b\": {\"targets\": [\"re:.*experts.*\"], " + narrow + "}";
  CHECK(!model(others, "").needsFp8());
  // Down alone in FP8 is half a job, and is seen.
  std::string half = "\"b\": {\"targets\": [\"re:.*experts.*down_proj$\"], " + sides + "}";
  Checkpoint down = model(half, "");
  CHECK(down.routed.down.isFp8);
  CHECK(!down.routed.up.isFp8);
  // Gate and up that differ are no one GEMM.
  std::string split =
      "\"a\": {\"targets\": [\"re:.*up_proj$\", \"re:.*down_proj$\"], " + sides + "}";
  Checkpoint uneven = model(split, "");
  CHECK(!uneven.routed.up.isFp8);
  CHECK(refusal(configText("{\"quant_method\": \"compressed-tensors\", \"config_groups\": {" + all +
                           "}, \"ignore\": [\"re:(\"]}"))
            .find("\"(\"") != std::string::npos);
}

TEST_CASE("modelopt: algorithms, exclusions and layers that differ") {
  auto quant = [](const std::string &fields) { return "{\"quantization\": {" + fields + "}}"; };
  std::string config = configText("");
  Checkpoint plain = read(config, quant("\"quant_algo\": \"FP8\""));
  CHECK(plain.needsFp8());
  CHECK(plain.routed.up.source == ScaleSource::Static);
  CHECK(plain.method == Method::ModelOpt);
  CHECK(!read(config, quant("\"quant_algo\": \"NVFP4\"")).needsFp8());
  CHECK(!read(config, quant("\"quant_algo\": \"FP8\", \"exclude_modules\": [\"*mlp.experts*\"]"))
             .needsFp8());
  CHECK(read(config, quant("\"quant_algo\": \"FP8\", \"exclude_modules\": [\"*self_attn*\"]"))
            .needsFp8());
  Checkpoint some =
      read(config, quant("\"quant_algo\": \"FP8\", \"exclude_modules\": [\"model.layers.0*\"]"));
  CHECK(some.routed.fp8Layers == 3);
  Checkpoint mixed =
      read(config, quant("\"quant_algo\": \"MIXED_PRECISION\", \"quantized_layers\": "
                         "{\"model.layers.0.mlp.experts\": {\"quant_algo\": \"FP8\"}, "
                         "\"model.layers.1.mlp.experts\": {\"quant_algo\": \"NVFP4\"}}"));
  CHECK(mixed.needsFp8());
  CHECK(mixed.routed.fp8Layers == 1);
  Checkpoint listed =
      read(config, quant("\"quant_algo\": \"MIXED_PRECISION\", \"quantized_layers\": "
                         "{\"model.layers.0.self_attn.q_proj\": {\"quant_algo\": \"FP8\"}}"));
  CHECK(!listed.needsFp8());
}

TEST_CASE("layers with experts") {
  auto layersOf = [](const std::string &fields) {
    return read("{\"num_experts\": 2, \"hidden_size\": 64, \"intermediate_size\": 64, " + fields +
                "}")
        .routed.layers;
  };
  CHECK(layersOf("\"num_hidden_layers\": 10") == 10);
  CHECK(layersOf("\"num_hidden_layers\": 10, \"first_k_dense_replace\": 3") == 7);
  CHECK(layersOf("\"num_hidden_layers\": 10, \"moe_layer_freq\": [0, 0, 1, 1]") == 2);
  CHECK(layersOf("\"num_hidden_layers\": 10, \"moe_layer_freq\": 2") == 5);
  CHECK(layersOf("\"num_hidden_layers\": 48, \"interleave_moe_layer_step\": 2") == 24);
  CHECK(layersOf("\"num_hidden_layers\": 4, \"mlp_only_layers\": [0]") == 3);
  CHECK(layersOf("\"layers_block_type\": [\"mamba\", \"moe\", \"attention\", \"moe\"]") == 2);
  CHECK(layersOf("\"hybrid_override_pattern\": \"ME*E\"") == 2);
  CHECK(layersOf("\"mlp_layer_types\": [\"dense\", \"sparse\"]") == 1);
  CHECK(layersOf("\"top_k\": 1") == 0);
}

TEST_CASE("patterns match as Python's do, in time that grows with the name") {
  struct {
    const char *pattern, *name;
    bool isMatch;
  } rows[] = {
      {".*mlp.gate$", "model.layers.0.mlp.gate", true},
      {".*mlp.gate$", "model.layers.0.mlp.gate_proj", false},
      {"mlp", "model.mlp", false},
      {"model", "model.mlp", true},
      {"a|b", "bc", true},
      {"(a|b)+c", "ababc", true},
      {"(?:ab){2,3}$", "abab", true},
      {"(?:ab){2,3}$", "ab", false},
      {"x{2}$", "xxx", false},
      {"x{,2}$", "xx", true},
      {"a{b", "a{b", true},
      {"[^.]+\\.[0-9]+$", "layers.12", true},
      {"[^.]+\\.[0-9]+$", "layers.1x", false},
      {"\\d+?\\w*\\s", "12ab ", true},
      {"^a^", "a", false},
      {"", "anything", true},
      {"[]a]", "]", true},
      {"[a-]", "-", true},
      {"(a*)*b", "aaab", true},
  };
  uint64_t steps = 0;
  for (const auto &row : rows) {
    Result<Regex> regex = Regex::compile(row.pattern);
    REQUIRE_MESSAGE(bool(regex), row.pattern);
    CHECK_MESSAGE(regex->matchesStart(row.name, steps) == row.isMatch,
                  row.pattern << " " << row.name);
  }
  for (const char *bad : {"(", ")", "[", "a**b(", "*a", "(?=a)", "(?<n>a)", "\\", "\\1", "\\b",
                          "[b-a]", "a{65}", "a{3,2}", "a**", "a{1}{1}", "a+*", "a*??"})
    CHECK_MESSAGE(!Regex::compile(bad), bad);
  auto begin = std::chrono::steady_clock::now();
  Result<Regex> slow = Regex::compile("(a|a)*(a|a)*(a*)*b");
  REQUIRE(bool(slow));
  uint64_t before = steps;
  CHECK(!slow->matchesStart(std::string(1000, 'a'), steps));
  uint64_t half = steps - before;
  CHECK(half > 1000);
  CHECK(!slow->matchesStart(std::string(2000, 'a'), steps));
  CHECK(steps - before > 5 * half / 2); // the length of the name counts
  CHECK(!Regex::compile("((((a{64}){64}){64}){64}){64}"));
  CHECK(!Regex::compile("((((((((){64}){64}){64}){64}){64}){64}){64}){64}"));
  CHECK(!Regex::compile(std::string(100000, '(')));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  struct {
    const char *pattern, *name;
    bool isMatch;
  } globs[] = {{"*", "", true},
               {"model.*.gate", "model.0.mlp.gate", true},
               {"a?c", "abc", true},
               {"a[bc]d", "acd", true},
               {"a[!bc]d", "acd", false},
               {"a*b*c", "aXbYbZ", false},
               {"lm_head", "lm_head2", false}};
  for (const auto &row : globs)
    CHECK_MESSAGE(matchesGlob(row.pattern, row.name, steps) == row.isMatch, row.pattern);
  CHECK(!matchesGlob("*a*a*a*a*a*a*a*a*b", std::string(5000, 'a'), steps));
}

TEST_CASE("a list of names with no end is refused, not compared for ever") {
  std::string names;
  for (int i = 0; i < 20000; ++i)
    names += fmt::format("{}\"re:.*x{}.*(a|b)*c\"", i ? ", " : "", i);
  auto begin = std::chrono::steady_clock::now();
  Result<Checkpoint> model = parseCheckpoint(
      "config.json",
      "{\"num_experts\": 2, \"hidden_size\": 64, \"intermediate_size\": 64, "
      "\"num_hidden_layers\": 4000, \"quantization_config\": {\"quant_method\": "
      "\"compressed-tensors\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
      "{\"num_bits\": 8, \"type\": \"float\"}, \"input_activations\": {\"num_bits\": 8, \"type\": "
      "\"float\"}}}, \"ignore\": [" +
          names + "]}}",
      "");
  CHECK(!model);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(120));
}

// Patterns of many states beside long names: what a character costs is not what a name costs.
TEST_CASE("the length of names counts in what comparing them may take") {
  std::string any, names;
  for (int i = 0; i < 40; ++i)
    any += ".*";
  for (int i = 0; i < 40; ++i)
    names += fmt::format("\"re:{}zz{}\", ", any, i);
  for (int i = 0; i < 16; ++i)
    names +=
        fmt::format("{}\"m{}{}.layers.0.c{}.gate\"", i ? ", " : "", std::string(50, 'x'), i, i);
  auto begin = std::chrono::steady_clock::now();
  Result<Checkpoint> model = parseCheckpoint(
      "config.json",
      "{\"num_experts\": 2, \"hidden_size\": 64, \"intermediate_size\": 64, "
      "\"num_hidden_layers\": 4096, \"quantization_config\": {\"quant_method\": "
      "\"compressed-tensors\", \"config_groups\": {\"g\": {\"targets\": [\"Linear\"], \"weights\": "
      "{\"num_bits\": 8, \"type\": \"float\"}, \"input_activations\": {\"num_bits\": 8, \"type\": "
      "\"float\"}}}, \"ignore\": [" +
          names + "]}}",
      "");
  REQUIRE(!model);
  CHECK(model.error().message.find("too many names of modules") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("names that teach very many prefixes and containers are not all tried with each other") {
  std::string names;
  for (int i = 0; i < 3000; ++i)
    names += fmt::format("{}\"model{}.layers.{}.m{}.gate\"", i ? ", " : "", i, i, i);
  auto begin = std::chrono::steady_clock::now();
  CHECK(modelOf(fp8With("\"modules_to_not_convert\": [" + names + "]")).needsFp8());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("changed bytes are survived") {
  std::string text =
      configText(compressed("\"strategy\": \"block\", \"block_structure\": [128, 128]",
                            "\"strategy\": \"group\", \"group_size\": 128, \"dynamic\": true"));
  std::mt19937 random(1);
  int64_t read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string changed = text;
    for (int i = 0; i < 1 + round % 3; ++i) {
      size_t at = random() % changed.size();
      switch (random() % 3) {
      case 0:
        changed[at] = char(random());
        break;
      case 1:
        changed.erase(at, 1 + random() % 9);
        break;
      default:
        changed.insert(at, changed.substr(random() % changed.size(), random() % 20));
      }
    }
    Result<Checkpoint> model =
        parseCheckpoint("config.json", changed, "{\"quantization\": " + changed + "}");
    if (!model) {
      CHECK(!model.error().message.empty());
      continue;
    }
    ++read;
    for (int64_t tp : {1, 2, 7}) {
      Result<std::vector<ExpertGemm>> gemms = expertGemms(*model, {tp, 1});
      CHECK((gemms || !gemms.error().message.empty()));
    }
  }
  CHECK(read > 0);
}

// Indexes and headers of safetensors: what is missing or wrong in them, and hostile ones.
#include "tools/checkpoint/Tensors.h"
#include "tests/checkpoint/Models.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <utility>

using namespace moejit;
using namespace moejit::checkpoint;

namespace {

using Names = std::map<std::string, TensorInfo, std::less<>>;

/// All tensors of a model of modelOf: `layers` layers, 8 experts.
Names tensorsOf(const Checkpoint &model, int64_t layers, const char *scale, bool hasInput) {
  const Experts &experts = model.routed;
  Names names;
  for (int64_t layer = 0; layer < layers; ++layer)
    for (int64_t expert = 0; expert < experts.count; ++expert)
      for (const char *projection : {"gate_proj", "up_proj", "down_proj"}) {
        bool isDown = std::string(projection) == "down_proj";
        const Scheme &scheme = isDown ? experts.down : experts.up;
        int64_t n = isDown ? experts.input : experts.intermediate;
        int64_t k = isDown ? experts.intermediate : experts.input;
        std::string name =
            fmt::format("model.layers.{}.mlp.experts.{}.{}.", layer, expert, projection);
        names[name + "weight"] = {"F8_E4M3", {n, k}};
        std::vector<int64_t> shape;
        if (scheme.weights == Strategy::Block)
          shape = {(n + 127) / 128, (k + 127) / 128};
        else if (scheme.weights == Strategy::Channel)
          shape = {n, 1};
        names[name + scale] = {"F32", shape};
        if (hasInput)
          names[name + "input_scale"] = {"F32", {}};
      }
  names["model.embed_tokens.weight"] = {"BF16", {1000, 2048}};
  return names;
}

constexpr const char *noGate = "\"mlp_hidden_act\": \"relu2\", ";

/// The same model as transformers 5 writes it: all experts of a layer in one tensor.
Names fusedOf(const Checkpoint &model, int64_t layers) {
  const Experts &experts = model.routed;
  Names names;
  for (int64_t layer = 0; layer < layers; ++layer)
    for (bool isDown : {false, true}) {
      int64_t parts = isDown || !experts.isGated ? 1 : 2;
      const Scheme &scheme = isDown ? experts.down : experts.up;
      int64_t n = isDown ? experts.input : parts * experts.intermediate;
      int64_t k = isDown ? experts.intermediate : experts.input;
      std::string name = fmt::format("model.layers.{}.mlp.experts.{}", layer,
                                     isDown       ? "down_proj"
                                     : parts == 2 ? "gate_up_proj"
                                                  : "up_proj");
      names[name] = {"F8_E4M3", {experts.count, n, k}};
      std::vector<int64_t> shape = {experts.count, parts, 1};
      if (scheme.weights == Strategy::Block)
        shape = {experts.count, std::max((n + 127) / 128, parts), (k + 127) / 128};
      else if (scheme.weights == Strategy::Channel)
        shape = {experts.count, n, 1};
      names[name + "_scale_inv"] = {"F32", shape};
      if (scheme.source == ScaleSource::Static)
        // FP8Experts calls it so without a gate, too.
        names[fmt::format("model.layers.{}.mlp.experts.{}_activation_scale", layer,
                          isDown ? "down_proj" : "gate_up_proj")] = {"F32", {experts.count}};
    }
  names["model.embed_tokens.weight"] = {"BF16", {1000, 2048}};
  return names;
}

std::string header(const std::string &json, int64_t data = 0) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += char(uint64_t(json.size()) >> (8 * i));
  return bytes + json + std::string(size_t(data), '\0');
}

/// A safetensors file of `names`, with data of their size that nobody reads.
std::string fileOf(const Names &names) {
  std::string json = "{\"__metadata__\": {\"format\": \"pt\"}";
  int64_t at = 0;
  for (const auto &[name, info] : names) {
    int64_t bytes = info.type == "F32" ? 4 : info.type == "BF16" ? 2 : 1;
    for (int64_t extent : info.shape)
      bytes *= extent;
    json +=
        fmt::format(", \"{}\": {{\"dtype\": \"{}\", \"shape\": [{}], \"data_offsets\": [{}, {}]}}",
                    name, info.type, fmt::join(info.shape, ", "), at, at + bytes);
    at += bytes;
  }
  return header(json + "}", at);
}

bool has(const TensorReport &report, const std::string &text) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const std::string &each) { return each.find(text) != std::string::npos; });
}

} // namespace

TEST_CASE("whole checkpoints have nothing missing") {
  for (const std::string &quantization :
       {fp8Block(), fp8Tensor("static"),
        compressed("\"strategy\": \"channel\"", "\"strategy\": \"token\", \"dynamic\": true")}) {
    Checkpoint model = modelOf(quantization);
    bool isStatic = model.routed.up.source == ScaleSource::Static;
    for (const char *scale : {"weight_scale_inv", "weight_scale"}) {
      Names names = tensorsOf(model, 4, scale, isStatic);
      TensorReport report = checkTensors(model, names);
      CHECK_MESSAGE(report.findingCount == 0, (report.findings.empty() ? "" : report.findings[0]));
      CHECK(report.layers == 4);
      CHECK(report.hasTypes());
      CHECK(report.hasStaticScales == isStatic);
      for (auto &[name, info] : names)
        info = {}; // as an index tells them
      report = checkTensors(model, names);
      CHECK_MESSAGE(report.findingCount == 0, (report.findings.empty() ? "" : report.findings[0]));
      CHECK(!report.hasTypes());
    }
  }
}

// vllm#45212: calibration never reached expert 2; its missing activation scale loaded as zero.
TEST_CASE("vllm#45212: a missing activation scale is named by layer, projection and expert") {
  Checkpoint model = modelOf(fp8Tensor("static"));
  for (bool isIndex : {false, true}) {
    Names names = tensorsOf(model, 4, "weight_scale", true);
    names.erase("model.layers.3.mlp.experts.2.up_proj.input_scale");
    if (isIndex)
      for (auto &[name, info] : names)
        info = {};
    TensorReport report = checkTensors(model, names);
    CHECK(report.findingCount == 1);
    CHECK(has(report, "layer 3, up_proj, expert 2: no activation scale"));
    CHECK(has(report, "no value is made up"));
  }
}

TEST_CASE("what is missing or wrong is named") {
  Checkpoint model = modelOf(fp8Block());
  const std::string gate = "model.layers.1.mlp.experts.7.gate_proj.";
  auto reportOf = [&](auto change) {
    Names names = tensorsOf(model, 4, "weight_scale_inv", false);
    change(names);
    return checkTensors(model, names);
  };
  const std::string where = "layer 1, gate_proj, expert 7: ";
  CHECK(has(reportOf([&](Names &n) { n.erase(gate + "weight_scale_inv"); }),
            where + "no weight scale"));
  CHECK(has(reportOf([&](Names &n) { n.erase(gate + "weight"); }), where + "no weight"));
  CHECK(has(reportOf([&](Names &n) { n[gate + "weight"].shape = {2048, 1024}; }),
            where + "the weight is [2048, 1024], expected [1024, 2048]"));
  CHECK(has(reportOf([&](Names &n) { n[gate + "weight_scale_inv"].shape = {8, 17}; }),
            where + "weight scales are [8, 17], expected [8, 16]"));
  CHECK(has(reportOf([&](Names &n) { n[gate + "weight_scale_inv"].type = "I32"; }), "I32"));
  CHECK(has(reportOf([&](Names &n) { n[gate + "weight_scale_inv"].type = "F8_E8M0"; }), "F8_E8M0"));
  CHECK(has(reportOf([&](Names &n) { n[gate + "weight"].type = "BF16"; }), "BF16"));
  CHECK(has(reportOf([&](Names &n) { n["model.layers.0.mlp.experts.8.gate_proj.weight"] = {}; }),
            "expert 8, the configuration says 8 experts"));
  Names three = tensorsOf(model, 3, "weight_scale_inv", false);
  CHECK(has(checkTensors(model, three), "3 layers"));
  // w1, w3 and w2 are gate, up and down.
  Names named;
  for (const auto &[name, info] : tensorsOf(model, 4, "weight_scale_inv", false)) {
    std::string other = name;
    for (auto [from, to] : {std::pair("gate_proj", "w1"), std::pair("up_proj", "w3"),
                            std::pair("down_proj", "w2"), std::pair(".mlp.", ".block_sparse_moe.")})
      if (size_t at = other.find(from); at != std::string::npos)
        other.replace(at, std::string(from).size(), to);
    named[other] = info;
  }
  CHECK(checkTensors(model, named).findingCount == 0);
  // Layers that predict further tokens stand in for none, and may be of any type.
  CHECK(reportOf([&](Names &n) {
          n["mtp.layers.1.mlp.experts.7.gate_proj.weight"] = {"BF16", {3, 5}};
        }).findingCount == 0);
  CHECK(has(reportOf([&](Names &n) {
              n["mtp.layers.1.mlp.experts.7.gate_proj.weight"] = n[gate + "weight"];
              n.erase(gate + "weight");
            }),
            where + "no weight"));
  // Very much that is missing is counted, and not all listed.
  TensorReport many = reportOf([&](Names &n) {
    std::erase_if(n, [](const auto &entry) { return entry.first.ends_with("up_proj.weight"); });
  });
  CHECK(many.findingCount == 32);
  // Names of few experts in very many layers take no longer than there are names.
  Checkpoint large = model;
  large.routed.count = 65536;
  Names sparse;
  constexpr int64_t layers = 20'000;
  for (int64_t layer = 0; layer < layers; ++layer)
    sparse[fmt::format("model.layers.{}.mlp.experts.9.gate_proj.weight", layer)] = {"BF16", {1}};
  auto begin = std::chrono::steady_clock::now();
  TensorReport report = checkTensors(large, sparse);
  CHECK(report.findingCount == layers * (3 * 65536 - 1) + 1);
  CHECK(report.findings.size() == 50);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  CHECK(checkTensors(model, {}).layers == 0);
}

// Mistral-Small-4-119B-2603 and what transformers 5 writes of a quantized model: FP8Experts.
TEST_CASE("all experts of a layer in one tensor have nothing missing") {
  const std::string channel =
      compressed("\"strategy\": \"channel\"", "\"strategy\": \"token\", \"dynamic\": true");
  for (const std::string &quantization :
       {fp8Block(), fp8Block("static"), fp8Tensor("dynamic"), fp8Tensor("static"), channel})
    for (const char *more : {"", noGate})
      for (int64_t intermediate : {32, 192, 768, 1024}) {
        Checkpoint model = modelOf(quantization, intermediate, more);
        CAPTURE(quantization);
        CAPTURE(intermediate);
        bool isStatic = model.routed.up.source == ScaleSource::Static;
        Names names = fusedOf(model, 4);
        TensorReport report = checkTensors(model, names);
        CHECK_MESSAGE(report.findingCount == 0,
                      (report.findings.empty() ? "" : report.findings[0]));
        CHECK(report.layers == 4);
        CHECK(report.hasStaticScales == isStatic);
        for (auto &[name, info] : names)
          info = {}; // as an index tells them
        report = checkTensors(model, names);
        CHECK_MESSAGE(report.findingCount == 0,
                      (report.findings.empty() ? "" : report.findings[0]));
        // Each of them is looked for.
        for (const auto &[name, info] : names) {
          if (name.find("experts") == std::string::npos)
            continue;
          Names without = names;
          without.erase(name);
          CHECK_MESSAGE(checkTensors(model, without).findingCount > 0, name);
        }
      }
}

TEST_CASE("of all experts in one tensor, what is missing or wrong is named") {
  Checkpoint model = modelOf(fp8Block("static"), 768);
  const std::string experts = "model.layers.1.mlp.experts.", gateUp = experts + "gate_up_proj",
                    down = experts + "down_proj", where = "layer 1, gate_up_proj, all experts";
  auto reportOf = [&](const Checkpoint &of, auto change) {
    Names names = fusedOf(of, 4);
    change(names);
    return checkTensors(of, names);
  };
  auto only = [&](const std::string &finding, auto change) {
    TensorReport report = reportOf(model, change);
    CHECK_MESSAGE(report.findingCount == 1, finding);
    CHECK_MESSAGE(has(report, finding), (report.findings.empty() ? "" : report.findings[0]));
  };
  only(where + ": no weight", [&](Names &n) { n.erase(gateUp); });
  only(where + ": no weight scale", [&](Names &n) { n.erase(gateUp + "_scale_inv"); });
  only(where + ": no activation scale (_activation_scale), and the scheme is static",
       [&](Names &n) { n.erase(gateUp + "_activation_scale"); });
  only(where + ", activation scale: [1], expected [8]",
       [&](Names &n) { n[gateUp + "_activation_scale"].shape = {1}; });
  only(where + ": the weight is [7, 1536, 2048], expected [8, 1536, 2048]",
       [&](Names &n) { n[gateUp].shape = {7, 1536, 2048}; });
  only(where + ": weight scales are [8, 12], expected [8, 12, 16]",
       [&](Names &n) { n[gateUp + "_scale_inv"].shape = {8, 12}; });
  only(where + ", weight scale: scales of type I32",
       [&](Names &n) { n[gateUp + "_scale_inv"].type = "I32"; });
  only("layer 1, down_proj, all experts: the weight is BF16, in a layer that has FP8 scales",
       [&](Names &n) { n[down].type = "BF16"; });
  only("layer 1, up_proj, all experts: not expected of experts with a gate",
       [&](Names &n) { n[experts + "up_proj"] = {"F8_E4M3", {8, 768, 2048}}; });
  // One scale a tensor: one an expert, or one for gate and one for up; never one for all experts.
  Checkpoint tensor = modelOf(fp8Tensor("dynamic"), 768);
  for (std::vector<int64_t> shape : {std::vector<int64_t>{8}, {8, 1, 1}, {8, 2}, {8, 2, 1}})
    CHECK(reportOf(tensor, [&](Names &n) {
            n[gateUp + "_scale_inv"].shape = shape;
          }).findingCount == 0);
  for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {1}, {2, 8}, {8, 3, 1}, {1, 8}, {16}})
    CHECK(has(reportOf(tensor, [&](Names &n) { n[gateUp + "_scale_inv"].shape = shape; }),
              where + ", weight scale: " + fmt::format("[{}]", fmt::join(shape, ", ")) +
                  ", expected [8, 1, 1] or [8, 2, 1]"));
  CHECK(has(reportOf(tensor, [&](Names &n) { n[down + "_scale_inv"].shape = {8, 2, 1}; }),
            "layer 1, down_proj, all experts, weight scale: [8, 2, 1], expected [8]"));
  // Scales of gate and of up one above the other are no scales of both together: 2 * 192 = 3 * 128.
  Checkpoint seam = modelOf(fp8Block(), 192);
  CHECK(has(reportOf(seam, [&](Names &n) { n[gateUp + "_scale_inv"].shape = {8, 4, 16}; }),
            where + ": weight scales are [8, 4, 16], expected [8, 3, 16]: gate and up have blocks "
                    "of their own"));
}

// Llama 4 and gpt-oss store [experts, K, N].
TEST_CASE("transposed weights of all experts are told, and never taken") {
  for (int64_t intermediate : {768, 1024}) {
    Checkpoint model = modelOf(fp8Block(), intermediate);
    Names names = fusedOf(model, 4);
    for (auto &[name, info] : names)
      if (info.shape.size() == 3)
        std::swap(info.shape[1], info.shape[2]);
    TensorReport report = checkTensors(model, names);
    CHECK(has(report, fmt::format("layer 0, down_proj, all experts: the weight is [8, {}, 2048], "
                                  "which is [experts, K, N], as Llama 4 has it: expected [8, 2048, "
                                  "{}], [experts, N, K]",
                                  intermediate, intermediate)));
    // 2 * 1024 rows and 2048 columns look alike both ways; down tells.
    CHECK(report.findingCount == (intermediate == 768 ? 8 : 4));
  }
  // Where all look alike it is said that nothing tells.
  Checkpoint square = modelOf(fp8Block(), 2048, noGate);
  TensorReport report = checkTensors(square, fusedOf(square, 4));
  CHECK(report.findingCount == 4);
  CHECK(has(report, "layer 3: the weights of all experts are square"));
}

TEST_CASE("experts that are in one tensor and also apart are a finding") {
  Checkpoint model = modelOf(fp8Block(), 768);
  Names fused = fusedOf(model, 4), apart = tensorsOf(model, 4, "weight_scale_inv", false);
  // Layers may differ from each other.
  Names names;
  for (const auto &[name, info] : fused)
    if (name.find("layers.0.") != std::string::npos)
      names[name] = info;
  for (const auto &[name, info] : apart)
    if (name.find("layers.0.") == std::string::npos)
      names[name] = info;
  CHECK(checkTensors(model, names).findingCount == 0);
  Names more = names;
  more["model.layers.0.mlp.experts.5.up_proj.weight"] = {"F8_E4M3", {768, 2048}};
  TensorReport report = checkTensors(model, more);
  CHECK(report.findingCount == 1);
  CHECK(has(report, "layer 0: down_proj of all experts in one tensor, and expert 5 with tensors of "
                    "its own"));
  std::erase_if(more, [](const auto &entry) {
    return entry.first.starts_with("model.layers.0.mlp.experts.gate_up_proj");
  });
  CHECK(checkTensors(model, more).findingCount == 1);
}

TEST_CASE("other names of all experts in one tensor") {
  Checkpoint model = modelOf(fp8Tensor("static"), 768);
  Names modelOptNames;
  for (const auto &[name, info] : fusedOf(model, 4)) {
    std::string other = name;
    for (auto [from, to] :
         {std::pair("_scale_inv", "_weight_scale"), std::pair("_activation_scale", "_input_scale")})
      if (size_t at = other.find(from); at != std::string::npos)
        other.replace(at, std::string(from).size(), to);
    modelOptNames[other] = info;
  }
  TensorReport report = checkTensors(model, modelOptNames);
  CHECK_MESSAGE(report.findingCount == 0, (report.findings.empty() ? "" : report.findings[0]));
  // Step 3.7 keeps gate and up apart.
  Checkpoint blocks = modelOf(fp8Block(), 192);
  Names step;
  for (int64_t layer = 0; layer < 4; ++layer)
    for (const char *projection : {"gate_proj", "up_proj", "down_proj"}) {
      bool isDown = std::string(projection) == "down_proj";
      std::string name = fmt::format("model.layers.{}.moe.{}.weight", layer, projection);
      step[name] = {"F8_E4M3", {8, isDown ? 2048 : 192, isDown ? 192 : 2048}};
      step[name + "_scale_inv"] = {"F32", {8, isDown ? 16 : 2, isDown ? 2 : 16}};
      step[fmt::format("model.layers.{}.moe.gate.weight", layer)] = {"F32", {8, 2048}};
    }
  report = checkTensors(blocks, step);
  CHECK_MESSAGE(report.findingCount == 0, (report.findings.empty() ? "" : report.findings[0]));
  step["model.layers.2.moe.up_proj.weight_scale_inv"].shape = {8, 3, 16};
  CHECK(has(checkTensors(blocks, step),
            "layer 2, up_proj, all experts: weight scales are [8, 3, 16], expected [8, 2, 16]"));
}

TEST_CASE("names that are not understood are told, and nothing is fine because of them") {
  Checkpoint model = modelOf(fp8Block(), 768);
  Names others = {{"model.embed_tokens.weight", {"BF16", {1000, 2048}}},
                  {"model.layers.0.self_attn.q_proj.weight", {"BF16", {2048, 2048}}}};
  for (const Names &names : {others, Names()}) {
    TensorReport report = checkTensors(model, names);
    CHECK(report.findingCount == 1);
    CHECK(report.layers == 0);
    CHECK(has(report, "none of the tensors has a name of experts that is understood"));
    CHECK(has(report, "nothing was compared"));
  }
  // gpt-oss.
  Names blocks = others;
  for (const char *name : {"gate_up_proj_blocks", "gate_up_proj_scales", "gate_up_proj_bias"})
    blocks[fmt::format("model.layers.0.mlp.experts.{}", name)] = {"U8", {8, 4, 4}};
  CHECK(has(checkTensors(model, blocks), "3 names of experts' tensors are not understood, such as "
                                         "model.layers.0.mlp.experts.gate_up_proj_bias"));
  // Where tensors are missing, those that were not understood come first; else nothing is said.
  Names names = tensorsOf(model, 4, "weight_scale_inv", false);
  names["model.layers.1.mlp.experts.3.up_proj.zero_point"] = {"F32", {}};
  CHECK(checkTensors(model, names).findingCount == 0);
  for (int64_t expert = 0; expert < 8; ++expert)
    for (const char *part : {"weight", "weight_scale_inv"})
      for (int64_t layer = 0; layer < 4; ++layer) {
        std::string old =
            fmt::format("model.layers.{}.mlp.experts.{}.up_proj.{}", layer, expert, part);
        names[fmt::format("model.layers.{}.mlp.experts.{}.linear_v.{}", layer, expert, part)] =
            names[old];
        names.erase(old);
      }
  TensorReport report = checkTensors(model, names);
  CHECK(report.findingCount == 33);
  CHECK(report.findings[0] == "65 names of experts' tensors are not understood, such as "
                              "model.layers.0.mlp.experts.0.linear_v.weight");
}

TEST_CASE("weights of another type than the configuration's are told, and 16-bit ones for FP8") {
  Checkpoint model = modelOf(fp8Block(), 768);
  for (bool isFused : {false, true}) {
    Names names = isFused ? fusedOf(model, 4) : tensorsOf(model, 4, "weight_scale_inv", false);
    for (auto &[name, info] : names)
      if (info.type == "F8_E4M3")
        info.type = "F8_E5M2";
    TensorReport report = checkTensors(model, names);
    CHECK(report.findingCount == (isFused ? 8 : 96));
    CHECK(has(report, ": the weight is F8_E5M2, expected F8_E4M3"));
    // No number of layers, and no layer with scales.
    Checkpoint without = model;
    without.routed.layers = without.routed.fp8Layers = 0;
    std::erase_if(names, [](const auto &entry) { return entry.first.ends_with("_scale_inv"); });
    for (auto &[name, info] : names)
      info.type = "BF16";
    report = checkTensors(without, names);
    CHECK(report.findingCount == 1);
    CHECK(has(report, "no layer has scales for its experts, the configuration says fp8, block"));
  }
}

TEST_CASE("any one change of a whole checkpoint is found") {
  std::mt19937 random(5);
  for (const std::string &quantization : {fp8Block("static"), fp8Tensor("static")})
    for (bool isFused : {false, true}) {
      Checkpoint model = modelOf(quantization, 768);
      Names whole = isFused ? fusedOf(model, 4) : tensorsOf(model, 4, "weight_scale_inv", true);
      std::vector<std::string> names;
      for (const auto &[name, info] : whole)
        if (name.find("experts") != std::string::npos)
          names.push_back(name);
      for (int round = 0; round < 200; ++round) {
        const std::string &name = names[random() % names.size()];
        Names changed = whole;
        TensorInfo &info = changed[name];
        switch (info.shape.empty() ? random() % 3 : random() % 4) {
        case 0:
          changed.erase(name);
          break;
        case 1:
          info.type = "I32";
          break;
        case 2:
          info.shape.push_back(3);
          break;
        case 3:
          info.shape[random() % info.shape.size()] += 2;
          break;
        }
        CHECK_MESSAGE(checkTensors(model, changed).findingCount > 0, name);
      }
    }
}

TEST_CASE("files beside a configuration are looked at; weights never") {
  Checkpoint model = modelOf(fp8Block());
  Folder folder;
  model.path = folder.write("config.json", configText(fp8Block()));
  CHECK(checkTensorFiles(model)->source.empty());
  Names names = tensorsOf(model, 4, "weight_scale_inv", false), first, second;
  for (const auto &[name, info] : names)
    (name.find("layers.0.") != std::string::npos ? first : second)[name] = info;
  for (auto *part : {&first, &second})
    for (auto &[name, info] : *part)
      if (info.type == "F8_E4M3" && name.find("experts.0.") == std::string::npos)
        continue;
  std::string index = "{\"metadata\": {}, \"weight_map\": {\"x\": \"y\"";
  for (const auto &[name, info] : names)
    index += fmt::format(", \"{}\": \"model-{}.safetensors\"", name,
                         name.ends_with("experts.0.gate_proj.weight_scale_inv") ? 1 : 2);
  folder.write("model.safetensors.index.json", index + "}}");
  Result<TensorReport> byName = checkTensorFiles(model);
  REQUIRE_MESSAGE(bool(byName), (byName ? "" : byName.error().text()));
  CHECK(byName->findingCount == 0);
  CHECK(byName->source == "the index");
  CHECK(!byName->hasTypes());
  Names small;
  for (const auto &[name, info] : names)
    if (name.ends_with("experts.0.gate_proj.weight_scale_inv"))
      small[name] = info;
  folder.write("model-1.safetensors", fileOf(small));
  byName = checkTensorFiles(model);
  REQUIRE(bool(byName));
  CHECK(byName->findingCount == 0);
  CHECK(byName->typed == 4);
  CHECK(byName->untyped == 8 * 3 * 4 * 2 - 4);
  CHECK(!byName->hasTypes());
  small["model.layers.0.mlp.experts.0.gate_proj.weight_scale_inv"].shape = {1, 1};
  folder.write("model-1.safetensors", fileOf(small));
  Result<TensorReport> both = checkTensorFiles(model);
  REQUIRE(bool(both));
  CHECK(both->source == "1 safetensors header and the index");
  CHECK(has(*both, "weight scales are [1, 1], expected [8, 16]"));
}

TEST_CASE("what an index places in a file that lacks it is not there") {
  Checkpoint model = modelOf(fp8Block(), 16);
  Folder folder;
  model.path = folder.write("config.json", configText(fp8Block()));
  Names names = tensorsOf(model, 4, "weight_scale_inv", false), part = names;
  std::string index = "{\"weight_map\": {\"x\": \"other.safetensors\"";
  for (const auto &[name, info] : names)
    index += fmt::format(", \"{}\": \"model-1.safetensors\"", name);
  folder.write("model.safetensors.index.json", index + "}}");
  folder.write("model-1.safetensors", fileOf(names));
  CHECK(checkTensorFiles(model)->findingCount == 0);
  CHECK(checkTensorFiles(model)->hasTypes());
  // Other tensors than those of experts are missed, too.
  part.erase("model.embed_tokens.weight");
  folder.write("model-1.safetensors", fileOf(part));
  CHECK(checkTensorFiles(model)->findings ==
        std::vector<std::string>{"model-1.safetensors lacks 1 tensor that the index places there, "
                                 "such as model.embed_tokens.weight"});
  std::erase_if(
      part, [](const auto &entry) { return entry.first.find("layers.1.") != std::string::npos; });
  folder.write("model-1.safetensors", fileOf(part));
  Result<TensorReport> report = checkTensorFiles(model);
  REQUIRE(bool(report));
  CHECK(report->findings ==
        std::vector<std::string>{"model-1.safetensors lacks 49 tensors that the index places "
                                 "there, such as model.embed_tokens.weight",
                                 "3 layers have scales for their experts, the configuration says 4",
                                 "3 layers have experts, the configuration says 4"});
  // In another file than the index says.
  folder.write("model-2.safetensors", fileOf(names));
  CHECK(checkTensorFiles(model)->findingCount == 1);
}

TEST_CASE("an index that is there and cannot be read is an error") {
  Checkpoint model = modelOf(fp8Block());
  Folder folder;
  model.path = folder.write("config.json", configText(fp8Block()));
  std::filesystem::path index = std::filesystem::path(folder.path) / "model.safetensors.index.json";
  std::filesystem::create_symlink("nowhere", index);
  Result<TensorReport> dangling = checkTensorFiles(model);
  REQUIRE(!dangling);
  CHECK(dangling.error().code == ErrorCode::IoError);
  CHECK(dangling.error().message.find("model.safetensors.index.json") != std::string::npos);
  std::filesystem::remove(index);
  std::filesystem::create_directory(index);
  CHECK(!checkTensorFiles(model));
}

TEST_CASE("headers that lie are refused") {
  Folder folder;
  auto refusal = [&](const std::string &bytes) {
    Result<TensorMap> read = readSafetensorsHeader(folder.write("x.safetensors", bytes));
    CHECK_MESSAGE(!read, bytes.substr(0, 80));
    return read ? "" : read.error().message;
  };
  std::string entry = "{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}}";
  CHECK(bool(readSafetensorsHeader(folder.write("good.safetensors", header(entry, 8)))));
  CHECK(readSafetensorsHeader(folder.path + "/none").error().code == ErrorCode::IoError);
  for (const std::string &bytes :
       {std::string(), std::string("1234567"), std::string(8, '\xff'), header(entry, 7),
        header("[]"), header("{"), std::string("\x10\0\0\0\0\0\0\0{}", 10)})
    refusal(bytes);
  for (const char *bad :
       {"{\"dtype\": \"F32\", \"shape\": [3], \"data_offsets\": [0, 8]}",
        "{\"dtype\": \"F32\", \"shape\": [-2], \"data_offsets\": [0, 8]}",
        "{\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [8, 0]}",
        "{\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 1e300]}",
        "{\"dtype\": \"F32\", \"shape\": [9007199254740992, 9007199254740992], \"data_offsets\": "
        "[0, 8]}",
        "{\"dtype\": \"F64\", \"shape\": [2147483648, 1073741824], \"data_offsets\": [0, 0]}",
        "{\"dtype\": \"F32\", \"shape\": [1.5], \"data_offsets\": [0, 8]}",
        "{\"dtype\": 4, \"shape\": [2], \"data_offsets\": [0, 8]}",
        "{\"dtype\": \"F32\", \"shape\": 2, \"data_offsets\": [0, 8]}",
        "{\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0]}", "7", "null"}) {
    std::string message = refusal(header(fmt::format("{{\"a\": {}}}", bad), 8));
    CHECK_MESSAGE(message.find("a has") != std::string::npos, message);
  }
  refusal(header("{\"a\": {}, \"a\": {}}"));
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    std::string bytes = header(entry, 8);
    for (int i = 0; i < 3; ++i)
      bytes[random() % bytes.size()] = char(random());
    Result<TensorMap> read = readSafetensorsHeader(folder.write("x.safetensors", bytes));
    CHECK((read || !read.error().message.empty()));
  }
  CHECK(!readSafetensorsIndex(folder.write("i.json", "{}")));
  CHECK(!readSafetensorsIndex(folder.write("i.json", "{\"weight_map\": []}")));
  CHECK(!readSafetensorsIndex(folder.write("i.json", "\xff")));
  CHECK(!readSafetensorsIndex(folder.write("i.json", "{\"weight_map\": {\"a\": 1}}")));
}

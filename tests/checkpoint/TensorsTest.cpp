// Indexes and headers of safetensors: what is missing or wrong in them, and hostile ones.
#include "tools/checkpoint/Tensors.h"
#include "tests/checkpoint/Models.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>

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
      CHECK(report.hasTypes);
      CHECK(report.hasStaticScales == isStatic);
      for (auto &[name, info] : names)
        info = {}; // as an index tells them
      report = checkTensors(model, names);
      CHECK_MESSAGE(report.findingCount == 0, (report.findings.empty() ? "" : report.findings[0]));
      CHECK(!report.hasTypes);
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
  CHECK(checkTensors(model, {}).layers == 0);
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
    index += fmt::format(", \"{}\": \"model-1.safetensors\"", name);
  folder.write("model.safetensors.index.json", index + "}}");
  Result<TensorReport> byName = checkTensorFiles(model);
  REQUIRE_MESSAGE(bool(byName), (byName ? "" : byName.error().text()));
  CHECK(byName->findingCount == 0);
  CHECK(byName->source == "the index");
  CHECK(!byName->hasTypes);
  Names small = {{"model.layers.0.mlp.experts.0.gate_proj.weight_scale_inv", {"F32", {1, 1}}}};
  folder.write("model-1.safetensors", fileOf(small));
  Result<TensorReport> both = checkTensorFiles(model);
  REQUIRE(bool(both));
  CHECK(both->source == "1 safetensors header and the index");
  CHECK(has(*both, "weight scales are [1, 1], expected [8, 16]"));
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
}

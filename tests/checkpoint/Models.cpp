// Texts of configurations.
#include "tests/checkpoint/Models.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace moejit::checkpoint {

std::string configText(const std::string &quantization, int64_t intermediate,
                       const std::string &more) {
  return fmt::format("{{{}\"model_type\": \"made_up\", \"hidden_size\": 2048, "
                     "\"moe_intermediate_size\": {}, \"num_experts\": 8, \"num_experts_per_tok\": "
                     "2, \"num_hidden_layers\": 4, \"hidden_act\": \"silu\"{}}}",
                     more, intermediate,
                     quantization.empty() ? "" : ", \"quantization_config\": " + quantization);
}

Checkpoint modelOf(const std::string &quantization, int64_t intermediate, const std::string &more) {
  Result<Checkpoint> model =
      parseCheckpoint("config.json", configText(quantization, intermediate, more), "");
  REQUIRE_MESSAGE(bool(model), (model ? "" : model.error().text()));
  return *model;
}

std::string fp8Block(const char *activation, int blockN, int blockK) {
  return fmt::format("{{\"quant_method\": \"fp8\", \"activation_scheme\": \"{}\", "
                     "\"weight_block_size\": [{}, {}]}}",
                     activation, blockN, blockK);
}

std::string fp8Tensor(const char *activation) {
  return fmt::format("{{\"quant_method\": \"fp8\", \"activation_scheme\": \"{}\", "
                     "\"weight_block_size\": null}}",
                     activation);
}

std::string compressed(const std::string &weights, const std::string &activations) {
  return fmt::format("{{\"quant_method\": \"compressed-tensors\", \"format\": "
                     "\"float-quantized\", \"config_groups\": {{\"group_0\": {{\"targets\": "
                     "[\"Linear\"], \"weights\": {{\"num_bits\": 8, \"type\": \"float\", {}}}, "
                     "\"input_activations\": {{\"num_bits\": 8, \"type\": \"float\", {}}}}}}}, "
                     "\"ignore\": [\"lm_head\"]}}",
                     weights, activations);
}

std::string textOf(const JsonValue &object, const char *name) {
  const JsonValue *value = object.find(name);
  return value ? value->text : "";
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "moejit-checkpoint-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()));
  path = name;
}
Folder::~Folder() { std::filesystem::remove_all(path); }
std::string Folder::write(const std::string &name, const std::string &text) const {
  std::filesystem::path file = std::filesystem::path(path) / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

} // namespace moejit::checkpoint

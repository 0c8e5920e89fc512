// Safetensors headers and indices, and their comparison with a configuration. An input that begins
// with a brace is a header or an index; any other is a file with its length in front.
#include "tests/fuzz/Fuzz.h"
#include "tools/checkpoint/Tensors.h"

#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

using namespace moejit;
using namespace moejit::checkpoint;

const char *const fuzz::dictionary[] = {"\"dtype\": ",
                                        "\"F8_E4M3\"",
                                        "\"F32\"",
                                        "\"BF16\"",
                                        "\"shape\": [",
                                        "\"data_offsets\": [",
                                        "\"__metadata__\": {",
                                        "\"weight_map\": {",
                                        "model.layers.0.mlp.experts.0.gate_proj.weight",
                                        "model.layers.0.mlp.experts.1.down_proj.weight_scale_inv",
                                        "weight_scale",
                                        "input_scale",
                                        "gate_up_proj",
                                        "model.layers.9223372036854775807.mlp.experts.",
                                        "null",
                                        "[]",
                                        nullptr};

namespace {

/// A file of this process, in memory where there is such a place.
struct File {
  File() {
    for (const char *parent : {"/dev/shm", "/tmp"}) {
      path = std::string(parent) + "/moejit-fuzz-XXXXXX";
      if ((fd = mkstemp(path.data())) >= 0)
        return;
    }
    fuzz::require(false, "there is a place for a file");
  }
  ~File() {
    close(fd);
    unlink(path.c_str());
  }
  void write(std::string_view bytes) const {
    fuzz::require(ftruncate(fd, 0) == 0 &&
                      pwrite(fd, bytes.data(), bytes.size(), 0) == ssize_t(bytes.size()),
                  "the file can be written");
  }
  std::string path;
  int fd = -1;
};

/// Two experts in blocks, in two layers.
Checkpoint checkpointOf(const char *quantization) {
  std::string text =
      R"({"model_type": "m", "hidden_size": 256, "moe_intermediate_size": 128, "num_experts": 2,
          "num_experts_per_tok": 1, "num_hidden_layers": 2, "quantization_config": )";
  Result<Checkpoint> parsed = parseCheckpoint("fuzz/config.json", text + quantization + "}", "");
  fuzz::require(bool(parsed), "the configuration of this test is one");
  return *parsed;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Checkpoint checkpoints[] = {
      checkpointOf(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})"),
      checkpointOf(R"({"quant_method": "fp8", "activation_scheme": "static"})")};
  std::string_view text = fuzz::textOf(data, size);
  File file;
  std::string whole(text);
  if (!text.empty() && text.front() == '{') {
    whole.assign(8, '\0');
    for (int i = 0; i < 8; ++i)
      whole[size_t(i)] = char(uint64_t(size) >> (8 * i));
    whole += text;
  }
  file.write(whole);
  Result<TensorMap> header = readSafetensorsHeader(file.path);
  file.write(text);
  Result<TensorMap> index = readSafetensorsIndex(file.path);
  for (const Result<TensorMap> &tensors : {header, index}) {
    if (!tensors) {
      fuzz::require(tensors.error().code == ErrorCode::ParseError ||
                        tensors.error().code == ErrorCode::IoError,
                    "a refusal says what kind it is");
      continue;
    }
    for (const Checkpoint &checkpoint : checkpoints) {
      TensorReport report = checkTensors(checkpoint, *tensors);
      fuzz::require(report.findings.size() <= 51 &&
                        int64_t(report.findings.size()) <= report.findingCount + 1,
                    "findings are counted");
    }
  }
  return 0;
}

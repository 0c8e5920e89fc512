// Looks whether a checkpoint's files hold what its configuration says: a scale for every weight of
// every expert, of the right shape and type. Reads an index and headers; never a weight, and never
// the values of scales.
#pragma once

#include "tools/checkpoint/Checkpoint.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace moejit::checkpoint {

/// What a header says of one tensor; an index gives the name alone.
struct TensorInfo {
  std::string type; ///< "F8_E4M3", as safetensors spells it; empty when only an index names it
  std::vector<int64_t> shape;
};
using TensorMap = std::map<std::string, TensorInfo, std::less<>>;

/// Reads one safetensors header. Errors: ParseError for what is no safetensors file, lies about
/// lengths, or has a header above 100 MB; IoError.
Result<TensorMap> readSafetensorsHeader(const std::string &path);
/// The names in a model.safetensors.index.json. Errors: ParseError, IoError.
Result<TensorMap> readSafetensorsIndex(const std::string &path);

/// What was found in the files beside a configuration.
struct TensorReport {
  std::string source; ///< "model.safetensors.index.json", "4 headers"; empty: no such files
  int64_t tensors = 0;
  int64_t layers = 0;                ///< with experts
  std::vector<std::string> findings; ///< each with layer, projection and expert; at most 50
  int64_t findingCount = 0;          ///< all of them
  bool hasTypes = false;             ///< headers were read: types and shapes were compared
  bool hasStaticScales = false;      ///< scales whose values matter are there, and were not read
};

/// Compares the names (and, where known, shapes and types) with `checkpoint`.
TensorReport checkTensors(const Checkpoint &checkpoint, const TensorMap &tensors);
/// The same for the files in the folder of `checkpoint.path`: every *.safetensors, else the index.
/// Errors: those of the readers.
Result<TensorReport> checkTensorFiles(const Checkpoint &checkpoint);

} // namespace moejit::checkpoint

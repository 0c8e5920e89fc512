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
  std::string file = {}; ///< where an index says that it is; empty from a header
};
using TensorMap = std::map<std::string, TensorInfo, std::less<>>;

/// Reads one safetensors header. Errors: ParseError for what is no safetensors file, lies about
/// lengths, or has a header above 100 MB; IoError.
Result<TensorMap> readSafetensorsHeader(const std::string &path);
/// The names in a model.safetensors.index.json, and their files. Errors: ParseError, also for a
/// name without a file; IoError.
Result<TensorMap> readSafetensorsIndex(const std::string &path);

constexpr size_t mostFindings = 50; ///< of those that are told

/// What was found in the files beside a configuration.
struct TensorReport {
  std::string source; ///< "model.safetensors.index.json", "4 headers"; empty: no such files
  int64_t tensors = 0;
  int64_t layers = 0;                ///< with experts
  std::vector<std::string> findings; ///< each with layer, projection and expert; at most that
  int64_t findingCount = 0;          ///< all of them
  int64_t typed = 0;                 ///< experts' tensors with a header: types and shapes count
  int64_t untyped = 0;               ///< experts' tensors that an index alone names

  bool hasTypes() const { return typed > 0 && untyped == 0; }
  bool hasStaticScales = false; ///< scales whose values matter are there, and were not read
};

/// Compares the names (and, where known, shapes and types) with `checkpoint`.
TensorReport checkTensors(const Checkpoint &checkpoint, const TensorMap &tensors);
/// The same for the files in the folder of `checkpoint.path`: every *.safetensors, and the index.
/// What the index places in one of these files and its header lacks is not there. Errors: those of
/// the readers; a link that leads nowhere is a file that cannot be read.
Result<TensorReport> checkTensorFiles(const Checkpoint &checkpoint);

} // namespace moejit::checkpoint

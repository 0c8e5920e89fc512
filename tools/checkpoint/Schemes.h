// Inside of the checkpoint reader: schemes of quantization from the fields that spell them.
#pragma once

#include "runtime/JsonReader.h"
#include "tools/checkpoint/Checkpoint.h"

#include <string>
#include <string_view>
#include <utility>

namespace moejit::checkpoint {

/// The first thing that is wrong.
struct Problem {
  std::string text;
  void set(std::string what) {
    if (text.empty())
      text = std::move(what);
  }
};

std::string lower(std::string text);
bool contains(std::string_view text, std::string_view part);
/// The text of a string; empty for anything else.
std::string stringOf(const JsonValue *value);

/// "[128, 128]" or "128x128" into both extents. False where there is none. A block that is none is
/// a problem.
bool readBlock(const JsonValue *value, const std::string &name, int64_t &blockN, int64_t &blockK,
               Problem &problem);
/// Fills in what an FP8 scheme is called.
void nameScheme(Scheme &scheme);

/// One side of a group of compressed-tensors.
struct CompressedSide {
  bool isThere = false;
  bool isFp8 = false;
  std::string type = "none"; ///< "float 8", "int 4"
  Strategy strategy = Strategy::None;
  std::string strategyText;
  bool isDefaulted = false;
  bool isDynamic = false;
  int64_t group = 0, blockN = 0, blockK = 0;
  ElementType scaleType = ElementType::F32;
};

/// Weights or input_activations of a group; `name` is the field.
CompressedSide readCompressedSide(const JsonValue *value, const std::string &name,
                                  Problem &problem);
Scheme compressedScheme(const CompressedSide &weights, const CompressedSide &activations,
                        const std::string &field, Problem &problem);

/// The scheme of one of modelopt's algorithms, such as "FP8"; not FP8 for those that are not, or
/// not known.
Scheme modelOptScheme(const std::string &algorithm, const std::string &field);

} // namespace moejit::checkpoint

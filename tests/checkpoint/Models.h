// Configurations made up for tests, from the parts that matter.
#pragma once

#include "runtime/JsonReader.h"
#include "tools/checkpoint/EngineRules.h"

#include <string>

namespace moejit::checkpoint {

/// A configuration of 8 experts, hidden size 2048. `quantization` is the text of the
/// quantization_config; `more` further fields, each with a comma behind it.
std::string configText(const std::string &quantization, int64_t intermediate = 1024,
                       const std::string &more = "");
/// The same, read; fails the test when it cannot be.
Checkpoint modelOf(const std::string &quantization, int64_t intermediate = 1024,
                   const std::string &more = "");

// Quantizations.
std::string fp8Block(const char *activation = "dynamic", int blockN = 128, int blockK = 128);
std::string fp8Tensor(const char *activation);
std::string compressed(const std::string &weights, const std::string &activations);

/// The string `name` of an object; empty where there is none.
std::string textOf(const JsonValue &object, const char *name);

/// A file written below the test's temporary folder, which lasts as long as the object.
class Folder {
public:
  Folder();
  ~Folder();
  std::string write(const std::string &name, const std::string &text) const;
  std::string path;
};

} // namespace moejit::checkpoint

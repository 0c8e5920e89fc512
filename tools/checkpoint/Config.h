// Inside of the checkpoint reader: fields of a configuration, and the names of its modules. Not for
// users of the library (Checkpoint.h).
#pragma once

#include "runtime/JsonReader.h"
#include "tools/checkpoint/Checkpoint.h"

#include <initializer_list>
#include <set>
#include <string>
#include <vector>

namespace moejit::checkpoint {

/// The fields that describe the language model: those of a nested configuration (text_config and
/// its like) before those around it. Remembers the first field that is wrong.
class Fields {
public:
  /// `root` outlives this. The nested configuration is the first that has a field of experts, else
  /// of a hidden size.
  explicit Fields(const JsonValue &root);

  /// The first of `names` that is there and is not null.
  const JsonValue *find(std::initializer_list<const char *> names, std::string *found = nullptr);
  /// As a whole number from `least` to `most`; a list counts when all of it is one number. 0 when
  /// there is none. `found` becomes the field's name.
  int64_t integer(std::initializer_list<const char *> names, int64_t least, int64_t most,
                  std::string *found = nullptr);
  bool flag(std::initializer_list<const char *> names, bool standard);
  std::string text(std::initializer_list<const char *> names, std::string standard);

  const JsonValue &textConfig() const { return *objects.front(); }
  void fail(std::string what);
  const std::string &problem() const { return firstProblem; }

private:
  std::vector<const JsonValue *> objects; ///< the nested one first
  std::string firstProblem;
};

/// Which layers have experts, ascending; all of them where nothing says otherwise. Empty when the
/// number of layers is not known.
std::vector<int64_t> expertLayers(Fields &fields, int64_t layers);

/// One projection of an expert.
enum class Projection { Gate, Up, Down };

/// Names that modules of experts may have in this checkpoint: what configurations exclude and
/// target are names, and they do not say how the experts are called.
class ModuleNames {
public:
  /// Learns prefixes and containers from `patterns`, the names that the configuration mentions.
  explicit ModuleNames(const std::vector<std::string> &patterns);
  /// Names of one projection, the last of them those of the modules around it.
  struct Candidates {
    std::vector<std::string> leaves;  ///< "model.layers.3.mlp.experts.0.gate_proj"
    std::vector<std::string> parents; ///< "model.layers.3.mlp.experts"
  };
  Candidates of(int64_t layer, Projection projection, bool isShared) const;

private:
  std::set<std::string> prefixes;   ///< "model.layers."
  std::set<std::string> containers; ///< "mlp.", or nothing
};

/// Reads the quantization into `checkpoint`: method and the schemes of routed and shared experts.
/// `layers` are the ones with experts. Errors: InvalidArgument naming field and value.
Result<void> readQuantization(const JsonValue *quantization, const JsonValue *hfQuant,
                              Fields &fields, const std::vector<int64_t> &layers,
                              Checkpoint &checkpoint);

} // namespace moejit::checkpoint

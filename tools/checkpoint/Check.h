// What `moejit check` finds out of one checkpoint at one split: shapes, verdicts of engines and of
// moejit, and the nearest change that works. Prints nothing.
#pragma once

#include "tools/checkpoint/EngineRules.h"
#include "tools/checkpoint/Tensors.h"

namespace moejit::checkpoint {

/// An engine to ask, and of which version; empty: the one that was read.
struct EngineChoice {
  const Engine *engine = nullptr;
  std::string version;
  bool operator==(const EngineChoice &) const = default;

  /// The version that is asked, which an empty one stands for too.
  std::string versionText() const { return version.empty() ? engine->newest() : version; }
};

/// One engine's dispatch before all GEMMs of the routed experts.
struct DispatchCheck {
  EngineChoice choice;
  std::string dispatch;
  std::vector<Verdict> verdicts;  ///< one for each GEMM of the routed experts
  Verdict overall;                ///< the worst of them; what is not FP8 does not count
  std::vector<int64_t> workingTp; ///< tp up to 64 that works, without a change of ep
  bool worksWithEp =
      false; ///< whole experts on as many ranks work, where the split asked for does not
};

/// The same for moejit.
struct MoejitCheck {
  Dispatch dispatch = Dispatch::Grouped;
  bool isLegal = false; ///< every rank has a launch for every FP8 GEMM of the routed experts
  int64_t kernels = 0;  ///< different kernels over all ranks
  std::vector<Violation> violations; ///< of the first GEMM that is refused
  std::string why;
};

struct CheckOptions {
  Parallelism split;
  Target target;
  std::vector<EngineChoice> engines;
};

struct Check {
  std::vector<ExpertGemm> gemms;
  std::vector<DispatchCheck> dispatches;
  std::vector<MoejitCheck> moejit;
  std::optional<Error> splitProblem; ///< tp or ep does not divide: nothing else is there then
  std::optional<TensorReport> tensors;
  std::vector<std::string> notes; ///< of shared experts and their like

  /// Some dispatch of that engine does the work.
  bool hasWorking(const Engine &engine) const;
  /// The same of one version of it, as it was asked for.
  bool hasWorking(const EngineChoice &choice) const;
};

/// Everything about `checkpoint`, which needs FP8. Errors: those of checkTensorFiles.
Result<Check> check(const Checkpoint &checkpoint, const CheckOptions &options);

/// "sglang@0.5.23", "vllm", "all", each version once. Errors: InvalidArgument naming the engines.
Result<std::vector<EngineChoice>> parseEngines(const std::string &text);

} // namespace moejit::checkpoint

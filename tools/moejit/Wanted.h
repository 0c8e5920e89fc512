// Which launches a command is asked to have kernels for: of descriptions, of canonical texts, of
// whole checkpoints. Builds nothing.
#pragma once

#include "runtime/Jit.h"
#include "runtime/Spec.h"
#include "runtime/Target.h"
#include "tools/moejit/Options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace moejit::tool {

/// One spec, and the row counts it is launched with.
struct WantedLaunch {
  std::string name; ///< "config.json: gate_up grouped", or the file
  Spec spec;
  int64_t minRows = 0;
  int64_t maxRows = INT64_MAX;
};

struct WantedLaunches {
  std::vector<WantedLaunch> launches; ///< legal ones; a spec occurs once
  /// Forms of a checkpoint that a rule refuses, with the rule's message; others serve its GEMM.
  std::vector<std::string> refused;
};

/// What the words of the command line, or --spec, ask for on `target`: files *.mlir, checkpoints
/// (*.json, folders with config.json), folders of either. Of a checkpoint: every dispatch form and
/// input that is legal, or those of --dispatch and --input, and the quantizations of their
/// activations. Errors: those of loadSpec and readCheckpoints; RuleViolation where a description,
/// or every form of a GEMM, is refused; InvalidArgument where there is nothing in FP8.
Result<WantedLaunches> wantedLaunches(const Arguments &arguments, const Target &target);

/// --tp, --ep, --tokens, --dispatch, --input and --masked-rows, behind `own`.
std::vector<Option> withCheckpointOptions(std::vector<Option> own);

/// Row counts of `wanted` that a runtime without a compiler finds no kernel for in `cache`, as
/// sentences, one for each gap and kernel that is missing or damaged; empty: the set is closed.
/// Reads every kernel.
std::vector<std::string> gapsIn(const std::shared_ptr<Cache> &cache, const Target &target,
                                const PlanRequest &plan, const std::vector<WantedLaunch> &wanted);

} // namespace moejit::tool

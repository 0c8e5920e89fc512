// The compiler's one door: from a Spec, a target and a plan to an artifact.
#pragma once

#include "compiler/Nvrtc.h"
#include "runtime/Artifact.h"
#include "runtime/Keys.h"
#include "runtime/Plan.h"
#include "runtime/Result.h"
#include "runtime/Spec.h"
#include "runtime/Target.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace moejit {

struct CompileOptions {
  NvrtcOptions nvrtc = {};
  /// Optional passes to leave out (Pipeline.h): the kernel is slower, and right.
  std::vector<std::string> skippedPasses = {};
  /// Called with the text of each stage as it is made: moe, plan, tile, ptx-ir, cuda. What NVRTC
  /// makes is in the artifact.
  std::function<void(std::string_view stage, std::string_view text)> onStage = {};
};

/// Compiles the kernel that `plan` makes of `spec`. Pure but for opening NVRTC; thread-safe.
/// Errors: RuleViolation with the rule's id; InvalidArgument for a plan that cannot work;
/// CompileError with the diagnostics of the pass, or the log of NVRTC, in its notes.
Result<Artifact> compile(const Spec &spec, const Target &target, const KernelPlan &plan,
                         const CompileOptions &options = {});

/// As far as the CUDA C++ translation unit: everything of an artifact that needs no NVRTC.
Result<Artifact> compileToSource(const Spec &spec, const Target &target, const KernelPlan &plan,
                                 const CompileOptions &options = {});

/// The parts of a BuildKey that name this generator. Errors: Unavailable without NVRTC.
Result<GeneratorIdentity> generatorIdentity(const NvrtcOptions &options);

/// Reads MLIR text and returns the Spec of its kernel (the one named `kernel`, or the only one).
/// Diagnostics are given in clang's shape through `onDiagnostic`, one call with the whole rendered
/// text of each. Errors: ParseError, NotFound; RuleViolation when moe-check refuses it.
Result<Spec> parseMlir(std::string_view text, std::string_view fileName, std::string_view kernel,
                       const std::function<void(const std::string &)> &onDiagnostic);

/// The moe module of `spec` as text: what parseMlir reads.
std::string printMlir(const Spec &spec, std::string_view kernelName);

} // namespace moejit

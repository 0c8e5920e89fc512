// Takes a Spec through the whole pipeline to the emulator and compares with the oracle. Shared by
// the tests of this folder; knows no particular layout or plan.
#pragma once

#include "compiler/Compile.h"
#include "runtime/Checks.h"
#include "runtime/emulator/Emulator.h"
#include "tests/oracle/Compare.h"
#include "tests/oracle/Quantization.h"

#include <cstdint>
#include <string>
#include <vector>

namespace moejit::test {

/// In which order the threads of a block run.
enum class ThreadOrder { RoundRobin, Random };

/// How emulator() makes the emulator of `order`; to be altered before its first call.
EmulatorOptions &emulatorOptions(ThreadOrder order);
/// The emulators of this program: units are kept in the build tree, unless emulatorOptions() says
/// otherwise, so that a second run compiles nothing.
Emulator &emulator(ThreadOrder order = ThreadOrder::RoundRobin);

/// compileToSource; an artifact without source, and a failed check, where it refuses.
Artifact build(const Spec &spec, const KernelPlan &plan,
               const std::vector<std::string> &skippedPasses = {});

/// One launch: how many rows, who owns them, and how the operands lie in memory.
struct LaunchCase {
  std::string name; ///< says why the shape is worth a launch
  int64_t rows = 0;
  oracle::Routing routing = {};
  oracle::ProblemOptions options = {};
  bool misalignScales = false; ///< activation scales start 4 bytes past a multiple of 16
};

/// Launches that reach the edges of a tile of `tileRows` rows, for grouped or eager `spec`: no row,
/// one row, experts without rows first, last and in between, one expert owning all, the tile ± 1,
/// rows owned by nobody, offsets out of range, padded rows.
std::vector<LaunchCase> edgeCases(const Spec &spec, int64_t tileRows);

/// What a checked kernel has to report of `problem`: the definition, element by element.
std::vector<CheckFinding> expectedFindings(const oracle::HostProblem &problem);

/// What came of one launch.
struct LaunchResult {
  std::string wrong;         ///< empty: right
  double worstRatio = 0;     ///< of the worst element to its bound
  int64_t compared = 0;      ///< elements
  oracle::HostOutput output; ///< y, with its canaries
};

/// A workspace that is used again: zero at first, and as clean afterwards as launches leave it.
struct KeptWorkspace {
  std::vector<uint64_t> words;
  /// Gives `arguments` the memory, grown by zeros, and says that it is clean.
  void bind(GemmArguments &arguments);
};

/// Runs `artifact` on `problem`, with poisoned output between canaries and a dirty workspace, and
/// compares with the oracle; findings of a checked kernel with expectedFindings. With
/// `misalignScales` activation scales start one word past a multiple of 16 bytes. `reference` is
/// the oracle's answer, where the caller has it. On `smLimit` SMs, or, when that is 0, on all.
/// `kept` is used in place of the dirty workspace.
LaunchResult run(const Artifact &artifact, const oracle::HostProblem &problem, ThreadOrder order,
                 bool misalignScales = false, const oracle::OracleResult *reference = nullptr,
                 int64_t smLimit = 0, KeptWorkspace *kept = nullptr);
/// The problem of `launch`: operands drawn by `seed`; masked counts say more than full and less
/// than empty.
oracle::HostProblem problemOf(const Spec &spec, const LaunchCase &launch, uint64_t seed);
/// Both together.
LaunchResult run(const Artifact &artifact, const LaunchCase &launch, uint64_t seed,
                 ThreadOrder order);

/// Runs a quantization of its own, into poisoned outputs between canaries and a dirty workspace, or
/// `kept`;
/// what is wrong with what it wrote, or empty.
std::string runQuantization(const Artifact &artifact, const oracle::QuantizeProblem &problem,
                            ThreadOrder order, KeptWorkspace *kept = nullptr);

/// Checks every launch of `launches`, each other one with threads in random order. The first
/// failures are reported in full.
void checkAll(const Artifact &artifact, const std::vector<LaunchCase> &launches,
              const std::string &what);

} // namespace moejit::test

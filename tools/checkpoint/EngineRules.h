// What other engines do with a checkpoint's expert GEMMs: one table of facts read from their
// sources, with versions. Never says what moejit accepts (runtime/Rules.h), and moejit's rules are
// never in here.
#pragma once

#include "tools/checkpoint/Checkpoint.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moejit::checkpoint {

enum class Outcome {
  Runs,          ///< as the checkpoint is configured
  RunsElse,      ///< as something else than the configuration says
  Refused,       ///< an error, an assertion or a device trap
  NotApplicable, ///< this dispatch is not what such a checkpoint reaches
  Unknown,       ///< not known for this version: never to be read as fine
};
const char *outcomeName(Outcome outcome);
/// The dispatch does the work, as configured or otherwise.
inline bool works(Outcome outcome) {
  return outcome == Outcome::Runs || outcome == Outcome::RunsElse;
}

/// How a verdict is known.
enum class Evidence {
  Run,      ///< the engine's own code of that version was executed: tests/engines
  Read,     ///< its source was read
  Inferred, ///< follows from what was read, and was not run
  Unknown,  ///< a version that nobody read
};
const char *evidenceName(Evidence evidence);

/// An engine, and the versions of it that the rules were read in.
struct Engine {
  const char *name;
  std::vector<const char *> versions; ///< ascending
  const char *source;                 ///< where they were read
  std::vector<const char *> dispatches;

  const char *newest() const { return versions.back(); }
};
const std::vector<Engine> &allEngines();
/// The engine of that name, or null.
const Engine *findEngine(std::string_view name);

/// One GEMM before an engine, for rules.
struct EngineCase {
  const Checkpoint &checkpoint;
  const Experts &experts;
  const Scheme &scheme;
  bool isDown = false;
  int64_t n = 0, k = 0;
  int64_t part = 0; ///< I / tp, the columns and rows of one expert that a rank has
  Parallelism split;
  int arch = 90; ///< 90 of sm_90a
};

/// Says in which way a case meets a rule, with the numbers; nothing where it does not.
using EnginePredicate = std::optional<std::string> (*)(const EngineCase &);

/// How a rule is known.
struct Basis {
  Basis(Evidence evidence, std::vector<const char *> ran = {})
      : evidence(evidence), ran(std::move(ran)) {}

  Evidence evidence; ///< at versions that were not executed: never Evidence::Run
  /// The versions in which code was executed that does what the rule says, each with a line in
  /// tests/engines/results. All of it ran on SM90, or told that it does, and on one rank.
  std::vector<const char *> ran;
};

/// One entry of the table. The first that a case meets decides it; a case that meets none runs as
/// configured.
struct EngineRule {
  const char *id; ///< "transformers-static": stable
  const char *engine;
  std::vector<const char *> dispatches; ///< empty: all of them
  const char *since = ""; ///< first of the versions read that it holds in; empty: all of them
  const char *until = ""; ///< first of the versions read that it holds in no more; empty: none
  EnginePredicate meets;
  Outcome outcome;
  Basis basis;
  const char *fact;        ///< what the engine does, in one sentence
  const char *source;      ///< file, and commit or version
  const char *remedy = ""; ///< what works instead, apart from other dispatches
};
const std::vector<EngineRule> &allEngineRules();

/// What an engine's dispatch does with one GEMM.
struct Verdict {
  Outcome outcome = Outcome::Unknown;
  Evidence evidence = Evidence::Unknown;
  std::string ruleId; ///< empty where no rule is met
  std::string detail; ///< the numbers of this case
  std::string fact;
  std::string source;
  std::string remedy;
};

/// `version` empty: the newest that was read. A version between two that were read: what both of
/// them do, inferred, where they do the same; else Unknown. Newer and older ones: Unknown, and so
/// is what is no release.
Verdict judge(const Engine &engine, std::string_view version, std::string_view dispatch,
              const EngineCase &given);

/// `version` is a release: numbers and dots, "+local" behind them or not. Posts and pre-releases
/// (0.33.0.post9, 5.17.0rc1) are other code than the release that they are called after.
bool isRelease(std::string_view version);

/// Less than 0, 0, more than 0 as `a` is older than `b`, the same, newer: numbers between dots, up
/// to a '+'. Both are releases, or empty.
int compareVersions(std::string_view a, std::string_view b);

/// The text of docs/generated/engine-rules.md.
std::string renderEngineRulesMarkdown();

} // namespace moejit::checkpoint

// Runs every single fault of a kernel on the emulator, each in a process of its own, and says how
// it was found. Knows how to run kernels; which ones is in Kernels.h.
#pragma once

#include "runtime/Artifact.h"
#include "tests/mutation/Mutants.h"
#include "tests/pipeline/Runner.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace moejit::mutation {

/// A launch with its operands and its right answer: what is wrong with what `artifact`, the subject
/// or one of its faults, makes of them; empty when nothing is.
struct Trial {
  std::string name;
  std::function<std::string(const Artifact &artifact, test::ThreadOrder order)> run;
};

/// A kernel whose faults must be found, and the launches that must find them.
struct Subject {
  std::string name;
  Artifact artifact;
  std::vector<Trial> trials;
};

/// How a fault came to light.
enum class Outcome {
  Survived, ///< every launch gave the right answer
  Fault,    ///< the emulator named what the kernel did
  Deadlock, ///< the emulator named who waits for what
  Values,   ///< a result, a canary or a row of nobody is wrong
  Endless,  ///< the launch was stopped
  Crash,    ///< the process that ran it died
};
constexpr int outcomeCount = static_cast<int>(Outcome::Crash) + 1;
const char *outcomeName(Outcome outcome);

struct Verdict {
  Mutant mutant;
  Outcome outcome = Outcome::Survived;
  std::string message; ///< the first line of what was reported
};

struct CampaignOptions {
  int shard = 0, shards = 1; ///< faults `shard`, `shard` + `shards`, … are run
  std::set<int> faults;      ///< where not empty: these alone, by number
  int processes = 2;
  bool showProgress = false;
};

/// What a campaign over one kernel gave.
struct CampaignResult {
  std::string error; ///< the kernel cannot be built, or is wrong without a fault; empty: neither
  std::vector<Verdict> verdicts;
  std::vector<std::string> unread; ///< statements in which no fault is made
};

/// Runs the faults of `subject`: those in its text, and those in what its launch is told (tensor
/// maps, shared memory).
CampaignResult runCampaign(const Subject &subject, const CampaignOptions &options);

} // namespace moejit::mutation

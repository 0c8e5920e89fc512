// Runs every single fault of a kernel on the emulator, each in a process of its own, and says how
// it was found. Knows how to run kernels; which ones is in Kernels.h.
#pragma once

#include "runtime/Artifact.h"
#include "tests/mutation/Mutants.h"
#include "tests/pipeline/Runner.h"

#include <chrono>
#include <functional>
#include <map>
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
  NotRun,   ///< the time was over before
};
constexpr int outcomeCount = static_cast<int>(Outcome::NotRun) + 1;
const char *outcomeName(Outcome outcome);

struct Verdict {
  Mutant mutant;
  Outcome outcome = Outcome::NotRun;
  std::string message; ///< the first line of what was reported
  double seconds = 0;  ///< of processor time
};

/// Bounds how many processes work at the same time, those of several campaigns together.
class Slots {
public:
  /// Room for `count` processes. Made before the processes that share it.
  explicit Slots(int count);
  void take();    ///< waits
  bool tryTake(); ///< does not
  void give();
  /// Readable when there may be room.
  int descriptor() const { return ends[0]; }

private:
  int ends[2] = {-1, -1}; ///< a pipe with one byte for each free place
};

struct CampaignOptions {
  int shard = 0, shards = 1;   ///< faults `shard`, `shard` + `shards`, … are run
  std::set<int> faults;        ///< where not empty: these alone, by number
  std::map<int, Mutant> known; ///< by number, those whose verdicts there are: not run again
  bool onlyBuilds = false;     ///< compiles the unit and runs nothing
  /// When faults that run are stopped and no others begin.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// Told of a campaign as it goes.
struct CampaignEvents {
  /// Every fault that will be run, or was before, before any is.
  std::function<void(const std::vector<Mutant> &)> onFaults;
  std::function<void(const Verdict &)> onVerdict;
};

/// Runs the faults of `subject`: those in its text, and those in what its launch is told (tensor
/// maps, shared memory), each in a process that has taken a place of `slots`. The calling process
/// holds one until the kernel has been run without a fault. Returns an error when the kernel cannot
/// be built, is wrong without a fault, or has a statement in which no fault is made.
Result<void> runCampaign(const Subject &subject, const CampaignOptions &options, Slots &slots,
                         const CampaignEvents &events);

} // namespace moejit::mutation

// A file system that fails on request. The linker leads the runtime's calls through here (--wrap),
// so that the runtime is tested as it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moejit::torture {

/// What happens at a call.
struct Fault {
  enum class Effect {
    Fails,     ///< returns the error, nothing is done
    FailsDone, ///< is done, and returns the error: an answer of the server got lost
    Short,     ///< a write or read moves one byte only
    Dies,      ///< the process is killed before the call
  };
  int64_t first = 0; ///< index of the first call concerned, counted from armFaults
  int64_t last = 0;  ///< of the last one
  std::string call;  ///< only calls of this name; empty: all
  int error = 0;     ///< errno
  Effect effect = Effect::Fails;
};

/// Counts calls from now on, and lets `faults` happen. Of one process and thread at a time.
void armFaults(std::vector<Fault> faults);
/// Ends that; the names of the calls there were, in order.
std::vector<std::string> disarmFaults();
/// How many calls failed, since the last armFaults.
int64_t faultsThatHappened();

/// No call counts nor fails while it lives: for the tests' own files.
class FaultsSuspended {
public:
  FaultsSuspended();
  ~FaultsSuspended();
  FaultsSuspended(const FaultsSuspended &) = delete;
  FaultsSuspended &operator=(const FaultsSuspended &) = delete;
};

} // namespace moejit::torture

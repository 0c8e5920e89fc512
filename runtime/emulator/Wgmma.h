// Owns the asynchronous matrix multiplications of one warpgroup: instructions in flight, the
// accumulators they poison at issue and deliver at wgmma_wait, and their commit groups. Knows
// nothing of fibers.
#pragma once

#include "runtime/emulator/SharedMemory.h"

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace moejit::emulated {

/// One wgmma.mma_async m64nNk32 with both operands in shared memory.
struct WgmmaShape {
  uint64_t a = 0; ///< matrix descriptors (PTX ISA, "Matrix descriptor")
  uint64_t b = 0;
  int n = 0;
  int types = 0; ///< WgmmaTypes
  bool accumulate = false;
  bool operator==(const WgmmaShape &) const = default;
};

/// Whether unwritten bytes of an operand are an error; if not, they count as NaN.
struct StrictOperands {
  bool a = true;
  bool b = true;
};

class Warpgroup {
public:
  static constexpr int threads = 128;

  void reset(int warpgroup);
  void fence(int thread) { state[thread].isFenced = true; }
  /// Thread `thread` issues its next instruction: its registers are taken and poisoned with NaN,
  /// and the last of the 128 threads computes. Returns what is wrong, or nothing.
  Text issue(int thread, float *registers, const WgmmaShape &shape, SharedMemory &shared,
             StrictOperands strict);
  /// Thread `thread` closes its group; `isWhole` is set when all 128 threads have. Returns what is
  /// wrong.
  Text commit(int thread, bool &isWhole);
  /// The oldest incomplete group becomes complete; its operands are free.
  void completeGroup(SharedMemory &shared);
  /// How many groups must be complete before thread `thread` may go on with at most `allowed`
  /// pending.
  uint64_t groupsNeeded(int thread, int allowed) const;
  uint64_t groupsComplete() const { return complete; }
  int threadsCommitted(uint64_t group) const;
  /// Hands the thread its registers of all instructions in the first `groupCount` groups, and
  /// forgets its fence.
  void deliver(int thread, uint64_t groupCount);
  /// Whether some accumulator of the thread is still in flight.
  bool isPending(int thread) const;

  WaitList waiters;

private:
  struct Instruction {
    WgmmaShape shape;
    int arrivals = 0;
    int firstThread = 0;
    int accumulator = 0;
  };
  struct Accumulator {
    int n = 0;
    int users = 0;                                ///< threads for which it is in flight
    std::array<float *, threads> registers = {};  ///< null: not in flight for that thread
    std::array<uint64_t, threads> lastIssue = {}; ///< the thread's last instruction on it
    std::vector<float> values;                    ///< [64][n]
  };
  struct Group {
    uint64_t end = 0; ///< instructions before this one belong to it or an earlier group
    int arrivals = 0;
    int firstThread = 0;
  };
  struct ThreadState {
    uint64_t issued = 0;
    uint64_t committed = 0;
    bool isFenced = false;
  };

  int inFlight(int thread, const float *registers) const;
  int allocateAccumulator(int n);
  /// Lanes of the race detector whose stores and deliveries an instruction reads.
  struct Writers {
    std::array<std::pair<int, uint32_t>, 16> last = {};
    size_t count = 0;
    void add(std::pair<int, uint32_t> writer);
  };
  Text execute(const Instruction &instruction, SharedMemory &shared, StrictOperands strict);
  Text decode(const SharedMemory &shared, uint64_t descriptor, int rows, const float *table,
              bool strict, const char *name, float *values, int rowStep, int kStep,
              Writers &writers) const;
  Text unorderedWriter(const Writers &writers, const SharedMemory &shared) const;

  int index = 0;
  std::deque<Instruction> instructions;
  uint64_t firstInstruction = 0; ///< number of instructions[0]
  std::vector<Group> groups;
  uint64_t complete = 0;
  std::vector<Accumulator> accumulators;
  std::array<ThreadState, threads> state = {};
};

/// d[64][n] += a[64][32] · b[32][n], for each element one fp32 sum in the order of k. n is a
/// multiple of 8. The products of fp8 values are exact in fp32, so a fused multiply-add rounds no
/// differently.
void multiplyTile(float *d, int n, const float *a, const float *b);

} // namespace moejit::emulated

// Finds accesses of global memory that nothing orders, between threads of one block and of several,
// and reads of scratch memory that nothing has written. What a thread knows of its own block is in
// the block's RaceDetector; here is how that reaches others: fences, atomics and waits (PTX ISA,
// "Memory Consistency Model"). One object serves a launch and all its host threads.
#pragma once

#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/Footprint.h"
#include "runtime/emulator/Races.h"
#include "runtime/emulator/SparseWords.h"
#include "runtime/emulator/TensorCopy.h"

#include <map>
#include <memory>
#include <mutex>

namespace moejit::emulated {

/// The last event that was known, of each thread of each block; a block of which nothing is known
/// has no entries. `fenced` are the events between which and this one lies a proxy fence.
struct Snapshot {
  std::vector<std::vector<uint32_t>> known, fenced;
};

/// A thread of this block has learnt, at its time `clock`, what `what` knows.
struct Acquisition {
  int thread = 0;
  uint32_t clock = 0;
  std::shared_ptr<const Snapshot> what;
};

/// A thread has seen the first `changes` changes of a word, its own being the last of them.
struct Observation {
  int thread = 0;
  const int *word = nullptr;
  size_t changes = 0;
};

/// A thread and what its block knows.
struct Actor {
  int block = 0;
  int thread = 0;
  RaceDetector &races;
  std::vector<Acquisition> &acquired; ///< by the threads of the block, oldest first
  std::vector<Observation> &observed; ///< by the threads of the block since their last fences
};

class GlobalOrder {
public:
  /// For a launch of `launch.blocks` blocks, which has done nothing. `before` is what the grid
  /// before has touched, or null.
  void reset(const EmulatedLaunch &launch, const Footprint *before);

  /// fence.acq_rel.gpu: `actor` learns what those vouched for whose changes of words it has seen in
  /// its own, and may vouch for all it knows from now on: the result.
  std::shared_ptr<const Snapshot> fence(const Actor &actor) const;

  // Each notes an access, and says what it must not be; empty when all is right. `range` is an
  // index into the launch's ranges, `at` an offset in it.
  /// Atomics may have changed the bytes, if all of that is ordered before: it starts anew then.
  Text store(const Actor &actor, size_t range, int64_t at, int bytes);
  /// `isReadOnly`: through the path for data that no thread of the launch writes (ld.global.nc).
  Text load(const Actor &actor, size_t range, int64_t at, int bytes, bool isReadOnly) const;
  /// A TMA store that `actor` issues writes the bytes, and the actor has waited for that.
  Text storeAsync(const Actor &actor, size_t range, int64_t at, int bytes);
  void finishAsync(const Actor &actor, size_t range, int64_t at, int bytes);
  /// A TMA load that `actor` issues reads the bytes.
  Text copy(const Actor &actor, size_t range, int64_t at, int bytes) const;

  /// Whether atomics have changed the word at `at`.
  bool isAtomic(size_t range, int64_t at) const;
  /// Changes the word at `word` by `change` and gives what it was; what `vouched` knows is there
  /// for whoever waits for the new value. Null: nothing.
  int change(const Actor &actor, size_t range, int64_t at, int *word,
             const std::shared_ptr<const Snapshot> &vouched, int (*change)(int old, int operand),
             int operand);
  /// The oldest value that an ordinary load of an atomic word may see: later changes are not
  /// ordered before `actor`.
  int staleValue(const Actor &actor, const int *word) const;
  /// `actor` has seen `word` come to `value` at least, and learns what those knew who brought it
  /// there.
  void acquire(const Actor &actor, const int *word, int value) const;

private:
  /// Who stored a byte last: number of the thread in the grid, from 1 on, and its time.
  struct Mark {
    uint32_t number = 0;
    uint32_t clock = 0;
    bool isAsync = false; ///< by a TMA store
    bool isInFlight() const { return isAsync && clock == UINT32_MAX; }
    uint64_t bits() const { return uint64_t(number | (isAsync ? asyncBit : 0)) << 32 | clock; }
  };
  static constexpr uint32_t atomicNumber = UINT32_MAX;
  static constexpr uint32_t asyncBit = 1u << 31; ///< of the number that is kept
  struct Change {
    Mark by;
    int value = 0; ///< afterwards
    std::shared_ptr<const Snapshot> vouched;
  };
  struct Word {
    int initial = 0;
    std::vector<Change> changes;
  };

  /// `actor` learns what was vouched for in the first `changes` changes.
  void learn(const Actor &actor, const Word &word, size_t changes) const;
  /// An ordinary store over a byte that atomics have changed: what is wrong with it, or empty.
  Text endAtomic(const Actor &actor, size_t range, int64_t at);
  Mark markAt(size_t range, int64_t at) const;
  void setMark(size_t range, int64_t at, Mark mark);
  uint32_t numberOf(const Actor &actor) const {
    return static_cast<uint32_t>(actor.block) * threads + static_cast<uint32_t>(actor.thread) + 1;
  }
  bool isUnwritten(const MemoryRange &memory, int64_t at, Mark mark) const;
  bool knows(const Actor &actor, Mark mark, bool isFenced) const;
  Text name(Mark mark) const;

  const EmulatedLaunch *launch = nullptr;
  const Footprint *before = nullptr;
  uint32_t threads = 0;
  /// For each byte of each range that may be written, a Mark. Host threads share them.
  std::vector<SparseWords> marks;
  mutable std::mutex mutex;
  std::map<const int *, Word> words; ///< that atomics have changed; guarded by `mutex`
};

} // namespace moejit::emulated

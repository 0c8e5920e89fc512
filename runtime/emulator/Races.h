// Finds accesses of one block's shared memory that nothing orders, whatever order they ran in here:
// vector clocks of threads, and who touched each word last (Flanagan and Freund, FastTrack, 2009).
// Knows threads by number and no fibers; async copies count as their barrier's.
#pragma once

#include "runtime/emulator/Text.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace moejit::emulated {

/// What a barrier remembers of those who have come to it: the last event of each lane that is known
/// to lie before, then the last of each after which a proxy fence lies. Empty: of nobody.
using VectorClock = std::vector<uint32_t>;

/// Lanes are the block's threads, then `copyLanes` that stand for what TMA loads deliver.
class RaceDetector {
public:
  static constexpr int copyLanes = 32;

  /// For a block of `threads` threads and `bytes` bytes, of which nobody has touched any.
  void reset(int bytes, int threads);

  /// `thread` comes to a barrier: all it has done lies before what follows `into`.
  void release(int thread, VectorClock &into);
  /// `thread` leaves a barrier: what `from` knows lies before all it does from now on.
  void acquire(int thread, const VectorClock &from);
  /// `count` threads from `first` on meet.
  void meet(int first, int count);
  /// Adds what `from` knows to `into`.
  static void join(VectorClock &into, const VectorClock &from);

  /// `thread` executes a proxy fence for global memory.
  void fence(int thread);
  /// `thread` executes a proxy fence for shared memory.
  void fenceShared(int thread);
  /// Whether a proxy fence for shared memory lies between what `lane` did at its time `clock` and
  /// what `thread` does now: one of `lane` itself that `thread` knows, or one of `thread`.
  bool isFencedShared(int lane, uint32_t clock, int thread) const;
  /// What `thread` does from now on is no part of what it has released.
  void advance(int thread) { ++clockOf(thread)[thread]; }
  /// Loads have delivered to barrier number `barrier`, and its phase is complete: gives the lane
  /// and time of that, which who waits for the barrier learns by `into`.
  std::pair<int, uint32_t> deliver(int barrier, VectorClock &into);
  /// `thread` knows of a delivery without having waited for the barrier.
  void learn(int thread, std::pair<int, uint32_t> delivery);
  /// The bytes were written by a lane of deliver().
  void noteDelivery(int offset, int bytes, std::pair<int, uint32_t> delivery);

  /// The time of `thread`, and whether what `other` did at its time `clock` lies before what
  /// `thread` does now.
  uint32_t now(int thread) const { return known(thread)[thread]; }
  bool isOrdered(int other, uint32_t clock, int thread) const {
    return known(thread)[other] >= clock;
  }
  /// The same, and whether a proxy fence lies between the two.
  bool isFenced(int other, uint32_t clock, int thread) const {
    return fenced(thread)[other] >= clock;
  }
  /// The last events of the block's threads that `thread` knows, and those of them before a proxy
  /// fence that it knows.
  const uint32_t *known(int thread) const {
    return clocks.data() + static_cast<size_t>(thread) * width();
  }
  const uint32_t *fenced(int thread) const { return known(thread) + lanes(); }

  // Each notes an access of `bytes` bytes at `offset`, and says what is not ordered with it; empty
  // when all is.
  Text read(int offset, int bytes, int thread);
  Text write(int offset, int bytes, int thread);
  /// An atomic read and write, which needs no order with others of its kind.
  Text update(int offset, int bytes, int thread);
  /// What `thread` started to write there before (see write()) is written now, or what it started
  /// to read (see read()) is read now.
  void noteWrite(int offset, int bytes, int thread);
  void noteRead(int offset, int bytes, int thread);
  /// A copy that `thread` issues will write the bytes; who reads them must wait for its barrier,
  /// which SharedMemory checks.
  Text copy(int offset, int bytes, int thread);
  /// The same of a copy that another block issues, which knows `known` of this one's threads.
  Text copyFrom(int offset, int bytes, const VectorClock &known);
  /// All that the block's threads have done so far, as another block learns it that meets them.
  VectorClock everything() const;

  /// Who wrote the word at `offset` last: a lane, -1 for nobody, and its time.
  std::pair<int, uint32_t> writerOf(int offset) const {
    return {words[offset / 4].writer, words[offset / 4].writeClock};
  }
  /// Whether `lane` stands for what copies deliver.
  bool isCopy(int lane) const { return lane >= threads; }
  /// "thread 3 has stored", "a copy has delivered, for whose mbarrier …".
  Text deed(int lane, const char *did) const;

private:
  struct Word {
    uint32_t writeClock = 0;
    int16_t writer = -1;  ///< lane of the last store or delivery; -1: none
    int32_t readers = -1; ///< first of a list in `pool`
  };
  struct Reader {
    uint32_t clock = 0;
    int16_t thread = 0;
    bool isAtomic = false;
    int32_t next = -1;
  };
  int lanes() const { return threads + copyLanes; }
  size_t width() const { return 2 * static_cast<size_t>(lanes()); }
  uint32_t *clockOf(int thread) { return clocks.data() + static_cast<size_t>(thread) * width(); }
  Text race(const char *what, int offset, int other, const char *did);
  /// Says which reader of `word` is not among `known`. Atomic ones count where asked.
  Text unorderedReader(const char *what, int offset, const Word &word, const uint32_t *known,
                       bool countPlain, bool countAtomic);
  Text copyOver(int offset, int bytes, const uint32_t *known);
  void addReader(Word &word, int thread, bool isAtomic);
  void clear(Word &word);

  int threads = 0;
  std::vector<uint32_t> clocks; ///< of each thread a VectorClock
  /// Of each thread, whether it has learnt something since its warp has met.
  std::vector<uint8_t> hasLearnt;
  uint32_t deliveries[copyLanes] = {};
  /// Of each thread, its times at proxy fences for shared memory, and what it knew of all lanes at
  /// the last.
  std::vector<std::vector<uint32_t>> sharedFences, knownAtFence;
  std::vector<Word> words;
  std::vector<Reader> pool;
  int32_t freeReaders = -1;
  VectorClock meeting; ///< of meet(), kept for its memory
};

} // namespace moejit::emulated

// Finds accesses of one block's shared memory that nothing orders, whatever order they ran in here:
// vector clocks of threads, and who touched each word last (Flanagan and Freund, FastTrack, 2009).
// Knows threads by number and no fibers; async copies count as their barrier's.
#pragma once

#include "runtime/emulator/Text.h"

#include <cstdint>
#include <vector>

namespace moejit::emulated {

/// What a barrier remembers of those who have come to it: the last event of each thread that is
/// known to lie before. Empty: of nobody.
using VectorClock = std::vector<uint32_t>;

class RaceDetector {
public:
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

  /// The time of `thread`, and whether what `other` did at its time `clock` lies before what
  /// `thread` does now.
  uint32_t now(int thread) const { return clocks[static_cast<size_t>(thread) * threads + thread]; }
  bool isOrdered(int other, uint32_t clock, int thread) const {
    return clocks[static_cast<size_t>(thread) * threads + other] >= clock;
  }

  // Each notes an access of `bytes` bytes at `offset`, and says what is not ordered with it; empty
  // when all is.
  Text read(int offset, int bytes, int thread);
  Text write(int offset, int bytes, int thread);
  /// An atomic read and write, which needs no order with others of its kind.
  Text update(int offset, int bytes, int thread);
  /// A copy that `thread` issues will write the bytes; who reads them must wait for its barrier,
  /// which SharedMemory checks.
  Text copy(int offset, int bytes, int thread);
  /// Forgets who touched the bytes.
  void forget(int offset, int bytes);

private:
  struct Word {
    uint32_t writeClock = 0;
    int16_t writer = -1;  ///< thread of the last ordinary store; -1: none
    int32_t readers = -1; ///< first of a list in `pool`
  };
  struct Reader {
    uint32_t clock = 0;
    int16_t thread = 0;
    bool isAtomic = false;
    int32_t next = -1;
  };
  uint32_t *clockOf(int thread) { return clocks.data() + static_cast<size_t>(thread) * threads; }
  Text race(const char *what, int offset, int other, const char *did);
  /// Says which reader of `word` is not before `thread`. Atomic ones count where asked.
  Text unorderedReader(const char *what, int offset, const Word &word, int thread, bool countPlain,
                       bool countAtomic);
  void addReader(Word &word, int thread, bool isAtomic);
  void clear(Word &word);

  int threads = 0;
  std::vector<uint32_t> clocks; ///< threads × threads
  std::vector<Word> words;
  std::vector<Reader> pool;
  int32_t freeReaders = -1;
  VectorClock meeting; ///< of meet(), kept for its memory
};

} // namespace moejit::emulated

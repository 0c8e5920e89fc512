// Owns the shared memory of one emulated block: its bytes, what is known about each byte, and its
// mbarriers. Reports misuse as text; who did it is added by the caller.
#pragma once

#include "runtime/emulator/Races.h"
#include "runtime/emulator/Text.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace moejit::emulated {

struct Fiber;

/// What messages say of State::loading.
extern const char *const loadingText;

/// Fibers that wait for one thing, in order of arrival.
using WaitList = std::vector<Fiber *>;

/// Bytes a TMA load has delivered, or a cp.async: that writes through the generic proxy.
struct LandedBox {
  int address = 0;
  int bytes = 0;
  bool isGeneric = false;
  int knownBy = -1; ///< thread that has waited for it before it counts as delivered
};

/// An mbarrier object (PTX ISA, mbarrier): the phase completes when no arrival and no byte is
/// pending.
struct Mbarrier {
  int address = 0;
  int count = 0;
  int pending = 0;
  int64_t txBytes =
      0; ///< expected minus delivered; negative while bytes land before their expect_tx
  uint32_t phase = 0; ///< its parity is what waits name
  bool isAwaited =
      true; ///< a thread waits, or has waited, for the phase before (the first: always)
  int initThread = 0;
  uint32_t initClock = 0;
  std::vector<LandedBox> landed;   ///< boxes delivered in the current phase
  std::vector<LandedBox> complete; ///< boxes of complete phases that no thread has waited for
  uint32_t initFence = 0;          ///< fences its initialising thread had executed at mbarrier_init
  VectorClock arrived;             ///< what those know who came in the current phase
  bool holdsStores = false;        ///< bytes of st.async have been delivered to it
  VectorClock passed;              ///< what those learn who wait for the complete phases
  // The same of threads of other blocks of the cluster, by rank.
  std::vector<VectorClock> foreignArrived;
  std::vector<VectorClock> foreignPassed;
  int number = 0; ///< of the block's barriers, in the order of their first init
  WaitList waiters;
};

class SharedMemory {
public:
  /// Shared addresses of a block start here, as they do on sm_90 (1 KiB is the system's).
  static constexpr int base = 1024;

  /// What is known about a byte.
  enum State : uint8_t {
    written = 1, ///< it has a defined value
    generic = 2, ///< its last writer was an ordinary store (see `WriterMark`)
    loading =
        4, ///< destination of a TMA load until a thread of the block has waited for its mbarrier
    barrier = 8,  ///< it belongs to an mbarrier
    copying = 16, ///< destination of a cp.async that nobody who may has waited for
  };
  /// Who stored a word last, and how many proxy fences that thread had executed before.
  struct WriterMark {
    uint32_t fences = 0;
    uint16_t thread = 0;
  };
  /// Bytes [low, high) that warpgroup `warpgroup` reads until its wgmma group `group` is complete.
  struct OperandRead {
    int low = 0;
    int high = 0;
    int warpgroup = 0;
    uint64_t group = 0;
  };

  /// Bytes [low, high) that a TMA store of `thread` reads, its number `store`, until the thread has
  /// waited for that.
  struct StoreRead {
    int low = 0;
    int high = 0;
    int thread = 0;
    uint64_t store = 0;
  };

  /// Makes `bytes` bytes for a block of `threads` threads, all unwritten, and forgets every
  /// barrier.
  void reset(int bytes, int threads);
  int bytes() const { return static_cast<int>(data.size()); }

  bool contains(int address, int64_t bytes) const {
    return address >= base && address + bytes <= base + static_cast<int64_t>(data.size());
  }
  uint8_t *at(int address) { return data.data() + (address - base); }
  const uint8_t *at(int address) const { return data.data() + (address - base); }
  uint8_t *stateAt(int address) { return state.data() + (address - base); }
  const uint8_t *stateAt(int address) const { return state.data() + (address - base); }

  /// What forbids `thread` an ordinary access of `bytes` bytes at `address`; empty when nothing
  /// does, and the access is then noted.
  Text refuseRead(int address, int bytes, int thread);
  Text refuseWrite(int address, int bytes, int thread);
  /// The same of an atomic read and write.
  Text refuseUpdate(int address, int bytes, int thread);
  /// What forbids a TMA load to write there, issued by `thread` of this block (-1: of another,
  /// which knows `known` of this block's threads).
  Text refuseAsyncWrite(int address, int bytes, int thread, const VectorClock &known = {});
  /// What forbids a TMA store that `thread` issues to read whole words there, a proxy fence among
  /// it.
  Text refuseAsyncRead(int address, int bytes, int thread);
  /// `[shared_base + 0x1200]`.
  static Text place(int address);

  /// Stores bytes for thread `thread` through the generic proxy.
  void store(int address, const void *from, int bytes, int thread);
  /// `thread` executes fence.proxy.async or fence.mbarrier_init.
  void fenceProxy(int thread) {
    ++proxyFences[thread];
    races.fenceShared(thread);
  }
  void fenceInit(int thread) { ++initFences[thread]; }
  /// Whether the thread that stored the word at `address` has executed a proxy fence since; of what
  /// copies have delivered by an mbarrier, whether each of `count` threads from `first` on has,
  /// knowing of the delivery.
  bool isFenced(int address, int first, int count) const;
  /// Whether the thread that initialised `barrier` has made that visible to the async proxy and to
  /// the cluster.
  bool isInitFenced(const Mbarrier &barrier) const {
    return barrier.initFence < initFences[barrier.initThread] + proxyFences[barrier.initThread];
  }
  void setState(int address, int bytes, uint8_t value);

  Mbarrier &initBarrier(int address, int thread);
  /// A phase of `barrier` is complete: what was delivered in it is there for those who wait.
  void completePhase(Mbarrier &barrier);
  /// A thread has waited for `barrier`: the boxes of its complete phases may be used from now on.
  void observe(Mbarrier &barrier);
  /// A TMA load of `bytes` bytes to `address` is on its way.
  void startLoad(int address, int bytes);
  /// A cp.async of `thread` to `address` is on its way; the thread has waited for it.
  void startCopy(int address, int bytes, int thread);
  void finishCopy(int address, int bytes, int thread);
  /// TMA loads nobody has waited for.
  int unobservedLoads() const { return loads; }
  /// The barrier at `address`, or null.
  Mbarrier *findBarrier(int address);

  std::vector<OperandRead> operandReads;
  std::vector<StoreRead> storeReads;
  RaceDetector races;

private:
  Text outside(int address, int bytes) const;
  Text misuse(const char *verb, int address, int bytes, bool needsValue) const;
  Text readerConflict(int address, int bytes) const;
  Text destination(int address) const;

  std::vector<uint8_t> data;
  std::vector<uint8_t> state;
  std::vector<WriterMark> writers;
  std::vector<uint32_t> proxyFences; ///< executed so far, one for each thread
  std::vector<uint32_t> initFences;
  int loads = 0;
  std::vector<int32_t> barrierIndex; ///< one for each 8 bytes; -1: none
  std::deque<Mbarrier> barriers;
};

} // namespace moejit::emulated

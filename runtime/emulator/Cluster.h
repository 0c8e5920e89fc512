// Owns the emulation of one cluster of blocks at a time: its fibers, what they wait for, and the
// clock by which asynchronous work is delivered. One Cluster belongs to one host thread.
#pragma once

#include "runtime/emulator/AsyncCopy.h"
#include "runtime/emulator/DeviceTable.h"
#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/Fiber.h"
#include "runtime/emulator/Footprint.h"
#include "runtime/emulator/GlobalOrder.h"
#include "runtime/emulator/Mma.h"
#include "runtime/emulator/SharedMemory.h"
#include "runtime/emulator/TensorCopy.h"
#include "runtime/emulator/TensorStore.h"
#include "runtime/emulator/Wgmma.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <random>

namespace moejit::emulated {

struct Block;
class Cluster;

/// What a suspended thread waits for; the numbers serve the deadlock report.
struct Wait {
  enum class Kind : uint8_t {
    None,
    Mbarrier,
    NamedBarrier,
    Warp,
    ClusterBarrier,
    Wgmma,
    Registers,
    Global,
    Copies
  };
  Kind kind = Kind::None;
  int a = 0; ///< address, id, groups allowed, registers or value awaited
  int b = 0; ///< parity, count, or offset in the operand
  const char *op = "";
};

/// One CUDA thread.
struct Fiber {
  FiberContext context;
  Cluster *cluster = nullptr;
  Block *block = nullptr;
  int thread = 0;
  bool done = false;
  const void *site = nullptr; ///< where the kernel called its last wrapper
  Wait wait;
  int result = 0;            ///< of the last warp collective
  int registers = 0;         ///< as setmaxnreg left it
  uint64_t clusterPhase = 0; ///< of its last cluster_arrive
  bool clusterArrived = false;
  std::shared_ptr<const Snapshot> vouched; ///< of its last fence_acq_rel_gpu
};

enum class WarpOp : uint8_t { Sync, Elect, Shuffle, StoreMatrix, LoadMatrix, Mma };

/// Lanes that have come to the warp's current collective.
struct Warp {
  uint32_t lanes = 0;
  const char *name = ""; ///< of the wrapper
  int values[32];
  int matrix[32][4]; ///< of stmatrix, and what ldmatrix has loaded
  MmaFragments fragments;
  int sources[32];
  WaitList waiters;
};

struct NamedBarrier {
  int arrived = 0;
  int expected = 0;
  VectorClock known; ///< by those who have come
  WaitList waiters;
};

/// One block of the running cluster.
struct Block {
  int index = 0; ///< %ctaid.x
  int rank = 0;  ///< in the cluster
  int live = 0;
  int freeRegisters = 0; ///< given back by setmaxnreg.dec
  SharedMemory shared;
  std::vector<Acquisition> acquired; ///< by its threads, of other blocks
  std::vector<Observation> observed; ///< by its threads, of words that atomics change
  /// What the block knows of the threads of others of its cluster, by rank: one thread that has
  /// waited for them counts as all.
  std::vector<VectorClock> foreign;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  /// Of each thread; empty as long as none has issued one.
  std::vector<AsyncCopies> copies;
  std::vector<TensorStores> stores;
  AsyncCopies &copiesOf(int thread) { return ofThread(copies, thread); }
  TensorStores &storesOf(int thread) { return ofThread(stores, thread); }
  /// Threads that have waited for the grid before, and when.
  std::vector<std::pair<int, uint32_t>> gridWaits;
  std::array<NamedBarrier, 16> barriers;
  WaitList registerWaiters;

private:
  template <typename Kept> Kept &ofThread(std::vector<Kept> &kept, int thread) {
    if (kept.empty())
      kept.resize(32 * warps.size());
    return kept[thread];
  }
};

/// A thread that waits for a word of global memory, which another cluster may change.
struct Poll {
  Fiber *fiber = nullptr;
  int *word = nullptr;
  int value = 0; ///< the least it waits for
  bool isOver() const;
};

/// What all workers of one launch share.
struct LaunchState {
  const EmulatorOptions *options = nullptr;
  const EmulatedLaunch *launch = nullptr;
  void (*entry)(const DeviceTable *, void **) = nullptr;
  const EmulatedModule *module = nullptr;
  std::chrono::steady_clock::time_point deadline;
  std::atomic<bool> stop = false;
  std::atomic<uint32_t> nextCluster = 0;
  std::atomic<int64_t> steps = 0;
  std::atomic<int64_t> tmaLoads = 0;
  std::atomic<int64_t> tmaBytes = 0;
  std::atomic<int64_t> wgmmas = 0;
  GlobalOrder order;
  Footprint *footprint = nullptr;    ///< is told what the launch touches, where one wants to know
  const Footprint *before = nullptr; ///< of the grid that this one may have been started before
  std::mutex mutex;
  Error error;                 ///< of the first worker that stopped; guarded by `mutex`
  const void *site = nullptr;  ///< where that was in the kernel, if it is known; guarded by `mutex`
  unsigned workers = 1;        ///< that have not run out of clusters; guarded by `mutex`
  std::vector<Cluster *> idle; ///< whose threads all wait for other clusters; guarded by `mutex`

  void report(Error failure, const void *site = nullptr);
};

class Cluster {
public:
  explicit Cluster(LaunchState &launch) : launch(launch) {}

  /// Runs the blocks of cluster `index` to their ends. False when the launch has been stopped.
  bool run(uint32_t index);

  /// The thread that is running on this host thread.
  static Fiber &self();

  // Services of the wrappers; all are called on the fiber of the executing thread. fail() does not
  // return, and nothing on the fiber's stack is destroyed: whatever lives there must own no memory.
  [[noreturn]] void fail(const Text &op, const Text &what);
  int warpCollective(Fiber &f, WarpOp op, const char *name, int value, int source);
  void storeMatrix(Fiber &f, int address, const int *registers, bool isTransposed);
  void loadMatrix(Fiber &f, int address, int *registers, int count, const char *op);
  void mma(Fiber &f, float *d, const int *a, const int *b, int types, const char *op);
  void barrier(Fiber &f, int id, int threads, bool wait);
  void clusterArrive(Fiber &f);
  void clusterWait(Fiber &f);
  void setRegisters(Fiber &f, int registers, bool grow);
  Mbarrier &barrierAt(Block &block, int address, const char *op);
  void arrive(Block &block, Mbarrier &barrier, const char *op);
  /// `ofCluster`: the wait is of cluster scope, so that it orders what other blocks have stored.
  void waitBarrier(Fiber &f, int address, int parity, bool ofCluster);
  void load(Fiber &f, int dst, const TensorMap &map, const int *coordinates, int rank, int barrier,
            int ctaMask, const char *op);
  /// Stores a word to block `rank`, where it counts as 4 bytes of the mbarrier.
  /// `count` words, 1 or 4.
  void storeAsync(Fiber &f, int address, const int *words, int count, int barrier, int rank,
                  const char *op);
  // cp.async.
  void copyAsync(Fiber &f, int dst, const void *p, long long offset, int bytes, int size,
                 const char *op);
  void copyAsyncCommit(Fiber &f);
  /// `pending` -1: for all, committed or not.
  void copyAsyncWait(Fiber &f, int pending, const char *op);
  void copyAsyncArrive(Fiber &f, int address);
  // TMA stores.
  void storeTensor(Fiber &f, const TensorMap &map, const int *coordinates, int rank, int src,
                   const char *op);
  void bulkCommit(Fiber &f);
  void bulkWait(Fiber &f, int pending, bool isRead);
  /// Waits for the grid before, which has ended.
  void waitForGrid(Fiber &f);
  void wgmma(Fiber &f, float *registers, const WgmmaShape &shape);
  void wgmmaCommit(Fiber &f);
  void wgmmaWait(Fiber &f, int groups);
  /// Waits until the word at p + offset is at least `value`.
  void waitGlobal(Fiber &f, const void *p, long long offset, int value);
  /// Where an access of global memory lands.
  struct Place {
    char *address; ///< on the host
    size_t range;  ///< index into the launch's ranges
    int64_t at;    ///< offset in it
  };
  /// Checks the bounds and the alignment of an access of `bytes` bytes at p + offset; `alignment` 0
  /// is that of the bytes.
  Place global(const void *p, long long offset, int bytes, bool write, const char *op,
               int alignment = 0);
  /// Every access of global memory comes by here: it must not touch what the grid before does.
  void touchGlobal(Fiber &f, size_t range, int64_t at, int bytes, bool write, const char *op);
  /// The range that holds the tensor of `map`, all of it.
  const MemoryRange &tensorRange(const PackedMap &map, const char *op);
  Actor actor(Fiber &f) {
    return {f.block->index, f.thread, f.block->shared.races, f.block->acquired, f.block->observed};
  }
  /// The range that holds `p`, or that `p` ends; null when there is none.
  const MemoryRange *rangeOf(const void *p) const;
  Block &peer(int rank) { return *blocks[rank]; }
  int size() const { return static_cast<int>(launch.launch->cluster); }
  Fiber &fiberOf(const Block &block, int thread) {
    return fibers[static_cast<size_t>(block.rank) * threads + thread];
  }
  /// Lets others run now and then, so that a loop over memory cannot go on for ever unseen.
  void tick(Fiber &f);

  LaunchState &launch;

private:
  friend std::string describeDeadlock(Cluster &cluster);
  struct Event {
    uint64_t due = 0;
    uint64_t order = 0;
    enum class Kind : uint8_t { Load, Wgmma, Copy, StoreRead, StoreWrite } kind = Kind::Load;
    uint32_t item = 0; ///< index into `loads` or `items`; or rank · 64 + warpgroup
    bool operator<(const Event &other) const {
      return due != other.due ? due > other.due : order > other.order;
    }
  };
  /// A box of a tensor, or a word of a thread, on its way.
  struct PendingLoad {
    PackedMap map;
    std::array<int, 5> coordinates;
    int dst;
    int barrier;
    int rank; ///< block it is delivered to
    Block *issuer;
    int thread;
    const char *op;
    int numWords = 0; ///< of a store to another block; 0: a box of `map`
    std::array<int, 4> words = {};
    int bytes() const { return numWords ? 4 * numWords : map.boxBytes(); }
  };

  /// A numbered operation of a thread: a cp.async or a TMA store.
  struct PendingItem {
    int rank;
    int thread;
    uint64_t number;
  };

  static void fiberEntry();
  bool reset(uint32_t index);
  void suspend(Fiber &f, WaitList &list, Wait wait);
  void wake(WaitList &list);
  void finish(Fiber &f);
  /// Says what is wrong with a phase that completes now, if anything is.
  Text completePhaseIfDone(SharedMemory &shared, Mbarrier &barrier);
  void releaseClusterBarrierIfDone();
  void schedule(Event::Kind kind, uint32_t item, int latency);
  bool deliver(const Event &event);
  bool deliverLoad(const PendingLoad &load);
  /// Where `item` is kept until its event.
  uint32_t addItem(const PendingItem &item);
  uint32_t pendingItem(const Fiber &f, uint64_t number) {
    return addItem({f.block->rank, f.thread, number});
  }
  bool deliverCopy(const PendingItem &item);
  void learnOfBarrier(Fiber &f, const AsyncCopy &copy);
  Text arriveForCopies(Block &block, int thread);
  void readStore(const PendingItem &item);
  void writeStore(const PendingItem &item);
  /// Whether the fiber is the last of its warp to come to collective `name`; if not, it has waited
  /// for the others. Its operands are taken by `put` before.
  template <typename Put> bool meetWarp(Fiber &f, const char *name, const Put &put);
  void send(Fiber &f, const PendingLoad &load);
  bool stopWith(std::string message, std::vector<std::string> notes = {});
  Fiber *nextReady();
  bool wakePolls();
  bool awaitOthers();

  int threads = 0; ///< of a block
  FiberContext scheduler;
  StackPool stacks;
  std::vector<std::unique_ptr<Block>> blocks;
  std::deque<Fiber> fibers;
  std::deque<Fiber *> ready;
  std::vector<Event> events; ///< a heap, soonest first
  std::vector<PendingLoad> loads;
  std::vector<uint32_t> freeLoads;
  std::vector<PendingItem> items;
  std::vector<uint32_t> freeItems;
  uint64_t clock = 0; ///< counts resumptions; jumps ahead when nobody can run
  uint64_t eventOrder = 0;
  int64_t steps = 0;
  int live = 0;
  uint32_t ticks = 0;
  uint64_t clusterPhase = 0;
  int clusterArrived = 0;
  WaitList clusterWaiters;
  std::vector<Poll> polls;
  std::minstd_rand random;
};

/// Who waits for what in a cluster that cannot go on: one line for each set of threads that wait
/// alike.
std::string describeDeadlock(Cluster &cluster);

/// The functions the compiled kernels call.
extern const DeviceTable deviceTable;

} // namespace moejit::emulated

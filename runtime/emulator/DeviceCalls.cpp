// The table of functions behind the wrappers of Device.h, each on the fiber of the executing
// thread.
#include "runtime/emulator/Cluster.h"
#include "runtime/emulator/Numerics.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

namespace moejit::emulated {
namespace {

Fiber &self() { return Cluster::self(); }
/// The running thread, which is at `site` of the kernel.
Fiber &selfAt(const void *site) {
  Fiber &f = self();
  f.site = site;
  return f;
}
#define MOEJIT_CALLER selfAt(__builtin_return_address(0))

int threadIndex() { return self().thread; }
int blockIndex() { return self().block->index; }
int gridSize() { return static_cast<int>(self().cluster->launch.launch->blocks); }
int clusterRank() { return self().block->rank; }
int sharedBase() { return SharedMemory::base; }

int shuffle(int value, int lane) {
  Fiber &f = MOEJIT_CALLER;
  return f.cluster->warpCollective(f, WarpOp::Shuffle, "shfl_idx", value, lane);
}
int elect() {
  Fiber &f = MOEJIT_CALLER;
  return f.cluster->warpCollective(f, WarpOp::Elect, "elect_one", 0, 0);
}
void syncWarp() {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->warpCollective(f, WarpOp::Sync, "syncwarp", 0, 0);
}

void barSync(int id, int threads) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->barrier(f, id, threads, true);
}
void barArrive(int id, int threads) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->barrier(f, id, threads, false);
}
void clusterArrive() {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->clusterArrive(f);
}
void clusterWait() {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->clusterWait(f);
}
void setRegisters(int registers, int grow) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->setRegisters(f, registers, grow != 0);
}

void mbarrierInit(int address, int count) {
  Fiber &f = MOEJIT_CALLER;
  SharedMemory &shared = f.block->shared;
  if (address % 8)
    f.cluster->fail("mbarrier_init",
                    Text::format("address {} is not 8-byte aligned", SharedMemory::place(address)));
  if (const Mbarrier *known = shared.findBarrier(address)) {
    if (!shared.races.isOrdered(known->initThread, known->initClock, f.thread))
      f.cluster->fail("mbarrier_init",
                      Text::format("thread {} has initialised the mbarrier at {}: no barrier "
                                   "orders that before this",
                                   known->initThread, SharedMemory::place(address)));
  } else {
    if (const Text message = shared.refuseWrite(address, 8, f.thread); !message.empty())
      f.cluster->fail("mbarrier_init", message);
  }
  if (count < 1 || count > (1 << 20) - 1)
    f.cluster->fail("mbarrier_init", Text::format("count {} is not 1 to 2^20 - 1", count));
  Mbarrier &barrier = shared.initBarrier(address, f.thread);
  barrier.count = barrier.pending = count;
}

void mbarrierExpectTx(int address, int bytes) {
  Fiber &f = MOEJIT_CALLER;
  Mbarrier &barrier = f.cluster->barrierAt(*f.block, address, "mbarrier_expect_tx");
  if (bytes < 0 || barrier.txBytes + bytes > (1 << 20) - 1)
    f.cluster->fail("mbarrier_expect_tx",
                    Text::format("{} bytes on top of {} pending ones: the limit is 2^20 - 1", bytes,
                                 barrier.txBytes));
  barrier.txBytes += bytes;
  f.cluster->arrive(*f.block, barrier, "mbarrier_expect_tx");
}

void mbarrierArrive(int address) {
  Fiber &f = MOEJIT_CALLER;
  constexpr const char *op = "mbarrier_arrive";
  f.cluster->arrive(*f.block, f.cluster->barrierAt(*f.block, address, op), op);
}

void mbarrierArriveCluster(int address, int rank) {
  constexpr const char *op = "mbarrier_arrive_cluster";
  Fiber &f = MOEJIT_CALLER;
  if (rank < 0 || rank >= f.cluster->size())
    f.cluster->fail(op, Text::format("rank {} in a cluster of {}", rank, f.cluster->size()));
  Block &block = f.cluster->peer(rank);
  if (block.live == 0)
    f.cluster->fail(op, Text::format("block {} of the cluster has already ended", rank));
  Mbarrier &barrier = f.cluster->barrierAt(block, address, op);
  if (&block != f.block && !block.shared.isInitFenced(barrier))
    f.cluster->fail(op,
                    Text::format("the mbarrier at {} was initialised, but no fence_mbarrier_init "
                                 "has followed",
                                 SharedMemory::place(address)));
  f.cluster->arrive(block, barrier, op);
}

void mbarrierWait(int address, int parity, int ofCluster) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->waitBarrier(f, address, parity, ofCluster != 0);
}
void fenceMbarrierInit() {
  Fiber &f = MOEJIT_CALLER;
  f.block->shared.fenceInit(f.thread);
}
void fenceProxyAsync() {
  Fiber &f = MOEJIT_CALLER;
  f.block->shared.fenceProxy(f.thread);
}

void fenceProxyGlobal() {
  Fiber &f = MOEJIT_CALLER;
  f.block->shared.races.fence(f.thread);
}
void fenceDevice() {
  Fiber &f = MOEJIT_CALLER;
  f.vouched = f.cluster->launch.order.fence(f.cluster->actor(f));
}

void prefetchTensorMap(const TensorMap *map) {
  if (unpackTensorMap(*map).magic != PackedMap::expectedMagic)
    self().cluster->fail("prefetch_tensormap", "the tensor map was not made by the emulator");
}

void tmaLoad(int dst, const TensorMap *map, const int *coordinates, int rank, int barrier,
             int ctaMask, const char *op) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->load(f, dst, *map, coordinates, rank, barrier, ctaMask, op);
}

void wgmmaFence() {
  Fiber &f = MOEJIT_CALLER;
  f.block->warpgroups[f.thread / Warpgroup::threads].fence(f.thread % Warpgroup::threads);
}
void wgmmaCommit() {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->wgmmaCommit(f);
}
void wgmmaWait(int groups) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->wgmmaWait(f, groups);
}
void wgmma(float *registers, int n, int types, unsigned long long a, unsigned long long b,
           int accumulate) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->wgmma(f, registers, {a, b, n, types, accumulate != 0});
}

void loadShared(int address, int *to, int words, const char *op) {
  Fiber &f = MOEJIT_CALLER;
  SharedMemory &shared = f.block->shared;
  const int bytes = 4 * words;
  if (address % bytes)
    f.cluster->fail(op,
                    Text::format("{} is not {}-byte aligned", SharedMemory::place(address), bytes));
  if (const Text message = shared.refuseRead(address, bytes, f.thread); !message.empty())
    f.cluster->fail(op, message);
  std::memcpy(to, shared.at(address), bytes);
  f.cluster->tick(f);
}

int loadSharedByte(int address, const char *op) {
  Fiber &f = MOEJIT_CALLER;
  SharedMemory &shared = f.block->shared;
  if (const Text message = shared.refuseRead(address, 1, f.thread); !message.empty())
    f.cluster->fail(op, message);
  unsigned char value;
  std::memcpy(&value, shared.at(address), 1);
  f.cluster->tick(f);
  return value;
}

void storeShared(int address, const int *from, int words, const char *op) {
  Fiber &f = MOEJIT_CALLER;
  SharedMemory &shared = f.block->shared;
  const int bytes = 4 * words;
  if (address % bytes)
    f.cluster->fail(op,
                    Text::format("{} is not {}-byte aligned", SharedMemory::place(address), bytes));
  if (const Text message = shared.refuseWrite(address, bytes, f.thread); !message.empty())
    f.cluster->fail(op, message);
  shared.store(address, from, bytes, f.thread);
}

void storeAsync(int address, const int *words, int count, int barrier, int rank, const char *op) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->storeAsync(f, address, words, count, barrier, rank, op);
}

void storeMatrix(int address, const int *registers, int transposes) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->storeMatrix(f, address, registers, transposes != 0);
}
void loadMatrix(int address, int *to, int count, const char *op) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->loadMatrix(f, address, to, count, op);
}
void mma(float *d, const int *a, const int *b, int types, const char *op) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->mma(f, d, a, b, types, op);
}

void tmaStore(const TensorMap *map, const int *coordinates, int rank, int src, const char *op) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->storeTensor(f, *map, coordinates, rank, src, op);
}
void bulkCommit() {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->bulkCommit(f);
}
void bulkWait(int groups, int isRead) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->bulkWait(f, groups, isRead != 0);
}

void copyAsync(int dst, const void *p, long long offset, int bytes, int size, const char *op) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->copyAsync(f, dst, p, offset, bytes, size, op);
}
void copyAsyncCommit() {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->copyAsyncCommit(f);
}
void copyAsyncWait(int groups) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->copyAsyncWait(f, groups, "cp_async_wait");
}
void copyAsyncWaitAll() {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->copyAsyncWait(f, -1, "cp_async_wait_all");
}
void copyAsyncArrive(int barrier) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->copyAsyncArrive(f, barrier);
}

/// The grid after is run when this one has ended, and must wait whenever it starts.
void launchDependents() { MOEJIT_CALLER; }
void waitForGrid() {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->waitForGrid(f);
}

void loadGlobal(const void *p, long long offset, void *to, int bytes, const char *op) {
  Fiber &f = MOEJIT_CALLER;
  const Cluster::Place place = f.cluster->global(p, offset, bytes, false, op);
  const GlobalOrder &order = f.cluster->launch.order;
  const std::string_view name = op;
  const bool isReadOnly = name == "ld_global_f32" || name == "ld_global_u8";
  if (const Text message =
          order.load(f.cluster->actor(f), place.range, place.at, bytes, isReadOnly);
      !message.empty())
    f.cluster->fail(op, message);
  std::memcpy(to, place.address, bytes);
  if (bytes == 4 && order.isAtomic(place.range, place.at)) {
    const int value =
        order.staleValue(f.cluster->actor(f), reinterpret_cast<const int *>(place.address));
    std::memcpy(to, &value, 4);
  }
  f.cluster->tick(f);
}

void storeGlobal(void *p, long long offset, const void *from, int bytes, const char *op) {
  Fiber &f = MOEJIT_CALLER;
  const Cluster::Place place = f.cluster->global(p, offset, bytes, true, op);
  if (const Text message =
          f.cluster->launch.order.store(f.cluster->actor(f), place.range, place.at, bytes);
      !message.empty())
    f.cluster->fail(op, message);
  std::memcpy(place.address, from, bytes);
}

/// No other thread runs between the load and the store: a fiber gives way only in tick().
int atomicAddShared(int address, int value) {
  Fiber &f = MOEJIT_CALLER;
  const char *op = "atom_add_shared_i32";
  SharedMemory &shared = f.block->shared;
  if (address % 4)
    f.cluster->fail(op, Text::format("{} is not 4-byte aligned", SharedMemory::place(address)));
  if (const Text message = shared.refuseUpdate(address, 4, f.thread); !message.empty())
    f.cluster->fail(op, message);
  int old;
  std::memcpy(&old, shared.at(address), 4);
  const int sum = static_cast<int>(static_cast<uint32_t>(old) + static_cast<uint32_t>(value));
  shared.store(address, &sum, 4, f.thread);
  f.cluster->tick(f);
  return old;
}

int changeGlobal(Fiber &f, void *p, long long offset, int operand, const char *op,
                 int (*change)(int old, int operand)) {
  const Cluster::Place place = f.cluster->global(p, offset, 4, true, op);
  const int old = f.cluster->launch.order.change(f.cluster->actor(f), place.range, place.at,
                                                 reinterpret_cast<int *>(place.address), f.vouched,
                                                 change, operand);
  f.cluster->tick(f);
  return old;
}

int atomicAddGlobal(void *p, long long offset, int value) {
  return changeGlobal(
      MOEJIT_CALLER, p, offset, value, "atom_add_global_i32", [](int old, int operand) {
        return static_cast<int>(static_cast<uint32_t>(old) + static_cast<uint32_t>(operand));
      });
}

void reduceMaxGlobal(void *p, long long offset, long long value) {
  Fiber &f = MOEJIT_CALLER;
  auto *address = reinterpret_cast<long long *>(
      f.cluster->global(p, offset, 8, true, "red_max_global_i64").address);
  std::atomic_ref<long long> word(*address);
  long long old = word.load(std::memory_order_relaxed);
  while (old < value && !word.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
  }
  f.cluster->tick(f);
}

void waitGlobal(const void *p, long long offset, int value) {
  Fiber &f = MOEJIT_CALLER;
  f.cluster->waitGlobal(f, p, offset, value);
}

void raiseGlobal(void *p, long long offset, int value) {
  changeGlobal(MOEJIT_CALLER, p, offset, value, "red_max_global_i32",
               [](int old, int operand) { return std::max(old, operand); });
}

void undefined(const void *site, const char *what, long long a, long long b) {
  Fiber &f = selfAt(site);
  const std::string_view name = what;
  if (name == "/")
    f.cluster->fail("integer arithmetic", Text::format("{} / {}", a, b));
  if (name == "negated")
    f.cluster->fail("integer arithmetic", Text::format("{} negated overflows", a));
  f.cluster->fail("integer arithmetic", Text::format("{} {} {} overflows", a, what, b));
}

int convertBf16x2(float low, float high) {
  return static_cast<int>(roundToBf16(low) | static_cast<uint32_t>(roundToBf16(high)) << 16);
}
int convertF16x2(float low, float high) {
  return static_cast<int>(roundToF16(low) | static_cast<uint32_t>(roundToF16(high)) << 16);
}
int convertE4m3x2(float low, float high) { return roundToE4M3(low) | roundToE4M3(high) << 8; }
int convertE5m2x2(float low, float high) { return roundToE5M2(low) | roundToE5M2(high) << 8; }
float convertF32F16(int bits) { return widenF16(static_cast<uint16_t>(bits)); }

} // namespace

const DeviceTable deviceTable = {
#define MOEJIT_DEVICE_FUNCTION(result, name, parameters) name,
    MOEJIT_DEVICE_FUNCTIONS(MOEJIT_DEVICE_FUNCTION)
#undef MOEJIT_DEVICE_FUNCTION
};

} // namespace moejit::emulated

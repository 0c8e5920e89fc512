// What the wrappers of Device.h ask of the cluster: barriers, wgmma, checked global memory.
#include "runtime/emulator/Cluster.h"

namespace moejit::emulated {

void Cluster::barrier(Fiber &f, int id, int count, bool wait) {
  const char *op = wait ? "bar_sync" : "bar_arrive";
  if (id < 0 || id > 15 || count < 32 || count % 32 || count > threads)
    fail(op, Text::format("barrier {} of {} threads in a block of {}", id, count, threads));
  NamedBarrier &barrier = f.block->barriers[id];
  if (barrier.arrived > 0 && barrier.expected != count)
    fail(op, Text::format("barrier {} with {} threads, while others use it with {}", id, count,
                          barrier.expected));
  barrier.expected = count;
  RaceDetector &races = f.block->shared.races;
  races.release(f.thread, barrier.known);
  if (++barrier.arrived == count) {
    barrier.arrived = 0;
    for (const Fiber *waiter : barrier.waiters)
      races.acquire(waiter->thread, barrier.known);
    if (wait)
      races.acquire(f.thread, barrier.known);
    barrier.known.clear();
    wake(barrier.waiters);
  } else if (wait) {
    suspend(f, barrier.waiters, {Wait::Kind::NamedBarrier, id, count, op});
  }
}

void Cluster::clusterArrive(Fiber &f) {
  if (f.clusterArrived)
    fail("cluster_arrive", "the thread has arrived already and not waited since");
  f.clusterArrived = true;
  f.clusterPhase = clusterPhase;
  ++clusterArrived;
  releaseClusterBarrierIfDone();
}

void Cluster::clusterWait(Fiber &f) {
  if (!f.clusterArrived)
    fail("cluster_wait", "no cluster_arrive came before");
  while (clusterPhase == f.clusterPhase)
    suspend(f, clusterWaiters, {Wait::Kind::ClusterBarrier, 0, 0, "cluster_wait"});
  f.clusterArrived = false;
}

void Cluster::setRegisters(Fiber &f, int registers, bool grow) {
  const char *op = grow ? "setmaxnreg_inc" : "setmaxnreg_dec";
  if (registers < 24 || registers > 256 || registers % 8)
    fail(op, Text::format("{} registers are not a multiple of 8 from 24 to 256", registers));
  if (grow ? registers < f.registers : registers > f.registers)
    fail(op, Text::format("to {} registers from {}", registers, f.registers));
  const int more = registers - f.registers;
  while (grow && f.block->freeRegisters < more)
    suspend(f, f.block->registerWaiters, {Wait::Kind::Registers, more, registers, op});
  f.block->freeRegisters -= more;
  f.registers = registers;
  if (!grow)
    wake(f.block->registerWaiters);
}

Mbarrier &Cluster::barrierAt(Block &block, int address, const char *op) {
  const Fiber &f = self();
  if (address % 8)
    fail(op,
         Text::format("mbarrier address {} is not 8-byte aligned", SharedMemory::place(address)));
  Mbarrier *barrier = block.shared.findBarrier(address);
  if (!barrier)
    fail(op, Text::format("no mbarrier has been initialised at {} of block {}",
                          SharedMemory::place(address), block.index));
  if (&block == f.block &&
      !block.shared.races.isOrdered(barrier->initThread, barrier->initClock, f.thread))
    fail(op, Text::format("thread {} has initialised the mbarrier at {}: no barrier orders that "
                          "before this",
                          barrier->initThread, SharedMemory::place(address)));
  return *barrier;
}

void Cluster::arrive(Block &block, Mbarrier &barrier, const char *op) {
  if (barrier.pending == 0)
    fail(op, Text::format("more than {} arrivals in phase {} of the mbarrier at {}", barrier.count,
                          barrier.phase, SharedMemory::place(barrier.address)));
  --barrier.pending;
  const Fiber &f = self();
  if (f.block != &block && barrier.foreignArrived.empty())
    barrier.foreignArrived.resize(size());
  f.block->shared.races.release(
      f.thread, f.block == &block ? barrier.arrived : barrier.foreignArrived[f.block->rank]);
  if (const Text message = completePhaseIfDone(block.shared, barrier); !message.empty())
    fail(op, message);
}

void Cluster::waitBarrier(Fiber &f, int address, int parity, bool ofCluster) {
  const char *op = ofCluster ? "mbarrier_wait_cluster" : "mbarrier_wait";
  Mbarrier &barrier = barrierAt(*f.block, address, op);
  if (parity != 0 && parity != 1)
    fail(op, Text::format("parity {} is not 0 or 1", parity));
  while (static_cast<int>(barrier.phase & 1) == parity)
    suspend(f, barrier.waiters, {Wait::Kind::Mbarrier, address, parity, op});
  barrier.isAwaited = true;
  if (barrier.holdsStores && !ofCluster)
    fail(op, Text::format("a block of the cluster has stored words for the mbarrier at {}: a wait "
                          "of block scope does not order them (mbarrier_wait_cluster does)",
                          SharedMemory::place(address)));
  f.block->shared.races.acquire(f.thread, barrier.passed);
  for (size_t rank = 0; rank < barrier.foreignPassed.size(); ++rank)
    RaceDetector::join(f.block->foreign[rank], barrier.foreignPassed[rank]);
  f.block->shared.observe(barrier);
}

void Cluster::wgmma(Fiber &f, float *registers, const WgmmaShape &shape) {
  static constexpr const char *types[] = {"e4m3_e4m3", "e5m2_e4m3", "e4m3_e5m2", "e5m2_e5m2"};
  Warpgroup &warpgroup = f.block->warpgroups[f.thread / Warpgroup::threads];
  const bool isStrict = launch.options->strictOperands;
  const StrictOperands strict = {isStrict && !launch.launch->gathersRows,
                                 isStrict && !launch.launch->gathersColumns};
  const Text message =
      warpgroup.issue(f.thread % Warpgroup::threads, registers, shape, f.block->shared, strict);
  if (!message.empty())
    fail(Text::format("wgmma_m64n{}k32_{}", shape.n, types[shape.types]), message);
  if (f.thread % Warpgroup::threads == 0)
    launch.wgmmas.fetch_add(1, std::memory_order_relaxed);
}

void Cluster::wgmmaWait(Fiber &f, int groups) {
  Warpgroup &warpgroup = f.block->warpgroups[f.thread / Warpgroup::threads];
  const int thread = f.thread % Warpgroup::threads;
  const uint64_t needed = warpgroup.groupsNeeded(thread, groups);
  while (warpgroup.groupsComplete() < needed)
    suspend(f, warpgroup.waiters,
            {Wait::Kind::Wgmma, groups, static_cast<int>(needed), "wgmma_wait"});
  warpgroup.deliver(thread, needed);
}

void Cluster::waitGlobal(Fiber &f, const void *p, long long offset, int value) {
  const Place place = global(p, offset, 4, false, "wait_global_i32");
  auto *word = reinterpret_cast<int *>(place.address);
  const Poll poll = {&f, word, value};
  while (!poll.isOver()) {
    f.wait = {Wait::Kind::Global, value, static_cast<int>(place.at),
              launch.launch->ranges[place.range].name.c_str()};
    polls.push_back(poll);
    switchFiber(f.context, scheduler);
    f.wait = {};
  }
  launch.order.acquire(actor(f), word, value);
}

const MemoryRange *Cluster::rangeOf(const void *p) const {
  const MemoryRange *touching = nullptr;
  const char *address = static_cast<const char *>(p);
  for (const MemoryRange &range : launch.launch->ranges) {
    const char *base = static_cast<const char *>(range.base);
    if (address >= base && address < base + range.bytes)
      return &range;
    if (address == base + range.bytes && (address == base || !touching))
      touching = &range;
  }
  return touching;
}

void Cluster::waitForGrid(Fiber &f) {
  f.block->gridWaits.push_back({f.thread, f.block->shared.races.now(f.thread)});
}

void Cluster::touchGlobal(Fiber &f, size_t range, int64_t at, int bytes, bool write,
                          const char *op) {
  if (launch.footprint)
    launch.footprint->note(range, at, bytes, f.block->index, f.thread, write);
  if (!launch.before)
    return;
  const RaceDetector &races = f.block->shared.races;
  for (const auto &[thread, clock] : f.block->gridWaits)
    if (races.isOrdered(thread, clock, f.thread))
      return;
  const MemoryRange &memory = launch.launch->ranges[range];
  if (const Text message = launch.before->refuse(static_cast<const char *>(memory.base) + at, bytes,
                                                 write, memory.name, at);
      !message.empty())
    fail(op, message);
}

Cluster::Place Cluster::global(const void *p, long long offset, int bytes, bool write,
                               const char *op, int alignment) {
  const MemoryRange *range = rangeOf(p);
  if (!range)
    fail(op, Text::format("pointer {} belongs to no operand of the launch", p));
  const char *base = static_cast<const char *>(range->base);
  const char *address = static_cast<const char *>(p) + offset;
  const long long position = static_cast<const char *>(p) - base + offset;
  if (position < 0 || position + bytes > range->bytes)
    fail(op, Text::format("{} bytes at offset {} of {}, which has {} bytes", bytes, position,
                          range->name, range->bytes));
  if (const int64_t stride = range->strideBytes;
      stride > 0 && position % stride + bytes > range->rowBytes)
    fail(op,
         Text::format("{} bytes at offset {} of {} reach past the {} bytes of row {} (stride {})",
                      bytes, position, range->name, range->rowBytes, position / stride, stride));
  if (write && !range->writable)
    fail(op, Text::format("{} bytes at offset {} of {}, which the kernel may only read", bytes,
                          position, range->name));
  if (alignment == 0)
    alignment = bytes;
  if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(alignment))
    fail(op, Text::format("{} bytes at offset {} of {}: the address is not a multiple of {}", bytes,
                          position, range->name, alignment));
  const size_t index = static_cast<size_t>(range - launch.launch->ranges.data());
  touchGlobal(self(), index, position, bytes, write, op);
  return {const_cast<char *>(address), index, position};
}

} // namespace moejit::emulated

// The scheduler of one cluster: fibers, the ready queue, the clock and the delivery of asynchronous
// work.
#include "runtime/emulator/Cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace moejit::emulated {

static constinit thread_local Fiber *runningFiber = nullptr;

Fiber &Cluster::self() { return *runningFiber; }

void LaunchState::report(Error failure, const void *where) {
  const std::lock_guard lock(mutex);
  if (stop.exchange(true))
    return;
  error = std::move(failure);
  site = where;
}

void Cluster::fiberEntry() {
  enterFiber();
  Fiber &f = self();
  f.cluster->launch.entry(&deviceTable,
                          const_cast<void **>(f.cluster->launch.launch->arguments.data()));
  f.cluster->finish(f);
  // A finished fiber is never resumed.
  switchFiber(f.context, f.cluster->scheduler);
}

bool Cluster::reset(uint32_t index) {
  const EmulatedLaunch &l = *launch.launch;
  threads = static_cast<int>(l.threads);
  live = threads * static_cast<int>(l.cluster);
  if (!stacks.reserve(live, launch.options->stackBytes)) {
    launch.report({ErrorCode::Unavailable, fmt::format("no memory for {} thread stacks of {} bytes",
                                                       live, launch.options->stackBytes)});
    return false;
  }
  ready.clear();
  events.clear();
  loads.clear();
  freeLoads.clear();
  items.clear();
  freeItems.clear();
  clusterWaiters.clear();
  polls.clear();
  clusterPhase = 0;
  clusterArrived = 0;
  clock = 0;
  eventOrder = 0;
  steps = 0;
  random.seed(static_cast<uint32_t>(launch.options->seed * 2654435761u + index + 1));
  // Registers of a thread at launch: the file of 65536 shared by all threads, in units of 8.
  const int registers =
      std::min(255, 65536 / (threads * static_cast<int>(std::max(1u, l.blocksPerSm))) / 8 * 8);
  while (blocks.size() < l.cluster)
    blocks.push_back(std::make_unique<Block>());
  while (fibers.size() < static_cast<size_t>(live))
    fibers.emplace_back();
  for (uint32_t rank = 0; rank < l.cluster; ++rank) {
    Block &block = *blocks[rank];
    block.index = static_cast<int>(index * l.cluster + rank);
    block.rank = static_cast<int>(rank);
    block.live = threads;
    block.freeRegisters = 0;
    block.shared.reset(static_cast<int>(l.sharedBytes), threads);
    block.warps.resize(threads / 32);
    for (Warp &warp : block.warps) {
      warp.lanes = 0;
      warp.waiters.clear();
    }
    block.warpgroups.resize((threads + 127) / 128);
    for (size_t i = 0; i < block.warpgroups.size(); ++i)
      block.warpgroups[i].reset(static_cast<int>(i));
    block.copies.clear();
    block.stores.clear();
    block.gridWaits.clear();
    for (NamedBarrier &barrier : block.barriers) {
      barrier.arrived = 0;
      barrier.known.clear();
      barrier.waiters.clear();
    }
    block.registerWaiters.clear();
    block.acquired.clear();
    block.observed.clear();
    block.foreign.assign(launch.launch->cluster, {});
    for (int thread = 0; thread < threads; ++thread) {
      const size_t number = static_cast<size_t>(rank) * threads + thread;
      Fiber &f = fibers[number];
      f = {};
      f.cluster = this;
      f.block = &block;
      f.thread = thread;
      f.registers = registers;
      // Staggered starts keep equal frames of different fibers out of the same cache sets.
      prepareFiber(f.context, stacks.stack(number), stacks.stackBytes() - number % 32 * 128,
                   &Cluster::fiberEntry);
      ready.push_back(&f);
    }
  }
  return true;
}

Fiber *Cluster::nextReady() {
  if (launch.options->seed != 0)
    std::swap(ready.front(), ready[random() % ready.size()]);
  Fiber *f = ready.front();
  ready.pop_front();
  return f;
}

bool Cluster::run(uint32_t index) {
  if (!reset(index))
    return false;
  const EmulatorOptions &options = *launch.options;
  while (true) {
    while (!events.empty() && (events.front().due <= clock || ready.empty())) {
      const Event event = events.front();
      std::pop_heap(events.begin(), events.end());
      events.pop_back();
      clock = std::max(clock, event.due);
      if (!deliver(event))
        return false;
    }
    if (ready.empty() && !polls.empty() && !wakePolls() && !awaitOthers())
      return false;
    if (ready.empty())
      break;
    Fiber *f = nextReady();
    ++clock;
    ++steps;
    runningFiber = f;
    switchFiber(scheduler, f->context);
    if (launch.stop.load(std::memory_order_relaxed))
      return false;
    if (options.maxSteps > 0 && steps >= options.maxSteps)
      return stopWith(
          fmt::format("cluster {} has not ended after {} thread switches", index, steps));
    if (options.maxSeconds > 0 && steps % 4096 == 0 &&
        std::chrono::steady_clock::now() > launch.deadline)
      return stopWith(fmt::format("the launch has not ended after {} seconds", options.maxSeconds));
  }
  launch.steps += steps;
  if (live == 0)
    return true;
  return stopWith(
      fmt::format("deadlock in cluster {}: {} threads wait and nothing is on its way", index, live),
      {describeDeadlock(*this)});
}

bool Poll::isOver() const {
  return std::atomic_ref<int>(*word).load(std::memory_order_acquire) >= value;
}

/// Makes threads ready whose word has come to what they wait for; whether there are any.
bool Cluster::wakePolls() {
  const auto over = std::stable_partition(polls.begin(), polls.end(),
                                          [](const Poll &poll) { return !poll.isOver(); });
  for (auto poll = over; poll != polls.end(); ++poll)
    ready.push_back(poll->fiber);
  polls.erase(over, polls.end());
  return !ready.empty();
}

/// Sleeps until other clusters have brought a word to what a thread here waits for. False when the
/// launch is stopped, or when every worker sleeps here and no word is there yet: nobody is left to
/// change one.
bool Cluster::awaitOthers() {
  const auto isOver = [](const Poll &poll) { return poll.isOver(); };
  std::unique_lock lock(launch.mutex);
  launch.idle.push_back(this);
  // The polls of an idle cluster change under the mutex alone.
  bool isStuck = false;
  while (!launch.stop && !isStuck && !wakePolls()) {
    isStuck = launch.idle.size() == launch.workers &&
              std::none_of(launch.idle.begin(), launch.idle.end(), [&](const Cluster *cluster) {
                return std::any_of(cluster->polls.begin(), cluster->polls.end(), isOver);
              });
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(isStuck ? 0 : 20));
    lock.lock();
  }
  std::erase(launch.idle, this);
  lock.unlock();
  if (isStuck)
    return stopWith(fmt::format("deadlock in cluster {}: {} threads wait, for blocks that wait too "
                                "or start only when others end",
                                blocks.front()->index / size(), live),
                    {describeDeadlock(*this)});
  return !launch.stop;
}

bool Cluster::stopWith(std::string message, std::vector<std::string> notes) {
  launch.report({ErrorCode::Internal, std::move(message), std::move(notes)});
  return false;
}

void Cluster::fail(const Text &op, const Text &what) {
  Fiber &f = self();
  launch.report({ErrorCode::Internal,
                 fmt::format("block {} thread {} (warp {}, lane {}): {}: {}", f.block->index,
                             f.thread, f.thread / 32, f.thread % 32, op, what)},
                f.site);
  switchFiber(f.context, scheduler);
  __builtin_unreachable(); // a stopped launch resumes no fiber
}

void Cluster::suspend(Fiber &f, WaitList &list, Wait wait) {
  f.wait = wait;
  list.push_back(&f);
  switchFiber(f.context, scheduler);
  f.wait = {};
}

void Cluster::wake(WaitList &list) {
  for (Fiber *f : list)
    ready.push_back(f);
  list.clear();
}

void Cluster::tick(Fiber &f) {
  if (++ticks % 8192 != 0)
    return;
  ready.push_back(&f);
  switchFiber(f.context, scheduler);
}

void Cluster::finish(Fiber &f) {
  Block &block = *f.block;
  if (block.warpgroups[f.thread / Warpgroup::threads].isPending(f.thread % Warpgroup::threads))
    fail("exit",
         "the thread ends with a wgmma in flight: wgmma_commit and wgmma_wait<0> must come first");
  if (const uint64_t count = block.stores.empty() ? 0 : block.stores[f.thread].readsUnknown())
    fail("exit",
         Text::format("the thread ends, and has not waited until {} of its TMA stores have read "
                      "shared memory: bulk_commit and bulk_wait_read<0> must come first",
                      count));
  f.done = true;
  --live;
  if (--block.live == 0 && block.shared.unobservedLoads() > 0)
    fail("exit",
         Text::format("the block ends, and nobody has waited for {} TMA loads into its shared "
                      "memory",
                      block.shared.unobservedLoads()));
  releaseClusterBarrierIfDone();
}

void Cluster::schedule(Event::Kind kind, uint32_t item, int latency) {
  if (launch.options->seed != 0)
    latency = static_cast<int>(random() % (8u * static_cast<uint32_t>(latency) + 1));
  events.push_back({clock + static_cast<uint64_t>(latency), eventOrder++, kind, item});
  std::push_heap(events.begin(), events.end());
}

bool Cluster::deliver(const Event &event) {
  if (event.kind == Event::Kind::Load) {
    const bool delivered = deliverLoad(loads[event.item]);
    freeLoads.push_back(event.item);
    return delivered;
  }
  if (event.kind != Event::Kind::Wgmma) {
    const PendingItem item = items[event.item];
    freeItems.push_back(event.item);
    if (event.kind == Event::Kind::Copy)
      return deliverCopy(item);
    event.kind == Event::Kind::StoreRead ? readStore(item) : writeStore(item);
    return true;
  }
  Block &block = *blocks[event.item / 64];
  Warpgroup &warpgroup = block.warpgroups[event.item % 64];
  warpgroup.completeGroup(block.shared);
  wake(warpgroup.waiters);
  return true;
}

uint32_t Cluster::addItem(const PendingItem &item) {
  if (freeItems.empty()) {
    items.push_back(item);
    return static_cast<uint32_t>(items.size() - 1);
  }
  const uint32_t index = freeItems.back();
  freeItems.pop_back();
  items[index] = item;
  return index;
}

bool Cluster::deliverLoad(const PendingLoad &load) {
  Block &block = *blocks[load.rank];
  const auto refuse = [&](std::string what) {
    return stopWith(fmt::format("block {} thread {}: {}: at delivery to block {}: {}",
                                load.issuer->index, load.thread, load.op, block.index, what));
  };
  Mbarrier *barrier = block.shared.findBarrier(load.barrier);
  if (!barrier)
    return refuse(fmt::format("no mbarrier at {}", SharedMemory::place(load.barrier)));
  if (load.numWords)
    std::memcpy(block.shared.at(load.dst), load.words.data(), static_cast<size_t>(load.bytes()));
  else
    copyBox(load.map, load.coordinates, block.shared, load.dst);
  barrier->holdsStores |= load.numWords > 0;
  barrier->txBytes -= load.bytes();
  barrier->landed.push_back({load.dst, load.bytes()});
  if (const Text message = completePhaseIfDone(block.shared, *barrier); !message.empty())
    return refuse(std::string(message.view()));
  return true;
}

Text Cluster::completePhaseIfDone(SharedMemory &shared, Mbarrier &barrier) {
  if (barrier.pending != 0 || barrier.txBytes != 0)
    return {};
  // A parity tells no more than two phases apart.
  if (!barrier.isAwaited)
    return Text::format("phase {} of the mbarrier at {} completes, and no thread has waited for "
                        "phase {}",
                        barrier.phase, SharedMemory::place(barrier.address), barrier.phase - 1);
  shared.completePhase(barrier);
  barrier.isAwaited = !barrier.waiters.empty();
  wake(barrier.waiters);
  return {};
}

void Cluster::releaseClusterBarrierIfDone() {
  if (clusterArrived == 0 || clusterArrived < live)
    return;
  clusterArrived = 0;
  ++clusterPhase;
  for (uint32_t rank = 0; rank < launch.launch->cluster; ++rank)
    blocks[rank]->shared.races.meet(0, threads);
  for (int rank = 0; rank < size(); ++rank)
    for (int other = 0; other < size(); ++other)
      if (other != rank)
        blocks[rank]->foreign[other] = blocks[other]->shared.races.everything();
  wake(clusterWaiters);
}

const MemoryRange &Cluster::tensorRange(const PackedMap &map, const char *op) {
  const MemoryRange *range = rangeOf(reinterpret_cast<const void *>(map.address));
  if (!range)
    fail(op, Text::format("the tensor map's address {:#x} belongs to no operand of the launch",
                          map.address));
  const uint64_t end =
      reinterpret_cast<uint64_t>(range->base) + static_cast<uint64_t>(range->bytes);
  if (map.address + map.tensorBytes() > end)
    fail(op, Text::format("the tensor of the map ends {} bytes past the end of {}",
                          map.address + map.tensorBytes() - end, range->name));
  return *range;
}

void Cluster::load(Fiber &f, int dst, const TensorMap &packed, const int *coordinates, int rank,
                   int barrierAddress, int ctaMask, const char *op) {
  const PackedMap map = unpackTensorMap(packed);
  if (const Text message = refuseBox(map, coordinates, rank, dst, BoxUse::Load); !message.empty())
    fail(op, message);
  const MemoryRange &range = tensorRange(map, op);
  if (range.writable || launch.before || launch.footprint) {
    const size_t index = static_cast<size_t>(&range - launch.launch->ranges.data());
    const int64_t base = static_cast<int64_t>(map.address) - reinterpret_cast<int64_t>(range.base);
    const int rows = boxRows(map);
    for (int row = 0; row < rows; ++row) {
      const BoxRow inside = boxRow(map, coordinates, row);
      const int bytes = static_cast<int>(inside.end - inside.begin);
      touchGlobal(f, index, base + inside.begin, bytes, false, op);
      if (!range.writable)
        continue;
      if (const Text message = launch.order.copy(actor(f), index, base + inside.begin, bytes);
          !message.empty())
        fail(op, message);
    }
  }
  const bool isMulticast = ctaMask >= 0;
  if (isMulticast && (ctaMask == 0 || ctaMask >> size()))
    fail(op, Text::format("block mask {:#x} in a cluster of {}", ctaMask, size()));
  PendingLoad pending = {map, {}, dst, barrierAddress, 0, f.block, f.thread, op};
  std::copy_n(coordinates, rank, pending.coordinates.begin());
  for (int target = 0; target < size(); ++target) {
    if (isMulticast ? !(ctaMask >> target & 1) : target != f.block->rank)
      continue;
    pending.rank = target;
    send(f, pending);
    launch.tmaLoads.fetch_add(1, std::memory_order_relaxed);
    launch.tmaBytes.fetch_add(pending.bytes(), std::memory_order_relaxed);
  }
}

void Cluster::storeAsync(Fiber &f, int address, const int *words, int count, int barrier, int rank,
                         const char *op) {
  if (rank < 0 || rank >= size())
    fail(op, Text::format("rank {} in a cluster of {}", rank, size()));
  if (address % (4 * count))
    fail(op, Text::format("address {} is not a multiple of {}", SharedMemory::place(address),
                          4 * count));
  PendingLoad pending = {};
  pending.dst = address;
  pending.barrier = barrier;
  pending.rank = rank;
  pending.issuer = f.block;
  pending.thread = f.thread;
  pending.op = op;
  pending.numWords = count;
  std::copy_n(words, count, pending.words.begin());
  send(f, pending);
}

/// Sends `pending` on its way, unless what lies at its destination forbids that.
void Cluster::send(Fiber &f, const PendingLoad &pending) {
  Block &block = *blocks[pending.rank];
  if (block.live == 0)
    fail(pending.op, Text::format("block {} of the cluster has already ended", pending.rank));
  if (const Text message = block.shared.refuseAsyncWrite(pending.dst, pending.bytes(),
                                                         &block == f.block ? f.thread : -1,
                                                         f.block->foreign[block.rank]);
      !message.empty())
    fail(pending.op, message);
  const Mbarrier &barrier = barrierAt(block, pending.barrier, pending.op);
  if (!block.shared.isInitFenced(barrier))
    fail(pending.op,
         Text::format("the mbarrier at {} was initialised, but no fence_mbarrier_init has followed",
                      SharedMemory::place(pending.barrier)));
  block.shared.startLoad(pending.dst, pending.bytes());
  uint32_t item;
  if (freeLoads.empty()) {
    item = static_cast<uint32_t>(loads.size());
    loads.emplace_back();
  } else {
    item = freeLoads.back();
    freeLoads.pop_back();
  }
  loads[item] = pending;
  schedule(Event::Kind::Load, item, launch.options->loadLatency);
}

void Cluster::wgmmaCommit(Fiber &f) {
  Warpgroup &warpgroup = f.block->warpgroups[f.thread / Warpgroup::threads];
  bool isWhole = false;
  if (const Text message = warpgroup.commit(f.thread % Warpgroup::threads, isWhole);
      !message.empty())
    fail("wgmma_commit", message);
  if (isWhole)
    schedule(Event::Kind::Wgmma,
             static_cast<uint32_t>(f.block->rank * 64 + f.thread / Warpgroup::threads),
             launch.options->wgmmaLatency);
}

} // namespace moejit::emulated

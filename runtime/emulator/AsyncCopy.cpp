// cp.async: issue, landing, groups, and arrivals at mbarriers (PTX ISA, Data Movement: Non-bulk
// copy). The copies write through the generic proxy; what one of them writes is the issuing
// thread's store at the time of its wait.
#include "runtime/emulator/Cluster.h"

#include <cstring>

namespace moejit::emulated {

void Cluster::copyAsync(Fiber &f, int dst, const void *p, long long offset, int bytes, int size,
                        const char *op) {
  if (size < 0 || size > bytes)
    fail(op, Text::format("{} bytes of source in a copy of {}", size, bytes));
  if (dst % bytes)
    fail(op,
         Text::format("destination {} is not {}-byte aligned", SharedMemory::place(dst), bytes));
  const char *source = static_cast<const char *>(p) + offset;
  if (reinterpret_cast<uintptr_t>(source) % static_cast<uintptr_t>(bytes))
    fail(op, Text::format("{} bytes at offset {}: the address is not a multiple of {}", bytes,
                          offset, bytes));
  // A copy of nothing reads nothing, wherever it points.
  if (size > 0) {
    const Place place = global(p, offset, size, false, op, /*alignment=*/1);
    if (const Text message = launch.order.load(actor(f), place.range, place.at, size, false);
        !message.empty())
      fail(op, message);
  }
  SharedMemory &shared = f.block->shared;
  if (const Text message = shared.refuseWrite(dst, bytes, f.thread); !message.empty())
    fail(op, message);
  shared.startCopy(dst, bytes, f.thread);
  const uint64_t number =
      f.block->copiesOf(f.thread).copies.issue({dst, bytes, size, source, false, 0});
  schedule(Event::Kind::Copy, pendingItem(f, number), launch.options->loadLatency);
  tick(f);
}

void Cluster::copyAsyncCommit(Fiber &f) { f.block->copiesOf(f.thread).copies.commit(); }

void Cluster::copyAsyncWait(Fiber &f, int pending, const char *op) {
  CommitGroups<AsyncCopy> &copies = f.block->copiesOf(f.thread).copies;
  const uint64_t needed = pending < 0 ? copies.issued() : copies.needed(pending);
  while (!copies.allBefore(needed, [](const AsyncCopy &copy) { return copy.isLanded; }))
    suspend(f, copies.waiters, {Wait::Kind::Copies, pending, 0, op});
  while (copies.firstKept() < needed) {
    const AsyncCopy copy = copies.at(copies.firstKept());
    if (copy.barrier != 0)
      learnOfBarrier(f, copy);
    else
      f.block->shared.finishCopy(copy.dst, copy.bytes, f.thread);
    copies.forgetFirst();
  }
}

/// The thread has waited for a copy of which all others learn by an mbarrier.
void Cluster::learnOfBarrier(Fiber &f, const AsyncCopy &copy) {
  SharedMemory &shared = f.block->shared;
  const auto tell = [&](std::vector<LandedBox> &boxes) {
    for (LandedBox &box : boxes)
      if (box.address == copy.dst && box.isGeneric) {
        box.knownBy = f.thread;
        return true;
      }
    return false;
  };
  bool isDelivered = !tell(shared.findBarrier(copy.barrier)->landed);
  for (PendingArrival &arrival : f.block->copiesOf(f.thread).arrivals)
    isDelivered = isDelivered && !tell(arrival.boxes);
  if (*shared.stateAt(copy.dst) & SharedMemory::copying)
    shared.setState(copy.dst, copy.bytes, SharedMemory::written | SharedMemory::generic);
  if (const auto last = shared.races.writerOf(copy.dst - SharedMemory::base);
      isDelivered && shared.races.isCopy(last.first))
    shared.races.learn(f.thread, last);
}

void Cluster::copyAsyncArrive(Fiber &f, int address) {
  const char *op = "cp_async_arrive";
  Block &block = *f.block;
  barrierAt(block, address, op);
  AsyncCopies &own = block.copiesOf(f.thread);
  PendingArrival &arrival = own.arrivals.emplace_back();
  arrival.end = own.copies.issued();
  arrival.barrier = address;
  block.shared.races.release(f.thread, arrival.known);
  for (uint64_t number = own.copies.firstKept(); number < arrival.end; ++number) {
    AsyncCopy &copy = own.copies.at(number);
    if (copy.barrier == 0)
      arrival.boxes.push_back({copy.dst, copy.bytes, /*isGeneric=*/true});
    copy.barrier = address;
  }
  if (const Text message = arriveForCopies(block, f.thread); !message.empty())
    fail(op, message);
}

/// Makes the arrivals of `thread` whose copies have all landed; says what is wrong with one.
Text Cluster::arriveForCopies(Block &block, int thread) {
  AsyncCopies &own = block.copies[thread];
  // Later ones wait for the copies of earlier ones too.
  while (!own.arrivals.empty() &&
         own.copies.allBefore(own.arrivals.front().end,
                              [](const AsyncCopy &copy) { return copy.isLanded; })) {
    PendingArrival &arrival = own.arrivals.front();
    Mbarrier *barrier = block.shared.findBarrier(arrival.barrier);
    if (barrier->pending == 0)
      return Text::format("more than {} arrivals in phase {} of the mbarrier at {}", barrier->count,
                          barrier->phase, SharedMemory::place(barrier->address));
    --barrier->pending;
    RaceDetector::join(barrier->arrived, arrival.known);
    barrier->landed.insert(barrier->landed.end(), arrival.boxes.begin(), arrival.boxes.end());
    own.arrivals.erase(own.arrivals.begin());
    if (const Text message = completePhaseIfDone(block.shared, *barrier); !message.empty())
      return message;
  }
  return {};
}

bool Cluster::deliverCopy(const PendingItem &item) {
  Block &block = *blocks[item.rank];
  AsyncCopies &own = block.copies[item.thread];
  AsyncCopy &copy = own.copies.at(item.number);
  uint8_t bytes[16] = {};
  std::memcpy(bytes, copy.source, copy.size);
  std::memcpy(block.shared.at(copy.dst), bytes, copy.bytes);
  copy.isLanded = true;
  if (const Text message = arriveForCopies(block, item.thread); !message.empty())
    return stopWith(fmt::format("block {} thread {}: cp_async_arrive: {}", block.index, item.thread,
                                message.view()));
  wake(own.copies.waiters);
  return true;
}

} // namespace moejit::emulated

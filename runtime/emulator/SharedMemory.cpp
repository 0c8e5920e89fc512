// Bytes, byte states and mbarriers of one block's shared memory.
#include "runtime/emulator/SharedMemory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace moejit::emulated {

const char *const loadingText = "a TMA load whose mbarrier no thread of the block has waited for";

void SharedMemory::reset(int bytes, int threads) {
  // 0xcb everywhere: as fp8, bf16 or f32 it is a large, recognisable number, never a plausible
  // zero.
  data.assign(bytes, 0xcb);
  state.assign(bytes, 0);
  writers.assign(bytes / 4 + 1, {});
  barrierIndex.assign(bytes / 8 + 1, -1);
  barriers.clear();
  proxyFences.assign(threads, 0);
  initFences.assign(threads, 0);
  loads = 0;
  operandReads.clear();
  storeReads.clear();
  races.reset(bytes, threads);
}

Text SharedMemory::place(int address) {
  if (address < base)
    return Text::format("[shared_base - {:#x}]", static_cast<int64_t>(base) - address);
  return Text::format("[shared_base + {:#x}]", address - base);
}

Text SharedMemory::outside(int address, int bytes) const {
  if (contains(address, bytes))
    return {};
  return Text::format("{} bytes at {} are outside the block's {} bytes of shared memory", bytes,
                      place(address), data.size());
}

Text SharedMemory::readerConflict(int address, int bytes) const {
  for (const OperandRead &read : operandReads)
    if (address < read.high && read.low < address + bytes)
      return Text::format("{} bytes at {} overwrite an operand {}..{} that a wgmma of warpgroup {} "
                          "(group {}) still reads: wgmma_wait must come first",
                          bytes, place(address), place(read.low), place(read.high), read.warpgroup,
                          read.group);
  for (const StoreRead &read : storeReads)
    if (address < read.high && read.low < address + bytes)
      return Text::format("{} bytes at {} overwrite {}..{}, which a TMA store of thread {} still "
                          "reads: its bulk_wait_read must come first",
                          bytes, place(address), place(read.low), place(read.high), read.thread);
  return {};
}

/// "[shared_base + 0x10], the destination of …".
Text SharedMemory::destination(int address) const {
  if (*stateAt(address) & copying)
    return Text::format("{}, the destination of a cp.async of thread {}, which has not been waited "
                        "for",
                        place(address), writers[(address - base) / 4].thread);
  return Text::format("{}, the destination of {}", place(address), loadingText);
}

/// What bytes that are to be read or written must not be.
Text SharedMemory::misuse(const char *verb, int address, int bytes, bool needsValue) const {
  if (const Text message = outside(address, bytes); !message.empty())
    return message;
  for (int i = 0; i < bytes; ++i) {
    const uint8_t s = state[address - base + i];
    if (s & (loading | copying))
      return Text::format("{} {}", verb, destination(address + i));
    if (s & barrier)
      return Text::format("{} {}, which belongs to an mbarrier", verb, place(address + i));
    if (needsValue && !(s & written))
      return Text::format("{} {}, which nothing has written", verb, place(address + i));
  }
  return {};
}

Text SharedMemory::refuseRead(int address, int bytes, int thread) {
  const Text message = misuse("reads", address, bytes, /*needsValue=*/true);
  return message.empty() ? races.read(address - base, bytes, thread) : message;
}

Text SharedMemory::refuseWrite(int address, int bytes, int thread) {
  if (const Text message = misuse("writes", address, bytes, /*needsValue=*/false); !message.empty())
    return message;
  const Text message = readerConflict(address, bytes);
  return message.empty() ? races.write(address - base, bytes, thread) : message;
}

Text SharedMemory::refuseUpdate(int address, int bytes, int thread) {
  if (const Text message = misuse("changes", address, bytes, /*needsValue=*/true); !message.empty())
    return message;
  const Text message = readerConflict(address, bytes);
  return message.empty() ? races.update(address - base, bytes, thread) : message;
}

Text SharedMemory::refuseAsyncWrite(int address, int bytes, int thread, const VectorClock &known) {
  if (const Text message = outside(address, bytes); !message.empty())
    return message;
  const uint8_t *s = stateAt(address);
  uint8_t all = 0;
  for (int i = 0; i < bytes; ++i)
    all |= s[i];
  for (int i = 0; i < bytes && all & (loading | copying | barrier); ++i)
    if (s[i] & (loading | copying | barrier))
      return s[i] & barrier
                 ? Text::format("writes {}, which belongs to an mbarrier", place(address + i))
                 : Text::format("writes {}", destination(address + i));
  if (const Text message = readerConflict(address, bytes); !message.empty())
    return message;
  return thread >= 0 ? races.copy(address - base, bytes, thread)
                     : races.copyFrom(address - base, bytes, known);
}

Text SharedMemory::refuseAsyncRead(int address, int bytes, int thread) {
  if (const Text message = refuseRead(address, bytes, thread); !message.empty())
    return message;
  for (int word = address; word < address + bytes; word += 4) {
    const auto [lane, clock] = races.writerOf(word - base);
    if (*stateAt(word) & generic && lane >= 0 && !races.isFencedShared(lane, clock, thread))
      return Text::format("reads {}, which was written by {}: no fence_proxy_async lies between "
                          "the two",
                          place(word), lane == thread ? "this thread's own store" : "a store");
  }
  return {};
}

bool SharedMemory::isFenced(int address, int first, int count) const {
  const auto [lane, clock] = races.writerOf(address - base);
  if (!races.isCopy(lane)) {
    const WriterMark mark = writers[(address - base) / 4];
    return mark.fences < proxyFences[mark.thread];
  }
  for (int thread = first; thread < first + count; ++thread)
    if (!races.isFencedShared(lane, clock, thread))
      return false;
  return true;
}

void SharedMemory::store(int address, const void *from, int bytes, int thread) {
  std::memcpy(at(address), from, bytes);
  std::memset(stateAt(address), written | generic, bytes);
  for (int i = 0; i < bytes; i += 4)
    writers[(address + i - base) / 4] = {proxyFences[thread], static_cast<uint16_t>(thread)};
}

void SharedMemory::setState(int address, int bytes, uint8_t value) {
  std::memset(stateAt(address), value, bytes);
}

Mbarrier &SharedMemory::initBarrier(int address, int thread) {
  int32_t &index = barrierIndex[(address - base) / 8];
  if (index < 0) {
    index = static_cast<int32_t>(barriers.size());
    barriers.emplace_back();
  }
  setState(address, 8, barrier);
  Mbarrier &b = barriers[index];
  b = {};
  b.address = address;
  b.number = index;
  b.initThread = thread;
  b.initClock = races.now(thread);
  b.initFence = initFences[thread] + proxyFences[thread];
  return b;
}

void SharedMemory::startLoad(int address, int bytes) {
  uint8_t *s = stateAt(address);
  for (int i = 0; i < bytes; ++i)
    s[i] |= loading;
  ++loads;
}

void SharedMemory::startCopy(int address, int bytes, int thread) {
  uint8_t *s = stateAt(address);
  for (int i = 0; i < bytes; ++i)
    s[i] |= copying;
  for (int i = 0; i < bytes; i += 4)
    writers[(address + i - base) / 4].thread = static_cast<uint16_t>(thread);
}

void SharedMemory::finishCopy(int address, int bytes, int thread) {
  setState(address, bytes, written | generic);
  for (int i = 0; i < bytes; i += 4)
    writers[(address + i - base) / 4] = {proxyFences[thread], static_cast<uint16_t>(thread)};
  races.noteWrite(address - base, bytes, thread);
}

void SharedMemory::completePhase(Mbarrier &barrier) {
  ++barrier.phase;
  RaceDetector::join(barrier.passed, barrier.arrived);
  barrier.arrived.clear();
  barrier.foreignPassed.resize(barrier.foreignArrived.size());
  for (size_t rank = 0; rank < barrier.foreignArrived.size(); ++rank) {
    RaceDetector::join(barrier.foreignPassed[rank], barrier.foreignArrived[rank]);
    barrier.foreignArrived[rank].clear();
  }
  if (!barrier.landed.empty()) {
    const auto delivery = races.deliver(barrier.number, barrier.passed);
    for (const LandedBox &box : barrier.landed) {
      races.noteDelivery(box.address - base, box.bytes, delivery);
      if (box.knownBy >= 0)
        races.learn(box.knownBy, delivery);
    }
  }
  barrier.complete.insert(barrier.complete.end(), barrier.landed.begin(), barrier.landed.end());
  barrier.landed.clear();
  barrier.pending = barrier.count;
}

void SharedMemory::observe(Mbarrier &barrier) {
  for (const LandedBox &box : barrier.complete) {
    setState(box.address, box.bytes, box.isGeneric ? written | generic : written);
    loads -= !box.isGeneric;
  }
  barrier.complete.clear();
}

Mbarrier *SharedMemory::findBarrier(int address) {
  if (address % 8 != 0 || !contains(address, 8))
    return nullptr;
  const int32_t index = barrierIndex[(address - base) / 8];
  return index < 0 ? nullptr : &barriers[index];
}

} // namespace moejit::emulated

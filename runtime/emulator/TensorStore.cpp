// TMA stores: issue, the two steps of their way (the source is read, the tensor is written), and
// bulk groups (PTX ISA, Data Movement: cp.async.bulk.tensor, cp.async.bulk.wait_group). They read
// and write through the async proxy.
#include "runtime/emulator/Cluster.h"

#include <algorithm>
#include <cstring>

namespace moejit::emulated {

/// Calls `use(address, column)` for each 16 bytes of row `row` of the box at `src` that are stored;
/// `column` is their distance from the row's first byte.
template <typename Use>
static void forEachChunk(const TensorStore &store, int row, const Use &use) {
  const PackedMap &map = store.map;
  const BoxRow stored = storedRow(map, store.coordinates.data(), row);
  const int inner = map.box[0] * map.elementBytes;
  for (int column = 0; column < static_cast<int>(stored.end - stored.begin); column += 16)
    use(swizzled(store.src + row * inner + column, swizzleSpan(map)), column);
}

void Cluster::storeTensor(Fiber &f, const TensorMap &packed, const int *coordinates, int rank,
                          int src, const char *op) {
  // What fails here is never destroyed, and must own no memory: `image` is still empty.
  TensorStore store;
  store.map = unpackTensorMap(packed);
  const PackedMap &map = store.map;
  if (const Text message = refuseBox(map, coordinates, rank, src, BoxUse::Store); !message.empty())
    fail(op, message);
  std::copy_n(coordinates, rank, store.coordinates.begin());
  store.src = src;
  const MemoryRange &range = tensorRange(map, op);
  if (!range.writable)
    fail(op, Text::format("a box of {}, which the kernel may only read", range.name));
  SharedMemory &shared = f.block->shared;
  if (!shared.contains(src, map.boxBytes()))
    fail(op, Text::format("{} bytes at {} are outside the block's {} bytes of shared memory",
                          map.boxBytes(), SharedMemory::place(src), shared.bytes()));
  store.range = static_cast<size_t>(&range - launch.launch->ranges.data());
  store.base = static_cast<int64_t>(map.address) - reinterpret_cast<int64_t>(range.base);
  for (int row = 0; row < boxRows(map); ++row) {
    const BoxRow stored = storedRow(map, coordinates, row);
    const int bytes = static_cast<int>(stored.end - stored.begin);
    if (bytes == 0)
      continue;
    Text message;
    forEachChunk(store, row, [&](int address, int) {
      if (message.empty())
        message = shared.refuseAsyncRead(address, 16, f.thread);
    });
    if (!message.empty())
      fail(op, message);
    const int64_t at = store.base + stored.begin;
    if (at + bytes > range.bytes)
      fail(op, Text::format("{} bytes at offset {} of {}, which has {} bytes: a store writes whole "
                            "16 bytes",
                            bytes, at, range.name, range.bytes));
    if (const int64_t stride = range.strideBytes;
        stride > 0 && at % stride + bytes > range.rowBytes)
      fail(op, Text::format(
                   "{} bytes at offset {} of {} reach past the {} bytes of row {} (stride {}): "
                   "a store writes whole 16 bytes",
                   bytes, at, range.name, range.rowBytes, at / stride, stride));
    touchGlobal(f, store.range, at, bytes, true, op);
    message = launch.order.storeAsync(actor(f), store.range, at, bytes);
    if (!message.empty())
      fail(op, message);
  }
  const int bytes = map.boxBytes();
  const uint64_t number = f.block->storesOf(f.thread).stores.issue(std::move(store));
  shared.storeReads.push_back({src, src + bytes, f.thread, number});
  schedule(Event::Kind::StoreRead, pendingItem(f, number), launch.options->loadLatency);
  tick(f);
}

void Cluster::bulkCommit(Fiber &f) { f.block->storesOf(f.thread).stores.commit(); }

void Cluster::bulkWait(Fiber &f, int pending, bool isRead) {
  TensorStores &own = f.block->storesOf(f.thread);
  const uint64_t needed = own.stores.needed(pending);
  const auto isDone = [isRead](const TensorStore &store) {
    return isRead ? store.hasRead : store.hasWritten;
  };
  while (!own.stores.allBefore(needed, isDone))
    suspend(f, own.stores.waiters,
            {Wait::Kind::Copies, pending, 0, isRead ? "bulk_wait_read" : "bulk_wait"});
  SharedMemory &shared = f.block->shared;
  for (; own.readsKnown < needed; ++own.readsKnown) {
    const TensorStore &store = own.stores.at(own.readsKnown);
    for (int row = 0; row < boxRows(store.map); ++row)
      forEachChunk(store, row, [&](int address, int) {
        shared.races.noteRead(address - SharedMemory::base, 16, f.thread);
      });
  }
  std::erase_if(shared.storeReads, [&](const SharedMemory::StoreRead &read) {
    return read.thread == f.thread && read.store < own.readsKnown;
  });
  while (!isRead && own.stores.firstKept() < needed) {
    const TensorStore &store = own.stores.at(own.stores.firstKept());
    for (int row = 0; row < boxRows(store.map); ++row) {
      const BoxRow stored = storedRow(store.map, store.coordinates.data(), row);
      launch.order.finishAsync(actor(f), store.range, store.base + stored.begin,
                               static_cast<int>(stored.end - stored.begin));
    }
    own.stores.forgetFirst();
  }
}

void Cluster::readStore(const PendingItem &item) {
  Block &block = *blocks[item.rank];
  CommitGroups<TensorStore> &stores = block.stores[item.thread].stores;
  TensorStore &store = stores.at(item.number);
  const int inner = store.map.box[0] * store.map.elementBytes;
  store.image.resize(static_cast<size_t>(store.map.boxBytes()));
  for (int row = 0; row < boxRows(store.map); ++row)
    forEachChunk(store, row, [&](int address, int column) {
      std::memcpy(store.image.data() + row * inner + column, block.shared.at(address), 16);
    });
  store.hasRead = true;
  schedule(Event::Kind::StoreWrite, addItem(item), launch.options->loadLatency);
  wake(stores.waiters);
}

void Cluster::writeStore(const PendingItem &item) {
  CommitGroups<TensorStore> &stores = blocks[item.rank]->stores[item.thread].stores;
  TensorStore &store = stores.at(item.number);
  const int inner = store.map.box[0] * store.map.elementBytes;
  auto *tensor = reinterpret_cast<uint8_t *>(store.map.address);
  for (int row = 0; row < boxRows(store.map); ++row)
    if (const BoxRow stored = storedRow(store.map, store.coordinates.data(), row);
        stored.end > stored.begin)
      std::memcpy(tensor + stored.begin, store.image.data() + row * inner,
                  stored.end - stored.begin);
  store.image = {};
  store.hasWritten = true;
  wake(stores.waiters);
}

} // namespace moejit::emulated

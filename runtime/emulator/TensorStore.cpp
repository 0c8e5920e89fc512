// TMA stores: issue, the two steps of their way (the source is read, the tensor is written), and
// bulk groups (PTX ISA, Data Movement: cp.async.bulk.tensor, cp.async.bulk.wait_group). They read
// and write through the async proxy.
#include "runtime/emulator/Cluster.h"

#include <algorithm>
#include <cstring>

namespace moejit::emulated {

/// Calls `use(address, bytes, column)` for each piece of row `row` of the box at `src` that lies
/// inside the tensor and in one 16-byte chunk; `column` is its distance from the row's first byte.
template <typename Use>
static void forEachPiece(const TensorStore &store, int row, const Use &use) {
  const PackedMap &map = store.map;
  const BoxRow inside = boxRow(map, store.coordinates.data(), row);
  const int inner = map.box[0] * map.elementBytes;
  const int skipped = std::max(0, -store.coordinates[0]) * map.elementBytes;
  const int end = skipped + static_cast<int>(inside.end - inside.begin);
  for (int column = skipped; column < end;) {
    const int bytes = std::min(end, (column | 15) + 1) - column;
    use(swizzled(store.src + row * inner + column, swizzleSpan(map)), bytes, column);
    column += bytes;
  }
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
    const BoxRow inside = boxRow(map, coordinates, row);
    const int bytes = static_cast<int>(inside.end - inside.begin);
    if (bytes == 0)
      continue;
    Text message;
    forEachPiece(store, row, [&](int address, int count, int) {
      if (message.empty())
        message = shared.refuseAsyncRead(address, count, f.thread);
    });
    if (!message.empty())
      fail(op, message);
    const int64_t at = store.base + inside.begin;
    if (const int64_t stride = range.strideBytes;
        stride > 0 && at % stride + bytes > range.rowBytes)
      fail(op,
           Text::format("{} bytes at offset {} of {} reach past the {} bytes of row {} (stride {})",
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
      forEachPiece(store, row, [&](int address, int bytes, int) {
        const int low = (address - SharedMemory::base) & ~3;
        shared.races.noteRead(low, address - SharedMemory::base + bytes - low, f.thread);
      });
  }
  std::erase_if(shared.storeReads, [&](const SharedMemory::StoreRead &read) {
    return read.thread == f.thread && read.store < own.readsKnown;
  });
  while (!isRead && own.stores.firstKept() < needed) {
    const TensorStore &store = own.stores.at(own.stores.firstKept());
    for (int row = 0; row < boxRows(store.map); ++row) {
      const BoxRow inside = boxRow(store.map, store.coordinates.data(), row);
      launch.order.finishAsync(actor(f), store.range, store.base + inside.begin,
                               static_cast<int>(inside.end - inside.begin));
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
    forEachPiece(store, row, [&](int address, int bytes, int column) {
      std::memcpy(store.image.data() + row * inner + column, block.shared.at(address), bytes);
    });
  store.hasRead = true;
  schedule(Event::Kind::StoreWrite, addItem(item), launch.options->loadLatency);
  wake(stores.waiters);
}

void Cluster::writeStore(const PendingItem &item) {
  CommitGroups<TensorStore> &stores = blocks[item.rank]->stores[item.thread].stores;
  TensorStore &store = stores.at(item.number);
  const int inner = store.map.box[0] * store.map.elementBytes;
  const int skipped = std::max(0, -store.coordinates[0]) * store.map.elementBytes;
  auto *tensor = reinterpret_cast<uint8_t *>(store.map.address);
  for (int row = 0; row < boxRows(store.map); ++row)
    if (const BoxRow inside = boxRow(store.map, store.coordinates.data(), row);
        inside.end > inside.begin)
      std::memcpy(tensor + inside.begin, store.image.data() + row * inner + skipped,
                  inside.end - inside.begin);
  store.image = {};
  store.hasWritten = true;
  wake(stores.waiters);
}

} // namespace moejit::emulated

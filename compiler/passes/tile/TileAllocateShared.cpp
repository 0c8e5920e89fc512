// Owns the layout of shared memory.
#include "compiler/passes/tile/Lowering.h"

#include "llvm/Support/MathExtras.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEALLOCATESHARED
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// A warp's store buffer: 16 rows of 64 16-bit results, 16 bytes apart more so that `stmatrix`
/// meets no bank twice.
constexpr int64_t storeBytesPerWarp = 16 * 144;
/// Full and empty mbarriers of a slot.
constexpr int64_t barrierBytes = 16;
/// What a block draws in a tile.grid_for.
constexpr int64_t drawnBytes = 16;

struct AllocateShared : tile::impl::TileAllocateSharedBase<AllocateShared> {
  using Base::Base;

  /// Every warp makes its exchanges one after the other: all reductions have the same buffers.
  static void allocateReductions(KernelOp kernel, function_ref<int64_t(int64_t, int64_t)> take) {
    const int64_t threads = 128 * kernel.getWarpgroups(), others = kernel.getClusterSize() - 1;
    SmallVector<ReduceOp> reductions;
    int64_t most = 1; // vectors of 16 bytes that a thread has of an accumulator
    kernel.walk([&](ReduceOp reduce) {
      if (std::optional<Distribution> distribution =
              distribute(reduce.getAcc().getType(), kernel.getWarpgroups()))
        most = std::max(most, distribution->fragments() * distribution->n / 8);
      reductions.push_back(reduce);
    });
    if (reductions.empty())
      return;
    const int64_t bytesOfVector = 16 * threads * others;
    const int64_t vectors = std::clamp<int64_t>(mostSumBytes / bytesOfVector, 1, most);
    const int64_t offset = take(threads / 32 * 8 + vectors * bytesOfVector, 16);
    for (ReduceOp reduce : reductions) {
      reduce.setSharedOffset(offset);
      reduce.setVectors(vectors);
    }
  }

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    Builder builder(&getContext());
    int64_t used = 0;
    auto take = [&](int64_t bytes, int64_t align) {
      int64_t offset = llvm::alignTo(used, align);
      used = offset + bytes;
      return offset;
    };

    // One slot is one contiguous block, barriers and scales inside: a single address serves all of
    // it.
    kernel.walk([&](RingOp ring) {
      int64_t bytes = 0;
      SmallVector<int64_t> offsets;
      for (unsigned i = 0; i < ring.getFields().size(); ++i) {
        FieldLayout layout = *fieldLayout(ring.getField(i));
        offsets.push_back(llvm::alignTo(bytes, layout.alignBytes));
        bytes = offsets.back() + layout.bytes;
      }
      int64_t barriers = llvm::alignTo(bytes, 8);
      int64_t stride = llvm::alignTo(barriers + barrierBytes, 1024);
      ring.setFieldOffsets(offsets);
      ring.setBarrierOffset(barriers);
      ring.setStride(stride);
      ring.setSharedOffset(take(stride * ring.getStages(), 1024));
    });
    std::optional<int64_t> storeBuffer;
    kernel.walk([&](StoreOp store) {
      if (!store.getStaged())
        return;
      if (!storeBuffer)
        storeBuffer = take(storeBytesPerWarp * 4 * kernel.getWarpgroups(), 128);
      store.setSharedOffset(*storeBuffer);
    });
    allocateReductions(kernel, take);
    kernel.walk([&](AmaxOp amax) {
      amax.setSharedOffset(take(4 * kernel.getThreads() / 32, 16)); // a word for each warp
    });
    kernel.walk([&](QuantizeOp quantize) {
      // Two sets of a word for each warp.
      if (quantize.getWarps() > 1)
        quantize.setSharedOffset(take(2 * 4 * kernel.getThreads() / 32, 16));
    });
    Operation *firstUse = nullptr;
    kernel.walk([&](SchedulerOp scheduler) {
      int64_t bytes = queueBytes + 4 * (scheduler.getExperts() + 1);
      // Sorting takes a counter an expert, the sorted rows, and the expert of each row.
      if (scheduler.getIds())
        bytes = rowBucketsOffset(scheduler) + 4 * maxSortedRows;
      scheduler.setSharedOffset(take(bytes, 16));
    });

    kernel.walk([&](GridForOp grid) { grid.setSharedOffset(take(drawnBytes, 16)); });

    if (used > limitBytes) {
      kernel.emitOpError("needs ")
          << used << " bytes of shared memory, a block has " << limitBytes.getValue()
          << "; use fewer stages or a smaller tile";
      return signalPassFailure();
    }
    kernel.setSharedBytes(used);

    // Barriers and boundaries set up by the first threads are there for all after this, those of
    // the other blocks of a cluster too.
    const bool isClustered = kernel.getClusterSize() > 1;
    auto meets = [&](Operation *op) {
      auto sync = dyn_cast_or_null<SyncOp>(op);
      return sync && (sync.getCluster() || !isClustered);
    };
    for (Operation &op : kernel.getBody().front())
      if (isa<RoleOp, ForTilesOp>(op)) {
        firstUse = &op;
        break;
      }
    if (firstUse && !meets(firstUse->getPrevNode())) {
      OpBuilder at(firstUse);
      SyncOp::create(at, kernel.getLoc(), isClustered);
    }
    // Shared memory that others may still reach must not end before they do.
    if (isClustered && !meets(&kernel.getBody().front().back())) {
      OpBuilder at = OpBuilder::atBlockEnd(&kernel.getBody().front());
      SyncOp::create(at, kernel.getLoc(), true);
    }
  }
};

} // namespace

// Owns how rings become mbarriers with phases.
#include "compiler/passes/tile/Lowering.h"

#include <map>
#include <tuple>

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERRING
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

constexpr int64_t emptyBarrier = 8; // bytes after the full barrier of a slot

struct LowerRing : tile::impl::TileLowerRingBase<LowerRing> {
  KernelOp kernel;
  /// Register arrays {slot address, phase}, by ring and the block that holds the walk.
  std::map<std::tuple<Operation *, Block *, bool>, Value> cursors;

  void runOnOperation() override {
    kernel = getOperation();
    SmallVector<Operation *> ops;
    SmallVector<RingOp> rings;
    kernel.walk([&](Operation *op) {
      if (isa<AcquireOp, PublishOp, AwaitOp, ReleaseOp>(op))
        ops.push_back(op);
      if (auto ring = dyn_cast<RingOp>(op))
        rings.push_back(ring);
    });
    for (RingOp ring : rings) {
      if (!ring.getSharedOffset()) {
        ring.emitOpError("has no layout; run tile-allocate-shared first");
        return signalPassFailure();
      }
    }
    for (Operation *op : ops) {
      Value slot = op->getNumResults() ? op->getResult(0) : op->getOperand(0);
      if (!ringOf(slot)) {
        op->emitOpError("does not say which ring it walks: its slot comes from no acquire or "
                        "await, or their ring from "
                        "no tile.ring");
        return signalPassFailure();
      }
    }
    // Readers of fields go first: once lowered, nothing uses them.
    SmallVector<FieldOp> fields;
    kernel.walk([&](FieldOp field) { fields.push_back(field); });
    for (FieldOp field : fields) {
      if (!field.getResult().use_empty()) {
        field.emitOpError("is still read; lower dots and scales before the ring");
        return signalPassFailure();
      }
      field.erase();
    }
    // Release and publish name the slots that acquire and await become, so they go first.
    SmallVector<Operation *> walks;
    for (Operation *op : ops) {
      if (auto release = dyn_cast<ReleaseOp>(op))
        lower(release);
      else if (isa<PublishOp>(op))
        op->erase();
      else
        walks.push_back(op);
    }
    for (Operation *op : walks) {
      if (auto acquire = dyn_cast<AcquireOp>(op))
        lower(acquire);
      else
        lower(cast<AwaitOp>(op));
    }
    for (RingOp ring : rings)
      lower(ring);
  }

  /// The cursor of `ring` for the role `op` runs in, declared where the role (or the kernel)
  /// begins.
  Value cursorOf(RingOp ring, Operation *op, bool isFilling) {
    auto role = op->getParentOfType<RoleOp>();
    Block *block = role ? &role.getBody().front() : &kernel.getBody().front();
    Value &cursor = cursors[{ring, block, isFilling}];
    if (cursor)
      return cursor;
    OpBuilder builder(&getContext());
    if (role)
      builder.setInsertionPointToStart(block);
    else
      builder.setInsertionPointAfter(ring);
    Code code(builder, ring.getLoc());
    cursor =
        ptx::RegsOp::create(builder, ring.getLoc(), ptx::RegsType::get({2}, builder.getI32Type()));
    code.name(cursor, isFilling ? "fill" : "drain");
    code.set(cursor, {code.index(0)}, firstSlot(code, ring));
    code.set(cursor, {code.index(1)}, code.i32(0));
    return cursor;
  }

  Value firstSlot(Code &code, RingOp ring) {
    return code.add(threadValue(kernel, ThreadValue::SharedBase), *ring.getSharedOffset());
  }

  /// Steps the cursor to the next slot; a wrap flips the phase.
  void advance(Code &code, RingOp ring, Value cursor, Value slot, Value phase) {
    Value next = code.add(slot, *ring.getStride());
    Value end = code.add(firstSlot(code, ring), *ring.getStride() * ring.getStages());
    Value wraps = code.equal(next, end);
    code.set(cursor, {code.index(0)}, code.select(wraps, firstSlot(code, ring), next));
    code.set(cursor, {code.index(1)}, code.bitXor(phase, code.extend(wraps)));
  }

  void replaceSlot(Value slot, Value address) {
    for (Operation *user : llvm::make_early_inc_range(slot.getUsers()))
      if (auto cast = dyn_cast<UnrealizedConversionCastOp>(user)) {
        cast.getResult(0).replaceAllUsesWith(address);
        cast.erase();
      }
  }

  void lower(AcquireOp acquire) {
    auto ring = acquire.getRing().getDefiningOp<RingOp>();
    OpBuilder builder(acquire);
    Code code(builder, acquire.getLoc());
    Value cursor = cursorOf(ring, acquire, /*isFilling=*/true);
    Value slot = code.name(code.get(cursor, {code.index(0)}), "slot");
    Value phase = code.name(code.get(cursor, {code.index(1)}), "phase");
    Value barrier = code.add(slot, *ring.getBarrierOffset());
    // A fresh barrier counts as having completed the phase before its first.
    ptx::MbarrierWaitOp::create(builder, acquire.getLoc(), code.add(barrier, emptyBarrier),
                                code.bitXor(phase, code.i32(1)));
    Value bytes = acquire.getBytes() ? acquire.getBytes() : code.i32(ring.getTransactionBytes());
    ptx::MbarrierExpectTxOp::create(builder, acquire.getLoc(), barrier, bytes);
    advance(code, ring, cursor, slot, phase);
    replaceSlot(acquire.getSlot(), slot);
    acquire.erase();
  }

  void lower(AwaitOp await) {
    auto ring = await.getRing().getDefiningOp<RingOp>();
    OpBuilder builder(await);
    Code code(builder, await.getLoc());
    Value cursor = cursorOf(ring, await, /*isFilling=*/false);
    Value phase = code.name(code.get(cursor, {code.index(1)}), "phase");
    Value slot;
    if (Value index = await.getIndex()) {
      slot = code.add(firstSlot(code, ring), code.mul(index, *ring.getStride()));
    } else {
      // The shuffle makes the address the same in every lane for the compiler too: descriptors made
      // of it then live in uniform registers (measured: 525 to 442 million warp instructions,
      // tensor pipe use 75 to 82 %).
      slot = ptx::ShflIdxOp::create(builder, await.getLoc(), code.get(cursor, {code.index(0)}),
                                    code.i32(0));
    }
    code.name(slot, "slot");
    ptx::MbarrierWaitOp::create(builder, await.getLoc(), code.add(slot, *ring.getBarrierOffset()),
                                phase);
    if (Value index = await.getIndex()) {
      // The cursor's slot is the first before a turn and after it.
      Value isLast = code.equal(index, code.i32(ring.getStages() - 1));
      code.set(cursor, {code.index(1)}, code.bitXor(phase, code.extend(isLast)));
    } else {
      advance(code, ring, cursor, slot, phase);
    }
    replaceSlot(await.getSlot(), slot);
    await.erase();
  }

  /// One arrival a warp, once all its lanes have read: at every block that fills the slot.
  void lower(ReleaseOp release) {
    RingOp ring = ringOf(release.getSlot());
    OpBuilder builder(release);
    Code code(builder, release.getLoc());
    Value barrier =
        code.add(addressOf(code, release.getSlot()), *ring.getBarrierOffset() + emptyBarrier);
    ptx::SyncwarpOp::create(builder, release.getLoc());
    Value lane = threadValue(kernel, ThreadValue::Lane);
    if (ring.getMulticast())
      code.onlyIf(code.less(lane, code.i32(kernel.getClusterSize())), [&] {
        ptx::MbarrierArriveClusterOp::create(builder, release.getLoc(), barrier, lane);
      });
    else
      code.onlyIf(code.equal(lane, code.i32(0)),
                  [&] { ptx::MbarrierArriveOp::create(builder, release.getLoc(), barrier); });
    release.erase();
  }

  void lower(RingOp ring) {
    OpBuilder builder(ring);
    Code code(builder, ring.getLoc());
    int64_t readers = 4 * kernel.getWarpgroups();
    if (ring.getMulticast())
      readers *= kernel.getClusterSize();
    Value thread = threadValue(kernel, ThreadValue::Thread);
    Value first = code.add(firstSlot(code, ring), *ring.getBarrierOffset());
    code.onlyIf(code.equal(thread, code.i32(0)), [&] {
      code.unroll(0, ring.getStages(), 1, [&](Value stage) {
        Value full = code.name(code.add(first, code.mul(stage, *ring.getStride())), "full");
        ptx::MbarrierInitOp::create(builder, ring.getLoc(), full, code.i32(1));
        ptx::MbarrierInitOp::create(builder, ring.getLoc(), code.add(full, emptyBarrier),
                                    code.i32(readers));
      });
      ptx::FenceMbarrierInitOp::create(builder, ring.getLoc());
    });
    ring.erase();
  }
};

} // namespace

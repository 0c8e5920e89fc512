// Owns how the blocks of a grid share work out before the tiles, and wait for each other, and how
// the last of them cleans up.
#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERGRID
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct LowerGrid : tile::impl::TileLowerGridBase<LowerGrid> {
  void runOnOperation() override {
    for (GridForOp op : llvm::make_early_inc_range(getOperation().getBody().getOps<GridForOp>()))
      if (failed(lower(op)))
        return signalPassFailure();
    SmallVector<CleanOp> cleans;
    getOperation().walk([&](CleanOp op) { cleans.push_back(op); });
    for (CleanOp op : cleans)
      if (failed(lower(op)))
        return signalPassFailure();
  }

  LogicalResult lower(CleanOp op) {
    KernelOp kernel = getOperation();
    for (BlockArgument argument : kernel.getBody().getArguments()) {
      StringRef operand = kernel.getOperandName(argument.getArgNumber());
      if ((operand == "workspace" || operand == "counters") &&
          !llvm::is_contained(op.getViews(), argument))
        return op.emitOpError("leaves out '")
               << operand << "', which must be zero when the kernel begins";
    }
    OpBuilder builder(op);
    Location loc = op.getLoc();
    Code code(builder, loc);
    // Whoever is last has seen, in its own count, those of all other blocks: the fences order what
    // they did with the words before what it stores.
    ptx::FenceAcqRelGpuOp::create(builder, loc);
    Value before = code.name(ptx::AtomAddGlobalI32Op::create(
                                 builder, loc, pointerTo(code, op.getCounter()),
                                 code.i64(4 * static_cast<int64_t>(op.getAt())), code.i32(1)),
                             "blocksBefore");
    Value others = code.add(ptx::GridSizeOp::create(builder, loc), -1);
    code.onlyIf(code.equal(before, others), [&] {
      ptx::FenceAcqRelGpuOp::create(builder, loc);
      for (Value view : op.getViews()) {
        Value words = pointerTo(code, view);
        for (int64_t i = 0; i < cast<ViewType>(view.getType()).getShape()[0]; ++i)
          ptx::StGlobalB32Op::create(builder, loc, words, code.i64(4 * i), code.i32(0));
      }
    });
    kernel->setAttr("tile.cleans", builder.getUnitAttr());
    op.erase();
    return success();
  }

  LogicalResult lower(GridForOp op) {
    if (!op.getSharedOffset())
      return op.emitOpError("has no shared memory; run tile-allocate-shared first");
    KernelOp kernel = getOperation();
    OpBuilder builder(op);
    Location loc = op.getLoc();
    Code code(builder, loc);
    Value thread = threadValue(kernel, ThreadValue::Thread);
    Value isFirst = code.name(code.equal(thread, code.i32(0)), "isFirstThread");
    Value counters = pointerTo(code, op.getCounters());
    Value taken = code.i64(4 * op.getAt()), done = code.i64(4 * op.getAt() + 4);
    Value slot = code.name(
        code.add(threadValue(kernel, ThreadValue::SharedBase), *op.getSharedOffset()), "drawn");
    auto meet = [&] { ptx::BarSyncOp::create(builder, loc, 0, kernel.getThreads()); };
    Value index = ptx::RegsOp::create(builder, loc, ptx::RegsType::get({1}, builder.getI32Type()));
    code.name(index, "work");
    auto draw = [&] {
      code.onlyIf(isFirst, [&] {
        Value drawn = ptx::AtomAddGlobalI32Op::create(builder, loc, counters, taken, code.i32(1));
        ptx::StSharedI32Op::create(builder, loc, slot, drawn);
      });
      meet();
      // The shuffle makes the number the same in every lane for the compiler too.
      Value drawn = ptx::LdSharedI32Op::create(builder, loc, slot);
      code.set(index, {code.index(0)}, ptx::ShflIdxOp::create(builder, loc, drawn, code.i32(0)));
    };

    draw();
    auto whileOp = scf::WhileOp::create(builder, loc, TypeRange(), ValueRange());
    builder.createBlock(&whileOp.getBefore());
    scf::ConditionOp::create(
        builder, loc, code.less(code.get(index, {code.index(0)}), op.getExtent()), ValueRange());
    Block *body = builder.createBlock(&whileOp.getAfter());
    op.getIndex().replaceAllUsesWith(code.name(code.get(index, {code.index(0)}), "item"));
    body->getOperations().splice(body->end(), op.getBody().front().getOperations());
    builder.setInsertionPointToEnd(body);
    // One thread vouches for what all have written.
    meet();
    code.onlyIf(isFirst, [&] {
      ptx::FenceAcqRelGpuOp::create(builder, loc);
      ptx::AtomAddGlobalI32Op::create(builder, loc, counters, done, code.i32(1));
    });
    draw();
    scf::YieldOp::create(builder, loc);

    builder.setInsertionPoint(op);
    code.onlyIf(isFirst, [&] {
      ptx::WaitGlobalI32Op::create(builder, loc, counters, done, op.getExtent());
    });
    meet();
    // What others have written may be read by this thread's copies. A proxy fence anywhere between
    // the two will do (PTX ISA, proxy-preserved base causality order); here it runs once.
    ptx::FenceProxyAsyncGlobalOp::create(builder, loc);
    op.erase();
    return success();
  }
};

} // namespace

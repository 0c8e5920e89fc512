// Owns the decision which loads pass through a ring in shared memory.
#include "compiler/passes/tile/TilePasses.h"

#include "llvm/ADT/SetVector.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILESTAGELOADS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// True where every element has an index of 32 bits.
bool hasSmallIndices(ViewType view) {
  int64_t elements = 1;
  for (int64_t extent : view.getShape())
    if (extent < 1 || (elements *= extent) > INT32_MAX)
      return false;
  return true;
}

/// Bulk copies can bring single scales of a packed view, and vectors whose rows are 16 bytes apart.
bool canCopyInBulk(LoadOp load) {
  std::optional<FieldLayout> layout = fieldLayout(load.getResult().getType());
  if (!layout || load.getItems())
    return false;
  switch (layout->kind) {
  case FieldLayout::Kind::Matrix:
    return true;
  case FieldLayout::Kind::Vector:
    return load.getBulk() && !load.getRowsBy();
  case FieldLayout::Kind::Scalars:
    return ShapedType::isStaticShape(load.getView().getType().getShape()) &&
           !load.getView().getType().hasLaunchStride() && hasSmallIndices(load.getView().getType());
  }
  return false;
}

/// Moves what `value` is computed from above `point`. Fails where that has effects.
LogicalResult computeBefore(Value value, Operation *point) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != point->getBlock() || op->isBeforeInBlock(point))
    return success();
  if (!isPure(op) || op->getNumRegions() != 0)
    return failure();
  for (Value operand : op->getOperands())
    if (failed(computeBefore(operand, point)))
      return failure();
  op->moveBefore(point);
  return success();
}

struct StageLoads : tile::impl::TileStageLoadsBase<StageLoads> {
  void runOnOperation() override {
    SetVector<Block *> blocks;
    getOperation().walk([&](DotOp dot) {
      for (Value operand : {Value(dot.getA()), Value(dot.getB())})
        if (auto load = operand.getDefiningOp<LoadOp>())
          blocks.insert(load->getBlock());
    });
    for (Block *block : blocks)
      if (failed(stage(*block)))
        return signalPassFailure();
  }

  LogicalResult stage(Block &block) {
    // What the dots need must be staged; scales of the same step are, where they can be.
    SetVector<Operation *> loads;
    Operation *firstUse = nullptr;
    LoadOp unfit;
    block.walk([&](DotOp dot) {
      for (Value operand : {Value(dot.getA()), Value(dot.getB())}) {
        auto load = operand.getDefiningOp<LoadOp>();
        if (!load || load->getBlock() != &block)
          continue;
        Operation *use = block.findAncestorOpInBlock(*dot);
        if (!firstUse || use->isBeforeInBlock(firstUse))
          firstUse = use;
        if (!canCopyInBulk(load))
          unfit = load;
        loads.insert(load);
      }
    });
    if (unfit)
      return unfit.emitOpError("cannot be copied in bulk: ")
             << unfit.getResult().getType()
             << " is not f8 in rows of 128 elements, at most 256 of them";
    // Packed scales are used where their bytes are.
    auto isBefore = [&](Operation *user) {
      return block.findAncestorOpInBlock(*user)->isBeforeInBlock(firstUse);
    };
    auto isUsedBefore = [&](LoadOp load) {
      return llvm::any_of(load.getResult().getUsers(), [&](Operation *user) {
        return isa<UnpackOp>(user) ? llvm::any_of(user->getUsers(), isBefore) : isBefore(user);
      });
    };
    for (LoadOp load : block.getOps<LoadOp>())
      if (canCopyInBulk(load) && !isUsedBefore(load))
        loads.insert(load);
    for (Operation *load : loads) {
      if (isUsedBefore(cast<LoadOp>(load)))
        return load->emitOpError("is used before the first dot of its block");
      for (Value coordinate : cast<LoadOp>(load).getCoordinates())
        if (failed(computeBefore(coordinate, firstUse)))
          return load->emitOpError(
              "has coordinates that cannot be computed before the first dot of its block");
    }

    auto kernel = getOperation();
    Location loc = firstUse->getLoc();
    Operation *top = kernel.getBody().findAncestorOpInRegion(*firstUse);
    OpBuilder builder(top);
    SmallVector<Attribute> fields;
    for (Operation *load : loads)
      fields.push_back(TypeAttr::get(cast<LoadOp>(load).getResult().getType()));
    auto ring =
        RingOp::create(builder, loc, RingType::get(&getContext()), 1, builder.getArrayAttr(fields),
                       nullptr, nullptr, nullptr, nullptr, false);

    builder.setInsertionPoint(firstUse);
    auto once = OnceOp::create(builder, loc);
    builder.createBlock(&once.getBody());
    Value filling = AcquireOp::create(builder, loc, SlotType::get(&getContext()), ring, Value());
    for (auto [index, op] : llvm::enumerate(loads)) {
      auto load = cast<LoadOp>(op);
      CopyOp::create(builder, load.getLoc(), load.getView(), load.getCoordinates(), filling,
                     load.getRowsBy(), Value(), index, false, false, nullptr);
    }
    PublishOp::create(builder, loc, filling);

    builder.setInsertionPoint(firstUse);
    Value full = AwaitOp::create(builder, loc, SlotType::get(&getContext()), ring);
    for (auto [index, op] : llvm::enumerate(loads)) {
      auto load = cast<LoadOp>(op);
      Value field = FieldOp::create(builder, load.getLoc(), load.getResult().getType(), full, index,
                                    load.getView(), load.getCoordinates(), 0);
      for (Operation *user : llvm::make_early_inc_range(load.getResult().getUsers()))
        if (isa<UnpackOp>(user) && user->getBlock() == &block && user->isBeforeInBlock(firstUse))
          user->moveAfter(field.getDefiningOp());
      load.getResult().replaceAllUsesWith(field);
      load.erase();
    }

    if (block.mightHaveTerminator())
      builder.setInsertionPoint(block.getTerminator());
    else
      builder.setInsertionPointToEnd(&block);
    ReleaseOp::create(builder, loc, full);
    return success();
  }
};

} // namespace

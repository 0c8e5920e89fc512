// Owns what a checked kernel looks at: the passes tile-check-routing and tile-check-scales. How it
// looks is in TileLowerChecks.cpp.
#include "compiler/passes/tile/Lowering.h"

#include "runtime/Checks.h"

#include "mlir/IR/Matchers.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILECHECKROUTING
#define GEN_PASS_DEF_TILECHECKSCALES
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// The argument of `kernel` that the launch binds to `operand`; null without one.
Value argumentOf(KernelOp kernel, StringRef operand) {
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (kernel.getOperandName(argument.getArgNumber()) == operand)
      return argument;
  return {};
}

/// The argument for error words, added when it is not there.
Value errorsOf(KernelOp kernel) {
  if (Value errors = argumentOf(kernel, "errors"))
    return errors;
  Builder builder(kernel.getContext());
  SmallVector<Attribute> names(kernel.getOperandNames().begin(), kernel.getOperandNames().end());
  names.push_back(builder.getStringAttr("errors"));
  kernel.setOperandNamesAttr(builder.getArrayAttr(names));
  return kernel.getBody().addArgument(
      ViewType::get(kernel.getContext(), {errorWords}, builder.getI64Type()), kernel.getLoc());
}

struct CheckRouting : tile::impl::TileCheckRoutingBase<CheckRouting> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<SchedulerOp> schedulers;
    kernel.walk([&](SchedulerOp op) { schedulers.push_back(op); });
    for (SchedulerOp scheduler : schedulers) {
      if (!scheduler.getOffsets() && !scheduler.getCounts() && !scheduler.getIds())
        continue;
      // The map is the launch's own; the scheduler may have turned ids local by other means.
      Value map = scheduler.getIds() ? argumentOf(kernel, "expert_map") : Value();
      OpBuilder builder(scheduler);
      CheckRoutingOp::create(builder, scheduler.getLoc(), scheduler.getOffsets(),
                             scheduler.getCounts(), scheduler.getIds(), map, scheduler.getExperts(),
                             errorsOf(kernel));
    }
  }
};

/// What an op that reads scales reads.
struct ScaleReadAt {
  Operation *op;
  Value view;
  ValueRange coordinates;
  BlockType block;
  Value rowsBy;
  ItemsAttr items;
  int64_t from = 0; ///< of the coordinate of rows
};

/// How far `row` is below `first`, where that is a constant; rows may be counted from the start of
/// a buffer.
std::optional<int64_t> rowsBelow(Value row, Value first) {
  if (row == first)
    return 0;
  if (auto inBuffer = row.getDefiningOp<arith::SubIOp>())
    return rowsBelow(inBuffer.getLhs(), first);
  auto sum = row.getDefiningOp<arith::AddIOp>();
  APInt more;
  if (!sum || !matchPattern(sum.getRhs(), m_ConstantInt(&more)))
    return std::nullopt;
  std::optional<int64_t> below = rowsBelow(sum.getLhs(), first);
  return below ? std::optional(*below + more.getSExtValue()) : std::nullopt;
}

struct CheckScales : tile::impl::TileCheckScalesBase<CheckScales> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<LoadOp, FieldOp, UnpackOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (auto unpack = dyn_cast<UnpackOp>(op)) {
        if (Operation *words = unpack.getWords().getDefiningOp())
          if (std::optional<ScaleReadAt> read = readOf(words))
            check(op, *read, unpack.getIndex());
      } else if (std::optional<ScaleReadAt> read = readOf(op);
                 read && !read->block.getElementType().isInteger(32)) {
        // Of packed scales each is looked at where it is taken from its word.
        check(op, *read, Value());
      }
    }
  }

  std::optional<ScaleReadAt> readOf(Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      return ScaleReadAt{op,
                         load.getView(),
                         load.getCoordinates(),
                         load.getResult().getType(),
                         load.getRowsBy(),
                         load.getItems().value_or(ItemsAttr())};
    if (auto field = dyn_cast<FieldOp>(op))
      return ScaleReadAt{op,
                         field.getView(),
                         field.getCoordinates(),
                         field.getResult().getType(),
                         sorterOf(field.getView()),
                         {},
                         static_cast<int64_t>(field.getFrom())};
    return std::nullopt;
  }

  /// What finds the rows of copies of `view`, if anything does.
  Value sorterOf(Value view) {
    Value sorter;
    getOperation().walk([&](CopyOp copy) {
      if (copy.getView() == view && copy.getRowsBy())
        sorter = copy.getRowsBy();
    });
    return sorter;
  }

  /// The innermost branch in which `op` is used first, and which does not hold `op` itself; null
  /// where that is in none. What comes later in a step comes under the same condition, or a
  /// stronger one.
  Block *guardOf(Operation *op) {
    Block *guard = nullptr;
    for (Block *block = op->getBlock(); block;) {
      Operation *first = nullptr, *firstUser = nullptr;
      for (Operation *user : op->getUsers()) {
        Operation *ancestor = block->findAncestorOpInBlock(*user);
        if (ancestor && (!first || ancestor->isBeforeInBlock(first))) {
          first = ancestor;
          firstUser = user;
        }
      }
      auto branch = dyn_cast_if_present<scf::IfOp>(first);
      if (!branch || first == firstUser)
        return guard;
      Region &region = branch.getThenRegion().isAncestor(firstUser->getParentRegion())
                           ? branch.getThenRegion()
                           : branch.getElseRegion();
      guard = block = &region.front();
    }
    return guard;
  }

  /// Looks at the box that `read` reads, beside `op`: only tiles that an expert owns get there, and
  /// rows past those of the tile are left out.
  void check(Operation *op, const ScaleReadAt &read, Value byte) {
    KernelOp kernel = getOperation();
    bool isX = read.view == argumentOf(kernel, "x_scales");
    auto tiles = op->getParentOfType<ForTilesOp>();
    if ((!isX && read.view != argumentOf(kernel, "w_scales")) || !tiles || op->use_empty())
      return;
    OpBuilder builder(op->getContext());
    Code code(builder, op->getLoc());
    // Where K ends inside a step, its last dots are not issued: their scales need not exist.
    if (Block *guarded = guardOf(op))
      builder.setInsertionPointToStart(guarded);
    else
      builder.setInsertionPointAfter(op);
    Value rows;
    IntegerAttr dimension;
    int64_t tileRows = 0;
    if (auto scheduler = tiles.getScheduler().getDefiningOp<SchedulerOp>())
      tileRows = scheduler.getTileM();
    SmallVector<Value> coordinates(read.coordinates);
    for (auto [d, extent] : llvm::enumerate(read.block.getShape())) {
      if (!isX || extent == 1)
        continue;
      if (extent == tileRows && read.from == 0) {
        rows = tiles.getTileRows();
      } else if (std::optional<int64_t> below = rowsBelow(coordinates[d], tiles.getFirstRow())) {
        // Of a tail: rows after those of the tile.
        rows = code.sub(tiles.getTileRows(), code.i32(*below + read.from));
        coordinates[d] = code.add(coordinates[d], read.from);
      } else {
        continue;
      }
      dimension = builder.getI64IntegerAttr(static_cast<int64_t>(d));
    }
    CheckScalesOp::create(builder, op->getLoc(), read.view, coordinates, read.block.getShape(),
                          rows, dimension, rows ? read.rowsBy : Value(), read.items, byte,
                          static_cast<int64_t>(isX ? CheckKind::XScale : CheckKind::WScale),
                          errorsOf(kernel));
  }
};

} // namespace

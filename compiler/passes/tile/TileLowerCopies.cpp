// Owns how copies become bulk tensor copies, and which tensor maps the launch must make for them.
#include "compiler/passes/tile/Lowering.h"

#include "mlir/IR/Dominance.h"
#include "llvm/ADT/MapVector.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERCOPIES
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// Scales in the least that a bulk copy brings.
int64_t copiedScalars(ViewType view) { return copiedBytes / view.getElementBytes(); }

/// Rows of 128 bytes whose swizzle repeats.
constexpr int64_t swizzleRows = 8;
constexpr int64_t gatheredTogether = 2; // rows; the registers of a producer hold no more

struct LowerCopies : tile::impl::TileLowerCopiesBase<LowerCopies> {
  void runOnOperation() override {
    SmallVector<CopyOp> copies;
    getOperation().walk([&](CopyOp copy) { copies.push_back(copy); });
    for (CopyOp copy : copies)
      if (failed(lower(copy)))
        return signalPassFailure();
    if (!recipes.empty())
      getOperation().setTensorMapsAttr(Builder(&getContext()).getArrayAttr(recipes));
  }

  LogicalResult lower(CopyOp copy) {
    KernelOp kernel = getOperation();
    OpBuilder builder(copy);
    Code code(builder, copy.getLoc());
    RingOp ring = ringOf(copy.getSlot());
    Value destination = fieldAddress(code, copy, copy.getSlot(), copy.getField());
    if (!destination)
      return failure();
    auto view = dyn_cast<BlockArgument>(copy.getView());
    if (!view || view.getOwner()->getParentOp() != kernel)
      return copy.emitOpError("copies from a view that is no argument of the kernel");
    ViewType type = copy.getView().getType();
    BlockType block = ring.getField(copy.getField());
    FieldLayout layout = *fieldLayout(block);
    Value full = code.add(addressOf(code, copy.getSlot()), *ring.getBarrierOffset());
    Value policy = copy.getEvictFirst() ? threadValue(kernel, ThreadValue::EvictFirst) : Value();

    // The map's dimension 0 is the contiguous one.
    SmallVector<int64_t> extents(llvm::reverse(type.getShape()));
    SmallVector<int64_t> box(llvm::reverse(block.getShape()));
    SmallVector<Value> coordinates(llvm::reverse(copy.getCoordinates()));
    switch (layout.kind) {
    case FieldLayout::Kind::Matrix:
      break;
    case FieldLayout::Kind::Vector:
      box[0] = layout.transactionBytes / type.getElementBytes();
      coordinates[0] = code.bitAnd(coordinates[0], -copiedScalars(type));
      break;
    case FieldLayout::Kind::Scalars:
      return lowerScalars(code, copy, view, block, destination, full, policy);
    }
    if (copy.getRowsBy())
      return lowerGathered(code, copy, view, extents, box, coordinates, destination, full, policy);
    if (copy.getFirst())
      return lowerFirst(code, copy, view, extents, box, coordinates, destination, full, policy);
    Value mask;
    if (copy.getMulticast()) {
      const int64_t blocks = kernel.getClusterSize();
      if (!ring.getMulticast() || layout.kind != FieldLayout::Kind::Matrix ||
          box[1] % (swizzleRows * blocks) != 0)
        return copy.emitOpError("sends parts of a box to ")
               << blocks
               << " blocks: they share the ring, and the rows of a matrix in multiples of "
               << swizzleRows << ", got " << block
               << (ring.getMulticast() ? "" : " in a ring of each block's own");
      // Every block copies as many rows, and sends them to all.
      box[1] /= blocks;
      Value first =
          code.name(code.mul(threadValue(kernel, ThreadValue::ClusterRank), box[1]), "firstOfPart");
      coordinates[1] = code.add(coordinates[1], first);
      destination = code.add(destination, code.mul(first, box[0] * type.getElementBytes()));
      mask = code.i32((int64_t(1) << blocks) - 1);
    }
    Value map = mapFor(view, extents, box, layout.kind == FieldLayout::Kind::Matrix);
    ptx::TmaLoadOp::create(builder, copy.getLoc(), destination, map, coordinates, full, policy,
                           mask);
    copy.erase();
    return success();
  }

  /// Sorted rows lie anywhere: each comes by a copy of its own. One-row boxes leave the same image
  /// as a whole one.
  LogicalResult lowerGathered(Code &code, CopyOp copy, BlockArgument view,
                              ArrayRef<int64_t> extents, ArrayRef<int64_t> box,
                              ArrayRef<Value> coordinates, Value destination, Value full,
                              Value policy) {
    if (box.size() != 2 || box[0] != 128)
      return copy.emitOpError("gathers rows of 128 elements of a matrix, got ")
             << copy.getView().getType();
    Value map = mapFor(view, extents, {box[0], 1}, /*isSwizzled=*/true);
    Value rows = code.i32(box[1]);
    if (copy.getFirst()) {
      rows = code.min(copy.getFirst(), rows);
      if (failed(expectRows(copy, box[0], box[1])))
        return failure();
    }
    // Where some rows lie is asked together: the answers come from shared memory.
    auto loop = scf::ForOp::create(code.builder, copy.getLoc(), code.i32(0), rows,
                                   code.i32(gatheredTogether));
    loop->setAttr("ptx.name", code.builder.getStringAttr("gathered"));
    OpBuilder::InsertionGuard guard(code.builder);
    code.builder.setInsertionPointToStart(loop.getBody());
    Value first = loop.getInductionVar();
    SmallVector<Value> found;
    for (int64_t i = 0; i < gatheredTogether; ++i) {
      Value sorted = code.add(coordinates[1], code.add(first, i));
      found.push_back(rowBy(code, copy, copy.getRowsBy(), sorted));
      if (!found.back())
        return failure();
    }
    Value into = code.name(code.add(destination, code.mul(first, box[0])), "rowsInto");
    for (auto [i, row] : llvm::enumerate(found)) {
      auto load = [&] {
        ptx::TmaLoadOp::create(code.builder, copy.getLoc(), code.add(into, i * box[0]), map,
                               ValueRange{coordinates[0], row}, full, policy, Value());
      };
      if (i > 0 && (copy.getFirst() || box[1] % gatheredTogether != 0))
        code.onlyIf(code.less(code.add(first, i), rows), load);
      else
        load();
    }
    copy.erase();
    return success();
  }

  /// The first rows come by boxes of a few: whole swizzle atoms, so the image is that of one box.
  LogicalResult lowerFirst(Code &code, CopyOp copy, BlockArgument view, ArrayRef<int64_t> extents,
                           SmallVector<int64_t> box, SmallVector<Value> coordinates,
                           Value destination, Value full, Value policy) {
    const int64_t most = box.size() < 2 ? 0 : box[1], per = *copy.getFirstPer();
    if (most == 0 || box[0] != 128 || most % per != 0 ||
        fieldLayout(ringOf(copy.getSlot()).getField(copy.getField()))->kind !=
            FieldLayout::Kind::Matrix)
      return copy.emitOpError("copies rows of 128 elements of a matrix per a divisor of their "
                              "number, got per ")
             << per << " of " << ringOf(copy.getSlot()).getField(copy.getField());
    if (failed(expectRows(copy, box[0], most)))
      return failure();
    box[1] = per;
    Value map = mapFor(view, extents, box, /*isSwizzled=*/true);
    auto loop = scf::ForOp::create(code.builder, copy.getLoc(), code.i32(0),
                                   code.min(copy.getFirst(), code.i32(most)), code.i32(per));
    loop->setAttr("ptx.name", code.builder.getStringAttr("loaded"));
    OpBuilder::InsertionGuard guard(code.builder);
    code.builder.setInsertionPointToStart(loop.getBody());
    Value first = loop.getInductionVar();
    coordinates[1] = code.add(coordinates[1], first);
    ptx::TmaLoadOp::create(code.builder, copy.getLoc(),
                           code.add(destination, code.mul(first, box[0])), map, coordinates, full,
                           policy, Value());
    copy.erase();
    return success();
  }

  /// Takes the rows that are not copied off what the slot of `copy` waits for. The count must be
  /// known where the slot is acquired.
  LogicalResult expectRows(CopyOp copy, int64_t rowBytes, int64_t mostRows) {
    auto acquire = copy.getSlot().getDefiningOp<AcquireOp>();
    Value first = copy.getFirst();
    Operation *definition = first.getDefiningOp();
    if (!acquire ||
        (definition ? !DominanceInfo(getOperation()).properlyDominates(definition, acquire)
                    : !first.getParentRegion()->isAncestor(acquire->getParentRegion())))
      return copy.emitOpError("copies a number of rows that is not known where its slot is "
                              "acquired");
    OpBuilder builder(acquire);
    Code code(builder, copy.getLoc());
    Value bytes = acquire.getBytes();
    if (!bytes)
      bytes = code.i32(ringOf(copy.getSlot()).getTransactionBytes());
    Value copied = code.min(first, code.i32(mostRows));
    if (int64_t per = copy.getFirstPer().value_or(1); per > 1)
      copied = code.mul(code.div(code.add(copied, per - 1), per), per);
    Value left = code.sub(code.i32(mostRows), copied);
    bytes = code.name(code.sub(bytes, code.mul(left, rowBytes)), "slotBytes");
    acquire.getBytesMutable().assign(bytes);
    return success();
  }

  LogicalResult lowerScalars(Code &code, CopyOp copy, BlockArgument view, BlockType block,
                             Value destination, Value full, Value policy) {
    ViewType type = copy.getView().getType();
    int64_t total = 1, step = 1, entryStep = 1;
    for (int64_t extent : type.getShape())
      total *= extent;
    if (total > INT32_MAX)
      return copy.emitOpError("indexes ") << total << " scales, more than 2^31";
    for (int64_t d = type.getRank() - 1; d >= 0; --d) {
      if (block.getShape()[d] > 1)
        entryStep = step;
      step *= type.getShape()[d];
    }
    Value map = mapFor(view, {total}, {copiedScalars(type)}, /*isSwizzled=*/false);
    Value first = linearIndex(code, type, copy.getCoordinates());
    for (int64_t entry = 0; entry < fieldLayout(block)->entries; ++entry) {
      Value start = code.bitAnd(code.add(first, entry * entryStep), -copiedScalars(type));
      ptx::TmaLoadOp::create(code.builder, copy.getLoc(), code.add(destination, entry * 128), map,
                             start, full, policy, Value());
    }
    copy.erase();
    return success();
  }

  /// The kernel's tensor map parameter for boxes of `box` from `view`; made once for equal needs.
  Value mapFor(BlockArgument view, ArrayRef<int64_t> extents, ArrayRef<int64_t> box,
               bool isSwizzled) {
    KernelOp kernel = getOperation();
    Builder builder(&getContext());
    ViewType type = cast<ViewType>(view.getType());
    SmallVector<NamedAttribute> recipe;
    auto put = [&](StringRef key, Attribute value) {
      recipe.push_back(builder.getNamedAttr(key, value));
    };
    put("operand", kernel.getOperandNames()[view.getArgNumber()]);
    put("type", TypeAttr::get(type.getElementType()));
    put("extents", builder.getDenseI64ArrayAttr(extents));
    put("box", builder.getDenseI64ArrayAttr(box));
    put("swizzled", builder.getBoolAttr(isSwizzled));
    // Bytes between neighbours of every outer dimension; dynamic: as the launch gives them.
    SmallVector<int64_t> strides;
    bool isPacked = !type.hasLaunchStride();
    int64_t bytes = type.getElementBytes();
    for (int64_t extent : extents.drop_back()) {
      bytes = isPacked ? bytes * extent : ShapedType::kDynamic;
      strides.push_back(bytes);
    }
    put("strides", builder.getDenseI64ArrayAttr(strides));
    DictionaryAttr attr = builder.getDictionaryAttr(recipe);
    Value &map = maps[attr];
    if (!map) {
      map = kernel.getBody().addArgument(ptx::TmapType::get(&getContext()), kernel.getLoc());
      SmallVector<Attribute> names(kernel.getOperandNames().begin(),
                                   kernel.getOperandNames().end());
      names.push_back(kernel.getOperandNames()[view.getArgNumber()]);
      kernel.setOperandNamesAttr(builder.getArrayAttr(names));
      recipes.push_back(attr);
    }
    return map;
  }

  llvm::MapVector<Attribute, Value> maps;
  SmallVector<Attribute> recipes;
};

} // namespace

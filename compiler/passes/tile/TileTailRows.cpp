// Owns the decision to multiply the last few rows of an expert as columns, beside the rows of its
// last tile, so that they do not load its weights once more.
#include "compiler/passes/tile/Lowering.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILETAILROWS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

constexpr int64_t swizzleRows = 8;

/// A product promoted into the accumulator of the tile, by what it multiplies: its batches are one.
using Operands = std::tuple<Value, Value, int64_t>;
/// The last of its batches: computed, waited for, promoted.
struct Product {
  DotOp dot;
  WaitOp wait;
  PromoteOp promote;
  SmallVector<std::optional<uint64_t>> batches = {}; ///< all of them
};

struct TailRows : tile::impl::TileTailRowsBase<TailRows> {
  using Base::Base;

  SchedulerOp scheduler;
  ForTilesOp tiles;
  AccOp acc;
  FillOp fill;
  StoreOp store;
  llvm::MapVector<Operands, Product> products;
  SmallVector<ScaleOp> scalings;
  /// Fields that hold rows of the tile, each with the dimension of its rows.
  llvm::MapVector<std::pair<Operation *, int64_t>, size_t> fields;

  void runOnOperation() override {
    if (rows < 8 || rows % 8 != 0) {
      getOperation().emitOpError("has tails of a multiple of 8 rows, got ") << rows;
      return signalPassFailure();
    }
    if (findTile() && findUses() && canWiden())
      addTail();
  }

  /// One loop over tiles, and one accumulator whose rows are those of the tile.
  bool findTile() {
    SmallVector<SchedulerOp> schedulers(getOperation().getBody().getOps<SchedulerOp>());
    if (schedulers.size() != 1 || !schedulers.front().getResult().hasOneUse())
      return false;
    scheduler = schedulers.front();
    tiles = dyn_cast<ForTilesOp>(*scheduler.getResult().user_begin());
    if (!tiles || scheduler.getTail() || scheduler.getCluster() == Spread::Rows ||
        rows >= static_cast<int64_t>(scheduler.getTileM()))
      return false;
    SmallVector<StoreOp> stores;
    getOperation().walk([&](StoreOp op) { stores.push_back(op); });
    if (stores.size() != 1 || stores.front()->getParentOp() != tiles)
      return false;
    store = stores.front();
    acc = store.getAcc().getDefiningOp<AccOp>();
    AccType type = store.getAcc().getType();
    return acc && acc->getParentOp() == tiles && !store.getTransposed() && !store.getRowsBy() &&
           !store.getStaged() && store.getRow() == tiles.getFirstRow() &&
           store.getRows() == tiles.getTileRows() &&
           type.getRows() == static_cast<int64_t>(scheduler.getTileM()) &&
           distribute(tailType(), getOperation().getWarpgroups());
  }

  AccType tailType() {
    AccType type = store.getAcc().getType();
    return AccType::get(&getContext(), type.getColumns(), rows, Split::Rows, rows);
  }

  /// All that happens to the accumulator, in ways that can be said of the tail's too.
  bool findUses() {
    for (Operation *user : acc.getResult().getUsers()) {
      if (user == store)
        continue;
      if (auto op = dyn_cast<FillOp>(user); op && !fill && op->getParentOp() == tiles) {
        fill = op;
      } else if (auto op = dyn_cast<ScaleOp>(user)) {
        if (!canFollow(op.getRowScales()))
          return false;
        scalings.push_back(op);
      } else if (auto op = dyn_cast<PromoteOp>(user); !op || op.getInto() != acc.getResult()) {
        return false;
      }
    }
    SmallVector<PromoteOp> promotions;
    tiles.walk([&](PromoteOp op) {
      if (op.getInto() == acc.getResult())
        promotions.push_back(op);
    });
    return fill && llvm::all_of(promotions, [&](PromoteOp op) { return addProduct(op); }) &&
           llvm::all_of(promotions, [&](PromoteOp op) { return isDoneWithLast(op); }) &&
           llvm::all_of(products, [&](const auto &known) { return isWhole(known.second); }) &&
           !products.empty();
  }

  /// True where all of the tile's columns are multiplied, and what the product of the tail needs is
  /// there when it begins.
  bool isWhole(Product product) {
    std::optional<Distribution> distribution =
        distribute(store.getAcc().getType(), getOperation().getWarpgroups());
    const bool isBatched = product.batches.front().has_value();
    if (static_cast<int64_t>(product.batches.size()) != (isBatched ? distribution->fragments() : 1))
      return false;
    DominanceInfo dominance(getOperation());
    SmallVector<Value> needed = {product.promote.getRowScales(), product.promote.getColumnScales()};
    return llvm::all_of(needed, [&](Value value) {
      return !value || dominance.properlyDominates(value, product.dot);
    });
  }

  static Operands operandsOf(DotOp dot) {
    return {dot.getA(), dot.getB(), static_cast<int64_t>(dot.getKBegin().value_or(0))};
  }

  /// The dot and the wait that `promote` comes after, in its own block, where no branch between
  /// them adds to what it promotes.
  static std::optional<Product> productOf(PromoteOp promote) {
    Product product;
    product.promote = promote;
    for (Operation *op = promote->getPrevNode(); op && !product.dot; op = op->getPrevNode()) {
      if (auto wait = dyn_cast<WaitOp>(op);
          wait && wait.getAcc() == promote.getFrom() && !product.wait)
        product.wait = wait;
      WalkResult nested = op->walk([&](DotOp dot) {
        if (dot.getAcc() != promote.getFrom())
          return WalkResult::advance();
        if (dot != op)
          return WalkResult::interrupt();
        product.dot = dot;
        return WalkResult::advance();
      });
      if (nested.wasInterrupted())
        return std::nullopt;
    }
    return product.dot && product.wait ? std::optional(product) : std::nullopt;
  }

  /// Promotions come in the order of the kernel.
  bool addProduct(PromoteOp promote) {
    std::optional<Product> product = productOf(promote);
    if (!product || !product->dot.getFresh() || product->dot.getBatch() != promote.getBatch() ||
        product->wait.getPending() != 0 || !promote.getRowValues().empty() ||
        !promote.getColumnValues().empty() ||
        !isFieldOfRows(product->dot.getA().getDefiningOp<FieldOp>()) ||
        !product->dot.getB().getDefiningOp<FieldOp>() || !canFollow(promote.getRowScales()))
      return false;
    auto [at, isNew] = products.try_emplace(operandsOf(product->dot), *product);
    Product &known = at->second;
    // Promoted twice it counts twice, which one product of the tail would not.
    const bool isAnother = !llvm::is_contained(known.batches, promote.getBatch());
    product->batches = known.batches;
    product->batches.push_back(promote.getBatch());
    const bool isSame = isAnother && known.promote.getRowScales() == promote.getRowScales() &&
                        known.promote.getColumnScales() == promote.getColumnScales() &&
                        known.dot.getKSize() == product->dot.getKSize();
    known = *product;
    return isSame;
  }

  /// True where the last batch of the product that `promote` belongs to is computed whenever it is,
  /// or whenever the tile has a tail: under the same branches, or those that leave out empty rows.
  bool isDoneWithLast(PromoteOp promote) {
    Product last = products.find(operandsOf(productOf(promote)->dot))->second;
    for (Operation *op = last.promote->getParentOp(); op && op != tiles; op = op->getParentOp()) {
      if (op->isProperAncestor(promote))
        continue;
      auto branch = dyn_cast<scf::IfOp>(op);
      auto isNeeded = branch ? branch.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
      APInt first;
      if (!isNeeded || isNeeded.getPredicate() != arith::CmpIPredicate::sgt ||
          isNeeded.getLhs() != tiles.getTileRows() ||
          !matchPattern(isNeeded.getRhs(), m_ConstantInt(&first)) ||
          first.sgt(scheduler.getTileM()) ||
          !branch.getThenRegion().isAncestor(last.promote->getParentRegion()))
        return false;
    }
    return true;
  }

  /// True where `row` is the first of the tile, of all rows or of those of a buffer.
  bool isFirstRow(Value row) {
    auto inBuffer = row.getDefiningOp<arith::SubIOp>();
    return (inBuffer ? inBuffer.getLhs() : row) == tiles.getFirstRow();
  }

  /// The dimension of `block` that counts the rows of the tile, where it starts at the first.
  std::optional<size_t> rowDimension(BlockType block, ValueRange coordinates) {
    ArrayRef<int64_t> shape = block.getShape();
    for (size_t d = 0; d < shape.size() && d < coordinates.size(); ++d)
      if (isFirstRow(coordinates[d]) && shape[d] == static_cast<int64_t>(scheduler.getTileM()))
        return d;
    return std::nullopt;
  }

  bool isFieldOfRows(FieldOp field) {
    if (!field || field.getFrom() != 0)
      return false;
    RingOp ring = ringOf(field.getSlot());
    std::optional<size_t> along = rowDimension(field.getResult().getType(), field.getCoordinates());
    if (!ring || !along || field.getField() >= ring.getFields().size() ||
        ring.getField(field.getField()) != field.getResult().getType())
      return false;
    fields[{ring, static_cast<int64_t>(field.getField())}] = *along;
    return true;
  }

  /// True where the scales of the tail's rows can be had as those of the tile's are.
  bool canFollow(Value scales) {
    if (!scales)
      return true;
    Operation *op = scales.getDefiningOp();
    if (auto unpack = dyn_cast_if_present<UnpackOp>(op))
      return canFollow(unpack.getWords());
    if (auto field = dyn_cast_if_present<FieldOp>(op))
      return isOneForAll(field.getResult().getType(), field.getCoordinates()) ||
             isFieldOfRows(field);
    auto load = dyn_cast_if_present<LoadOp>(op);
    return load && (isOneForAll(load.getResult().getType(), load.getCoordinates()) ||
                    rowDimension(load.getResult().getType(), load.getCoordinates()));
  }

  /// A scale that all rows of the expert have.
  bool isOneForAll(BlockType block, ValueRange coordinates) {
    return isOne(block) && llvm::none_of(coordinates, [&](Value at) { return followsRows(at); });
  }

  /// True where `value` is computed from the first row of the tile.
  bool followsRows(Value value) {
    if (value == tiles.getFirstRow())
      return true;
    Operation *op = value.getDefiningOp();
    return op && tiles->isProperAncestor(op) &&
           llvm::any_of(op->getOperands(), [&](Value operand) { return followsRows(operand); });
  }

  static bool isOne(BlockType block) {
    return llvm::all_of(block.getShape(), [](int64_t extent) { return extent == 1; });
  }

  BlockType withRows(BlockType block, size_t along, int64_t count) {
    SmallVector<int64_t> shape(block.getShape());
    shape[along] = count;
    return BlockType::get(&getContext(), shape, block.getElementType());
  }

  /// Whether copies bring the rows of the tail with those before them, in one box, or its share for
  /// each block of a cluster.
  bool canWiden() {
    bool isOk = true;
    for (auto [key, along] : fields) {
      auto ring = cast<RingOp>(key.first);
      const int64_t count = scheduler.getTileM() + rows;
      std::optional<FieldLayout> was = fieldLayout(ring.getField(key.second));
      std::optional<FieldLayout> layout =
          fieldLayout(withRows(ring.getField(key.second), along, count));
      isOk &=
          was && layout && layout->kind == was->kind && layout->kind != FieldLayout::Kind::Scalars;
      getOperation().walk([&, field = key.second](CopyOp copy) {
        if (ringOf(copy.getSlot()) != ring || static_cast<int64_t>(copy.getField()) != field)
          return;
        const int64_t blocks = copy.getMulticast() ? getOperation().getClusterSize() : 1;
        isOk &= !copy.getFirst() && !copy.getRowsBy() && count % (swizzleRows * blocks) == 0;
      });
    }
    return isOk;
  }

  void addTail() {
    const int64_t tileM = scheduler.getTileM();
    for (auto [key, along] : fields) {
      auto ring = cast<RingOp>(key.first);
      SmallVector<Attribute> types(ring.getFields().begin(), ring.getFields().end());
      types[key.second] = TypeAttr::get(withRows(ring.getField(key.second), along, tileM + rows));
      ring.setFieldsAttr(ArrayAttr::get(&getContext(), types));
    }
    scheduler.setTail(rows);

    OpBuilder builder(acc);
    Location loc = acc.getLoc();
    Value sums = AccOp::create(builder, loc, tailType());
    const int64_t fragments = distribute(tailType(), getOperation().getWarpgroups())->fragments();
    SmallVector<Value> parts;
    for (int64_t i = 0; i < fragments; ++i)
      parts.push_back(AccOp::create(builder, loc, FragmentType::get(&getContext(), rows)));
    builder.setInsertionPointAfter(fill);
    FillOp::create(builder, loc, sums);
    for (auto &[operands, product] : products)
      multiplyTail(product, sums, parts);
    for (ScaleOp scaling : scalings) {
      builder.setInsertionPointAfter(scaling);
      Code code(builder, scaling.getLoc());
      Value scales = scaling.getRowScales() ? tailOf(code, scaling.getRowScales()) : Value();
      ScaleOp::create(builder, code.loc, sums, scaling.getColumnScales(), scales,
                      scaling.getColumnGranuleAttr(), scaling.getRowGranuleAttr());
    }
    builder.setInsertionPointAfter(store);
    Code code(builder, store.getLoc());
    Value row = code.add(tiles.getFirstRow(), tileM);
    Value inTail = code.sub(tiles.getTileRows(), code.i32(tileM));
    StoreOp::create(builder, code.loc, sums, store.getView(), row, store.getColumn(), inTail,
                    Value(), /*transposed=*/true, /*staged=*/false, store.getByFirst(), nullptr);
  }

  /// Has the dots of the tail under way while the last batch of the tile is promoted.
  void multiplyTail(Product product, Value sums, ArrayRef<Value> parts) {
    PromoteOp promote = product.promote;
    auto of = TypeAttr::get(tailType());
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(product.dot);
    Code code(builder, promote.getLoc());
    Value x = tailOf(code, product.dot.getA());
    Value scales = promote.getRowScales() ? tailOf(code, promote.getRowScales()) : Value();
    Value hasTail = arith::CmpIOp::create(builder, code.loc, arith::CmpIPredicate::sgt,
                                          tiles.getTileRows(), code.i32(scheduler.getTileM()));
    auto issue = scf::IfOp::create(builder, code.loc, hasTail, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(issue.thenBlock());
    for (auto [i, part] : llvm::enumerate(parts))
      DotOp::create(builder, code.loc, part, product.dot.getB(), x, Value(), Value(), IntegerAttr(),
                    IntegerAttr(), product.dot.getKBeginAttr(), product.dot.getKSizeAttr(),
                    /*fresh=*/builder.getUnitAttr(), /*exact=*/UnitAttr(),
                    builder.getI64IntegerAttr(i), of);

    builder.setInsertionPoint(product.wait);
    auto waits = scf::IfOp::create(builder, code.loc, hasTail, /*withElseRegion=*/true);
    builder.setInsertionPointToStart(waits.thenBlock());
    WaitOp::create(builder, product.wait.getLoc(), promote.getFrom(), parts.size());
    product.wait->moveBefore(waits.elseBlock()->getTerminator());

    builder.setInsertionPointAfter(promote);
    auto finish = scf::IfOp::create(builder, code.loc, hasTail, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(finish.thenBlock());
    for (auto [i, part] : llvm::enumerate(parts)) {
      WaitOp::create(builder, code.loc, part, parts.size() - 1 - i);
      PromoteOp::create(builder, code.loc, sums, part, promote.getColumnScales(), scales,
                        ValueRange(), ValueRange(), promote.getColumnGranuleAttr(),
                        promote.getRowGranuleAttr(), builder.getI64IntegerAttr(i));
    }
  }

  /// What `block` is to the rows of the tile, for those of the tail.
  Value tailOf(Code &code, Value block) {
    OpBuilder &builder = code.builder;
    Operation *op = block.getDefiningOp();
    if (auto unpack = dyn_cast<UnpackOp>(op)) {
      Value words = tailOf(code, unpack.getWords());
      auto type = cast<BlockType>(words.getType());
      return UnpackOp::create(builder, code.loc,
                              BlockType::get(&getContext(), type.getShape(),
                                             unpack.getResult().getType().getElementType()),
                              words, unpack.getIndex());
    }
    auto type = cast<BlockType>(block.getType());
    if (isOne(type))
      return block;
    if (auto field = dyn_cast<FieldOp>(op)) {
      size_t along = *rowDimension(type, field.getCoordinates());
      return FieldOp::create(builder, code.loc, withRows(type, along, rows), field.getSlot(),
                             field.getField(), field.getView(), field.getCoordinates(),
                             static_cast<int64_t>(scheduler.getTileM()));
    }
    auto load = cast<LoadOp>(op);
    size_t along = *rowDimension(type, load.getCoordinates());
    SmallVector<Value> coordinates(load.getCoordinates());
    coordinates[along] = code.add(coordinates[along], scheduler.getTileM());
    return LoadOp::create(builder, code.loc, withRows(type, along, rows), load.getView(),
                          coordinates, load.getRowsBy(), load.getBulk(), load.getItemsAttr());
  }
};

} // namespace

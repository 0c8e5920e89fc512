// Owns how scales reach registers and how products are promoted with them.
#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERSCALES
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

int64_t elementsOf(BlockType block) {
  int64_t elements = 1;
  for (int64_t extent : block.getShape())
    elements *= extent;
  return elements;
}

/// The fp32 scale of an ue8m0 byte b: 2^(b - 127). Byte 0 is the subnormal 2^-127, 255 is NaN (OCP
/// Microscaling Formats).
Value decodeE8M0(Code &code, Value byte) {
  constexpr int64_t mantissaTop = 0x00400000;
  Value exponent = code.shl(byte, 23);
  Value nan = code.select(code.equal(byte, code.i32(255)), code.i32(mantissaTop), code.i32(0));
  Value bits = code.add(code.max(exponent, code.i32(mantissaTop)), nan);
  return ptx::FloatBitsOp::create(code.builder, code.loc, bits);
}

/// Reads single scales of a block, from a field of a slot or from global memory.
struct ScaleReader {
  KernelOp kernel;
  Value block;
  Value byte = {}; ///< of packed scales: which of a word's

  static ScaleReader of(KernelOp kernel, Value block) {
    if (auto unpack = block ? block.getDefiningOp<UnpackOp>() : UnpackOp())
      return {kernel, unpack.getWords(), unpack.getIndex()};
    return {kernel, block};
  }

  /// True where two neighbouring columns, the first of them even, have one scale.
  bool hasPairs(int64_t granule) const {
    auto load = block.getDefiningOp<LoadOp>();
    if (load && load.getItems())
      return load.getItems()->hasPairs();
    return granule % 2 == 0;
  }

  /// The scale at `index` along the block's one long dimension. Null after an error at `op`.
  Value read(Code &code, Operation *op, Value index) {
    Type element = cast<BlockType>(block.getType()).getElementType();
    if (element.isInteger(32) && !byte) {
      op->emitOpError("takes packed scales; unpack them first");
      return {};
    }
    Value raw;
    if (auto field = block.getDefiningOp<FieldOp>())
      raw = readShared(code, op, field, index);
    else if (auto load = block.getDefiningOp<LoadOp>())
      raw = readGlobal(code, load, index);
    else
      op->emitOpError("takes scales from a field or a load");
    if (!raw || element.isF32())
      return raw;
    if (byte)
      raw = code.bitAnd(code.shr(raw, code.mul(byte, 8)), 255);
    return decodeE8M0(code, raw);
  }

  Value readShared(Code &code, Operation *op, FieldOp field, Value index) {
    ViewType view = field.getView().getType();
    FieldLayout layout = *fieldLayout(field.getResult().getType());
    int64_t elementBytes = view.getElementBytes(), unit = copiedBytes / elementBytes;
    Value base = fieldAddress(code, op, field.getSlot(), field.getField());
    if (!base)
      return {};
    // Copies start on 16 bytes: the scale asked for lies somewhere further on.
    if (layout.kind == FieldLayout::Kind::Vector) {
      Value slack = code.bitAnd(field.getCoordinates().back(), unit - 1);
      base = code.add(base, code.mul(code.add(index, slack), elementBytes));
    } else {
      Value linear = linearIndex(code, view, field.getCoordinates());
      Value entry = code.mul(index, stepOf(view, field.getResult().getType()));
      Value slack = code.bitAnd(code.add(linear, entry), unit - 1);
      base = code.add(code.add(base, code.mul(index, 128)), code.mul(slack, elementBytes));
    }
    Type element = view.getElementType();
    if (element.isF32())
      return ptx::LdSharedF32Op::create(code.builder, code.loc, base);
    if (element.isInteger(32))
      return ptx::LdSharedI32Op::create(code.builder, code.loc, base);
    return ptx::LdSharedU8Op::create(code.builder, code.loc, base);
  }

  /// Elements of a packed view between two neighbours along the block's long dimension.
  static int64_t stepOf(ViewType view, BlockType block) {
    int64_t step = 1;
    for (int64_t d = view.getRank() - 1; d >= 0; --d) {
      if (block.getShape()[d] > 1)
        return step;
      step *= view.getShape()[d];
    }
    return 1;
  }

  /// How many items or entries there are along dimension `along` of what `load` reads.
  static Value limitOf(Code &code, LoadOp load, int64_t along) {
    int64_t extent = load.getView().getType().getShape()[along];
    if (std::optional<ItemsAttr> items = load.getItems())
      extent =
          items->getExtent() == 0 ? ShapedType::kDynamic : items->getExtent() * items->getParts();
    if (ShapedType::isDynamic(extent))
      return RowsOp::create(code.builder, code.loc, code.builder.getI32Type());
    return code.i32(extent);
  }

  Value readGlobal(Code &code, LoadOp load, Value index) {
    ViewType view = load.getView().getType();
    BlockType block = load.getResult().getType();
    SmallVector<Value> coordinates(load.getCoordinates());
    std::optional<int64_t> along;
    for (int64_t d = 0; d < view.getRank(); ++d)
      if (block.getShape()[d] > 1)
        along = d;
    if (!along)
      return loadGlobal(code, load, coordinates);

    coordinates[*along] = code.add(coordinates[*along], index);
    Value isInside = code.less(coordinates[*along], limitOf(code, load, *along));
    if (load.getRowsBy()) {
      coordinates[*along] = rowBy(code, load, load.getRowsBy(), coordinates[*along]);
      if (!coordinates[*along])
        return {};
    }
    bool isFloat = view.getElementType().isF32();
    Type type = isFloat ? Type(code.builder.getF32Type()) : Type(code.builder.getI32Type());
    auto branch =
        scf::IfOp::create(code.builder, code.loc, type, isInside, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(code.builder);
    code.builder.setInsertionPointToEnd(branch.thenBlock());
    if (std::optional<ItemsAttr> items = load.getItems())
      coordinates[*along] = scaleOfItem(code, *items, coordinates[*along]);
    scf::YieldOp::create(code.builder, code.loc, loadGlobal(code, load, coordinates));
    code.builder.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(code.builder, code.loc, isFloat ? code.f32(0) : code.i32(0));
    return branch.getResult(0);
  }

  Value loadGlobal(Code &code, LoadOp load, ArrayRef<Value> coordinates) {
    ViewType view = load.getView().getType();
    Value offset = elementOffset(code, load.getView(), coordinates);
    Value pointer = pointerTo(code, load.getView());
    Value bytes = code.mul(offset, view.getElementBytes());
    Type element = view.getElementType();
    if (element.isInteger(32))
      return ptx::LdGlobalI32Op::create(code.builder, code.loc, pointer, bytes);
    if (isScratch(load.getView()))
      return element.isF32()
                 ? Value(ptx::LdGlobalFreshF32Op::create(code.builder, code.loc, pointer, bytes))
                 : Value(ptx::LdGlobalFreshU8Op::create(code.builder, code.loc, pointer, bytes));
    if (element.isF32())
      return ptx::LdGlobalF32Op::create(code.builder, code.loc, pointer, bytes);
    return ptx::LdGlobalU8Op::create(code.builder, code.loc, pointer, bytes);
  }
};

/// The scales of one side of a fragment.
struct SideScales {
  BlockType type; ///< null: this side is not scaled
  Value block;
  int64_t granule = 1;
  SmallVector<Value> values; ///< read already
  bool isScaled() const { return block || !values.empty(); }
};

/// Neighbouring columns of a fragment with one scale each run.
struct ColumnRuns {
  SmallVector<Value> scales;
  SmallVector<Value> ends; ///< of all runs but the last, counted from the fragment's first column
  bool hasPairs = false;   ///< every end is even
};

/// More runs than this are read column by column: each costs two registers and a comparison for
/// every pair of columns.
constexpr int64_t mostRuns = 4;

/// The first item after `item` with another scale. Items are stacked, not interleaved.
int64_t endOfRun(ItemsAttr items, int64_t item) {
  int64_t end = items.getExtent() - item % items.getExtent();
  if (int64_t granule = items.getGranule(); granule != 0)
    end = std::min(end, granule - (item % items.getExtent() + items.getPhase()) % granule);
  return item + end;
}

/// The same, computed by the kernel.
Value endOfRun(Code &code, ItemsAttr items, Value item) {
  Value first = code.i32(0), inside = item;
  if (items.getParts() > 1) {
    first = code.mul(code.div(item, items.getExtent()), items.getExtent());
    inside = code.sub(item, first);
  }
  Value end = code.i32(items.getExtent());
  if (int64_t granule = items.getGranule(); granule != 0) {
    Value next = code.add(code.div(code.add(inside, items.getPhase()), granule), 1);
    Value there = code.add(code.mul(next, granule), -items.getPhase());
    end = items.getParts() > 1 ? code.min(there, end) : there;
  }
  return code.add(first, end);
}

/// The most runs that `columns` neighbours from a multiple of `align` on have.
int64_t runsIn(ItemsAttr items, int64_t columns, int64_t align) {
  int64_t most = 0, all = items.getExtent() * items.getParts();
  for (int64_t first = 0; first < all && most <= mostRuns; first += align) {
    int64_t runs = 0;
    for (int64_t item = first; item < std::min(first + columns, all); ++runs)
      item = endOfRun(items, item);
    most = std::max(most, runs);
  }
  return most;
}

struct LowerScales : tile::impl::TileLowerScalesBase<LowerScales> {
  KernelOp kernel;

  void runOnOperation() override {
    kernel = getOperation();
    SmallVector<Operation *> ops;
    kernel.walk([&](Operation *op) {
      if (isa<ReadOp, PromoteOp, ScaleOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      LogicalResult result = success();
      if (auto read = dyn_cast<ReadOp>(op))
        result = lower(read);
      else if (auto promote = dyn_cast<PromoteOp>(op))
        result = lower(promote);
      else
        result = lower(cast<ScaleOp>(op));
      if (failed(result))
        return signalPassFailure();
    }
    // What was read where it was used needs no load of its own any more.
    SmallVector<Operation *> loads;
    kernel.walk([&](Operation *op) {
      if (isa<LoadOp, UnpackOp>(op))
        loads.push_back(op);
    });
    for (Operation *load : llvm::reverse(loads))
      if (load->use_empty())
        load->erase();
  }

  /// This thread's first row of the fragment; the other is 8 further down.
  Value threadRow(Code &code, const Distribution &distribution, int64_t batch) {
    Value row = fragmentRow(code, kernel, distribution, batch);
    Value warp = threadValue(kernel, ThreadValue::WarpInGroup);
    Value lane = threadValue(kernel, ThreadValue::Lane);
    return code.add(code.add(row, code.mul(warp, 16)), code.shr(lane, 2));
  }

  /// The scales of this thread's two rows; the same value twice where one covers the tile.
  FailureOr<SmallVector<Value>> rowScales(Code &code, Operation *op, Value block, int64_t granule,
                                          const Distribution &distribution, int64_t batch) {
    ScaleReader reader = ScaleReader::of(kernel, block);
    SmallVector<Value> values;
    if (elementsOf(cast<BlockType>(block.getType())) == 1) {
      Value value = reader.read(code, op, code.i32(0));
      values = {value, value};
    } else {
      Value row = threadRow(code, distribution, batch);
      for (int64_t down : {0, 8})
        values.push_back(reader.read(code, op, code.div(code.add(row, down), granule)));
    }
    if (!values[0])
      return failure();
    code.name(values[0], "rowScale");
    code.name(values[1], "rowScaleBelow");
    return values;
  }

  LogicalResult lower(ReadOp read) {
    OpBuilder builder(read);
    Code code(builder, read.getLoc());
    std::optional<Distribution> distribution = distribute(read.getOf(), kernel.getWarpgroups());
    SmallVector<Value> values;
    int64_t granule = read.getGranule(), batch = read.getBatch();
    if (read.getSide() == Side::Rows) {
      FailureOr<SmallVector<Value>> rows =
          rowScales(code, read, read.getBlock(), granule, *distribution, batch);
      if (failed(rows))
        return failure();
      values = *rows;
    } else {
      Value index = code.i32(0);
      if (elementsOf(read.getBlock().getType()) > 1)
        index = code.div(fragmentColumn(code, kernel, *distribution, batch), granule);
      Value value = ScaleReader::of(kernel, read.getBlock()).read(code, read, index);
      if (!value)
        return failure();
      values = {code.name(value, "columnScale")};
    }
    read.getValues().replaceAllUsesWith(values);
    read.erase();
    return success();
  }

  /// The runs of a fragment's columns, read; none where there are too many, or an error (`failed`).
  FailureOr<ColumnRuns> columnRuns(Code &code, Operation *op, const SideScales &columns,
                                   const Distribution &distribution, Value column) {
    ColumnRuns runs;
    ScaleReader reader = ScaleReader::of(kernel, columns.block);
    auto load = reader.block.getDefiningOp<LoadOp>();
    ItemsAttr items = load ? load.getItems().value_or(ItemsAttr()) : ItemsAttr();
    SmallVector<Value> starts = {code.i32(0)};
    if (items) {
      if (columns.granule != 1 || items.getInterleaved() || items.getExtent() == 0)
        return runs;
      auto dimensions = load.getResult().getType().getShape();
      auto along = llvm::find_if(dimensions, [](int64_t extent) { return extent > 1; });
      Value tile = load.getCoordinates()[along - dimensions.begin()];
      int64_t count = runsIn(items, distribution.n, alignOf(tile, distribution.n));
      if (count > mostRuns)
        return runs;
      Value first = code.add(tile, column);
      for (int64_t run = 1; run < count; ++run) {
        Value end = endOfRun(code, items, code.add(first, starts.back()));
        starts.push_back(code.sub(end, first));
      }
      runs.hasPairs = items.hasPairs();
    } else {
      int64_t count = distribution.n / columns.granule;
      if (distribution.n % columns.granule != 0 || count > mostRuns)
        return runs;
      for (int64_t run = 1; run < count; ++run)
        starts.push_back(code.i32(run * columns.granule));
      runs.hasPairs = columns.granule % 2 == 0;
    }
    for (Value start : starts) {
      runs.scales.push_back(
          reader.read(code, op, code.div(code.add(column, start), columns.granule)));
      if (!runs.scales.back())
        return failure();
      code.name(runs.scales.back(), "columnScale");
    }
    runs.ends.assign(starts.begin() + 1, starts.end());
    return runs;
  }

  /// What the first column of a fragment of `n` columns is a multiple of, where `coordinate` is
  /// that of the tile.
  static int64_t alignOf(Value coordinate, int64_t n) {
    auto argument = dyn_cast<BlockArgument>(coordinate);
    auto tiles = argument ? dyn_cast<ForTilesOp>(argument.getOwner()->getParentOp()) : ForTilesOp();
    auto scheduler = tiles ? tiles.getScheduler().getDefiningOp<SchedulerOp>() : SchedulerOp();
    bool isWhole = scheduler && coordinate == tiles.getFirstColumn() &&
                   static_cast<int64_t>(scheduler.getTileN()) % n == 0;
    return isWhole ? n : 1;
  }

  /// Builds `combine` for every register of a fragment whose columns have the scales of `runs`.
  void forEachRun(Code &code, const Distribution &distribution, const ColumnRuns &runs, Value row0,
                  Value row1, function_ref<void(Value index, Value scale)> combine) {
    auto times = [&](Value row) {
      return llvm::map_to_vector(runs.scales, [&](Value scale) -> Value {
        return row ? Value(ptx::MulF32Op::create(code.builder, code.loc, row, scale)) : scale;
      });
    };
    SmallVector<Value> upper = times(row0), lower = row1 ? times(row1) : upper;
    Value lane = threadValue(kernel, ThreadValue::Lane);
    Value pair = code.mul(code.bitAnd(lane, 3), 2);
    code.unroll(0, distribution.n / 2, 4, [&](Value i) {
      Value scale0, scale1;
      for (int64_t side : {0, 1}) {
        if (side == 0 || !runs.hasPairs) {
          Value at = code.add(code.add(pair, code.mul(i, 2)), side);
          scale0 = upper.back();
          scale1 = lower.back();
          for (int64_t run = static_cast<int64_t>(runs.ends.size()) - 1; run >= 0; --run) {
            Value isBefore = code.less(at, runs.ends[run]);
            scale0 = code.select(isBefore, upper[run], scale0);
            scale1 = code.select(isBefore, lower[run], scale1);
          }
        }
        combine(code.add(i, side), scale0);
        combine(code.add(i, side + 2), scale1);
      }
    });
  }

  /// Builds `combine` for every register of fragment `batch`, with the scales of its row and column
  /// (null: none).
  LogicalResult forEachRegister(Code &code, Operation *op, const Distribution &distribution,
                                int64_t batch, SideScales rows, SideScales columns,
                                function_ref<void(Value index, Value scale)> combine) {
    if (rows.block) {
      FailureOr<SmallVector<Value>> values =
          rowScales(code, op, rows.block, rows.granule, distribution, batch);
      if (failed(values))
        return failure();
      rows.values = *values;
    }
    bool isOneColumnScale =
        columns.block && (elementsOf(columns.type) == 1 || columns.granule % distribution.n == 0);
    Value column;
    if (columns.block)
      column = fragmentColumn(code, kernel, distribution, batch);
    ScaleReader reader = ScaleReader::of(kernel, columns.block);
    if (isOneColumnScale) {
      Value index = elementsOf(columns.type) == 1 ? code.i32(0) : code.div(column, columns.granule);
      columns.values = {code.name(reader.read(code, op, index), "columnScale")};
      if (!columns.values[0])
        return failure();
    }
    auto product = [&](Value a, Value b) -> Value {
      return a && b ? ptx::MulF32Op::create(code.builder, code.loc, a, b) : (a ? a : b);
    };
    Value row0 = rows.values.empty() ? Value() : rows.values[0];
    Value row1 = rows.values.empty() ? Value() : rows.values[1];
    if (columns.values.empty() && columns.block) {
      FailureOr<ColumnRuns> runs = columnRuns(code, op, columns, distribution, column);
      if (failed(runs))
        return failure();
      if (!runs->scales.empty()) {
        forEachRun(code, distribution, *runs, row0, row1, combine);
        return success();
      }
      // Each thread holds two neighbouring columns of every eight.
      Value lane = threadValue(kernel, ThreadValue::Lane);
      Value pair = code.add(column, code.mul(code.bitAnd(lane, 3), 2));
      bool failedToRead = false;
      code.unroll(0, distribution.n / 2, 4, [&](Value i) {
        Value scale;
        for (int64_t side : {0, 1}) {
          if (side == 0 || !reader.hasPairs(columns.granule)) {
            Value at = code.add(code.add(pair, code.mul(i, 2)), side);
            scale = reader.read(code, op, code.div(at, columns.granule));
          }
          if (!scale) {
            failedToRead = true;
            return;
          }
          combine(code.add(i, side), product(row0, scale));
          combine(code.add(i, side + 2), product(row1, scale));
        }
      });
      return failure(failedToRead);
    }
    Value common = columns.values.empty() ? Value() : columns.values[0];
    Value scale0 = product(row0, common), scale1 = product(row1, common);
    code.unroll(0, distribution.n / 2, 4, [&](Value i) {
      for (int64_t j = 0; j < 4; ++j)
        combine(code.add(i, j), j < 2 ? scale0 : scale1);
    });
    return success();
  }

  template <typename Op> SideScales rowsOf(Op op) {
    SideScales side;
    side.block = op.getRowScales();
    side.type = side.block ? cast<BlockType>(side.block.getType()) : BlockType();
    side.granule = op.getRowGranule().value_or(1);
    return side;
  }
  template <typename Op> SideScales columnsOf(Op op) {
    SideScales side;
    side.block = op.getColumnScales();
    side.type = side.block ? cast<BlockType>(side.block.getType()) : BlockType();
    side.granule = op.getColumnGranule().value_or(1);
    return side;
  }

  LogicalResult lower(PromoteOp promote) {
    AccType whole = promote.getInto().getType();
    if (auto from = dyn_cast<AccType>(promote.getFrom().getType()); from && from != whole)
      return promote.emitOpError("promotes ")
             << from << " into " << whole << ", whose registers hold other elements";
    OpBuilder builder(promote);
    Code code(builder, promote.getLoc());
    std::optional<Distribution> distribution =
        distribute(promote.getInto().getType(), kernel.getWarpgroups());
    SideScales rows = rowsOf(promote), columns = columnsOf(promote);
    rows.values = llvm::to_vector(promote.getRowValues());
    columns.values = llvm::to_vector(promote.getColumnValues());
    Value into = registersOf(code, kernel, promote.getInto());
    Value from = registersOf(code, kernel, promote.getFrom());
    int64_t first = promote.getBatch().value_or(0);
    int64_t last = promote.getBatch() ? first : distribution->fragments() - 1;
    for (int64_t batch = first; batch <= last; ++batch) {
      LogicalResult result = forEachRegister(
          code, promote, *distribution, batch, rows, columns, [&](Value i, Value scale) {
            Value sum = code.get(into, {code.index(batch), i});
            Value part =
                promote.getBatch() ? code.get(from, {i}) : code.get(from, {code.index(batch), i});
            Value result =
                scale ? Value(ptx::FmaF32Op::create(builder, promote.getLoc(), part, scale, sum))
                      : Value(ptx::AddF32Op::create(builder, promote.getLoc(), part, sum));
            code.set(into, {code.index(batch), i}, result);
          });
      if (failed(result))
        return failure();
    }
    promote.erase();
    return success();
  }

  LogicalResult lower(ScaleOp scaleOp) {
    OpBuilder builder(scaleOp);
    Code code(builder, scaleOp.getLoc());
    std::optional<Distribution> distribution =
        distribute(scaleOp.getAcc().getType(), kernel.getWarpgroups());
    Value registers = registersOf(code, kernel, scaleOp.getAcc());
    for (int64_t batch = 0; batch < distribution->fragments(); ++batch) {
      LogicalResult result =
          forEachRegister(code, scaleOp, *distribution, batch, rowsOf(scaleOp), columnsOf(scaleOp),
                          [&](Value i, Value scale) {
                            if (!scale)
                              return;
                            Value old = code.get(registers, {code.index(batch), i});
                            code.set(registers, {code.index(batch), i},
                                     ptx::MulF32Op::create(builder, scaleOp.getLoc(), old, scale));
                          });
      if (failed(result))
        return failure();
    }
    scaleOp.erase();
    return success();
  }
};

} // namespace

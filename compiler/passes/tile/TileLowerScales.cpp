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

/// Reads single scales of a block, from a field of a slot or from global memory.
struct ScaleReader {
  KernelOp kernel;
  Value block;

  /// The scale at `index` along the block's one long dimension. Null after an error at `op`.
  Value read(Code &code, Operation *op, Value index) {
    if (auto field = block.getDefiningOp<FieldOp>())
      return readShared(code, op, field, index);
    if (auto load = block.getDefiningOp<LoadOp>())
      return readGlobal(code, load, index);
    op->emitOpError("takes scales from a field or a load");
    return {};
  }

  Value readShared(Code &code, Operation *op, FieldOp field, Value index) {
    ViewType view = field.getView().getType();
    FieldLayout layout = *fieldLayout(field.getResult().getType());
    Value base = fieldAddress(code, op, field.getSlot(), field.getField());
    if (!base)
      return {};
    // Copies start on 16 bytes: the scale asked for lies up to three further on.
    if (layout.kind == FieldLayout::Kind::Vector) {
      Value slack = code.bitAnd(field.getCoordinates().back(), 3);
      base = code.add(base, code.mul(code.add(index, slack), 4));
    } else {
      Value linear = linearIndex(code, view, field.getCoordinates());
      Value entry = code.mul(index, stepOf(view, field.getResult().getType()));
      Value slack = code.bitAnd(code.add(linear, entry), 3);
      base = code.add(code.add(base, code.mul(index, 128)), code.mul(slack, 4));
    }
    return ptx::LdSharedF32Op::create(code.builder, code.loc, base);
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
    int64_t extent = view.getShape()[*along];
    Value limit = ShapedType::isDynamic(extent)
                      ? Value(RowsOp::create(code.builder, code.loc, code.builder.getI32Type()))
                      : code.i32(extent);
    Value isInside = code.less(coordinates[*along], limit);
    if (load.getRowsBy()) {
      coordinates[*along] = rowBy(code, load, load.getRowsBy(), coordinates[*along]);
      if (!coordinates[*along])
        return {};
    }
    auto branch = scf::IfOp::create(code.builder, code.loc, code.builder.getF32Type(), isInside,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(code.builder);
    code.builder.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(code.builder, code.loc, loadGlobal(code, load, coordinates));
    code.builder.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(code.builder, code.loc, code.f32(0));
    return branch.getResult(0);
  }

  Value loadGlobal(Code &code, LoadOp load, ArrayRef<Value> coordinates) {
    ViewType view = load.getView().getType();
    Value offset;
    if (view.hasLaunchStride()) {
      // Rows of a launch's own tensors lie as far apart as the launch says.
      Value stride =
          StrideOp::create(code.builder, code.loc, code.builder.getI64Type(), load.getView());
      offset = code.add(code.mul(code.extend(coordinates[0]), stride), code.extend(coordinates[1]));
    } else {
      offset = code.extend(coordinates.front());
      for (int64_t d = 1; d < view.getRank(); ++d)
        offset = code.add(code.mul(offset, view.getShape()[d]), code.extend(coordinates[d]));
    }
    return ptx::LdGlobalF32Op::create(code.builder, code.loc, pointerTo(code, load.getView()),
                                      code.mul(offset, 4));
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
    SmallVector<LoadOp> loads;
    kernel.walk([&](LoadOp load) { loads.push_back(load); });
    for (LoadOp load : loads)
      if (load.getResult().use_empty())
        load.erase();
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
    ScaleReader reader{kernel, block};
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
      Value value = ScaleReader{kernel, read.getBlock()}.read(code, read, index);
      if (!value)
        return failure();
      values = {code.name(value, "columnScale")};
    }
    read.getValues().replaceAllUsesWith(values);
    read.erase();
    return success();
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
    ScaleReader reader{kernel, columns.block};
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
      // Each thread holds two neighbouring columns of every eight.
      Value lane = threadValue(kernel, ThreadValue::Lane);
      Value pair = code.add(column, code.mul(code.bitAnd(lane, 3), 2));
      bool failedToRead = false;
      code.unroll(0, distribution.n / 2, 4, [&](Value i) {
        for (int64_t side : {0, 1}) {
          Value at = code.add(code.add(pair, code.mul(i, 2)), side);
          Value scale = reader.read(code, op, code.div(at, columns.granule));
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

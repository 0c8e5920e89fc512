// Owns how scales reach registers and how products are promoted with them.
#include "compiler/passes/tile/ScaleReader.h"

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
  DenseSet<Value> readColumns; ///< registers that reads of columns fill, and nothing else writes

  void runOnOperation() override {
    kernel = getOperation();
    readColumns.clear();
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

  /// This thread's first column of every eight; the other is its neighbour.
  Value pairOf(Code &code) {
    return code.mul(code.bitAnd(threadValue(kernel, ThreadValue::Lane), 3), 2);
  }

  /// Registers for the scales of so many columns of a thread.
  Value columnRegisters(Code &code, int64_t count) {
    auto type = ptx::RegsType::get({count}, code.builder.getF32Type());
    Value registers = ptx::RegsOp::create(code.builder, code.loc, type);
    return code.name(registers, "columnScales");
  }

  /// The registers that a read left exactly `values` in, in their order; null: there are none.
  Value readRegisters(ArrayRef<Value> values) const {
    Value registers;
    for (auto [i, value] : llvm::enumerate(values)) {
      auto get = value.getDefiningOp<ptx::RegsGetOp>();
      if (!get || !readColumns.contains(get.getRegs()) ||
          (registers && registers != get.getRegs()) ||
          get.getStaticIndices() != ArrayRef<int64_t>{static_cast<int64_t>(i)})
        return {};
      registers = get.getRegs();
    }
    return cast<ptx::RegsType>(registers.getType()).getShape().back() ==
                   static_cast<int64_t>(values.size())
               ? registers
               : Value();
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
    ScaleReader reader(kernel, block);
    SmallVector<Value> values;
    if (elementsOf(cast<BlockType>(block.getType())) == 1) {
      Value value = reader.read(code, op, code.i32(0));
      values = {value, value};
    } else if (granule % fragmentRows == 0) {
      Value row = fragmentRow(code, kernel, distribution, batch);
      Value value = reader.read(code, op, code.div(row, granule));
      values = {value, value};
    } else {
      Value row = threadRow(code, distribution, batch);
      for (int64_t down : {0, 8})
        values.push_back(reader.read(code, op, code.div(code.add(row, down), granule)));
    }
    if (!values[0])
      return failure();
    code.name(values[0], "rowScale");
    if (values[1] != values[0])
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
      ScaleReader reader(kernel, read.getBlock());
      Value column = fragmentColumn(code, kernel, *distribution, batch);
      int64_t count = read.getValues().size();
      if (count > 1) {
        Value registers = columnRegisters(code, count);
        readColumns.insert(registers);
        Value pair = code.add(column, pairOf(code));
        bool failedToRead = false;
        code.unroll(0, count, 2, [&](Value i) {
          for (int64_t side : {0, 1}) {
            Value at = code.add(code.add(pair, code.mul(i, 4)), side);
            Value scale = reader.read(code, read, code.div(at, granule));
            failedToRead |= !scale;
            if (scale)
              code.set(registers, {code.add(i, side)}, scale);
          }
        });
        if (failedToRead)
          return failure();
        for (int64_t i = 0; i < count; ++i)
          values.push_back(code.get(registers, {code.index(i)}));
      } else {
        bool isOne = elementsOf(read.getBlock().getType()) == 1;
        Value value = reader.read(code, read, isOne ? code.i32(0) : code.div(column, granule));
        if (!value)
          return failure();
        values = {code.name(value, "columnScale")};
      }
    }
    read.getValues().replaceAllUsesWith(values);
    read.erase();
    return success();
  }

  /// The runs of a fragment's columns, read; none where there are too many, or an error (`failed`).
  FailureOr<ColumnRuns> columnRuns(Code &code, Operation *op, const SideScales &columns,
                                   const Distribution &distribution, Value column) {
    ColumnRuns runs;
    ScaleReader reader(kernel, columns.block);
    auto load = reader.getBlock().getDefiningOp<LoadOp>();
    ItemsAttr items = load ? load.getItems().value_or(ItemsAttr()) : ItemsAttr();
    SmallVector<Value> starts = {code.i32(0)};
    if (items) {
      // Gathered rows have the scales of where they lie.
      if (columns.granule != 1 || items.getInterleaved() || items.getExtent() == 0 ||
          load.getRowsBy())
        return runs;
      auto dimensions = load.getResult().getType().getShape();
      auto along = llvm::find_if(dimensions, [](int64_t extent) { return extent > 1; });
      Value tile = load.getCoordinates()[along - dimensions.begin()];
      const int64_t align = ScaleReader::firstItemAlign(load, distribution.n);
      int64_t count = runsIn(items, distribution.width, align);
      if (count > mostRuns)
        return runs;
      Value first = code.add(tile, column);
      for (int64_t run = 1; run < count; ++run) {
        Value end = endOfRun(code, items, code.add(first, starts.back()));
        starts.push_back(code.sub(end, first));
      }
      runs.hasPairs = items.hasPairs() && align % 2 == 0;
    } else {
      int64_t count = (distribution.width + columns.granule - 1) / columns.granule;
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

  /// Builds `combine` for every register of a fragment whose columns have the scales of `runs`.
  void forEachRun(Code &code, const Distribution &distribution, const ColumnRuns &runs, Value row0,
                  Value row1, function_ref<void(Value index, Value scale)> combine) {
    auto times = [&](Value row) {
      return llvm::map_to_vector(runs.scales, [&](Value scale) -> Value {
        return row ? Value(ptx::MulF32Op::create(code.builder, code.loc, row, scale)) : scale;
      });
    };
    SmallVector<Value> upper = times(row0), lower = row1 && row1 != row0 ? times(row1) : upper;
    Value pair = pairOf(code);
    code.unroll(0, distribution.width / 2, 4, [&](Value i) {
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
    ScaleReader reader(kernel, columns.block);
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
    // One product serves both rows where they have one scale.
    auto combineRows = [&](Value i, int64_t side, Value scale) {
      Value upper = product(row0, scale), lower = row1 == row0 ? upper : product(row1, scale);
      combine(code.add(i, side), upper);
      combine(code.add(i, side + 2), lower);
    };
    if (columns.values.size() > 1) {
      Value registers = readRegisters(columns.values);
      if (!registers) {
        registers = columnRegisters(code, columns.values.size());
        for (auto [i, value] : llvm::enumerate(columns.values))
          code.set(registers, {code.index(i)}, value);
      }
      code.unroll(0, distribution.width / 2, 4, [&](Value i) {
        for (int64_t side : {0, 1}) {
          Value scale = code.get(registers, {code.add(code.div(i, 2), side)});
          combineRows(i, side, scale);
        }
      });
      return success();
    }
    if (columns.values.empty() && columns.block) {
      FailureOr<ColumnRuns> runs = columnRuns(code, op, columns, distribution, column);
      if (failed(runs))
        return failure();
      if (!runs->scales.empty()) {
        forEachRun(code, distribution, *runs, row0, row1, combine);
        return success();
      }
      // Each thread holds two neighbouring columns of every eight.
      Value pair = code.add(column, pairOf(code));
      bool failedToRead = false;
      code.unroll(0, distribution.width / 2, 4, [&](Value i) {
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
          combineRows(i, side, scale);
        }
      });
      return failure(failedToRead);
    }
    Value common = columns.values.empty() ? Value() : columns.values[0];
    Value scale0 = product(row0, common), scale1 = row1 == row0 ? scale0 : product(row1, common);
    code.unroll(0, distribution.width / 2, 4, [&](Value i) {
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
    if (auto narrower = dyn_cast<FragmentType>(promote.getFrom().getType()))
      distribution->width = narrower.getN();
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

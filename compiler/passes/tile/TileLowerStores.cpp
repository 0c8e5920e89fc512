// Owns how results leave the registers.
#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERSTORES
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

constexpr int64_t stagedColumns = 64; // 16-bit results of one row in a warp's buffer
constexpr int64_t stagedPitch = 144;  // bytes from row to row: 128 and one 16-byte bank shift
constexpr int64_t warpRows = 16;
constexpr int64_t stagedTokens = 32;    // columns of a transposed accumulator in a warp's buffer
constexpr int64_t transposedPitch = 48; // bytes from one to the next: 32, and a 16-byte bank shift

struct LowerStores : tile::impl::TileLowerStoresBase<LowerStores> {
  void runOnOperation() override {
    SmallVector<StoreOp> stores;
    getOperation().walk([&](StoreOp store) { stores.push_back(store); });
    for (StoreOp store : stores)
      if (failed(lower(store)))
        return signalPassFailure();
  }

  LogicalResult lower(StoreOp store) {
    kernel = getOperation();
    OpBuilder builder(store);
    Code code(builder, store.getLoc());
    if (store.getByFirst()) {
      Value rank = threadValue(kernel, ThreadValue::ClusterRank);
      auto branch = scf::IfOp::create(builder, store.getLoc(), code.equal(rank, code.i32(0)),
                                      /*withElseRegion=*/false);
      builder.setInsertionPointToStart(branch.thenBlock());
    }
    distribution = *distribute(store.getAcc().getType(), kernel.getWarpgroups());
    element = store.getView().getType().getElementType();
    columns = store.getView().getType().getShape()[1];
    if (columns % 8 != 0)
      return store.emitOpError("writes columns by the eight, its view has ") << columns;
    AccType acc = store.getAcc().getType();
    hasWholeTiles = columns % (store.getTransposed() ? acc.getRows() : acc.getColumns()) == 0;
    registers = registersOf(code, kernel, store.getAcc());
    pointer = pointerTo(code, store.getView());
    Value stride = StrideOp::create(builder, store.getLoc(), builder.getI64Type(), store.getView());
    strideBytes = code.name(code.mul(stride, element.getIntOrFloatBitWidth() / 8), "yStrideBytes");
    const int64_t together = store.getTransposed() ? 16 : stagedColumns;
    if (store.getStaged() && (!store.getSharedOffset() || distribution.n % together != 0))
      return store.emitOpError("has no buffer to stage in; run tile-allocate-shared, and stage "
                               "fragments of a multiple of ")
             << together << " columns only";
    auto scheduler = store.getRowsBy() ? store.getRowsBy().getDefiningOp<SchedulerOp>() : nullptr;
    if (store.getRowsBy() && (!scheduler || !scheduler.getIds() || !scheduler.getSharedOffset()))
      return store.emitOpError(
          "finds rows by a scheduler that does not sort them, or has no shared memory yet");
    for (int64_t batch = 0; batch < distribution.fragments(); ++batch) {
      if (store.getTransposed() && store.getStaged())
        lowerTransposedStaged(code, store, batch);
      else if (store.getTransposed())
        lowerTransposed(code, store, batch);
      else if (store.getStaged())
        lowerStaged(code, store, batch);
      else
        lowerDirect(code, store, batch);
    }
    store.erase();
    return success();
  }

  /// First row of the running warp in fragment `batch`.
  Value warpRow(Code &code, int64_t batch) {
    Value warp = threadValue(kernel, ThreadValue::WarpInGroup);
    return code.add(fragmentRow(code, kernel, distribution, batch), code.mul(warp, warpRows));
  }

  /// Row of y where row `rowInTile` of the tile goes.
  Value rowOf(Code &code, StoreOp store, Value rowInTile) {
    return rowBy(code, store, store.getRowsBy(), code.add(store.getRow(), rowInTile));
  }

  /// Byte offset of an element of y.
  Value offsetOf(Code &code, Value row, Value column) {
    return code.add(code.mul(code.extend(row), strideBytes),
                    code.mul(code.extend(column), element.getIntOrFloatBitWidth() / 8));
  }

  void ifInside(Code &code, Value column, function_ref<void()> body) {
    if (hasWholeTiles)
      return body();
    code.onlyIf(code.less(column, code.i32(columns)), body);
  }

  Value pack(Code &code, Value low, Value high) {
    if (element.isBF16())
      return ptx::CvtBf16x2F32Op::create(code.builder, code.loc, low, high);
    return ptx::CvtF16x2F32Op::create(code.builder, code.loc, low, high);
  }

  /// Each thread writes the two neighbouring elements it holds of every eight columns.
  void lowerDirect(Code &code, StoreOp store, int64_t batch) {
    Value lane = threadValue(kernel, ThreadValue::Lane);
    Value rowInTile = code.add(warpRow(code, batch), code.shr(lane, 2));
    Value column = code.add(fragmentColumn(code, kernel, distribution, batch), store.getColumn());
    Value pair = code.mul(code.bitAnd(lane, 3), 2);
    OpFoldResult f = code.index(batch);
    for (int64_t down : {0, 8}) {
      Value row = code.add(rowInTile, down);
      code.onlyIf(code.less(row, store.getRows()), [&] {
        Value line =
            code.name(offsetOf(code, rowOf(code, store, row), code.add(column, pair)), "line");
        code.unroll(0, distribution.n / 8, 1, [&](Value j) {
          ifInside(code, code.add(column, code.mul(j, 8)), [&] {
            Value offset =
                code.add(line, code.extend(code.mul(j, element.getIntOrFloatBitWidth())));
            Value index = code.add(code.mul(j, 4), down / 4);
            Value low = code.get(registers, {f, index});
            Value high = code.get(registers, {f, code.add(index, 1)});
            if (element.isF32()) {
              ptx::StGlobalF32Op::create(code.builder, code.loc, pointer, offset, low);
              ptx::StGlobalF32Op::create(code.builder, code.loc, pointer, code.add(offset, 4),
                                         high);
            } else {
              ptx::StGlobalB32Op::create(code.builder, code.loc, pointer, offset,
                                         pack(code, low, high));
            }
          });
        });
      });
    }
  }

  /// Each thread writes the elements it holds: neighbours of two rows of y.
  void lowerTransposed(Code &code, StoreOp store, int64_t batch) {
    Value lane = threadValue(kernel, ThreadValue::Lane);
    Value column = code.add(code.add(warpRow(code, batch), code.shr(lane, 2)), store.getColumn());
    Value token = code.add(fragmentColumn(code, kernel, distribution, batch),
                           code.mul(code.bitAnd(lane, 3), 2));
    OpFoldResult f = code.index(batch);
    code.unroll(0, distribution.n / 8, 1, [&](Value j) {
      for (int64_t side : {0, 1}) {
        Value row = code.add(code.add(token, code.mul(j, 8)), side);
        code.onlyIf(code.less(row, store.getRows()), [&] {
          Value line = code.name(offsetOf(code, rowOf(code, store, row), column), "line");
          for (int64_t down : {0, 8})
            ifInside(code, code.add(column, down), [&] {
              Value value = code.get(registers, {f, code.add(code.mul(j, 4), down / 4 + side)});
              Value offset = code.add(line, down * element.getIntOrFloatBitWidth() / 8);
              if (element.isF32())
                ptx::StGlobalF32Op::create(code.builder, code.loc, pointer, offset, value);
              else
                ptx::StGlobalB16Op::create(code.builder, code.loc, pointer, offset,
                                           pack(code, value, value));
            });
        });
      }
    });
  }

  /// A warp turns 16 columns of y and 32 of its rows over in its buffer, 16 bytes a thread.
  void lowerTransposedStaged(Code &code, StoreOp store, int64_t batch) {
    Location loc = store.getLoc();
    Value lane = threadValue(kernel, ThreadValue::Lane);
    Value buffer = warpBuffer(code, store);
    Value column = code.name(code.add(warpRow(code, batch), store.getColumn()), "firstColumn");
    Value firstToken = fragmentColumn(code, kernel, distribution, batch);
    OpFoldResult f = code.index(batch);
    // stmatrix: eight lanes give the rows of y of one matrix; two matrices side by side are 16
    // columns, the next two eight rows further down.
    Value matrixRow = code.add(code.bitAnd(lane, 7), code.mul(code.shr(lane, 4), 8));
    Value half = code.mul(code.bitAnd(code.shr(lane, 3), 1), 16);
    Value mine =
        code.name(code.add(code.add(buffer, code.mul(matrixRow, transposedPitch)), half), "mine");
    for (int64_t q = 0; q < distribution.n; q += stagedTokens) {
      const int64_t tokens = std::min(stagedTokens, distribution.n - q);
      Value first = code.add(firstToken, q);
      code.onlyIf(code.less(first, store.getRows()), [&] {
        ptx::SyncwarpOp::create(code.builder, loc);
        for (int64_t down = 0; down < tokens; down += 16) {
          SmallVector<Value> packed;
          for (int64_t i = 0; i < 8; i += 2) {
            const int64_t index = (q + down) / 2 + i;
            packed.push_back(pack(code, code.get(registers, {f, code.index(index)}),
                                  code.get(registers, {f, code.index(index + 1)})));
          }
          ptx::StmatrixX4TransOp::create(code.builder, loc, code.add(mine, down * transposedPitch),
                                         packed[0], packed[1], packed[2], packed[3]);
        }
        ptx::SyncwarpOp::create(code.builder, loc);
        Value chunkColumn = code.add(column, code.shr(half, 1));
        ifInside(code, chunkColumn, [&] {
          for (int64_t down = 0; down < tokens; down += 16) {
            Value row = code.add(code.add(first, down), matrixRow);
            code.onlyIf(code.less(row, store.getRows()), [&] {
              storeVector(code, code.add(mine, down * transposedPitch),
                          offsetOf(code, rowOf(code, store, row), chunkColumn));
            });
          }
        });
      });
    }
  }

  /// The running warp's buffer in shared memory.
  Value warpBuffer(Code &code, StoreOp store) {
    Value warp = code.add(code.mul(threadValue(kernel, ThreadValue::Warpgroup), 4),
                          threadValue(kernel, ThreadValue::WarpInGroup));
    return code.name(
        code.add(threadValue(kernel, ThreadValue::SharedBase),
                 code.add(code.mul(warp, warpRows * stagedPitch), *store.getSharedOffset())),
        "buffer");
  }

  /// Moves 16 bytes from shared memory to y.
  void storeVector(Code &code, Value from, Value offset) {
    Value vector = ptx::RegsOp::create(code.builder, code.loc,
                                       ptx::RegsType::get({4}, code.builder.getI32Type()));
    code.name(vector, "vector");
    ptx::LdSharedV4Op::create(code.builder, code.loc, from, vector, ArrayRef<OpFoldResult>());
    ptx::StGlobalV4Op::create(code.builder, code.loc, pointer, offset, vector,
                              ArrayRef<OpFoldResult>());
  }

  /// A warp gathers 16 rows of 64 results in its buffer and writes them out 16 bytes a thread.
  void lowerStaged(Code &code, StoreOp store, int64_t batch) {
    Location loc = store.getLoc();
    Value lane = threadValue(kernel, ThreadValue::Lane);
    Value buffer = warpBuffer(code, store);
    Value firstRow = code.name(warpRow(code, batch), "firstRow");
    Value column = code.add(fragmentColumn(code, kernel, distribution, batch), store.getColumn());
    OpFoldResult f = code.index(batch);
    code.onlyIf(code.less(firstRow, store.getRows()), [&] {
      // stmatrix: lanes 0–15 give the rows of the left 8 columns, lanes 16–31 those of the right 8.
      Value into =
          code.name(code.add(code.add(buffer, code.mul(code.bitAnd(lane, 15), stagedPitch)),
                             code.mul(code.shr(lane, 4), 16)),
                    "into");
      for (int64_t q = 0; q < distribution.n / stagedColumns; ++q) {
        ptx::SyncwarpOp::create(code.builder, loc);
        code.unroll(0, stagedColumns / 8, 2, [&](Value j) {
          SmallVector<Value> packed;
          Value index = code.add(code.mul(j, 4), q * (stagedColumns / 2));
          for (int64_t i = 0; i < 4; ++i) {
            Value low = code.get(registers, {f, code.add(index, 2 * i)});
            Value high = code.get(registers, {f, code.add(index, 2 * i + 1)});
            packed.push_back(pack(code, low, high));
          }
          ptx::StmatrixX4Op::create(code.builder, loc, code.add(into, code.mul(j, 16)), packed[0],
                                    packed[1], packed[2], packed[3]);
        });
        ptx::SyncwarpOp::create(code.builder, loc);
        Value chunk = code.mul(code.bitAnd(lane, 7), 8);
        Value chunkColumn = code.add(code.add(column, chunk), q * stagedColumns);
        ifInside(code, chunkColumn, [&] {
          code.unroll(0, warpRows, 4, [&](Value r) {
            Value row = code.add(r, code.shr(lane, 3));
            Value rowInTile = code.add(firstRow, row);
            code.onlyIf(code.less(rowInTile, store.getRows()), [&] {
              Value from = code.add(code.add(buffer, code.mul(row, stagedPitch)),
                                    code.mul(code.bitAnd(lane, 7), 16));
              storeVector(code, from, offsetOf(code, rowOf(code, store, rowInTile), chunkColumn));
            });
          });
        });
      }
    });
  }

  KernelOp kernel;
  Distribution distribution;
  Type element;
  int64_t columns = 0;
  bool hasWholeTiles = false; ///< no tile reaches past the last column
  Value registers, pointer, strideBytes;
};

} // namespace

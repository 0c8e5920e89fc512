// Builds the quantization of activations as a step before the tiles, shared out over the grid.
#include "compiler/passes/tile/QuantizePrologue.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// Columns of a box: enough for every warp of a block to have some, few enough for few rows to keep
/// many blocks busy.
constexpr int64_t boxColumns = 1024;
/// Rows of a box: of few rows one, so that there are as many boxes as can be; of many up to these.
constexpr int64_t mostBoxRows = 32;
constexpr int64_t rowsPerBoxRow = 32;

bool hasPhases(const Spec &spec) { return spec.xScales.isPerTensor(); }

/// Elements of K that one scale covers.
int64_t granuleOf(const Spec &spec) {
  return spec.xScales.kGranule() == 0 ? spec.k : spec.xScales.kGranule();
}

/// A grid_for over boxes of `columns` columns, from counter `at` on; `body` is given the first row
/// and column of a box, and its rows.
void forBoxes(Code &code, Value counters, int64_t at, int64_t k, int64_t columns,
              function_ref<void(Value row, Value column, Value rows)> body) {
  OpBuilder &builder = code.builder;
  Value rows = RowsOp::create(builder, code.loc, builder.getI32Type());
  Value boxRows =
      code.name(code.min(code.ceilDiv(rows, rowsPerBoxRow), code.i32(mostBoxRows)), "boxRows");
  int64_t across = (k + columns - 1) / columns;
  Value down = code.div(code.add(rows, code.add(boxRows, -1)), boxRows);
  Value boxes = code.name(code.mul(down, across), "boxes");
  auto loop = GridForOp::create(builder, code.loc, counters, at, boxes, IntegerAttr());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&loop.getBody(), {}, {builder.getI32Type()}, {code.loc});
  Value boxRow = code.div(loop.getIndex(), across);
  Value row = code.name(code.mul(boxRow, boxRows), "boxRow");
  Value column = code.mul(code.sub(loop.getIndex(), code.mul(boxRow, across)), columns);
  body(row, code.name(column, "boxColumn"),
       code.name(code.min(code.sub(rows, row), boxRows), "rowsInBox"));
}

} // namespace

int64_t tile::quantizeCounters(const Spec &spec) { return hasPhases(spec) ? 5 : 2; }

void tile::quantizePrologue(Code &code, const Spec &spec, const QuantizeViews &views) {
  OpBuilder &builder = code.builder;
  if (hasPhases(spec)) {
    // The magnitude of all rows comes first: nobody knows the scale before.
    constexpr int64_t amaxAt = 4;
    int64_t columns = std::min(spec.k, boxColumns);
    forBoxes(code, views.counters, 0, spec.k, columns, [&](Value row, Value column, Value rows) {
      AmaxOp::create(builder, code.loc, views.from, row, column, rows, columns, views.counters,
                     amaxAt, 1, nullptr);
    });
    forBoxes(code, views.counters, 2, spec.k, columns, [&](Value row, Value column, Value rows) {
      QuantizeOp::create(builder, code.loc, views.from, row, column, rows, columns, views.into,
                         views.scales, IntegerAttr(), views.counters, amaxAt, /*mn_major=*/false, 1,
                         1, IntegerAttr());
    });
    return;
  }
  int64_t granule = granuleOf(spec);
  int64_t columns = std::max<int64_t>(1, boxColumns / granule) * granule;
  forBoxes(code, views.counters, 0, spec.k, columns, [&](Value row, Value column, Value rows) {
    QuantizeOp::create(builder, code.loc, views.from, row, column, rows, columns, views.into,
                       views.scales, builder.getI64IntegerAttr(granule), Value(), 0,
                       /*mn_major=*/false, 1, 1, IntegerAttr());
  });
}

// Owns how a block sorts the rows of a launch by expert. Every block sorts for itself and comes to
// the same order, so that none waits for another.
#include "compiler/passes/tile/Lowering.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

constexpr int64_t rowsAtOnce = 4; // a 16-byte load of shared memory
static_assert(maxSortedRows % rowsAtOnce == 0);

class RowSort {
public:
  RowSort(Code &code, KernelOp kernel, SchedulerOp scheduler)
      : code(code), builder(code.builder), loc(code.loc), kernel(kernel), scheduler(scheduler),
        buckets(static_cast<int64_t>(scheduler.getExperts()) + 1) {}

  void build() {
    thread = threadValue(kernel, ThreadValue::Thread);
    Value base =
        code.add(threadValue(kernel, ThreadValue::SharedBase), *scheduler.getSharedOffset());
    starts = code.name(code.add(base, queueBytes), "starts");
    counters = code.name(code.add(base, sortCountersOffset(scheduler)), "counters");
    sorted = code.name(code.add(base, sortedRowsOffset(scheduler)), "sortedRows");
    bucketOf = code.name(code.add(base, rowBucketsOffset(scheduler)), "bucketOf");
    rows = code.name(
        code.min(RowsOp::create(builder, loc, builder.getI32Type()), code.i32(maxSortedRows)),
        "rowsToSort");
    // Rows are looked at four at a time; those past the last are in no bucket.
    wholeRows = code.name(code.mul(code.ceilDiv(rows, rowsAtOnce), rowsAtOnce), "wholeRows");
    forEach(code.i32(buckets), "bucket", [&](Value bucket) {
      ptx::StSharedI32Op::create(builder, loc, code.add(counters, code.mul(bucket, 4)),
                                 code.i32(0));
    });
    meet();
    forEach(wholeRows, "row", [&](Value row) { count(row); });
    meet();
    code.onlyIf(code.equal(threadValue(kernel, ThreadValue::Warp), code.i32(0)),
                [&] { sumCounters(); });
    meet();
    // A thread for each bucket takes its rows in order; all threads read the same words at a time.
    forEach(code.i32(buckets), "bucket", [&](Value bucket) { place(bucket); });
  }

private:
  /// Every thread of the block takes some of the indices below `end`.
  void forEach(Value end, StringRef name, function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(builder, loc, thread, end, code.i32(kernel.getThreads()));
    loop->setAttr("ptx.name", builder.getStringAttr(name));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  void meet() { ptx::BarSyncOp::create(builder, loc, 0, kernel.getThreads()); }

  /// What `inside` gives where `condition` holds, elsewhere -1.
  Value orNobody(Value condition, StringRef name, function_ref<Value()> inside) {
    auto branch = scf::IfOp::create(builder, loc, builder.getI32Type(), condition,
                                    /*withElseRegion=*/true);
    branch->setAttr("ptx.names", builder.getStrArrayAttr({name}));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value value = inside();
    scf::YieldOp::create(builder, loc, value);
    builder.setInsertionPointToStart(branch.elseBlock());
    Value nobody = code.i32(-1);
    scf::YieldOp::create(builder, loc, nobody);
    return branch.getResult(0);
  }

  Value isBelow(Value value, int64_t end) {
    return code.both(code.less(code.i32(-1), value), code.less(value, code.i32(end)));
  }

  /// Notes the bucket of a row: its expert, or the one after the last expert's for nobody's.
  void count(Value row) {
    Value offset = code.mul(row, 4);
    Value bucket = orNobody(code.less(row, rows), "bucket", [&]() -> Value {
      Value id = ptx::LdGlobalI32Op::create(builder, loc, pointerTo(code, scheduler.getIds()),
                                            code.extend(offset));
      if (TypedValue<ViewType> map = scheduler.getMap())
        id = orNobody(isBelow(id, map.getType().getShape()[0]), "expert", [&]() -> Value {
          return ptx::LdGlobalI32Op::create(builder, loc, pointerTo(code, map),
                                            code.extend(code.mul(id, 4)));
        });
      Value nobody = code.i32(buckets - 1);
      Value own = code.name(code.select(isBelow(id, buckets - 1), id, nobody), "owner");
      ptx::AtomAddSharedI32Op::create(builder, loc, code.add(counters, code.mul(own, 4)),
                                      code.i32(1));
      return own;
    });
    ptx::StSharedI32Op::create(builder, loc, code.add(bucketOf, offset), bucket);
  }

  /// Writes the rows of `bucket` to where they start.
  void place(Value bucket) {
    Value at = ptx::RegsOp::create(builder, loc, ptx::RegsType::get({1}, builder.getI32Type()));
    code.name(at, "place");
    code.set(at, {code.index(0)},
             ptx::LdSharedI32Op::create(builder, loc, code.add(starts, code.mul(bucket, 4))));
    auto loop = scf::ForOp::create(builder, loc, code.i32(0), wholeRows, code.i32(rowsAtOnce));
    loop->setAttr("ptx.name", builder.getStringAttr("row"));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value row = loop.getInductionVar();
    Value found =
        ptx::RegsOp::create(builder, loc, ptx::RegsType::get({rowsAtOnce}, builder.getI32Type()));
    code.name(found, "found");
    ptx::LdSharedV4Op::create(builder, loc, code.add(bucketOf, code.mul(row, 4)), found,
                              ArrayRef<OpFoldResult>());
    for (int64_t i = 0; i < rowsAtOnce; ++i)
      code.onlyIf(code.equal(code.get(found, {code.index(i)}), bucket), [&] {
        Value next = code.get(at, {code.index(0)});
        ptx::StSharedI32Op::create(builder, loc, code.add(sorted, code.mul(next, 4)),
                                   code.add(row, i));
        code.set(at, {code.index(0)}, code.add(next, 1));
      });
  }

  /// One warp turns counts into starts: every lane sums a run of counters, the lanes sum their
  /// runs, and every lane hands its run out again.
  void sumCounters() {
    Value lane = threadValue(kernel, ThreadValue::Lane);
    int64_t run = (buckets + 31) / 32;
    Value first = code.mul(lane, run);
    Value end = code.min(code.add(first, run), code.i32(buckets));
    Value sums = ptx::RegsOp::create(builder, loc, ptx::RegsType::get({2}, builder.getI32Type()));
    code.name(sums, "sums");
    auto sum = [&](int64_t i) { return code.get(sums, {code.index(i)}); };
    auto setSum = [&](int64_t i, Value value) { code.set(sums, {code.index(i)}, value); };
    auto walkRun = [&](function_ref<void(Value)> body) {
      auto loop = scf::ForOp::create(builder, loc, first, end, code.i32(1));
      loop->setAttr("ptx.name", builder.getStringAttr("bucket"));
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      body(code.mul(loop.getInductionVar(), 4));
    };
    setSum(0, code.i32(0));
    walkRun([&](Value offset) {
      setSum(0, code.add(sum(0),
                         ptx::LdSharedI32Op::create(builder, loc, code.add(counters, offset))));
    });
    ptx::SyncwarpOp::create(builder, loc);
    // Inclusive sum over the lanes, doubling the distance.
    setSum(1, sum(0));
    for (int64_t distance = 1; distance < 32; distance *= 2) {
      Value from = code.sub(lane, code.i32(distance));
      Value other = ptx::ShflIdxOp::create(builder, loc, sum(1), code.max(from, code.i32(0)));
      Value added = code.select(code.less(from, code.i32(0)), code.i32(0), other);
      setSum(1, code.add(sum(1), added));
    }
    setSum(1, code.sub(sum(1), sum(0)));
    walkRun([&](Value offset) {
      Value count = ptx::LdSharedI32Op::create(builder, loc, code.add(counters, offset));
      ptx::StSharedI32Op::create(builder, loc, code.add(starts, offset), sum(1));
      setSum(1, code.add(sum(1), count));
    });
  }

  Code &code;
  OpBuilder &builder;
  Location loc;
  KernelOp kernel;
  SchedulerOp scheduler;
  int64_t buckets;
  Value thread, starts, counters, sorted, bucketOf, rows, wholeRows;
};

} // namespace

void tile::sortRows(Code &code, KernelOp kernel, SchedulerOp scheduler) {
  RowSort(code, kernel, scheduler).build();
}

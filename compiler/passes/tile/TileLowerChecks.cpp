// Owns how a checked kernel looks at its operands: plain loads, comparisons, and one reduction for
// each thing that is wrong. Nothing it does reaches a result.
#include "compiler/passes/tile/Lowering.h"

#include "runtime/Checks.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERCHECKS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct LowerChecks : tile::impl::TileLowerChecksBase<LowerChecks> {
  KernelOp kernel;

  void runOnOperation() override {
    kernel = getOperation();
    SmallVector<Operation *> ops;
    kernel.walk([&](Operation *op) {
      if (isa<CheckRoutingOp, CheckScalesOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      auto routing = dyn_cast<CheckRoutingOp>(op);
      if (failed(routing ? lower(routing) : lower(cast<CheckScalesOp>(op))))
        return signalPassFailure();
      op->erase();
    }
  }

  Value no(Code &code, Value condition) {
    return code.bitXor(condition,
                       arith::ConstantIntOp::create(code.builder, code.loc, 1, /*width=*/1));
  }
  Value either(Code &code, Value a, Value b) {
    return code.builder.createOrFold<arith::OrIOp>(code.loc, a, b);
  }

  /// Notes `index` (i64) in the word of `kind` where `isWrong`.
  void report(Code &code, Value errors, int64_t kind, Value isWrong, Value index) {
    code.onlyIf(isWrong, [&] {
      ptx::RedMaxGlobalI64Op::create(code.builder, code.loc, pointerTo(code, errors),
                                     code.i64(8 * kind), code.sub(code.i64(checkWord(0)), index));
    });
  }

  /// A loop over [0, end) that the threads of the block share, from `thread` in steps of `threads`.
  void share(Code &code, Value thread, int64_t threads, Value end, StringRef name,
             function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(code.builder, code.loc, thread, end, code.i32(threads));
    loop->setAttr("ptx.name", code.builder.getStringAttr(name));
    {
      OpBuilder::InsertionGuard guard(code.builder);
      code.builder.setInsertionPointToStart(loop.getBody());
      body(loop.getInductionVar());
    }
    // Threads leave at different times; what follows is for converged warps.
    ptx::SyncwarpOp::create(code.builder, code.loc);
  }

  Value loadWord(Code &code, Value view, Value index) {
    return ptx::LdGlobalI32Op::create(code.builder, code.loc, pointerTo(code, view),
                                      code.mul(code.extend(index), 4));
  }

  /// True where `value` is outside [least, end).
  Value isOutside(Code &code, Value value, int64_t least, Value end) {
    return either(code, code.less(value, code.i32(least)), no(code, code.less(value, end)));
  }

  LogicalResult lower(CheckRoutingOp check) {
    OpBuilder builder(check);
    Code code(builder, check.getLoc());
    Value thread = threadValue(kernel, ThreadValue::Thread);
    int64_t experts = check.getExperts(), threads = kernel.getThreads();
    Value rows = RowsOp::create(builder, code.loc, builder.getI32Type());
    Value block = ptx::BlockIndexOp::create(builder, code.loc);
    auto kindOf = [](CheckKind kind) { return static_cast<int64_t>(kind); };
    code.onlyIf(code.equal(block, code.i32(0)), [&] {
      if (Value offsets = check.getOffsets())
        share(code, thread, threads, code.i32(experts + 1), "boundary", [&](Value i) {
          Value boundary = loadWord(code, offsets, i);
          Value isPast = either(code, code.less(boundary, code.i32(0)), code.less(rows, boundary));
          report(code, check.getErrors(), kindOf(CheckKind::OffsetRange), isPast, code.extend(i));
          // The first boundary is compared with itself.
          Value before = loadWord(code, offsets, code.max(code.add(i, -1), code.i32(0)));
          report(code, check.getErrors(), kindOf(CheckKind::OffsetOrder),
                 code.less(boundary, before), code.extend(i));
        });
      if (Value counts = check.getCounts()) {
        Value most = code.name(code.div(rows, experts), "bufferRows");
        share(code, thread, threads, code.i32(experts), "expert", [&](Value i) {
          Value count = loadWord(code, counts, i);
          report(code, check.getErrors(), kindOf(CheckKind::CountRange),
                 either(code, code.less(count, code.i32(0)), code.less(most, count)),
                 code.extend(i));
        });
      }
      Value map = check.getMap();
      int64_t mapped =
          map ? cast<ViewType>(map.getType()).getShape().front() : ShapedType::kDynamic;
      if (Value ids = check.getIds())
        share(code, thread, threads, rows, "row", [&](Value i) {
          Value id = loadWord(code, ids, i);
          // Without a map any id that is no expert's is nobody's: ids may be of all ranks.
          Value isWrong =
              map ? isOutside(code, id, -1, code.i32(mapped)) : code.less(id, code.i32(-1));
          report(code, check.getErrors(), kindOf(CheckKind::IdRange), isWrong, code.extend(i));
        });
      if (map)
        share(code, thread, threads, code.i32(mapped), "globalExpert", [&](Value i) {
          report(code, check.getErrors(), kindOf(CheckKind::MapRange),
                 isOutside(code, loadWord(code, map, i), -1, code.i32(experts)), code.extend(i));
        });
    });
    return success();
  }

  LogicalResult lower(CheckScalesOp check) {
    OpBuilder builder(check);
    Code code(builder, check.getLoc());
    ViewType view = check.getView().getType();
    Type element = view.getElementType();
    bool isKnown = check.getByte() ? element.isInteger(32)
                                   : element.isF32() || isa<Float8E8M0FNUType>(element);
    if (!isKnown)
      return check.emitOpError("looks at ")
             << view << ", and knows scales of f32 and powers of two";
    int64_t entries = 1;
    for (int64_t extent : check.getBox())
      entries *= extent;
    // Warps that compute take part, numbered from the first of them.
    Value thread = code.name(code.add(code.mul(threadValue(kernel, ThreadValue::Warpgroup), 128),
                                      code.bitAnd(threadValue(kernel, ThreadValue::Thread), 127)),
                             "checkingThread");
    bool isBroken = false;
    share(code, thread, 128 * kernel.getWarpgroups(), code.i32(entries), "scale", [&](Value i) {
      SmallVector<Value> coordinates(check.getCoordinates());
      Value isInside = arith::ConstantIntOp::create(builder, code.loc, 1, /*width=*/1);
      std::optional<int64_t> along;
      Value rest = i;
      for (int64_t d = view.getRank() - 1; d >= 0; --d) {
        int64_t extent = check.getBox()[d], limit = view.getShape()[d];
        if (extent != 1) {
          along = d;
          Value at = code.rem(rest, extent);
          rest = code.div(rest, extent);
          coordinates[d] = code.add(coordinates[d], at);
          if (check.getRows() && d == static_cast<int64_t>(*check.getRowDimension()))
            isInside = code.both(isInside, code.less(at, check.getRows()));
          if (check.getItems())
            limit = check.getItems()->getExtent() == 0
                        ? ShapedType::kDynamic
                        : check.getItems()->getExtent() * check.getItems()->getParts();
        }
        // The rows of the tile are rows of the launch; every other extent is known. Steps past K
        // have no scales, and no dots.
        if (!ShapedType::isDynamic(limit))
          isInside = code.both(isInside, code.less(coordinates[d], code.i32(limit)));
      }
      code.onlyIf(isInside, [&] {
        if (check.getRowsBy()) {
          Value &row = coordinates[*check.getRowDimension()];
          row = rowBy(code, check, check.getRowsBy(), row);
          isBroken |= !row;
          if (isBroken)
            return;
        }
        if (check.getItems() && along)
          coordinates[*along] = scaleOfItem(code, *check.getItems(), coordinates[*along]);
        Value offset = elementOffset(code, check.getView(), coordinates);
        report(code, check.getErrors(), check.getKind(), no(code, isScale(code, check, offset)),
               offset);
      });
    });
    return failure(isBroken);
  }

  /// True where the element at `offset` is positive and finite.
  Value isScale(Code &code, CheckScalesOp check, Value offset) {
    Value pointer = pointerTo(code, check.getView());
    // Of the values of an exponent's byte 255 alone is no power of two.
    if (isa<Float8E8M0FNUType>(check.getView().getType().getElementType()))
      return code.less(ptx::LdGlobalU8Op::create(code.builder, code.loc, pointer, offset),
                       code.i32(255));
    Value bits = ptx::LdGlobalI32Op::create(code.builder, code.loc, pointer, code.mul(offset, 4));
    if (check.getByte())
      return code.less(code.bitAnd(code.builder.createOrFold<arith::ShRSIOp>(
                                       code.loc, bits, code.mul(check.getByte(), 8)),
                                   255),
                       code.i32(255));
    // Positive floats are positive integers, in the same order; infinity is 0x7f800000.
    return code.both(code.less(code.i32(0), bits), code.less(bits, code.i32(0x7f800000)));
  }
};

} // namespace

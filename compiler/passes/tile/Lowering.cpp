// Index arithmetic and stand-in values of the lowering passes.
#include "compiler/passes/tile/Lowering.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

std::optional<int64_t> constantOf(Value value) {
  IntegerAttr attr;
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    attr = dyn_cast<IntegerAttr>(constant.getValue());
  return attr ? std::optional(attr.getValue().getSExtValue()) : std::nullopt;
}

} // namespace

Value Code::i32(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 32); }
Value Code::i64(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 64); }
Value Code::f32(float value) { return ptx::ConstantF32Op::create(builder, loc, value); }
Value Code::like(Value a, int64_t b) {
  return arith::ConstantIntOp::create(builder, loc, b, a.getType().getIntOrFloatBitWidth());
}
Value Code::add(Value a, Value b) { return builder.createOrFold<arith::AddIOp>(loc, a, b); }
Value Code::sub(Value a, Value b) { return builder.createOrFold<arith::SubIOp>(loc, a, b); }
Value Code::mul(Value a, Value b) { return builder.createOrFold<arith::MulIOp>(loc, a, b); }
Value Code::div(Value a, int64_t b) {
  if (llvm::isPowerOf2_64(b))
    return shr(a, llvm::Log2_64(b));
  return builder.createOrFold<arith::DivSIOp>(loc, a, like(a, b));
}
Value Code::rem(Value a, int64_t b) {
  if (llvm::isPowerOf2_64(b))
    return bitAnd(a, b - 1);
  return builder.createOrFold<arith::RemSIOp>(loc, a, like(a, b));
}
Value Code::div(Value a, Value b) {
  if (std::optional<int64_t> constant = constantOf(b))
    return div(a, *constant);
  return builder.createOrFold<arith::DivSIOp>(loc, a, b);
}
Value Code::rem(Value a, Value b) { return builder.createOrFold<arith::RemSIOp>(loc, a, b); }
Value Code::shr(Value a, int64_t b) {
  return b == 0 ? a : builder.createOrFold<arith::ShRSIOp>(loc, a, like(a, b));
}
Value Code::shr(Value a, Value b) { return builder.createOrFold<arith::ShRSIOp>(loc, a, b); }
Value Code::shl(Value a, int64_t b) {
  return b == 0 ? a : builder.createOrFold<arith::ShLIOp>(loc, a, like(a, b));
}
Value Code::bitAnd(Value a, int64_t b) {
  return builder.createOrFold<arith::AndIOp>(loc, a, like(a, b));
}
Value Code::bitOr(Value a, int64_t b) {
  return builder.createOrFold<arith::OrIOp>(loc, a, like(a, b));
}
Value Code::bitXor(Value a, Value b) { return builder.createOrFold<arith::XOrIOp>(loc, a, b); }
Value Code::min(Value a, Value b) { return builder.createOrFold<arith::MinSIOp>(loc, a, b); }
Value Code::max(Value a, Value b) { return builder.createOrFold<arith::MaxSIOp>(loc, a, b); }
Value Code::less(Value a, Value b) {
  return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, a, b);
}
Value Code::equal(Value a, Value b) {
  return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, a, b);
}
Value Code::both(Value a, Value b) { return builder.createOrFold<arith::AndIOp>(loc, a, b); }
Value Code::select(Value condition, Value a, Value b) {
  return builder.createOrFold<arith::SelectOp>(loc, condition, a, b);
}
Value Code::extend(Value a) {
  if (a.getType().isInteger(1))
    return builder.createOrFold<arith::ExtUIOp>(loc, builder.getI32Type(), a);
  return builder.createOrFold<arith::ExtSIOp>(loc, builder.getI64Type(), a);
}

Value Code::name(Value value, StringRef identifier) {
  if (Operation *op = value.getDefiningOp();
      op && !op->hasTrait<OpTrait::ConstantLike>() && !op->hasAttr("ptx.name"))
    op->setAttr("ptx.name", builder.getStringAttr(identifier));
  return value;
}

Value Code::get(Value registers, ArrayRef<OpFoldResult> indices) {
  return ptx::RegsGetOp::create(builder, loc, registers, indices);
}
void Code::set(Value registers, ArrayRef<OpFoldResult> indices, Value value) {
  ptx::RegsSetOp::create(builder, loc, value, registers, indices);
}

void Code::onlyIf(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  body();
}

void Code::unroll(int64_t lower, int64_t upper, int64_t step, function_ref<void(Value)> body) {
  auto loop = ptx::UnrollOp::create(builder, loc, lower, upper, step);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBlock());
  body(loop.getInductionVar());
}

Value tile::threadValue(KernelOp kernel, ThreadValue value) {
  static constexpr const char *names[] = {"thread",    "lane",   "warp",       "warpInGroup",
                                          "warpgroup", "shared", "evictFirst", "clusterRank"};
  StringRef identifier = names[static_cast<int>(value)];
  Block &entry = kernel.getBody().front();
  // The values stand in a prefix of the kernel, marked as such.
  Operation *after = nullptr;
  for (Operation &op : entry) {
    if (!op.hasAttr("tile.thread_value") && !op.hasTrait<OpTrait::ConstantLike>())
      break;
    auto marked = op.getAttrOfType<StringAttr>("tile.thread_value");
    if (marked && marked.getValue() == identifier)
      return op.getResult(0);
    after = &op;
  }

  Value needed;
  if (value == ThreadValue::Warp || value == ThreadValue::Lane)
    needed = threadValue(kernel, ThreadValue::Thread);
  if (value == ThreadValue::WarpInGroup || value == ThreadValue::Warpgroup)
    needed = threadValue(kernel, ThreadValue::Warp);
  if (needed)
    after = needed.getDefiningOp();
  OpBuilder builder(kernel.getContext());
  if (after)
    builder.setInsertionPointAfter(after);
  else
    builder.setInsertionPointToStart(&entry);
  Code code(builder, kernel.getLoc());
  Value result;
  switch (value) {
  case ThreadValue::Thread:
    result = ptx::ThreadIndexOp::create(builder, kernel.getLoc());
    break;
  case ThreadValue::Lane:
    result = code.bitAnd(needed, 31);
    break;
  case ThreadValue::Warp: {
    Value shifted = code.shr(needed, 5);
    shifted.getDefiningOp()->setAttr("tile.thread_value", builder.getStringAttr(""));
    result = ptx::ShflIdxOp::create(builder, kernel.getLoc(), shifted, code.i32(0));
    break;
  }
  case ThreadValue::WarpInGroup:
    result = code.bitAnd(needed, 3);
    break;
  case ThreadValue::Warpgroup: {
    result = code.shr(needed, 2);
    if (kernel.hasRoles()) {
      result.getDefiningOp()->setAttr("tile.thread_value", builder.getStringAttr(""));
      result = code.add(result, -1);
    }
    break;
  }
  case ThreadValue::SharedBase:
    result = ptx::SharedBaseOp::create(builder, kernel.getLoc());
    break;
  case ThreadValue::EvictFirst:
    result = ptx::CreatepolicyEvictFirstOp::create(builder, kernel.getLoc());
    break;
  case ThreadValue::ClusterRank:
    result = ptx::ClusterRankOp::create(builder, kernel.getLoc());
    break;
  }
  result.getDefiningOp()->setAttr("tile.thread_value", builder.getStringAttr(identifier));
  result.getDefiningOp()->setAttr("ptx.name", builder.getStringAttr(identifier));
  return result;
}

namespace {

Value standIn(Code &code, Value value, Type type) {
  return UnrealizedConversionCastOp::create(code.builder, code.loc, type, value).getResult(0);
}

} // namespace

Value tile::registersOf(Code &code, KernelOp kernel, Value acc) {
  SmallVector<int64_t> shape;
  if (auto fragment = dyn_cast<FragmentType>(acc.getType())) {
    shape = {fragment.getN() / 2};
  } else {
    std::optional<Distribution> distribution =
        distribute(cast<AccType>(acc.getType()), kernel.getWarpgroups());
    shape = {distribution->fragments(), distribution->n / 2};
  }
  return standIn(code, acc, ptx::RegsType::get(shape, code.builder.getF32Type()));
}

Value tile::addressOf(Code &code, Value slot) {
  return standIn(code, slot, code.builder.getI32Type());
}

Value tile::pointerTo(Code &code, Value view) {
  return standIn(code, view, ptx::PtrType::get(code.builder.getContext()));
}

bool tile::isScratchName(StringRef operand) {
  return operand == "workspace" || operand == "counters" || operand.starts_with("x_quantized");
}

bool tile::isScratch(Value view) {
  auto argument = dyn_cast<BlockArgument>(view);
  auto kernel = argument ? dyn_cast<KernelOp>(argument.getOwner()->getParentOp()) : KernelOp();
  return kernel && isScratchName(kernel.getOperandName(argument.getArgNumber()));
}

RingOp tile::ringOf(Value slot) {
  if (auto await = slot.getDefiningOp<AwaitOp>())
    return await.getRing().getDefiningOp<RingOp>();
  if (auto acquire = slot.getDefiningOp<AcquireOp>())
    return acquire.getRing().getDefiningOp<RingOp>();
  return {};
}

Value tile::fieldAddress(Code &code, Operation *op, Value slot, int64_t field) {
  RingOp ring = ringOf(slot);
  if (!ring || !ring.getFieldOffsets()) {
    op->emitOpError("reads a ring without layout; run tile-allocate-shared first");
    return {};
  }
  ArrayRef<int64_t> offsets = *ring.getFieldOffsets();
  if (field < 0 || field >= static_cast<int64_t>(offsets.size())) {
    op->emitOpError("names field ") << field << " of a ring with " << offsets.size();
    return {};
  }
  return code.add(addressOf(code, slot), offsets[field]);
}

Value tile::linearIndex(Code &code, ViewType view, ValueRange coordinates) {
  Value index = coordinates.front();
  for (unsigned d = 1; d < coordinates.size(); ++d)
    index = code.add(code.mul(index, view.getShape()[d]), coordinates[d]);
  return index;
}

Value tile::elementOffset(Code &code, Value value, ArrayRef<Value> coordinates) {
  auto view = cast<ViewType>(value.getType());
  Value offset = code.extend(coordinates.front());
  int64_t last = view.getRank() - 1;
  for (int64_t d = 1; d <= last; ++d) {
    Value step;
    if (view.hasLaunchStride() && d == last)
      step = StrideOp::create(code.builder, code.loc, code.builder.getI64Type(), value);
    else
      step = code.i64(view.getShape()[d]);
    offset = code.add(code.mul(offset, step), code.extend(coordinates[d]));
  }
  return offset;
}

Value tile::scaleOfItem(Code &code, ItemsAttr items, Value item) {
  Value part, inside = item;
  if (items.getParts() > 1 && items.getInterleaved()) {
    part = code.rem(item, items.getParts());
    inside = code.div(item, items.getParts());
  } else if (items.getParts() > 1) {
    part = code.div(item, items.getExtent());
    inside = code.sub(item, code.mul(part, items.getExtent()));
  }
  Value scale = items.getGranule() == 0
                    ? code.i32(0)
                    : code.div(code.add(inside, items.getPhase()), items.getGranule());
  if (!part)
    return scale;
  return items.getInterleaved() ? code.add(code.mul(scale, items.getParts()), part)
                                : code.add(code.mul(part, items.getScalesPerPart()), scale);
}

int64_t tile::sortCountersOffset(SchedulerOp scheduler) {
  return queueBytes + 4 * (scheduler.getExperts() + 1);
}

int64_t tile::sortedRowsOffset(SchedulerOp scheduler) {
  return sortCountersOffset(scheduler) + 4 * (scheduler.getExperts() + 1);
}

int64_t tile::rowBucketsOffset(SchedulerOp scheduler) {
  return llvm::alignTo(sortedRowsOffset(scheduler) + 4 * maxSortedRows, 16);
}

Value tile::rowBy(Code &code, Operation *op, Value scheduler, Value row) {
  if (!scheduler)
    return row;
  auto definition = scheduler.getDefiningOp<SchedulerOp>();
  if (!definition || !definition.getIds() || !definition.getSharedOffset()) {
    op->emitOpError(
        "finds rows by a scheduler that does not sort them, or has no shared memory yet");
    return {};
  }
  Value rows = RowsOp::create(code.builder, code.loc, code.builder.getI32Type());
  Value inside = code.min(row, code.add(rows, -1));
  Value base = code.add(threadValue(op->getParentOfType<KernelOp>(), ThreadValue::SharedBase),
                        *definition.getSharedOffset() + sortedRowsOffset(definition));
  return ptx::LdSharedI32Op::create(code.builder, code.loc, code.add(base, code.mul(inside, 4)));
}

Value tile::fragmentRow(Code &code, KernelOp kernel, const Distribution &distribution,
                        int64_t batch) {
  Value row = code.i32(distribution.batchRow(batch));
  if (distribution.split == Split::Columns || distribution.warpgroups == 1)
    return row;
  Value warpgroup = threadValue(kernel, ThreadValue::Warpgroup);
  return code.add(code.mul(warpgroup, distribution.rows), row);
}

Value tile::fragmentColumn(Code &code, KernelOp kernel, const Distribution &distribution,
                           int64_t batch) {
  Value column = code.i32(distribution.batchColumn(batch));
  if (distribution.split == Split::Rows || distribution.warpgroups == 1)
    return column;
  Value warpgroup = threadValue(kernel, ThreadValue::Warpgroup);
  return code.add(code.mul(warpgroup, distribution.columns), column);
}

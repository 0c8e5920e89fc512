// Owns where a scale is read and how its bits become a float.
#include "compiler/passes/tile/ScaleReader.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// The fp32 scale of an ue8m0 byte b: 2^(b - 127). Byte 0 is the subnormal 2^-127, 255 is NaN (OCP
/// Microscaling Formats).
Value decodeE8M0(Code &code, Value byte) {
  constexpr int64_t mantissaTop = 0x00400000;
  Value exponent = code.shl(byte, 23);
  Value nan = code.select(code.equal(byte, code.i32(255)), code.i32(mantissaTop), code.i32(0));
  Value bits = code.add(code.max(exponent, code.i32(mantissaTop)), nan);
  return ptx::FloatBitsOp::create(code.builder, code.loc, bits);
}

/// Elements of a packed view between two neighbours along the block's long dimension.
int64_t stepOf(ViewType view, BlockType block) {
  int64_t step = 1;
  for (int64_t d = view.getRank() - 1; d >= 0; --d) {
    if (block.getShape()[d] > 1)
      return step;
    step *= view.getShape()[d];
  }
  return 1;
}

/// How many items or entries there are along dimension `along` of what `load` reads.
Value limitOf(Code &code, LoadOp load, int64_t along) {
  int64_t extent = load.getView().getType().getShape()[along];
  if (std::optional<ItemsAttr> items = load.getItems())
    extent =
        items->getExtent() == 0 ? ShapedType::kDynamic : items->getExtent() * items->getParts();
  if (ShapedType::isDynamic(extent))
    return RowsOp::create(code.builder, code.loc, code.builder.getI32Type());
  return code.i32(extent);
}

} // namespace

ScaleReader::ScaleReader(KernelOp kernel, Value block) : kernel(kernel), block(block) {
  if (auto unpack = block ? block.getDefiningOp<UnpackOp>() : UnpackOp()) {
    this->block = unpack.getWords();
    byte = unpack.getIndex();
  }
}

bool ScaleReader::hasPairs(int64_t granule) const {
  auto load = block.getDefiningOp<LoadOp>();
  if (load && load.getItems())
    return load.getItems()->hasPairs() && firstItemAlign(load, 2) == 2;
  return granule % 2 == 0;
}

int64_t ScaleReader::firstItemAlign(LoadOp load, int64_t n) {
  ArrayRef<int64_t> shape = load.getResult().getType().getShape();
  const auto *along = llvm::find_if(shape, [](int64_t extent) { return extent > 1; });
  if (along == shape.end() || load.getRowsBy())
    return 1;
  Value first = load.getCoordinates()[along - shape.begin()];
  APInt constant;
  if (matchPattern(first, m_ConstantInt(&constant)))
    return constant.getSExtValue() % n == 0 ? n : 1;
  auto coordinate = dyn_cast<BlockArgument>(first);
  auto tiles =
      coordinate ? dyn_cast<ForTilesOp>(coordinate.getOwner()->getParentOp()) : ForTilesOp();
  auto scheduler = tiles ? tiles.getScheduler().getDefiningOp<SchedulerOp>() : SchedulerOp();
  const bool isWhole = scheduler && coordinate == tiles.getFirstColumn() &&
                       static_cast<int64_t>(scheduler.getTileN()) % n == 0;
  return isWhole ? n : 1;
}

Value ScaleReader::read(Code &code, Operation *op, Value index) const {
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

Value ScaleReader::readShared(Code &code, Operation *op, FieldOp field, Value index) const {
  ViewType view = field.getView().getType();
  FieldLayout layout = *fieldLayout(field.getResult().getType());
  int64_t elementBytes = view.getElementBytes(), unit = copiedBytes / elementBytes;
  Value base = fieldAddress(code, op, field.getSlot(), field.getField());
  if (!base)
    return {};
  index = code.add(index, static_cast<int64_t>(field.getFrom()));
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

Value ScaleReader::readGlobal(Code &code, LoadOp load, Value index) const {
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
  auto branch = scf::IfOp::create(code.builder, code.loc, type, isInside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(code.builder);
  code.builder.setInsertionPointToEnd(branch.thenBlock());
  if (std::optional<ItemsAttr> items = load.getItems())
    coordinates[*along] = scaleOfItem(code, *items, coordinates[*along]);
  scf::YieldOp::create(code.builder, code.loc, loadGlobal(code, load, coordinates));
  code.builder.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(code.builder, code.loc, isFloat ? code.f32(0) : code.i32(0));
  return branch.getResult(0);
}

Value ScaleReader::loadGlobal(Code &code, LoadOp load, ArrayRef<Value> coordinates) const {
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

// Owns how a stored scale tensor becomes a view, and which loads bring a tile's share of it.
#include "compiler/passes/tile/ScaleViews.h"

#include "compiler/SpecFromModule.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// What is common to both sides: granules of K, packing.
ScaleView sideOf(const ScaleLayout &layout, int64_t tileItems) {
  ScaleView scales;
  scales.tileItems = scales.granule = tileItems;
  scales.kGranule = layout.kGranule();
  scales.kPhase = layout.kPhase();
  scales.packing = layout.packing;
  return scales;
}

ScaleDimension alongK(const ScaleView &scales, int64_t k) {
  if (scales.kGranule == 0)
    return {};
  int64_t steps = ceilDiv(k + scales.kPhase, scales.kGranule);
  return {ScaleAxis::K, ceilDiv(steps, scales.packing)};
}

bool isNone(const ScaleDimension &dimension) { return dimension.axis == ScaleAxis::None; }

/// Sets the view of `scales` to one of its dimensions; `isStrided`: its rows are as far apart as
/// the launch says.
void setType(ScaleView &scales, const ScaleLayout &layout, bool isStrided, MLIRContext *context) {
  SmallVector<int64_t> shape;
  for (const ScaleDimension &dimension : scales.dimensions)
    shape.push_back(dimension.extent);
  bool isDynamic = !ShapedType::isStaticShape(shape);
  scales.type = ViewType::get(context, shape, moe::mlirType(layout.storedType(), context),
                              isStrided && !isDynamic);
}

} // namespace

ScaleView tile::activationScales(MLIRContext *context, const Spec &spec, int64_t tileM) {
  const ScaleLayout &layout = spec.xScales;
  ScaleView scales = sideOf(layout, tileM);
  // Masked activations have a dimension for experts before that of rows.
  bool isMasked = spec.dispatch == Dispatch::Masked;
  bool isMnMajor = layout.order == ScaleOrder::MnMajor;
  size_t rowsAt = layout.granule.size() - 2;
  const Granule &rows = layout.granule[rowsAt];
  ScaleDimension expert, item, k = alongK(scales, spec.k);
  if (isMasked && layout.granule[0].kind == Granule::Kind::Extent)
    expert = {ScaleAxis::Expert, spec.numExperts};
  bool isOneARow = false;
  if (rows.kind == Granule::Kind::Expert)
    item = {ScaleAxis::Expert, spec.numExperts};
  if (rows.kind == Granule::Kind::Extent) {
    int64_t phase = layout.phaseAt(rowsAt);
    isOneARow = rows.extent == 1;
    item = {ScaleAxis::Item,
            isMasked ? ceilDiv(spec.maxRows + phase, rows.extent) : ShapedType::kDynamic};
    scales.granule = 1;
    scales.entries = tileM;
    scales.bufferRows = isMasked ? spec.maxRows : 0;
    if (!isOneARow)
      scales.items =
          ItemsAttr::get(context, rows.extent, isMasked ? spec.maxRows : 0, phase, 1, false);
  }

  // In memory every matrix of rows by K follows the one before.
  SmallVector<ScaleDimension> &dimensions = scales.dimensions;
  dimensions = isMnMajor ? SmallVector<ScaleDimension>{expert, k, item}
                         : SmallVector<ScaleDimension>{expert, item, k};
  // The only scale of a row of the tensor: rows are one word apart, unless alignment says more.
  bool isPadded = layout.alignBytes > elementBytes(layout.storedType());
  bool isVector = isNone(dimensions.back()) && !isPadded;
  ScaleDimension last = dimensions.pop_back_val();
  llvm::erase_if(dimensions, isNone);
  bool isStrided = !isVector && !dimensions.empty();
  if (dimensions.size() == 2 && dimensions[1].axis == ScaleAxis::K)
    dimensions = {
        {ScaleAxis::K, dimensions[0].extent * dimensions[1].extent, dimensions[1].extent}};
  // The buffers of masked experts are of one size: so are their scales, where every row has one.
  if (dimensions.size() == 2 && isOneARow) {
    dimensions = {{ScaleAxis::Item, ShapedType::kDynamic, 0, /*isAllRows=*/true}};
    scales.bufferRows = 0;
  }
  // The scales of a launch lie anywhere, not on the 16 bytes that copies of single ones want.
  if (dimensions.empty() && last.axis == ScaleAxis::K) {
    dimensions.push_back({});
    isStrided = true;
  }
  if (!isVector || dimensions.empty())
    dimensions.push_back(last);
  scales.canCopyInBulk = isStrided && last.axis == ScaleAxis::Item && isOneARow &&
                         layout.alignBytes > 0 && layout.alignBytes % copiedBytes == 0;
  setType(scales, layout, isStrided, context);
  return scales;
}

ScaleView tile::weightScales(MLIRContext *context, const Spec &spec, int64_t tileN) {
  const ScaleLayout &layout = spec.wScales;
  ScaleView scales = sideOf(layout, tileN);
  bool isMnMajor = layout.order == ScaleOrder::MnMajor;
  std::vector<int64_t> shape = scaleShape(layout, wShape(spec), spec.numExperts);
  // Alignment pads rows, unless they are whole anyway or there is one only.
  int64_t rowBytes = shape.back() * elementBytes(layout.storedType());
  bool isOneRow = llvm::all_of(ArrayRef(shape).drop_back(), [](int64_t n) { return n == 1; });
  bool isPadded = !isOneRow && layout.alignBytes > 0 && rowBytes % layout.alignBytes != 0;

  // Eager weights are those of one expert.
  size_t columnsAt = layout.granule.size() - 2;
  const Granule &columns = layout.granule[columnsAt];
  ScaleDimension expert, item, k = alongK(scales, spec.k);
  if (columnsAt == 0 || layout.granule[0].kind == Granule::Kind::Extent)
    expert = {ScaleAxis::Expert, spec.numExperts};
  bool isExtent = columns.kind == Granule::Kind::Extent;
  if (isExtent || layout.parts > 1) {
    int64_t perPart = spec.n / layout.parts, phase = layout.phaseAt(columnsAt);
    item = {ScaleAxis::Item, shape[isMnMajor ? shape.size() - 1 : shape.size() - 2]};
    bool isEven = isExtent && phase == 0 &&
                  (columns.extent == 1 || layout.parts == 1 ||
                   (perPart % columns.extent == 0 && !layout.interleaved));
    if (isEven && (columns.extent % tileN == 0 || tileN % columns.extent == 0)) {
      scales.granule = columns.extent;
      scales.entries = std::max<int64_t>(1, tileN / columns.extent);
    } else {
      scales.granule = 1;
      scales.entries = tileN;
      scales.items = ItemsAttr::get(context, isExtent ? columns.extent : 0, perPart, phase,
                                    layout.parts, layout.interleaved);
    }
  }

  SmallVector<ScaleDimension> &dimensions = scales.dimensions;
  dimensions = isMnMajor ? SmallVector<ScaleDimension>{expert, k, item}
                         : SmallVector<ScaleDimension>{expert, item, k};
  ScaleDimension last = dimensions.pop_back_val();
  llvm::erase_if(dimensions, isNone);
  if (!isNone(last) || isPadded || dimensions.empty())
    dimensions.push_back(last);
  scales.canCopyInBulk = isMnMajor && !isPadded && rowBytes % copiedBytes == 0 && !scales.items;
  setType(scales, layout, isPadded, context);
  return scales;
}

Value ScaleLoader::load(Code &code, Value kIndex) {
  SmallVector<Value> coordinates;
  SmallVector<int64_t> box;
  for (const ScaleDimension &dimension : scales.dimensions) {
    Value coordinate = code.i32(0);
    switch (dimension.axis) {
    case ScaleAxis::None:
      break;
    case ScaleAxis::Expert:
      coordinate = tiles.getExpert();
      break;
    case ScaleAxis::Item:
      coordinate = first;
      if (scales.bufferRows != 0)
        coordinate = code.sub(first, code.mul(tiles.getExpert(), scales.bufferRows));
      if (!scales.items)
        coordinate = code.div(coordinate, scales.granule);
      break;
    case ScaleAxis::K:
      coordinate = kIndex;
      if (dimension.perExpert != 0)
        coordinate = code.add(code.mul(tiles.getExpert(), dimension.perExpert), kIndex);
      break;
    }
    coordinates.push_back(coordinate);
    box.push_back(dimension.axis == ScaleAxis::Item ? scales.entries : 1);
  }
  // Only what has a row for each of the launch's is found by sorted row.
  bool hasRows = !ShapedType::isStaticShape(scales.type.getShape());
  bool isBulk = scales.canCopyInBulk && box.back() > 1;
  return LoadOp::create(
      code.builder, code.loc,
      BlockType::get(code.builder.getContext(), box, scales.type.getElementType()), scales.view,
      coordinates, hasRows ? rowsBy : Value(), isBulk, scales.items);
}

Value ScaleLoader::unpack(Code &code, Value words, Value index) {
  auto type = cast<BlockType>(words.getType());
  Type scale = Float8E8M0FNUType::get(code.builder.getContext());
  return UnpackOp::create(code.builder, code.loc,
                          BlockType::get(code.builder.getContext(), type.getShape(), scale), words,
                          index);
}

Value ScaleLoader::at(Code &code, const StepsAlongK &steps, int64_t begin, Value at) {
  if (!steps.canStartAt(begin, scales.kGranule, scales.kPhase))
    return current;
  Value index = code.add(at, scales.kPhase);
  // Before K, where the other side's granules started earlier, elements are zero.
  if (scales.kPhase < steps.shift)
    index = code.max(index, code.i32(0));
  index = code.div(index, scales.kGranule);
  if (scales.packing == 1)
    return current = load(code, index);
  if (steps.canStartAt(begin, scales.kGranule * scales.packing, scales.kPhase))
    words = load(code, code.div(index, scales.packing));
  // Where a step holds whole words, the byte does not depend on the step.
  Value byte = code.rem(index, scales.packing);
  int64_t word = scales.kGranule * scales.packing, inside = begin - steps.shift + scales.kPhase;
  if (steps.tileK % word == 0 && scales.kPhase >= steps.shift)
    byte = code.i32(inside / scales.kGranule % scales.packing);
  return current = unpack(code, words, byte);
}

Value ScaleLoader::ofAllK(Code &code) {
  Value loaded = load(code, Value());
  return scales.packing == 1 ? loaded : unpack(code, loaded, code.i32(0));
}

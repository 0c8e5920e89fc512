// The dialect itself, its aliases, and conversions between MLIR types and those of runtime/Spec.h.
#include "compiler/dialect/moe/Moe.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace moejit::moe;

#include "compiler/dialect/moe/MoeDialect.cpp.inc"

namespace {

/// Prints a scale layout once, as `#scales`, in front of the module.
struct MoeAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (!isa<ScalesAttr>(attribute))
      return AliasResult::NoAlias;
    os << "scales";
    return AliasResult::FinalAlias;
  }
};

} // namespace

void MoeDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/moe/MoeOps.cpp.inc"
      >();
  addInterfaces<MoeAsmInterface>();
}

namespace moejit::moe {

std::optional<ElementType> elementTypeOf(Type type) {
  return TypeSwitch<Type, std::optional<ElementType>>(type)
      .Case([](Float8E4M3FNType) { return ElementType::F8E4M3FN; })
      .Case([](Float8E5M2Type) { return ElementType::F8E5M2; })
      .Case([](Float8E8M0FNUType) { return ElementType::F8E8M0FNU; })
      .Case([](BFloat16Type) { return ElementType::BF16; })
      .Case([](Float16Type) { return ElementType::F16; })
      .Case([](Float32Type) { return ElementType::F32; })
      .Default([](Type other) -> std::optional<ElementType> {
        if (other.isSignlessInteger(32))
          return ElementType::I32;
        return std::nullopt;
      });
}

Type mlirType(ElementType type, MLIRContext *context) {
  switch (type) {
  case ElementType::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case ElementType::F8E5M2:
    return Float8E5M2Type::get(context);
  case ElementType::F8E8M0FNU:
    return Float8E8M0FNUType::get(context);
  case ElementType::BF16:
    return BFloat16Type::get(context);
  case ElementType::F16:
    return Float16Type::get(context);
  case ElementType::F32:
    return Float32Type::get(context);
  case ElementType::I32:
    break;
  }
  return IntegerType::get(context, 32);
}

ScalesAttr scalesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<ScalesAttr>(tensor.getEncoding()) : ScalesAttr();
}

RankedTensorType dataType(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

std::vector<int64_t> shapeOf(RankedTensorType type) {
  std::vector<int64_t> shape;
  for (int64_t extent : type.getShape())
    shape.push_back(ShapedType::isDynamic(extent) ? -1 : extent);
  return shape;
}

RankedTensorType tensorType(const std::vector<int64_t> &shape, Type elementType,
                            Attribute encoding) {
  SmallVector<int64_t> extents;
  for (int64_t extent : shape)
    extents.push_back(extent < 0 ? ShapedType::kDynamic : extent);
  return RankedTensorType::get(extents, elementType, encoding);
}

RankedTensorType scaleTensorType(RankedTensorType type, int64_t numExperts) {
  ScaleLayout layout = cast<ScalesAttr>(type.getEncoding()).getLayout();
  return tensorType(scaleShape(layout, shapeOf(type), numExperts),
                    mlirType(layout.storedType(), type.getContext()));
}

} // namespace moejit::moe

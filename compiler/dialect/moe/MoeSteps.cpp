// The steps around a GEMM: text and structure.
#include "compiler/dialect/moe/Moe.h"
#include "runtime/Rules.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::moe;

namespace {

RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

bool isWide(Type type) { return type.isBF16() || type.isF16() || type.isF32(); }

/// `input` and `result` are [rows, columns] of bf16, f16 or f32, plain.
LogicalResult checkRows(Operation *op, StringRef name, Value value) {
  RankedTensorType type = tensorOf(value);
  if (type.getRank() == 2 && isWide(type.getElementType()) && !type.getEncoding())
    return success();
  return op->emitOpError() << name << " has type " << type
                           << ", expected [rows, columns] of bf16, f16 or f32";
}

LogicalResult checkSameType(Operation *op, Value input, Value result) {
  if (input.getType() == result.getType())
    return success();
  return op->emitOpError() << "result has type " << result.getType() << ", expected "
                           << input.getType();
}

LogicalResult checkExtent(Operation *op, StringRef what, int64_t actual, int64_t expected) {
  if (ShapedType::isDynamic(actual) || ShapedType::isDynamic(expected) || actual == expected)
    return success();
  return op->emitOpError() << what << " is " << actual << ", expected " << expected;
}

} // namespace

LogicalResult QuantizeOp::verify() {
  RankedTensorType input = tensorOf(getInput()), result = tensorOf(getResult());
  ScalesAttr attribute = scalesOf(result);
  if (!attribute)
    return emitOpError()
           << "result has no scale layout, expected a type such as tensor<…, #moe.scales<…>>";
  if (!isWide(input.getElementType()) || input.getEncoding())
    return emitOpError() << "takes plain bf16, f16 or f32, got " << input;
  if (!isa<Float8E4M3FNType, Float8E5M2Type>(result.getElementType()))
    return emitOpError() << "gives f8E4M3FN or f8E5M2, got " << result.getElementType();
  if (input.getShape() != result.getShape())
    return emitOpError() << "result has type " << dataType(result) << ", expected the shape of "
                         << input;
  ScaleLayout layout = attribute.getLayout();
  bool isStatic = layout.source == ScaleSource::Static;
  if (isStatic != static_cast<bool>(getScales()))
    return emitOpError() << (isStatic ? "has a static scheme but no scales"
                                      : "has scales but a dynamic scheme");
  if (!isStatic)
    return success();
  RankedTensorType scales = tensorOf(getScales());
  if (scales.getElementType() != mlirType(layout.storedType(), getContext()))
    return emitOpError() << "scales have element type " << scales.getElementType() << ", expected "
                         << mlirType(layout.storedType(), getContext());
  if (std::optional<Violation> violation = checkScaleShape(
          layout, shapeOf(input), /*numExperts=*/-1, shapeOf(scales), RuleSubject::Gemm))
    return emitOpError() << violation->text();
  return success();
}

ParseResult BiasOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc location = parser.getCurrentLocation();
  StringRef form;
  if (parser.parseKeyword(&form))
    return failure();
  std::optional<moejit::Dispatch> dispatch = parseDispatch(form.str());
  if (!dispatch)
    return parser.emitError(location)
           << "expected eager, batched, grouped or masked, got '" << form << "'";
  result.getOrAddProperties<Properties>().dispatch =
      DispatchAttr::get(parser.getContext(), *dispatch);
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SMLoc operandsLocation = parser.getCurrentLocation();
  SmallVector<Type> types;
  Type resultType;
  if (parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColonTypeList(types) ||
      parser.parseArrow() || parser.parseType(resultType) ||
      parser.resolveOperands(operands, types, operandsLocation, result.operands))
    return failure();
  result.addTypes(resultType);
  return success();
}

void BiasOp::print(OpAsmPrinter &printer) {
  printer << ' ' << dispatchName(getDispatch()) << '(' << getOperands() << ')';
  printer.printOptionalAttrDict((*this)->getDiscardableAttrDictionary().getValue());
  printer << " : " << getOperandTypes() << " -> " << getResult().getType();
}

LogicalResult BiasOp::verify() {
  bool isEager = getDispatch() == Dispatch::Eager;
  size_t expected = isEager ? 2 : 3;
  if (getInputs().size() != expected)
    return emitOpError() << dispatchName(getDispatch()) << " takes " << expected
                         << " operands, got " << getInputs().size();
  RankedTensorType y = tensorOf(getInputs().front()), bias = tensorOf(getInputs().back());
  int64_t rank = isEager ? 1 : 2;
  if (bias.getRank() != rank || !isWide(bias.getElementType()))
    return emitOpError() << "bias has type " << bias << ", expected "
                         << (isEager ? "[N]" : "[E, N]") << " of bf16, f16 or f32";
  if (y.getRank() != (getDispatch() == Dispatch::Masked ? 3 : 2))
    return emitOpError() << "y has type " << y
                         << ", expected the result of a moe.gemm of the same form";
  if (!isEager && (tensorOf(getInputs()[1]).getRank() != 1 ||
                   !tensorOf(getInputs()[1]).getElementType().isInteger(32)))
    return emitOpError() << "routing has type " << getInputs()[1].getType()
                         << ", expected a one-dimensional tensor of i32";
  if (failed(checkExtent(*this, "N of the bias", bias.getShape().back(), y.getShape().back())))
    return failure();
  return checkSameType(*this, getInputs().front(), getResult());
}

LogicalResult SiluMulOp::verify() {
  if (failed(checkRows(*this, "input", getInput())) ||
      failed(checkRows(*this, "result", getResult())))
    return failure();
  RankedTensorType input = tensorOf(getInput()), result = tensorOf(getResult());
  int64_t columns = input.getDimSize(1);
  if (ShapedType::isDynamic(columns) || columns % 2 != 0)
    return emitOpError() << "input has type " << input
                         << ", expected an even number of columns: gate and up";
  if (failed(
          checkExtent(*this, "row count of the result", result.getDimSize(0), input.getDimSize(0))))
    return failure();
  return checkExtent(*this, "column count of the result", result.getDimSize(1), columns / 2);
}

LogicalResult RouteScaleOp::verify() {
  RankedTensorType weights = tensorOf(getWeights());
  if (failed(checkRows(*this, "input", getInput())))
    return failure();
  if (weights.getRank() != 1 || !isWide(weights.getElementType()))
    return emitOpError() << "weights have type " << weights
                         << ", expected one bf16, f16 or f32 for each row";
  if (failed(checkExtent(*this, "number of weights", weights.getDimSize(0),
                         tensorOf(getInput()).getDimSize(0))))
    return failure();
  return checkSameType(*this, getInput(), getResult());
}

LogicalResult CombineOp::verify() {
  RankedTensorType rows = tensorOf(getRows()), result = tensorOf(getResult());
  if (failed(checkRows(*this, "input", getInput())) ||
      failed(checkRows(*this, "result", getResult())))
    return failure();
  if (rows.getRank() != 2 || !rows.getElementType().isSignlessInteger(32) ||
      ShapedType::isDynamic(rows.getDimSize(1)))
    return emitOpError() << "rows have type " << rows
                         << ", expected [tokens, k] of i32 with a static k";
  if (failed(
          checkExtent(*this, "row count of the result", result.getDimSize(0), rows.getDimSize(0))))
    return failure();
  return checkExtent(*this, "column count of the result", result.getDimSize(1),
                     tensorOf(getInput()).getDimSize(1));
}

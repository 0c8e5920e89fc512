// moe.kernel, moe.return and moe.scaled: text and structure.
#include "compiler/dialect/moe/Moe.h"
#include "runtime/Rules.h"

#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::moe;

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.function_type = TypeAttr::get(type);
  Region *body = state.addRegion();
  Block &block = body->emplaceBlock();
  for (Type input : type.getInputs())
    block.addArgument(input, state.location);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto functionType = [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
                         function_interface_impl::VariadicFlag,
                         std::string &) { return builder.getFunctionType(inputs, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, getFunctionTypeAttrName(result.name), functionType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false,
                                           getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                           getResAttrsAttrName());
}

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  llvm::StringSet<> taken;
  auto name = [&](Value value, const Twine &role) {
    std::string text = role.str();
    if (isa_and_nonnull<BlockArgument>(value) && !text.empty() && taken.insert(text).second)
      setName(value, text);
  };
  for (QuantizeOp quantize : region.front().getOps<QuantizeOp>()) {
    name(quantize.getInput(), "x");
    if (Value scales = quantize.getScales())
      name(scales, "xScales");
  }
  for (GemmOp gemm : region.front().getOps<GemmOp>()) {
    auto nameOperand = [&](Value value, StringRef role) {
      name(value, role);
      if (auto scaled = value.getDefiningOp<ScaledOp>()) {
        name(scaled.getData(), role);
        name(scaled.getScales(), role + "Scales");
      }
    };
    if (!gemm.getX().getDefiningOp<QuantizeOp>())
      nameOperand(gemm.getX(), "x");
    name(gemm.getRouting(), gemm.getRoutingName());
    nameOperand(gemm.getW(), "w");
    name(gemm.getExpertMap(), "expertMap");
  }
}

LogicalResult ReturnOp::verify() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  ArrayRef<Type> expected = kernel.getResultTypes();
  if (getNumOperands() != expected.size())
    return emitOpError() << "has " << getNumOperands() << " operands, expected " << expected.size()
                         << ", the results of @" << kernel.getName();
  for (auto [index, actual] : llvm::enumerate(getOperandTypes()))
    if (actual != expected[index])
      return emitOpError() << "operand " << index << " has type " << actual << ", expected "
                           << expected[index];
  return success();
}

LogicalResult ScaledOp::verify() {
  auto data = cast<RankedTensorType>(getData().getType());
  auto scales = cast<RankedTensorType>(getScales().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  ScalesAttr attribute = scalesOf(result);
  if (!attribute)
    return emitOpError()
           << "result has no scale layout, expected a type such as tensor<…, #moe.scales<…>>";
  if (data.getEncoding() || scales.getEncoding())
    return emitOpError() << "takes plain tensors, got " << (data.getEncoding() ? data : scales);
  if (dataType(result) != data)
    return emitOpError() << "data has type " << data << ", expected " << dataType(result)
                         << ", the data of the result";
  ScaleLayout layout = attribute.getLayout();
  Type stored = mlirType(layout.storedType(), getContext());
  if (scales.getElementType() != stored)
    return emitOpError() << "scales have element type " << scales.getElementType() << ", expected "
                         << stored;
  // How many experts there are is not said here; moe-check compares that where the GEMM is known.
  std::optional<Violation> violation =
      checkScaleShape(layout, shapeOf(data), /*numExperts=*/-1, shapeOf(scales), RuleSubject::Gemm);
  if (!violation)
    return success();
  InFlightDiagnostic diagnostic = emitOpError() << violation->text();
  for (const std::string &note : violation->notes)
    diagnostic.attachNote() << note;
  return diagnostic;
}

#define GET_OP_CLASSES
#include "compiler/dialect/moe/MoeOps.cpp.inc"

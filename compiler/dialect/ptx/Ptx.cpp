// Owns the ptx dialect's registration, syntax and builders, and all of its generated code.
#include "compiler/dialect/ptx/PtxDetail.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace moejit::ptx;

/// Parses an optional list of indices, integers or values: `[0, %j]`.
static ParseResult parseIndices(OpAsmParser &parser,
                                SmallVectorImpl<OpAsmParser::UnresolvedOperand> &indices,
                                DenseI64ArrayAttr &staticIndices) {
  SmallVector<int64_t> integers;
  auto parseIndex = [&]() -> ParseResult {
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult isValue = parser.parseOptionalOperand(operand);
    if (isValue.has_value()) {
      indices.push_back(operand);
      integers.push_back(ShapedType::kDynamic);
      return *isValue;
    }
    return parser.parseInteger(integers.emplace_back());
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::OptionalSquare, parseIndex))
    return failure();
  staticIndices = parser.getBuilder().getDenseI64ArrayAttr(integers);
  return success();
}

static void printIndices(OpAsmPrinter &printer, Operation *, OperandRange indices,
                         DenseI64ArrayAttr staticIndices) {
  if (staticIndices.empty())
    return;
  auto next = indices.begin();
  printer << '[';
  llvm::interleaveComma(staticIndices.asArrayRef(), printer, [&](int64_t integer) {
    if (ShapedType::isDynamic(integer) && next != indices.end())
      printer << *next++;
    else
      printer << integer;
  });
  printer << ']';
}

#include "compiler/dialect/ptx/PtxDialect.cpp.inc"
#include "compiler/dialect/ptx/PtxInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/ptx/PtxTypes.cpp.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/ptx/PtxOps.cpp.inc"

void PtxDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/dialect/ptx/PtxTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/ptx/PtxOps.cpp.inc"
      >();
}

SmallVector<OpFoldResult> moejit::ptx::mixedIndices(ValueRange indices,
                                                    ArrayRef<int64_t> staticIndices,
                                                    MLIRContext *context) {
  SmallVector<OpFoldResult> mixed;
  auto next = indices.begin();
  for (int64_t integer : staticIndices) {
    if (ShapedType::isDynamic(integer))
      mixed.push_back(*next++);
    else
      mixed.push_back(IntegerAttr::get(IntegerType::get(context, 64), integer));
  }
  return mixed;
}

/// Splits a mixed list into values and integers, where a value leaves kDynamic behind.
static void splitIndices(ArrayRef<OpFoldResult> mixed, SmallVectorImpl<Value> &indices,
                         SmallVectorImpl<int64_t> &staticIndices) {
  for (OpFoldResult index : mixed) {
    if (auto value = dyn_cast<Value>(index)) {
      indices.push_back(value);
      staticIndices.push_back(ShapedType::kDynamic);
    } else {
      staticIndices.push_back(cast<IntegerAttr>(cast<Attribute>(index)).getInt());
    }
  }
}

namespace {
struct SplitIndices {
  SplitIndices(ArrayRef<OpFoldResult> mixed) { splitIndices(mixed, values, integers); }
  SmallVector<Value> values;
  SmallVector<int64_t> integers;
};
} // namespace

//===- Types ----------------------------------------------------------------------------------===//

Type RegsType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseGreater())
    return {};
  return parser.getChecked<RegsType>(loc, parser.getContext(), shape, elementType);
}

void RegsType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << 'x' << getElementType() << '>';
}

//===- The kernel -----------------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     TypeRange parameterTypes, ArrayRef<StringRef> parameterNames, int32_t threads,
                     int32_t cluster, int32_t sharedBytes, int32_t minBlocks) {
  OpBuilder::InsertionGuard guard(builder);
  Block *entry = builder.createBlock(state.addRegion());
  entry->addArguments(parameterTypes, SmallVector<Location>(parameterTypes.size(), state.location));
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.function_type = TypeAttr::get(builder.getFunctionType(parameterTypes, {}));
  properties.threads = builder.getI32IntegerAttr(threads);
  properties.cluster = builder.getI32IntegerAttr(cluster);
  properties.shared_bytes = builder.getI32IntegerAttr(sharedBytes);
  properties.min_blocks = builder.getI32IntegerAttr(minBlocks);
  if (parameterNames.empty())
    return;
  SmallVector<Attribute> dictionaries;
  for (StringRef parameterName : parameterNames)
    dictionaries.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr("ptx.name", builder.getStringAttr(parameterName))));
  properties.arg_attrs = builder.getArrayAttr(dictionaries);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> resultTypes, parameterTypes;
  SmallVector<DictionaryAttr> resultAttributes;
  bool isVariadic = false;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes) ||
      function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, isVariadic, resultTypes, resultAttributes) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  for (const OpAsmParser::Argument &argument : arguments)
    parameterTypes.push_back(argument.type);
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(builder.getFunctionType(parameterTypes, resultTypes)));
  call_interface_impl::addArgAndResultAttrs(builder, result, arguments, resultAttributes,
                                            getArgAttrsAttrName(result.name),
                                            getResAttrsAttrName(result.name));
  Region &body = *result.addRegion();
  if (parser.parseRegion(body, arguments))
    return failure();
  if (body.empty()) { // `{}` is parsed as no block at all
    Block &entry = body.emplaceBlock();
    for (const OpAsmParser::Argument &argument : arguments)
      entry.addArgument(argument.type, result.location);
  }
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false,
                                           getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                           getResAttrsAttrName());
}

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  for (BlockArgument argument : region.front().getArguments())
    if (argument.getArgNumber() < getNumArguments())
      if (auto name = getArgAttrOfType<StringAttr>(argument.getArgNumber(), "ptx.name"))
        setName(argument, name);
}

//===- Unrolled loops -------------------------------------------------------------------------===//

void UnrollOp::build(OpBuilder &builder, OperationState &state, int32_t lower, int32_t upper,
                     int32_t step) {
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(state.addRegion());
  block->addArgument(builder.getI32Type(), state.location);
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.lower = builder.getI32IntegerAttr(lower);
  properties.upper = builder.getI32IntegerAttr(upper);
  properties.step = builder.getI32IntegerAttr(step);
}

ParseResult UnrollOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument induction;
  int32_t lower, upper, step = 1;
  if (parser.parseArgument(induction) || parser.parseEqual() || parser.parseInteger(lower) ||
      parser.parseKeyword("to") || parser.parseInteger(upper))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("step")) && parser.parseInteger(step))
    return failure();
  Builder &builder = parser.getBuilder();
  induction.type = builder.getI32Type();
  Properties &properties = result.getOrAddProperties<Properties>();
  properties.lower = builder.getI32IntegerAttr(lower);
  properties.upper = builder.getI32IntegerAttr(upper);
  properties.step = builder.getI32IntegerAttr(step);
  Region &body = *result.addRegion();
  if (parser.parseRegion(body, induction))
    return failure();
  if (body.empty())
    body.emplaceBlock().addArgument(induction.type, result.location);
  return parser.parseOptionalAttrDict(result.attributes);
}

void UnrollOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getInductionVar() << " = " << static_cast<int32_t>(getLower()) << " to "
          << static_cast<int32_t>(getUpper());
  if (getStep() != 1)
    printer << " step " << static_cast<int32_t>(getStep());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getLowerAttrName(), getUpperAttrName(), getStepAttrName()});
}

void UnrollOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (auto name = (*this)->getAttrOfType<StringAttr>("ptx.name"))
    setName(region.getArgument(0), name);
}

//===- Builders and folders of the others -----------------------------------------------------===//

void RegsGetOp::build(OpBuilder &builder, OperationState &state, Value regs,
                      ArrayRef<OpFoldResult> indices) {
  SplitIndices split(indices);
  build(builder, state, cast<RegsType>(regs.getType()).getElementType(), regs, split.values,
        split.integers);
}

void RegsSetOp::build(OpBuilder &builder, OperationState &state, Value value, Value regs,
                      ArrayRef<OpFoldResult> indices) {
  SplitIndices split(indices);
  build(builder, state, value, regs, split.values, split.integers);
}

void RegsPinOp::build(OpBuilder &builder, OperationState &state, Value regs,
                      ArrayRef<OpFoldResult> fragment) {
  SplitIndices split(fragment);
  build(builder, state, regs, split.values, split.integers);
}

void WgmmaOp::build(OpBuilder &builder, OperationState &state, Value regs, Value descA, Value descB,
                    Value accumulate, int64_t n, StringRef a, StringRef b,
                    ArrayRef<OpFoldResult> fragment) {
  SplitIndices split(fragment);
  build(builder, state, regs, split.values, descA, descB, accumulate, static_cast<uint32_t>(n), a,
        b, split.integers);
}

void MmaOp::build(OpBuilder &builder, OperationState &state, Value acc, Value a, Value b,
                  StringRef aType, StringRef bType, ArrayRef<OpFoldResult> accFragment,
                  ArrayRef<OpFoldResult> aFragment, ArrayRef<OpFoldResult> bFragment) {
  SplitIndices accIndices(accFragment), aIndices(aFragment), bIndices(bFragment);
  build(builder, state, acc, accIndices.values, a, aIndices.values, b, bIndices.values, aType,
        bType, accIndices.integers, aIndices.integers, bIndices.integers);
}

void LdmatrixOp::build(OpBuilder &builder, OperationState &state, Value address, Value regs,
                       bool isTransposed, ArrayRef<OpFoldResult> fragment) {
  SplitIndices split(fragment);
  build(builder, state, address, regs, split.values, split.integers, isTransposed);
}

void LdSharedV4Op::build(OpBuilder &builder, OperationState &state, Value address, Value regs,
                         ArrayRef<OpFoldResult> fragment) {
  SplitIndices split(fragment);
  build(builder, state, address, regs, split.values, split.integers);
}

void StSharedV4Op::build(OpBuilder &builder, OperationState &state, Value address, Value regs,
                         ArrayRef<OpFoldResult> fragment) {
  SplitIndices split(fragment);
  build(builder, state, address, regs, split.values, split.integers);
}

void LdGlobalV4Op::build(OpBuilder &builder, OperationState &state, Value pointer, Value offset,
                         Value regs, ArrayRef<OpFoldResult> fragment) {
  SplitIndices split(fragment);
  build(builder, state, pointer, offset, regs, split.values, split.integers);
}

void StGlobalV2Op::build(OpBuilder &builder, OperationState &state, Value pointer, Value offset,
                         Value regs, ArrayRef<OpFoldResult> fragment) {
  SplitIndices split(fragment);
  build(builder, state, pointer, offset, regs, split.values, split.integers);
}

void StGlobalV4Op::build(OpBuilder &builder, OperationState &state, Value pointer, Value offset,
                         Value regs, ArrayRef<OpFoldResult> fragment) {
  SplitIndices split(fragment);
  build(builder, state, pointer, offset, regs, split.values, split.integers);
}

void ConstantF32Op::build(OpBuilder &builder, OperationState &state, float value) {
  build(builder, state, builder.getF32Type(), builder.getF32FloatAttr(value));
}

OpFoldResult ConstantF32Op::fold(FoldAdaptor) { return getValueAttr(); }

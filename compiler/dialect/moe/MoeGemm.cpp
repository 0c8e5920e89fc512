// moe.gemm: text and structure.
#include "compiler/dialect/moe/Moe.h"
#include "runtime/Rules.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::moe;

namespace {

std::string extentText(int64_t extent) {
  return ShapedType::isDynamic(extent) ? std::string("?") : std::to_string(extent);
}

bool agree(int64_t a, int64_t b) {
  return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b;
}

LogicalResult checkRank(GemmOp gemm, StringRef name, RankedTensorType type, int64_t rank,
                        StringRef form) {
  if (type.getRank() == rank)
    return success();
  return gemm.emitOpError() << name << " has rank " << type.getRank() << ", expected " << rank
                            << ": " << dispatchName(gemm.getDispatch()) << " takes " << form;
}

/// `first` and `second` name what must be equal, such as "K of x".
LogicalResult checkEqual(GemmOp gemm, StringRef first, int64_t a, StringRef second, int64_t b) {
  if (agree(a, b))
    return success();
  return gemm.emitOpError() << first << " is " << extentText(a) << ", expected " << extentText(b)
                            << ", the " << second;
}

LogicalResult checkStatic(GemmOp gemm, StringRef name, int64_t extent) {
  if (!ShapedType::isDynamic(extent))
    return success();
  return gemm.emitOpError() << name << " is not static: only row counts may be '?'";
}

LogicalResult checkElements(GemmOp gemm, RankedTensorType type, RuleSubject subject) {
  if (elementTypeOf(type.getElementType()))
    return success();
  std::string name;
  llvm::raw_string_ostream(name) << type.getElementType();
  return gemm.emitOpError() << foreignElementType(name, subject).text();
}

LogicalResult checkScaled(GemmOp gemm, RankedTensorType type, StringRef name) {
  if (scalesOf(type))
    return success();
  return gemm.emitOpError()
         << name << " has no scale layout, expected a type such as tensor<…, #moe.scales<…>>";
}

LogicalResult checkIndices(GemmOp gemm, StringRef name, RankedTensorType type, int64_t extent,
                           StringRef meaning) {
  if (type.getRank() != 1 || !type.getElementType().isSignlessInteger(32) || type.getEncoding())
    return gemm.emitOpError() << name << " has type " << type
                              << ", expected a one-dimensional tensor of i32";
  if (agree(type.getDimSize(0), extent))
    return success();
  return gemm.emitOpError() << name << " has " << extentText(type.getDimSize(0))
                            << " entries, expected " << extentText(extent) << ": " << meaning;
}

LogicalResult checkRouting(GemmOp gemm, RankedTensorType x) {
  int64_t experts = gemm.getNumExperts();
  Dispatch dispatch = gemm.getDispatch();
  bool hasMap = static_cast<bool>(gemm.getExpertMap());
  bool hasRouting = static_cast<bool>(gemm.getRouting());
  if (hasRouting != (dispatch != Dispatch::Eager) || (hasMap && dispatch != Dispatch::Batched))
    return gemm.emitOpError() << "has operands that " << dispatchName(dispatch) << " does not take";
  if (hasMap &&
      failed(checkIndices(gemm, "expert_map", cast<RankedTensorType>(gemm.getExpertMap().getType()),
                          ShapedType::kDynamic, "")))
    return failure();
  if (!hasRouting)
    return success();
  auto routing = cast<RankedTensorType>(gemm.getRouting().getType());
  switch (dispatch) {
  case Dispatch::Batched:
    return checkIndices(gemm, "ids", routing, x.getDimSize(0), "one for each row of x");
  case Dispatch::Grouped:
    return checkIndices(gemm, "offsets", routing, experts + 1, "one more than experts");
  case Dispatch::Masked:
  case Dispatch::Eager:
    break;
  }
  return checkIndices(gemm, "counts", routing, experts, "one for each expert");
}

} // namespace

void GemmOp::build(OpBuilder &builder, OperationState &state, Type resultType,
                   moejit::Dispatch dispatch, moejit::Accumulate accumulate,
                   moejit::Skipped skipped, Value x, Value routing, Value w, Value expertMap) {
  MLIRContext *context = builder.getContext();
  build(builder, state, resultType, DispatchAttr::get(context, dispatch),
        AccumulateAttr::get(context, accumulate), SkippedAttr::get(context, skipped), x, routing, w,
        expertMap);
}

int64_t GemmOp::getNumExperts() {
  return getDispatch() == Dispatch::Eager ? 1
                                          : cast<RankedTensorType>(getW().getType()).getDimSize(0);
}

StringRef GemmOp::getRoutingName() {
  switch (getDispatch()) {
  case Dispatch::Batched:
    return "ids";
  case Dispatch::Grouped:
    return "offsets";
  case Dispatch::Masked:
    return "counts";
  case Dispatch::Eager:
    break;
  }
  return "";
}

void GemmOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getY(), "y"); }

LogicalResult GemmOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType());
  auto w = cast<RankedTensorType>(getW().getType());
  auto y = cast<RankedTensorType>(getY().getType());
  bool isMasked = getDispatch() == Dispatch::Masked;
  bool isEager = getDispatch() == Dispatch::Eager;
  int64_t xRank = isMasked ? 3 : 2;
  int64_t wRank = isEager ? 2 : 3;
  if (failed(checkRank(*this, "x", x, xRank, isMasked ? "[E, Mmax, K]" : "[rows, K]")) ||
      failed(checkRank(*this, "w", w, wRank, isEager ? "[N, K]" : "[E, N, K]")) ||
      failed(checkRank(*this, "y", y, xRank, isMasked ? "[E, Mmax, N]" : "[rows, N]")))
    return failure();

  int64_t k = w.getDimSize(wRank - 1);
  int64_t n = w.getDimSize(wRank - 2);
  if (failed(checkStatic(*this, "K of w", k)) || failed(checkStatic(*this, "N of w", n)) ||
      failed(checkStatic(*this, "K of x", x.getDimSize(xRank - 1))) ||
      failed(checkStatic(*this, "N of y", y.getDimSize(xRank - 1))) ||
      failed(checkStatic(*this, "E of w", w.getDimSize(0))))
    return failure();
  if (failed(checkEqual(*this, "K of x", x.getDimSize(xRank - 1), "K of w", k)) ||
      failed(checkEqual(*this, "N of y", y.getDimSize(xRank - 1), "N of w", n)) ||
      failed(checkEqual(*this, "row count of y", y.getDimSize(xRank - 2), "row count of x",
                        x.getDimSize(xRank - 2))))
    return failure();
  if (isMasked &&
      (failed(checkEqual(*this, "E of x", x.getDimSize(0), "E of w", w.getDimSize(0))) ||
       failed(checkEqual(*this, "E of y", y.getDimSize(0), "E of w", w.getDimSize(0))) ||
       failed(checkStatic(*this, "E of x", x.getDimSize(0))) ||
       failed(checkStatic(*this, "Mmax of x", x.getDimSize(1)))))
    return failure();

  if (failed(checkElements(*this, x, RuleSubject::X)) ||
      failed(checkElements(*this, w, RuleSubject::W)) ||
      failed(checkElements(*this, y, RuleSubject::Y)) || failed(checkScaled(*this, x, "x")) ||
      failed(checkScaled(*this, w, "w")))
    return failure();
  if (y.getEncoding())
    return emitOpError()
           << "y has an encoding, expected a plain tensor: quantize it in a step of its own";
  return checkRouting(*this, x);
}

ParseResult GemmOp::parse(OpAsmParser &parser, OperationState &result) {
  MLIRContext *context = parser.getContext();
  SMLoc location = parser.getCurrentLocation();
  StringRef form;
  if (parser.parseKeyword(&form))
    return failure();
  std::optional<moejit::Dispatch> dispatch = parseDispatch(form.str());
  if (!dispatch)
    return parser.emitError(location)
           << "expected eager, batched, grouped or masked, got '" << form << "'";

  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SMLoc operandsLocation = parser.getCurrentLocation();
  if (parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren))
    return failure();
  bool isEager = *dispatch == moejit::Dispatch::Eager;
  size_t least = isEager ? 2 : 3;
  size_t most = *dispatch == moejit::Dispatch::Batched ? 4 : least;
  if (operands.size() < least || operands.size() > most)
    return parser.emitError(operandsLocation)
           << form << " takes " << least << (most > least ? " or 4" : "") << " operands, got "
           << operands.size();

  Properties &properties = result.getOrAddProperties<Properties>();
  auto accumulate = moejit::Accumulate::Exact;
  auto skipped = moejit::Skipped::Zeroed;
  auto parseEntry = [&]() -> ParseResult {
    std::string key, word;
    if (parser.parseKeywordOrString(&key) || parser.parseEqual())
      return failure();
    SMLoc valueLocation = parser.getCurrentLocation();
    if (key == "accumulate") {
      std::optional<moejit::Accumulate> value;
      if (succeeded(parser.parseKeywordOrString(&word)))
        value = parseAccumulate(word);
      if (!value)
        return parser.emitError(valueLocation) << "expected exact or fast";
      accumulate = *value;
      return success();
    }
    if (key == "skipped") {
      std::optional<moejit::Skipped> value;
      if (succeeded(parser.parseKeywordOrString(&word)))
        value = parseSkipped(word);
      if (!value)
        return parser.emitError(valueLocation) << "expected zeroed or untouched";
      skipped = *value;
      return success();
    }
    Attribute attribute;
    if (parser.parseAttribute(attribute))
      return failure();
    result.addAttribute(key, attribute);
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::OptionalBraces, parseEntry))
    return failure();
  properties.dispatch = DispatchAttr::get(context, *dispatch);
  properties.accumulate = AccumulateAttr::get(context, accumulate);
  properties.skipped = SkippedAttr::get(context, skipped);
  properties.operandSegmentSizes = {1, isEager ? 0 : 1, 1, operands.size() == 4 ? 1 : 0};

  SmallVector<Type> types;
  Type resultType;
  if (parser.parseColonTypeList(types) || parser.parseArrow() || parser.parseType(resultType) ||
      parser.resolveOperands(operands, types, operandsLocation, result.operands))
    return failure();
  result.addTypes(resultType);
  return success();
}

void GemmOp::print(OpAsmPrinter &printer) {
  printer << ' ' << dispatchName(getDispatch()) << '(' << getOperands() << ')';
  SmallVector<NamedAttribute> others((*this)->getDiscardableAttrs());
  bool isFast = getAccumulate() == moejit::Accumulate::Fast;
  bool isUntouched = getSkipped() == moejit::Skipped::Untouched;
  if (isFast || isUntouched || !others.empty()) {
    const char *separator = " {";
    auto key = [&](StringRef name) {
      printer << separator;
      printer.printKeywordOrString(name);
      printer << " = ";
      separator = ", ";
    };
    if (isFast) {
      key("accumulate");
      printer << accumulateName(getAccumulate());
    }
    if (isUntouched) {
      key("skipped");
      printer << skippedName(getSkipped());
    }
    for (NamedAttribute other : others) {
      key(other.getName());
      printer << other.getValue();
    }
    printer << '}';
  }
  printer << " : " << getOperandTypes() << " -> " << getY().getType();
}

// Text and verification of the attributes of the `moe` dialect.
#include "compiler/dialect/moe/Moe.h"
#include "runtime/Rules.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::moe;

namespace {

/// Reads a keyword that `parseName` knows into `value`; `expected` lists the keywords.
template <typename Enum>
ParseResult parseName(AsmParser &parser, std::optional<Enum> (*parseName)(std::string_view),
                      const char *expected, Enum &value) {
  SMLoc location = parser.getCurrentLocation();
  StringRef keyword;
  if (failed(parser.parseOptionalKeyword(&keyword)))
    return parser.emitError(location) << "expected " << expected;
  std::optional<Enum> parsed = parseName(std::string_view(keyword.data(), keyword.size()));
  if (!parsed)
    return parser.emitError(location) << "expected " << expected << ", got '" << keyword << "'";
  value = *parsed;
  return success();
}

ParseResult parseGranuleEntry(AsmParser &parser, SmallVectorImpl<Granule> &granule) {
  if (succeeded(parser.parseOptionalStar())) {
    granule.push_back(Granule::whole());
    return success();
  }
  if (succeeded(parser.parseOptionalKeyword("expert"))) {
    granule.push_back(Granule::expert());
    return success();
  }
  SMLoc location = parser.getCurrentLocation();
  int64_t extent = 0;
  OptionalParseResult parsed = parser.parseOptionalInteger(extent);
  if (!parsed.has_value())
    return parser.emitError(location) << "expected an extent, '*' or 'expert'";
  granule.push_back(Granule::of(extent));
  return *parsed;
}

ParseResult parseScaleType(AsmParser &parser, ElementType &value) {
  SMLoc location = parser.getCurrentLocation();
  Type type;
  if (parser.parseType(type))
    return failure();
  std::optional<ElementType> parsed = elementTypeOf(type);
  if (!parsed)
    return parser.emitError(location)
           << "scales have type " << type << ", expected f32 or f8E8M0FNU [MJ006]";
  value = *parsed;
  return success();
}

ParseResult parseIntegers(AsmParser &parser, std::vector<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(values.emplace_back()); });
}

/// Reads what follows the keyword `key`.
ParseResult parseScalesEntry(AsmParser &parser, StringRef key, SMLoc location,
                             ScaleLayout &layout) {
  if (key == "interleaved") {
    layout.interleaved = true;
    return success();
  }
  if (!llvm::is_contained(
          {"granule", "type", "source", "order", "align", "packing", "parts", "phase"}, key))
    return parser.emitError(location)
           << "unknown entry '" << key
           << "', expected granule, type, source, order, align, packing, parts, "
              "interleaved or phase";
  if (parser.parseEqual())
    return failure();
  if (key == "granule") {
    SmallVector<Granule> granule;
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       [&] { return parseGranuleEntry(parser, granule); }))
      return failure();
    layout.granule.assign(granule.begin(), granule.end());
    return success();
  }
  if (key == "type")
    return parseScaleType(parser, layout.type);
  if (key == "source")
    return parseName(parser, parseScaleSource, "static or dynamic", layout.source);
  if (key == "order")
    return parseName(parser, parseScaleOrder, "row_major or mn_major", layout.order);
  if (key == "align")
    return parser.parseInteger(layout.alignBytes);
  if (key == "packing")
    return parser.parseInteger(layout.packing);
  if (key == "parts")
    return parser.parseInteger(layout.parts);
  return parseIntegers(parser, layout.phase);
}

} // namespace

Attribute ScalesAttr::parse(AsmParser &parser, Type) {
  ScaleLayout layout;
  SmallVector<StringRef> seen;
  SMLoc start = parser.getCurrentLocation();
  ParseResult parsed =
      parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&]() -> ParseResult {
        SMLoc location = parser.getCurrentLocation();
        StringRef key;
        if (parser.parseKeyword(&key))
          return failure();
        if (llvm::is_contained(seen, key))
          return parser.emitError(location) << "entry '" << key << "' given twice";
        seen.push_back(key);
        return parseScalesEntry(parser, key, location, layout);
      });
  if (parsed)
    return {};
  if (!llvm::is_contained(seen, "granule")) {
    parser.emitError(start) << "expected an entry 'granule'";
    return {};
  }
  return ScalesAttr::get(parser.getContext(), layout);
}

void ScalesAttr::print(AsmPrinter &printer) const {
  ScaleLayout layout = getLayout();
  ScaleLayout defaults;
  printer << "<granule = " << layout.granuleText();
  if (layout.type != defaults.type)
    printer << ", type = " << elementTypeName(layout.type);
  if (layout.source != defaults.source)
    printer << ", source = " << scaleSourceName(layout.source);
  if (layout.order != defaults.order)
    printer << ", order = " << scaleOrderName(layout.order);
  if (layout.alignBytes != defaults.alignBytes)
    printer << ", align = " << layout.alignBytes;
  if (layout.packing != defaults.packing)
    printer << ", packing = " << layout.packing;
  if (layout.parts != defaults.parts)
    printer << ", parts = " << layout.parts;
  if (layout.interleaved)
    printer << ", interleaved";
  if (layout.hasPhase()) {
    printer << ", phase = [";
    llvm::interleaveComma(layout.phase, printer);
    printer << "]";
  }
  printer << ">";
}

ScaleLayout ScalesAttr::getLayout() const {
  ScaleLayout layout;
  layout.granule.assign(getGranule().begin(), getGranule().end());
  layout.type = getType();
  layout.source = getSource();
  layout.order = getOrder();
  layout.alignBytes = getAlignBytes();
  layout.packing = getPacking();
  layout.parts = getParts();
  layout.interleaved = getInterleaved();
  layout.phase.assign(getPhase().begin(), getPhase().end());
  return layout;
}

ScalesAttr ScalesAttr::get(MLIRContext *context, const ScaleLayout &layout) {
  ArrayRef<int64_t> phase = layout.phase;
  return Base::get(context, ArrayRef<Granule>(layout.granule), layout.type, layout.source,
                   layout.order, layout.alignBytes, layout.packing, layout.parts,
                   layout.interleaved, layout.hasPhase() ? phase : ArrayRef<int64_t>());
}

LogicalResult ScalesAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  if (std::optional<Violation> violation =
          checkLayoutRank(getLayout(), shape.size(), RuleSubject::Gemm))
    return emitError() << violation->text();
  return success();
}

/// The text of an attribute that holds one enumerator: `<name>`.
#define MOEJIT_ENUM_ATTR(Class, parse_, name, expected)                                            \
  Attribute Class::parse(AsmParser &parser, Type) {                                                \
    auto value = decltype(std::declval<Class>().getValue())();                                     \
    if (parser.parseLess() || parseName(parser, parse_, expected, value) || parser.parseGreater()) \
      return {};                                                                                   \
    return Class::get(parser.getContext(), value);                                                 \
  }                                                                                                \
  void Class::print(AsmPrinter &printer) const { printer << '<' << name(getValue()) << '>'; }

MOEJIT_ENUM_ATTR(DispatchAttr, parseDispatch, dispatchName, "eager, batched, grouped or masked")
MOEJIT_ENUM_ATTR(AccumulateAttr, parseAccumulate, accumulateName, "exact or fast")
MOEJIT_ENUM_ATTR(SkippedAttr, parseSkipped, skippedName, "zeroed or untouched")
#undef MOEJIT_ENUM_ATTR

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/moe/MoeAttributes.cpp.inc"

void MoeDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/moe/MoeAttributes.cpp.inc"
      >();
}

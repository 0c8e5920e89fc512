// Types and attributes of the `tile` dialect.
#include "compiler/dialect/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

#include "compiler/dialect/tile/TileDialect.cpp.inc"
#include "compiler/dialect/tile/TileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/tile/TileAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/tile/TileTypes.cpp.inc"

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/tile/TileAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/dialect/tile/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/tile/TileOps.cpp.inc"
      >();
}

namespace {

/// What a view or a block is made of: a number of a fixed width.
ParseResult parseElement(AsmParser &parser, Type &type) {
  if (parser.parseType(type))
    return failure();
  if (!type.isIntOrFloat())
    return parser.emitError(parser.getNameLoc(), "an element is an integer or a float, got ")
           << type;
  return success();
}

/// Reads `<4x?xf32>`.
template <typename T> Type parseShaped(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  if (parser.parseLess() || parser.parseDimensionList(shape) || parseElement(parser, elementType) ||
      parser.parseGreater())
    return {};
  return T::get(parser.getContext(), shape, elementType);
}

void printShaped(AsmPrinter &printer, ArrayRef<int64_t> shape, Type elementType) {
  printer << "<";
  printer.printDimensionList(shape);
  printer << (shape.empty() ? "" : "x") << elementType << ">";
}

} // namespace

Type ViewType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  if (parser.parseLess() || parser.parseDimensionList(shape) || parseElement(parser, elementType))
    return {};
  bool isStrided = succeeded(parser.parseOptionalComma());
  if (isStrided && parser.parseKeyword("strided"))
    return {};
  if (parser.parseGreater())
    return {};
  return ViewType::get(parser.getContext(), shape, elementType, isStrided);
}
void ViewType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << (getShape().empty() ? "" : "x") << getElementType()
          << (getStrided() ? ", strided>" : ">");
}
Type BlockType::parse(AsmParser &parser) { return parseShaped<BlockType>(parser); }
void BlockType::print(AsmPrinter &printer) const {
  printShaped(printer, getShape(), getElementType());
}

Type AccType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  std::optional<Split> split;
  int64_t n = 0;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false, /*withTrailingX=*/false))
    return {};
  if (shape.size() != 2) {
    parser.emitError(parser.getNameLoc(), "an accumulator has two extents, got ") << shape.size();
    return {};
  }
  if (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return {};
    split = symbolizeSplit(keyword);
    if (!split) {
      parser.emitError(parser.getNameLoc(), "expected 'rows' or 'columns', got '")
          << keyword << "'";
      return {};
    }
    if (parser.parseComma() || parser.parseKeyword("n") || parser.parseEqual() ||
        parser.parseInteger(n))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return AccType::get(parser.getContext(), shape[0], shape[1], split, n);
}

void AccType::print(AsmPrinter &printer) const {
  printer << "<" << getRows() << "x" << getColumns();
  if (getSplit())
    printer << ", " << stringifySplit(*getSplit()) << ", n = " << getN();
  printer << ">";
}

std::optional<Distribution> tile::distribute(AccType type, int64_t warpgroups) {
  Distribution result;
  result.warpgroups = warpgroups;
  bool rowsFit = type.getRows() % (fragmentRows * warpgroups) == 0;
  result.split = type.getSplit().value_or(rowsFit ? Split::Rows : Split::Columns);
  bool byRows = result.split == Split::Rows;
  if (type.getRows() % (byRows ? fragmentRows * warpgroups : fragmentRows) != 0 ||
      type.getColumns() % (byRows ? 8 : 8 * warpgroups) != 0)
    return std::nullopt;
  result.rows = byRows ? type.getRows() / warpgroups : type.getRows();
  result.columns = byRows ? type.getColumns() : type.getColumns() / warpgroups;
  result.n = type.getN();
  if (result.n == 0)
    // The widest fragment that leaves registers for a second one.
    for (result.n = std::min<int64_t>(result.columns, 128); result.columns % result.n != 0;)
      result.n -= 8;
  if (result.n % 8 != 0 || result.n > 256 || result.columns % result.n != 0)
    return std::nullopt;
  result.width = result.n;
  return result;
}

LogicalResult ItemsAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t granule,
                                int64_t extent, int64_t phase, int64_t parts, bool interleaved) {
  if (granule < 0 || extent < 0 || parts < 1 || phase < 0 || (phase > 0 && phase >= granule))
    return emitError() << "items have a granule and an extent of 0 or more, a phase inside the "
                          "granule and parts of 1 or more";
  if (extent == 0 && parts > 1)
    return emitError() << "the rows of a launch are one part, got " << parts;
  if (interleaved && parts == 1)
    return emitError() << "one part does not alternate with others";
  return success();
}

int64_t ItemsAttr::getScalesPerPart() const {
  if (getGranule() == 0)
    return 1;
  return getExtent() == 0 ? 0 : (getExtent() + getPhase() + getGranule() - 1) / getGranule();
}

bool ItemsAttr::hasPairs() const {
  return !getInterleaved() && (getParts() == 1 || getExtent() % 2 == 0) && getGranule() % 2 == 0 &&
         getPhase() % 2 == 0;
}

std::optional<FieldLayout> tile::fieldLayout(BlockType block) {
  FieldLayout layout;
  constexpr int64_t mostElements = int64_t(1) << 20; // keeps the product from overflowing
  int64_t elements = 1;
  for (int64_t extent : block.getShape()) {
    if (extent < 1 || extent > mostElements / elements)
      return std::nullopt;
    elements *= extent;
  }
  if (block.getShape().empty())
    return std::nullopt;
  int64_t inner = block.getShape().back();
  Type element = block.getElementType();
  if (block.getElementBytes() == 1 && !isa<Float8E8M0FNUType>(element)) {
    // One row is one 128-byte swizzle span; a bulk copy takes at most 256 of them.
    if (inner != 128 || elements / inner > 256)
      return std::nullopt;
    layout.bytes = layout.transactionBytes = elements;
    layout.alignBytes = 1024;
    return layout;
  }
  if (!element.isF32() && !element.isInteger(32) && !isa<Float8E8M0FNUType>(element))
    return std::nullopt;
  int64_t elementBytes = block.getElementBytes();
  if (inner > 1) {
    // Copies start on 16 bytes, so the vector may lie up to that much further on.
    int64_t unit = copiedBytes / elementBytes;
    int64_t box = (inner + unit + unit - 1) / unit * unit;
    if (elements != inner || box > 256)
      return std::nullopt;
    layout.kind = FieldLayout::Kind::Vector;
    layout.transactionBytes = box * elementBytes;
    layout.bytes = (layout.transactionBytes + 127) / 128 * 128;
    return layout;
  }
  if (elements > 4)
    return std::nullopt;
  layout.kind = FieldLayout::Kind::Scalars;
  layout.entries = elements;
  layout.transactionBytes = copiedBytes * elements;
  layout.bytes = 128 * elements;
  return layout;
}

// Parsers, printers and verifiers of the `tile` ops.
#include "compiler/dialect/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

#define GET_OP_CLASSES
#include "compiler/dialect/tile/TileOps.cpp.inc"

//===-- Kernel
//-------------------------------------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Attribute> operandNames;
  if (parser.parseSymbolName(name, getSymNameAttrName(state.name), state.attributes))
    return failure();
  auto parseArgument = [&]() -> ParseResult {
    std::string operandName;
    OpAsmParser::Argument &argument = arguments.emplace_back();
    if (parser.parseString(&operandName) || parser.parseArgument(argument, /*allowType=*/true))
      return failure();
    operandNames.push_back(parser.getBuilder().getStringAttr(operandName));
    return success();
  };
  IntegerAttr warpgroups;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseArgument) ||
      parser.parseKeyword("warpgroups") ||
      parser.parseAttribute(warpgroups, parser.getBuilder().getI64Type()))
    return failure();
  state.addAttribute(getOperandNamesAttrName(state.name),
                     parser.getBuilder().getArrayAttr(operandNames));
  state.addAttribute(getWarpgroupsAttrName(state.name), warpgroups);
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.parseRegion(*state.addRegion(), arguments))
    return failure();
  if (state.regions.back()->empty())
    state.regions.back()->emplaceBlock();
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << "(";
  llvm::interleaveComma(llvm::enumerate(getBody().getArguments()), printer, [&](auto it) {
    printer << getOperandNames()[it.index()] << " ";
    printer.printRegionArgument(it.value());
  });
  printer << ") warpgroups " << getWarpgroups();
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getOperandNamesAttrName(), getWarpgroupsAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  if (getOperandNames().size() != getBody().getNumArguments())
    return emitOpError("names ") << getOperandNames().size() << " operands, its body has "
                                 << getBody().getNumArguments() << " arguments";
  if (getWarpgroups() < 1 || getThreads() > 1024)
    return emitOpError("takes 1 to 8 warpgroups, a producer's among them, got ")
           << getThreads() / 128;
  if (getClusterSize() < 1 || getClusterSize() > 8)
    return emitOpError("takes 1 to 8 blocks in a cluster, got ") << getClusterSize();
  if (getSmShare() < 1 || getSmShare() * getThreads() > 2048)
    return emitOpError("takes 1 to ") << 2048 / getThreads() << " blocks of " << getThreads()
                                      << " threads on an SM, got " << getSmShare();
  return success();
}

namespace {

/// What blocks of a cluster do together needs a kernel that has clusters.
LogicalResult verifyCluster(Operation *op, bool isTogether) {
  auto kernel = op->getParentOfType<KernelOp>();
  if (isTogether && kernel && kernel.getClusterSize() < 2)
    return op->emitOpError("works with other blocks of its cluster, but the kernel has none");
  return success();
}

} // namespace

StringRef KernelOp::getOperandName(unsigned index) {
  return cast<StringAttr>(getOperandNames()[index]).getValue();
}

bool KernelOp::hasRoles() { return !getBody().getOps<RoleOp>().empty(); }

int64_t KernelOp::getThreads() { return 128 * (getWarpgroups() + (hasRoles() ? 1 : 0)); }

LogicalResult WaitGridOp::verify() {
  // Of the ops of other dialects only lowered ones come before, which were told here as what they
  // were.
  for (Operation *op = (*this)->getPrevNode(); op; op = op->getPrevNode())
    if (isa<TileDialect>(op->getDialect()) &&
        !isa<RingOp, SyncOp, RowsOp, StrideOp, WarpgroupOp, AccOp, LaunchDependentsOp>(op)) {
      InFlightDiagnostic diag = emitOpError("comes before all that touches global memory");
      diag.attachNote(op->getLoc()) << "this op comes before it";
      return diag;
    }
  return success();
}

//===-- Scheduler
//----------------------------------------------------------------------------------------------===//

LogicalResult SchedulerOp::verify() {
  if (getTileM() < 1 || getTileN() < 1 || getColumns() < 1 || getRaster() < 1)
    return emitOpError("tile, columns and raster must be positive");
  if (getTail() && (*getTail() < 8 || *getTail() % 8 != 0 || *getTail() >= getTileM()))
    return emitOpError("has tails of a multiple of 8 rows, fewer than its tile's ")
           << static_cast<int64_t>(getTileM()) << ", got " << static_cast<int64_t>(*getTail());
  if (getTail() && getCluster() == Spread::Rows)
    return emitOpError("has tails, or clusters along rows; not both");
  if (getOffsets() && getOffsets().getType().getShape() !=
                          ArrayRef<int64_t>{static_cast<int64_t>(getExperts()) + 1})
    return emitOpError("of ") << getExperts() << " experts reads " << getExperts() + 1
                              << " offsets, got " << getOffsets().getType();
  if ((getOrder() == Order::Queue) != (getCounter() != nullptr))
    return emitOpError("takes a counter exactly when its order is queue");
  if (getCounts() &&
      getCounts().getType().getShape() != ArrayRef<int64_t>{static_cast<int64_t>(getExperts())})
    return emitOpError("of ") << getExperts() << " experts reads as many counts, got "
                              << getCounts().getType();
  if ((getOffsets() ? 1 : 0) + (getCounts() ? 1 : 0) + (getIds() ? 1 : 0) > 1)
    return emitOpError("takes one of offsets, counts and ids");
  if (getMap() && !getIds())
    return emitOpError("maps expert ids, but is given none");
  if (getMap() && (getMap().getType().getRank() != 1 ||
                   ShapedType::isDynamic(getMap().getType().getShape()[0])))
    return emitOpError("maps by a vector of known length, got ") << getMap().getType();
  if (!getOffsets() && !getCounts() && !getIds() && getExperts() != 1)
    return emitOpError("without offsets, counts or ids has one expert, got ") << getExperts();
  return verifyCluster(*this, getCluster().has_value());
}

ParseResult ForTilesOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::UnresolvedOperand scheduler;
  SmallVector<OpAsmParser::Argument> arguments;
  Builder &builder = parser.getBuilder();
  if (parser.parseOperand(scheduler) || parser.parseArrow() ||
      parser.parseArgumentList(arguments, AsmParser::Delimiter::None))
    return failure();
  if (arguments.size() != 5)
    return parser.emitError(parser.getNameLoc(),
                            "expected expert, row, column, rows and live, got ")
           << arguments.size() << " names";
  for (OpAsmParser::Argument &argument : arguments)
    argument.type = builder.getI32Type();
  arguments.back().type = builder.getI1Type();
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.parseRegion(*state.addRegion(), arguments) ||
      parser.resolveOperand(scheduler, SchedulerType::get(builder.getContext()), state.operands))
    return failure();
  return success();
}

void ForTilesOp::print(OpAsmPrinter &printer) {
  printer << " " << getScheduler() << " -> ";
  llvm::interleaveComma(getBody().getArguments(), printer);
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult ForTilesOp::verify() {
  if (getBody().getNumArguments() != 5)
    return emitOpError("body takes expert, row, column, rows and live");
  if (llvm::range_size(getBody().getOps<NextTileOp>()) > 1)
    return emitOpError("draws its next tile more than once");
  return success();
}

//===-- Grid
//---------------------------------------------------------------------------------------------------===//

ParseResult GridForOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::UnresolvedOperand counters, extent;
  OpAsmParser::Argument index;
  Builder &builder = parser.getBuilder();
  IntegerAttr at;
  ViewType type;
  if (parser.parseOperand(counters) || parser.parseKeyword("at") ||
      parser.parseAttribute(at, builder.getI64Type()) || parser.parseKeyword("extent") ||
      parser.parseOperand(extent) || parser.parseArrow() || parser.parseArgument(index) ||
      parser.parseColonType(type))
    return failure();
  index.type = builder.getI32Type();
  state.addAttribute(getAtAttrName(state.name), at);
  return failure(parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
                 parser.parseRegion(*state.addRegion(), {index}) ||
                 parser.resolveOperand(counters, type, state.operands) ||
                 parser.resolveOperand(extent, index.type, state.operands));
}

void GridForOp::print(OpAsmPrinter &printer) {
  printer << " " << getCounters() << " at " << getAt() << " extent " << getExtent() << " -> "
          << getIndex() << " : " << getCounters().getType();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getAtAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult GridForOp::verify() {
  if (getBody().getNumArguments() != 1 || !getBody().getArgument(0).getType().isInteger(32))
    return emitOpError("body takes an index");
  ViewType view = getCounters().getType();
  if (!view.getElementType().isInteger(32) || view.getRank() != 1 ||
      getAt() + 2 > static_cast<uint64_t>(view.getShape()[0]))
    return emitOpError("counts in two i32 from entry ") << getAt() << " on, got counters " << view;
  for (Operation *op = (*this)->getPrevNode(); op; op = op->getPrevNode())
    if (isa<RoleOp, ForTilesOp>(op))
      return emitOpError("comes before the tiles, while all warps are alike");
  return success();
}

LogicalResult CleanOp::verify() {
  for (Value view : getViews()) {
    auto type = cast<ViewType>(view.getType());
    if (!type.getElementType().isInteger(32) || type.getRank() != 1 ||
        ShapedType::isDynamic(type.getShape()[0]))
      return emitOpError("cleans vectors of i32 of known length, got ") << type;
  }
  if (!llvm::is_contained(getViews(), getCounter()))
    return emitOpError("counts in a view that it does not clean");
  if (static_cast<int64_t>(getAt()) >= getCounter().getType().getShape()[0])
    return emitOpError("counts in entry ") << getAt() << " of " << getCounter().getType();
  auto role = (*this)->getParentOfType<RoleOp>();
  if (!(*this)->getParentOfType<OnceOp>() && (!role || role.getKind() != RoleKind::Producer))
    return emitOpError("is for one thread of a block: in a tile.once, or a producer");
  return success();
}

//===-- Memory
//-------------------------------------------------------------------------------------------------===//

LogicalResult LoadOp::verify() {
  ViewType view = getView().getType();
  BlockType block = getResult().getType();
  if (static_cast<int64_t>(getCoordinates().size()) != view.getRank() ||
      block.getRank() != view.getRank())
    return emitOpError("wants one coordinate and one block extent for each of the view's ")
           << view.getRank() << " dimensions, got " << getCoordinates().size() << " and "
           << block.getRank();
  if (block.getElementType() != view.getElementType())
    return emitOpError("loads ") << block.getElementType() << " from a view of "
                                 << view.getElementType();
  if (getItems() && llvm::count_if(block.getShape(), [](int64_t e) { return e > 1; }) != 1)
    return emitOpError("of items has one dimension of more than one entry, got ") << block;
  return success();
}

LogicalResult UnpackOp::verify() {
  BlockType words = getWords().getType(), result = getResult().getType();
  if (!words.getElementType().isInteger(32) || !isa<Float8E8M0FNUType>(result.getElementType()) ||
      words.getShape() != result.getShape())
    return emitOpError("takes bytes from a block of i32 to a block of f8E8M0FNU of the same shape, "
                       "got ")
           << words << " and " << result;
  return success();
}

LogicalResult RingOp::verify() {
  if (getStages() < 1)
    return emitOpError("has at least one stage, got ") << getStages();
  for (Attribute field : getFields()) {
    auto block = dyn_cast<BlockType>(cast<TypeAttr>(field).getValue());
    if (!block || !fieldLayout(block))
      return emitOpError("cannot hold a field ")
             << field << "; it takes f8 rows of 128 elements, or a few scales";
  }
  if (getFieldOffsets() && getFieldOffsets()->size() != getFields().size())
    return emitOpError("has ") << getFields().size() << " fields but " << getFieldOffsets()->size()
                               << " offsets";
  return verifyCluster(*this, getMulticast());
}

BlockType RingOp::getField(unsigned index) {
  return cast<BlockType>(cast<TypeAttr>(getFields()[index]).getValue());
}

int64_t RingOp::getTransactionBytes() {
  int64_t bytes = 0;
  for (unsigned i = 0; i < getFields().size(); ++i)
    bytes += fieldLayout(getField(i))->transactionBytes;
  return bytes;
}

LogicalResult CopyOp::verify() {
  if (static_cast<int64_t>(getCoordinates().size()) != getView().getType().getRank())
    return emitOpError("wants ") << getView().getType().getRank() << " coordinates, got "
                                 << getCoordinates().size();
  if (getFirstPer() && (!getFirst() || getRowsBy()))
    return emitOpError(
        "copies rows per so many, which is for the first of rows that are not gathered");
  if (getFirst() && !getRowsBy() && !getFirstPer())
    return emitOpError("copies its first rows, but neither gathers them nor says per how many");
  if (getFirstPer() && (*getFirstPer() < 8 || *getFirstPer() % 8 != 0))
    return emitOpError("copies rows per multiple of 8, got ")
           << static_cast<int64_t>(*getFirstPer());
  if (getMulticast() && (getFirst() || getRowsBy()))
    return emitOpError("sends all rows of a box to other blocks, or gathers them or copies the "
                       "first only; not both");
  return verifyCluster(*this, getMulticast());
}

LogicalResult FieldOp::verify() {
  const auto from = static_cast<int64_t>(getFrom());
  if (from < 0 || from % 8 != 0)
    return emitOpError("starts at a multiple of 8 rows, got ") << from;
  auto await = getSlot().getDefiningOp<AwaitOp>();
  auto ring = await ? await.getRing().getDefiningOp<RingOp>() : RingOp();
  if (!ring || getField() >= ring.getFields().size())
    return success(); // said where the ring is lowered
  BlockType held = ring.getField(getField()), block = getResult().getType();
  std::optional<FieldLayout> layout = fieldLayout(held);
  if (!layout || (held == block && from == 0))
    return success();
  // Rows of a matrix; entries of a vector, of which there are several.
  const bool isMatrix = layout->kind == FieldLayout::Kind::Matrix;
  ArrayRef<int64_t> whole = held.getShape(), part = block.getShape();
  const size_t along = whole.size() - (isMatrix ? 2 : 1);
  const int64_t least = isMatrix ? 1 : 2;
  bool isPart = held.getElementType() == block.getElementType() && whole.size() == part.size() &&
                whole.size() >= (isMatrix ? 2 : 1) && layout->kind != FieldLayout::Kind::Scalars;
  for (size_t d = 0; isPart && d < whole.size(); ++d)
    isPart = d == along ? part[d] >= least && from <= whole[d] - part[d] : whole[d] == part[d];
  if (!isPart)
    return emitOpError("takes ") << block << " from row " << from << " on of a field " << held;
  return success();
}

//===-- Compute
//------------------------------------------------------------------------------------------------===//

namespace {

/// Extents of `block` without its leading unit extents.
ArrayRef<int64_t> matrixShape(BlockType block) {
  ArrayRef<int64_t> shape = block.getShape();
  while (shape.size() > 2 && shape.front() == 1)
    shape = shape.drop_front();
  return shape;
}

/// `batch` and `of` come together, with a fragment, which may be narrower than those of `of`: then
/// it stands for their first columns.
LogicalResult verifyBatch(Operation *op, Value acc, std::optional<uint64_t> batch,
                          std::optional<AccType> of) {
  auto fragment = dyn_cast<FragmentType>(acc.getType());
  if (batch.has_value() != (fragment != nullptr))
    return op->emitOpError("names a batch exactly when its accumulator is a fragment");
  if (!batch)
    return success();
  auto kernel = op->getParentOfType<KernelOp>();
  std::optional<Distribution> distribution = distribute(*of, kernel ? kernel.getWarpgroups() : 1);
  if (!distribution)
    return op->emitOpError("cannot divide ") << *of << " over the warpgroups";
  if (static_cast<int64_t>(*batch) >= distribution->fragments())
    return op->emitOpError("batch ")
           << *batch << " of an accumulator with " << distribution->fragments() << " fragments";
  if (fragment.getN() > distribution->n || fragment.getN() % 8 != 0 || fragment.getN() < 8)
    return op->emitOpError("fragment has ")
           << fragment.getN() << " columns, those of " << *of << " have " << distribution->n
           << "; a narrower one has a multiple of 8";
  return success();
}

} // namespace

LogicalResult AccOp::verify() {
  auto type = dyn_cast<AccType>(getResult().getType());
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (type && kernel && !distribute(type, kernel.getWarpgroups()))
    return emitOpError("cannot divide ") << type << " over " << kernel.getWarpgroups()
                                         << " warpgroups; each takes a multiple of 64 rows, or 64 "
                                            "rows by a multiple of 8 columns";
  return success();
}

LogicalResult DotOp::verify() {
  ArrayRef<int64_t> a = matrixShape(getA().getType()), b = matrixShape(getB().getType());
  if (a.size() != 2 || b.size() != 2 || a[1] != b[1])
    return emitOpError("multiplies [m, k] by [n, k], got ")
           << getA().getType() << " and " << getB().getType();
  int64_t begin = getKBegin().value_or(0);
  if (getK() % 32 != 0 || begin % 32 != 0 || getK() < 32 || begin + getK() > a[1])
    return emitOpError("multiplies ")
           << getK() << " of K from " << begin << " on, expected multiples of 32 inside " << a[1];
  AccType acc = getOf() ? *getOf() : dyn_cast<AccType>(getAcc().getType());
  if (acc && (acc.getRows() != a[0] || acc.getColumns() != b[0]))
    return emitOpError("gives ") << a[0] << "x" << b[0] << " into " << acc;
  return verifyBatch(*this, getAcc(), getBatch(), getOf());
}

LogicalResult ReadOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  std::optional<Distribution> distribution =
      distribute(getOf(), kernel ? kernel.getWarpgroups() : 1);
  if (!distribution || static_cast<int64_t>(getBatch()) >= distribution->fragments())
    return emitOpError("reads for batch ")
           << getBatch() << " of " << getOf() << ", which has no such fragment";
  int64_t count = getValues().size(), expected = getSide() == Side::Rows ? 2 : 1;
  bool isEach = getSide() == Side::Columns && count % 2 == 0 && count <= distribution->n / 4;
  if (count != expected && (!isEach || count == 0))
    return emitOpError("gives ") << expected << " values a thread, got " << count;
  if (getGranule() < 1)
    return emitOpError("has one scale for ") << getGranule() << " elements, expected 1 or more";
  return success();
}

LogicalResult PromoteOp::verify() {
  if ((getRowScales() && !getRowValues().empty()) ||
      (getColumnScales() && !getColumnValues().empty()))
    return emitOpError("takes the scales of one side as a block or as values, not both");
  if (!getRowValues().empty() && getRowValues().size() != 2)
    return emitOpError("takes two row values, got ") << getRowValues().size();
  auto fragment = dyn_cast<FragmentType>(getFrom().getType());
  int64_t columnValues = getColumnValues().size();
  if (columnValues > 1 && (!fragment || columnValues != fragment.getN() / 4))
    return emitOpError("takes one column value, or one for each of a thread's columns, got ")
           << columnValues;
  if ((!getRowValues().empty() || !getColumnValues().empty()) && !getBatch())
    return emitOpError("takes scale values for one batch only");
  return verifyBatch(*this, getFrom(), getBatch(), getInto().getType());
}

LogicalResult ScaleOp::verify() { return success(); }

LogicalResult StoreOp::verify() {
  ViewType view = getView().getType();
  Type element = view.getElementType();
  if (view.getRank() != 2 || !(element.isBF16() || element.isF16() || element.isF32()))
    return emitOpError("writes a matrix of bf16, f16 or f32, got ") << view;
  if (getStaged() && element.isF32())
    return emitOpError("stages 16-bit results only; store f32 directly");
  return verifyCluster(*this, getByFirst());
}

LogicalResult ReduceOp::verify() {
  if (!(*this)->getParentOfType<ForTilesOp>())
    return emitOpError("adds up what blocks have of a tile, expected inside tile.for_tiles");
  if (getVectors() && *getVectors() < 1)
    return emitOpError("has buffers for at least one vector a thread, got ")
           << static_cast<int64_t>(*getVectors());
  return verifyCluster(*this, true);
}

LogicalResult ClusterRankOp::verify() { return verifyCluster(*this, true); }

//===-- Quantization
//-------------------------------------------------------------------------------------------===//

namespace {

bool isWideMatrix(ViewType view) {
  Type element = view.getElementType();
  return view.getRank() == 2 && (element.isBF16() || element.isF16() || element.isF32()) &&
         view.getShape()[1] % 8 == 0;
}

/// `word` holds i32, and entry `at` is one of them.
LogicalResult verifyWord(Operation *op, ViewType word, int64_t at) {
  if (word.getRank() == 1 && word.getElementType().isInteger(32) && at >= 0 &&
      at < word.getShape()[0])
    return success();
  return op->emitOpError("takes entry ")
         << at << " of " << word << ", expected one of a vector of i32";
}

LogicalResult verifyBox(Operation *op, ViewType from, int64_t columns, int64_t vectors) {
  if (!isWideMatrix(from))
    return op->emitOpError("reads a matrix of bf16, f16 or f32 with a multiple of 8 columns, got ")
           << from;
  if (columns < 1 || columns % 8 != 0)
    return op->emitOpError("takes a multiple of 8 columns, got ") << columns;
  if (vectors < 1 || vectors > 8)
    return op->emitOpError("has 1 to 8 vectors under way, got ") << vectors;
  return success();
}

} // namespace

LogicalResult AmaxOp::verify() {
  if (failed(verifyBox(*this, getFrom().getType(), getColumns(), getVectors())))
    return failure();
  return verifyWord(*this, getWord().getType(), getAt());
}

LogicalResult QuantizeOp::verify() {
  ViewType from = getFrom().getType(), into = getInto().getType(), scales = getScales().getType();
  if (failed(verifyBox(*this, from, getColumns(), getVectors())))
    return failure();
  if (into.getRank() != 2 || into.getShape()[1] != from.getShape()[1] ||
      !isa<Float8E4M3FNType, Float8E5M2Type>(into.getElementType()))
    return emitOpError("writes f8E4M3FN or f8E5M2 of as many columns as it reads, got ") << into;
  Type element = scales.getElementType();
  if (scales.getRank() > 2 ||
      !(element.isF32() || element.isInteger(32) || isa<Float8E8M0FNUType>(element)))
    return emitOpError("has scales of f32, f8E8M0FNU, or four of them in an i32, got ") << scales;
  if (getAmax() && getGranule())
    return emitOpError("computes its scales from granules or from a word, not both");
  if (getAmax() && failed(verifyWord(*this, getAmax().getType(), getAt())))
    return failure();
  int64_t warps = getWarps();
  if (warps < 1 || warps > 32 || (warps & (warps - 1)) != 0)
    return emitOpError("shares a granule among 1 to 32 warps, a power of two, got ") << warps;
  if (!getGranule())
    return success();
  int64_t granule = *getGranule();
  if (granule < 8 || granule % 8 != 0 || getColumns() % granule != 0)
    return emitOpError("has granules of ")
           << granule << " columns, expected a multiple of 8 that divides the " << getColumns()
           << " of the box";
  bool isVector = scales.getRank() == 1;
  if (isVector && granule < from.getShape()[1])
    return emitOpError("has several scales a row, expected a matrix of them, got ") << scales;
  return success();
}

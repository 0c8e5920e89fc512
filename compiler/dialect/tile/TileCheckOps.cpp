// Verifiers of the ops of checked kernels.
#include "compiler/dialect/tile/Tile.h"

#include "runtime/Checks.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

/// Error words are the launch's: their number and width are fixed.
static LogicalResult verifyErrors(Operation *op, ViewType errors) {
  if (errors.getShape() != ArrayRef<int64_t>{errorWords} ||
      !errors.getElementType().isSignlessInteger(64))
    return op->emitOpError("reports into ") << errorWords << " words of i64, got " << errors;
  return success();
}

LogicalResult CheckRoutingOp::verify() {
  int64_t given = (getOffsets() ? 1 : 0) + (getCounts() ? 1 : 0) + (getIds() ? 1 : 0);
  if (given != 1)
    return emitOpError("takes one of offsets, counts and ids, got ") << given;
  if (getMap() && !getIds())
    return emitOpError("takes a map of ids, and has none");
  return verifyErrors(*this, getErrors().getType());
}

LogicalResult CheckScalesOp::verify() {
  int64_t rank = getView().getType().getRank();
  if (static_cast<int64_t>(getBox().size()) != rank ||
      static_cast<int64_t>(getCoordinates().size()) != rank)
    return emitOpError("of a view of rank ")
           << rank << " takes as many coordinates and extents, got " << getCoordinates().size()
           << " and " << getBox().size();
  if ((getRows() != nullptr) != getRowDimension().has_value() ||
      (getRowDimension() && static_cast<int64_t>(*getRowDimension()) >= rank))
    return emitOpError("takes rows along one of the view's dimensions");
  if (getRowsBy() && !getRows())
    return emitOpError("finds rows by a scheduler, and has no rows");
  if (static_cast<int64_t>(getKind()) >= numCheckKinds)
    return emitOpError("reports kind ") << getKind() << ", there are " << numCheckKinds;
  return verifyErrors(*this, getErrors().getType());
}

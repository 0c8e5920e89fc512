// The `tile` dialect: how one thread block works. Knows no instructions and no data layout of a
// checkpoint.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "runtime/Spec.h"

#include <optional>

#include "compiler/dialect/tile/TileDialect.h.inc"
#include "compiler/dialect/tile/TileEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/tile/TileAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/tile/TileTypes.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/tile/TileOps.h.inc"

namespace moejit::tile {

/// Rows of one wgmma, and of one fragment.
inline constexpr int64_t fragmentRows = 64;

/// Rows that a block can sort by expert.
inline constexpr int64_t maxSortedRows = batchedRowLimit;

/// Shared memory for the sums of other blocks, where a vector a thread and block fits.
inline constexpr int64_t mostSumBytes = splitKBufferBytes;

/// How an accumulator lies in the registers of the warpgroups that hold it.
struct Distribution {
  Split split = Split::Rows;
  int64_t warpgroups = 1;
  int64_t rows = 0;    ///< of one warpgroup's share
  int64_t columns = 0; ///< of one warpgroup's share
  int64_t n = 0;       ///< columns of one fragment
  int64_t width = 0;   ///< the first of those, where no others are computed; else n
  int64_t rowBatches() const { return rows / fragmentRows; }
  int64_t columnBatches() const { return columns / n; }
  int64_t fragments() const { return rowBatches() * columnBatches(); }
  /// First row and column of fragment `batch` inside the warpgroup's share.
  int64_t batchRow(int64_t batch) const { return batch / columnBatches() * fragmentRows; }
  int64_t batchColumn(int64_t batch) const { return batch % columnBatches() * n; }
};

/// The distribution of `type` over `warpgroups`, or nothing where it cannot be divided.
std::optional<Distribution> distribute(AccType type, int64_t warpgroups);

/// The least a bulk copy brings, and where it starts: a multiple of it (PTX ISA, cp.async.bulk).
inline constexpr int64_t copiedBytes = 16;

/// How a field of a ring slot lies in shared memory. Scales are f32, ue8m0 or words of four ue8m0.
struct FieldLayout {
  enum class Kind {
    Matrix,  ///< f8 rows of 128 bytes, SWIZZLE_128B, 1024-byte aligned
    Vector,  ///< contiguous scales, starting less than 16 bytes before the first asked for
    Scalars, ///< single scales, 128 bytes apart, each somewhere inside its 16 bytes
  };
  Kind kind = Kind::Matrix;
  int64_t entries = 1;          ///< copies it takes
  int64_t bytes = 0;            ///< of shared memory
  int64_t transactionBytes = 0; ///< that the copies bring
  int64_t alignBytes = 128;
};

/// The layout of a field that holds `block`, or nothing where bulk copies cannot fill one.
std::optional<FieldLayout> fieldLayout(BlockType block);

} // namespace moejit::tile

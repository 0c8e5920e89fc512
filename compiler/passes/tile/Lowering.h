// What the lowering passes share: terse building of index arithmetic, and the values that stand for
// lowered tile values.
#pragma once

#include "compiler/passes/tile/TilePasses.h"

namespace moejit::tile {

/// Builds i1, i32 and i64 arithmetic at an insertion point; constants fold as they are built.
class Code {
public:
  Code(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value f32(float value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b) { return add(a, like(a, b)); }
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, int64_t b) { return mul(a, like(a, b)); }
  /// Division and remainder of non-negative values; powers of two become shifts and masks.
  mlir::Value div(mlir::Value a, int64_t b);
  mlir::Value rem(mlir::Value a, int64_t b);
  mlir::Value div(mlir::Value a, mlir::Value b);
  mlir::Value rem(mlir::Value a, mlir::Value b);
  mlir::Value ceilDiv(mlir::Value a, int64_t b) { return div(add(a, b - 1), b); }
  mlir::Value shr(mlir::Value a, int64_t b);
  mlir::Value shr(mlir::Value a, mlir::Value b);
  mlir::Value shl(mlir::Value a, int64_t b);
  mlir::Value bitAnd(mlir::Value a, int64_t b);
  mlir::Value bitOr(mlir::Value a, int64_t b);
  mlir::Value bitXor(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value equal(mlir::Value a, mlir::Value b);
  mlir::Value both(mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value extend(mlir::Value a); ///< i32 to i64, or i1 to i32

  /// Names what defines `value` in the printed kernel, unless it has a name.
  mlir::Value name(mlir::Value value, llvm::StringRef identifier);
  /// Register `index` of a one-dimensional register array.
  mlir::Value get(mlir::Value registers, llvm::ArrayRef<mlir::OpFoldResult> indices);
  void set(mlir::Value registers, llvm::ArrayRef<mlir::OpFoldResult> indices, mlir::Value value);
  mlir::OpFoldResult index(int64_t value) { return builder.getIndexAttr(value); }

  /// An `scf.if` without results whose body is built by `body` at the same insertion point.
  void onlyIf(mlir::Value condition, llvm::function_ref<void()> body);
  /// A `ptx.unroll` whose body is built by `body`, given the induction variable.
  void unroll(int64_t lower, int64_t upper, int64_t step,
              llvm::function_ref<void(mlir::Value)> body);

  mlir::OpBuilder &builder;
  mlir::Location loc;

private:
  mlir::Value like(mlir::Value a, int64_t b);
};

/// Values every thread computes once, at the top of the kernel.
enum class ThreadValue {
  Thread,      ///< index in the block
  Lane,        ///< index in the warp
  Warp,        ///< index in the block, the same in every lane for the compiler too
  WarpInGroup, ///< index in the warpgroup
  Warpgroup,   ///< index among the warpgroups that issue dots; of no meaning in a producer
  SharedBase,  ///< address of dynamic shared memory
  EvictFirst,  ///< L2 policy
  ClusterRank, ///< of the block in its cluster
};
mlir::Value threadValue(KernelOp kernel, ThreadValue value);

/// The register array that stands for an accumulator: [fragments][n/2] or, for a fragment, [n/2].
mlir::Value registersOf(Code &code, KernelOp kernel, mlir::Value acc);
/// The shared address that stands for a slot.
mlir::Value addressOf(Code &code, mlir::Value slot);
/// Whether the launch gives `operand` a place in its workspace, which the kernel itself fills.
bool isScratchName(llvm::StringRef operand);
/// Whether `view` is bound to such an operand: no load of it may take memory to be constant.
bool isScratch(mlir::Value view);
/// The device address that stands for a view.
mlir::Value pointerTo(Code &code, mlir::Value view);

/// The ring that `slot` came from, through acquire or await; null where it came from elsewhere.
RingOp ringOf(mlir::Value slot);
/// Shared address of `field` in `slot`. Emits an error at `op` and returns null when the ring has
/// no layout yet.
mlir::Value fieldAddress(Code &code, mlir::Operation *op, mlir::Value slot, int64_t field);
/// Elements in front of the one at `coordinates` of `view`, i64. Rows of a launch's own tensors lie
/// as far apart as the launch says.
mlir::Value elementOffset(Code &code, mlir::Value view, mlir::ArrayRef<mlir::Value> coordinates);
/// The scale that `item`, inside the items, has along its view's dimension.
mlir::Value scaleOfItem(Code &code, ItemsAttr items, mlir::Value item);
/// Index of the element at `coordinates` in a packed view, i32.
mlir::Value linearIndex(Code &code, ViewType view, mlir::ValueRange coordinates);

/// The row where sorted row `row` lies, or `row` itself without a scheduler to sort by. Rows past
/// the last are the last. Emits an error at `op` and returns null when the scheduler has no shared
/// memory yet.
mlir::Value rowBy(Code &code, mlir::Operation *op, mlir::Value scheduler, mlir::Value row);
/// Offsets in a scheduler's shared memory: the tile queue comes first, then boundaries (or counts)
/// of the experts, then, where rows are sorted, a counter an expert, the sorted rows, and the
/// expert of each row.
inline constexpr int64_t queueBytes = 48;
int64_t sortCountersOffset(SchedulerOp scheduler);
int64_t sortedRowsOffset(SchedulerOp scheduler);
int64_t rowBucketsOffset(SchedulerOp scheduler);

/// Builds the sorting of rows by expert: counts, then sums, then places, by all threads of the
/// block. The order inside an expert is that of the rows: blocks that share a tile must agree.
void sortRows(Code &code, KernelOp kernel, SchedulerOp scheduler);

/// First row and column of fragment `batch` in the tile, for the running warpgroup.
mlir::Value fragmentRow(Code &code, KernelOp kernel, const Distribution &distribution,
                        int64_t batch);
mlir::Value fragmentColumn(Code &code, KernelOp kernel, const Distribution &distribution,
                           int64_t batch);

} // namespace moejit::tile

// The quantization that a GEMM runs on its activations before its first tile. Knows no dispatch
// form: it quantizes rows, whoever owns them.
#pragma once

#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {

/// i32 the blocks share to divide the quantization of `spec` among them: those of one grid_for, or
/// of two and the magnitude between them.
int64_t quantizeCounters(const Spec &spec);

/// What the prologue reads, writes and counts with.
struct QuantizeViews {
  mlir::Value from;     ///< x of Spec::quantizeFrom, [S, K]
  mlir::Value into;     ///< of Spec::xType, [S, K]
  mlir::Value scales;   ///< as quantizedGemm(spec) lays them out
  mlir::Value counters; ///< quantizeCounters i32, zero at start
};

/// Builds the quantization of all rows of the launch, shared out over the blocks of the grid: when
/// it is over in a block, all of it is over.
void quantizePrologue(Code &code, const Spec &spec, const QuantizeViews &views);

} // namespace moejit::tile

// Owns how an accumulator becomes an array of registers.
#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERACCUMULATORS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct LowerAccumulators : tile::impl::TileLowerAccumulatorsBase<LowerAccumulators> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<FillOp> fills;
    SmallVector<AccOp> accumulators;
    kernel.walk([&](FillOp fill) { fills.push_back(fill); });
    kernel.walk([&](AccOp acc) { accumulators.push_back(acc); });
    for (FillOp fill : fills)
      lower(fill);
    for (AccOp acc : accumulators)
      if (failed(lower(acc)))
        return signalPassFailure();
  }

  void lower(FillOp fill) {
    OpBuilder builder(fill);
    Code code(builder, fill.getLoc());
    Value registers = registersOf(code, getOperation(), fill.getAcc());
    auto type = cast<ptx::RegsType>(registers.getType());
    Value zero = code.f32(0);
    for (int64_t f = 0; f < type.getShape()[0]; ++f)
      code.unroll(0, type.getShape()[1], 1,
                  [&](Value i) { code.set(registers, {code.index(f), i}, zero); });
    fill.erase();
  }

  LogicalResult lower(AccOp acc) {
    bool isFragment = isa<FragmentType>(acc.getResult().getType());
    if (auto type = dyn_cast<AccType>(acc.getResult().getType());
        type && !distribute(type, getOperation().getWarpgroups()))
      return acc.emitOpError("cannot divide ")
             << type << " over " << getOperation().getWarpgroups()
             << " warpgroups; each needs a multiple of 64 rows or of 8 columns";
    OpBuilder builder(acc);
    Code code(builder, acc.getLoc());
    Value standIn = registersOf(code, getOperation(), acc.getResult());
    Value registers = ptx::RegsOp::create(builder, acc.getLoc(), standIn.getType());
    code.name(registers, isFragment ? "part" : "acc");
    for (Operation *user : llvm::make_early_inc_range(acc.getResult().getUsers())) {
      auto cast = dyn_cast<UnrealizedConversionCastOp>(user);
      if (!cast)
        return user->emitOpError("still uses an accumulator; lower it before its registers");
      cast.getResult(0).replaceAllUsesWith(registers);
      cast.erase();
    }
    acc.erase();
    return success();
  }
};

} // namespace

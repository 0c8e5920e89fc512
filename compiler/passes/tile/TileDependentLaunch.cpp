// Owns the decision to let the blocks of a kernel start while the kernel before it still ends.
#include "compiler/passes/tile/TilePasses.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEDEPENDENTLAUNCH
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct DependentLaunch : tile::impl::TileDependentLaunchBase<DependentLaunch> {
  void runOnOperation() override {
    Block &body = getOperation().getBody().front();
    if (!body.getOps<WaitGridOp>().empty())
      return;
    SmallVector<RingOp> rings(body.getOps<RingOp>());
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    if (body.getOps<LaunchDependentsOp>().empty())
      LaunchDependentsOp::create(builder, getOperation().getLoc());
    auto wait = WaitGridOp::create(builder, getOperation().getLoc());
    // Rings take no operands, and their barriers are shared memory.
    for (RingOp ring : rings)
      ring->moveBefore(wait);
  }
};

} // namespace

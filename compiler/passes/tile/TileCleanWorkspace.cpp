// Owns the decision to leave the words of a launch that must be zero at its start zero at its end.
#include "compiler/passes/tile/TilePasses.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILECLEANWORKSPACE
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct CleanWorkspace : tile::impl::TileCleanWorkspaceBase<CleanWorkspace> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<Value> views;
    for (BlockArgument argument : kernel.getBody().getArguments()) {
      StringRef operand = kernel.getOperandName(argument.getArgNumber());
      if (operand == "workspace" || operand == "counters")
        views.push_back(argument);
    }
    if (views.empty())
      return;
    RoleOp producer;
    for (RoleOp role : kernel.getBody().getOps<RoleOp>())
      if (role.getKind() == RoleKind::Producer)
        producer = role;
    if (kernel.hasRoles() && !producer)
      return;
    // Draws, of tiles and of boxes, are those of the thread that will count its block out. What
    // others read of the words is over when the boxes are, or must be waited for.
    bool othersRead = false;
    for (Value view : views)
      for (Operation *user : view.getUsers()) {
        if (isa<CleanOp>(user))
          return;
        if (!isa<SchedulerOp, GridForOp>(user) && !user->getParentOfType<GridForOp>())
          othersRead = true;
      }
    if (othersRead && producer)
      return;

    Value counter = views.front();
    auto type = cast<ViewType>(counter.getType());
    if (type.getRank() != 1 || ShapedType::isDynamic(type.getShape()[0]))
      return;
    const int64_t at = type.getShape()[0];
    counter.setType(ViewType::get(&getContext(), {at + 1}, type.getElementType()));
    Block *body = &kernel.getBody().front();
    OpBuilder builder = OpBuilder::atBlockEnd(producer ? &producer.getBody().front() : body);
    if (othersRead)
      SyncOp::create(builder, kernel.getLoc(), /*cluster=*/false);
    if (!producer) {
      auto once = OnceOp::create(builder, kernel.getLoc());
      builder.setInsertionPointToStart(&once.getBody().emplaceBlock());
    }
    CleanOp::create(builder, kernel.getLoc(), views, counter, at);
  }
};

} // namespace

// Owns which threads run what: roles, single-thread sections, the meeting of all threads, and their
// wait for the grids before.
#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERROLES
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct LowerRoles : tile::impl::TileLowerRolesBase<LowerRoles> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<Operation *> ops;
    kernel.walk([&](Operation *op) {
      if (isa<OnceOp, SyncOp, WarpgroupOp, WaitGridOp, LaunchDependentsOp, ClusterRankOp>(op))
        ops.push_back(op);
    });
    // Everything that asks for a thread value does so while the kernel still has its roles.
    for (Operation *op : ops) {
      OpBuilder builder(op);
      Code code(builder, op->getLoc());
      if (auto once = dyn_cast<OnceOp>(op)) {
        Value thread = threadValue(kernel, ThreadValue::Thread);
        code.onlyIf(code.equal(thread, code.i32(0)), [&] { inlineBody(builder, once.getBody()); });
        // The lanes that did not take the branch wait: what follows is for converged warps.
        ptx::SyncwarpOp::create(builder, op->getLoc());
      } else if (auto sync = dyn_cast<SyncOp>(op); sync && sync.getCluster()) {
        // Lanes of a role of one thread did not run it: the barrier wants whole warps.
        ptx::SyncwarpOp::create(builder, op->getLoc());
        ptx::ClusterArriveOp::create(builder, op->getLoc());
        ptx::ClusterWaitOp::create(builder, op->getLoc());
      } else if (isa<LaunchDependentsOp>(op)) {
        ptx::GriddepcontrolLaunchDependentsOp::create(builder, op->getLoc());
      } else if (isa<WaitGridOp>(op)) {
        ptx::GriddepcontrolWaitOp::create(builder, op->getLoc());
        kernel->setAttr("tile.dependent", builder.getUnitAttr());
      } else if (sync) {
        ptx::BarSyncOp::create(builder, op->getLoc(), 0, kernel.getThreads());
      } else if (isa<ClusterRankOp>(op)) {
        op->getResult(0).replaceAllUsesWith(threadValue(kernel, ThreadValue::ClusterRank));
      } else {
        op->getResult(0).replaceAllUsesWith(threadValue(kernel, ThreadValue::Warpgroup));
      }
      op->erase();
    }
    kernel->setAttr("tile.threads", Builder(&getContext()).getI64IntegerAttr(kernel.getThreads()));
    if (failed(lowerRoles(kernel)))
      signalPassFailure();
  }

  void inlineBody(OpBuilder &builder, Region &body) {
    Block *into = builder.getInsertionBlock();
    into->getOperations().splice(builder.getInsertionPoint(), body.front().getOperations());
  }

  /// Each warpgroup's role is one branch of a single if/else: setmaxnreg takes effect only so.
  LogicalResult lowerRoles(KernelOp kernel) {
    SmallVector<RoleOp> roles(kernel.getBody().getOps<RoleOp>());
    if (roles.empty())
      return success();
    if (roles.size() != 2 || roles[0].getKind() != RoleKind::Producer ||
        roles[1].getKind() != RoleKind::Consumer)
      return roles[0].emitOpError("must be a producer, followed by a consumer and nothing else");
    OpBuilder builder(roles[0]);
    Code code(builder, roles[0].getLoc());
    Value isProducer = code.less(threadValue(kernel, ThreadValue::Warp), code.i32(4));
    auto branch = scf::IfOp::create(builder, kernel.getLoc(), isProducer, /*withElseRegion=*/true);

    builder.setInsertionPointToStart(branch.thenBlock());
    if (int64_t registers = roles[0].getRegisters())
      ptx::SetmaxnregDecOp::create(builder, kernel.getLoc(), registers);
    Value thread = threadValue(kernel, ThreadValue::Thread);
    code.onlyIf(code.equal(thread, code.i32(0)), [&] { inlineBody(builder, roles[0].getBody()); });
    builder.setInsertionPointToStart(branch.elseBlock());
    if (int64_t registers = roles[1].getRegisters())
      ptx::SetmaxnregIncOp::create(builder, kernel.getLoc(), registers);
    inlineBody(builder, roles[1].getBody());
    for (RoleOp role : roles)
      role.erase();
    return success();
  }
};

} // namespace

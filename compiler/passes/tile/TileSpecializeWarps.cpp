// Owns the decision to let one warp load while the others compute.
#include "compiler/passes/tile/TilePasses.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILESPECIALIZEWARPS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

constexpr int64_t registersPerSm = 65536;

/// Erases what has no effect any more: unused pure ops, loops and branches with nothing in them.
void eraseDead(Operation *root) {
  root->walk<WalkOrder::PostOrder, ::mlir::ReverseIterator>([&](Operation *op) {
    if (op == root || op->hasTrait<OpTrait::IsTerminator>() || !op->use_empty())
      return;
    bool isEmpty =
        isa<scf::ForOp, scf::IfOp>(op) && llvm::all_of(op->getRegions(), [](Region &region) {
          return region.empty() || region.front().without_terminator().empty();
        });
    if (isEmpty || isOpTriviallyDead(op))
      op->erase();
  });
}

struct SpecializeWarps : tile::impl::TileSpecializeWarpsBase<SpecializeWarps> {
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (kernel.hasRoles())
      return;
    // Roles split one loop over the tiles; anything else keeps its warps alike.
    SmallVector<ForTilesOp> loops(kernel.getBody().getOps<ForTilesOp>());
    if (loops.size() != 1 || loops.front()->getNextNode())
      return;
    ForTilesOp consumer = loops.front();
    bool hasLoads = false, hasSyncs = false;
    consumer.walk([&](OnceOp) { hasLoads = true; });
    consumer.walk([&](SyncOp) { hasSyncs = true; });
    // The producer is one thread: it cannot meet the others inside the loop.
    if (!hasLoads || hasSyncs)
      return;
    // setmaxnreg waits for registers, forever where there are none left (PTX ISA, setmaxnreg).
    int64_t registers = 128 * (producerRegisters + consumerRegisters * kernel.getWarpgroups());
    if (registers > registersPerSm) {
      kernel.emitOpError("gives its roles ")
          << registers << " registers, an SM has " << registersPerSm
          << "; give each consumer at most "
          << (registersPerSm / 128 - producerRegisters) / kernel.getWarpgroups() / 8 * 8;
      return signalPassFailure();
    }

    OpBuilder builder(consumer);
    auto makeRole = [&](RoleKind kind, int64_t registers) {
      auto role = RoleOp::create(builder, consumer.getLoc(), kind, registers);
      role.getBody().emplaceBlock();
      return role;
    };
    RoleOp producerRole = makeRole(RoleKind::Producer, producerRegisters);
    RoleOp consumerRole = makeRole(RoleKind::Consumer, consumerRegisters);

    builder.setInsertionPointToEnd(&producerRole.getBody().front());
    auto producer = cast<ForTilesOp>(builder.clone(*consumer));
    consumer->moveBefore(&consumerRole.getBody().front(), consumerRole.getBody().front().end());
    keepLoads(producer);
    keepCompute(consumer);
  }

  /// One thread runs the producer, so what ran once runs as it stands.
  void keepLoads(ForTilesOp tiles) {
    SmallVector<Operation *> compute;
    tiles.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<OnceOp>(op))
        return WalkResult::skip();
      if (isa<AccOp, FillOp, DotOp, WaitOp, ReadOp, PromoteOp, ScaleOp, StoreOp, AwaitOp, FieldOp,
              ReleaseOp, LoadOp>(op))
        compute.push_back(op);
      return WalkResult::advance();
    });
    for (Operation *op : llvm::reverse(compute))
      op->erase();
    SmallVector<OnceOp> loads;
    tiles.walk([&](OnceOp once) { loads.push_back(once); });
    for (OnceOp once : loads) {
      Block &body = once.getBody().front();
      once->getBlock()->getOperations().splice(once->getIterator(), body.getOperations());
      once.erase();
    }
    eraseDead(tiles);
  }

  void keepCompute(ForTilesOp tiles) {
    SmallVector<OnceOp> loads;
    tiles.walk([&](OnceOp once) { loads.push_back(once); });
    for (OnceOp once : loads)
      once.erase();
    eraseDead(tiles);
  }
};

} // namespace

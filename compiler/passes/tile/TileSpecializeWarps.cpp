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

/// Puts what `branch` does in its place, where it does the same whatever is asked.
bool mergeAlike(scf::IfOp branch) {
  if (!branch || branch.getNumResults() != 0 || branch.getElseRegion().empty() ||
      !OperationEquivalence::isRegionEquivalentTo(&branch.getThenRegion(), &branch.getElseRegion(),
                                                  OperationEquivalence::IgnoreLocations))
    return false;
  Block *body = branch.thenBlock();
  branch->getBlock()->getOperations().splice(branch->getIterator(), body->getOperations(),
                                             body->begin(), std::prev(body->end()));
  branch.erase();
  return true;
}

/// Erases what has no effect any more: unused pure ops, loops and branches with nothing in them,
/// and choices between what is the same.
void eraseDead(Operation *root) {
  root->walk<WalkOrder::PostOrder, ::mlir::ReverseIterator>([&](Operation *op) {
    if (op == root || op->hasTrait<OpTrait::IsTerminator>() || !op->use_empty() ||
        mergeAlike(dyn_cast<scf::IfOp>(op)))
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
    std::optional<std::pair<int64_t, int64_t>> registers = shareRegisters(kernel);
    if (!registers)
      return signalPassFailure();

    OpBuilder builder(consumer);
    auto makeRole = [&](RoleKind kind, int64_t registers) {
      auto role = RoleOp::create(builder, consumer.getLoc(), kind, registers);
      role.getBody().emplaceBlock();
      return role;
    };
    RoleOp producerRole = makeRole(RoleKind::Producer, registers->first);
    RoleOp consumerRole = makeRole(RoleKind::Consumer, registers->second);

    builder.setInsertionPointToEnd(&producerRole.getBody().front());
    auto producer = cast<ForTilesOp>(builder.clone(*consumer));
    consumer->moveBefore(&consumerRole.getBody().front(), consumerRole.getBody().front().end());
    if (failed(keepLoads(producer)))
      return signalPassFailure();
    keepCompute(consumer);
  }

  /// Registers of a producer and a consumer thread; 0: those it was launched with.
  /// setmaxnreg moves registers inside what the block got at its launch, and waits forever for more
  /// (PTX ISA, setmaxnreg).
  std::optional<std::pair<int64_t, int64_t>> shareRegisters(KernelOp kernel) {
    int64_t warpgroups = kernel.getWarpgroups(), all = warpgroups + 1;
    int64_t producer = producerRegisters, consumer = consumerRegisters;
    int64_t registersOfBlock = registersPerSm / kernel.getSmShare();
    int64_t launched = std::min<int64_t>(registersOfBlock / (128 * all) / 8 * 8, 255);
    if (consumer <= launched)
      return std::pair<int64_t, int64_t>(0, 0);
    int64_t most = (launched * all - producer) / warpgroups / 8 * 8;
    if (producer <= launched && consumer <= most)
      return std::pair(producer, consumer);
    kernel.emitOpError("gives ") << consumer << " registers to each of " << 128 * warpgroups
                                 << " consumer threads and " << producer
                                 << " to each of 128 producer threads; " << launched
                                 << " a thread are there, so a consumer may have "
                                 << std::max(most, launched);
    return std::nullopt;
  }

  /// One thread runs the producer, so what ran once runs as it stands.
  LogicalResult keepLoads(ForTilesOp tiles) {
    SmallVector<Operation *> compute;
    tiles.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<OnceOp>(op))
        return WalkResult::skip();
      if (isa<AccOp, FillOp, DotOp, WaitOp, ReadOp, PromoteOp, ScaleOp, StoreOp, AwaitOp, FieldOp,
              ReduceOp, ReleaseOp, LoadOp, UnpackOp>(op))
        compute.push_back(op);
      return WalkResult::advance();
    });
    for (Operation *op : llvm::reverse(compute)) {
      if (!op->use_empty())
        return op->emitOpError("belongs to the consumers, but a load uses it");
      op->erase();
    }
    SmallVector<OnceOp> loads;
    tiles.walk([&](OnceOp once) { loads.push_back(once); });
    for (OnceOp once : loads) {
      Block &body = once.getBody().front();
      once->getBlock()->getOperations().splice(once->getIterator(), body.getOperations());
      once.erase();
    }
    eraseDead(tiles);
    return success();
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

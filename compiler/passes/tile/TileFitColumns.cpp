// Owns the decision to give tiles of few rows dots of few columns, where rows of the result are
// columns of the accumulator.
#include "compiler/passes/tile/TilePasses.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEFITCOLUMNS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// One fragment's way: computed anew, waited for, promoted.
struct Product {
  DotOp dot;
  WaitOp wait;
  PromoteOp promote;
};

/// The way to `promote`, where nothing else sees the fragment between its parts.
std::optional<Product> productOf(PromoteOp promote) {
  Product product;
  product.promote = promote;
  for (Operation *op = promote->getPrevNode(); op; op = op->getPrevNode()) {
    if (!llvm::is_contained(op->getOperands(), promote.getFrom()))
      continue;
    if (auto wait = dyn_cast<WaitOp>(op); wait && !product.wait) {
      product.wait = wait;
      continue;
    }
    product.dot = dyn_cast<DotOp>(op);
    break;
  }
  if (!product.dot || !product.wait || !product.dot.getFresh() ||
      product.dot.getBatch() != promote.getBatch() ||
      product.dot.getOf() != promote.getInto().getType())
    return std::nullopt;
  return product;
}

struct FitColumns : tile::impl::TileFitColumnsBase<FitColumns> {
  using Base::Base;

  void runOnOperation() override {
    if (step < 8 || step % 8 != 0) {
      getOperation().emitOpError("fits columns by multiples of 8, got ") << step;
      return signalPassFailure();
    }
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop.getNumResults() == 0 && isa<ForTilesOp>(loop->getParentOp()))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      fit(loop);
  }

  /// Every fragment that `loop` computes; none where something in it does more than that.
  SmallVector<Product> productsIn(scf::ForOp loop) {
    SmallVector<Product> products;
    llvm::SmallPtrSet<Operation *, 16> known;
    bool isClear = true;
    loop.walk([&](PromoteOp promote) {
      std::optional<Product> product = promote.getBatch() ? productOf(promote) : std::nullopt;
      isClear &= product.has_value();
      if (!product)
        return;
      products.push_back(*product);
      known.insert({product->dot, product->wait, product->promote});
    });
    // Another use of an accumulator would see what is left out, or of a fragment what is narrower.
    for (Product product : products) {
      isClear &= product.promote.getInto() == products.front().promote.getInto();
      for (Operation *user : product.dot.getAcc().getUsers())
        isClear &= known.contains(user) || !loop->isProperAncestor(user);
    }
    loop.walk([&](DotOp dot) { isClear &= known.contains(dot); });
    return isClear ? products : SmallVector<Product>();
  }

  /// Whether only columns of the accumulator are looked at that stand for rows of the tile.
  static bool storesRowsAsColumns(Value acc, ForTilesOp tiles) {
    return llvm::all_of(acc.getUsers(), [&](Operation *user) {
      auto store = dyn_cast<StoreOp>(user);
      return !store || (store.getTransposed() && store.getRows() == tiles.getTileRows());
    });
  }

  /// Narrow fragments, by the one they stand for and their columns.
  using Fragments = DenseMap<std::pair<Value, int64_t>, Value>;

  void fit(scf::ForOp loop) {
    auto tiles = cast<ForTilesOp>(loop->getParentOp());
    SmallVector<Product> products = productsIn(loop);
    if (products.empty())
      return;
    AccType into = products.front().promote.getInto().getType();
    std::optional<Distribution> distribution = distribute(into, getOperation().getWarpgroups());
    bool dividesColumns = distribution->split == Split::Columns && distribution->warpgroups > 1;
    if (dividesColumns || !storesRowsAsColumns(products.front().promote.getInto(), tiles))
      return;

    // The narrowest first: each is asked for with what the ones before it refused.
    OpBuilder builder(loop);
    Fragments fragments;
    for (int64_t width = step; width < into.getColumns(); width += step) {
      Value limit = arith::ConstantIntOp::create(builder, loop.getLoc(), width, 32);
      Value isEnough = arith::CmpIOp::create(builder, loop.getLoc(), arith::CmpIPredicate::sle,
                                             tiles.getTileRows(), limit);
      auto branch = scf::IfOp::create(builder, loop.getLoc(), isEnough, /*withElseRegion=*/true);
      builder.setInsertionPointToStart(branch.thenBlock());
      IRMapping mapping;
      builder.clone(*loop, mapping);
      for (Product product : products)
        narrow(product, mapping, width - distribution->batchColumn(*product.promote.getBatch()),
               fragments);
      builder.setInsertionPointToStart(branch.elseBlock());
    }
    loop->moveBefore(builder.getInsertionBlock(), builder.getInsertionPoint());
  }

  /// Computes the first `columns` of the copy of `product` only.
  static void narrow(Product product, IRMapping &mapping, int64_t columns, Fragments &fragments) {
    auto dot = cast<DotOp>(mapping.lookup(product.dot.getOperation()));
    auto wait = cast<WaitOp>(mapping.lookup(product.wait.getOperation()));
    auto promote = cast<PromoteOp>(mapping.lookup(product.promote.getOperation()));
    if (columns <= 0) {
      promote.erase();
      wait.erase();
      dot.erase();
      return;
    }
    auto whole = cast<FragmentType>(dot.getAcc().getType());
    if (columns >= whole.getN())
      return;
    Value &fragment = fragments[{dot.getAcc(), columns}];
    if (!fragment) {
      auto tiles = promote->getParentOfType<ForTilesOp>();
      auto builder = OpBuilder::atBlockBegin(&tiles.getBody().front());
      fragment = AccOp::create(builder, dot.getLoc(), FragmentType::get(dot.getContext(), columns));
    }
    dot.getAccMutable().assign(fragment);
    wait.getAccMutable().assign(fragment);
    promote.getFromMutable().assign(fragment);
  }
};

} // namespace

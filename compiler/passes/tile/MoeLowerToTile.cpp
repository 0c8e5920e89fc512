// Owns the step from what a GEMM is to how one block computes it: tiles, K steps, and where scales
// apply. The result is the plainest kernel there is.
#include "compiler/SpecFromModule.h"
#include "compiler/passes/tile/Lowering.h"

#include <numeric>

namespace moejit::tile {
#define GEN_PASS_DEF_MOELOWERTOTILE
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// One side's scales, as the tile program sees them.
struct ScaleView {
  ViewType type;
  Value view;
  int64_t granule = 1;      ///< rows or columns one scale covers
  int64_t entries = 1;      ///< scales of one tile
  int64_t kGranule = 0;     ///< elements of K one scale covers; 0: all
  bool isPerExpert = false; ///< one scale an expert and no other index
  bool isPerItem = false;   ///< an index along rows or columns
  bool isMnMajor = false;
  bool canCopyInBulk = false;
  int64_t stepsPerExpert =
      0;                  ///< rows of the view that belong to one expert's buffer; 0: one for all
  int64_t bufferRows = 0; ///< Mmax, where stepsPerExpert is set
};

struct LowerToTile : tile::impl::MoeLowerToTileBase<LowerToTile> {
  using Base::Base;

  Value rowsBy; ///< the scheduler that sorts rows, where one does

  void runOnOperation() override {
    if (tileM < 1 || tileN < 1 || tileK < 1) {
      getOperation().emitError("tiles have positive extents, got ")
          << tileM.getValue() << ", " << tileN.getValue() << " and " << tileK.getValue();
      return signalPassFailure();
    }
    SmallVector<moe::KernelOp> kernels(getOperation().getOps<moe::KernelOp>());
    for (moe::KernelOp kernel : kernels)
      if (failed(lower(kernel)))
        return signalPassFailure();
  }

  ViewType viewOf(ArrayRef<int64_t> shape, Type element) {
    return ViewType::get(&getContext(), shape, element);
  }

  FailureOr<ScaleView> activationScales(moe::KernelOp kernel, const Spec &spec) {
    Type f32 = Float32Type::get(&getContext());
    ScaleView scales;
    // Masked activations have a dimension for experts before that of rows.
    ArrayRef<Granule> granule(spec.xScales.granule);
    const Granule &rows = granule[granule.size() - 2];
    bool isMasked = spec.dispatch == Dispatch::Masked;
    scales.kGranule = spec.xScales.kGranule();
    scales.isMnMajor = spec.xScales.order == ScaleOrder::MnMajor;
    scales.canCopyInBulk =
        scales.isMnMajor && spec.xScales.alignBytes % 16 == 0 && spec.xScales.alignBytes > 0;
    scales.granule = tileM;
    if (rows.kind == Granule::Kind::Extent) {
      scales.granule = rows.extent;
      scales.isPerItem = true;
      scales.entries = tileM / rows.extent;
    }
    scales.isPerExpert =
        rows.kind == Granule::Kind::Expert ||
        (isMasked && !scales.isPerItem && granule[0].kind == Granule::Kind::Extent);
    if (scales.isPerItem && scales.granule != 1)
      return kernel.emitOpError("has one activation scale for ")
             << scales.granule << " rows; only one a row is lowered";
    if (!scales.isPerItem && scales.kGranule != 0)
      return kernel.emitOpError("has activation scales that vary along K but not along rows");
    int64_t rowsExtent = ShapedType::kDynamic;
    if (scales.kGranule != 0) {
      int64_t steps = (spec.k + scales.kGranule - 1) / scales.kGranule;
      // Each expert's buffer has its own columns of groups.
      if (isMasked && scales.isMnMajor) {
        scales.type = ViewType::get(&getContext(), {spec.numExperts * steps, spec.maxRows}, f32,
                                    /*strided=*/true);
        scales.stepsPerExpert = steps;
        scales.bufferRows = spec.maxRows;
      } else {
        scales.type =
            scales.isMnMajor ? viewOf({steps, rowsExtent}, f32) : viewOf({rowsExtent, steps}, f32);
      }
    } else {
      scales.type =
          viewOf({scales.isPerItem ? rowsExtent : (scales.isPerExpert ? spec.numExperts : 1)}, f32);
    }
    return checkStep(kernel, "activation", scales);
  }

  FailureOr<ScaleView> weightScales(moe::KernelOp kernel, const Spec &spec) {
    Type f32 = Float32Type::get(&getContext());
    ScaleView scales;
    // Eager weights are those of one expert.
    ArrayRef<Granule> granule(spec.wScales.granule);
    const Granule &columns = granule[granule.size() - 2];
    bool isPerExpert = granule.size() == 2 || granule[0].kind == Granule::Kind::Extent;
    scales.kGranule = spec.wScales.kGranule();
    scales.granule = tileN;
    if (columns.kind == Granule::Kind::Extent) {
      scales.granule = columns.extent;
      scales.isPerItem = true;
      if (scales.granule % tileN != 0 && tileN % scales.granule != 0)
        return kernel.emitOpError("has weight scales for ")
               << scales.granule << " columns, which do not divide a tile of " << tileN.getValue();
      scales.entries = std::max<int64_t>(1, tileN / scales.granule);
    }
    scales.isPerExpert = !scales.isPerItem && isPerExpert;
    if (scales.isPerItem && !isPerExpert)
      return kernel.emitOpError("has weight scales shared by experts but not by columns");
    if (!scales.isPerItem && scales.kGranule != 0)
      return kernel.emitOpError("has weight scales that vary along K but not along columns");
    SmallVector<int64_t> shape = {isPerExpert ? spec.numExperts : 1};
    if (scales.isPerItem)
      shape.push_back((spec.n + scales.granule - 1) / scales.granule);
    if (scales.kGranule != 0)
      shape.push_back((spec.k + scales.kGranule - 1) / scales.kGranule);
    scales.type = viewOf(shape, f32);
    return checkStep(kernel, "weight", scales);
  }

  FailureOr<ScaleView> checkStep(moe::KernelOp kernel, StringRef side, const ScaleView &scales) {
    if (scales.kGranule % 32 != 0)
      return kernel.emitOpError("has ") << side << " scales for every " << scales.kGranule
                                        << " of K, not a multiple of the 32 one instruction sums";
    return scales;
  }

  LogicalResult lower(moe::KernelOp kernel) {
    Result<Spec> found = specFromKernel(kernel);
    if (!found)
      return kernel.emitOpError(found.error().text());
    const Spec &spec = *found;
    if (spec.hasExpertMap)
      return kernel.emitOpError("takes an expert map, which is not lowered");
    FailureOr<ScaleView> xScales = activationScales(kernel, spec);
    FailureOr<ScaleView> wScales = weightScales(kernel, spec);
    if (failed(xScales) || failed(wScales))
      return failure();
    bool isGrouped = spec.dispatch == Dispatch::Grouped;
    bool isMasked = spec.dispatch == Dispatch::Masked;
    bool isBatched = spec.dispatch == Dispatch::Batched;
    bool isRouted = isGrouped || isMasked || isBatched;

    MLIRContext *context = &getContext();
    OpBuilder builder(kernel);
    Location loc = kernel.getLoc();
    SmallVector<Type> types = {
        viewOf({ShapedType::kDynamic, spec.k}, moe::mlirType(spec.xType, context)), xScales->type};
    SmallVector<StringRef> names = {"x", "x_scales"};
    if (isRouted) {
      types.push_back(
          viewOf({isBatched ? ShapedType::kDynamic : spec.numExperts + (isGrouped ? 1 : 0)},
                 builder.getI32Type()));
      names.push_back(isGrouped ? "offsets" : isMasked ? "counts" : "expert_ids");
    }
    types.push_back(viewOf({spec.numExperts, spec.n, spec.k}, moe::mlirType(spec.wType, context)));
    types.push_back(wScales->type);
    types.push_back(viewOf({ShapedType::kDynamic, spec.n}, moe::mlirType(spec.outType, context)));
    names.append({"w", "w_scales", "y"});
    auto program = KernelOp::create(builder, loc, kernel.getSymName(),
                                    builder.getStrArrayAttr(names), warpgroups, nullptr, nullptr);
    Block *body = builder.createBlock(&program.getBody(), {}, types,
                                      SmallVector<Location>(types.size(), loc));
    Value x = body->getArgument(0);
    xScales->view = body->getArgument(1);
    Value routing = isRouted ? body->getArgument(2) : Value();
    unsigned rest = isRouted ? 3 : 2;
    Value w = body->getArgument(rest);
    wScales->view = body->getArgument(rest + 1);
    Value y = body->getArgument(rest + 2);

    Code code(builder, loc);
    auto scheduler = SchedulerOp::create(
        builder, loc, SchedulerType::get(context), isGrouped ? routing : Value(),
        isMasked ? routing : Value(), isBatched ? routing : Value(), Value(), tileM, tileN, spec.n,
        spec.numExperts, Order::Static, 1, isRouted && spec.skipped == Skipped::Zeroed, nullptr);
    rowsBy = isBatched ? Value(scheduler) : Value();
    auto tiles = ForTilesOp::create(builder, loc, scheduler);
    Type i32 = builder.getI32Type();
    builder.createBlock(&tiles.getBody(), {}, {i32, i32, i32, i32, builder.getI1Type()},
                        SmallVector<Location>(5, loc));
    auto acc = AccOp::create(builder, loc, AccType::get(context, tileM, tileN, std::nullopt, 0));
    FillOp::create(builder, loc, acc);

    // A tile no expert owns has no K steps: its zeros are stored as any result.
    Value steps = code.select(tiles.getLive(), code.i32((spec.k + tileK - 1) / tileK), code.i32(0));
    auto loop = scf::ForOp::create(builder, loc, code.i32(0), steps, code.i32(1));
    loop->setAttr("ptx.name", builder.getStringAttr("kStep"));
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      Value k = code.name(code.mul(loop.getInductionVar(), tileK), "k");
      Value a = load(code, x, {tiles.getFirstRow(), k}, {tileM, tileK});
      Value b = load(code, w, {tiles.getExpert(), tiles.getFirstColumn(), k}, {1, tileN, tileK});
      // Scales finer than a step divide it into dots of their own.
      int64_t part = std::gcd(int64_t(tileK), std::gcd(xScales->kGranule, wScales->kGranule));
      // True where the scales of the part before still hold.
      auto isSameGranule = [&](int64_t granule, int64_t begin) {
        return begin > 0 &&
               (granule % tileK == 0 || (tileK % granule == 0 && begin % granule != 0));
      };
      Value rowScales, columnScales;
      for (int64_t begin = 0; begin < tileK; begin += part) {
        Value at = code.add(k, begin);
        if (xScales->kGranule != 0 && !isSameGranule(xScales->kGranule, begin))
          rowScales = loadRowScales(code, *xScales, tiles, code.div(at, xScales->kGranule));
        if (wScales->kGranule != 0 && !isSameGranule(wScales->kGranule, begin))
          columnScales = loadColumnScales(code, *wScales, tiles, code.div(at, wScales->kGranule));
        OpBuilder::InsertionGuard partGuard(builder);
        // Past K the operands are zero, and there may be no scale to multiply them with.
        if (begin > 0 && spec.k % tileK != 0) {
          auto inside = scf::IfOp::create(builder, loc, code.less(at, code.i32(spec.k)),
                                          /*withElseRegion=*/false);
          builder.setInsertionPointToStart(inside.thenBlock());
        }
        auto dot = DotOp::create(builder, loc, acc, a, b, rowScales, columnScales, IntegerAttr(),
                                 IntegerAttr(), IntegerAttr(), IntegerAttr(), UnitAttr(),
                                 UnitAttr(), IntegerAttr(), TypeAttr());
        if (xScales->kGranule != 0)
          dot.setRowGranule(xScales->granule);
        if (wScales->kGranule != 0)
          dot.setColumnGranule(wScales->granule);
        if (part != tileK) {
          dot.setKBegin(begin);
          dot.setKSize(part);
        }
        dot.setExact(spec.accumulate == Accumulate::Exact);
        WaitOp::create(builder, loc, acc, 0);
      }
    }

    if (xScales->kGranule == 0 || wScales->kGranule == 0) {
      // Scales of rows nobody owns may be anything, so they must not touch the zeros.
      auto branch = scf::IfOp::create(builder, loc, tiles.getLive(), /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(branch.thenBlock());
      Value rowScales, columnScales;
      if (xScales->kGranule == 0)
        rowScales = loadRowScales(code, *xScales, tiles, Value());
      if (wScales->kGranule == 0)
        columnScales = loadColumnScales(code, *wScales, tiles, Value());
      ScaleOp::create(builder, loc, acc, rowScales, columnScales,
                      rowScales ? builder.getI64IntegerAttr(xScales->granule) : IntegerAttr(),
                      columnScales ? builder.getI64IntegerAttr(wScales->granule) : IntegerAttr());
    }
    StoreOp::create(builder, loc, acc, y, tiles.getFirstRow(), tiles.getFirstColumn(),
                    tiles.getTileRows(), rowsBy, false, nullptr);
    kernel.erase();
    return success();
  }

  Value load(Code &code, Value view, ValueRange coordinates, ArrayRef<int64_t> box,
             bool isBulk = false) {
    ViewType type = cast<ViewType>(view.getType());
    // Only what has a row for each of the launch's is found by sorted row.
    bool hasRows = !ShapedType::isStaticShape(type.getShape());
    return LoadOp::create(code.builder, code.loc,
                          BlockType::get(&getContext(), box, type.getElementType()), view,
                          coordinates, hasRows ? rowsBy : Value(), isBulk);
  }

  Value loadRowScales(Code &code, const ScaleView &scales, ForTilesOp tiles, Value kIndex) {
    if (!scales.isPerItem)
      return load(code, scales.view, {scales.isPerExpert ? tiles.getExpert() : code.i32(0)}, {1});
    Value row = tiles.getFirstRow();
    if (!kIndex)
      return load(code, scales.view, {row}, {tileM});
    if (scales.stepsPerExpert != 0) {
      kIndex = code.add(code.mul(tiles.getExpert(), scales.stepsPerExpert), kIndex);
      row = code.sub(row, code.mul(tiles.getExpert(), scales.bufferRows));
    }
    if (scales.isMnMajor)
      return load(code, scales.view, {kIndex, row}, {1, tileM}, scales.canCopyInBulk);
    return load(code, scales.view, {row, kIndex}, {tileM, 1});
  }

  Value loadColumnScales(Code &code, const ScaleView &scales, ForTilesOp tiles, Value kIndex) {
    SmallVector<Value> coordinates = {scales.isPerExpert || scales.isPerItem ? tiles.getExpert()
                                                                             : code.i32(0)};
    SmallVector<int64_t> box = {1};
    if (scales.isPerItem) {
      coordinates.push_back(code.div(tiles.getFirstColumn(), scales.granule));
      box.push_back(scales.entries);
    }
    if (kIndex) {
      coordinates.push_back(kIndex);
      box.push_back(1);
    }
    return load(code, scales.view, coordinates, box);
  }
};

} // namespace

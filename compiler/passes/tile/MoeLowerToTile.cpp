// Owns the step from what a GEMM is to how one block computes it: tiles, K steps, and where scales
// apply. The result is the plainest kernel there is.
#include "compiler/SpecFromModule.h"
#include "compiler/passes/tile/QuantizePrologue.h"
#include "compiler/passes/tile/ScaleViews.h"

#include <numeric>

namespace moejit::tile {
#define GEN_PASS_DEF_MOELOWERTOTILE
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

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

  LogicalResult lower(moe::KernelOp kernel) {
    Result<Spec> found = specFromKernel(kernel);
    if (!found)
      return kernel.emitOpError(found.error().text());
    const Spec &spec = *found;
    // A quantization of its own is moe-lower-quantize's.
    if (spec.computation == Computation::Quantize)
      return success();
    ScaleView xScales = activationScales(&getContext(), quantizedGemm(spec), tileM);
    ScaleView wScales = weightScales(&getContext(), spec, tileN);
    StepsAlongK stepsOfK = stepsAlongK(spec, tileK);
    if (stepsOfK.part % 32 != 0)
      return kernel.emitOpError("changes scales every ")
             << stepsOfK.part << " of K, not a multiple of the 32 one instruction sums";
    bool isGrouped = spec.dispatch == Dispatch::Grouped;
    bool isMasked = spec.dispatch == Dispatch::Masked;
    bool isBatched = spec.dispatch == Dispatch::Batched;
    bool isRouted = isGrouped || isMasked || isBatched;

    MLIRContext *context = &getContext();
    OpBuilder builder(kernel);
    Location loc = kernel.getLoc();
    SmallVector<Type> types;
    SmallVector<StringRef> names;
    auto operand = [&](StringRef name, Type type) {
      names.push_back(name);
      types.push_back(type);
      return types.size() - 1;
    };
    bool quantizes = spec.quantizeFrom.has_value();
    auto activations = [&](ElementType type) {
      return viewOf({ShapedType::kDynamic, spec.k}, moe::mlirType(type, context));
    };
    size_t fromIndex = quantizes ? operand("x", activations(*spec.quantizeFrom)) : 0;
    size_t xIndex = operand(quantizes ? "x_quantized" : "x", activations(spec.xType));
    size_t xScalesIndex = operand(quantizes ? "x_quantized_scales" : "x_scales", xScales.type);
    size_t countersIndex = 0;
    if (quantizes)
      countersIndex = operand("counters", viewOf({quantizeCounters(spec)}, builder.getI32Type()));
    size_t routingIndex = 0, mapIndex = 0;
    if (isRouted)
      routingIndex =
          operand(isGrouped  ? "offsets"
                  : isMasked ? "counts"
                             : "expert_ids",
                  viewOf({isBatched ? ShapedType::kDynamic : spec.numExperts + (isGrouped ? 1 : 0)},
                         builder.getI32Type()));
    if (spec.expertMapSize > 0)
      mapIndex = operand("expert_map", viewOf({spec.expertMapSize}, builder.getI32Type()));
    size_t wIndex =
        operand("w", viewOf({spec.numExperts, spec.n, spec.k}, moe::mlirType(spec.wType, context)));
    size_t wScalesIndex = operand("w_scales", wScales.type);
    size_t yIndex =
        operand("y", viewOf({ShapedType::kDynamic, spec.n}, moe::mlirType(spec.outType, context)));
    auto program =
        KernelOp::create(builder, loc, kernel.getSymName(), builder.getStrArrayAttr(names),
                         warpgroups, nullptr, nullptr, nullptr, nullptr);
    Block *body = builder.createBlock(&program.getBody(), {}, types,
                                      SmallVector<Location>(types.size(), loc));
    Value x = body->getArgument(xIndex);
    xScales.view = body->getArgument(xScalesIndex);
    Value routing = isRouted ? body->getArgument(routingIndex) : Value();
    Value map = spec.expertMapSize > 0 ? body->getArgument(mapIndex) : Value();
    Value w = body->getArgument(wIndex);
    wScales.view = body->getArgument(wScalesIndex);
    Value y = body->getArgument(yIndex);

    Code code(builder, loc);
    auto scheduler = SchedulerOp::create(
        builder, loc, SchedulerType::get(context), isGrouped ? routing : Value(),
        isMasked ? routing : Value(), isBatched ? routing : Value(), map, Value(), tileM, tileN,
        spec.n, spec.numExperts, Order::Static, 1, isRouted && spec.skipped == Skipped::Zeroed,
        nullptr, nullptr, nullptr);
    rowsBy = isBatched ? Value(scheduler) : Value();
    // After the scheduler, so that a block sorts its rows while others quantize.
    if (quantizes)
      quantizePrologue(
          code, spec,
          {body->getArgument(fromIndex), x, xScales.view, body->getArgument(countersIndex)});
    auto tiles = ForTilesOp::create(builder, loc, scheduler);
    Type i32 = builder.getI32Type();
    builder.createBlock(&tiles.getBody(), {}, {i32, i32, i32, i32, builder.getI1Type()},
                        SmallVector<Location>(5, loc));
    ScaleLoader rowLoader(xScales, tiles, tiles.getFirstRow(), rowsBy);
    ScaleLoader columnLoader(wScales, tiles, tiles.getFirstColumn(), Value());
    auto acc = AccOp::create(builder, loc, AccType::get(context, tileM, tileN, std::nullopt, 0));
    FillOp::create(builder, loc, acc);

    // A tile no expert owns has no K steps: its zeros are stored as any result.
    Value steps = code.select(tiles.getLive(), code.i32(stepsOfK.count), code.i32(0));
    auto loop = scf::ForOp::create(builder, loc, code.i32(0), steps, code.i32(1));
    loop->setAttr("ptx.name", builder.getStringAttr("kStep"));
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      Value k = code.mul(loop.getInductionVar(), tileK);
      if (stepsOfK.shift != 0)
        k = code.sub(k, code.i32(stepsOfK.shift));
      code.name(k, "k");
      Value a = load(code, x, {tiles.getFirstRow(), k}, {tileM, tileK});
      Value b = load(code, w, {tiles.getExpert(), tiles.getFirstColumn(), k}, {1, tileN, tileK});
      // Scales finer than a step divide it into dots of their own.
      int64_t part = stepsOfK.part;
      Value rowScales, columnScales;
      for (int64_t begin = 0; begin < tileK; begin += part) {
        Value at = code.add(k, begin);
        if (xScales.kGranule != 0)
          rowScales = rowLoader.at(code, stepsOfK, begin, at);
        if (wScales.kGranule != 0)
          columnScales = columnLoader.at(code, stepsOfK, begin, at);
        OpBuilder::InsertionGuard partGuard(builder);
        // Past K the operands are zero, and there may be no scale to multiply them with.
        if (begin > 0 && (spec.k + stepsOfK.shift) % tileK != 0) {
          auto inside = scf::IfOp::create(builder, loc, code.less(at, code.i32(spec.k)),
                                          /*withElseRegion=*/false);
          builder.setInsertionPointToStart(inside.thenBlock());
        }
        auto dot = DotOp::create(builder, loc, acc, a, b, rowScales, columnScales, IntegerAttr(),
                                 IntegerAttr(), IntegerAttr(), IntegerAttr(), UnitAttr(),
                                 UnitAttr(), IntegerAttr(), TypeAttr());
        if (xScales.kGranule != 0)
          dot.setRowGranule(xScales.granule);
        if (wScales.kGranule != 0)
          dot.setColumnGranule(wScales.granule);
        if (part != tileK) {
          dot.setKBegin(begin);
          dot.setKSize(part);
        }
        dot.setExact(spec.accumulate == Accumulate::Exact);
        WaitOp::create(builder, loc, acc, 0);
      }
    }

    if (xScales.kGranule == 0 || wScales.kGranule == 0) {
      // Scales of rows nobody owns may be anything, so they must not touch the zeros.
      auto branch = scf::IfOp::create(builder, loc, tiles.getLive(), /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(branch.thenBlock());
      Value rowScales, columnScales;
      if (xScales.kGranule == 0)
        rowScales = rowLoader.ofAllK(code);
      if (wScales.kGranule == 0)
        columnScales = columnLoader.ofAllK(code);
      ScaleOp::create(builder, loc, acc, rowScales, columnScales,
                      rowScales ? builder.getI64IntegerAttr(xScales.granule) : IntegerAttr(),
                      columnScales ? builder.getI64IntegerAttr(wScales.granule) : IntegerAttr());
    }
    StoreOp::create(builder, loc, acc, y, tiles.getFirstRow(), tiles.getFirstColumn(),
                    tiles.getTileRows(), rowsBy, /*transposed=*/false, /*staged=*/false,
                    /*byFirst=*/false, nullptr);
    kernel.erase();
    return success();
  }

  Value load(Code &code, Value view, ValueRange coordinates, ArrayRef<int64_t> box) {
    ViewType type = cast<ViewType>(view.getType());
    // Only what has a row for each of the launch's is found by sorted row.
    bool hasRows = !ShapedType::isStaticShape(type.getShape());
    return LoadOp::create(code.builder, code.loc,
                          BlockType::get(&getContext(), box, type.getElementType()), view,
                          coordinates, hasRows ? rowsBy : Value(), /*bulk=*/false, ItemsAttr());
  }
};

} // namespace

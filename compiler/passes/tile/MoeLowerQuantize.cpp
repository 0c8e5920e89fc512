// Owns the step from what a quantization is to the boxes that blocks quantize.
#include "compiler/SpecFromModule.h"
#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {
#define GEN_PASS_DEF_MOELOWERQUANTIZE
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// Counters of a quantization in two phases: two of the grid's, then the magnitude.
constexpr int64_t counterWords = 3;
constexpr int64_t amaxWord = 2;

struct LowerQuantize : tile::impl::MoeLowerQuantizeBase<LowerQuantize> {
  using Base::Base;

  void runOnOperation() override {
    if (tileM < 1 || tileN < 1) {
      getOperation().emitError("tiles have positive extents, got ")
          << tileM.getValue() << " and " << tileN.getValue();
      return signalPassFailure();
    }
    SmallVector<moe::KernelOp> kernels(getOperation().getOps<moe::KernelOp>());
    for (moe::KernelOp kernel : kernels)
      if (kernel.getBody().front().getOps<moe::GemmOp>().empty() &&
          !kernel.getBody().front().getOps<moe::QuantizeOp>().empty() && failed(lower(kernel)))
        return signalPassFailure();
  }

  ViewType viewOf(ArrayRef<int64_t> shape, Type element) {
    return ViewType::get(&getContext(), shape, element);
  }

  /// The scales as they are stored; groups along K where they vary there.
  FailureOr<ViewType> scaleView(moe::KernelOp kernel, const Spec &spec) {
    const ScaleLayout &layout = spec.xScales;
    Type element = moe::mlirType(layout.storedType(), &getContext());
    if (layout.granule.size() != 2 || layout.hasPhase())
      return kernel.emitOpError("quantizes by granule = ")
             << layout.granuleText() << (layout.hasPhase() ? " with a phase" : "")
             << ", which is not lowered";
    if (layout.isPerTensor())
      return viewOf({1, 1}, element);
    const Granule &rows = layout.granule[0];
    bool isOneRow = rows.kind == Granule::Kind::Extent && rows.extent == 1;
    if (!isOneRow || layout.source == ScaleSource::Static)
      return kernel.emitOpError("quantizes by granule = ")
             << layout.granuleText() << ", source = " << scaleSourceName(layout.source)
             << ", which is not lowered";
    SmallVector<int64_t> shape;
    for (int64_t extent : scaleShape(layout, xShape(spec), spec.numExperts))
      shape.push_back(extent < 0 ? ShapedType::kDynamic : extent);
    return viewOf(shape, element);
  }

  LogicalResult lower(moe::KernelOp kernel) {
    Result<Spec> found = specFromKernel(kernel);
    if (!found)
      return kernel.emitOpError(found.error().text());
    const Spec &spec = *found;
    FailureOr<ViewType> scalesType = scaleView(kernel, spec);
    if (failed(scalesType))
      return failure();
    bool isDynamic = spec.xScales.source == ScaleSource::Dynamic;
    bool hasPhases = isDynamic && spec.xScales.isPerTensor();
    // One scale a row is one for every K columns of it.
    std::optional<int64_t> granule;
    if (isDynamic && !hasPhases)
      granule = spec.xScales.kGranule() == 0 ? spec.k : spec.xScales.kGranule();
    // Lanes take eight columns.
    int64_t columns = std::min<int64_t>(llvm::alignTo(tileN, 8), spec.k);
    if (granule)
      columns = std::max<int64_t>(1, tileN / *granule) * *granule;

    MLIRContext *context = &getContext();
    OpBuilder builder(kernel);
    Location loc = kernel.getLoc();
    SmallVector<Type> types = {
        viewOf({ShapedType::kDynamic, spec.k}, moe::mlirType(*spec.quantizeFrom, context)),
        *scalesType, viewOf({ShapedType::kDynamic, spec.k}, moe::mlirType(spec.xType, context))};
    SmallVector<StringRef> names = {"x", "x_scales", "y"};
    if (hasPhases) {
      types.push_back(viewOf({counterWords}, builder.getI32Type()));
      names.push_back("counters");
    }
    auto program =
        KernelOp::create(builder, loc, kernel.getSymName(), builder.getStrArrayAttr(names),
                         warpgroups, nullptr, nullptr, nullptr, nullptr);
    Block *body = builder.createBlock(&program.getBody(), {}, types,
                                      SmallVector<Location>(types.size(), loc));
    Value x = body->getArgument(0), scales = body->getArgument(1), y = body->getArgument(2);
    Value counters = hasPhases ? Value(body->getArgument(3)) : Value();
    Code code(builder, loc);
    if (hasPhases)
      reduceMagnitudes(code, x, counters, columns, spec.k);
    auto scheduler = SchedulerOp::create(builder, loc, SchedulerType::get(context), Value(),
                                         Value(), Value(), Value(), Value(), tileM, columns, spec.k,
                                         1, Order::Static, 1, false, nullptr, nullptr, nullptr);
    auto tiles = ForTilesOp::create(builder, loc, scheduler);
    Type i32 = builder.getI32Type();
    builder.createBlock(&tiles.getBody(), {}, {i32, i32, i32, i32, builder.getI1Type()},
                        SmallVector<Location>(5, loc));
    QuantizeOp::create(
        builder, loc, x, tiles.getFirstRow(), tiles.getFirstColumn(), tiles.getTileRows(), columns,
        y, scales, granule ? builder.getI64IntegerAttr(*granule) : IntegerAttr(), counters,
        hasPhases ? amaxWord : 0, spec.xScales.order == ScaleOrder::MnMajor, 1, 1, IntegerAttr());
    kernel.erase();
    return success();
  }

  /// The first phase: every block takes boxes and raises the magnitude in the counters.
  void reduceMagnitudes(Code &code, Value x, Value counters, int64_t columns, int64_t k) {
    OpBuilder &builder = code.builder;
    Value rows = RowsOp::create(builder, code.loc, builder.getI32Type());
    int64_t across = (k + columns - 1) / columns;
    Value boxes = code.name(code.mul(code.ceilDiv(rows, tileM), across), "boxes");
    auto loop = GridForOp::create(builder, code.loc, counters, 0, boxes, IntegerAttr());
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&loop.getBody(), {}, {builder.getI32Type()}, {code.loc});
    Value down = code.div(loop.getIndex(), across);
    Value row = code.mul(down, tileM);
    Value column = code.mul(code.sub(loop.getIndex(), code.mul(down, across)), columns);
    Value inBox = code.min(code.sub(rows, row), code.i32(tileM));
    AmaxOp::create(builder, code.loc, x, row, column, inBox, columns, counters, amaxWord, 1,
                   nullptr);
  }
};

} // namespace

// Reads a Spec off the types and attributes of a kernel, and writes a kernel from a Spec.
#include "compiler/SpecFromModule.h"

#include <fmt/format.h>

using namespace mlir;

namespace moejit {

namespace {

ElementType elementTypeOfTensor(Value value) {
  // The verifier of moe.gemm admits only tensors of our element types.
  return *moe::elementTypeOf(cast<RankedTensorType>(value.getType()).getElementType());
}

int64_t extentFromEnd(Value value, int64_t fromEnd) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getDimSize(type.getRank() - fromEnd);
}

std::string opText(Operation &op) { return fmt::format("'{}'", op.getName().getStringRef().str()); }

Error unfit(std::string message) {
  return {ErrorCode::InvalidArgument,
          std::move(message),
          {"a kernel holds one moe.gemm on its arguments, joined by moe.scaled or not, and returns "
           "its result; or one moe.quantize; or a moe.gemm whose x a moe.quantize makes"}};
}

/// Whether `value` is an argument of the kernel, or joined from arguments.
bool isFromArguments(Value value) {
  if (auto scaled = value.getDefiningOp<moe::ScaledOp>())
    return isa<BlockArgument>(scaled.getData()) && isa<BlockArgument>(scaled.getScales());
  return isa<BlockArgument>(value);
}

bool quantizesArguments(moe::QuantizeOp quantize) {
  return llvm::all_of(quantize.getOperands(),
                      [](Value operand) { return isa<BlockArgument>(operand); });
}

} // namespace

Spec specFromQuantize(moe::QuantizeOp quantize) {
  return quantizeSpec(extentFromEnd(quantize.getInput(), 1),
                      elementTypeOfTensor(quantize.getInput()),
                      elementTypeOfTensor(quantize.getResult()),
                      moe::scalesOf(quantize.getResult().getType()).getLayout());
}

Spec specFromGemm(moe::GemmOp gemm) {
  Spec spec;
  spec.dispatch = gemm.getDispatch();
  spec.numExperts = gemm.getNumExperts();
  spec.n = extentFromEnd(gemm.getW(), 2);
  spec.k = extentFromEnd(gemm.getW(), 1);
  if (spec.dispatch == Dispatch::Masked)
    spec.maxRows = extentFromEnd(gemm.getX(), 2);
  spec.xType = elementTypeOfTensor(gemm.getX());
  spec.wType = elementTypeOfTensor(gemm.getW());
  spec.outType = elementTypeOfTensor(gemm.getY());
  spec.xScales = moe::scalesOf(gemm.getX().getType()).getLayout();
  spec.wScales = moe::scalesOf(gemm.getW().getType()).getLayout();
  spec.accumulate = gemm.getAccumulate();
  spec.skipped = gemm.getSkipped();
  if (auto quantize = gemm.getX().getDefiningOp<moe::QuantizeOp>())
    spec.quantizeFrom = elementTypeOfTensor(quantize.getInput());
  if (Value map = gemm.getExpertMap())
    spec.expertMapSize =
        cast<RankedTensorType>(map.getType()).isDynamicDim(0) ? -1 : extentFromEnd(map, 1);
  return spec;
}

Result<Spec> specFromKernel(moe::KernelOp kernel) {
  std::string name = kernel.getName().str();
  moe::GemmOp gemm;
  moe::QuantizeOp quantize;
  Block &block = kernel.getBody().front();
  for (Operation &op : block) {
    if (auto found = dyn_cast<moe::GemmOp>(op)) {
      if (gemm)
        return unfit(fmt::format("kernel @{} holds more than one moe.gemm", name));
      gemm = found;
    } else if (auto found = dyn_cast<moe::QuantizeOp>(op)) {
      if (quantize)
        return unfit(fmt::format("kernel @{} holds more than one moe.quantize", name));
      quantize = found;
    } else if (!isa<moe::ScaledOp, moe::ReturnOp>(op)) {
      return unfit(
          fmt::format("kernel @{} holds {}, which this version does not lower", name, opText(op)));
    }
  }
  if (!gemm && !quantize)
    return unfit(fmt::format("kernel @{} holds no moe.gemm and no moe.quantize", name));
  if (quantize && !quantizesArguments(quantize))
    return unfit(fmt::format("an operand of moe.quantize in kernel @{} is not an argument", name));
  if (gemm && quantize && gemm.getX() != quantize.getResult())
    return unfit(fmt::format("moe.quantize in kernel @{} does not make the x of moe.gemm", name));
  if (gemm)
    for (Value operand : gemm.getOperands())
      if (!isFromArguments(operand) && operand.getDefiningOp() != quantize.getOperation())
        return unfit(fmt::format("an operand of moe.gemm in kernel @{} is not an argument", name));
  Operation &end = block.back();
  Value result = gemm ? gemm.getY() : quantize.getResult();
  if (end.getNumOperands() != 1 || end.getOperand(0) != result)
    return unfit(fmt::format("kernel @{} does not return exactly the result of its {}", name,
                             gemm ? "moe.gemm" : "moe.quantize"));
  Spec spec = gemm ? specFromGemm(gemm) : specFromQuantize(quantize);
  // Rule MJ010 says why; what lowers a kernel may divide by extents without asking it.
  for (const ScaleLayout *layout : {&spec.xScales, &spec.wScales})
    for (const Granule &granule : layout->granule)
      if (granule.kind == Granule::Kind::Extent && granule.extent < 1)
        return Error{ErrorCode::InvalidArgument,
                     fmt::format("kernel @{} has the granule {}, expected extents of 1 or more",
                                 kernel.getName().str(), layout->granuleText())};
  return spec;
}

Result<moe::KernelOp> findKernel(ModuleOp module, StringRef name) {
  std::vector<std::string> names;
  moe::KernelOp found;
  for (auto kernel : module.getOps<moe::KernelOp>()) {
    names.push_back(fmt::format("@{}", kernel.getName().str()));
    if (name.empty() || kernel.getName() == name)
      found = kernel;
  }
  if (names.empty())
    return Error{ErrorCode::NotFound, "the module holds no moe.kernel"};
  std::string all = fmt::format("{}", fmt::join(names, ", "));
  if (name.empty() && names.size() > 1)
    return Error{ErrorCode::NotFound,
                 fmt::format("the module holds {} kernels, name one of {}", names.size(), all)};
  if (!found)
    return Error{ErrorCode::NotFound,
                 fmt::format("no kernel @{}, expected one of {}", name.str(), all)};
  return found;
}

moe::KernelOp buildKernel(OpBuilder &builder, const Spec &spec, StringRef name) {
  MLIRContext *context = builder.getContext();
  auto scales = [&](const ScaleLayout &layout) { return moe::ScalesAttr::get(context, layout); };
  auto type = [&](ElementType element) { return moe::mlirType(element, context); };
  auto indices = [&](int64_t extent) { return moe::tensorType({extent}, type(ElementType::I32)); };

  bool isGemm = spec.computation == Computation::Gemm;
  bool isStatic = spec.xScales.source == ScaleSource::Static;
  RankedTensorType x = moe::tensorType(xShape(spec), type(spec.xType), scales(spec.xScales));
  SmallVector<Type> inputs = {x};
  if (spec.quantizeFrom) {
    inputs = {moe::tensorType(xShape(spec), type(*spec.quantizeFrom))};
    if (isStatic)
      inputs.push_back(moe::scaleTensorType(x, spec.numExperts));
  }
  bool hasRouting = spec.dispatch != Dispatch::Eager;
  size_t rest = inputs.size();
  RankedTensorType y = x;
  if (isGemm) {
    std::vector<int64_t> yShape = xShape(spec);
    yShape.back() = spec.n;
    y = moe::tensorType(yShape, type(spec.outType));
    if (spec.dispatch == Dispatch::Batched)
      inputs.push_back(indices(-1));
    else if (spec.dispatch == Dispatch::Grouped)
      inputs.push_back(indices(spec.numExperts + 1));
    else if (spec.dispatch == Dispatch::Masked)
      inputs.push_back(indices(spec.numExperts));
    inputs.push_back(moe::tensorType(wShape(spec), type(spec.wType), scales(spec.wScales)));
    if (spec.expertMapSize != 0)
      inputs.push_back(indices(spec.expertMapSize));
  }

  Location location = builder.getUnknownLoc();
  auto kernel =
      moe::KernelOp::create(builder, location, name, builder.getFunctionType(inputs, {y}));
  OpBuilder::InsertionGuard guard(builder);
  Block &block = kernel.getBody().front();
  builder.setInsertionPointToStart(&block);
  Value given = block.getArgument(0), result = given;
  if (spec.quantizeFrom)
    given = result = moe::QuantizeOp::create(builder, location, x, given,
                                             isStatic ? Value(block.getArgument(1)) : Value());
  if (isGemm) {
    Value routing = hasRouting ? block.getArgument(rest) : Value();
    Value weights = block.getArgument(rest + hasRouting);
    Value map = spec.expertMapSize != 0 ? block.getArguments().back() : Value();
    result = moe::GemmOp::create(builder, location, y, spec.dispatch, spec.accumulate, spec.skipped,
                                 given, routing, weights, map);
  }
  moe::ReturnOp::create(builder, location, result);
  return kernel;
}

} // namespace moejit

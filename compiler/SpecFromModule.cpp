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
           "its result"}};
}

/// Whether `value` is an argument of the kernel, or joined from arguments.
bool isFromArguments(Value value) {
  if (auto scaled = value.getDefiningOp<moe::ScaledOp>())
    return isa<BlockArgument>(scaled.getData()) && isa<BlockArgument>(scaled.getScales());
  return isa<BlockArgument>(value);
}

} // namespace

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
  spec.hasExpertMap = static_cast<bool>(gemm.getExpertMap());
  return spec;
}

Result<Spec> specFromKernel(moe::KernelOp kernel) {
  moe::GemmOp gemm;
  Block &block = kernel.getBody().front();
  for (Operation &op : block) {
    if (auto found = dyn_cast<moe::GemmOp>(op)) {
      if (gemm)
        return unfit(
            fmt::format("kernel @{} holds more than one moe.gemm", kernel.getName().str()));
      gemm = found;
    } else if (!isa<moe::ScaledOp, moe::ReturnOp>(op)) {
      return unfit(fmt::format("kernel @{} holds {}, which this version does not lower",
                               kernel.getName().str(), opText(op)));
    }
  }
  if (!gemm)
    return unfit(fmt::format("kernel @{} holds no moe.gemm", kernel.getName().str()));
  for (Value operand : gemm.getOperands())
    if (!isFromArguments(operand))
      return unfit(fmt::format("an operand of moe.gemm in kernel @{} is not an argument",
                               kernel.getName().str()));
  Operation &end = block.back();
  if (end.getNumOperands() != 1 || end.getOperand(0) != gemm.getY())
    return unfit(fmt::format("kernel @{} does not return exactly the result of its moe.gemm",
                             kernel.getName().str()));
  Spec spec = specFromGemm(gemm);
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

  std::vector<int64_t> yShape = xShape(spec);
  yShape.back() = spec.n;
  RankedTensorType x = moe::tensorType(xShape(spec), type(spec.xType), scales(spec.xScales));
  RankedTensorType w = moe::tensorType(wShape(spec), type(spec.wType), scales(spec.wScales));
  RankedTensorType y = moe::tensorType(yShape, type(spec.outType));

  SmallVector<Type> inputs = {x};
  if (spec.dispatch == Dispatch::Batched)
    inputs.push_back(indices(-1));
  else if (spec.dispatch == Dispatch::Grouped)
    inputs.push_back(indices(spec.numExperts + 1));
  else if (spec.dispatch == Dispatch::Masked)
    inputs.push_back(indices(spec.numExperts));
  inputs.push_back(w);
  if (spec.hasExpertMap)
    inputs.push_back(indices(-1));

  Location location = builder.getUnknownLoc();
  auto kernel =
      moe::KernelOp::create(builder, location, name, builder.getFunctionType(inputs, {y}));
  OpBuilder::InsertionGuard guard(builder);
  Block &block = kernel.getBody().front();
  builder.setInsertionPointToStart(&block);
  bool hasRouting = spec.dispatch != Dispatch::Eager;
  Value routing = hasRouting ? block.getArgument(1) : Value();
  Value weights = block.getArgument(hasRouting ? 2 : 1);
  Value map = spec.hasExpertMap ? block.getArguments().back() : Value();
  auto gemm = moe::GemmOp::create(builder, location, y, spec.dispatch, spec.accumulate,
                                  spec.skipped, block.getArgument(0), routing, weights, map);
  moe::ReturnOp::create(builder, location, gemm->getResults());
  return kernel;
}

} // namespace moejit

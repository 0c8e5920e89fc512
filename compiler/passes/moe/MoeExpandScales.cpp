// moe-expand-scales: the boundary of a kernel, where a scaled tensor is two arguments.
#include "compiler/passes/moe/MoePasses.h"

using namespace mlir;

namespace moejit::moe {

#define GEN_PASS_DEF_MOEEXPANDSCALES
#include "compiler/passes/moe/MoePasses.h.inc"

namespace {

/// The number of experts of a GEMM that takes `argument`, or -1.
int64_t numExpertsOf(BlockArgument argument) {
  for (Operation *user : argument.getUsers())
    if (auto gemm = dyn_cast<GemmOp>(user))
      return gemm.getNumExperts();
  return -1;
}

bool hasExpertGranule(ScalesAttr scales) {
  return llvm::any_of(scales.getGranule(),
                      [](const Granule &granule) { return granule.kind == Granule::Kind::Expert; });
}

class MoeExpandScales : public impl::MoeExpandScalesBase<MoeExpandScales> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    for (Value result : kernel.getBody().front().back().getOperands())
      if (scalesOf(result.getType()) && !result.getDefiningOp<QuantizeOp>()) {
        kernel.emitOpError(
            "returns a scaled tensor, expected plain ones or the result of a moe.quantize");
        return signalPassFailure();
      }
    Block &block = kernel.getBody().front();
    OpBuilder builder = OpBuilder::atBlockBegin(&block);
    for (unsigned index = 0; index < block.getNumArguments(); ++index)
      if (scalesOf(block.getArgument(index).getType()) && failed(expand(kernel, builder, index)))
        return signalPassFailure();
  }

  LogicalResult expand(KernelOp kernel, OpBuilder &builder, unsigned index) {
    Block &block = kernel.getBody().front();
    BlockArgument argument = block.getArgument(index);
    auto scaledType = cast<RankedTensorType>(argument.getType());
    int64_t numExperts = numExpertsOf(argument);
    if (hasExpertGranule(scalesOf(scaledType)) && numExperts < 0)
      return kernel.emitOpError()
             << "argument " << index
             << " has one scale per expert, but no moe.gemm says how many experts there are";
    RankedTensorType scaleType = scaleTensorType(scaledType, numExperts);
    Location location = argument.getLoc();
    if (failed(kernel.insertArgument(index + 1, scaleType, /*argAttrs=*/{}, location)))
      return kernel.emitOpError() << "cannot take another argument";
    BlockArgument scales = block.getArgument(index + 1);

    auto scaled = ScaledOp::create(builder, location, scaledType, argument, scales);
    argument.replaceAllUsesExcept(scaled.getResult(), scaled);
    argument.setType(dataType(scaledType));
    SmallVector<Type> inputs(block.getArgumentTypes());
    kernel.setFunctionType(builder.getFunctionType(inputs, kernel.getResultTypes()));
    return success();
  }
};

} // namespace

} // namespace moejit::moe

// Owns the test tool ptx-emit, which shows what becomes of ptx IR: the IR again, CUDA C++, or what
// NVRTC makes of it.
#include "compiler/Nvrtc.h"
#include "compiler/emit/CudaPrinter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"

using namespace mlir;
using namespace moejit;

static void registerDialects(DialectRegistry &registry) {
  registry.insert<ptx::PtxDialect, arith::ArithDialect, func::FuncDialect, scf::SCFDialect>();
}

static LogicalResult printIr(Operation *op, llvm::raw_ostream &os) {
  op->print(os);
  os << '\n';
  return success();
}

static LogicalResult printKernels(Operation *op, llvm::raw_ostream &os) {
  op->getContext()->printOpOnDiagnostic(false);
  WalkResult walked = op->walk([&](ptx::KernelOp kernel) {
    return failed(emit::printCuda(kernel, os)) ? WalkResult::interrupt() : WalkResult::skip();
  });
  return failure(walked.wasInterrupted());
}

/// Prints the PTX, then the resources and warnings of each kernel as comments.
static LogicalResult compileKernels(Operation *op, llvm::raw_ostream &os) {
  op->getContext()->printOpOnDiagnostic(false);
  Result<Nvrtc> nvrtc = Nvrtc::open({});
  if (!nvrtc)
    return op->emitError(nvrtc.error().text());
  WalkResult walked = op->walk([&](ptx::KernelOp kernel) {
    std::string source;
    llvm::raw_string_ostream stream(source);
    if (failed(emit::printCuda(kernel, stream)))
      return WalkResult::interrupt();
    Result<NvrtcOutput> output = nvrtc->compile(source, "sm_90a");
    if (!output) {
      kernel.emitError(output.error().text());
      return WalkResult::interrupt();
    }
    const ResourceUsage &used = output->resources;
    os << output->ptx << "// registers " << used.registers << "\n// spills "
       << used.spillStoreBytes + used.spillLoadBytes << "\n// stack " << used.stackBytes
       << "\n// shared " << used.staticSharedBytes << "\n// cubin "
       << (output->cubin.empty() ? "empty" : "made") << '\n';
    for (const std::string &warning : output->warnings)
      os << "// warning: " << warning << '\n';
    return WalkResult::skip();
  });
  return failure(walked.wasInterrupted());
}

int main(int argc, char **argv) {
  TranslateFromMLIRRegistration ir("ptx-to-ptx-ir", "Print the IR", printIr, registerDialects);
  TranslateFromMLIRRegistration cuda("ptx-to-cuda", "Print each kernel as CUDA C++", printKernels,
                                     registerDialects);
  TranslateFromMLIRRegistration binary("ptx-to-binary",
                                       "Compile each kernel for sm_90a and print its PTX and "
                                       "resources",
                                       compileKernels, registerDialects);
  return failed(mlirTranslateMain(argc, argv, "Shows what becomes of ptx kernels"));
}

// moejit-opt: MLIR's opt driver over moejit's dialects and passes.
#include "compiler/Pipeline.h"
#include "compiler/RegisterAll.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  moejit::registerAllMoejit(registry);
  moejit::registerPipelines();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  mlir::registerLoopInvariantCodeMotionPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "moejit optimizer\n", registry));
}

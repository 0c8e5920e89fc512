// Owns which C++ identifiers are in use, scope by scope.
#include "compiler/emit/CudaNames.h"

#include "compiler/dialect/ptx/Ptx.h"

namespace moejit::emit {

CudaNames::CudaNames(mlir::MLIRContext *context) {
  for (mlir::RegisteredOperationName name : context->getRegisteredOperationsByDialect("ptx"))
    wrappers.insert(name.stripDialect());
}

bool CudaNames::isTaken(llvm::StringRef name) const {
  return wrappers.contains(name) ||
         llvm::any_of(scopes, [&](const llvm::StringSet<> &scope) { return scope.contains(name); });
}

std::string CudaNames::declare(llvm::StringRef wanted) {
  std::string name = wanted.str();
  if (wanted.empty()) {
    do {
      name = "v" + std::to_string(nextNumber++);
    } while (isTaken(name));
  } else {
    // The wrappers of these have more in their names than the operation.
    if (wanted.starts_with("tma_load_") || wanted.starts_with("wgmma_"))
      name = "value_" + name;
    std::string base = name;
    for (unsigned suffix = 1; isTaken(name); ++suffix)
      name = base + "_" + std::to_string(suffix);
  }
  scopes.back().insert(name);
  return name;
}

} // namespace moejit::emit

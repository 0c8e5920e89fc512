// Owns which C++ identifiers are in use, scope by scope.
#include "compiler/emit/CudaNames.h"

#include "compiler/dialect/ptx/Ptx.h"

namespace moejit::emit {

CudaNames::CudaNames(mlir::MLIRContext *context) {
  for (mlir::RegisteredOperationName name : context->getRegisteredOperationsByDialect("ptx"))
    wrappers.insert(name.stripDialect());
}

bool CudaNames::isTaken(llvm::StringRef name) const {
  // The wrappers of these have more in their name than the operation.
  if (wrappers.contains(name) || name.starts_with("tma_load_") || name.starts_with("wgmma_"))
    return true;
  return llvm::any_of(scopes, [&](const llvm::StringSet<> &scope) { return scope.contains(name); });
}

std::string CudaNames::declare(llvm::StringRef wanted) {
  std::string name = wanted.str();
  if (wanted.empty())
    do
      name = "v" + std::to_string(nextNumber++);
    while (isTaken(name));
  else
    for (unsigned suffix = 1; isTaken(name); ++suffix)
      name = wanted.str() + "_" + std::to_string(suffix);
  scopes.back().insert(name);
  return name;
}

} // namespace moejit::emit

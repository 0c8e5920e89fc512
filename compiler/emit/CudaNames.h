// Owns which C++ identifiers are in use, scope by scope. A name may come again once its scope has
// ended.
#pragma once

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <string>
#include <vector>

namespace moejit::emit {

class CudaNames {
public:
  /// Keeps the names of wrappers free: those of all ptx operations that `context` knows.
  explicit CudaNames(mlir::MLIRContext *context);

  void enterScope() { scopes.emplace_back(); }
  void leaveScope() { scopes.pop_back(); }

  /// Takes a name in the innermost scope that no scope around it has: `wanted`, `wanted_1`…, or v0,
  /// v1… if `wanted` is empty.
  std::string declare(llvm::StringRef wanted);

private:
  bool isTaken(llvm::StringRef name) const;

  llvm::StringSet<> wrappers;
  std::vector<llvm::StringSet<>> scopes{1};
  unsigned nextNumber = 0;
};

} // namespace moejit::emit

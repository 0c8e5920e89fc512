// Owns the choice of what is printed inside an expression rather than as a variable.
#include "compiler/emit/CudaInlining.h"

#include "compiler/dialect/ptx/Ptx.h"
#include "compiler/emit/CudaExpression.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace moejit::emit {

/// Operations in one expression beyond which it is split: about a line of text.
constexpr unsigned maxOperations = 6;

static bool onlyReads(Operation *op) {
  if (op->getNumRegions())
    return false;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects)
    return isMemoryEffectFree(op);
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  return llvm::all_of(instances, [](const MemoryEffects::EffectInstance &instance) {
    return isa<MemoryEffects::Read>(instance.getEffect());
  });
}

/// Whether `operand` may be an expression where its operation is printed.
static bool takesExpression(OpOperand &operand) {
  Operation *user = operand.getOwner();
  if (repeatsOperands(user))
    return false;
  // What scf.condition forwards is named: the body and what follows the loop read it.
  return !isa<scf::ConditionOp>(user) || operand.getOperandNumber() == 0;
}

llvm::DenseSet<Operation *> planInlining(Block &block) {
  llvm::DenseSet<Operation *> inlined;
  llvm::DenseMap<Operation *, Operation *> statementOf;
  for (Operation &op : llvm::reverse(block)) {
    statementOf[&op] = &op;
    bool isRead = isa<ptx::RegsGetOp>(op);
    if (op.getNumResults() != 1 || op.getNumRegions() || op.hasTrait<OpTrait::ConstantLike>() ||
        !(isRead || isMemoryEffectFree(&op)) || op.hasAttr("ptx.name") ||
        !op.getResult(0).hasOneUse())
      continue;
    OpOperand &use = *op.getResult(0).getUses().begin();
    if (use.getOwner()->getBlock() != &block || !takesExpression(use))
      continue;
    Operation *statement = statementOf.lookup(use.getOwner());
    if (isRead) {
      bool isSafe = statement->getNumRegions() == 0;
      for (Operation *between = op.getNextNode(); isSafe && between != statement;
           between = between->getNextNode())
        isSafe = onlyReads(between);
      if (!isSafe)
        continue;
    }
    statementOf[&op] = statement;
    inlined.insert(&op);
  }

  llvm::DenseMap<Operation *, unsigned> weight;
  for (Operation &op : block) {
    unsigned total = isa<ptx::RegsGetOp>(op) ? 0 : 1;
    SmallVector<Operation *> parts;
    for (Value operand : op.getOperands())
      if (Operation *part = operand.getDefiningOp(); part && inlined.contains(part)) {
        parts.push_back(part);
        total += weight[part];
      }
    while (total > maxOperations && !parts.empty()) {
      auto heaviest = llvm::max_element(
          parts, [&](Operation *a, Operation *b) { return weight[a] < weight[b]; });
      if (weight[*heaviest] < 2)
        break;
      total -= weight[*heaviest];
      inlined.erase(*heaviest);
      parts.erase(heaviest);
    }
    weight[&op] = total;
  }
  return inlined;
}

} // namespace moejit::emit

// Owns statements and the frame of the translation unit; expressions are CudaExpression's.
#include "compiler/emit/CudaPrinter.h"

#include "compiler/emit/CudaExpression.h"
#include "compiler/emit/CudaInlining.h"
#include "compiler/emit/CudaNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace moejit;
using namespace moejit::emit;

namespace {

class Printer {
public:
  explicit Printer(ptx::KernelOp kernel) : kernel(kernel), names(kernel.getContext()) {}
  LogicalResult print(llvm::raw_ostream &os);

private:
  // Values.
  Expression expression(Value value);
  std::string inlineText(Value value) { return expression(value).text; }
  std::string argumentText(const ptx::CallArgument &argument);
  std::string element(Value regs, ArrayRef<OpFoldResult> indices);
  std::string element(Value regs, ValueRange indices, ArrayRef<int64_t> staticIndices);
  std::string call(ptx::WrapperOpInterface op);
  Expression definition(Operation *op);
  void setName(Value value, std::string name) { valueNames[value] = std::move(name); }
  std::string declare(Value value, StringRef wanted);
  bool isInlined(Operation *op) { return inlined.contains(op); }
  void variablesIn(Value value, llvm::SmallVectorImpl<StringRef> &variables);

  // Checks before anything is printed.
  LogicalResult check(Operation *op);
  LogicalResult checkIndices(Operation *op);

  // Statements.
  llvm::raw_ostream &line() { return body.indent(indentation); }
  void block(Block &block);
  void scope(Block &block);
  void statement(Operation *op);
  void forLoop(scf::ForOp op);
  void whileLoop(scf::WhileOp op);
  void ifElse(scf::IfOp op, bool isChained = false);
  void unroll(ptx::UnrollOp op);
  void registers(ptx::RegsOp op);
  /// Assigns all values at once: no variable is overwritten while another value still needs it.
  void assign(ArrayRef<std::string> variables, ValueRange values);
  bool hasStatements(Block &block);
  bool isOnlyIf(Block &block);

  // The frame.
  std::string signature();
  std::string parameter(BlockArgument argument, StringRef name);

  ptx::KernelOp kernel;
  CudaNames names;
  llvm::DenseMap<Value, std::string> valueNames;
  llvm::DenseMap<Value, Value> aliases; ///< a region's argument to the value it always is
  llvm::DenseSet<Operation *> inlined;
  std::vector<std::string> wrappers; ///< definitions in order of first use
  llvm::StringSet<> knownWrappers;
  std::string bodyText;
  llvm::raw_string_ostream body{bodyText};
  unsigned indentation = 2;
};

} // namespace

static StringRef wantedName(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>("ptx.name");
  return name ? name.getValue() : StringRef();
}

/// The name asked for result `index` of a structured operation.
static StringRef wantedName(Operation *op, unsigned index) {
  if (auto all = op->getAttrOfType<ArrayAttr>("ptx.names"))
    return index < all.size() ? cast<StringAttr>(all[index]).getValue() : StringRef();
  return isa<scf::IfOp, scf::WhileOp>(op) && op->getNumResults() == 1 ? wantedName(op)
                                                                      : StringRef();
}

//===- Values ---------------------------------------------------------------------------------===//

std::string Printer::declare(Value value, StringRef wanted) {
  std::string name = names.declare(wanted);
  setName(value, name);
  return name;
}

Expression Printer::expression(Value value) {
  for (auto alias = aliases.find(value); alias != aliases.end(); alias = aliases.find(value))
    value = alias->second;
  if (auto name = valueNames.find(value); name != valueNames.end())
    return {name->second};
  Operation *op = value.getDefiningOp();
  if (std::optional<Expression> constant = literal(op))
    return *constant;
  return definition(op);
}

Expression Printer::definition(Operation *op) {
  if (auto get = dyn_cast<ptx::RegsGetOp>(op))
    return {element(get.getRegs(), get.getIndices(), get.getStaticIndices())};
  if (auto wrapper = dyn_cast<ptx::WrapperOpInterface>(op))
    return {call(wrapper)};
  return arithmetic(op, [&](Value operand) { return expression(operand); });
}

std::string Printer::element(Value regs, ArrayRef<OpFoldResult> indices) {
  std::string text = inlineText(regs);
  for (OpFoldResult index : indices)
    text += "[" +
            (isa<Value>(index) ? inlineText(cast<Value>(index))
                               : std::to_string(*getConstantIntValue(index))) +
            "]";
  return text;
}

std::string Printer::element(Value regs, ValueRange indices, ArrayRef<int64_t> staticIndices) {
  SmallVector<OpFoldResult> mixed;
  auto next = indices.begin();
  Builder builder(kernel.getContext());
  for (int64_t integer : staticIndices)
    if (ShapedType::isDynamic(integer))
      mixed.push_back(*next++);
    else
      mixed.push_back(builder.getI64IntegerAttr(integer));
  return element(regs, mixed);
}

std::string Printer::argumentText(const ptx::CallArgument &argument) {
  return argument.value ? element(argument.value, argument.indices)
                        : std::to_string(argument.integer);
}

std::string Printer::call(ptx::WrapperOpInterface op) {
  std::string source = op.wrapperSource();
  if (knownWrappers.insert(source).second)
    wrappers.push_back(std::move(source));
  std::string text = op.calleeName() + "(";
  for (auto [index, argument] : llvm::enumerate(op.callArguments()))
    text += (index ? ", " : "") + argumentText(argument);
  return text + ")";
}

void Printer::variablesIn(Value value, SmallVectorImpl<StringRef> &variables) {
  for (auto alias = aliases.find(value); alias != aliases.end(); alias = aliases.find(value))
    value = alias->second;
  if (auto name = valueNames.find(value); name != valueNames.end())
    variables.push_back(name->second);
  else
    for (Value operand : value.getDefiningOp()->getOperands())
      variablesIn(operand, variables);
}

//===- Checks ---------------------------------------------------------------------------------===//

/// Whether an index is a constant once every ptx.unroll is unrolled.
static bool isUnrolledConstant(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<ptx::UnrollOp>(argument.getOwner()->getParentOp());
  Operation *op = value.getDefiningOp();
  std::string reason;
  return literal(op) ||
         (isPrintableArithmetic(op, reason) && llvm::all_of(op->getOperands(), isUnrolledConstant));
}

LogicalResult Printer::checkIndices(Operation *op) {
  auto check = [&](OperandRange indices) -> LogicalResult {
    for (Value index : indices)
      if (!isUnrolledConstant(index)) {
        InFlightDiagnostic diagnostic =
            op->emitOpError() << "indexes a register array by a value that is no constant after "
                                 "unrolling; the array would go to local memory";
        diagnostic.attachNote(index.getLoc()) << "the index is defined here";
        diagnostic.attachNote() << "use constants and induction variables of ptx.unroll";
        return diagnostic;
      }
    return success();
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ptx::RegsGetOp, ptx::RegsSetOp, ptx::RegsPinOp, ptx::WgmmaOp, ptx::LdSharedV4Op,
            ptx::StSharedV4Op, ptx::StGlobalV2Op, ptx::StGlobalV4Op>(
          [&](auto access) { return check(access.getIndices()); })
      .Default(success());
}

LogicalResult Printer::check(Operation *op) {
  if (isa_and_nonnull<ptx::PtxDialect>(op->getDialect())) {
    if (auto constant = dyn_cast<ptx::ConstantF32Op>(op); constant && !literal(op))
      return op->emitOpError()
             << "is not finite, and C++ has no literal for it; use ptx.float_bits";
    return checkIndices(op);
  }
  auto forOp = dyn_cast<scf::ForOp>(op);
  if (forOp && forOp.getUnsignedCmp())
    return op->emitOpError() << "counts unsigned, which the CUDA printer does not take";
  bool isControl = isa<scf::ForOp, scf::WhileOp, scf::IfOp, scf::YieldOp, scf::ConditionOp>(op);
  std::string reason;
  if (!isControl && !literal(op) && !isPrintableArithmetic(op, reason)) {
    InFlightDiagnostic diagnostic = op->emitOpError() << "cannot be printed as CUDA C++";
    if (!reason.empty())
      diagnostic << ": it " << reason;
    diagnostic.attachNote()
        << "the printer takes ptx operations, scf.for, scf.while, scf.if, and arith "
           "constants and arithmetic on i1, i32 and i64";
    return diagnostic;
  }
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      if (!cudaTypeName(argument.getType()))
        return op->emitOpError() << "carries a value of type " << argument.getType()
                                 << "; the CUDA printer takes i1, i32, i64 and f32";
  for (Type type : op->getResultTypes())
    if (!cudaTypeName(type))
      return op->emitOpError() << "has a result of type " << type
                               << "; the CUDA printer takes i1, i32, i64 and f32";
  return success();
}

//===- Statements -----------------------------------------------------------------------------===//

void Printer::block(Block &block) {
  for (Operation *op : planInlining(block))
    inlined.insert(op);
  for (Operation &op : block)
    statement(&op);
}

void Printer::scope(Block &inner) {
  indentation += 2;
  block(inner);
  indentation -= 2;
}

bool Printer::hasStatements(Block &block) {
  llvm::DenseSet<Operation *> planned = planInlining(block);
  return llvm::any_of(block.without_terminator(),
                      [&](Operation &op) { return !planned.contains(&op) && !literal(&op); });
}

void Printer::statement(Operation *op) {
  if (isInlined(op) || literal(op) || op->hasTrait<OpTrait::IsTerminator>() ||
      (op->use_empty() && isMemoryEffectFree(op)))
    return;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](scf::ForOp loop) { forLoop(loop); })
      .Case([&](scf::WhileOp loop) { whileLoop(loop); })
      .Case([&](scf::IfOp branch) { ifElse(branch); })
      .Case([&](ptx::UnrollOp loop) { unroll(loop); })
      .Case([&](ptx::RegsOp regs) { registers(regs); })
      .Case([&](ptx::RegsSetOp set) {
        std::string value = inlineText(set.getValue());
        line() << element(set.getRegs(), set.getIndices(), set.getStaticIndices()) << " = " << value
               << ";\n";
      })
      .Default([&](Operation *other) {
        std::string value = definition(other).text;
        line();
        if (other->getNumResults() && !other->use_empty()) {
          Value result = other->getResult(0);
          body << "const " << cudaTypeName(result.getType()) << ' '
               << declare(result, wantedName(other)) << " = ";
        }
        body << value << ";\n";
      });
}

void Printer::registers(ptx::RegsOp op) {
  line() << cudaTypeName(op.getType().getElementType()) << ' ' << declare(op, wantedName(op));
  for (int64_t extent : op.getType().getShape())
    body << '[' << extent << ']';
  body << ";\n";
}

void Printer::unroll(ptx::UnrollOp op) {
  names.enterScope();
  std::string variable = declare(op.getInductionVar(), wantedName(op));
  int32_t lower = op.getLower(), upper = op.getUpper(), step = op.getStep();
  line() << "#pragma unroll\n";
  line() << "for (int " << variable << " = " << lower << "; " << variable << " < " << upper << "; ";
  if (step == 1)
    body << "++" << variable;
  else
    body << variable << " += " << step;
  body << ") {\n";
  scope(*op.getBlock());
  line() << "}\n";
  names.leaveScope();
}

void Printer::forLoop(scf::ForOp op) {
  std::vector<std::string> carried;
  for (auto [index, init] : llvm::enumerate(op.getInitArgs())) {
    std::string value = inlineText(init);
    std::string name = declare(op.getRegionIterArg(index), wantedName(op, index));
    setName(op.getResult(index), name);
    line() << cudaTypeName(init.getType()) << ' ' << name << " = " << value << ";\n";
    carried.push_back(std::move(name));
  }
  std::string lower = inlineText(op.getLowerBound()), step = inlineText(op.getStep());
  Expression upper = expression(op.getUpperBound());
  bool needsParentheses = upper.precedence < Precedence::Shift;
  names.enterScope();
  std::string variable = declare(op.getInductionVar(), wantedName(op));
  line() << "for (" << cudaTypeName(op.getInductionVar().getType()) << ' ' << variable << " = "
         << lower << "; " << variable << " < "
         << (needsParentheses ? "(" + upper.text + ")" : upper.text) << "; ";
  if (step == "1" || step == "1ll")
    body << "++" << variable;
  else
    body << variable << " += " << step;
  body << ") {\n";
  indentation += 2;
  block(*op.getBody());
  assign(carried, op.getYieldedValues());
  indentation -= 2;
  line() << "}\n";
  names.leaveScope();
}

void Printer::whileLoop(scf::WhileOp op) {
  Block &before = *op.getBeforeBody(), &after = *op.getAfterBody();
  scf::ConditionOp condition = op.getConditionOp();
  std::vector<std::string> carried, results;
  std::vector<Value> resultValues;
  for (auto [index, init] : llvm::enumerate(op.getInits())) {
    std::string value = inlineText(init);
    std::string name = declare(before.getArgument(index), wantedName(op, index));
    line() << cudaTypeName(init.getType()) << ' ' << name << " = " << value << ";\n";
    carried.push_back(std::move(name));
  }
  // A forwarded value that is defined in the loop and read after it needs a variable around the
  // loop.
  for (auto [index, value] : llvm::enumerate(condition.getArgs())) {
    aliases[after.getArgument(index)] = value;
    Value result = op.getResult(index);
    Operation *definition = value.getDefiningOp();
    bool isLocal = definition && definition->getParentRegion() == &op.getBefore();
    if (!isLocal || literal(definition)) {
      aliases[result] = value;
    } else if (!result.use_empty()) {
      results.push_back(declare(result, wantedName(op, index)));
      resultValues.push_back(value);
      line() << cudaTypeName(value.getType()) << ' ' << results.back() << ";\n";
    }
  }
  names.enterScope();
  if (!hasStatements(before) && results.empty()) {
    for (Operation *inner : planInlining(before))
      inlined.insert(inner);
    line() << "while (" << inlineText(condition.getCondition()) << ") {\n";
    indentation += 2;
  } else {
    line() << "while (true) {\n";
    indentation += 2;
    block(before);
    assign(results, resultValues);
    Expression stop = negation(
        condition.getCondition(), [&](Value value) { return expression(value); },
        [&](Operation *inner) { return isInlined(inner); });
    line() << "if (" << stop.text << ")\n";
    line() << "  break;\n";
  }
  block(after);
  assign(carried, op.getYieldOp().getOperands());
  indentation -= 2;
  line() << "}\n";
  names.leaveScope();
}

/// Whether `block` prints as one if without results, so that it can follow `else`.
bool Printer::isOnlyIf(Block &block) {
  llvm::DenseSet<Operation *> planned = planInlining(block);
  Operation *only = nullptr;
  for (Operation &op : block.without_terminator()) {
    if (planned.contains(&op) || literal(&op))
      continue;
    if (only || !isa<scf::IfOp>(op) || op.getNumResults())
      return false;
    only = &op;
  }
  return only && block.getTerminator()->getNumOperands() == 0;
}

void Printer::ifElse(scf::IfOp op, bool isChained) {
  std::vector<std::string> results;
  for (OpResult result : op.getResults()) {
    results.push_back(declare(result, wantedName(op, result.getResultNumber())));
    line() << cudaTypeName(result.getType()) << ' ' << results.back() << ";\n";
  }
  std::string condition = inlineText(op.getCondition());
  if (!isChained)
    line();
  body << "if (" << condition << ") {\n";
  auto branch = [&](Block &inner) {
    names.enterScope();
    indentation += 2;
    block(inner);
    assign(results, inner.getTerminator()->getOperands());
    indentation -= 2;
    names.leaveScope();
  };
  branch(*op.thenBlock());
  Block *otherwise = op.elseBlock();
  if (!otherwise || (!hasStatements(*otherwise) && results.empty())) {
    line() << "}\n";
  } else if (isOnlyIf(*otherwise)) {
    line() << "} else ";
    names.enterScope();
    for (Operation *inner : planInlining(*otherwise))
      inlined.insert(inner);
    for (auto nested : otherwise->getOps<scf::IfOp>())
      ifElse(nested, /*isChained=*/true);
    names.leaveScope();
  } else {
    line() << "} else {\n";
    branch(*otherwise);
    line() << "}\n";
  }
}

void Printer::assign(ArrayRef<std::string> variables, ValueRange values) {
  struct Assignment {
    StringRef variable;
    std::string text;
    Type type;
    SmallVector<StringRef> reads;
  };
  std::vector<Assignment> pending;
  for (auto [variable, value] : llvm::zip_equal(variables, values)) {
    Assignment assignment{variable, inlineText(value), value.getType(), {}};
    variablesIn(value, assignment.reads);
    if (assignment.text != variable)
      pending.push_back(std::move(assignment));
  }
  while (!pending.empty()) {
    auto isFree = [&](const Assignment &candidate) {
      return llvm::none_of(pending, [&](const Assignment &other) {
        return &other != &candidate && llvm::is_contained(other.reads, candidate.variable);
      });
    };
    auto next = llvm::find_if(pending, isFree);
    if (next != pending.end()) {
      line() << next->variable << " = " << next->text << ";\n";
      pending.erase(next);
      continue;
    }
    // A cycle: one new value has to wait in a variable of its own.
    Assignment &first = pending.front();
    std::string name = names.declare("next");
    line() << "const " << cudaTypeName(first.type) << ' ' << name << " = " << first.text << ";\n";
    first.text = name;
    first.reads.clear();
  }
}

//===- The frame ------------------------------------------------------------------------------===//

std::string Printer::parameter(BlockArgument argument, StringRef name) {
  Type type = argument.getType();
  if (isa<ptx::TmapType>(type))
    return "const __grid_constant__ TensorMap " + name.str();
  if (!isa<ptx::PtrType>(type))
    return std::string(cudaTypeName(type)) + " " + name.str();
  auto writes = [&](Operation *user) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    return !effects || effects.getEffectOnValue<MemoryEffects::Write>(argument).has_value();
  };
  return (llvm::any_of(argument.getUsers(), writes) ? "void *" : "const void *") + name.str();
}

std::string Printer::signature() {
  constexpr size_t columns = 100;
  std::string text = "moejit_kernel(", currentLine = text;
  for (BlockArgument argument : kernel.getEntry()->getArguments()) {
    auto wanted = kernel.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "ptx.name");
    std::string name = declare(argument, wanted ? wanted.getValue() : StringRef());
    std::string piece = parameter(argument, name);
    bool isFirst = argument.getArgNumber() == 0;
    if (!isFirst && currentLine.size() + piece.size() + 5 > columns) {
      text += ",\n";
      currentLine = std::string(14, ' ');
      text += currentLine + piece;
    } else {
      text += (isFirst ? "" : ", ") + piece;
    }
    currentLine += piece + ", ";
  }
  return text + ") {\n";
}

LogicalResult Printer::print(llvm::raw_ostream &os) {
  WalkResult checked = kernel.getBody().walk([&](Operation *op) {
    return failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (checked.wasInterrupted())
    return failure();

  std::string head = signature();
  block(*kernel.getEntry());
  bool hasTensorMaps = llvm::any_of(kernel.getArgumentTypes(), llvm::IsaPred<ptx::TmapType>);

  os << "#ifdef MOEJIT_EMULATOR\n#include \"runtime/emulator/Device.h\"\n#else\n";
  if (hasTensorMaps)
    os << "typedef struct __align__(64) {\n  unsigned long long words[16];\n} TensorMap;\n";
  for (const std::string &wrapper : wrappers)
    os << '\n' << wrapper;
  os << "#endif\n\n";
  os << "extern \"C\" __global__ void __launch_bounds__(" << kernel.getThreads() << ", "
     << kernel.getMinBlocks() << ")";
  if (kernel.getCluster() > 1)
    os << " __cluster_dims__(" << kernel.getCluster() << ", 1, 1)";
  os << '\n' << head << bodyText << "}\n\n";
  os << "#ifdef MOEJIT_EMULATOR\nMOEJIT_EMULATED_KERNEL(moejit_kernel)\n#endif\n";
  return success();
}

LogicalResult moejit::emit::printCuda(ptx::KernelOp kernel, llvm::raw_ostream &os) {
  return Printer(kernel).print(os);
}

// Owns how types, constants and integer arithmetic read in C++.
#include "compiler/emit/CudaExpression.h"

#include "compiler/dialect/ptx/Ptx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace moejit::emit {

using OperandReader = llvm::function_ref<Expression(Value)>;

const char *cudaTypeName(Type type) {
  if (type.isSignlessInteger(1))
    return "bool";
  if (type.isSignlessInteger(32))
    return "int";
  if (type.isSignlessInteger(64))
    return "long long";
  if (type.isF32())
    return "float";
  return nullptr;
}

static Expression integerLiteral(int64_t value, unsigned width) {
  if (width == 1)
    return {value ? "true" : "false"};
  std::string suffix = width == 64 ? "ll" : "";
  // The least integer has no literal: its digits alone are out of range.
  if (value == (width == 64 ? INT64_MIN : INT32_MIN))
    return {std::to_string(value + 1) + suffix + " - 1", Precedence::Additive};
  return {std::to_string(value) + suffix, value < 0 ? Precedence::Unary : Precedence::Primary};
}

std::optional<Expression> literal(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto integer = dyn_cast<IntegerAttr>(constant.getValue());
    if (!integer || !cudaTypeName(integer.getType()))
      return std::nullopt;
    return integerLiteral(integer.getValue().getSExtValue(), integer.getValue().getBitWidth());
  }
  auto constant = dyn_cast<ptx::ConstantF32Op>(op);
  if (!constant || !constant.getValue().isFinite())
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.9g", constant.getValue().convertToFloat());
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return Expression{text + "f", text.front() == '-' ? Precedence::Unary : Precedence::Primary};
}

bool isPrintableArithmetic(Operation *op, std::string &reason) {
  bool known =
      isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivSIOp, arith::DivUIOp,
          arith::RemSIOp, arith::RemUIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::ShLIOp,
          arith::ShRSIOp, arith::ShRUIOp, arith::CmpIOp, arith::SelectOp, arith::ExtSIOp,
          arith::ExtUIOp, arith::TruncIOp, arith::MinSIOp, arith::MaxSIOp, arith::CeilDivSIOp>(op);
  if (!known) {
    reason = "is not on the printer's list";
    return false;
  }
  for (Type type : llvm::concat<Type>(SmallVector<Type>(op->getOperandTypes()),
                                      SmallVector<Type>(op->getResultTypes())))
    if (!type.isSignlessInteger(1) && !type.isSignlessInteger(32) && !type.isSignlessInteger(64) &&
        !(isa<arith::SelectOp>(op) && type.isF32())) {
      llvm::raw_string_ostream(reason)
          << "computes on " << type << ", which is none of i1, i32, i64";
      return false;
    }
  // C++ computes on bool as on int, which is right for logic and nothing else.
  bool onBool = op->getOperand(op->getNumOperands() - 1).getType().isSignlessInteger(1);
  auto compare = dyn_cast<arith::CmpIOp>(op);
  bool isEquality = compare && (compare.getPredicate() == arith::CmpIPredicate::eq ||
                                compare.getPredicate() == arith::CmpIPredicate::ne);
  if (onBool && !isEquality &&
      !isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::SelectOp, arith::ExtSIOp,
           arith::ExtUIOp>(op)) {
    reason = "computes on i1; logic, eq, ne, select, extsi and extui do";
    return false;
  }
  return true;
}

bool repeatsOperands(Operation *op) {
  return isa<arith::MinSIOp, arith::MaxSIOp, arith::CeilDivSIOp>(op);
}

static std::string inside(const Expression &expression, Precedence least) {
  return expression.precedence < least ? "(" + expression.text + ")" : expression.text;
}

static Precedence tighter(Precedence precedence) {
  return static_cast<Precedence>(static_cast<int>(precedence) + 1);
}

/// Left-associative `a symbol b`. `least` is how tightly operands must bind where C++ asks for
/// less, but a reader (and -Wparentheses) for more; the same symbol may follow on the left all the
/// same.
static Expression binary(const Expression &a, StringRef symbol, const Expression &b,
                         Precedence precedence, Precedence least = Precedence::Ternary) {
  bool chains = a.precedence == precedence;
  std::string left = inside(a, chains ? precedence : std::max(precedence, least));
  std::string right = inside(b, std::max(tighter(precedence), least));
  return {left + " " + symbol.str() + " " + right, precedence};
}

static Expression cast(StringRef type, const Expression &expression) {
  return {"(" + type.str() + ")" + inside(expression, Precedence::Unary), Precedence::Unary};
}

static bool isWide(Value value) { return value.getType().isSignlessInteger(64); }

static Expression asUnsigned(Value value, OperandReader operand) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return {std::to_string(constant.getZExtValue()) + (isWide(value) ? "ull" : "u")};
  return cast(isWide(value) ? "unsigned long long" : "unsigned", operand(value));
}

static Expression fromUnsigned(Type type, const Expression &expression) {
  return cast(cudaTypeName(type), expression);
}

static std::pair<const char *, Precedence> comparison(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return {"==", Precedence::Equality};
  case P::ne:
    return {"!=", Precedence::Equality};
  case P::slt:
  case P::ult:
    return {"<", Precedence::Relational};
  case P::sle:
  case P::ule:
    return {"<=", Precedence::Relational};
  case P::sgt:
  case P::ugt:
    return {">", Precedence::Relational};
  case P::sge:
  case P::uge:
    return {">=", Precedence::Relational};
  }
  llvm_unreachable("every predicate is above");
}

static Expression compare(arith::CmpIOp op, arith::CmpIPredicate predicate, OperandReader operand) {
  auto [symbol, precedence] = comparison(predicate);
  bool isUnsigned = predicate >= arith::CmpIPredicate::ult;
  auto read = [&](Value value) { return isUnsigned ? asUnsigned(value, operand) : operand(value); };
  return binary(read(op.getLhs()), symbol, read(op.getRhs()), precedence, Precedence::Shift);
}

Expression negation(Value value, OperandReader operand,
                    llvm::function_ref<bool(Operation *)> isInlined) {
  auto op = value.getDefiningOp<arith::CmpIOp>();
  if (op && isInlined(op))
    return compare(op, arith::invertPredicate(op.getPredicate()), operand);
  return {"!" + inside(operand(value), Precedence::Unary), Precedence::Unary};
}

static Expression ternary(const Expression &condition, const Expression &a, const Expression &b) {
  return {inside(condition, Precedence::Or) + " ? " + inside(a, Precedence::Or) + " : " +
              inside(b, Precedence::Or),
          Precedence::Ternary};
}

/// Rounds up, as ceildivsi does for any signs: the quotient of C++ is too small by one where the
/// exact quotient is positive and has a fraction.
static Expression ceilDiv(arith::CeilDivSIOp op, OperandReader operand) {
  Expression a = operand(op.getLhs()), b = operand(op.getRhs());
  Expression quotient = binary(a, "/", b, Precedence::Multiplicative);
  Expression remainder = binary(a, "%", b, Precedence::Multiplicative);
  APInt divisor;
  if (matchPattern(op.getRhs(), m_ConstantInt(&divisor)) && divisor.isStrictlyPositive())
    return {quotient.text + " + (" + remainder.text + " > 0)", Precedence::Additive};
  std::string divisorText = inside(b, Precedence::Shift);
  return {quotient.text + " + (" + remainder.text + " != 0 && (" + remainder.text + " > 0) == (" +
              divisorText + " > 0))",
          Precedence::Additive};
}

static Expression add(arith::AddIOp op, OperandReader operand) {
  APInt constant;
  if (matchPattern(op.getRhs(), m_ConstantInt(&constant)) && constant.isNegative() &&
      !constant.isMinSignedValue())
    return binary(operand(op.getLhs()), "-",
                  integerLiteral(-constant.getSExtValue(), constant.getBitWidth()),
                  Precedence::Additive);
  return binary(operand(op.getLhs()), "+", operand(op.getRhs()), Precedence::Additive);
}

static Expression extend(Operation *op, bool isSigned, OperandReader operand) {
  Value input = op->getOperand(0);
  const char *type = cudaTypeName(op->getResult(0).getType());
  if (isSigned && input.getType().isSignlessInteger(1))
    return {"-" + cast(type, operand(input)).text, Precedence::Unary};
  if (isSigned || input.getType().isSignlessInteger(1))
    return cast(type, operand(input));
  return cast(type, asUnsigned(input, operand));
}

static Expression truncate(arith::TruncIOp op, OperandReader operand) {
  if (!op.getType().isSignlessInteger(1))
    return cast(cudaTypeName(op.getType()), operand(op.getIn()));
  return {"(" + inside(operand(op.getIn()), Precedence::Unary) + " & 1) != 0",
          Precedence::Equality};
}

/// `a symbol b` on bits, or `a boolSymbol b` on i1.
static Expression logic(Operation *op, StringRef symbol, Precedence precedence,
                        StringRef boolSymbol, Precedence boolPrecedence, OperandReader operand) {
  Expression a = operand(op->getOperand(0)), b = operand(op->getOperand(1));
  if (op->getResult(0).getType().isSignlessInteger(1))
    return binary(a, boolSymbol, b, boolPrecedence, Precedence::Equality);
  return binary(a, symbol, b, precedence, Precedence::Unary);
}

Expression arithmetic(Operation *op, OperandReader operand) {
  auto lhs = [&] { return operand(op->getOperand(0)); };
  auto rhs = [&] { return operand(op->getOperand(1)); };
  auto unsignedBinary = [&](StringRef symbol) {
    return fromUnsigned(op->getResult(0).getType(),
                        binary(asUnsigned(op->getOperand(0), operand), symbol,
                               asUnsigned(op->getOperand(1), operand), Precedence::Multiplicative));
  };
  return llvm::TypeSwitch<Operation *, Expression>(op)
      .Case([&](arith::AddIOp add) { return emit::add(add, operand); })
      .Case([&](arith::SubIOp) { return binary(lhs(), "-", rhs(), Precedence::Additive); })
      .Case([&](arith::MulIOp) { return binary(lhs(), "*", rhs(), Precedence::Multiplicative); })
      .Case([&](arith::DivSIOp) { return binary(lhs(), "/", rhs(), Precedence::Multiplicative); })
      .Case([&](arith::RemSIOp) { return binary(lhs(), "%", rhs(), Precedence::Multiplicative); })
      .Case([&](arith::DivUIOp) { return unsignedBinary("/"); })
      .Case([&](arith::RemUIOp) { return unsignedBinary("%"); })
      .Case([&](arith::AndIOp) {
        return logic(op, "&", Precedence::BitAnd, "&&", Precedence::And, operand);
      })
      .Case([&](arith::OrIOp) {
        return logic(op, "|", Precedence::BitOr, "||", Precedence::Or, operand);
      })
      .Case([&](arith::XOrIOp) {
        bool onBool = op->getResult(0).getType().isSignlessInteger(1);
        if (onBool && matchPattern(op->getOperand(1), m_One()))
          return Expression{"!" + inside(lhs(), Precedence::Unary), Precedence::Unary};
        return logic(op, "^", Precedence::BitXor, "!=", Precedence::Equality, operand);
      })
      .Case([&](arith::ShLIOp) {
        return binary(lhs(), "<<", rhs(), Precedence::Shift, Precedence::Unary);
      })
      .Case([&](arith::ShRSIOp) {
        return binary(lhs(), ">>", rhs(), Precedence::Shift, Precedence::Unary);
      })
      .Case([&](arith::ShRUIOp) {
        return fromUnsigned(op->getResult(0).getType(),
                            binary(asUnsigned(op->getOperand(0), operand), ">>", rhs(),
                                   Precedence::Shift, Precedence::Unary));
      })
      .Case([&](arith::CmpIOp op) { return compare(op, op.getPredicate(), operand); })
      .Case([&](arith::SelectOp op) {
        return ternary(operand(op.getCondition()), operand(op.getTrueValue()),
                       operand(op.getFalseValue()));
      })
      .Case([&](arith::MinSIOp) {
        return ternary(binary(lhs(), "<", rhs(), Precedence::Relational, Precedence::Shift), lhs(),
                       rhs());
      })
      .Case([&](arith::MaxSIOp) {
        return ternary(binary(lhs(), ">", rhs(), Precedence::Relational, Precedence::Shift), lhs(),
                       rhs());
      })
      .Case([&](arith::CeilDivSIOp op) { return ceilDiv(op, operand); })
      .Case([&](arith::ExtSIOp) { return extend(op, /*isSigned=*/true, operand); })
      .Case([&](arith::ExtUIOp) { return extend(op, /*isSigned=*/false, operand); })
      .Case([&](arith::TruncIOp op) { return truncate(op, operand); })
      .Default([](Operation *) -> Expression { llvm_unreachable("not printable arithmetic"); });
}

} // namespace moejit::emit

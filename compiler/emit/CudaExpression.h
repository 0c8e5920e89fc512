// Owns how types, constants and integer arithmetic read in C++: exact in meaning, with no more
// parentheses than needed.
#pragma once

#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace moejit::emit {

/// How tightly an expression binds; a greater one needs no parentheses inside a smaller one.
enum class Precedence {
  Ternary,
  Or,
  And,
  BitOr,
  BitXor,
  BitAnd,
  Equality,
  Relational,
  Shift,
  Additive,
  Multiplicative,
  Unary,
  Primary,
};

struct Expression {
  std::string text;
  Precedence precedence = Precedence::Primary;
};

/// The C++ type of i1, i32, i64 and f32; null for any other.
const char *cudaTypeName(mlir::Type type);

/// The literal that `op` is when it is arith.constant of i1, i32 or i64, or a finite
/// ptx.constant_f32.
std::optional<Expression> literal(mlir::Operation *op);

/// Whether `op` is on the closed list of arithmetic; if not, `reason` says what is wrong with it.
bool isPrintableArithmetic(mlir::Operation *op, std::string &reason);

/// Whether the text of `op` repeats its operands, which must not be long then.
bool repeatsOperands(mlir::Operation *op);

/// The expression of `op`, which isPrintableArithmetic, with its operands read by `operand`. Signed
/// overflow is for the IR to avoid, as in C++; everything else is as arith defines it.
Expression arithmetic(mlir::Operation *op, llvm::function_ref<Expression(mlir::Value)> operand);

/// The expression of `not value`.
Expression negation(mlir::Value value, llvm::function_ref<Expression(mlir::Value)> operand,
                    llvm::function_ref<bool(mlir::Operation *)> isInlined);

} // namespace moejit::emit

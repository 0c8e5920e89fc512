// The expressions of printed kernels as trees: parsed, altered in one place, printed again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moejit::mutation {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

/// A node. `text` is a name, a literal or an operator; operands by kind.
struct Expression {
  enum class Kind {
    Name,        ///< an identifier
    Integer,     ///< 128, 2ll
    Float,       ///< 0.0f
    Unary,       ///< -x, !x
    Cast,        ///< (int)x, (long long)x
    Binary,      ///< a + b
    Conditional, ///< a ? b : c
    Call,        ///< f(a, b); `templateText` holds "<0>" where there is one
    Index,       ///< a[b]
  };
  Kind kind = Kind::Name;
  std::string text;
  std::string templateText;
  std::vector<ExpressionPtr> operands;

  /// Fully parenthesised C.
  std::string print() const;
};

/// Parses all of `text`; null where it is none of the expressions the printer writes.
ExpressionPtr parseExpression(std::string_view text);

} // namespace moejit::mutation

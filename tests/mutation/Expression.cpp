// A recursive-descent parser for the printer's C expressions, by C's precedences.
#include "tests/mutation/Expression.h"

#include <cctype>

namespace moejit::mutation {
namespace {

using Kind = Expression::Kind;

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Parser {
public:
  explicit Parser(std::string_view text) : text(text) {}

  ExpressionPtr whole() {
    ExpressionPtr result = conditional();
    skipSpace();
    return position == text.size() ? std::move(result) : nullptr;
  }

private:
  /// Binary operators, loosest first.
  static const std::vector<std::vector<std::string_view>> &levels() {
    static const std::vector<std::vector<std::string_view>> table = {{"||"},
                                                                     {"&&"},
                                                                     {"|"},
                                                                     {"^"},
                                                                     {"&"},
                                                                     {"==", "!="},
                                                                     {"<=", ">=", "<", ">"},
                                                                     {"<<", ">>"},
                                                                     {"+", "-"},
                                                                     {"*", "/", "%"}};
    return table;
  }

  void skipSpace() {
    while (position < text.size() && text[position] == ' ')
      ++position;
  }

  bool take(std::string_view token) {
    skipSpace();
    if (text.substr(position, token.size()) != token)
      return false;
    position += token.size();
    return true;
  }

  /// Takes `op` unless the text there is a longer operator.
  bool takeOperator(std::string_view op) {
    skipSpace();
    std::string_view rest = text.substr(position);
    if (rest.substr(0, op.size()) != op)
      return false;
    char next = rest.size() > op.size() ? rest[op.size()] : ' ';
    bool isLonger = (op == "<" && (next == '<' || next == '=')) ||
                    (op == ">" && (next == '>' || next == '=')) || (op == "&" && next == '&') ||
                    (op == "|" && next == '|');
    if (isLonger)
      return false;
    position += op.size();
    return true;
  }

  static ExpressionPtr make(Kind kind, std::string text) {
    auto node = std::make_unique<Expression>();
    node->kind = kind;
    node->text = std::move(text);
    return node;
  }

  ExpressionPtr conditional() {
    ExpressionPtr condition = binary(0);
    if (!condition || !take("?"))
      return condition;
    ExpressionPtr node = make(Kind::Conditional, "?");
    ExpressionPtr yes = conditional();
    if (!yes || !take(":"))
      return nullptr;
    ExpressionPtr no = conditional();
    if (!no)
      return nullptr;
    node->operands.push_back(std::move(condition));
    node->operands.push_back(std::move(yes));
    node->operands.push_back(std::move(no));
    return node;
  }

  ExpressionPtr binary(size_t level) {
    if (level == levels().size())
      return unary();
    ExpressionPtr left = binary(level + 1);
    while (left) {
      std::string_view found;
      for (std::string_view op : levels()[level])
        if (takeOperator(op)) {
          found = op;
          break;
        }
      if (found.empty())
        return left;
      ExpressionPtr right = binary(level + 1);
      if (!right)
        return nullptr;
      ExpressionPtr node = make(Kind::Binary, std::string(found));
      node->operands.push_back(std::move(left));
      node->operands.push_back(std::move(right));
      left = std::move(node);
    }
    return nullptr;
  }

  ExpressionPtr wrap(Kind kind, std::string text) {
    ExpressionPtr operand = unary();
    if (!operand)
      return nullptr;
    ExpressionPtr node = make(kind, std::move(text));
    node->operands.push_back(std::move(operand));
    return node;
  }

  ExpressionPtr unary() {
    for (std::string_view cast : {"(int)", "(long long)", "(unsigned)", "(float)"})
      if (take(cast))
        return wrap(Kind::Cast, std::string(cast));
    for (std::string_view op : {"-", "!", "~"})
      if (take(op))
        return wrap(Kind::Unary, std::string(op));
    ExpressionPtr node = primary();
    while (node && take("[")) {
      ExpressionPtr index = conditional();
      if (!index || !take("]"))
        return nullptr;
      ExpressionPtr outer = make(Kind::Index, "[]");
      outer->operands.push_back(std::move(node));
      outer->operands.push_back(std::move(index));
      node = std::move(outer);
    }
    return node;
  }

  ExpressionPtr primary() {
    if (take("(")) {
      ExpressionPtr inner = conditional();
      return inner && take(")") ? std::move(inner) : nullptr;
    }
    skipSpace();
    size_t begin = position;
    while (position < text.size() && (isWord(text[position]) || text[position] == '.'))
      ++position;
    std::string word(text.substr(begin, position - begin));
    if (word.empty())
      return nullptr;
    if (std::isdigit(static_cast<unsigned char>(word[0])))
      return make(word.find('.') == std::string::npos ? Kind::Integer : Kind::Float, word);
    std::string templateText;
    // A template argument is a number right after the name.
    if (position + 1 < text.size() && text[position] == '<' &&
        std::isdigit(static_cast<unsigned char>(text[position + 1]))) {
      size_t end = text.find('>', position);
      if (end == std::string_view::npos)
        return nullptr;
      templateText = text.substr(position, end + 1 - position);
      position = end + 1;
    }
    if (position >= text.size() || text[position] != '(')
      return make(Kind::Name, word);
    ++position;
    ExpressionPtr call = make(Kind::Call, word);
    call->templateText = templateText;
    if (take(")"))
      return call;
    do {
      ExpressionPtr argument = conditional();
      if (!argument)
        return nullptr;
      call->operands.push_back(std::move(argument));
    } while (take(","));
    return take(")") ? std::move(call) : nullptr;
  }

  std::string_view text;
  size_t position = 0;
};

} // namespace

ExpressionPtr parseExpression(std::string_view text) { return Parser(text).whole(); }

std::string Expression::print() const {
  switch (kind) {
  case Kind::Name:
  case Kind::Integer:
  case Kind::Float:
    return text;
  case Kind::Unary:
  case Kind::Cast:
    return text + "(" + operands[0]->print() + ")";
  case Kind::Binary:
    return "(" + operands[0]->print() + " " + text + " " + operands[1]->print() + ")";
  case Kind::Conditional:
    return "(" + operands[0]->print() + " ? " + operands[1]->print() + " : " +
           operands[2]->print() + ")";
  case Kind::Index:
    return operands[0]->print() + "[" + operands[1]->print() + "]";
  case Kind::Call:
    break;
  }
  std::string result = text + templateText + "(";
  for (size_t i = 0; i < operands.size(); ++i)
    result += (i ? ", " : "") + operands[i]->print();
  return result + ")";
}

} // namespace moejit::mutation

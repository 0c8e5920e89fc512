// Line by line: the printer writes one statement a line.
#include "tests/mutation/Mutants.h"

#include "tests/mutation/Expression.h"

#include <fmt/format.h>

#include <regex>
#include <sstream>

namespace moejit::mutation {
namespace {

using Node = Expression;

bool startsWith(const std::string &text, std::string_view prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

std::string trimmed(const std::string &line) {
  size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos ? "" : line.substr(begin);
}

Kind kindOfCall(const std::string &name) {
  const auto isAny = [&](std::initializer_list<std::string_view> prefixes) {
    for (std::string_view prefix : prefixes)
      if (startsWith(name, prefix))
        return true;
    return false;
  };
  if (isAny({"fence_", "wgmma_fence", "regs_pin"}))
    return Kind::Fence;
  if (isAny({"mbarrier_wait", "wgmma_wait", "cluster_wait"}))
    return Kind::Wait;
  if (isAny({"mbarrier_"}))
    return Kind::Arrive;
  if (isAny({"wgmma_commit"}))
    return Kind::Commit;
  if (isAny({"bar_", "syncwarp", "cluster_arrive"}))
    return Kind::Barrier;
  if (isAny({"tma_load"}))
    return Kind::Copy;
  if (isAny({"st_", "stmatrix"}))
    return Kind::Store;
  return Kind::Other;
}

class Rewriter {
public:
  explicit Rewriter(MutatedSource &result) : result(result) {}

  /// The line with all its faults.
  std::string rewrite(const std::string &raw, int number, bool afterPragma) {
    line = number;
    text = trimmed(raw);
    std::string indent = raw.substr(0, raw.size() - text.size());
    std::string made = statement(afterPragma);
    if (!made.empty())
      return indent + made;
    if (!isQuiet())
      result.unread.push_back(fmt::format("{}: {}", line, text));
    return raw;
  }

private:
  /// Lines without anything to alter.
  bool isQuiet() const {
    static const std::regex quiet(R"(|\}|\} else \{|break;|#.*|(int|float|bool) \w+(\[\d+\])*;)");
    return std::regex_match(text, quiet);
  }

  /// "moejit_mutant == N" for a new fault.
  std::string when(Kind kind, std::string change) {
    Mutant mutant;
    mutant.number = static_cast<int>(result.mutants.size()) + 1;
    mutant.kind = kind;
    mutant.line = line;
    mutant.text = text;
    mutant.change = std::move(change);
    result.mutants.push_back(mutant);
    return fmt::format("moejit_mutant == {}", mutant.number);
  }

  std::string statement(bool afterPragma) {
    std::smatch match;
    static const std::regex forLoop(
        R"(for \(int (\w+) = (.*); (\w+) < (.*); (?:\+\+(\w+)|(\w+) \+= (\d+))\) \{)");
    static const std::regex guard(R"(if \((.*)\) \{)");
    static const std::regex loop(R"(while \((.*)\) \{)");
    static const std::regex leave(R"(if \((.*)\))");
    static const std::regex declaration(R"((const )?(int|float|bool|long long) (\w+) = (.*);)");
    static const std::regex assignment(R"((\w+(?:\[.*?\])*) = (.*);)");
    static const std::regex call(R"(\w+(<\d+>)?\(.*\);)");
    if (std::regex_match(text, match, forLoop))
      return rewriteFor(match);
    if (std::regex_match(text, match, guard))
      return rewriteGuard(match[1]);
    if (text == "while (true) {")
      return text;
    if (std::regex_match(text, match, loop))
      return rewriteRendered("while (", match[1], ") {");
    if (std::regex_match(text, match, leave))
      return rewriteRendered("if (", match[1], ")");
    if (std::regex_match(text, match, declaration))
      return rewriteRendered(
          fmt::format("{}{} {} = ", match[1].str(), match[2].str(), match[3].str()), match[4], ";");
    if (std::regex_match(text, match, assignment)) {
      std::string rest = rewriteRendered(match[1].str() + " = ", match[2], ";");
      if (rest.empty() || afterPragma)
        return rest;
      return fmt::format("if (!({})) {}", when(Kind::Other, "left out"), rest);
    }
    if (std::regex_match(text, match, call))
      return rewriteCall();
    return "";
  }

  std::string rewriteRendered(const std::string &before, const std::string &expression,
                              const std::string &after) {
    ExpressionPtr parsed = parseExpression(expression);
    return parsed ? before + render(*parsed) + after : "";
  }

  std::string rewriteGuard(const std::string &condition) {
    ExpressionPtr parsed = parseExpression(condition);
    if (!parsed)
      return "";
    std::string rendered = render(*parsed);
    return fmt::format("if ({} || ({})) {{", when(Kind::Condition, "always"), rendered);
  }

  std::string rewriteFor(const std::smatch &match) {
    std::string name = match[1], step = match[7].matched ? match[7].str() : "1";
    ExpressionPtr begin = parseExpression(match[2].str()), end = parseExpression(match[4].str());
    if (!begin || !end || match[3] != name)
      return "";
    std::string first = fmt::format("({}) * ({})", when(Kind::Loop, "first round left out"), step);
    std::string last = fmt::format("({}) * ({})", when(Kind::Loop, "last round left out"), step);
    return fmt::format("for (int {0} = {1} + {2}; {0} < {3} - {4}; {0} += {5}) {{", name,
                       begin->print(), first, end->print(), last, step);
  }

  std::string rewriteCall() {
    ExpressionPtr parsed = parseExpression(std::string_view(text).substr(0, text.size() - 1));
    if (!parsed || parsed->kind != Node::Kind::Call)
      return "";
    const std::string &name = parsed->text;
    Kind kind = kindOfCall(name);
    std::string arguments;
    size_t count = parsed->operands.size();
    for (size_t i = 0; i < count; ++i) {
      std::string rendered = render(*parsed->operands[i]);
      // tma_load_2d(destination, map, coordinates, barrier): dimension 0 moves by 16 bytes at
      // least.
      bool isCoordinate =
          startsWith(name, "tma_load_") && i >= 2 && i < 2 + static_cast<size_t>(name[9] - '0');
      if (isCoordinate)
        rendered +=
            fmt::format(" + ({}) * {}", when(Kind::Copy, fmt::format("coordinate {} off", i - 2)),
                        i == 2 ? 16 : 1);
      if (name == "mbarrier_wait" && i == 1)
        rendered = fmt::format("({}) ^ (int)({})", rendered, when(Kind::Phase, "other parity"));
      arguments += (i ? ", " : "") + rendered;
    }
    std::string made = fmt::format("{}{}({});", name, parsed->templateText, arguments);
    if (name == "wgmma_wait" && parsed->templateText == "<0>")
      made = fmt::format("if ({}) wgmma_wait<1>(); else {}",
                         when(Kind::Wait, "one group more may be under way"), made);
    if (name == "mbarrier_arrive")
      made = fmt::format("{{ {} if ({}) {} }}", made, when(Kind::Arrive, "made twice"), made);
    return fmt::format("if (!({})) {{ {} }}", when(kind, "left out"), made);
  }

  std::string render(const Node &node, bool isRegisterIndex = false) {
    using K = Node::Kind;
    const auto operand = [&](size_t i) { return render(*node.operands[i], isRegisterIndex); };
    switch (node.kind) {
    case K::Name:
    case K::Float:
      return node.text;
    case K::Integer:
      return renderInteger(node, isRegisterIndex);
    case K::Unary:
    case K::Cast:
      return node.text + "(" + operand(0) + ")";
    case K::Index:
      // A register further on might be none of the array's, so an index only falls.
      return operand(0) + "[" + render(*node.operands[1], /*isRegisterIndex=*/true) + "]";
    case K::Conditional: {
      const Node &asked = *node.operands[0];
      std::string condition =
          isMinOrMax(node) ? asked.operands[0]->print() + asked.text + asked.operands[1]->print()
                           : operand(0);
      std::string yes = operand(1), no = operand(2);
      std::string always = when(Kind::Condition, "first value always");
      std::string never = when(Kind::Condition, "second value always");
      return fmt::format("(({} || {}) && !({}) ? {} : {})", always, condition, never, yes, no);
    }
    case K::Call: {
      std::string arguments;
      for (size_t i = 0; i < node.operands.size(); ++i)
        arguments += (i ? ", " : "") + operand(i);
      return fmt::format("{}{}({})", node.text, node.templateText, arguments);
    }
    case K::Binary:
      break;
    }
    std::string a = operand(0), b = operand(1);
    return renderBinary(node, a, b);
  }

  /// a < b ? a : b and its kin: where both are equal it does not matter which is taken, and its
  /// constants are altered where they are chosen.
  static bool isMinOrMax(const Node &node) {
    const Node &condition = *node.operands[0];
    if (condition.kind != Node::Kind::Binary || condition.operands.size() != 2)
      return false;
    std::string a = condition.operands[0]->print(), b = condition.operands[1]->print();
    std::string yes = node.operands[1]->print(), no = node.operands[2]->print();
    return (condition.text == "<" || condition.text == ">") &&
           ((a == yes && b == no) || (a == no && b == yes));
  }

  std::string renderInteger(const Node &node, bool isRegisterIndex) {
    long long value = std::stoll(node.text);
    if (isRegisterIndex)
      return value == 0 ? node.text
                        : fmt::format("({} - ({}))", node.text,
                                      when(Kind::Constant,
                                           fmt::format("register {} -> {}", value, value - 1)));
    // The unit of a constant: its lowest bit, at most the 16 bytes of a vector.
    long long unit = value == 0 ? 1 : std::min<long long>(value & -value, 16);
    return fmt::format("({} + {} * ({}))", node.text, unit,
                       when(Kind::Constant, fmt::format("{} -> {}", value, value + unit)));
  }

  std::string renderBinary(const Node &node, const std::string &a, const std::string &b) {
    const std::string &op = node.text;
    const auto other = [&](Kind kind, const std::string &change, const std::string &made) {
      return fmt::format("({} ? {} : {} {} {})", when(kind, change), made, a, op, b);
    };
    static const std::pair<const char *, const char *> flipped[] = {
        {"<", "<="}, {"<=", "<"}, {">", ">="}, {">=", ">"}, {"==", "!="}, {"!=", "=="}};
    for (auto [from, to] : flipped)
      if (op == from)
        return other(Kind::Mask, fmt::format("{} -> {}", from, to),
                     fmt::format("({} {} {})", a, to, b));
    if (op == "&&" || op == "||") {
      std::string kept = other(Kind::Mask, "only the first condition", a);
      return fmt::format("({} ? {} : {})", when(Kind::Mask, "only the second condition"), b, kept);
    }
    if (op == "^")
      return other(Kind::Phase, "not flipped", a);
    return fmt::format("({} {} {})", a, op, b);
  }

  MutatedSource &result;
  int line = 0;
  std::string text;
};

} // namespace

const char *kindName(Kind kind) {
  static const char *const names[kindCount] = {
      "fence", "wait",       "phase", "arrive",    "commit",   "barrier", "copy",
      "store", "other call", "mask",  "condition", "constant", "loop"};
  return names[static_cast<int>(kind)];
}

bool isSameFault(const Mutant &a, const Mutant &b) {
  return a.number == b.number && a.kind == b.kind && a.text == b.text && a.change == b.change;
}

MutatedSource mutate(const std::string &source) {
  MutatedSource result;
  Rewriter rewriter(result);
  result.source = "extern \"C\" __attribute__((visibility(\"default\"))) int moejit_mutant;\n"
                  "int moejit_mutant = 0;\n";
  std::istringstream lines(source);
  std::string line, before;
  bool isKernel = false, isBody = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    isKernel |= line.find("__global__") != std::string::npos;
    if (isBody && line == "}")
      isBody = isKernel = false;
    // What one unrolled round assigns to registers is altered where it is computed.
    bool isUnrolled = before.find("+= 4") != std::string::npos || line.find("acc[") == 0;
    result.source += (isBody ? rewriter.rewrite(line, number, isUnrolled) : line) + "\n";
    if (isKernel && !isBody && line.find(") {") != std::string::npos)
      isBody = true;
    before = line;
  }
  return result;
}

} // namespace moejit::mutation

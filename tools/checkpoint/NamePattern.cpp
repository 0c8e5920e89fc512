// Thompson's construction and its simulation, which has no bad case.
#include "tools/checkpoint/NamePattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace moejit::checkpoint {

/// Builds states from the end of the expression to its start, so that each knows what follows it.
class RegexCompiler {
public:
  explicit RegexCompiler(std::string_view text) : text(text) {}

  Result<Regex> compile() {
    // Nodes first: what a repetition repeats has to be built several times.
    int root = readAlternatives(0);
    if (problem.empty() && position != text.size())
      fail("')' without '('");
    if (problem.empty()) {
      regex.states.push_back({});
      regex.start = build(root, 0);
    }
    if (problem.empty() && regex.states.size() > mostStates)
      fail("too long an expression");
    if (!problem.empty())
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("the pattern \"{}\" is not understood: {}", text, problem),
                   {}};
    return std::move(regex);
  }

private:
  static constexpr size_t mostStates = 2000;
  static constexpr size_t mostSteps = 20000; ///< repeated empty groups make steps and no states
  static constexpr int deepest = 100;

  struct Node {
    enum class Kind { Empty, Set, Sequence, Alternatives, Repeat, Start, End } kind = Kind::Empty;
    std::vector<bool> set;
    std::vector<int> parts;
    int least = 0, most = 0; ///< of Repeat; most -1: any number
  };

  void fail(const std::string &what) {
    if (problem.empty())
      problem = fmt::format("{} at {}", what, position);
  }
  bool isOver() const { return position >= text.size() || !problem.empty(); }
  int add(Node node) {
    nodes.push_back(std::move(node));
    return int(nodes.size()) - 1;
  }

  int readAlternatives(int depth) {
    if (depth > deepest)
      return fail("too many groups in one another"), add({});
    Node node;
    node.kind = Node::Kind::Alternatives;
    node.parts.push_back(readSequence(depth));
    while (!isOver() && text[position] == '|') {
      ++position;
      node.parts.push_back(readSequence(depth));
    }
    return add(std::move(node));
  }

  int readSequence(int depth) {
    Node node;
    node.kind = Node::Kind::Sequence;
    while (!isOver() && text[position] != '|' && text[position] != ')')
      node.parts.push_back(readRepeated(depth));
    return add(std::move(node));
  }

  int readRepeated(int depth) {
    int atom = readAtom(depth);
    for (bool isRepeated = false; !isOver(); isRepeated = true) {
      char c = text[position];
      Node node;
      node.kind = Node::Kind::Repeat;
      node.parts = {atom};
      if (c == '*')
        node.least = 0, node.most = -1;
      else if (c == '+')
        node.least = 1, node.most = -1;
      else if (c == '?')
        node.least = 0, node.most = 1;
      else if (c != '{' || !readCounts(node))
        return atom;
      // As in Python; else a long row of them is as deep as it is long.
      if (isRepeated)
        return fail("a repetition of a repetition"), atom;
      if (c != '{')
        ++position;
      if (!isOver() && text[position] == '?')
        ++position;
      atom = add(std::move(node));
    }
    return atom;
  }

  /// "{m}", "{m,}", "{m,n}". Anything else is a brace, as in Python.
  bool readCounts(Node &node) {
    size_t at = position + 1;
    auto number = [&]() -> std::optional<int> {
      size_t begin = at;
      int value = 0;
      while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])))
        value = std::min(value * 10 + (text[at++] - '0'), 1000);
      return at == begin ? std::nullopt : std::optional(value);
    };
    std::optional<int> least = number();
    bool hasComma = at < text.size() && text[at] == ',';
    if (hasComma)
      ++at;
    std::optional<int> most = hasComma ? number() : least;
    if ((!least && !hasComma) || at >= text.size() || text[at] != '}')
      return false;
    node.least = least.value_or(0);
    node.most = most ? *most : -1;
    if (node.least > 64 || node.most > 64 || (node.most >= 0 && node.most < node.least))
      fail("a count beyond 64");
    position = at + 1;
    return true;
  }

  static std::vector<bool> emptySet() { return std::vector<bool>(256, false); }

  /// What `\c` stands for.
  std::vector<bool> escaped(char c) {
    std::vector<bool> set = emptySet();
    char kind = char(std::tolower(static_cast<unsigned char>(c)));
    if (kind == 'd' || kind == 'w' || kind == 's') {
      for (int i = 0; i < 256; ++i) {
        bool isIn = kind == 'd'   ? i < 128 && std::isdigit(i)
                    : kind == 'w' ? i >= 128 || std::isalnum(i) || i == '_'
                                  : i < 128 && std::isspace(i);
        set[size_t(i)] = isIn == (kind == c);
      }
      return set;
    }
    constexpr std::string_view names = "nrtfv", meanings = "\n\r\t\f\v";
    if (size_t at = names.find(c); at != std::string_view::npos)
      set[static_cast<unsigned char>(meanings[at])] = true;
    else if (std::isalnum(static_cast<unsigned char>(c)))
      fail(fmt::format("\\{}", c));
    else
      set[static_cast<unsigned char>(c)] = true;
    return set;
  }

  int readAtom(int depth) {
    Node node;
    char c = text[position++];
    if (c == '(') {
      if (position < text.size() && text[position] == '?') {
        if (text.substr(position, 2) != "?:")
          return fail("a group of a kind of its own"), add({});
        position += 2;
      }
      int inside = readAlternatives(depth + 1);
      if (isOver() || text[position] != ')')
        return fail("'(' without ')'"), inside;
      ++position;
      return inside;
    }
    if (c == '^' || c == '$') {
      node.kind = c == '^' ? Node::Kind::Start : Node::Kind::End;
      return add(std::move(node));
    }
    if (c == '*' || c == '+' || c == '?')
      return fail("nothing to repeat"), add({});
    node.kind = Node::Kind::Set;
    node.set = emptySet();
    if (c == '.') {
      node.set.assign(256, true);
      node.set['\n'] = false;
    } else if (c == '[') {
      readClass(node.set);
    } else if (c == '\\') {
      if (position >= text.size())
        return fail("'\\' at the end"), add({});
      node.set = escaped(text[position++]);
    } else {
      node.set[static_cast<unsigned char>(c)] = true;
    }
    return add(std::move(node));
  }

  void readClass(std::vector<bool> &set) {
    bool isOpposite = position < text.size() && text[position] == '^';
    if (isOpposite)
      ++position;
    bool isFirst = true;
    while (position < text.size() && (text[position] != ']' || isFirst)) {
      isFirst = false;
      unsigned char low = static_cast<unsigned char>(text[position++]);
      if (low == '\\') {
        if (position >= text.size())
          break;
        std::vector<bool> some = escaped(text[position++]);
        for (size_t i = 0; i < 256; ++i)
          set[i] = set[i] || some[i];
        continue;
      }
      unsigned char high = low;
      if (position + 1 < text.size() && text[position] == '-' && text[position + 1] != ']') {
        high = static_cast<unsigned char>(text[position + 1]);
        position += 2;
      }
      if (high < low)
        return fail("a range that falls");
      for (unsigned i = low; i <= high; ++i)
        set[i] = true;
    }
    if (position >= text.size())
      return fail("'[' without ']'");
    ++position;
    if (isOpposite)
      set.flip();
  }

  /// The first state of `node`, which `next` follows.
  int build(int index, int next) {
    if (regex.states.size() > mostStates || ++steps > mostSteps)
      return fail("too long an expression"), next;
    const Node &node = nodes[size_t(index)];
    auto state = [&](Regex::State::Kind kind, int to, int other) {
      Regex::State made;
      made.kind = kind;
      made.next = to;
      made.other = other;
      regex.states.push_back(std::move(made));
      return int(regex.states.size()) - 1;
    };
    switch (node.kind) {
    case Node::Kind::Empty:
      return next;
    case Node::Kind::Set: {
      int made = state(Regex::State::Kind::Set, next, -1);
      regex.states.back().set = node.set;
      return made;
    }
    case Node::Kind::Start:
      return state(Regex::State::Kind::Start, next, -1);
    case Node::Kind::End:
      return state(Regex::State::Kind::End, next, -1);
    case Node::Kind::Sequence:
      for (size_t i = node.parts.size(); i-- > 0;)
        next = build(node.parts[i], next);
      return next;
    case Node::Kind::Alternatives: {
      int made = build(node.parts[0], next);
      for (size_t i = 1; i < node.parts.size(); ++i)
        made = state(Regex::State::Kind::Split, made, build(node.parts[i], next));
      return made;
    }
    case Node::Kind::Repeat: {
      int made = next;
      if (node.most < 0) {
        int loop = state(Regex::State::Kind::Split, -1, next);
        int body = build(node.parts[0], loop);
        regex.states[size_t(loop)].next = body;
        made = loop;
      }
      for (int i = node.least; i < node.most && problem.empty(); ++i)
        made = state(Regex::State::Kind::Split, build(node.parts[0], made), next);
      for (int i = 0; i < node.least && problem.empty(); ++i)
        made = build(node.parts[0], made);
      return made;
    }
    }
    return next;
  }

  std::string_view text;
  size_t position = 0;
  std::string problem;
  size_t steps = 0; ///< of build
  std::vector<Node> nodes;
  Regex regex;
};

/// What one state costs beside one comparison, measured.
constexpr uint64_t stepsOfState = 4;

Result<Regex> Regex::compile(std::string_view text) { return RegexCompiler(text).compile(); }

bool Regex::matchesStart(std::string_view name, uint64_t &steps) const {
  steps += states.size();
  std::vector<int> current, next;
  std::vector<size_t> seen(states.size(), SIZE_MAX);
  std::vector<int> stack;
  for (size_t at = 0;; ++at) {
    stack.assign(current.rbegin(), current.rend());
    if (at == 0)
      stack = {start};
    next.clear();
    while (!stack.empty()) {
      int index = stack.back();
      stack.pop_back();
      steps += stepsOfState;
      if (seen[size_t(index)] == at)
        continue;
      seen[size_t(index)] = at;
      const State &state = states[size_t(index)];
      switch (state.kind) {
      case State::Kind::Accept:
        return true;
      case State::Kind::Split:
        stack.push_back(state.next);
        stack.push_back(state.other);
        break;
      case State::Kind::Start:
        if (at == 0)
          stack.push_back(state.next);
        break;
      case State::Kind::End:
        if (at == name.size())
          stack.push_back(state.next);
        break;
      case State::Kind::Set:
        if (at < name.size() && state.set[static_cast<unsigned char>(name[at])])
          next.push_back(state.next);
        break;
      }
    }
    if (at >= name.size() || next.empty())
      return false;
    current.swap(next);
  }
}

bool matchesGlob(std::string_view pattern, std::string_view name, uint64_t &steps) {
  // The last '*' takes one more character whenever the rest fails: earlier ones never need to.
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  auto one = [&](size_t &at, char c) {
    if (pattern[at] == '?')
      return ++at, true;
    if (pattern[at] == '[') {
      size_t i = at + 1;
      bool isOpposite = i < pattern.size() && pattern[i] == '!';
      i += isOpposite;
      bool isIn = false;
      size_t first = i;
      while (i < pattern.size() && (pattern[i] != ']' || i == first)) {
        char low = pattern[i], high = low;
        if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
          high = pattern[i + 2];
          i += 2;
        }
        isIn = isIn || (c >= low && c <= high);
        ++i;
        ++steps;
      }
      if (i < pattern.size())
        return at = i + 1, isIn != isOpposite;
    }
    return pattern[at++] == c;
  };
  while (n < name.size()) {
    ++steps;
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resume = n;
      continue;
    }
    size_t after = p;
    if (p < pattern.size() && one(after, name[n])) {
      p = after;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

} // namespace moejit::checkpoint

// A recursive-descent reader that stops at the first thing that is wrong.
#include "runtime/JsonReader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

namespace moejit {
namespace {

class Reader {
public:
  Reader(std::string_view text, const JsonOptions &options) : text(text), options(options) {}

  Result<JsonValue> read() {
    JsonValue value = readValue(0);
    skipSpace();
    if (position != text.size())
      fail("the end of the text");
    if (!problem.empty())
      return Error{ErrorCode::ParseError, problem, {}};
    return value;
  }

private:
  static constexpr int deepest = 64;

  char peek() const { return position < text.size() ? text[position] : '\0'; }
  bool isOver() const { return !problem.empty() || position >= text.size(); }
  void skipSpace() {
    while (position < text.size() && std::string_view(" \n\r\t").find(text[position]) < 4)
      ++position;
  }
  void fail(const std::string &expected) {
    if (problem.empty())
      problem = fmt::format("byte {}: expected {}", position, expected);
  }
  bool take(char wanted) {
    if (isOver() || text[position] != wanted)
      return false;
    ++position;
    return true;
  }

  JsonValue readValue(int depth) {
    JsonValue value;
    skipSpace();
    value.position = position;
    if (depth > deepest)
      return fail(fmt::format("at most {} levels", deepest)), value;
    if (++count > options.maxValues)
      return fail(fmt::format("at most {} values", options.maxValues)), value;
    char first = peek();
    if (first == '{')
      readObject(value, depth);
    else if (first == '[')
      readArray(value, depth);
    else if (first == '"') {
      value.kind = JsonValue::Kind::String;
      value.text = readString();
    } else if (options.allowsNonFinite &&
               (takeWord("NaN") || takeWord("Infinity") || takeWord("-Infinity"))) {
      value.kind = JsonValue::Kind::Number;
      value.number = first == 'N' ? std::numeric_limits<double>::quiet_NaN()
                                  : std::copysign(HUGE_VAL, first == '-' ? -1.0 : 1.0);
    } else if (first == '-' || (first >= '0' && first <= '9'))
      readNumber(value);
    else if (takeWord("true") || takeWord("false")) {
      value.kind = JsonValue::Kind::Boolean;
      value.boolean = first == 't';
    } else if (!takeWord("null"))
      fail("a value");
    return value;
  }

  bool takeWord(std::string_view word) {
    if (text.substr(position, word.size()) != word)
      return false;
    position += word.size();
    return true;
  }

  void readArray(JsonValue &value, int depth) {
    value.kind = JsonValue::Kind::Array;
    take('[');
    skipSpace();
    if (take(']'))
      return;
    while (problem.empty()) {
      value.items.push_back(readValue(depth + 1));
      skipSpace();
      if (take(']'))
        return;
      if (!take(','))
        return fail("',' or ']'");
    }
  }

  void readObject(JsonValue &value, int depth) {
    value.kind = JsonValue::Kind::Object;
    take('{');
    skipSpace();
    if (take('}'))
      return;
    // Few names are compared one by one; many are looked up, for files whose tensors are names.
    constexpr size_t few = 16;
    std::set<std::string> names;
    while (problem.empty()) {
      skipSpace();
      if (peek() != '"')
        return fail("a name in quotes");
      size_t begin = position;
      std::string name = readString();
      if (value.members.size() == few)
        for (const auto &[earlier, unused] : value.members)
          names.insert(earlier);
      bool isRepeated =
          value.members.size() < few ? value.find(name) != nullptr : !names.insert(name).second;
      if (isRepeated) {
        position = begin;
        return fail(fmt::format("each name once, got \"{}\" again", name));
      }
      skipSpace();
      if (!take(':'))
        return fail("':'");
      JsonValue member = readValue(depth + 1);
      value.members.emplace_back(std::move(name), std::move(member));
      skipSpace();
      if (take('}'))
        return;
      if (!take(','))
        return fail("',' or '}'");
    }
  }

  void readDigits() {
    size_t begin = position;
    while (peek() >= '0' && peek() <= '9')
      ++position;
    if (position == begin)
      fail("a digit");
  }

  void readNumber(JsonValue &value) {
    value.kind = JsonValue::Kind::Number;
    size_t begin = position;
    take('-');
    if (!take('0'))
      readDigits();
    if (take('.'))
      readDigits();
    if (take('e') || take('E')) {
      if (!take('+'))
        take('-');
      readDigits();
    }
    value.number = std::strtod(std::string(text.substr(begin, position - begin)).c_str(), nullptr);
    if (!std::isfinite(value.number) && !options.allowsNonFinite)
      fail("a number that a double can hold");
  }

  unsigned readHex() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      char c = peek();
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0)
        return fail("four hexadecimal digits"), 0;
      code = code * 16 + unsigned(digit);
      ++position;
    }
    return code;
  }

  void addCode(std::string &out, unsigned code) {
    if (code >= 0xd800 && code < 0xdc00) {
      unsigned low = take('\\') && take('u') ? readHex() : 0;
      if (low < 0xdc00 || low > 0xdfff)
        return fail("the second half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code <= 0xdfff)
      return fail("the first half of a surrogate pair");
    if (code < 0x80) {
      out += char(code);
      return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out += char((more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0) | (code >> (6 * more)));
    while (more-- > 0)
      out += char(0x80 | ((code >> (6 * more)) & 0x3f));
  }

  /// The bytes that follow `first` in a code point of UTF-8 (RFC 3629: shortest form, no
  /// surrogates, at most U+10FFFF).
  void readRestOfCode(unsigned first, std::string &out) {
    int more = first >= 0xc2 && first < 0xe0   ? 1
               : first >= 0xe0 && first < 0xf0 ? 2
               : first >= 0xf0 && first < 0xf5 ? 3
                                               : 0;
    if (more == 0)
      --position;
    for (int i = 0; i < more && problem.empty(); ++i) {
      unsigned next = static_cast<unsigned char>(peek());
      bool isSecond = i == 0;
      unsigned least = isSecond && first == 0xe0 ? 0xa0 : isSecond && first == 0xf0 ? 0x90 : 0x80;
      unsigned most = isSecond && first == 0xed ? 0x9f : isSecond && first == 0xf4 ? 0x8f : 0xbf;
      if (next < least || next > most)
        return fail("UTF-8");
      out += char(next);
      ++position;
    }
    if (more == 0)
      fail("UTF-8");
  }

  std::string readString() {
    std::string out;
    take('"');
    while (!isOver()) {
      char c = text[position];
      if (static_cast<unsigned char>(c) < 0x20)
        break;
      ++position;
      if (c == '"')
        return out;
      if (c != '\\') {
        out += c;
        if (static_cast<unsigned char>(c) >= 0x80)
          readRestOfCode(static_cast<unsigned char>(c), out);
        continue;
      }
      constexpr std::string_view escapes = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
      if (take('u'))
        addCode(out, readHex());
      else if (size_t at = escapes.find(peek()); !isOver() && at != std::string_view::npos) {
        out += meanings[at];
        ++position;
      } else
        fail("an escape");
    }
    fail("the end of the string");
    return out;
  }

  std::string_view text;
  const JsonOptions &options;
  size_t position = 0;
  size_t count = 0; ///< values so far
  std::string problem;
};

} // namespace

const JsonValue *JsonValue::find(std::string_view name) const {
  auto found = std::find_if(members.begin(), members.end(),
                            [&](const auto &member) { return member.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

std::optional<int64_t> JsonValue::integer() const {
  if (kind != Kind::Number || number != std::floor(number) || std::fabs(number) > 0x1p53)
    return std::nullopt;
  return int64_t(number);
}

Result<JsonValue> parseJson(std::string_view text, const JsonOptions &options) {
  return Reader(text, options).read();
}

} // namespace moejit

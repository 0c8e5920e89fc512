// Changes of bytes, words, numbers and pieces.
#include "tests/fuzz/Mutator.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>

namespace fuzz {
namespace {

/// Numbers at which arithmetic goes wrong.
constexpr const char *numbers[] = {
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "16",
    "63",
    "64",
    "100",
    "127",
    "128",
    "129",
    "255",
    "256",
    "1023",
    "1024",
    "1025",
    "4096",
    "65535",
    "65536",
    "1048576",
    "1048577",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "1e308",
    "1e-400",
    "1e999",
    "9007199254740993",
    "0.5",
    "00",
    "nan",
    "4611686018427387904",
    "-0",
    "1.",
    "+1",
    "9223372036854775807",
    "0x10",
    "1_000",
    "1e2",
    "-9223372036854775808",
    "18446744073709551615",
    "9223372036854775808",
};

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Where the bracket at `open` is closed; npos when it is none, or never is.
size_t closingOf(const std::string &text, size_t open) {
  size_t which = std::string("([{<").find(text[open]);
  if (which == std::string::npos)
    return which;
  char closer = ")]}>"[which];
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    depth += text[i] == text[open];
    depth -= text[i] == closer;
    if (depth == 0)
      return i;
  }
  return std::string::npos;
}

} // namespace

void Mutator::changeNumber(std::string &text) {
  if (text.empty())
    return;
  size_t at = below(text.size());
  for (size_t tried = 0; tried < text.size() && !isDigit(text[at]); ++tried)
    at = (at + 1) % text.size();
  if (!isDigit(text[at]))
    return;
  size_t begin = at, end = at;
  while (begin > 0 && isDigit(text[begin - 1]))
    --begin;
  while (end < text.size() && isDigit(text[end]))
    ++end;
  std::string number = text.substr(begin, end - begin);
  switch (below(4)) {
  case 0:
    number = std::to_string(std::strtoull(number.c_str(), nullptr, 10) + 1 - 2 * below(2));
    break;
  case 1: // neighbours of powers of two
    number = std::to_string((uint64_t(1) << below(64)) + below(3) - 1);
    break;
  case 2:
    number = std::to_string(std::strtoull(number.c_str(), nullptr, 10) << below(8));
    break;
  default:
    number = numbers[below(std::size(numbers))];
  }
  text.replace(begin, end - begin, number);
}

void Mutator::changeOnce(std::string &text, const std::string &other) {
  size_t at = below(text.size() + 1);
  size_t length = 1 + below(std::min<size_t>(64, text.size() - at + 1));
  switch (below(14)) {
  case 0: // a bit
    if (at < text.size())
      text[at] = char(text[at] ^ (1 << below(8)));
    return;
  case 1: { // a byte that means something
    constexpr char bytes[] = {0,   1,   '\x7f', '\x80', '\xff', '"', '\\', '{', '}',
                              '[', ']', ',',    ':',    '\n',   '<', '>',  '-', '=',
                              ';', '*', '#',    '%',    '!',    '@', '(',  ')'};
    if (at < text.size())
      text[at] = bytes[below(sizeof bytes)];
    return;
  }
  case 2:
    text.erase(at, length);
    return;
  case 3: // once more
    text.insert(at, text.substr(at, length));
    return;
  case 4:
  case 5:
    changeNumber(text);
    return;
  case 6: // a word in place of a word
  case 7: {
    size_t begin = at, end = at;
    while (begin > 0 && isWordCharacter(text[begin - 1]))
      --begin;
    while (end < text.size() && isWordCharacter(text[end]))
      ++end;
    text.replace(begin, end - begin, words[below(words.size())]);
    return;
  }
  case 8:
    text.insert(at, words[below(words.size())]);
    return;
  case 9: { // a piece of another input
    size_t from = below(other.size() + 1);
    text.replace(at, below(2) * length, other.substr(from, 1 + below(128)));
    return;
  }
  case 10: // the head of this, the tail of the other
    text = text.substr(0, at) + other.substr(below(other.size() + 1));
    return;
  case 11: { // what is between brackets: gone, or once more
    for (size_t tried = 0; tried < 32 && !text.empty(); ++tried) {
      size_t open = below(text.size()), close = closingOf(text, open);
      if (close == std::string::npos)
        continue;
      if (below(2))
        text.erase(open, close - open + 1);
      else
        text.insert(close + 1, text.substr(open, close - open + 1));
      return;
    }
    return;
  }
  case 12: { // a line, or a field between commas, elsewhere
    char separator = ",\n;"[below(3)];
    size_t end = text.find(separator, at);
    if (end == std::string::npos)
      return;
    size_t next = text.find(separator, end + 1);
    std::string piece = text.substr(end, next == std::string::npos ? next : next - end);
    if (below(2))
      text.erase(end, piece.size());
    size_t to = text.find(separator, below(text.size() + 1));
    text.insert(to == std::string::npos ? text.size() : to, piece);
    return;
  }
  default: { // eight bytes as a number of a binary format
    uint64_t value = below(2) ? uint64_t(1) << below(64) : below(300);
    size_t bytes = size_t(1) << below(4);
    if (at + bytes <= text.size())
      std::memcpy(text.data() + at, &value, bytes);
  }
  }
}

std::string Mutator::mutate(std::string input, const std::string &other, size_t maxBytes) {
  for (size_t i = 0, changes = 1 + below(1 + below(8)); i < changes; ++i)
    changeOnce(input, other);
  if (input.size() > maxBytes)
    input.resize(maxBytes);
  return input;
}

std::vector<std::string> wordsOf(const std::vector<std::string> &texts, size_t most) {
  std::set<std::string> words;
  for (const std::string &text : texts)
    for (size_t begin = 0; begin < text.size() && words.size() < most;) {
      size_t end = begin;
      while (end < text.size() && isWordCharacter(text[end]))
        ++end;
      if (end > begin && end - begin <= 40)
        words.insert(text.substr(begin, end - begin));
      begin = end + 1;
    }
  return {words.begin(), words.end()};
}

} // namespace fuzz

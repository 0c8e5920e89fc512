// JSON text: escaping and layout.
#include "tools/moejit/Json.h"

#include <fmt/format.h>

#include <cmath>

namespace moejit::tool {
namespace {

/// Length of the well-formed UTF-8 sequence at the start of `text` (Unicode, table 3-7); 0: none.
size_t utf8Length(std::string_view text) {
  auto at = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : 0; };
  auto follows = [&](size_t i) { return (at(i) & 0xc0) == 0x80; };
  uint8_t first = at(0), second = at(1);
  if (first < 0x80)
    return 1;
  if (first >= 0xc2 && first <= 0xdf)
    return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    bool isFit = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second <= 0x9f);
    return isFit && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    bool isFit = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second <= 0x8f);
    return isFit && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

} // namespace

std::string jsonString(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    size_t length = utf8Length(text);
    char c = text.front();
    if (length == 0)
      quoted += "\\ufffd";
    else if (c == '"' || c == '\\')
      quoted += std::string("\\") + c;
    else if (c == '\n')
      quoted += "\\n";
    else if (uint8_t(c) < 0x20 || c == 0x7f)
      quoted += fmt::format("\\u{:04x}", unsigned(uint8_t(c)));
    else
      quoted += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return quoted + '"';
}

void JsonWriter::newLine() {
  out += '\n';
  out.append(size_t(depth) * 2, ' ');
}

void JsonWriter::separate() {
  if (isAfterKey) {
    isAfterKey = false;
    return;
  }
  if (depth == 0)
    return;
  if (!isFirst)
    out += ',';
  newLine();
}

JsonWriter &JsonWriter::open(char bracket) {
  separate();
  out += bracket;
  ++depth;
  isFirst = true;
  return *this;
}

JsonWriter &JsonWriter::close(char bracket) {
  --depth;
  if (!isFirst)
    newLine();
  out += bracket;
  isFirst = false;
  return *this;
}

JsonWriter &JsonWriter::key(std::string_view name) {
  separate();
  out += jsonString(name) + ": ";
  isAfterKey = true;
  return *this;
}

JsonWriter &JsonWriter::raw(std::string_view json) {
  separate();
  out += json;
  isFirst = false;
  return *this;
}

JsonWriter &JsonWriter::real(double value) {
  return std::isfinite(value) ? raw(fmt::format("{}", value)) : null();
}

} // namespace moejit::tool

// A message of bounded length that owns no heap memory: a thread that fails is never resumed, so
// nothing on its stack is ever destroyed.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace moejit::emulated {

class Text {
public:
  Text() = default;
  Text(std::string_view text) : length(text.copy(characters, sizeof characters)) {}
  Text(const char *text) : Text(std::string_view(text)) {}

  template <typename... Arguments>
  static Text format(fmt::format_string<Arguments...> pattern, Arguments &&...arguments) {
    Text text;
    text.length = fmt::format_to_n(text.characters, sizeof text.characters, pattern,
                                   std::forward<Arguments>(arguments)...)
                      .out -
                  text.characters;
    return text;
  }

  bool empty() const { return length == 0; }
  std::string_view view() const { return {characters, length}; }

private:
  size_t length = 0;
  char characters[504];
};

} // namespace moejit::emulated

template <> struct fmt::formatter<moejit::emulated::Text> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const moejit::emulated::Text &text, Context &context) const {
    return fmt::formatter<std::string_view>::format(text.view(), context);
  }
};

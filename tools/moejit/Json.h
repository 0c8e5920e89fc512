// Writes JSON, value by value. Knows nothing of what it says.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace moejit::tool {

/// `text` as a JSON string, quotes included. Bytes that are no UTF-8 come out as U+FFFD.
std::string jsonString(std::string_view text);

/// Builds one JSON text, indented by two. Calls must nest as JSON does.
class JsonWriter {
public:
  JsonWriter &beginObject() { return open('{'); }
  JsonWriter &endObject() { return close('}'); }
  JsonWriter &beginArray() { return open('['); }
  JsonWriter &endArray() { return close(']'); }
  JsonWriter &key(std::string_view name);

  JsonWriter &string(std::string_view value) { return raw(jsonString(value)); }
  JsonWriter &number(int64_t value) { return raw(std::to_string(value)); }
  /// NaN and infinities, which JSON has not, become null.
  JsonWriter &real(double value);
  JsonWriter &boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter &null() { return raw("null"); }
  /// `json` as it is.
  JsonWriter &raw(std::string_view json);

  JsonWriter &field(std::string_view name, std::string_view value) {
    return key(name).string(value);
  }
  JsonWriter &field(std::string_view name, const char *value) { return key(name).string(value); }
  template <std::integral T> JsonWriter &field(std::string_view name, T value) {
    if constexpr (std::same_as<T, bool>)
      return key(name).boolean(value);
    else
      return key(name).number(int64_t(value));
  }
  JsonWriter &field(std::string_view name, double value) { return key(name).real(value); }

  /// The text so far, with a line end.
  std::string text() const { return out + "\n"; }

private:
  JsonWriter &open(char bracket);
  JsonWriter &close(char bracket);
  void separate();
  void newLine();

  std::string out;
  int depth = 0;
  bool isFirst = true;
  bool isAfterKey = false;
};

} // namespace moejit::tool

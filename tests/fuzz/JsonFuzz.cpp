// JSON texts: answered, in time, however deep, large or repetitive.
#include "runtime/JsonReader.h"
#include "tests/fuzz/Fuzz.h"

using namespace moejit;

const char *const fuzz::dictionary[] = {
    "null",           "true",    "false",    "[[[[[[[[", "]]]]]]]]", "{\"a\":", "1e308", "-0.0",
    "\\ud83d\\ude00", "\\u0000", "\xff\xfe", "\xc3\xa9", "1E+9",     "\"\"",    ":",     nullptr};

static size_t countValues(const JsonValue &value, int depth) {
  fuzz::require(depth <= 65, "values are as deep as promised");
  size_t count = 1;
  for (const JsonValue &item : value.items)
    count += countValues(item, depth + 1);
  for (const auto &[name, member] : value.members) {
    fuzz::require(value.find(name) == &member, "a name is found, and is the only one");
    count += countValues(member, depth + 1);
  }
  (void)value.integer();
  return count;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Result<JsonValue> value = parseJson(fuzz::textOf(data, size));
  if (value)
    fuzz::require(countValues(*value, 0) <= size, "no value without a byte");
  else
    fuzz::require(value.error().code == ErrorCode::ParseError, "a refusal is a ParseError");
  return 0;
}

// Reads JSON texts strictly (RFC 8259). Knows nothing of what they say.
#pragma once

#include "runtime/Result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moejit {

/// One JSON value and all that is in it.
struct JsonValue {
  enum class Kind { Null, Boolean, Number, String, Array, Object };

  Kind kind = Kind::Null;
  bool boolean = false;
  double number = 0;
  std::string text;                                       ///< of a string, decoded to UTF-8
  std::vector<JsonValue> items;                           ///< of an array
  std::vector<std::pair<std::string, JsonValue>> members; ///< of an object, in order
  size_t position = 0;                                    ///< byte where the value begins

  /// The member `name` of an object; null when there is none, or this is no object.
  const JsonValue *find(std::string_view name) const;
  /// The value as an integer; nothing when it is none, or beyond 2^53.
  std::optional<int64_t> integer() const;
};

struct JsonOptions {
  /// Takes NaN, Infinity and -Infinity, which Python writes, and numbers no double can hold as
  /// infinities. RFC 8259 has none of them.
  bool allowsNonFinite = false;
  size_t maxValues = size_t(1) << 22; ///< values in all; one takes about 130 bytes of memory
};

/// Reads `text`, whole. At most 64 levels deep; a name may occur once in an object; strings are
/// UTF-8. Time grows with length (times its logarithm in objects of many names), memory with the
/// number of values. Never crashes on hostile bytes. Errors: ParseError with the byte position and
/// what was expected.
Result<JsonValue> parseJson(std::string_view text, const JsonOptions &options = {});

} // namespace moejit

// The one error type of the library and the value-or-error it travels in. No exception crosses a
// library door.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace moejit {

/// What kind of failure an Error is; stable, and mirrored by the C API.
enum class ErrorCode {
  InvalidArgument, ///< the caller passed something outside a function's contract
  RuleViolation,   ///< a rule of the table refuses it; the message carries its id (MJ001…)
  ParseError,      ///< text or bytes that are not what they claim to be
  NotFound,        ///< nothing under that name, key or path
  NotInCache,      ///< never-compile mode, and the cache has no such kernel
  CaptureActive,   ///< a kernel not yet built was asked for while its stream captures
  CompileError,    ///< a pass or NVRTC failed; notes carry the log
  DriverError,     ///< libcuda said no; the message names the CUresult
  Unavailable,     ///< a library or device this call needs is not on this machine
  IoError,         ///< the file system said no
  Internal,        ///< a defect of moejit
};

/// Returns the stable lower-case name of `code`, such as "rule-violation".
const char *errorCodeName(ErrorCode code);

/// A failure: what went wrong, where, and in `notes` what would work instead.
struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;
  std::vector<std::string> notes = {};

  /// The message and its notes, one line each.
  std::string text() const;
};

/// Either a T or an Error. Test with `if (!result)` before reading `*result`.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state.index() == 0; }
  T &operator*() { return *std::get_if<0>(&state); }
  const T &operator*() const { return *std::get_if<0>(&state); }
  T *operator->() { return std::get_if<0>(&state); }
  const T *operator->() const { return std::get_if<0>(&state); }
  Error &error() { return *std::get_if<1>(&state); }
  const Error &error() const { return *std::get_if<1>(&state); }

private:
  std::variant<T, Error> state;
};

/// Success without a value, or an Error.
template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : state(std::move(error)) {}

  explicit operator bool() const { return state.index() == 0; }
  Error &error() { return *std::get_if<1>(&state); }
  const Error &error() const { return *std::get_if<1>(&state); }

private:
  std::variant<std::monostate, Error> state;
};

} // namespace moejit

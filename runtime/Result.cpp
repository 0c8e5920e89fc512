// Names and texts of errors.
#include "runtime/Result.h"

namespace moejit {

const char *errorCodeName(ErrorCode code) {
  switch (code) {
  case ErrorCode::InvalidArgument:
    return "invalid-argument";
  case ErrorCode::RuleViolation:
    return "rule-violation";
  case ErrorCode::ParseError:
    return "parse-error";
  case ErrorCode::NotFound:
    return "not-found";
  case ErrorCode::NotInCache:
    return "not-in-cache";
  case ErrorCode::CaptureActive:
    return "capture-active";
  case ErrorCode::CompileError:
    return "compile-error";
  case ErrorCode::DriverError:
    return "driver-error";
  case ErrorCode::Unavailable:
    return "unavailable";
  case ErrorCode::IoError:
    return "io-error";
  case ErrorCode::Internal:
    break;
  }
  return "internal";
}

std::string Error::text() const {
  std::string all = message;
  for (const std::string &note : notes)
    all += "\n  note: " + note;
  return all;
}

} // namespace moejit

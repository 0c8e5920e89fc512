// Results, errors and their names.
#include "runtime/Result.h"

#include <doctest/doctest.h>

#include <memory>
#include <set>

using namespace moejit;

TEST_CASE("a result holds a value or an error") {
  Result<int> value(3);
  REQUIRE(value);
  CHECK(*value == 3);
  Result<int> failed(Error{ErrorCode::IoError, "no", {}});
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::IoError);
  CHECK(bool(Result<void>()));
  CHECK_FALSE(bool(Result<void>(Error{})));
}

TEST_CASE("a result carries values that only move") {
  Result<std::unique_ptr<int>> owned(std::make_unique<int>(7));
  std::unique_ptr<int> moved = std::move(*owned);
  CHECK(*moved == 7);
}

TEST_CASE("the text of an error has one line for each note") {
  Error error{ErrorCode::InvalidArgument, "bad", {"one", "two"}};
  CHECK(error.text() == "bad\n  note: one\n  note: two");
}

TEST_CASE("names of error codes are all different") {
  std::set<std::string> names;
  for (int code = 0; code <= int(ErrorCode::Internal); ++code)
    names.insert(errorCodeName(ErrorCode(code)));
  CHECK(names.size() == size_t(ErrorCode::Internal) + 1);
  CHECK(std::string(errorCodeName(ErrorCode::RuleViolation)) == "rule-violation");
}

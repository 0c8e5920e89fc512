// What a fuzz target gives and may use. The entry point is libFuzzer's, so that a target also links
// with -fsanitize=fuzzer; Driver.cpp drives it with nothing but a C++ compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Runs the target on one input. Returns 0. A crash, a failed fuzz::require, a sanitizer's report
/// or a run longer than the driver's limit is a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace fuzz {

/// Words that mutations put into inputs besides those of the corpus; ends with a null. Defined by
/// the target.
extern const char *const dictionary[];

/// Aborts, naming `property`, unless it holds.
void require(bool holds, const char *property);

/// The input as text.
inline std::string_view textOf(const uint8_t *data, size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

} // namespace fuzz

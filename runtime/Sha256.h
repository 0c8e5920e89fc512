// SHA-256 (FIPS 180-4), for the names of cache entries and the checksums of artifacts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace moejit {

/// The 32 digest bytes of `bytes`. Pure; thread-safe.
std::array<uint8_t, 32> sha256(std::string_view bytes);
/// The digest as 64 lower-case hexadecimal characters.
std::string sha256Hex(std::string_view bytes);

} // namespace moejit

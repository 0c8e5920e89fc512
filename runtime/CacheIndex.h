// Which rows which kernel of a lookup key serves, and the text of the file that says so. Touches no
// file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moejit {

/// A closed range of row counts and the kernel meant for it.
struct IndexedRange {
  int64_t minRows = 0;
  int64_t maxRows = 0;
  std::string name; ///< keyName of the build key
  bool operator==(const IndexedRange &) const = default;
};

/// `ranges` with [added.minRows, added.maxRows] given to `added` alone; ascending, without
/// overlaps.
std::vector<IndexedRange> withRange(const std::vector<IndexedRange> &ranges, IndexedRange added);

/// The kernels of one lookup key.
struct CacheIndex {
  std::string lookupKey;            ///< full text
  std::vector<IndexedRange> ranges; ///< ascending
};

/// The text of the file `<keyName(lookupKey)>.index`: a checksum, the key, a line for each range.
std::string indexText(const CacheIndex &index);
/// Reads what indexText wrote; nothing for any other text.
std::optional<CacheIndex> parseIndex(std::string_view text);

} // namespace moejit

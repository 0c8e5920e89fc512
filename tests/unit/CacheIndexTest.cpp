// The index: a round trip, and that no other text passes for one.
#include "runtime/CacheIndex.h"

#include "runtime/Sha256.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace moejit;

namespace {

CacheIndex sample() {
  return {
      "spec=a\ntarget=b\n",
      {{0, 64, sha256Hex("low")}, {65, std::numeric_limits<int64_t>::max(), sha256Hex("high")}}};
}

} // namespace

TEST_CASE("an index comes back as it was, whatever lines its key has") {
  for (const char *key : {"spec=a\ntarget=b\n", "", "\n", "0 1 x\n2 3 y\n", "no line end"}) {
    CacheIndex index = sample();
    index.lookupKey = key;
    for (size_t count : {2u, 1u, 0u}) {
      index.ranges.resize(count);
      std::optional<CacheIndex> read = parseIndex(indexText(index));
      REQUIRE(read);
      CHECK(read->lookupKey == key);
      CHECK(read->ranges == index.ranges);
    }
  }
}

TEST_CASE("every changed byte and every cut of an index is noticed") {
  std::string text = indexText(sample());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = char(changed[at] ^ 1);
    CHECK_FALSE(parseIndex(changed));
    CHECK_FALSE(parseIndex(text.substr(0, at)));
  }
}

TEST_CASE("a right checksum does not make an index of other text") {
  for (const std::string &body :
       {std::string("moejit-index 1\n"), std::string("moejit-index 1\n5\nkey"),
        std::string("moejit-index 1\n99999999999999999999\nkey"),
        std::string("moejit-index 1\n1\nkey\n0 1 short"),
        "moejit-index 2\n1\nkey\n0 1 " + std::string(64, 'a'),
        "moejit-index 1\n1\nkey\n0 1 " + std::string(63, 'a') + "/",
        "moejit-index 1\n01\nkey\n0 1 " + std::string(64, 'a'),
        "moejit-index 1\n1\nkey\n00 1 " + std::string(64, 'a')})
    CHECK_FALSE(parseIndex(sha256Hex(body) + "\n" + body + "\n"));
  // Ranges that run backwards, overlap, or begin below zero.
  std::string name = sha256Hex("low");
  for (std::vector<IndexedRange> ranges : {std::vector<IndexedRange>{{5, 3, name}},
                                           {{0, 64, name}, {64, 99, name}},
                                           {{65, 99, name}, {0, 64, name}},
                                           {{-1, 3, name}}})
    CHECK_FALSE(parseIndex(indexText({"key", ranges})));
}

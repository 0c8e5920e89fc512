// Count generators and the reader of routing files.
#include "tests/oracle/Routing.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <numeric>
#include <string>

using namespace moejit;
using namespace moejit::oracle;

namespace {
int64_t sumOf(const std::vector<int64_t> &counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t(0));
}
} // namespace

TEST_CASE("counts sum to the rows, and each kind has its shape") {
  std::vector<int64_t> uniform = drawCounts(Routing::uniform(), 8, 8000, 1);
  CHECK(sumOf(uniform) == 8000);
  CHECK(*std::min_element(uniform.begin(), uniform.end()) > 800);
  CHECK(*std::max_element(uniform.begin(), uniform.end()) < 1200);

  std::vector<int64_t> skewed = drawCounts(Routing::skewed(), 8, 8000, 1);
  CHECK(sumOf(skewed) == 8000);
  std::sort(skewed.rbegin(), skewed.rend());
  CHECK(skewed[0] > 2 * skewed[2]); // Zipf: 1, 1/2, 1/3
  CHECK(skewed[7] > 0);

  std::vector<int64_t> one = drawCounts(Routing::oneExpert(3), 8, 50, 1);
  CHECK(one[3] == 50);
  CHECK(sumOf(one) == 50);
  CHECK(sumOf(drawCounts(Routing::empty(), 8, 50, 1)) == 0);
  CHECK(drawCounts(Routing::fromCounts({1, 2}), 2, 50, 1) == std::vector<int64_t>{1, 2});
}

TEST_CASE("the same seed draws the same counts, another seed others") {
  CHECK(drawCounts(Routing::skewed(), 16, 1000, 7) == drawCounts(Routing::skewed(), 16, 1000, 7));
  CHECK(drawCounts(Routing::skewed(), 16, 1000, 7) != drawCounts(Routing::skewed(), 16, 1000, 8));
}

TEST_CASE("edge counts hold the tile and its neighbours, and empty experts at both ends") {
  std::vector<int64_t> counts = edgeCounts(128);
  for (int64_t wanted : {0, 1, 127, 128, 129, 255, 257})
    CHECK(std::count(counts.begin(), counts.end(), wanted) >= 1);
  CHECK(counts.front() == 0);
  CHECK(counts.back() == 0);
}

TEST_CASE("routing files: both forms") {
  Result<Routing> counts = parseRouting(" { \"counts\" : [ 3, 0,\n5 ] }\n");
  REQUIRE(counts);
  CHECK(counts->kind == Routing::Kind::Counts);
  CHECK(counts->counts == std::vector<int64_t>{3, 0, 5});
  Result<Routing> offsets = parseRouting(R"({"offsets":[-4,0,2147483647]})");
  REQUIRE(offsets);
  CHECK(offsets->kind == Routing::Kind::Offsets);
  CHECK(offsets->offsets == std::vector<int32_t>{-4, 0, 2147483647});
}

TEST_CASE("routing files: anything else is refused, with its place") {
  for (const char *bad : {"",
                          "{",
                          "[]",
                          "{}",
                          "{\"counts\"}",
                          "{\"counts\":}",
                          "{\"counts\":[]}",
                          "{\"counts\":[1,]}",
                          "{\"counts\":[1 2]}",
                          "{\"counts\":[1]",
                          "{\"counts\":[1]}x",
                          "{\"counts\":[-1]}",
                          "{\"counts\":[1.5]}",
                          "{\"counts\":[1e3]}",
                          "{\"counts\":[01]}",
                          "{\"counts\":[--1]}",
                          "{\"counts\":[2147483647,1]}",
                          "{\"offsets\":[2147483648]}",
                          "{\"offsets\":[99999999999999999999]}",
                          "{\"rows\":[1]}",
                          "{\"counts\":[1],\"offsets\":[1]}",
                          "{\"counts\":[null]}",
                          "{counts:[1]}"}) {
    CAPTURE(bad);
    Result<Routing> result = parseRouting(bad);
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::ParseError);
    CHECK(result.error().message.find("byte ") != std::string::npos);
  }
  Result<Routing> result = parseRouting("{\"counts\":[1, x]}");
  REQUIRE(!result);
  CHECK(result.error().message == "routing, byte 14: expected an integer");

  std::string many = "{\"counts\":[0";
  for (int i = 0; i < 70000; ++i)
    many += ",0";
  CHECK(!parseRouting(many + "]}"));
}

TEST_CASE("routing files: no prefix or single-byte change crashes the reader") {
  const std::string text = R"({"offsets": [0, 12, -3]})";
  for (size_t length = 0; length < text.size(); ++length)
    CHECK(!parseRouting(std::string_view(text).substr(0, length)));
  int accepted = 0;
  for (size_t at = 0; at < text.size(); ++at)
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = text;
      changed[at] = char(byte);
      accepted += bool(parseRouting(changed));
    }
  CHECK(accepted > 0); // digits exchanged for digits
}

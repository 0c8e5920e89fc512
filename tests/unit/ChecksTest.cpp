// How the error words of a checked launch read.
#include "runtime/Checks.h"

#include "Samples.h"

#include <doctest/doctest.h>

#include <array>

using namespace moejit;

namespace {

using Words = std::array<int64_t, errorWords>;

std::string textOf(const Spec &spec, CheckKind kind, int64_t index) {
  Words words = {};
  words[size_t(kind)] = checkWord(index);
  return describeChecks(spec, words);
}

} // namespace

TEST_CASE("no word set means that nothing was found") {
  CHECK(checkFindings(Words{}).empty());
  CHECK(describeChecks(samples::spec(), Words{}).empty());
}

TEST_CASE("the least index of a kind is the one that a maximum keeps") {
  // What the device does: words only rise, from zero.
  int64_t word = 0;
  for (int64_t index : {int64_t(70), int64_t(3), int64_t(1) << 40, int64_t(3)})
    word = std::max(word, checkWord(index));
  Words words = {};
  words[size_t(CheckKind::WScale)] = word;
  CHECK(checkFindings(words) == std::vector<CheckFinding>{{CheckKind::WScale, 3}});
  // Index 0 is no zero word.
  CHECK(checkWord(0) > 0);
}

TEST_CASE("words that no kernel writes are no findings") {
  Words words;
  words.fill(INT64_MIN);
  words[0] = -1;
  CHECK(checkFindings(words).empty());
}

TEST_CASE("findings come in the order of kinds, one sentence each") {
  Words words = {};
  words[size_t(CheckKind::OffsetOrder)] = checkWord(2);
  words[size_t(CheckKind::OffsetRange)] = checkWord(4);
  CHECK(describeChecks(samples::spec(), words) ==
        "offsets: entry 4 lies outside the rows; offsets: entry 2 is less than the one before");
}

TEST_CASE("sentences name the expert where the index says it") {
  Spec spec = samples::spec(); // 4 experts
  int64_t perExpert = 1;
  std::vector<int64_t> shape = scaleShape(spec.wScales, wShape(spec), spec.numExperts);
  for (size_t d = 1; d < shape.size(); ++d)
    perExpert *= shape[d];
  CHECK(textOf(spec, CheckKind::WScale, 2 * perExpert) ==
        "wScales: element " + std::to_string(2 * perExpert) +
            " (expert 2) is not positive and finite");
  CHECK(textOf(spec, CheckKind::XScale, 5) == "xScales: element 5 is not positive and finite");
  spec.xScales = {};
  spec.xScales.granule = {Granule::expert(), Granule::whole()};
  CHECK(textOf(spec, CheckKind::XScale, 3) ==
        "xScales: element 3 (expert 3) is not positive and finite");
  spec.wScales.granule = {Granule::whole(), Granule::whole(), Granule::whole()};
  CHECK(textOf(spec, CheckKind::WScale, 0) == "wScales: element 0 is not positive and finite");
}

TEST_CASE("sentences give the limits of counts, ids and maps") {
  Spec spec = samples::spec();
  spec.dispatch = Dispatch::Masked;
  spec.maxRows = 64;
  CHECK(textOf(spec, CheckKind::CountRange, 1) == "counts: that of expert 1 is not from 0 to 64");
  spec.dispatch = Dispatch::Batched;
  CHECK(textOf(spec, CheckKind::IdRange, 9) == "expertIds: that of row 9 is below -1");
  spec.expertMapSize = 16;
  CHECK(textOf(spec, CheckKind::IdRange, 9) ==
        "expertIds: that of row 9 is neither -1 nor below the 16 of the map");
  CHECK(textOf(spec, CheckKind::MapRange, 12) ==
        "expertMap: entry 12 is neither -1 nor one of 4 experts");
}

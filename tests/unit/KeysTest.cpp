// Keys: what changes them, what does not, and one pinned digest.
#include "runtime/Keys.h"

#include "Samples.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>

using namespace moejit;

namespace {

const GeneratorIdentity generator = {"f00d", "13.0", "-arch=sm_90a --fmad=false"};

std::string keyOf(const Spec &spec, const Target &target = {}, std::string_view plan = "tileM=128",
                  const GeneratorIdentity &identity = generator) {
  return buildKeyText(lookupKeyText(spec, target), plan, identity);
}

} // namespace

// A change here makes every kernel on every disk a miss, and every bundle useless: it must be
// meant.
TEST_CASE("the names of keys are pinned") {
  std::string lookup = lookupKeyText(samples::spec(), Target());
  CAPTURE(lookup);
  CHECK(keyName(lookup) == "87fdd067d5976fc0b293089723c1b2580766e38e96188a86490e296dd10e1a1a");
  CHECK(keyName(keyOf(samples::spec())) ==
        "fe637adcd2da9fb5fbe24b7f5f0842a685f9002f1e82e29f7eec4ac80c251873");
}

// triton #1556 and sglang #34274: whatever the kernel depends on is in its key.
TEST_CASE("every real change makes another key") {
  std::set<std::string> keys = {keyOf(samples::spec())};
  size_t expected = 1;
  auto differs = [&](const std::string &key) {
    CAPTURE(key);
    CHECK(keys.insert(key).second);
    CHECK(keys.size() == ++expected);
  };
  const std::function<void(Spec &)> changes[] = {
      [](Spec &s) { s.dispatch = Dispatch::Batched; },
      [](Spec &s) { s.numExperts = 5; },
      [](Spec &s) { s.n = 264; },
      [](Spec &s) { s.k = 528; },
      [](Spec &s) { s.xType = ElementType::F8E5M2; },
      [](Spec &s) { s.outType = ElementType::F16; },
      [](Spec &s) { s.wScales.granule[1] = Granule::of(64); },
      [](Spec &s) { s.wScales.type = ElementType::F8E8M0FNU; },
      [](Spec &s) { s.wScales.parts = 2; },
      [](Spec &s) { s.xScales.source = ScaleSource::Static; },
      [](Spec &s) { s.xScales.order = ScaleOrder::RowMajor; },
      [](Spec &s) { s.xScales.alignBytes = 0; },
      [](Spec &s) { s.wScales.phase = {0, 64, 0}; },
      [](Spec &s) { s.accumulate = Accumulate::Fast; },
      [](Spec &s) { s.skipped = Skipped::Untouched; },
  };
  for (const auto &change : changes) {
    Spec spec = samples::spec();
    change(spec);
    differs(keyOf(spec));
  }
  Target other;
  other.arch = "sm_80";
  differs(keyOf(samples::spec(), other));
  Target bigger;
  bigger.profile.smCount = 144;
  differs(keyOf(samples::spec(), bigger));
  differs(keyOf(samples::spec(), {}, "tileM=64"));
  differs(keyOf(samples::spec(), {}, "tileM=128", {"f00e", "13.0", generator.flags}));
  differs(keyOf(samples::spec(), {}, "tileM=128", {"f00d", "12.8", generator.flags}));
  differs(keyOf(samples::spec(), {}, "tileM=128", {"f00d", "13.0", "-arch=sm_90a"}));
}

TEST_CASE("equal contents make equal keys") {
  CHECK(keyOf(samples::spec()) == keyOf(samples::spec()));
  Spec spelledOut = samples::spec();
  spelledOut.wScales.phase = {0, 0, 0};
  CHECK(keyOf(spelledOut) == keyOf(samples::spec()));
}

TEST_CASE("a value cannot pose as another field") {
  GeneratorIdentity forged = {"f00d\nnvrtc=13.0", "", ""};
  GeneratorIdentity honest = {"f00d", "13.0", ""};
  CHECK(keyOf(samples::spec(), {}, "p", forged) != keyOf(samples::spec(), {}, "p", honest));
  GeneratorIdentity escaped = {"a\\nb", "", ""};
  GeneratorIdentity broken = {"a\nb", "", ""};
  CHECK(keyOf(samples::spec(), {}, "p", escaped) != keyOf(samples::spec(), {}, "p", broken));
}

TEST_CASE("a build key is its lookup key and one line for each further field") {
  std::string lookup = lookupKeyText(samples::spec(), Target());
  std::string key = keyOf(samples::spec());
  CHECK(key.substr(0, lookup.size()) == lookup);
  CHECK(
      key.substr(lookup.size()) ==
      "plan=tileM=128\ngenerator=f00d\nnvrtc=13.0\nflags=-arch=sm_90a --fmad=false\nformat=2.1\n");
}

TEST_CASE("checked kernels are looked up under a key of their own, others as ever") {
  PlanRequest request;
  std::string plain = lookupKeyText(samples::spec(), Target());
  CHECK(lookupKeyText(samples::spec(), Target(), request) == plain);
  request.checked = true;
  CHECK(lookupKeyText(samples::spec(), Target(), request) == plain + "checked=true\n");
}

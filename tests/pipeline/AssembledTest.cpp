// What the assembler makes of kernels: those that are meant to be fast keep their wgmmas in flight
// and their registers; whatever the rules allow compiles, fast or not.
#include "compiler/Compile.h"
#include "compiler/Nvrtc.h"
#include "tests/pipeline/MatrixSpecs.h"

#include <doctest/doctest.h>

using namespace moejit;

namespace {

/// False, and says so, where this machine has no NVRTC.
bool hasNvrtc() {
  Result<Nvrtc> nvrtc = Nvrtc::open({});
  if (!nvrtc)
    MESSAGE("not run: ", nvrtc.error().message);
  return static_cast<bool>(nvrtc);
}

Spec deepseek(int64_t n, int64_t k) {
  Spec spec;
  spec.numExperts = 32;
  spec.n = n;
  spec.k = k;
  spec.xScales.granule = {Granule::of(1), Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  return spec;
}

} // namespace

TEST_CASE("kernels of a prefill and of a decode step spill nothing and serialise nothing") {
  if (!hasNvrtc())
    return;
  for (const Spec &spec : {deepseek(4096, 7168), deepseek(7168, 2048)})
    for (const PlannedRange &range : planRanges(spec, Target())) {
      CAPTURE(planText(range.plan));
      Result<Artifact> artifact = compile(spec, Target(), range.plan);
      REQUIRE(artifact);
      CHECK(parsePerformanceWarnings(artifact->compileLog).empty());
      // A producer of 24 registers keeps a word of its draw elsewhere, once a tile.
      const int64_t most = range.plan.tailRows > 0 && range.plan.raster > 1 ? 8 : 0;
      CHECK(artifact->resources.spillStoreBytes <= most);
      CHECK(artifact->resources.spillLoadBytes <= most);
    }
}

TEST_CASE("kernels that multiply the other way round spill nothing and serialise nothing") {
  if (!hasNvrtc())
    return;
  KernelPlan base;
  base.swapOperands = true;
  for (const char *text : {"tileM=64,tileN=128,stages=8,fitRows=16",
                           "tileM=192,tileN=128,fitRows=32", "tileM=128,tileN=256"}) {
    CAPTURE(text);
    Result<Artifact> artifact = compile(deepseek(4096, 7168), Target(), *parsePlan(text, base));
    REQUIRE(artifact);
    CHECK(parsePerformanceWarnings(artifact->compileLog).empty());
    CHECK(artifact->resources.spillStoreBytes == 0);
    CHECK(artifact->resources.spillLoadBytes == 0);
  }
}

TEST_CASE("a kernel whose wgmmas the assembler serialises is one all the same") {
  if (!hasNvrtc())
    return;
  Spec spec = deepseek(192, 128); // one step, rounded to fp8 in groups that are longer
  spec.numExperts = 5;
  spec.quantizeFrom = ElementType::F16;
  spec.skipped = Skipped::Untouched;
  spec.xScales = {};
  spec.xScales.granule = {Granule::of(1), Granule::of(160)};
  spec.xScales.type = ElementType::F8E8M0FNU;
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales = {};
  spec.wScales.granule = {Granule::whole(), Granule::whole(), Granule::whole()};
  Result<Artifact> artifact = compile(spec, Target(), choosePlan(spec, Target(), 64));
  REQUIRE_MESSAGE(artifact, (artifact ? "" : artifact.error().text()));
  CHECK(!artifact->cubin.empty());
}

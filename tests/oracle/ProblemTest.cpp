// Test data has the properties that tests lean on.
#include "tests/oracle/Problem.h"

#include "tests/oracle/Fp8.h"
#include "tests/oracle/ScaleGeometry.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <set>

using namespace moejit;
using namespace moejit::oracle;

namespace {

const Granule one = Granule::of(1), g128 = Granule::of(128), whole = Granule::whole();

Spec blockSpec() {
  Spec spec;
  spec.numExperts = 4;
  spec.n = 264;
  spec.k = 336;
  spec.xScales.granule = {one, g128};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.wScales.granule = {one, g128, g128};
  spec.wScales.parts = 2;
  return spec;
}

} // namespace

TEST_CASE("codes are finite, use the range and differ by seed") {
  for (ElementType type : {ElementType::F8E4M3FN, ElementType::F8E5M2}) {
    Spec spec = blockSpec();
    spec.wType = type;
    HostProblem problem = makeProblem(spec, 10, Routing::uniform(), 1);
    std::set<uint8_t> seen(problem.w.begin(), problem.w.end());
    CHECK(seen.size() > 100);
    for (uint8_t code : seen)
      CHECK(std::isfinite(decodeTable(type)[code]));
    CHECK(makeProblem(spec, 10, Routing::uniform(), 1).w == problem.w);
    CHECK(makeProblem(spec, 10, Routing::uniform(), 2).w != problem.w);
  }
}

TEST_CASE("the data of a seed is pinned") {
  HostProblem problem = makeProblem(blockSpec(), 10, Routing::uniform(), 1);
  uint64_t hash = 0xcbf29ce484222325ull; // FNV-1a
  for (const auto *bytes : {&problem.x, &problem.w})
    for (uint8_t byte : *bytes)
      hash = (hash ^ byte) * 0x100000001b3ull;
  CHECK(hash == 6688682845607251446ull);
}

TEST_CASE("scales are all distinct, positive and span 2^±8") {
  HostProblem problem = makeProblem(blockSpec(), 300, Routing::uniform(), 1);
  for (const auto *scales : {&problem.xScales, &problem.wScales}) {
    std::set<float> distinct;
    for (float scale : *scales)
      if (!std::isnan(scale))
        CHECK(distinct.insert(scale).second);
    CHECK(*distinct.begin() > 0);
    double span = std::log2(*distinct.rbegin() / *distinct.begin());
    CHECK(span > 14);
    CHECK(span <= 16);
  }
  CHECK(problem.xScales.size() == 3 * 300);
  CHECK(problem.wScales.size() ==
        4 * 4 * 3); // experts, 2 parts of ceil(132 / 128), ceil(336 / 128)
}

TEST_CASE("y is of a size that every output type holds") {
  for (ElementType out : {ElementType::BF16, ElementType::F16, ElementType::F32}) {
    Spec spec = blockSpec();
    spec.outType = out;
    HostProblem problem = makeProblem(spec, 64, Routing::uniform(), 5);
    OracleResult result = reference(problem);
    double largest = 0;
    for (double value : result.reference)
      largest = std::max(largest, std::fabs(value));
    CHECK(largest < 65504.0 / 4 * (out == ElementType::F16 ? 1 : 1e3));
    CHECK(largest > 1e-2);
  }
}

TEST_CASE("padding and rows that nobody owns are poison") {
  HostProblem problem = makeProblem(
      blockSpec(), 20, Routing::fromCounts({3, 0, 4, 5}), 1,
      {.leadingRows = 2, .trailingRows = 6, .xPadBytes = 20, .yPadElements = 3, .xScalePad = 1});
  CHECK(problem.offsets == std::vector<int32_t>{2, 5, 5, 9, 14});
  CHECK(problem.xStride == 368); // 356 rounded up to 16
  CHECK(problem.yStride == 272); // 267 rounded up to 8 bf16
  CHECK(problem.xScaleStride == 24);
  for (int64_t r = 0; r < 20; ++r) {
    const uint8_t *row = problem.x.data() + r * problem.xStride;
    bool owned = r >= 2 && r < 14;
    CHECK(std::all_of(row, row + 336, [](uint8_t b) { return b == poisonByte; }) == !owned);
    CHECK(std::all_of(row + 336, row + 368, [](uint8_t b) { return b == poisonByte; }));
  }
  for (int64_t i = 20; i < 24; ++i)
    CHECK(std::isnan(problem.xScales[i]));
  for (ElementType type : {ElementType::BF16, ElementType::F16, ElementType::F32}) {
    uint8_t bytes[4] = {poisonByte, poisonByte, poisonByte, poisonByte};
    CHECK(std::isnan(readElement(type, bytes, 0)));
  }
}

TEST_CASE("the canary check sees each neighbour of y") {
  HostProblem problem = makeProblem(blockSpec(), 3, Routing::uniform(), 1, {.yPadElements = 8});
  HostOutput output = HostOutput::make(problem);
  CHECK(findOverwrittenCanary(problem, output).empty());
  auto *y = static_cast<uint8_t *>(output.data());
  CHECK(reinterpret_cast<uintptr_t>(y) % 16 == 0);
  for (int64_t offset :
       {int64_t(-1), problem.spec.n * 2, 3 * output.rowBytes, 3 * output.rowBytes - 1}) {
    CAPTURE(offset);
    y[offset] = 0;
    CHECK(!findOverwrittenCanary(problem, output).empty());
    y[offset] = poisonByte;
  }
  y[0] = y[problem.spec.n * 2 - 1] = 0; // inside row 0
  CHECK(findOverwrittenCanary(problem, output).empty());
}

TEST_CASE("other dispatch forms get their own routing") {
  Spec spec = blockSpec();
  spec.dispatch = Dispatch::Batched;
  HostProblem batched = makeProblem(spec, 12, Routing::fromCounts({3, 0, 4, 2}), 1);
  std::vector<int32_t> owners = rowOwners(batched);
  CHECK(std::count(owners.begin(), owners.end(), 0) == 3);
  CHECK(std::count(owners.begin(), owners.end(), 2) == 4);
  CHECK(std::count(owners.begin(), owners.end(), -1) == 3);
  CHECK(std::count(batched.expertIds.begin(), batched.expertIds.end(), -1) >= 1);
  CHECK(std::count(batched.expertIds.begin(), batched.expertIds.end(), 4) >= 1);
  spec.expertMapSize = 8;
  HostProblem mapped = makeProblem(spec, 12, Routing::fromCounts({3, 0, 4, 2}), 1);
  CHECK(rowOwners(mapped) == owners);
  CHECK(mapped.expertIds != batched.expertIds);

  spec.dispatch = Dispatch::Masked;
  spec.maxRows = 5;
  spec.xScales.granule = {one, one, g128};
  HostProblem masked = makeProblem(spec, 20, Routing::fromCounts({3, 0, 4, 9}), 1);
  CHECK(masked.counts == std::vector<int32_t>{3, 0, 4, 5});

  CHECK(masked.xScaleStride == 8); // 5 rows, aligned to 16 bytes
  CHECK(masked.xScales.size() == 4 * 3 * 8);

  spec.dispatch = Dispatch::Eager;
  spec.numExperts = 1;
  spec.xScales.granule = {one, g128};
  CHECK(rowOwners(makeProblem(spec, 4, Routing::uniform(), 1)) == std::vector<int32_t>(4, 0));
}

TEST_CASE("e8m0 scales are powers of two and keep their bytes") {
  Spec spec = blockSpec();
  spec.wScales.granule = {one, one, Granule::of(32)};
  spec.wScales.type = ElementType::F8E8M0FNU;
  HostProblem problem = makeProblem(spec, 4, Routing::uniform(), 1);
  std::vector<uint8_t> bytes = storedScales(spec.wScales, problem.wScales);
  REQUIRE(bytes.size() == problem.wScales.size());
  std::set<uint8_t> distinct(bytes.begin(), bytes.end());
  CHECK(distinct.size() == 17);
  for (size_t i = 0; i < bytes.size(); ++i)
    REQUIRE(decodeE8M0(bytes[i]) == problem.wScales[i]);
  CHECK(storedScales(spec.xScales, problem.xScales).size() == problem.xScales.size() * 4);
}

TEST_CASE("what a launch quantizes is drawn first, and codes and scales follow by definition") {
  Spec spec = blockSpec();
  spec.dispatch = Dispatch::Batched;
  spec.quantizeFrom = ElementType::F16;
  spec.xScales.type = ElementType::F8E8M0FNU;
  ProblemOptions options;
  options.xPadBytes = 20;
  const HostProblem problem = makeProblem(spec, 9, Routing::fromCounts({3, 0, 2, 1}), 4, options);
  const std::vector<int32_t> owners = rowOwners(problem);
  const ScaleGeometry scales = ScaleGeometry::ofX(spec, problem.rows, problem.xScaleStride);
  CHECK(problem.xSourceStride % 8 == 0);
  CHECK(problem.xSourceStride > spec.k);
  std::set<float> seen;
  for (int64_t r = 0; r < problem.rows; ++r) {
    for (int64_t k = spec.k; k < problem.xSourceStride; ++k)
      CHECK(std::isnan(
          readElement(ElementType::F16, problem.xSource.data(), r * problem.xSourceStride + k)));
    for (int64_t k = 0; k < spec.k; ++k) {
      const auto value = float(
          readElement(ElementType::F16, problem.xSource.data(), r * problem.xSourceStride + k));
      if (owners[r] < 0) {
        CHECK(std::isnan(value));
        CHECK(problem.x[r * problem.xStride + k] == poisonByte);
        continue;
      }
      REQUIRE(std::isfinite(value));
      const float scale = problem.xScales[scales.index(owners[r], r, k)];
      seen.insert(scale);
      CHECK(std::exp2(std::round(std::log2(scale))) == scale);
      // Rounded up: nothing saturates, and half of the range is used at least somewhere.
      CHECK(std::fabs(value / scale) <= 448);
      CHECK(problem.x[r * problem.xStride + k] == quantize(value, scale, spec.xType));
    }
  }
  CHECK(seen.size() > 6);
}

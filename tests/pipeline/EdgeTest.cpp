// The edges of the contract, one by one: who owns a row, the least and the most of every extent,
// numbers that are none, tensors past 2^31 elements.
#include "tests/oracle/Fp8.h"
#include "tests/oracle/ScaleGeometry.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstring>
#include <sys/mman.h>

using namespace moejit;
using namespace moejit::test;

namespace {

/// Scales per token and channel: the plainest kernel with an index on each side.
Spec tokens(Dispatch dispatch, int64_t experts, int64_t n, int64_t k) {
  Spec spec;
  spec.dispatch = dispatch;
  spec.numExperts = experts;
  spec.n = n;
  spec.k = k;
  spec.xScales.granule = {Granule::of(1), Granule::whole()};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales.granule = {Granule::of(1), Granule::of(1), Granule::whole()};
  if (dispatch == Dispatch::Masked)
    spec.xScales.granule.insert(spec.xScales.granule.begin(), Granule::of(1));
  if (dispatch == Dispatch::Eager)
    spec.wScales.granule.erase(spec.wScales.granule.begin());
  return spec;
}

Spec blocks(int64_t experts, int64_t n, int64_t k) {
  Spec spec = tokens(Dispatch::Grouped, experts, n, k);
  spec.xScales.granule[1] = Granule::of(128);
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  return spec;
}

Artifact kernel(const Spec &spec, int64_t rows = 1) {
  return build(spec, choosePlan(spec, Target(), rows));
}

void check(const Artifact &artifact, const oracle::HostProblem &problem) {
  std::string wrong = run(artifact, problem, ThreadOrder::RoundRobin).wrong;
  CHECK_MESSAGE(wrong.empty(), wrong);
}

/// Address space of `bytes` that costs memory only where it is touched.
class Sparse {
public:
  explicit Sparse(size_t bytes) : size(bytes) {
    void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    begin = mapped == MAP_FAILED ? nullptr : static_cast<uint8_t *>(mapped);
    REQUIRE(begin);
  }
  ~Sparse() { munmap(begin, size); }
  Sparse(const Sparse &) = delete;
  Sparse &operator=(const Sparse &) = delete;

  uint8_t *begin;

private:
  size_t size;
};

TensorArgument tensor(const void *data) { return {const_cast<void *>(data), 0}; }

} // namespace

// Every boundary takes every one of these values, in every combination: below 0, none, inside,
// all, and past the end.
TEST_CASE("whatever offsets say, rows have one owner or none, and nothing else is touched") {
  constexpr int32_t rows = 9;
  const int32_t values[] = {INT_MIN, 0, 4, rows, INT_MAX};
  for (Skipped skipped : {Skipped::Zeroed, Skipped::Untouched}) {
    Spec spec = tokens(Dispatch::Grouped, 2, 8, 16);
    spec.skipped = skipped;
    Artifact artifact = kernel(spec);
    for (int32_t first : values)
      for (int32_t second : values)
        for (int32_t last : values) {
          CAPTURE(first);
          CAPTURE(second);
          CAPTURE(last);
          check(artifact, oracle::makeProblem(
                              spec, rows, oracle::Routing::fromOffsets({first, second, last}), 7));
        }
  }
}

TEST_CASE("whatever counts say, buffers are read and written inside") {
  const int32_t values[] = {INT_MIN, 0, 1, 5, 6, INT_MAX};
  for (Skipped skipped : {Skipped::Zeroed, Skipped::Untouched}) {
    Spec spec = tokens(Dispatch::Masked, 2, 8, 16);
    spec.maxRows = 5;
    spec.skipped = skipped;
    Artifact artifact = kernel(spec);
    for (int32_t first : values)
      for (int32_t second : values) {
        CAPTURE(first);
        CAPTURE(second);
        // Rows that some counts leave out are no poison under others.
        oracle::HostProblem problem =
            oracle::makeProblem(spec, 10, oracle::Routing::fromCounts({5, 5}), 7);
        problem.counts = {first, second};
        check(artifact, problem);
      }
  }
}

// -1 is the sentinel of most engines, E that of others; 2^31 - 1 is what a sort leaves, INT_MIN
// what nobody expects.
TEST_CASE("whatever ids say, rows of no expert are nobody's") {
  for (Skipped skipped : {Skipped::Zeroed, Skipped::Untouched}) {
    Spec spec = tokens(Dispatch::Batched, 3, 8, 16);
    spec.skipped = skipped;
    Artifact artifact = kernel(spec);
    oracle::HostProblem problem = oracle::makeProblem(spec, 70, oracle::Routing::uniform(), 7);
    check(artifact, problem);
    const int32_t sentinels[] = {-1, 3, INT_MAX, INT_MIN, 4, -2, 1 << 30};
    for (size_t row = 0; row < problem.expertIds.size(); row += 3)
      problem.expertIds[row] = sentinels[row % 7];
    check(artifact, problem);
    for (int32_t sentinel : sentinels) {
      problem.expertIds.assign(problem.expertIds.size(), sentinel);
      check(artifact, problem);
    }
  }
}

TEST_CASE("from one expert to 1024, each with a row or without") {
  for (Dispatch dispatch : {Dispatch::Grouped, Dispatch::Masked, Dispatch::Batched})
    for (int64_t experts : {1, 1024}) {
      CAPTURE(experts);
      Spec spec = tokens(dispatch, experts, 8, 16);
      spec.skipped = Skipped::Untouched;
      if (dispatch == Dispatch::Masked)
        spec.maxRows = 2;
      // The first, the last, both sides of a warp's and a block's number of experts.
      std::vector<int64_t> counts(size_t(experts), 0);
      int64_t rows = 0;
      for (int64_t e : {int64_t(0), int64_t(31), int64_t(32), int64_t(383), int64_t(384),
                        int64_t(1022), experts - 1})
        if (e < experts)
          counts[size_t(e)] = 1 + e % 2;
      for (int64_t count : counts)
        rows += count;
      if (dispatch == Dispatch::Masked)
        rows = experts * spec.maxRows;
      check(kernel(spec, rows),
            oracle::makeProblem(spec, rows, oracle::Routing::fromCounts(counts), 7));
    }
}

TEST_CASE("the least extents, and tails of K") {
  struct Extents {
    int64_t n, k;
  };
  constexpr Extents extents[] = {
      {8, 16},   // the least there is, on both sides
      {8, 144},  // a step and 16 more of K
      {16, 48},  // no whole step, no whole instruction
      {256, 16}, // a whole tile of half an instruction
      {264, 272} // one group of columns past a tile, two steps and 16 more
  };
  for (const auto &[n, k] : extents) {
    CAPTURE(n);
    CAPTURE(k);
    for (const Spec &spec : {tokens(Dispatch::Grouped, 2, n, k), blocks(2, n, k)}) {
      Artifact artifact = kernel(spec);
      check(artifact, oracle::makeProblem(spec, 1, oracle::Routing::oneExpert(1), 7));
      check(artifact, oracle::makeProblem(spec, 67, oracle::Routing::fromCounts({65, 2}), 7));
    }
  }
}

namespace {

/// How far what numbers that are none give is prescribed. Scales are multiplied with sums, so that
/// infinite ones give an infinity where terms of their own would give infinities of both signs.
enum class Special { Codes, Scales };

/// Whether `out` is what arithmetic makes of numbers that are none: NaN for NaN, infinities of the
/// same sign (of scales: one of these for one of these), and everything else within its bound.
std::string compareSpecials(const oracle::HostProblem &problem, const oracle::HostOutput &output,
                            Special special) {
  oracle::OracleResult expected = oracle::reference(problem);
  int64_t columns = int64_t(expected.selection.columns.size());
  for (size_t i = 0; i < expected.reference.size(); ++i) {
    int64_t row = expected.selection.rows[i / size_t(columns)],
            column = expected.selection.columns[i % size_t(columns)];
    double want = expected.reference[i];
    double got =
        oracle::readElement(problem.spec.outType, output.data(), row * problem.yStride + column);
    bool isRight = !std::isfinite(want) && special == Special::Scales ? !std::isfinite(got)
                   : std::isnan(want)                                 ? std::isnan(got)
                   : std::isinf(want) ? got == want
                                      : std::abs(got - want) <=
                                            expected.bound[i] +
                                                oracle::halfUlp(problem.spec.outType,
                                                                std::abs(want) + expected.bound[i]);
    if (!isRight)
      return fmt::format("[{}, {}] is {}, expected {}", row, column, got, want);
  }
  return "";
}

std::string runSpecial(const Artifact &artifact, const oracle::HostProblem &problem,
                       Special special) {
  return compareSpecials(problem, run(artifact, problem, ThreadOrder::RoundRobin).output, special);
}

} // namespace

TEST_CASE("NaN and infinite codes stay in their rows and columns") {
  Spec spec = blocks(2, 24, 272);
  spec.outType = ElementType::F32;
  for (ElementType type : {ElementType::F8E4M3FN, ElementType::F8E5M2}) {
    spec.xType = spec.wType = type;
    Artifact artifact = kernel(spec);
    const bool isE5 = type == ElementType::F8E5M2;
    // e4m3: NaN of both signs. e5m2: two NaN, and infinities of both signs.
    const std::vector<uint8_t> codes =
        isE5 ? std::vector<uint8_t>{0x7f, 0xfd, 0x7c, 0xfc} : std::vector<uint8_t>{0x7f, 0xff};
    for (uint8_t code : codes) {
      CAPTURE(int(code));
      oracle::HostProblem problem =
          oracle::makeProblem(spec, 20, oracle::Routing::fromCounts({12, 8}), 7);
      problem.x[size_t(3 * problem.xStride + 140)] = code;
      CHECK(runSpecial(artifact, problem, Special::Codes) == "");
      problem.w[size_t((1 * spec.n + 5) * spec.k + 271)] = code;
      CHECK(runSpecial(artifact, problem, Special::Codes) == "");
    }
  }
}

TEST_CASE("scales that are NaN, infinite, zero or tiny act on what they cover, and nothing else") {
  for (Spec spec : {blocks(2, 24, 272), tokens(Dispatch::Grouped, 2, 24, 272)}) {
    spec.outType = ElementType::F32;
    CAPTURE(canonicalText(spec));
    Artifact artifact = kernel(spec);
    for (float scale : {NAN, INFINITY, -INFINITY, 0.0f, -1.0f}) {
      CAPTURE(scale);
      oracle::HostProblem problem =
          oracle::makeProblem(spec, 20, oracle::Routing::fromCounts({12, 8}), 7);
      auto x = oracle::ScaleGeometry::ofX(spec, problem.rows, problem.xScaleStride);
      auto w = oracle::ScaleGeometry::ofW(spec);
      problem.xScales[size_t(x.index(0, 3, 130))] = scale;
      CHECK(runSpecial(artifact, problem, Special::Scales) == "");
      problem.wScales[size_t(w.index(1, 5, 0))] = scale;
      CHECK(runSpecial(artifact, problem, Special::Scales) == "");
    }
  }
}

TEST_CASE("granules of zeros, of either sign, add nothing") {
  Spec spec = blocks(2, 136, 384);
  spec.outType = ElementType::F32;
  Artifact artifact = kernel(spec);
  oracle::HostProblem problem =
      oracle::makeProblem(spec, 20, oracle::Routing::fromCounts({12, 8}), 7);
  for (int64_t k = 0; k < 128; ++k) {
    problem.x[size_t(3 * problem.xStride + 128 + k)] = 0x00; // a group of one token
    problem.x[size_t(4 * problem.xStride + 128 + k)] = 0x80; // of -0
    for (int64_t n = 0; n < 128; ++n)                        // a block of one expert
      problem.w[size_t(n * spec.k + k)] = n % 2 ? 0x80 : 0x00;
  }
  // Rows of nothing but zeros: exactly zero.
  for (int64_t k = 0; k < spec.k; ++k) {
    problem.x[size_t(6 * problem.xStride + k)] = 0x80;
    problem.x[size_t(15 * problem.xStride + k)] = 0x00;
  }
  LaunchResult result = run(artifact, problem, ThreadOrder::RoundRobin);
  CHECK_MESSAGE(result.wrong.empty(), result.wrong);
  for (int64_t row : {6, 15})
    for (int64_t n = 0; n < spec.n; ++n)
      CHECK(oracle::readElement(spec.outType, result.output.data(), row * problem.yStride + n) ==
            0);
}

// 1,079,839 rows of 2048 elements are more than 2^31, of x and of y. All but the last rows are
// nobody's and stay untouched, so that they cost no memory here.
TEST_CASE("Liger-Kernel#1248: rows past 2^31 elements of x and y are where they should be") {
  constexpr int64_t rows = 1079839, n = 2048, k = 2048, live = 5;
  static_assert(rows * n > INT64_C(1) << 31 && rows * k > INT64_C(1) << 31);
  Spec spec = tokens(Dispatch::Grouped, 2, n, k);
  spec.skipped = Skipped::Untouched;
  // The same rows alone, in a launch of their own.
  oracle::HostProblem alone =
      oracle::makeProblem(spec, live, oracle::Routing::fromCounts({2, 3}), 7);
  Sparse x(size_t(rows * k)), y(size_t(rows * n) * 2);
  const int64_t first = rows - live;
  for (int64_t r = 0; r < live; ++r)
    std::memcpy(x.begin + (first + r) * k, alone.x.data() + r * alone.xStride, size_t(k));
  std::vector<float> xScales(static_cast<size_t>(rows), NAN);
  std::copy_n(alone.xScales.begin(), live, xScales.begin() + first);
  const std::vector<int32_t> offsets = {int32_t(first), int32_t(first + 2), int32_t(rows)};
  for (int64_t expectedRows : {int64_t(1), rows}) {
    Artifact artifact = kernel(spec, expectedRows);
    std::memset(y.begin + first * n * 2, oracle::poisonByte, size_t(live * n * 2));
    GemmArguments arguments;
    arguments.rows = rows;
    arguments.x = tensor(x.begin);
    arguments.y = tensor(y.begin);
    arguments.w = tensor(alone.w.data());
    arguments.xScales = tensor(xScales.data());
    arguments.wScales = tensor(alone.wScales.data());
    arguments.offsets = tensor(offsets.data());
    std::vector<uint64_t> workspace(workspaceBytes(artifact.launch, rows) / 8 + 16);
    arguments.workspace = workspace.data();
    arguments.workspaceBytes = workspaceBytes(artifact.launch, rows);
    Result<EmulatorReport> report = emulator().launch(artifact, arguments);
    REQUIRE_MESSAGE(bool(report), report.error().text());
    oracle::HostOutput output = oracle::HostOutput::make(alone);
    for (int64_t r = 0; r < live; ++r)
      std::memcpy(static_cast<uint8_t *>(output.data()) + r * output.rowBytes,
                  y.begin + (first + r) * n * 2, size_t(n * 2));
    oracle::Comparison comparison = oracle::compare(alone, oracle::reference(alone), output);
    CHECK_MESSAGE(comparison.ok(), comparison.text());
  }
}

// 512 × 2048 × 4096 are 2^32 weights; the experts are the last before 2^31 elements, the first
// after them, and the last of all.
TEST_CASE("Liger-Kernel#1296: experts past 2^31 elements of w are where they should be") {
  constexpr int64_t experts = 512, n = 2048, k = 4096;
  static_assert(experts * n * k == INT64_C(1) << 32);
  constexpr std::array<int64_t, 3> used = {255, 256, 511};
  oracle::HostProblem alone =
      oracle::makeProblem(blocks(3, n, k), 6, oracle::Routing::fromCounts({2, 1, 3}), 7);
  Spec spec = blocks(experts, n, k);
  Sparse w(size_t(experts * n * k));
  std::vector<float> wScales(size_t(experts * (n / 128) * (k / 128)), NAN);
  std::vector<int32_t> offsets = {0};
  for (int64_t e = 0; e < experts; ++e) {
    auto at = std::find(used.begin(), used.end(), e);
    offsets.push_back(offsets.back());
    if (at == used.end())
      continue;
    const int64_t from = at - used.begin(), scales = (n / 128) * (k / 128);
    std::memcpy(w.begin + e * n * k, alone.w.data() + from * n * k, size_t(n * k));
    std::copy_n(alone.wScales.begin() + from * scales, scales, wScales.begin() + e * scales);
    offsets.back() = alone.offsets[size_t(from + 1)];
  }
  Artifact artifact = kernel(spec);
  GemmArguments arguments;
  oracle::HostOutput output = oracle::HostOutput::make(alone);
  arguments.rows = alone.rows;
  arguments.x = {alone.x.data(), alone.xStride};
  arguments.y = {output.data(), alone.yStride};
  arguments.w = tensor(w.begin);
  arguments.xScales = {alone.xScales.data(), alone.xScaleStride};
  arguments.wScales = tensor(wScales.data());
  arguments.offsets = tensor(offsets.data());
  std::vector<uint64_t> workspace(workspaceBytes(artifact.launch, alone.rows) / 8 + 16);
  arguments.workspace = workspace.data();
  arguments.workspaceBytes = workspaceBytes(artifact.launch, alone.rows);
  Result<EmulatorReport> report = emulator().launch(artifact, arguments);
  REQUIRE_MESSAGE(bool(report), report.error().text());
  oracle::Comparison comparison = oracle::compare(alone, oracle::reference(alone), output);
  CHECK_MESSAGE(comparison.ok(), comparison.text());
}

// Quantizations of their own through the whole pipeline to the emulator, bit for bit what the
// oracle says.
#include "compiler/Compile.h"
#include "runtime/Plan.h"
#include "runtime/Rules.h"
#include "tests/oracle/Fp8.h"
#include "tests/oracle/Quantization.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

using namespace moejit;
using namespace moejit::test;
using oracle::QuantizeOptions;
using oracle::QuantizeOutput;
using oracle::QuantizeProblem;

namespace {

constexpr ElementType bf16 = ElementType::BF16, f16 = ElementType::F16, f32 = ElementType::F32;
constexpr ElementType e4m3 = ElementType::F8E4M3FN, e5m2 = ElementType::F8E5M2;
constexpr ElementType ue8m0 = ElementType::F8E8M0FNU;
const Granule whole = Granule::whole();

/// Computed scales of `granule`, in the order and with the alignment given.
ScaleLayout dynamic(std::vector<Granule> granule, ElementType type = f32,
                    ScaleOrder order = ScaleOrder::RowMajor, int64_t align = 0,
                    int64_t packing = 1) {
  ScaleLayout layout{std::move(granule), type, ScaleSource::Dynamic, order, align};
  layout.packing = packing;
  return layout;
}
ScaleLayout perGroup(int64_t extent, ElementType type = f32,
                     ScaleOrder order = ScaleOrder::RowMajor, int64_t align = 0,
                     int64_t packing = 1) {
  return dynamic({Granule::of(1), Granule::of(extent)}, type, order, align, packing);
}
ScaleLayout perToken(ElementType type = f32, ScaleOrder order = ScaleOrder::RowMajor,
                     int64_t align = 0, int64_t packing = 1) {
  return dynamic({Granule::of(1), whole}, type, order, align, packing);
}
ScaleLayout perTensor(ElementType type = f32, int64_t packing = 1) {
  return dynamic({whole, whole}, type, ScaleOrder::RowMajor, 0, packing);
}
ScaleLayout given(ElementType type = f32, int64_t packing = 1) {
  ScaleLayout layout{{whole, whole}, type};
  layout.packing = packing;
  return layout;
}

std::string launchOf(const Artifact &artifact, const QuantizeProblem &problem,
                     QuantizeOutput &output, ThreadOrder order) {
  GemmArguments arguments;
  arguments.rows = problem.rows;
  std::vector<uint8_t> x = problem.x; // the kernel may only read it; the emulator checks
  arguments.x = {x.data(), problem.xStride};
  arguments.xScales = {output.scaleData(), problem.scaleStride};
  arguments.y = {output.yData(), problem.yStride};
  std::vector<uint64_t> workspace(workspaceBytes(artifact.launch, problem.rows) / 8 + 2,
                                  UINT64_MAX);
  arguments.workspace = workspace.data();
  arguments.workspaceBytes = workspaceBytes(artifact.launch, problem.rows);
  if (problem.rows == 0) // an empty launch has no memory
    arguments.x = arguments.xScales = arguments.y = {};
  Result<EmulatorReport> report = emulator(order).launch(artifact, arguments);
  if (!report)
    return report.error().text();
  if (problem.rows == 0 && report->blocks != 0)
    return "launched blocks for no row";
  return x == problem.x ? "" : "x was written";
}

std::string run(const Artifact &artifact, const QuantizeProblem &problem, ThreadOrder order) {
  QuantizeOutput output = QuantizeOutput::make(problem);
  std::string wrong = launchOf(artifact, problem, output, order);
  if (!wrong.empty())
    return wrong;
  oracle::QuantizeComparison comparison = oracle::compareQuantized(problem, output);
  return comparison.ok() ? "" : comparison.text();
}

/// No row, one, few with gaps between rows of everything, more tiles than blocks; ordinary values
/// and special ones.
void checkLaunches(const Artifact &artifact, const std::string &what) {
  if (artifact.source.empty())
    return;
  QuantizeOptions padded;
  padded.xPadElements = 40;
  padded.yPadElements = 24;
  padded.scalePadWords = 5;
  QuantizeOptions plain;
  plain.hasSpecialValues = false;
  struct {
    int64_t rows;
    QuantizeOptions options;
  } launches[] = {{0, {}}, {1, padded}, {6, padded}, {75, {}}, {3, plain}};
  uint64_t seed = 11;
  for (const auto &[rows, options] : launches) {
    QuantizeProblem problem = oracle::makeQuantizeProblem(artifact.spec, rows, ++seed, options);
    std::string wrong =
        run(artifact, problem, rows % 2 ? ThreadOrder::Random : ThreadOrder::RoundRobin);
    if (!wrong.empty())
      FAIL_CHECK(what, "\n  ", rows, " rows\n  ", wrong);
  }
}

void check(const Spec &spec, const KernelPlan &plan, const std::vector<std::string> &skipped = {}) {
  std::string what = canonicalText(spec) + "\n  plan: " + planText(plan);
  for (const std::string &pass : skipped)
    what += ", without " + pass;
  checkLaunches(build(spec, plan, skipped), what);
}

/// Both plans of `spec`, of few rows and of many.
void checkPlans(const Spec &spec) {
  REQUIRE_MESSAGE(checkSpec(spec, Target()).empty(), canonicalText(spec));
  std::vector<PlannedRange> ranges = planRanges(spec, Target());
  REQUIRE(ranges.size() == 2);
  for (const PlannedRange &range : ranges)
    check(spec, range.plan);
}

/// x of `values` in each of `rows` rows.
QuantizeProblem valuesOf(const Spec &spec, const std::vector<double> &values, int64_t rows) {
  QuantizeOptions options;
  options.hasSpecialValues = false;
  QuantizeProblem problem = oracle::makeQuantizeProblem(spec, rows, 1, options);
  for (int64_t r = 0; r < rows; ++r)
    for (size_t k = 0; k < values.size(); ++k)
      oracle::writeElement(*spec.quantizeFrom, problem.x.data(), r * problem.xStride + int64_t(k),
                           values[k]);
  return problem;
}

} // namespace

// Every source type, both results, each kind of granule, each way to store a scale; K with and
// without a tail, above one tile and below one warp.
TEST_CASE("quantize part 0") {
  checkPlans(quantizeSpec(512, bf16, e4m3, perGroup(128, f32, ScaleOrder::MnMajor, 16)));
  checkPlans(quantizeSpec(1168, f16, e4m3, perGroup(128)));
  checkPlans(quantizeSpec(2064, f32, e5m2, perGroup(128, ue8m0, ScaleOrder::MnMajor, 16)));
  checkPlans(quantizeSpec(16, bf16, e5m2, perGroup(128, ue8m0)));
  checkPlans(quantizeSpec(1040, bf16, e4m3, perGroup(128, ue8m0, ScaleOrder::MnMajor, 16, 4)));
}

TEST_CASE("quantize part 1") {
  checkPlans(quantizeSpec(256, f32, e4m3, perGroup(32, ue8m0)));
  checkPlans(quantizeSpec(272, bf16, e4m3, perGroup(32, ue8m0, ScaleOrder::RowMajor, 0, 4)));
  checkPlans(quantizeSpec(1072, f16, e5m2, perGroup(32, f32, ScaleOrder::MnMajor, 64)));
  checkPlans(quantizeSpec(320, bf16, e4m3, perGroup(64, ue8m0, ScaleOrder::RowMajor, 16)));
  checkPlans(quantizeSpec(704, f16, e4m3, perGroup(256, f32, ScaleOrder::RowMajor, 128)));
}

// Granules of whole warps: held in registers, or read twice; shared among warps or not.
TEST_CASE("quantize part 2") {
  checkPlans(quantizeSpec(208, bf16, e4m3, perGroup(96)));
  checkPlans(quantizeSpec(1200, f32, e4m3, perGroup(512, f32, ScaleOrder::MnMajor)));
  checkPlans(quantizeSpec(3184, f16, e5m2, perGroup(1536, ue8m0, ScaleOrder::RowMajor, 0, 4)));
  checkPlans(quantizeSpec(640, bf16, e4m3, perToken()));
  checkPlans(quantizeSpec(96, f32, e4m3, perToken(ue8m0, ScaleOrder::MnMajor, 16)));
}

TEST_CASE("quantize part 3") {
  checkPlans(quantizeSpec(4112, f16, e4m3, perToken(f32, ScaleOrder::RowMajor, 16)));
  checkPlans(quantizeSpec(9232, bf16, e4m3, perToken(ue8m0, ScaleOrder::RowMajor, 0, 4)));
  checkPlans(quantizeSpec(256, f32, e5m2, perToken(f32, ScaleOrder::MnMajor)));
  checkPlans(quantizeSpec(1360, bf16, e4m3, given()));
  checkPlans(quantizeSpec(64, f16, e5m2, given(ue8m0)));
  checkPlans(quantizeSpec(144, f32, e4m3, given(ue8m0, 4)));
}

TEST_CASE("quantize part 4") {
  checkPlans(quantizeSpec(1168, bf16, e4m3, perTensor()));
  checkPlans(quantizeSpec(48, f16, e4m3, perTensor(ue8m0)));
  checkPlans(quantizeSpec(512, f32, e5m2, perTensor(ue8m0, 4)));
}

// What a schedule may choose: a result never depends on it.
TEST_CASE("quantize part 5") {
  Spec groups = quantizeSpec(1168, bf16, e4m3, perGroup(128));
  Spec tokens = quantizeSpec(2576, f16, e4m3, perToken());
  KernelPlan plan = choosePlan(groups, Target(), 1);
  for (int64_t warpgroups : {1, 3}) {
    KernelPlan odd = plan;
    odd.warpgroups = warpgroups;
    odd.tileM = 5;
    odd.tileN = 300; // rounded to whole granules
    odd.vectors = 3;
    odd.granuleWarps = warpgroups == 1 ? 2 : 4;
    check(groups, odd);
    check(tokens, odd);
  }
  KernelPlan queued = choosePlan(groups, Target(), 1 << 20);
  queued.scheduler = SchedulerKind::Queue;
  queued.raster = 4;
  queued.prefetchTile = queued.skipEmptyRows = queued.hoistRelease = true;
  check(groups, queued);
  check(tokens, queued);
}

TEST_CASE("optional passes of a quantization do something, and may be left out") {
  Spec tokens = quantizeSpec(2576, bf16, e4m3, perToken());
  KernelPlan plan = choosePlan(tokens, Target(), 1 << 20);
  std::string whole = build(tokens, plan).source;
  for (const char *pass : {"tile-deepen-quantize", "tile-share-granules"}) {
    CAPTURE(pass);
    CHECK(build(tokens, plan, {pass}).source != whole);
    check(tokens, plan, {pass});
  }
  check(tokens, plan, {"tile-deepen-quantize", "tile-share-granules"});
}

TEST_CASE("launches that a quantization refuses") {
  Spec spec = quantizeSpec(256, bf16, e4m3, perGroup(128));
  Artifact artifact = build(spec, choosePlan(spec, Target(), 4));
  REQUIRE(!artifact.source.empty());
  QuantizeProblem problem = oracle::makeQuantizeProblem(spec, 4, 1);
  QuantizeOutput output = QuantizeOutput::make(problem);
  auto textWith = [&](auto change) {
    GemmArguments arguments;
    arguments.rows = 4;
    arguments.x = {problem.x.data(), problem.xStride};
    arguments.xScales = {output.scaleData(), problem.scaleStride};
    arguments.y = {output.yData(), problem.yStride};
    change(arguments);
    Result<void> checked = checkArguments(spec, artifact.launch, arguments);
    return checked ? std::string() : checked.error().text();
  };
  CHECK(textWith([](GemmArguments &) {}) == "");
  CHECK(textWith([](GemmArguments &a) {
          a.xScales.data = nullptr;
        }).starts_with("xScales: the pointer is null"));
  CHECK(
      textWith([](GemmArguments &a) { a.x.data = nullptr; }).starts_with("x: the pointer is null"));
  CHECK(textWith([&](GemmArguments &a) { a.y.data = a.x.data; }).starts_with("y: "));
  CHECK(textWith([&](GemmArguments &a) { a.xScales.data = a.x.data; }).starts_with("xScales: "));
  CHECK(textWith([&](GemmArguments &a) { a.xScales.data = a.y.data; }).find("overlaps") !=
        std::string::npos);
  CHECK(textWith([](GemmArguments &a) { a.x.rowStride = 255; }).starts_with("x: row stride 255"));
  CHECK(textWith([](GemmArguments &a) { a.x.rowStride = 260; }).find("not a multiple of 16") !=
        std::string::npos);
  CHECK(textWith([](GemmArguments &a) {
          a.xScales.rowStride = 1;
        }).starts_with("xScales: row stride 1"));
}

// huggingface/kernels-community #681: an all-zero block divides 0 by 0.
TEST_CASE("kernels-community#681: zero granules give zero codes and a finite scale") {
  for (const ScaleLayout &layout :
       {perGroup(128), perGroup(32), perToken(), perTensor(), perGroup(128, ue8m0), perToken(ue8m0),
        perTensor(ue8m0), perGroup(128, ue8m0, ScaleOrder::MnMajor, 0, 4)}) {
    Spec spec = quantizeSpec(256, bf16, e4m3, layout);
    CAPTURE(canonicalText(spec));
    Artifact artifact = build(spec, choosePlan(spec, Target(), 1));
    REQUIRE(!artifact.source.empty());
    // The first 128 values are zeros of both signs, the rest are not; then nothing but zeros.
    QuantizeProblem problem = valuesOf(spec, {}, 1);
    for (int64_t k = 0; k < 128; ++k)
      oracle::writeElement(bf16, problem.x.data(), k, k % 2 ? -0.0 : 0.0);
    QuantizeProblem zeros = valuesOf(spec, std::vector<double>(256, 0.0), 2);
    for (const QuantizeProblem *each : {&problem, &zeros}) {
      QuantizeOutput output = QuantizeOutput::make(*each);
      REQUIRE(launchOf(artifact, *each, output, ThreadOrder::RoundRobin) == "");
      oracle::QuantizeComparison comparison = oracle::compareQuantized(*each, output);
      CHECK_MESSAGE(comparison.ok(), comparison.text());
      for (int64_t k = 0; k < 128; ++k)
        CHECK((output.yData()[k] & 0x7f) == 0);
      float scale = 0;
      if (layout.type == f32)
        std::memcpy(&scale, output.scaleData(), 4);
      else
        scale = oracle::decodeE8M0(output.scaleData()[0]);
      CHECK(std::isfinite(scale));
      CHECK(scale > 0);
    }
  }
}

// huggingface/transformers #42775: values above scale · 448 become NaN without a clamp.
TEST_CASE("transformers#42775: a static scale saturates, NaN stays NaN") {
  Spec spec = quantizeSpec(32, f32, e4m3, given());
  Artifact artifact = build(spec, choosePlan(spec, Target(), 1));
  REQUIRE(!artifact.source.empty());
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values(32, 0.0);
  const double some[] = {4.4, 4.48, 4.6, 10, 1e30, -10, infinity, -infinity, NAN, 1e38, -4.48};
  std::copy(std::begin(some), std::end(some), values.begin());
  QuantizeProblem problem = valuesOf(spec, values, 1);
  float scale = 0.01f;
  std::memcpy(problem.givenScale.data(), &scale, 4);
  QuantizeOutput output = QuantizeOutput::make(problem);
  REQUIRE(launchOf(artifact, problem, output, ThreadOrder::RoundRobin) == "");
  oracle::QuantizeComparison comparison = oracle::compareQuantized(problem, output);
  CHECK_MESSAGE(comparison.ok(), comparison.text());
  const uint8_t *codes = output.yData();
  for (int64_t k :
       {0, 1, 2, 3, 4, 6, 9}) // 4.4 / 0.01 = 440 lies halfway to 448, whose code is even
    CHECK(codes[k] == 0x7e);
  for (int64_t k : {5, 7, 10})
    CHECK(codes[k] == 0xfe);
  CHECK((codes[8] & 0x7f) == 0x7f);
}

// vllm-project/vllm #49784: a ue8m0 scale that drops its fraction no longer fits its data.
TEST_CASE(
    "vllm#49784: ue8m0 scales are rounded up and the data quantized with what they then are") {
  Spec spec = quantizeSpec(512, bf16, e4m3, perGroup(128, ue8m0, ScaleOrder::MnMajor, 16, 4));
  Artifact artifact = build(spec, choosePlan(spec, Target(), 5));
  REQUIRE(!artifact.source.empty());
  QuantizeProblem problem = valuesOf(spec, std::vector<double>(512, 336.0), 5); // scale 0.75
  QuantizeOutput output = QuantizeOutput::make(problem);
  REQUIRE(launchOf(artifact, problem, output, ThreadOrder::RoundRobin) == "");
  for (int64_t i = 0; i < 20; ++i)
    CHECK(output.scaleData()[i] == 127);
  CHECK(output.yData()[0] == oracle::encodeE4M3(336.0));
  CHECK(oracle::compareQuantized(problem, output).ok());
}

// Hand-written tile kernels, which none of our passes produced, through staging, schedule and
// lowering to values.
#include "compiler/LaunchDataFromKernel.h"
#include "compiler/Pipeline.h"
#include "compiler/RegisterAll.h"
#include "compiler/dialect/tile/Tile.h"
#include "compiler/emit/CudaPrinter.h"
#include "tests/oracle/Fp8.h"
#include "tests/oracle/Random.h"
#include "tests/pipeline/Runner.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

using namespace moejit;
using namespace moejit::test;

namespace {

/// A kernel of dense.mlir and what it computes.
struct DenseKernel {
  const char *name;
  int64_t n, k;
  ElementType out;
};

constexpr DenseKernel kernels[] = {{"ragged", 200, 320, ElementType::F32},
                                   {"wide", 256, 256, ElementType::BF16},
                                   {"oneStep", 192, 128, ElementType::F16},
                                   {"unrolled", 128, 512, ElementType::F32},
                                   {"mixed", 128, 256, ElementType::F32}};

/// The schedule of `plan` without `skipped`, applied to a kernel of dense.mlir. No source where
/// that fails.
Artifact lower(const DenseKernel &kernel, const KernelPlan &plan,
               const std::vector<std::string> &skipped) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::ParserConfig config(&context);
  auto module =
      mlir::parseSourceFile<mlir::ModuleOp>(MOEJIT_SOURCE_DIR "/tests/pipeline/dense.mlir", config);
  REQUIRE(module);
  for (tile::KernelOp other : llvm::make_early_inc_range(module->getOps<tile::KernelOp>()))
    if (other.getSymName() != kernel.name)
      other.erase();
  mlir::PassManager manager(&context);
  buildTilePipeline(manager, plan); // what is there already passes through
  buildSchedulePipeline(manager, plan, skipped);
  buildLoweringPipeline(manager);
  Artifact artifact;
  CHECK(mlir::succeeded(manager.run(*module)));
  auto lowered = module->getOps<ptx::KernelOp>();
  if (lowered.empty())
    return artifact;
  Result<LaunchData> launch = launchDataFromKernel(*lowered.begin());
  REQUIRE(launch);
  artifact.launch = *launch;
  llvm::raw_string_ostream stream(artifact.source);
  CHECK(mlir::succeeded(emit::printCuda(*lowered.begin(), stream)));
  Spec &spec = artifact.spec;
  spec.dispatch = Dispatch::Eager;
  spec.n = kernel.n;
  spec.k = kernel.k;
  spec.outType = kernel.out;
  spec.xScales.granule = spec.wScales.granule = {Granule::whole(), Granule::whole()};
  return artifact;
}

/// y is exact: operands are small integers, and so are all their sums. Empty when right.
std::string runDense(const Artifact &artifact, int64_t rows,
                     ThreadOrder order = ThreadOrder::RoundRobin) {
  const Spec &spec = artifact.spec;
  oracle::HostProblem problem;
  problem.spec = spec;
  problem.rows = rows;
  problem.xStride = spec.k + 32;
  problem.yStride = spec.n + 8;
  problem.x.assign(rows * problem.xStride, oracle::poisonByte);
  problem.w.resize(spec.n * spec.k);
  oracle::Random random(rows);
  std::vector<int> x(rows * spec.k), w(spec.n * spec.k);
  for (int64_t i = 0; i < rows * spec.k; ++i) {
    x[i] = static_cast<int>(random.below(9)) - 4;
    problem.x[i / spec.k * problem.xStride + i % spec.k] = oracle::encodeE4M3(x[i]);
  }
  for (int64_t i = 0; i < spec.n * spec.k; ++i) {
    w[i] = static_cast<int>(random.below(9)) - 4;
    problem.w[i] = oracle::encodeE4M3(w[i]);
  }
  oracle::HostOutput output = oracle::HostOutput::make(problem);
  GemmArguments arguments;
  arguments.rows = rows;
  arguments.x = {problem.x.data(), problem.xStride};
  arguments.w.data = problem.w.data();
  arguments.y = {output.data(), problem.yStride};
  std::vector<uint32_t> workspace(workspaceBytes(artifact.launch, arguments.rows) / 4 + 4,
                                  UINT32_MAX);
  arguments.workspace = workspace.data();
  arguments.workspaceBytes = workspaceBytes(artifact.launch, arguments.rows);
  Result<EmulatorReport> report = emulator(order).launch(artifact, arguments);
  if (!report)
    return report.error().text();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < spec.n; ++c) {
      int sum = 0;
      for (int64_t k = 0; k < spec.k; ++k)
        sum += x[r * spec.k + k] * w[c * spec.k + k];
      const uint16_t rounded =
          spec.outType == ElementType::BF16 ? oracle::encodeBf16(sum) : oracle::encodeF16(sum);
      const double expected =
          spec.outType == ElementType::F32 ? sum : oracle::readElement(spec.outType, &rounded, 0);
      const double out = oracle::readElement(spec.outType, output.data(), r * problem.yStride + c);
      if (out != expected)
        return fmt::format("[{}, {}] is {}, expected {}", r, c, out, expected);
    }
  return oracle::findOverwrittenCanary(problem, output);
}

void checkDense(const DenseKernel &kernel, const KernelPlan &plan,
                const std::vector<std::string> &skipped) {
  std::string without;
  for (const std::string &pass : skipped)
    without += " " + pass;
  CAPTURE(std::string(kernel.name));
  CAPTURE(without);
  Artifact artifact = lower(kernel, plan, skipped);
  if (artifact.source.empty())
    return;
  // One row; a fragment and a tile ± 1; more tiles than the emulated device has blocks.
  for (int64_t rows : {1, 63, 64, 65, 129, 520}) {
    CAPTURE(rows);
    std::string wrong =
        runDense(artifact, rows, rows % 2 ? ThreadOrder::Random : ThreadOrder::RoundRobin);
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}

KernelPlan plan() {
  KernelPlan plan;
  plan.stages = 3;
  plan.scheduler = SchedulerKind::Queue;
  plan.raster = 2;
  plan.weightPolicy = CachePolicy::EvictFirst;
  return plan;
}

} // namespace

TEST_CASE("dense kernels with every optional pass and with none") {
  for (const DenseKernel &kernel : kernels) {
    checkDense(kernel, plan(), {});
    checkDense(kernel, plan(), optionalPasses());
  }
}

TEST_CASE("dense kernels in clusters along both sides") {
  for (const DenseKernel &kernel : kernels)
    for (ClusterSide side : {ClusterSide::Columns, ClusterSide::Rows}) {
      KernelPlan paired = plan();
      paired.cluster = 2;
      paired.clusterSide = side;
      checkDense(kernel, paired, {});
      checkDense(kernel, paired, {"tile-use-queue", "tile-specialize-warps"});
    }
}

TEST_CASE("dense kernels whose blocks share steps along K") {
  // Steps by one and by 128 of K, two dots a step, fewer steps than blocks, and none to share.
  for (const DenseKernel &kernel : kernels)
    for (int64_t splitK : {2, 4}) {
      KernelPlan shared = plan();
      shared.splitK = splitK;
      checkDense(kernel, shared, {});
      checkDense(kernel, shared, {"tile-use-queue", "tile-specialize-warps"});
    }
}

TEST_CASE("dense kernels with each optional pass alone and with all others") {
  for (const DenseKernel &kernel : kernels)
    for (const std::string &pass : optionalPasses()) {
      checkDense(kernel, plan(), {pass});
      std::vector<std::string> others;
      std::copy_if(optionalPasses().begin(), optionalPasses().end(), std::back_inserter(others),
                   [&](const std::string &other) { return other != pass; });
      checkDense(kernel, plan(), others);
    }
}

TEST_CASE("a dense kernel that reads one row further is seen to be wrong") {
  Artifact artifact = lower(kernels[0], plan(), {});
  const std::string row = ", tileRow, ";
  const size_t at = artifact.source.find(row);
  REQUIRE(at != std::string::npos);
  artifact.source.replace(at, row.size(), ", tileRow + 1, ");
  CHECK(runDense(artifact, 65).starts_with("[0, 0] is "));
}

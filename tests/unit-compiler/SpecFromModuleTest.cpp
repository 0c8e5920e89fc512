// compiler/SpecFromModule.h: Spec to module, to text, and back; kernels that are no Spec.
#include "compiler/SpecFromModule.h"

#include "compiler/passes/moe/MoePasses.h"

#include <doctest/doctest.h>

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

using namespace moejit;

namespace {

const Granule one = Granule::of(1), block = Granule::of(128), whole = Granule::whole(),
              expert = Granule::expert();

struct Context {
  mlir::MLIRContext mlir;
  Context() { mlir.loadDialect<moe::MoeDialect>(); }

  mlir::OwningOpRef<mlir::ModuleOp> build(const Spec &spec) {
    mlir::OpBuilder builder(&mlir);
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    buildKernel(builder, spec, "gate_up");
    return module;
  }

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text) {
    return mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&mlir));
  }
};

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

Spec grouped(std::vector<Granule> x, ScaleSource source, std::vector<Granule> w) {
  Spec spec;
  spec.numExperts = 32;
  spec.n = 4096;
  spec.k = 7168;
  spec.xScales.granule = std::move(x);
  spec.xScales.source = source;
  spec.wScales.granule = std::move(w);
  return spec;
}

/// Every dispatch, every layout with a name, every field away from its default somewhere.
std::vector<Spec> specs() {
  std::vector<Spec> all = {
      grouped({one, block}, ScaleSource::Dynamic, {one, block, block}),
      grouped({one, whole}, ScaleSource::Dynamic, {one, one, whole}),
      grouped({expert, whole}, ScaleSource::Static, {one, whole, whole}),
      grouped({whole, whole}, ScaleSource::Static, {whole, whole, whole}),
  };
  Spec spec = all[0];
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.xScales.type = ElementType::F8E8M0FNU;
  spec.xScales.packing = 4;
  spec.wScales.parts = 2;
  spec.wScales.interleaved = true;
  spec.wScales.phase = {0, 64, 32};
  spec.xType = ElementType::F8E5M2;
  spec.wType = ElementType::F8E5M2;
  spec.outType = ElementType::F16;
  spec.accumulate = Accumulate::Fast;
  spec.skipped = Skipped::Untouched;
  all.push_back(spec);

  spec = all[0];
  spec.dispatch = Dispatch::Batched;
  all.push_back(spec);
  spec.expertMapSize = 8;
  all.push_back(spec);

  spec.quantizeFrom = ElementType::BF16;
  all.push_back(spec);
  all.push_back(quantizeSpec(512, ElementType::F16, ElementType::F8E5M2, spec.xScales));
  ScaleLayout perTensor{{whole, whole}};
  all.push_back(quantizeSpec(512, ElementType::F32, ElementType::F8E4M3FN, perTensor));

  spec = all[0];
  spec.xScales = perTensor;
  spec.quantizeFrom = ElementType::BF16;
  all.push_back(spec);

  spec = all[0];
  spec.dispatch = Dispatch::Eager;
  spec.numExperts = 1;
  spec.wScales.granule = {block, block};
  all.push_back(spec);

  spec = all[0];
  spec.dispatch = Dispatch::Masked;
  spec.maxRows = 192;
  spec.xScales.granule = {one, one, block};
  spec.outType = ElementType::F32;
  all.push_back(spec);
  return all;
}

/// The error of reading the first kernel of `text`.
std::string errorOf(const std::string &text) {
  Context context;
  mlir::OwningOpRef<mlir::ModuleOp> module = context.parse(text);
  REQUIRE(module);
  Result<moe::KernelOp> kernel = findKernel(*module);
  if (!kernel)
    return kernel.error().message;
  Result<Spec> spec = specFromKernel(*kernel);
  return spec ? "no error" : spec.error().message;
}

const std::string types = R"(
  #x = #moe.scales<granule = [*, *]>
  #w = #moe.scales<granule = [*, *]>
)";

} // namespace

TEST_CASE("A Spec comes back from its kernel, directly, through text and after the arguments were "
          "expanded") {
  for (const Spec &spec : specs()) {
    std::string text = canonicalText(spec);
    CAPTURE(text);
    Context context;
    mlir::OwningOpRef<mlir::ModuleOp> module = context.build(spec);
    REQUIRE(mlir::succeeded(mlir::verify(*module)));
    Result<moe::KernelOp> kernel = findKernel(*module, "gate_up");
    REQUIRE(kernel);
    Result<Spec> direct = specFromKernel(*kernel);
    REQUIRE(direct);
    CHECK(canonicalText(*direct) == text);
    CHECK(*direct == spec);

    mlir::OwningOpRef<mlir::ModuleOp> parsed = context.parse(print(*module));
    REQUIRE(parsed);
    CHECK(print(*parsed) == print(*module));
    Result<Spec> reread = specFromKernel(*findKernel(*parsed));
    REQUIRE(reread);
    CHECK(*reread == spec);

    mlir::PassManager passes(&context.mlir);
    passes.addNestedPass<moe::KernelOp>(moe::createMoeExpandScales());
    REQUIRE(mlir::succeeded(passes.run(*parsed)));
    // What is plain has no scales to give arguments of their own.
    CHECK((print(*parsed) == print(*module)) == (spec.computation == Computation::Quantize));
    Result<Spec> expanded = specFromKernel(*findKernel(*parsed));
    REQUIRE(expanded);
    CHECK(*expanded == spec);
  }
}

TEST_CASE("A phase of zeros is none") {
  Spec spec = grouped({one, block}, ScaleSource::Dynamic, {one, block, block});
  spec.xScales.phase = {0, 0};
  Context context;
  mlir::OwningOpRef<mlir::ModuleOp> module = context.build(spec);
  Result<Spec> read = specFromKernel(*findKernel(*module));
  REQUIRE(read);
  CHECK(read->xScales.phase.empty());
  CHECK(canonicalText(*read) == canonicalText(spec));
}

TEST_CASE("The printed kernel names its arguments") {
  Context context;
  std::string text = print(*context.build(specs()[0]));
  CHECK(text.find("moe.kernel @gate_up(%x: tensor<?x7168xf8E4M3FN, #scales>, %offsets: "
                  "tensor<33xi32>, %w: ") != std::string::npos);
  CHECK(text.find("%y = moe.gemm grouped(%x, %offsets, %w) : ") != std::string::npos);
}

TEST_CASE("Kernels that are no Spec say why") {
  CHECK(errorOf(types + R"(
    moe.kernel @none(%y: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
      moe.return %y : tensor<?x64xbf16>
    })") == "kernel @none holds no moe.gemm and no moe.quantize");
  CHECK(errorOf(types + R"(
    moe.kernel @two(%x: tensor<?x64xf8E4M3FN, #x>, %w: tensor<8x64xf8E4M3FN, #w>) -> tensor<?x8xbf16> {
      %y = moe.gemm eager(%x, %w) : tensor<?x64xf8E4M3FN, #x>, tensor<8x64xf8E4M3FN, #w> -> tensor<?x8xbf16>
      %z = moe.gemm eager(%x, %w) : tensor<?x64xf8E4M3FN, #x>, tensor<8x64xf8E4M3FN, #w> -> tensor<?x8xbf16>
      moe.return %z : tensor<?x8xbf16>
    })") == "kernel @two holds more than one moe.gemm");
  CHECK(errorOf(types + R"(
    moe.kernel @other(%x: tensor<?x64xf8E4M3FN, #x>, %w: tensor<8x64xf8E4M3FN, #w>, %z: tensor<?x8xbf16>)
        -> tensor<?x8xbf16> {
      %y = moe.gemm eager(%x, %w) : tensor<?x64xf8E4M3FN, #x>, tensor<8x64xf8E4M3FN, #w> -> tensor<?x8xbf16>
      moe.return %z : tensor<?x8xbf16>
    })") == "kernel @other does not return exactly the result of its moe.gemm");
  CHECK(errorOf("module {}") == "the module holds no moe.kernel");
}

TEST_CASE("A kernel is found by name, or alone") {
  Context context;
  auto kernel = [](const std::string &name) {
    return "moe.kernel @" + name +
           "(%y: tensor<?x64xbf16>) -> tensor<?x64xbf16> { moe.return %y : tensor<?x64xbf16> }\n";
  };
  mlir::OwningOpRef<mlir::ModuleOp> module = context.parse(kernel("gate_up") + kernel("down"));
  REQUIRE(module);
  Result<moe::KernelOp> down = findKernel(*module, "down");
  REQUIRE(down);
  CHECK((*down).getName() == "down");
  Result<moe::KernelOp> any = findKernel(*module);
  REQUIRE_FALSE(any);
  CHECK(any.error().code == ErrorCode::NotFound);
  CHECK(any.error().message == "the module holds 2 kernels, name one of @gate_up, @down");
  Result<moe::KernelOp> up = findKernel(*module, "up");
  REQUIRE_FALSE(up);
  CHECK(up.error().message == "no kernel @up, expected one of @gate_up, @down");
}

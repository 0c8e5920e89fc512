// Runs the pipeline and gathers an artifact from what it leaves.
#include "compiler/Compile.h"

#include "compiler/LaunchDataFromKernel.h"
#include "compiler/Pipeline.h"
#include "compiler/RegisterAll.h"
#include "compiler/SpecFromModule.h"
#include "compiler/dialect/ptx/Ptx.h"
#include "compiler/emit/CudaPrinter.h"
#include "compiler/generator_fingerprint.h"
#include "compiler/passes/moe/MoePasses.h"
#include "runtime/Rules.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/SourceMgr.h"

#include <fmt/format.h>

using namespace mlir;

namespace moejit {
namespace {

/// A context for one compilation: no threads, every dialect of the pipeline.
std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registerDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

/// Collects diagnostics as lines.
class DiagnosticLines {
public:
  explicit DiagnosticLines(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          add(diagnostic);
          for (Diagnostic &note : diagnostic.getNotes())
            add(note);
          return success();
        }) {}

  std::vector<std::string> lines;

private:
  void add(Diagnostic &diagnostic) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << diagnostic;
    lines.push_back(text);
  }
  ScopedDiagnosticHandler handler;
};

Result<void> run(ModuleOp module, const char *what,
                 const std::function<void(OpPassManager &)> &build) {
  DiagnosticLines diagnostics(module.getContext());
  PassManager manager(module.getContext());
  build(manager);
  if (failed(manager.run(module)))
    return Error{ErrorCode::CompileError, fmt::format("{} failed", what), diagnostics.lines};
  return {};
}

/// Notes a stage for whoever looks.
void show(const CompileOptions &options, std::string_view stage, const std::string &text) {
  if (options.onStage)
    options.onStage(stage, text);
}

} // namespace

Result<Artifact> compileToSource(const Spec &spec, const Target &target, const KernelPlan &plan,
                                 const CompileOptions &options) {
  if (Result<void> legal = requireLegal(spec, target); !legal)
    return legal.error();
  if (Result<void> verified = verifyPlan(plan, spec, target); !verified)
    return verified.error();

  std::unique_ptr<MLIRContext> context = makeContext();
  OpBuilder builder(context.get());
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());
  buildKernel(builder, spec, "moejit_kernel");
  if (options.onStage) {
    show(options, "moe", textOf(*module));
    show(options, "plan", planJson(plan) + "\n");
  }
  Result<void> ran = run(*module, "the schedule", [&](OpPassManager &manager) {
    buildTilePipeline(manager, plan);
    buildSchedulePipeline(manager, plan, options.skippedPasses);
  });
  if (!ran)
    return ran.error();
  if (options.onStage)
    show(options, "tile", textOf(*module));
  ran = run(*module, "the lowering", buildLoweringPipeline);
  if (!ran)
    return ran.error();
  if (options.onStage)
    show(options, "ptx-ir", textOf(*module));

  auto kernels = module->getOps<ptx::KernelOp>();
  if (!llvm::hasSingleElement(kernels))
    return Error{ErrorCode::Internal, "the pipeline left no kernel, or several"};
  ptx::KernelOp kernel = *kernels.begin();
  Artifact artifact;
  artifact.spec = spec;
  artifact.arch = target.arch;
  artifact.planText = planText(plan);
  Result<LaunchData> launch = launchDataFromKernel(kernel);
  if (!launch)
    return launch.error();
  artifact.launch = *launch;
  DiagnosticLines diagnostics(context.get());
  llvm::raw_string_ostream stream(artifact.source);
  if (failed(emit::printCuda(kernel, stream)))
    return Error{ErrorCode::CompileError, "the kernel cannot be printed", diagnostics.lines};
  show(options, "cuda", artifact.source);
  return artifact;
}

Result<Artifact> compile(const Spec &spec, const Target &target, const KernelPlan &plan,
                         const CompileOptions &options) {
  Result<Artifact> made = compileToSource(spec, target, plan, options);
  if (!made)
    return made;
  Artifact &artifact = *made;
  Result<Nvrtc> nvrtc = Nvrtc::open(options.nvrtc);
  if (!nvrtc)
    return nvrtc.error();
  Result<NvrtcOutput> output = nvrtc->compile(artifact.source, target.arch);
  if (!output)
    return output.error();
  artifact.ptx = output->ptx;
  artifact.cubin = output->cubin;
  artifact.compileLog = output->log;
  artifact.resources = output->resources;
  artifact.nvrtcVersion = nvrtc->version();
  // A cubin runs on every driver of its CUDA major version or later.
  artifact.minDriver = static_cast<uint32_t>(nvrtc->versionMajor()) * 1000;
  return made;
}

Result<GeneratorIdentity> generatorIdentity(const NvrtcOptions &options) {
  Result<Nvrtc> nvrtc = Nvrtc::open(options);
  if (!nvrtc)
    return nvrtc.error();
  GeneratorIdentity identity;
  identity.fingerprint = generatorFingerprint;
  identity.nvrtcVersion = nvrtc->version();
  for (const std::string &flag : Nvrtc::baseFlags())
    identity.flags += (identity.flags.empty() ? "" : " ") + flag;
  return identity;
}

/// Whether brackets nest so deep that MLIR's parser, which recurses, would run out of stack. An
/// arrow is none.
static bool isTooDeep(std::string_view text) {
  constexpr int64_t limit = 256;
  int64_t depth = 0;
  bool isQuoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (isQuoted) {
      i += c == '\\';
      isQuoted = c != '"' && c != '\n';
    } else if (c == '"') {
      isQuoted = true;
    } else if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (std::string_view("([{<").find(c) != std::string_view::npos) {
      if (++depth > limit)
        return true;
    } else if (std::string_view(")]}>").find(c) != std::string_view::npos) {
      bool isArrow = c == '>' && i > 0 && text[i - 1] == '-';
      depth -= !isArrow && depth > 0;
    }
  }
  return false;
}

/// What is left of `text` behind white space and comments.
static std::string_view behindSpace(std::string_view text) {
  while (!text.empty()) {
    if (text.substr(0, 2) == "//")
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    else if (std::string_view(" \t\r\n").find(text.front()) == std::string_view::npos)
      break;
    else
      text.remove_prefix(1);
  }
  return text;
}

/// Whether `text` has an attribute `array<index: …>`, also of a type's alias, at which MLIR 22.1's
/// parser asks index for its width and aborts. Takes some harmless texts for such, in strings say.
static bool hasIndexArray(std::string_view text) {
  for (size_t at = text.find("array"); at != std::string_view::npos; at = text.find("array", at)) {
    at += std::string_view("array").size();
    std::string_view rest = behindSpace(text.substr(at));
    if (rest.empty() || rest.front() != '<')
      continue;
    rest = behindSpace(rest.substr(1));
    if (!rest.empty() && (rest.front() == '!' || rest.substr(0, 5) == "index"))
      return true;
  }
  return false;
}

Result<Spec> parseMlir(std::string_view text, std::string_view fileName, std::string_view kernel,
                       const std::function<void(const std::string &)> &onDiagnostic) {
  if (isTooDeep(text))
    return Error{ErrorCode::ParseError,
                 fmt::format("{} is no valid moejit module: brackets nest too deep", fileName)};
  if (hasIndexArray(text))
    return Error{
        ErrorCode::ParseError,
        fmt::format("{} is no valid moejit module: it has an attribute array<index>, which "
                    "MLIR's parser does not survive",
                    fileName)};
  std::unique_ptr<MLIRContext> context = makeContext();
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, fileName), SMLoc());
  std::string rendered;
  llvm::raw_string_ostream stream(rendered);
  SourceMgrDiagnosticHandler handler(*sources, context.get(), stream);
  auto flush = [&] {
    if (onDiagnostic && !rendered.empty())
      onDiagnostic(rendered);
    rendered.clear();
  };

  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, context.get());
  if (!module) {
    flush();
    return Error{ErrorCode::ParseError, fmt::format("{} is no valid moejit module", fileName)};
  }
  Result<moe::KernelOp> found = findKernel(*module, kernel);
  if (!found)
    return found.error();
  PassManager manager(context.get());
  manager.addPass(moe::createMoeCheck());
  if (failed(manager.run(*module))) {
    flush();
    return Error{ErrorCode::RuleViolation, fmt::format("{} breaks a rule", fileName)};
  }
  Result<Spec> spec = specFromKernel(*found);
  flush();
  return spec;
}

std::string printMlir(const Spec &spec, std::string_view kernelName) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OpBuilder builder(context.get());
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());
  buildKernel(builder, spec, kernelName);
  return textOf(*module);
}

} // namespace moejit

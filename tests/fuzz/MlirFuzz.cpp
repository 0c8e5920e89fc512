// Kernel descriptions as people write them: through MLIR's parser, our dialect's verifiers and
// rules, and for some inputs through every pass to CUDA text.
#include "compiler/Compile.h"
#include "runtime/Rules.h"
#include "tests/fuzz/Fuzz.h"

#include <functional>
#include <string>

using namespace moejit;

const char *const fuzz::dictionary[] = {"moe.kernel",
                                        "moe.gemm",
                                        "moe.quantize",
                                        "moe.return",
                                        "moe.scaled",
                                        "grouped",
                                        "masked",
                                        "batched",
                                        "eager",
                                        "granule = ",
                                        "source = ",
                                        "order = ",
                                        "align = ",
                                        "packing = ",
                                        "parts = ",
                                        "phase = ",
                                        "interleaved",
                                        "#moe.scales<",
                                        "#moe.plan<",
                                        "tensor<?x",
                                        "tensor<",
                                        "xf8E4M3FN",
                                        "xbf16",
                                        "xi32",
                                        "index",
                                        "array<i64: 1>",
                                        "dense<0>",
                                        "affine_map<",
                                        "memref<",
                                        "vector<4x",
                                        "complex<",
                                        "loc(unknown)",
                                        "attributes {",
                                        "module {",
                                        "func.func",
                                        "arith.constant",
                                        "tile.kernel",
                                        "ptx.kernel",
                                        "scf.for",
                                        "builtin.unrealized_conversion_cast",
                                        "unit",
                                        "!moe.",
                                        "#map",
                                        "->",
                                        "@\"",
                                        "-1",
                                        "?",
                                        "*",
                                        "expert",
                                        "accumulate",
                                        "skipped",
                                        nullptr};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = fuzz::textOf(data, size);
  Result<Spec> spec = parseMlir(text, "fuzz.mlir", "", [](const std::string &) {});
  if (!spec) {
    ErrorCode code = spec.error().code;
    fuzz::require(code == ErrorCode::ParseError || code == ErrorCode::NotFound ||
                      code == ErrorCode::RuleViolation || code == ErrorCode::InvalidArgument,
                  "a refusal says what kind it is");
    return 0;
  }
  fuzz::require(bool(requireLegal(*spec, Target())), "what moe-check passes, the rules pass");
  std::string canonical = canonicalText(*spec);
  Result<Spec> fromText = parseSpec(canonical);
  fuzz::require(fromText && *fromText == *spec, "a spec's text reads as the spec");
  Result<Spec> printed = parseMlir(printMlir(*spec, "again"), "again.mlir", "again", {});
  fuzz::require(printed && canonicalText(*printed) == canonical,
                "a printed spec reads as the spec");
  // Compiling takes a tenth of a second: one input in sixteen, always the same ones.
  if (std::hash<std::string_view>()(text) % 16 == 0)
    fuzz::require(bool(compileToSource(*spec, Target(), choosePlan(*spec, Target(), 1))),
                  "a legal kernel compiles under its own plan");
  return 0;
}

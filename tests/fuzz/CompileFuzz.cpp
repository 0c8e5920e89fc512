// Specs and plans that the rules and the verifier take, through every pass to CUDA text. The input
// is two lines: a canonical spec, a plan.
#include "compiler/Compile.h"
#include "runtime/Rules.h"
#include "tests/fuzz/Fuzz.h"

#include <cstdio>

using namespace moejit;

const char *const fuzz::dictionary[] = {
    "eager",  "batched",     "grouped",   "masked",   "f8E5M2",    "f8E8M0FNU", "bf16",  "f16",
    "f32",    "static",      "dynamic",   "mn_major", "row_major", "yes",       "no",    "fast",
    "exact",  "zeroed",      "untouched", "*",        "rows",      "columns",   "queue", "direct",
    "staged", "evict_first", "true",      "false",    "quantize",  "none",      nullptr};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = fuzz::textOf(data, size);
  size_t line = text.find('\n');
  if (line == text.npos)
    return 0;
  Result<Spec> spec = parseSpec(text.substr(0, line));
  std::string_view rest = text.substr(line + 1);
  Result<KernelPlan> plan = parsePlan(rest.substr(0, rest.find('\n')));
  if (!spec || !plan)
    return 0;
  bool isAccepted = requireLegal(*spec, Target()) && verifyPlan(*plan, *spec, Target());
  Result<Artifact> made = compileToSource(*spec, Target(), *plan);
  if (!isAccepted) {
    fuzz::require(!made, "what is refused does not compile");
    return 0;
  }
  if (!made)
    std::fprintf(stderr, "%s\n", made.error().text().c_str());
  fuzz::require(bool(made), "what rules and verifier take compiles");
  Result<Artifact> back = deserialize(serialize(*made));
  fuzz::require(back && *back == *made, "its artifact is written and read");
  return 0;
}

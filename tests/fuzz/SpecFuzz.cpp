// Canonical spec text, and what every spec that parses goes through before anything is compiled:
// rules, shapes, plans, keys.
#include "runtime/Keys.h"
#include "runtime/PlanModel.h"
#include "runtime/Rules.h"
#include "tests/fuzz/Fuzz.h"

#include <cstdint>

using namespace moejit;

const char *const fuzz::dictionary[] = {
    "gemm",         "quantize",  "eager",    "batched", "grouped", "masked", "f8E4M3FN",
    "f8E5M2",       "f8E8M0FNU", "bf16",     "f16",     "f32",     "i32",    "static",
    "dynamic",      "row_major", "mn_major", "yes",     "no",      "exact",  "fast",
    "zeroed",       "untouched", "expert",   "*",       "[1,128]", "none",   "[1,128,128]",
    "[expert,*,*]", "[*,*]",     nullptr};

/// What holds of the plans of a legal spec.
static void checkPlans(const Spec &spec, const Target &target) {
  std::vector<PlannedRange> ranges = planRanges(spec, target);
  int64_t next = 0;
  for (const PlannedRange &range : ranges) {
    fuzz::require(range.minRows == next && range.maxRows >= range.minRows, "ranges follow");
    fuzz::require(bool(verifyPlan(range.plan, spec, target)), "plans of the heuristic can work");
    (void)estimatePlan(range.plan, spec, target, range.minRows);
    Result<KernelPlan> again = parsePlan(planText(range.plan));
    fuzz::require(again && *again == range.plan, "a plan's text reads as the plan");
    next = range.maxRows == INT64_MAX ? -1 : range.maxRows + 1;
  }
  fuzz::require(next == -1, "ranges cover every row count");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = fuzz::textOf(data, size);
  Result<Spec> spec = parseSpec(text);
  if (!spec) {
    fuzz::require(spec.error().code == ErrorCode::ParseError, "a refusal is a ParseError");
    return 0;
  }
  fuzz::require(canonicalText(*spec) == text, "a text that parses is the text of its spec");
  for (int smCount : {132, 78}) {
    Target target;
    target.profile.smCount = smCount;
    std::vector<Violation> violations = checkSpec(*spec, target);
    fuzz::require(bool(requireLegal(*spec, target)) == violations.empty(), "rules agree");
    for (const Violation &violation : violations)
      fuzz::require(findRule(violation.ruleId) != nullptr, "violations name rules");
    (void)scaleShape(spec->xScales, xShape(*spec), spec->numExperts);
    (void)scaleShape(spec->wScales, wShape(*spec), spec->numExperts);
    (void)lookupKeyText(*spec, target);
    if (violations.empty())
      checkPlans(*spec, target);
    else // may be asked for all the same, before the compiler refuses it
      fuzz::require(!planRanges(*spec, target).empty(), "there is a plan for whatever is asked");
  }
  return 0;
}

// Plan text, and plans of strangers against the verifier and the model.
#include "runtime/JsonReader.h"
#include "runtime/PlanModel.h"
#include "tests/fuzz/Fuzz.h"
#include "tests/unit/Samples.h"

using namespace moejit;

const char *const fuzz::dictionary[] = {
    "tileM=", "tileN=", "tileK=",      "stages=", "warpgroups=", "split=", "scheduler=", "raster=",
    "store=", "true",   "false",       "rows",    "columns",     "static", "queue",      "direct",
    "staged", "normal", "evict_first", ",",       "=",           nullptr};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Result<KernelPlan> plan = parsePlan(fuzz::textOf(data, size));
  if (!plan) {
    fuzz::require(plan.error().code == ErrorCode::ParseError, "a refusal is a ParseError");
    return 0;
  }
  Result<KernelPlan> again = parsePlan(planText(*plan));
  fuzz::require(again && *again == *plan, "a plan's text reads as the plan");
  fuzz::require(bool(parseJson(planJson(*plan))), "a plan's JSON is JSON");
  fuzz::require(planDifference(*plan, *plan).empty(), "a plan does not differ from itself");
  Spec quantize =
      quantizeSpec(7168, ElementType::BF16, ElementType::F8E4M3FN, samples::spec().xScales);
  for (const Spec &spec : {samples::spec(), quantize})
    if (verifyPlan(*plan, spec, Target())) {
      for (int64_t rows : {int64_t(0), int64_t(1), int64_t(4096), int64_t(INT32_MAX)})
        (void)estimatePlan(*plan, spec, Target(), rows);
      for (const KernelPlan &near : neighbourPlans(*plan, spec, Target()))
        fuzz::require(bool(verifyPlan(near, spec, Target())), "neighbours can work");
    }
  return 0;
}

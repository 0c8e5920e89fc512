// moe-check: the rule table asked of each moe.gemm, its answers as diagnostics.
#include "compiler/SpecFromModule.h"
#include "compiler/passes/moe/MoePasses.h"
#include "runtime/Rules.h"

using namespace mlir;

namespace moejit::moe {

#define GEN_PASS_DEF_MOECHECK
#include "compiler/passes/moe/MoePasses.h.inc"

namespace {

/// The operand a violation is about, or null where it is the op or its result.
Value subjectOf(GemmOp gemm, RuleSubject subject) {
  switch (subject) {
  case RuleSubject::X:
    return gemm.getX();
  case RuleSubject::W:
    return gemm.getW();
  case RuleSubject::Y:
  case RuleSubject::Gemm:
    break;
  }
  return {};
}

void report(GemmOp gemm, const Violation &violation) {
  // Not gemm.emitOpError: that would print the whole op in front of the notes.
  InFlightDiagnostic diagnostic = emitError(gemm.getLoc())
                                  << "'" << gemm.getOperationName() << "' op " << violation.text();
  if (Value value = subjectOf(gemm, violation.subject))
    diagnostic.attachNote(value.getLoc())
        << ruleSubjectName(violation.subject) << " is declared here";
  for (const std::string &note : violation.notes)
    diagnostic.attachNote() << note;
}

std::optional<Violation> checkJoined(Value operand, int64_t numExperts, RuleSubject subject) {
  auto scaled = operand.getDefiningOp<ScaledOp>();
  if (!scaled)
    return std::nullopt;
  return checkScaleShape(scalesOf(operand.getType()).getLayout(),
                         shapeOf(cast<RankedTensorType>(scaled.getData().getType())), numExperts,
                         shapeOf(cast<RankedTensorType>(scaled.getScales().getType())), subject);
}

class MoeCheck : public impl::MoeCheckBase<MoeCheck> {
  using MoeCheckBase::MoeCheckBase;

  void runOnOperation() override {
    Target target;
    if (Result<Target> known = parseTarget(arch.getValue()))
      target = *known;
    else
      target.arch = arch.getValue(); // checkSpec names it
    bool isLegal = true;
    getOperation()->walk([&](GemmOp gemm) { isLegal &= succeeded(checkGemm(gemm, target)); });
    if (!isLegal)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace

LogicalResult checkGemm(GemmOp gemm, const Target &target) {
  Spec spec = specFromGemm(gemm);
  std::vector<Violation> violations = checkSpec(spec, target);
  for (auto [operand, subject] : {std::pair<Value, RuleSubject>(gemm.getX(), RuleSubject::X),
                                  std::pair<Value, RuleSubject>(gemm.getW(), RuleSubject::W)})
    if (std::optional<Violation> violation = checkJoined(operand, spec.numExperts, subject))
      violations.push_back(*violation);
  for (const Violation &violation : violations)
    report(gemm, violation);
  return success(violations.empty());
}

} // namespace moejit::moe

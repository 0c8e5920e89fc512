// moe-check: the rule table asked of each moe.gemm and moe.quantize, its answers as diagnostics.
#include "compiler/SpecFromModule.h"
#include "compiler/passes/moe/MoePasses.h"
#include "runtime/Rules.h"

using namespace mlir;

namespace moejit::moe {

#define GEN_PASS_DEF_MOECHECK
#include "compiler/passes/moe/MoePasses.h.inc"

namespace {

/// Reports `violation` at `op`; `subject` is the operand it is about, or null where it is the op or
/// its result.
void report(Operation *op, Value subject, const Violation &violation) {
  // Not op->emitOpError: that would print the whole op in front of the notes.
  InFlightDiagnostic diagnostic = emitError(op->getLoc())
                                  << "'" << op->getName() << "' op " << violation.text();
  if (subject)
    diagnostic.attachNote(subject.getLoc())
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

LogicalResult checkQuantize(QuantizeOp quantize, const Target &target) {
  std::vector<Violation> violations = checkSpec(specFromQuantize(quantize), target);
  for (const Violation &violation : violations)
    report(quantize, violation.subject == RuleSubject::X ? quantize.getInput() : Value(),
           violation);
  return success(violations.empty());
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
    getOperation()->walk([&](QuantizeOp quantize) {
      // One that feeds a GEMM is part of that GEMM's Spec.
      if (llvm::none_of(quantize->getUsers(), [](Operation *user) { return isa<GemmOp>(user); }))
        isLegal &= succeeded(checkQuantize(quantize, target));
    });
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
  for (const Violation &violation : violations) {
    Value subject = violation.subject == RuleSubject::X   ? gemm.getX()
                    : violation.subject == RuleSubject::W ? gemm.getW()
                                                          : Value();
    report(gemm, subject, violation);
  }
  return success(violations.empty());
}

} // namespace moejit::moe

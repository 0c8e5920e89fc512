// The rules of legality: one table of predicates over a Spec, answering moe-check, `moejit
// explain`, every API and docs/generated/rules.md. What other engines accept is data elsewhere,
// never a rule here.
#pragma once

#include "runtime/Result.h"
#include "runtime/Spec.h"
#include "runtime/Target.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moejit {

/// One entry of the table.
struct Rule {
  enum class Kind {
    Contract,    ///< excluded by what moejit is
    Unsupported, ///< within the contract, not lowered by this version
  };
  const char *id; ///< "MJ001": stable, never reused; MJ1xx are Kind::Unsupported
  Kind kind;
  const char *summary; ///< the rule, in one line
  const char *reason;  ///< why it holds
  const char *remedy;  ///< what to do instead
};

/// The operand a violation is about; diagnostics point at its definition.
enum class RuleSubject { Gemm, X, W, Y };
const char *ruleSubjectName(RuleSubject subject);

/// A rule that a Spec breaks.
struct Violation {
  std::string ruleId;
  std::string message;            ///< actual and expected, without the id
  std::vector<std::string> notes; ///< the nearest things that work
  RuleSubject subject = RuleSubject::Gemm;

  /// "message [MJ001]", as diagnostics print it.
  std::string text() const;
};

/// All rules, by id, ascending.
const std::vector<Rule> &allRules();
/// The rule of that id, or null.
const Rule *findRule(std::string_view id);

/// Every rule that `spec` breaks on `target`, in table order; empty when moejit compiles it. Rules
/// of Kind::Unsupported are asked only where the contract holds.
std::vector<Violation> checkSpec(const Spec &spec, const Target &target);
/// checkSpec as a Result: RuleViolation with the text of the first violation and its notes; further
/// violations follow as notes.
Result<void> requireLegal(const Spec &spec, const Target &target);

/// Compares the shape of a given scale tensor (-1 = not static, fits anything) with what `layout`
/// asks of data of shape `dataShape`. `subject` names the operand. Trailing or leading extents of 1
/// are not forgiven.
std::optional<Violation> checkScaleShape(const ScaleLayout &layout,
                                         const std::vector<int64_t> &dataShape, int64_t numExperts,
                                         const std::vector<int64_t> &actual, RuleSubject subject);
/// The layout has one granule, and one phase if any, for each of `rank` dimensions of data.
std::optional<Violation> checkLayoutRank(const ScaleLayout &layout, size_t rank,
                                         RuleSubject subject);
/// The complaint about an element type that is not one of ElementType, in the words checkSpec would
/// use. `name` is the type's spelling; `subject` is X, W or Y.
Violation foreignElementType(std::string_view name, RuleSubject subject);

/// What `moejit explain` prints of a rule. Errors: NotFound naming the known ids.
Result<std::string> explainRule(std::string_view id);
/// The text of docs/generated/rules.md.
std::string renderRulesMarkdown();

} // namespace moejit

// The predicates of the rule table, one function a rule. Internal to runtime/Rules.cpp.
#pragma once

#include "runtime/Rules.h"

namespace moejit::rules {

/// Largest N, K, Mmax, granule and expert map: coordinates and tile counts inside a kernel are
/// 32-bit.
inline constexpr int64_t maxExtent = 1 << 20;
/// Largest E: a kernel keeps one row boundary per expert in shared memory.
inline constexpr int64_t maxExperts = 1024;

/// Collects the violations of one rule.
class Report {
public:
  Report(const char *ruleId, std::vector<Violation> &violations)
      : ruleId(ruleId), violations(violations) {}

  void add(RuleSubject subject, std::string message, std::vector<std::string> notes = {}) {
    violations.push_back({ruleId, std::move(message), std::move(notes), subject});
  }

private:
  const char *ruleId;
  std::vector<Violation> &violations;
};

/// Adds to the report what `spec` does against one rule. Called for every Spec, however malformed.
using Predicate = void (*)(const Spec &spec, const Target &target, Report &report);

void batchedIsDynamic(const Spec &spec, const Target &target, Report &report);
void staticIsCoarse(const Spec &spec, const Target &target, Report &report);
void stepAlongK(const Spec &spec, const Target &target, Report &report);
void operandTypes(const Spec &spec, const Target &target, Report &report);
void outputType(const Spec &spec, const Target &target, Report &report);
void scaleType(const Spec &spec, const Target &target, Report &report);
void multipleOfK(const Spec &spec, const Target &target, Report &report);
void multipleOfN(const Spec &spec, const Target &target, Report &report);
void granuleRank(const Spec &spec, const Target &target, Report &report);
void granuleExtent(const Spec &spec, const Target &target, Report &report);
void expertGranule(const Spec &spec, const Target &target, Report &report);
void expertCount(const Spec &spec, const Target &target, Report &report);
void wholeExperts(const Spec &spec, const Target &target, Report &report);
void weightsAreStatic(const Spec &spec, const Target &target, Report &report);
void packing(const Spec &spec, const Target &target, Report &report);
void alignment(const Spec &spec, const Target &target, Report &report);
void phase(const Spec &spec, const Target &target, Report &report);
void parts(const Spec &spec, const Target &target, Report &report);
void maskedRows(const Spec &spec, const Target &target, Report &report);
void expertMap(const Spec &spec, const Target &target, Report &report);
void quantizedFrom(const Spec &spec, const Target &target, Report &report);
void knownArchitecture(const Spec &spec, const Target &target, Report &report);
void extentLimit(const Spec &spec, const Target &target, Report &report);

void supportedQuantizedScales(const Spec &spec, const Target &target, Report &report);
void supportedArchitecture(const Spec &spec, const Target &target, Report &report);

/// "x has element type bf16, expected f8E4M3FN or f8E5M2".
std::string typeMessage(RuleSubject subject, std::string_view name);

} // namespace moejit::rules

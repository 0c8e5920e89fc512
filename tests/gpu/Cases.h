// What is run on a GPU: the list of specs that a bundle folder carries, and the routings each is
// run with.
#pragma once

#include "runtime/Result.h"
#include "runtime/Spec.h"
#include "tests/oracle/Problem.h"

#include <cstdint>
#include <string>
#include <vector>

namespace moejit::gpu {

/// One spec of the bundle, a line `name<tab>groups<tab>canonical text` of `specs.tsv`.
struct Case {
  std::string name;
  std::string groups; ///< words of: matrix, quick, light, many, generated, wide, checked,
                      ///< catalogue, quantize, quantize-speed
  Spec spec;

  bool isIn(std::string_view group) const;
};

/// Reads `<folder>/specs.tsv`. Errors: IoError; ParseError with the line.
Result<std::vector<Case>> readCases(const std::string &folder);

/// One way to share rows, with a reason to exist.
struct RoutingCase {
  std::string name;
  int64_t rows = 0;
  oracle::Routing routing;
  oracle::ProblemOptions options = {};
  bool isQuick = false;                ///< worth running under a memory checker
  std::vector<int32_t> rawCounts = {}; ///< masked: counts as the kernel sees them, out of range
};

/// The edge routings of `spec`: no row, one row, empty experts, one expert owning all, tile edges,
/// skewed rows, rows nobody owns, offsets out of order and out of range, padded strides.
std::vector<RoutingCase> routingsOf(const Case &entry);

/// Operands of `entry` under `routing`, deterministic in `seed`.
oracle::HostProblem makeProblem(const Case &entry, const RoutingCase &routing, uint64_t seed);

} // namespace moejit::gpu

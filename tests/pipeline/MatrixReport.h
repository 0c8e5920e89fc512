// The matrix as a whole, and the page that says what came of it.
#pragma once

#include <cstdint>
#include <string>

namespace moejit::test::matrix {

struct ReportOptions {
  std::string path;                ///< of the page; empty: only what is printed
  int64_t censusStep = 1;          ///< of the combinations, every so-manieth
  int64_t compiledKernels = 20000; ///< of the legal ones, how many are compiled to source
  int64_t computedKernels = 400;   ///< how many are computed, those that cover every pair first
  unsigned threads = 2;
};

/// Reads options from a command line that begins with --matrix-report, runs, prints counts and
/// failures, writes the page. Returns the exit code: 0 when nothing is wrong.
int runReport(int argc, char **argv);

} // namespace moejit::test::matrix

// What a benchmark compares: kernels (contenders) on cases, beside plain reads and a dense product.
// Shared by `moejit bench` and `moejit tune`.
#pragma once

#include "tools/moejit/Bench.h"
#include "tools/moejit/BenchCase.h"
#include "tools/moejit/Kernels.h"

#include <memory>
#include <string>
#include <vector>

namespace moejit::tool {

/// A kernel description.
struct BenchSpec {
  std::string file; ///< as given
  std::string name; ///< without folder and .mlir
  Spec spec;
};

/// One spec at one number of rows.
struct BenchPoint {
  size_t spec = 0;           ///< index of the BenchSpec
  int64_t rows = 0;          ///< of all experts
  int64_t rowsPerExpert = 0; ///< 0 where rows were given whole
  std::unique_ptr<BenchCase> data = {};
  size_t readItem = 0; ///< of BenchRun::items: the plain read of its weights
};

/// One kernel on one point.
struct Contender {
  size_t point = 0;
  std::string label; ///< "chosen", or what its plan differs in
  KernelPlan plan = {};
  Got got = {};
  std::optional<Error> refusal = {}; ///< it does not compile, or its plan is refused
  CaseCheck check = {};
  size_t item = 0; ///< of BenchRun::items
  double hostUs = 0;
};

struct BenchRun {
  std::vector<BenchSpec> specs;
  std::vector<BenchPoint> points;
  std::vector<Contender> contenders;
  std::vector<BenchItem> items;
  std::vector<std::unique_ptr<BenchWeights>> weights; ///< of each spec
};

/// The kernels of the command line: FILEs, folders, --spec, with --experts, --n and --k put in.
/// Errors: those of kernelFiles and loadSpec.
Result<std::vector<BenchSpec>> readBenchSpecs(const Arguments &arguments);

/// The plans of a file, `name=value,…` a line; # begins a comment. Errors: those of readFile;
/// InvalidArgument with the line for one that parsePlan refuses.
Result<std::vector<std::string>> planLines(const std::string &path);

/// A dense product of our own, the ceiling of what the tensor cores give: eager, 8192³, a scale a
/// tensor, sums left in the tensor core. As a point and a contender of `run`.
BenchSpec denseProduct();

/// Builds the kernels of the contenders from `first` on, `jobs` at a time (0: one a CPU), with
/// progress. Those that cannot be built get a refusal. A contender labelled "chosen" is what the
/// chooser takes.
void buildContenders(BenchRun &run, Kernels &kernels, int64_t jobs, size_t first = 0);

/// Makes the case of point `p`, and an item of its plain read. Points of a spec come one after the
/// other. Errors: those of BenchCase.
Result<void> makePoint(BenchRun &run, BenchDevice &device, const CaseRequest &request, size_t p);
/// Checks contender `i`, whose kernel was built and whose point was made, and makes its item.
/// Errors: those of Kernel::launch; a wrong result is none.
Result<void> checkContender(BenchRun &run, size_t i);
/// All points and all contenders that were built; what is on the host is given back.
Result<void> prepare(BenchRun &run, BenchDevice &device, const CaseRequest &request);

} // namespace moejit::tool

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

/// A dense product of our own, the ceiling of what the tensor cores give: eager, 8192³, a scale a
/// tensor, sums left in the tensor core. As a point and a contender of `run`.
BenchSpec denseProduct();

/// Builds the kernels of all contenders, `jobs` at a time (0: one a CPU), with progress. Those that
/// cannot be built get a refusal. A contender labelled "chosen" is what the chooser takes.
void buildContenders(BenchRun &run, Kernels &kernels, int64_t jobs);

/// Makes the cases of `run`'s points, checks every contender that was built, and adds an item for
/// each contender and for the plain read of each point. Errors: those of BenchCase, Kernel::launch.
Result<void> prepare(BenchRun &run, BenchDevice &device, const CaseRequest &request);

/// The fields in which `plan` differs from `base`, as planText writes them; "same" for none.
std::string planDifference(const KernelPlan &plan, const KernelPlan &base);

} // namespace moejit::tool

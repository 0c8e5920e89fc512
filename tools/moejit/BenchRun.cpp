// Puts kernels and cases together.
#include "tools/moejit/BenchRun.h"

#include "tools/moejit/Meter.h"
#include "tools/moejit/Parallel.h"

#include <fmt/format.h>

namespace moejit::tool {

BenchSpec denseProduct() {
  constexpr int64_t extent = 8192;
  Spec spec;
  spec.dispatch = Dispatch::Eager;
  spec.n = spec.k = extent;
  spec.xScales.granule = {Granule::whole(), Granule::whole()};
  spec.wScales.granule = {Granule::whole(), Granule::whole()};
  spec.accumulate = Accumulate::Fast;
  return {"", "dense 8192 x 8192 x 8192", spec};
}

void buildContenders(BenchRun &run, Kernels &kernels, int64_t jobs) {
  Meter meter("compiling", int64_t(run.contenders.size()));
  forEachParallel(run.contenders.size(), jobs, [&](size_t i) {
    Contender &contender = run.contenders[i];
    const BenchPoint &point = run.points[contender.point];
    const Spec &spec = run.specs[point.spec].spec;
    Result<Got> got = contender.label == "chosen" ? kernels.get(spec, point.rows)
                                                  : kernels.build(spec, contender.plan);
    if (got)
      contender.got = *got;
    else
      contender.refusal = got.error();
    meter.step(run.specs[point.spec].name);
  });
}

Result<void> prepare(BenchRun &run, BenchDevice &device, const CaseRequest &request) {
  for (const BenchSpec &spec : run.specs) {
    auto weights = std::make_unique<BenchWeights>();
    weights->spec = spec.spec;
    run.weights.push_back(std::move(weights));
  }
  Meter meter("making operands and checking kernels", int64_t(run.points.size()));
  for (size_t p = 0; p < run.points.size(); ++p) {
    BenchPoint &point = run.points[p];
    const BenchSpec &spec = run.specs[point.spec];
    auto withName = [&](Error error) {
      error.message = fmt::format("{}, {} rows: {}", spec.name, point.rows, error.message);
      return error;
    };
    CaseRequest wanted = request;
    wanted.rows = point.rows;
    wanted.seed = request.seed + p;
    Result<std::unique_ptr<BenchCase>> made =
        BenchCase::make(device, *run.weights[point.spec], wanted);
    if (!made)
      return withName(made.error());
    point.data = std::move(*made);
    BenchCase *data = point.data.get();
    for (Contender &contender : run.contenders) {
      if (contender.point != p || contender.refusal)
        continue;
      Result<CaseCheck> checked = data->check(*contender.got.kernel);
      if (!checked)
        return withName(checked.error());
      contender.check = *checked;
      contender.item = run.items.size();
      std::shared_ptr<Kernel> kernel = contender.got.kernel;
      run.items.push_back({fmt::format("{}, {} rows, {}", spec.name, point.rows, contender.label),
                           [data, kernel] { return data->launch(*kernel); }});
    }
    data->dropHost();
    point.readItem = run.items.size();
    run.items.push_back(
        {fmt::format("{}, plain read", spec.name), [data] { return data->readWeights(); }, false});
    bool isLast = p + 1 == run.points.size() || run.points[p + 1].spec != point.spec;
    if (isLast) // nobody needs the host's copy of the weights any more
      run.weights[point.spec]->problem = oracle::HostProblem();
    meter.step(spec.name);
  }
  return {};
}

std::string planDifference(const KernelPlan &plan, const KernelPlan &base) {
  std::string text = planText(plan), other = planText(base), difference;
  size_t at = 0, otherAt = 0;
  while (at < text.size()) {
    size_t end = std::min(text.find(',', at), text.size());
    size_t otherEnd = std::min(other.find(',', otherAt), other.size());
    std::string field = text.substr(at, end - at);
    if (field != other.substr(otherAt, otherEnd - otherAt))
      difference += (difference.empty() ? "" : ",") + field;
    at = end + 1;
    otherAt = otherEnd + 1;
  }
  return difference.empty() ? "same" : difference;
}

} // namespace moejit::tool

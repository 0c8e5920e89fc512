// Puts kernels and cases together.
#include "tools/moejit/BenchRun.h"

#include "tools/moejit/Input.h"
#include "tools/moejit/Meter.h"
#include "tools/moejit/Parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace moejit::tool {

Result<std::vector<BenchSpec>> readBenchSpecs(const Arguments &arguments) {
  std::vector<std::string> files;
  if (arguments.has("--spec"))
    files.push_back("");
  if (!arguments.words.empty() || files.empty()) {
    Result<std::vector<std::string>> named = kernelFiles(arguments.words);
    if (!named)
      return named.error();
    files.insert(files.end(), named->begin(), named->end());
  }
  std::vector<BenchSpec> specs;
  for (const std::string &file : files) {
    Result<Spec> spec = loadSpec(arguments, file);
    if (!spec)
      return spec.error();
    std::string name = file.empty() ? "spec" : std::filesystem::path(file).stem().string();
    specs.push_back({file, name, *spec});
  }
  return specs;
}

Result<std::vector<std::string>> planLines(const std::string &path) {
  Result<std::string> file = readFile(path, 1 << 20);
  if (!file)
    return file.error();
  std::vector<std::string> texts;
  int64_t number = 0;
  for (size_t begin = 0; begin < file->size();) {
    size_t end = std::min(file->find('\n', begin), file->size());
    std::string line = file->substr(begin, end - begin);
    begin = end + 1;
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    std::erase_if(line, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
    if (line.empty())
      continue;
    if (Result<KernelPlan> plan = parsePlan(line); !plan)
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("{}:{}: {}", path, number, plan.error().message),
                   plan.error().notes};
    texts.push_back(line);
  }
  return texts;
}

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

void buildContenders(BenchRun &run, Kernels &kernels, int64_t jobs, size_t first) {
  // Points of one spec share the kernels of given plans.
  std::map<std::string, std::vector<size_t>> groups;
  for (size_t i = first; i < run.contenders.size(); ++i) {
    const Contender &contender = run.contenders[i];
    const BenchPoint &point = run.points[contender.point];
    bool isChosen = contender.label == "chosen";
    groups[fmt::format("{} {}", point.spec,
                       isChosen ? fmt::format("rows {}", point.rows) : planText(contender.plan))]
        .push_back(i);
  }
  std::vector<const std::vector<size_t> *> tasks;
  for (const auto &group : groups)
    tasks.push_back(&group.second);
  Meter meter("compiling", int64_t(tasks.size()));
  forEachParallel(tasks.size(), jobs, [&](size_t t) {
    const Contender &contender = run.contenders[tasks[t]->front()];
    const BenchPoint &point = run.points[contender.point];
    const BenchSpec &spec = run.specs[point.spec];
    Result<Got> got = contender.label == "chosen" ? kernels.get(spec.spec, point.rows)
                                                  : kernels.build(spec.spec, contender.plan);
    for (size_t i : *tasks[t])
      if (got)
        run.contenders[i].got = *got;
      else
        run.contenders[i].refusal = got.error();
    meter.step(spec.name);
  });
}

static Error withName(const BenchRun &run, size_t point, Error error) {
  error.message = fmt::format("{}, {} rows: {}", run.specs[run.points[point].spec].name,
                              run.points[point].rows, error.message);
  return error;
}

Result<void> makePoint(BenchRun &run, BenchDevice &device, const CaseRequest &request, size_t p) {
  while (run.weights.size() < run.specs.size()) {
    run.weights.push_back(std::make_unique<BenchWeights>());
    run.weights.back()->spec = run.specs[run.weights.size() - 1].spec;
  }
  BenchPoint &point = run.points[p];
  CaseRequest wanted = request;
  wanted.rows = point.rows;
  wanted.seed = request.seed + p;
  Result<std::unique_ptr<BenchCase>> made =
      BenchCase::make(device, *run.weights[point.spec], wanted);
  if (!made)
    return withName(run, p, made.error());
  point.data = std::move(*made);
  BenchCase *data = point.data.get();
  point.readItem = run.items.size();
  run.items.push_back({fmt::format("{}, plain read", run.specs[point.spec].name),
                       [data] { return data->readWeights(); }, false});
  // Nobody needs the host's copy of the weights any more.
  if (p + 1 == run.points.size() || run.points[p + 1].spec != point.spec)
    run.weights[point.spec]->problem = oracle::HostProblem();
  return {};
}

Result<void> checkContender(BenchRun &run, size_t i) {
  Contender &contender = run.contenders[i];
  BenchPoint &point = run.points[contender.point];
  BenchCase *data = point.data.get();
  Result<CaseCheck> checked = data->check(*contender.got.kernel);
  if (!checked)
    return withName(run, contender.point, checked.error());
  contender.check = *checked;
  contender.item = run.items.size();
  std::shared_ptr<Kernel> kernel = contender.got.kernel;
  run.items.push_back(
      {fmt::format("{}, {} rows, {}", run.specs[point.spec].name, point.rows, contender.label),
       [data, kernel] { return data->launch(*kernel); }});
  return {};
}

Result<void> prepare(BenchRun &run, BenchDevice &device, const CaseRequest &request) {
  Meter meter("making operands and checking kernels", int64_t(run.points.size()));
  for (size_t p = 0; p < run.points.size(); ++p) {
    if (Result<void> made = makePoint(run, device, request, p); !made)
      return made;
    for (size_t i = 0; i < run.contenders.size(); ++i)
      if (run.contenders[i].point == p && !run.contenders[i].refusal)
        if (Result<void> checked = checkContender(run, i); !checked)
          return checked;
    run.points[p].data->dropHost();
    meter.step(run.specs[run.points[p].spec].name);
  }
  return {};
}

} // namespace moejit::tool

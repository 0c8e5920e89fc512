// Tables and JSON of benchmarks.
#include "tools/moejit/BenchReport.h"

#include "tools/moejit/Report.h"
#include "tools/moejit/Roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace moejit::tool {
namespace {

/// The numbers of one contender.
struct Line {
  const BenchPoint &point;
  const BenchSpec &spec;
  const Contender &contender;
  const BenchItem &item;
  double us, readUs;

  double teraflops(double time) const { return point.data->operations() / time / 1e6; }
  /// Of weights; of all that a quantization reads and writes.
  double gigabytes(double time) const {
    bool isGemm = spec.spec.computation == Computation::Gemm;
    return (isGemm ? point.data->weightBytes() : point.data->leastBytes()) / time / 1e3;
  }
  std::string rows() const {
    return point.rowsPerExpert ? fmt::format("{}", point.rowsPerExpert)
                               : fmt::format("{} in all", point.rows);
  }
};

std::vector<Line> linesOf(const BenchRun &run, const BenchHow &how) {
  std::vector<Line> lines;
  for (size_t i = 0; i < run.contenders.size(); ++i) {
    const Contender &contender = run.contenders[i];
    if (contender.refusal || how.denseContender == i)
      continue;
    const BenchPoint &point = run.points[contender.point];
    const BenchItem &item = run.items[contender.item];
    lines.push_back({point, run.specs[point.spec], contender, item, median(item.us),
                     median(run.items[point.readItem].us)});
  }
  return lines;
}

std::string number(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "–";
}

void writeClocks(JsonWriter &json, const char *key, const ClockSummary &clocks) {
  json.key(key);
  if (clocks.samples == 0) {
    json.null();
    return;
  }
  json.beginObject().field("samples", clocks.samples);
  json.field("leastSmMHz", clocks.leastSmMHz).field("mostSmMHz", clocks.mostSmMHz);
  json.field("mostWatts", clocks.mostWatts).field("mostCelsius", clocks.mostCelsius);
  json.key("throttle").beginArray();
  for (const std::string &name : throttleNames(clocks.throttleReasons))
    json.string(name);
  json.endArray().endObject();
}

void writeTimes(JsonWriter &json, const char *key, const std::vector<double> &us) {
  json.key(key).beginArray();
  for (double time : us)
    json.real(time);
  json.endArray();
}

void writeLine(JsonWriter &json, const Line &line) {
  const BenchCase &data = *line.point.data;
  const Artifact &artifact = line.contender.got.kernel->artifact();
  json.beginObject().field("kernel", line.spec.name).field("file", line.spec.file);
  json.field("spec", canonicalText(line.spec.spec)).field("peer", "moejit");
  json.field("label", line.contender.label).field("plan", artifact.planText);
  json.field("rows", data.rows()).field("ownedRows", data.ownedRows());
  json.field("rowsPerExpert", line.point.rowsPerExpert).field("routing", data.routing());
  json.field("activeExperts", data.activeExperts());
  json.field("leastRows", data.leastRows()).field("mostRows", data.mostRows());
  json.field("us", line.us).field("leastUs", quantile(line.item.us, 0));
  json.field("mostUs", quantile(line.item.us, 1)).field("spread", spread(line.item.us));
  writeTimes(json, "allUs", line.item.us);
  json.field("operations", data.operations()).field("weightBytes", data.weightBytes());
  json.field("leastBytes", data.leastBytes());
  json.field("teraflops", line.teraflops(line.us));
  json.field("gigabytesPerSecond", line.gigabytes(line.us));
  json.field("readUs", line.readUs).field("shareOfRead", line.readUs / line.us);
  json.field("hostUs", line.contender.hostUs);
  if (!line.item.sustainedUs.empty()) {
    double us = median(line.item.sustainedUs);
    json.field("sustainedUs", us).field("sustainedTeraflops", line.teraflops(us));
    writeTimes(json, "allSustainedUs", line.item.sustainedUs);
    writeClocks(json, "sustainedClocks", line.item.sustainedClocks);
  }
  json.field("registers", artifact.resources.registers);
  json.field("spillBytes", artifact.resources.spillStoreBytes + artifact.resources.spillLoadBytes);
  json.field("sharedBytes", artifact.launch.sharedBytes + artifact.resources.staticSharedBytes);
  json.key("check");
  const CaseCheck &check = line.contender.check;
  if (check.isDone) {
    json.beginObject().field("ok", check.isOk).field("relativeError", check.relativeError);
    json.field("columns", check.columns).field("text", check.text).endObject();
  } else {
    json.null();
  }
  writeClocks(json, "clocks", line.item.clocks);
  json.endObject();
}

std::string checkText(const CaseCheck &check) {
  if (!check.isDone)
    return "not checked";
  return check.isOk ? fmt::format("ok, {:.2e}", check.relativeError) : "WRONG";
}

} // namespace

double computeCeiling(const BenchRun &run, const BenchHow &how) {
  if (how.givenTeraflops > 0)
    return how.givenTeraflops;
  if (!how.denseContender || run.contenders[*how.denseContender].refusal)
    return 0;
  const Contender &dense = run.contenders[*how.denseContender];
  return run.points[dense.point].data->operations() / median(run.items[dense.item].us) / 1e6;
}

double memoryCeiling(const BenchRun &run, const BenchHow &how) {
  return how.memoryBytes / median(run.items[how.memoryItem].us) / 1e3;
}

bool isAnyWrong(const BenchRun &run) {
  return std::any_of(run.contenders.begin(), run.contenders.end(), [](const Contender &each) {
    return !each.refusal && each.check.isDone && !each.check.isOk;
  });
}

std::string benchText(const BenchRun &run, const BenchHow &how) {
  double ceiling = computeCeiling(run, how);
  std::vector<Line> lines = linesOf(run, how);
  bool isSustained = how.measuring.windowMs > 0;
  bool hasPlans = std::any_of(lines.begin(), lines.end(),
                              [](const Line &line) { return line.contender.label != "chosen"; });
  std::vector<std::string> heading = {"kernel", "rows an expert"};
  if (hasPlans)
    heading.push_back("plan");
  for (const char *title :
       {"µs", "±%", "TFLOP/s", "% of dense", "GB/s", "% of read", "host µs", "registers", "spills"})
    heading.push_back(title);
  if (isSustained)
    heading.insert(heading.end(), {"sustained µs", "TFLOP/s"});
  heading.push_back("check");
  std::vector<std::vector<std::string>> rows = {heading};
  for (const Line &line : lines) {
    const ResourceUsage &used = line.contender.got.kernel->artifact().resources;
    bool isGemm = line.spec.spec.computation == Computation::Gemm;
    double speed = line.teraflops(line.us);
    std::vector<std::string> row = {line.spec.name, line.rows()};
    if (hasPlans)
      row.push_back(line.contender.label);
    row.insert(row.end(),
               {number(line.us, 1), number(50 * spread(line.item.us), 1),
                isGemm ? number(speed, 0) : "–",
                isGemm && ceiling > 0 ? number(100 * speed / ceiling, 1) : "–",
                number(line.gigabytes(line.us), 0), number(100 * line.readUs / line.us, 0),
                number(line.contender.hostUs, 1), fmt::format("{}", used.registers),
                fmt::format("{}", used.spillStoreBytes + used.spillLoadBytes)});
    if (isSustained) {
      double us = median(line.item.sustainedUs);
      row.insert(row.end(), {number(us, 1), isGemm ? number(line.teraflops(us), 0) : "–"});
    }
    row.push_back(checkText(line.contender.check));
    rows.push_back(row);
  }
  std::string text =
      fmt::format("{}, {} SMs, driver for CUDA {}, NVRTC {}\n{} rounds of {} calls in shuffled "
                  "order, {:g} ms idle before each block, L2 {}; medians, ± half the middle "
                  "half; routing {}, seed {}\n",
                  how.device, how.smCount, how.driver, how.nvrtc, how.measuring.rounds,
                  how.measuring.repeats, how.measuring.idleMs, how.flush, how.routing, how.seed);
  if (ceiling > 0)
    text += fmt::format(
        "dense: {:.0f} TFLOP/s, {}\n", ceiling,
        how.givenTeraflops > 0
            ? "as given"
            : run.specs[run.points[run.contenders[*how.denseContender].point].spec].name +
                  " of moejit");
  text += fmt::format("read: {:.0f} GB/s, {:.0f} MiB by {}\n", memoryCeiling(run, how),
                      how.memoryBytes / 1048576, how.readText);
  if (!how.clocks.empty())
    text += fmt::format("clocks: {}\n", how.clocks);
  text += "\n" + table(rows);
  for (const Line &line : lines)
    if (line.contender.check.isDone && !line.contender.check.isOk)
      text += fmt::format("\nWRONG: {}: {}", line.item.name, line.contender.check.text);
  for (const Contender &contender : run.contenders)
    if (contender.refusal)
      text += fmt::format("\nnot run: {}, {}: {}", run.specs[run.points[contender.point].spec].name,
                          contender.label, contender.refusal->message);
  return text.ends_with('\n') ? text : text + "\n";
}

std::string benchJson(const BenchRun &run, const BenchHow &how) {
  JsonWriter json;
  json.beginObject().field("format", 1).key("device").beginObject();
  json.field("name", how.device).field("smCount", how.smCount).field("driver", how.driver);
  json.field("nvrtc", how.nvrtc).field("clocks", how.clocks).endObject();
  json.key("how").beginObject().field("rounds", how.measuring.rounds);
  json.field("repeats", how.measuring.repeats).field("idleMs", how.measuring.idleMs);
  json.field("windowMs", how.measuring.windowMs).field("l2", how.flush).field("seed", how.seed);
  json.field("read", how.readText).field("routing", how.routing).endObject();
  json.key("ceilings").beginObject().field("teraflops", computeCeiling(run, how));
  json.field("teraflopsFrom", how.givenTeraflops > 0 ? "given"
                              : how.denseContender   ? "moejit dense 8192"
                                                     : "none");
  json.field("gigabytesPerSecond", memoryCeiling(run, how)).endObject();
  json.key("lines").beginArray();
  for (const Line &line : linesOf(run, how))
    writeLine(json, line);
  json.endArray().key("refused").beginArray();
  for (const Contender &contender : run.contenders)
    if (contender.refusal) {
      const BenchPoint &point = run.points[contender.point];
      json.beginObject().field("kernel", run.specs[point.spec].name);
      json.field("rows", point.rows).field("label", contender.label);
      json.field("message", contender.refusal->message).endObject();
    }
  return json.endArray().endObject().text();
}

std::string benchSvg(const BenchRun &run, const BenchHow &how) {
  Roofline roofline;
  roofline.title = fmt::format("moejit on {}", how.device);
  roofline.subtitle =
      fmt::format("numbers at points: rows an expert; routing {}; L2 {}", how.routing, how.flush);
  roofline.gigabytesPerSecond = memoryCeiling(run, how);
  roofline.memoryText = "a plain read";
  roofline.teraflops = computeCeiling(run, how);
  roofline.computeText = how.givenTeraflops > 0 ? "dense, as given" : "our own dense 8192³";
  for (const Line &line : linesOf(run, how)) {
    bool isChosen = line.contender.label == "chosen";
    roofline.points.push_back(
        {isChosen ? line.spec.name : line.spec.name + ", " + line.contender.label, line.rows(),
         line.point.data->operations() / line.point.data->leastBytes(), line.teraflops(line.us)});
  }
  return rooflineSvg(roofline);
}

} // namespace moejit::tool

// Prints what check found.
#include "tools/moejit/CheckReport.h"

#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace moejit::tool {
namespace {

using namespace checkpoint;

const char *plural(int64_t count) { return count == 1 ? "" : "s"; }

/// "[256, 4, 56]"; rows that are not static are S.
std::string shapeText(const std::vector<int64_t> &shape) {
  std::vector<std::string> extents;
  for (int64_t extent : shape)
    extents.push_back(extent < 0 ? "S" : std::to_string(extent));
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

/// The launch whose layouts stand for the GEMM: grouped, or the only one there is.
const ExpertLaunch *mainLaunch(const ExpertGemm &gemm) {
  for (const ExpertLaunch &launch : gemm.launches)
    if (launch.dispatch == Dispatch::Grouped && launch.input == Input::Fp8)
      return &launch;
  return gemm.launches.empty() ? nullptr : &gemm.launches.front();
}

std::string weightScalesText(const ExpertGemm &gemm) {
  const ExpertLaunch *launch = mainLaunch(gemm);
  if (!launch)
    return "-";
  const Spec &spec = launch->spec;
  std::string shape = shapeText(scaleShape(spec.wScales, wShape(spec), spec.numExperts));
  return spec.wScales.parts > 1 ? shape + " (gate and up apart)" : shape;
}

std::string activationScalesText(const ExpertGemm &gemm) {
  const ExpertLaunch *launch = mainLaunch(gemm);
  if (!launch)
    return "-";
  const Spec &spec = launch->spec;
  if (spec.xScales.source == ScaleSource::Static && gemm.scheme.activations != Strategy::Tensor)
    return fmt::format("by {}, static", strategyName(gemm.scheme.activations));
  if (spec.xScales.source == ScaleSource::Static)
    return spec.dispatch == Dispatch::Eager ? "one, static" : "one an expert, static";
  return shapeText(scaleShape(spec.xScales, xShape(spec), spec.numExperts));
}

std::string engineText(const EngineChoice &choice) {
  return fmt::format("{} {}", choice.engine->name, choice.versionText());
}

/// "runs as configured", short enough for a column.
std::string verdictText(const Verdict &verdict) { return outcomeName(verdict.outcome); }

std::string numbersText(const std::vector<int64_t> &numbers) {
  return numbers.empty() ? "none" : fmt::format("{}", fmt::join(numbers, ", "));
}

/// What all there is to say in front: the model, its scheme, the split.
std::string headText(const CheckedFile &file, const CheckOptions &options) {
  const Checkpoint &model = *file.checkpoint;
  const Experts &routed = model.routed;
  std::string text = fmt::format("{}\n", printable(file.path, false));
  std::string space = routed.input == model.hidden
                          ? ""
                          : fmt::format(" (a latent space; hidden_size is {})", model.hidden);
  std::string shared =
      model.shared ? fmt::format(", shared experts of I {}", model.shared->intermediate) : "";
  text += fmt::format("{}{} experts{}, H {}{}, I {}, {}{}\n",
                      model.modelType.empty() ? "" : printable(model.modelType, false) + ": ",
                      routed.count, model.topK > 0 ? fmt::format(" (top {})", model.topK) : "",
                      routed.input, space, routed.intermediate,
                      routed.isGated ? "gated" : "no gate", shared);
  const Scheme &scheme = routed.up.isFp8 ? routed.up : routed.down;
  // The name of an FP8 scheme begins with "fp8, ".
  text += fmt::format("{}: {} ({})", model.methodText, scheme.name.substr(5), scheme.field);
  if (routed.layers > 0)
    text += fmt::format(", in {} of {} layers with experts", routed.fp8Layers, routed.layers);
  text +=
      fmt::format("\ntp {}, ep {}, {}\n", options.split.tp, options.split.ep, options.target.arch);
  return text;
}

std::string gemmTable(const Check &check) {
  std::vector<std::vector<std::string>> rows = {
      {"projection", "experts", "N", "K", "weight scales", "activation scales"}};
  for (const ExpertGemm &gemm : check.gemms)
    rows.push_back({gemm.projection, std::to_string(gemm.experts), std::to_string(gemm.n),
                    std::to_string(gemm.k), gemm.why.empty() ? weightScalesText(gemm) : gemm.why,
                    activationScalesText(gemm)});
  return table(rows);
}

/// The reason of a verdict in a few words, of the projections it is of.
std::string reasonText(const DispatchCheck &each) {
  if (each.overall.ruleId.empty())
    return each.overall.outcome == Outcome::Unknown ? each.overall.fact : "";
  std::string where;
  if (each.verdicts.size() == 2 && each.verdicts[0].outcome != each.verdicts[1].outcome)
    where = each.verdicts[0].ruleId == each.overall.ruleId ? " (gate_up)" : " (down)";
  return each.overall.ruleId + where;
}

std::string moejitReason(const MoejitCheck &each) {
  if (!each.violations.empty())
    return each.violations.front().text();
  return each.why;
}

std::string verdictTable(const Check &check) {
  std::vector<std::vector<std::string>> rows = {
      {"engine", "dispatch", "verdict", "known by", "rule"}};
  for (const DispatchCheck &each : check.dispatches)
    rows.push_back({engineText(each.choice), each.dispatch, verdictText(each.overall),
                    evidenceName(each.overall.evidence), reasonText(each)});
  for (const MoejitCheck &each : check.moejit)
    rows.push_back({"moejit", dispatchName(each.dispatch), each.isLegal ? "compiles" : "refused",
                    "own rules",
                    each.isLegal ? fmt::format("{} kernel{}", each.kernels, plural(each.kernels))
                                 : moejitReason(each)});
  return table(rows);
}

/// What each rule that was met says, once, with what works instead.
std::string detailText(const Check &check, const CheckOptions &options) {
  std::string text;
  std::set<std::string> told;
  for (const DispatchCheck &each : check.dispatches)
    for (const Verdict &verdict : each.verdicts) {
      if (verdict.ruleId.empty() || verdict.outcome == Outcome::NotApplicable ||
          !told.insert(verdict.ruleId + verdict.detail).second)
        continue;
      text += fmt::format("\n{}: {}\n", verdict.ruleId, outcomeName(verdict.outcome));
      if (!verdict.detail.empty())
        text += fmt::format("  here      {}\n", verdict.detail);
      text += fmt::format("  fact      {}\n  source    {}\n", verdict.fact, verdict.source);
      if (works(verdict.outcome))
        continue;
      if (*verdict.remedy.c_str())
        text += fmt::format("  instead   {}\n", verdict.remedy);
      if (!each.workingTp.empty())
        text += fmt::format("  tp        {} with {}\n", numbersText(each.workingTp), each.dispatch);
      if (each.worksWithEp)
        text +=
            fmt::format("  ep        tp 1 with ep {} works\n", options.split.tp * options.split.ep);
    }
  for (const MoejitCheck &each : check.moejit)
    for (const Violation &violation : each.violations) {
      if (!told.insert(violation.ruleId).second)
        continue;
      text += fmt::format("\n{} (moejit's own rule): refused\n  here      {}\n", violation.ruleId,
                          violation.message);
      for (const std::string &note : violation.notes)
        text += fmt::format("  instead   {}\n", note);
    }
  return text;
}

/// "sglang: fused_moe, cutlass" of what works; and who does not.
std::string summaryText(const Check &check) {
  std::vector<std::string> fine, failing;
  std::set<std::string> seen;
  for (const DispatchCheck &each : check.dispatches) {
    std::string name = engineText(each.choice);
    if (!seen.insert(name).second)
      continue;
    std::vector<std::string> dispatches;
    bool isUnknown = false, isReached = false;
    for (const DispatchCheck &other : check.dispatches)
      if (engineText(other.choice) == name) {
        if (works(other.overall.outcome))
          dispatches.push_back(other.overall.outcome == Outcome::Runs ? other.dispatch
                                                                      : other.dispatch + "*");
        isUnknown = isUnknown || other.overall.outcome == Outcome::Unknown;
        isReached = isReached || other.overall.outcome != Outcome::NotApplicable;
      }
    if (!dispatches.empty())
      fine.push_back(fmt::format("{} ({})", name, fmt::join(dispatches, ", ")));
    else
      failing.push_back(fmt::format("{} ({})", name,
                                    !isReached  ? "not by this way"
                                    : isUnknown ? "unknown"
                                                : "refused"));
  }
  std::string text;
  if (!fine.empty())
    text += fmt::format("works     {}\n", fmt::join(fine, "\n          "));
  if (!failing.empty())
    text += fmt::format("does not  {}\n", fmt::join(failing, "\n          "));
  if (text.find('*') != std::string::npos)
    text += "          * as something else than the checkpoint is configured\n";
  return text;
}

/// For each engine without a dispatch that works, the nearest change that makes one work.
std::string nearestText(const Check &check, const CheckOptions &options) {
  std::string text;
  for (const EngineChoice &choice : options.engines) {
    if (check.hasWorking(choice))
      continue;
    std::string found;
    for (const DispatchCheck &each : check.dispatches) {
      if (each.choice != choice || each.overall.outcome != Outcome::Refused)
        continue;
      if (!each.workingTp.empty()) {
        found = fmt::format("tp {} with {}", numbersText(each.workingTp), each.dispatch);
        if (each.worksWithEp)
          found += fmt::format(", or tp 1 with ep {}", options.split.tp * options.split.ep);
        break;
      }
      if (found.empty() && !each.overall.remedy.empty())
        found = each.overall.remedy;
    }
    if (!found.empty())
      text += fmt::format("{}{}: {}\n", text.empty() ? "nearest   " : "          ",
                          engineText(choice), found);
  }
  return text;
}

std::string tensorText(const TensorReport &report) {
  std::string found =
      report.findingCount > 0
          ? fmt::format("{} thing{} wrong", report.findingCount, plural(report.findingCount))
      : report.hasTypes() ? "every expert has its scales, of the right shape and type"
                          : "every expert has its scales, by name";
  std::string text = fmt::format("\ntensors   {} ({}), {} layers with experts: {}\n",
                                 report.tensors, report.source, report.layers, found);
  if (report.typed > 0 && report.untyped > 0)
    text += fmt::format("          {} of {} tensors of experts are in no file here: their shapes "
                        "and types are not known\n",
                        report.untyped, report.typed + report.untyped);
  for (const std::string &finding : report.findings)
    text += fmt::format("          {}\n", finding);
  if (report.findingCount > int64_t(report.findings.size()))
    text += fmt::format("          and {} more\n",
                        report.findingCount - int64_t(report.findings.size()));
  if (report.hasStaticScales)
    text += "          the values of static scales were not read: 0, NaN or a negative one would "
            "not be seen here\n";
  return text;
}

void write(JsonWriter &json, const Scheme &scheme) {
  json.beginObject().field("isFp8", scheme.isFp8).field("name", scheme.name);
  json.field("weights", strategyName(scheme.weights));
  json.field("activations", strategyName(scheme.activations));
  if (scheme.weights == Strategy::Block)
    json.key("block").beginArray().number(scheme.blockN).number(scheme.blockK).endArray();
  if (scheme.activations == Strategy::Group)
    json.field("group", scheme.group);
  json.field("source", scaleSourceName(scheme.source));
  json.field("weightType", elementTypeName(scheme.weightType));
  json.field("scaleType", elementTypeName(scheme.scaleType));
  json.field("isStrategyDefaulted", scheme.isStrategyDefaulted).field("field", scheme.field);
  json.endObject();
}

void write(JsonWriter &json, const char *name, const Experts &experts) {
  json.key(name).beginObject().field("count", experts.count);
  json.field("input", experts.input).field("intermediate", experts.intermediate);
  json.field("isGated", experts.isGated).field("hasBias", experts.hasBias);
  json.field("layers", experts.layers).field("fp8Layers", experts.fp8Layers);
  json.key("up");
  write(json, experts.up);
  json.key("down");
  write(json, experts.down);
  json.field("why", experts.why).endObject();
}

void writeNumbers(JsonWriter &json, const char *name, const std::vector<int64_t> &numbers) {
  json.key(name).beginArray();
  for (int64_t number : numbers)
    json.number(number);
  json.endArray();
}

void writeStrings(JsonWriter &json, const char *name, const std::vector<std::string> &strings) {
  json.key(name).beginArray();
  for (const std::string &text : strings)
    json.string(text);
  json.endArray();
}

void write(JsonWriter &json, const std::vector<Violation> &violations) {
  json.key("violations").beginArray();
  for (const Violation &violation : violations) {
    json.beginObject().field("rule", violation.ruleId).field("message", violation.message);
    writeStrings(json, "notes", violation.notes);
    json.endObject();
  }
  json.endArray();
}

void writeFields(JsonWriter &json, const Verdict &verdict) {
  json.field("outcome", outcomeName(verdict.outcome));
  json.field("evidence", evidenceName(verdict.evidence)).field("rule", verdict.ruleId);
  json.field("detail", verdict.detail).field("fact", verdict.fact);
  json.field("source", verdict.source).field("remedy", verdict.remedy);
}

void write(JsonWriter &json, const Check &check) {
  json.key("gemms").beginArray();
  for (const ExpertGemm &gemm : check.gemms) {
    json.beginObject().field("projection", gemm.projection).field("n", gemm.n);
    json.field("k", gemm.k).field("experts", gemm.experts).field("why", gemm.why);
    json.field("weightScales", weightScalesText(gemm));
    json.field("activationScales", activationScalesText(gemm)).key("launches").beginArray();
    for (const ExpertLaunch &launch : gemm.launches) {
      json.beginObject().field("dispatch", dispatchName(launch.dispatch));
      json.field("input", launch.input == Input::Fp8 ? "fp8" : "bf16");
      writeNumbers(json, "ranks", launch.ranks);
      json.field("spec", canonicalText(launch.spec));
      write(json, launch.violations);
      json.endObject();
    }
    json.endArray().endObject();
  }
  json.endArray().key("verdicts").beginArray();
  for (const DispatchCheck &each : check.dispatches) {
    json.beginObject().field("engine", each.choice.engine->name);
    json.field("version", each.choice.versionText());
    json.field("dispatch", each.dispatch);
    writeFields(json, each.overall);
    writeNumbers(json, "workingTp", each.workingTp);
    json.field("worksWithEp", each.worksWithEp).key("projections").beginArray();
    for (size_t i = 0; i < each.verdicts.size(); ++i) {
      json.beginObject().field("projection", check.gemms[i].projection);
      writeFields(json, each.verdicts[i]);
      json.endObject();
    }
    json.endArray().endObject();
  }
  json.endArray().key("moejit").beginArray();
  for (const MoejitCheck &each : check.moejit) {
    json.beginObject().field("dispatch", dispatchName(each.dispatch));
    json.field("compiles", each.isLegal).field("kernels", each.kernels).field("why", each.why);
    write(json, each.violations);
    json.endObject();
  }
  json.endArray();
  if (check.splitProblem) {
    json.key("splitProblem").beginObject().field("message", check.splitProblem->message);
    writeStrings(json, "notes", check.splitProblem->notes);
    json.endObject();
  }
  if (!check.tensors)
    return;
  json.key("tensors").beginObject().field("source", check.tensors->source);
  json.field("tensors", check.tensors->tensors).field("layers", check.tensors->layers);
  json.field("hasTypes", check.tensors->hasTypes()).field("typed", check.tensors->typed);
  json.field("untyped", check.tensors->untyped);
  json.field("staticScaleValuesRead", false).field("findingCount", check.tensors->findingCount);
  writeStrings(json, "findings", check.tensors->findings);
  json.endObject();
}

} // namespace

std::string checkText(const CheckedFile &file, const CheckOptions &options) {
  if (!file.check)
    return printable(fmt::format("{}\nnothing to do: {}\n", file.path, file.nothingToDo));
  const Check &check = *file.check;
  std::string text = headText(file, options) + "\n";
  if (check.splitProblem) {
    text += fmt::format("refused   {}\n", check.splitProblem->message);
    for (const std::string &note : check.splitProblem->notes)
      text += fmt::format("          {}\n", note);
    return printable(text + (check.tensors ? tensorText(*check.tensors) : ""));
  }
  text += summaryText(check) + nearestText(check, options);
  for (const std::string &unmet : file.unmet)
    text += fmt::format("unmet     {}\n", unmet);
  for (const auto *notes : {&file.checkpoint->notes, &check.notes})
    for (const std::string &note : *notes)
      text += fmt::format("note      {}\n", note);
  if (check.tensors)
    text += tensorText(*check.tensors);
  text += "\n" + gemmTable(check) + "\n" + verdictTable(check);
  return printable(text + detailText(check, options));
}

std::string checkTable(const std::vector<CheckedFile> &files) {
  std::vector<std::vector<std::string>> rows = {{"file", "experts", "scheme", "works", "exit"}};
  for (const CheckedFile &file : files) {
    std::string name = file.path;
    if (size_t slash = name.rfind('/'); slash != std::string::npos) {
      bool isPlain = name.substr(slash + 1) == "config.json";
      size_t before = isPlain && slash > 0 ? name.rfind('/', slash - 1) : slash;
      name = name.substr(before == std::string::npos ? 0 : before + 1);
    }
    std::vector<std::string> row = {name, "-", "-", "-", std::to_string(file.exit)};
    if (file.error)
      row[2] = "unusable: " + file.error->message;
    else if (!file.check)
      row[2] = file.nothingToDo;
    if (file.checkpoint && file.checkpoint->routed.count > 0)
      row[1] = std::to_string(file.checkpoint->routed.count);
    if (file.check) {
      const Experts &routed = file.checkpoint->routed;
      row[2] = routed.up.isFp8 ? routed.up.name : routed.down.name;
      std::set<std::string> working;
      for (const DispatchCheck &each : file.check->dispatches)
        if (works(each.overall.outcome))
          working.insert(each.choice.engine->name);
      row[3] = file.check->splitProblem ? "the split does not divide"
               : working.empty()        ? "none"
                                        : fmt::format("{}", fmt::join(working, ", "));
    }
    for (std::string &cell : row)
      cell = printable(cell, false);
    rows.push_back(std::move(row));
  }
  return table(rows);
}

std::string checkJson(const std::vector<CheckedFile> &files, const CheckOptions &options,
                      int exit) {
  JsonWriter json;
  json.beginObject().field("tp", options.split.tp).field("ep", options.split.ep);
  json.field("arch", options.target.arch).key("checkpoints").beginArray();
  for (const CheckedFile &file : files) {
    json.beginObject().field("path", file.path).field("exit", file.exit);
    if (file.error) {
      json.key("error").beginObject().field("code", errorCodeName(file.error->code));
      json.field("message", file.error->message);
      writeStrings(json, "notes", file.error->notes);
      json.endObject();
    }
    if (file.checkpoint) {
      const Checkpoint &model = *file.checkpoint;
      json.field("modelType", model.modelType).field("hidden", model.hidden);
      json.field("layers", model.layers).field("topK", model.topK);
      json.field("activation", model.activation).field("method", methodName(model.method));
      json.field("methodText", model.methodText).field("needsFp8", model.needsFp8());
      write(json, "routed", model.routed);
      if (model.shared)
        write(json, "shared", *model.shared);
      std::vector<std::string> notes = model.notes;
      if (file.check)
        notes.insert(notes.end(), file.check->notes.begin(), file.check->notes.end());
      writeStrings(json, "notes", notes);
    }
    if (!file.nothingToDo.empty())
      json.field("nothingToDo", file.nothingToDo);
    writeStrings(json, "unmet", file.unmet);
    if (file.check)
      write(json, *file.check);
    json.endObject();
  }
  return json.endArray().field("exit", exit).endObject().text();
}

} // namespace moejit::tool

// Journal lines are tab-separated: kind (B begun, R result), then the fields of Outcome.
#include "tests/gpu/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

namespace moejit::gpu {

namespace {

std::vector<std::string> split(const std::string &line) {
  std::vector<std::string> fields(1);
  for (char c : line)
    if (c == '\t')
      fields.emplace_back();
    else
      fields.back() += c;
  return fields;
}

std::string plain(std::string text) {
  for (char &c : text)
    if (c == '\t' || c == '\n' || c == '\r' || c == '|')
      c = ' ';
  return text;
}

/// Worst values of many outcomes.
struct Worst {
  int64_t checks = 0, failed = 0, elements = 0;
  double relativeError = 0, worstRatio = 0;
  std::string worstAt;

  void add(const Outcome &outcome, const std::string &where) {
    ++checks;
    failed += !outcome.ok;
    elements += outcome.compared;
    // Errors of a handful of elements say little, and lost kernels have none.
    if (outcome.compared >= 4096)
      relativeError = std::max(relativeError, outcome.relativeError);
    if (outcome.worstRatio > worstRatio) {
      worstRatio = outcome.worstRatio;
      worstAt = where;
    }
  }
};

} // namespace

Journal::Journal(const std::string &path) : path(path) {
  reload();
  file = std::fopen(path.c_str(), "a");
}

Journal::~Journal() {
  if (file)
    std::fclose(file);
}

void Journal::reload() {
  std::lock_guard guard(mutex);
  all.clear();
  open.clear();
  done.clear();
  lost.clear();
  std::ifstream in(path);
  std::map<std::string, Outcome> begun;
  std::string line;
  while (std::getline(in, line)) {
    std::vector<std::string> fields = split(line);
    if (fields.size() != 11)
      continue;
    Outcome outcome;
    outcome.subject = fields[1];
    outcome.situation = fields[2];
    outcome.plan = fields[3];
    outcome.ok = fields[4] == "1";
    outcome.relativeError = std::strtod(fields[5].c_str(), nullptr);
    outcome.worstRatio = std::strtod(fields[6].c_str(), nullptr);
    outcome.compared = std::strtoll(fields[7].c_str(), nullptr, 10);
    outcome.isLost = fields[8] == "1";
    outcome.worst = fields[9];
    outcome.text = fields[10];
    if (fields[0] == "B") {
      begun[outcome.key()] = outcome;
      continue;
    }
    begun.erase(outcome.key());
    done.insert(outcome.key());
    if (outcome.isLost)
      lost.insert(outcome.subject + '|' + outcome.plan);
    all.push_back(std::move(outcome));
  }
  for (auto &[key, outcome] : begun)
    open.push_back(outcome);
}

void Journal::write(char kind, const Outcome &outcome) {
  std::lock_guard guard(mutex);
  if (!file)
    return;
  fmt::print(file, "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", kind, plain(outcome.subject),
             plain(outcome.situation), plain(outcome.plan), int(outcome.ok), outcome.relativeError,
             outcome.worstRatio, outcome.compared, int(outcome.isLost), plain(outcome.worst),
             plain(outcome.text));
  std::fflush(file);
}

void Journal::begin(const Outcome &outcome) { write('B', outcome); }
void Journal::add(const Outcome &outcome) { write('R', outcome); }

std::string lineOf(const Outcome &outcome) {
  const char *verdict = outcome.ok ? "ok  " : outcome.isLost ? "LOST" : "FAIL";
  if (outcome.subject == "launch")
    return fmt::format("{} launch: {}: {}", verdict, outcome.situation, outcome.text);
  std::string line = fmt::format(
      "{} {:<44} {:<26} {:<28} error {:.2e}, worst element {:.2f} of its bound", verdict,
      outcome.subject, outcome.situation, outcome.plan, outcome.relativeError, outcome.worstRatio);
  if (!outcome.ok)
    line += "; " + outcome.text;
  return line;
}

std::string summaryOf(const std::vector<Outcome> &outcomes, size_t notRun) {
  Worst matrix, launches;
  std::map<std::string, std::pair<Outcome, int>> failures; // by kernel: the first, and how many
  std::set<std::string> kernels;
  double f32Error = 0, bf16Error = 0, f16Error = 0;
  for (const Outcome &outcome : outcomes) {
    bool isLaunch = outcome.subject == "launch";
    (isLaunch ? launches : matrix)
        .add(outcome, fmt::format("{}, {}, {}", outcome.subject, outcome.situation, outcome.plan));
    if (!isLaunch)
      kernels.insert(outcome.subject + outcome.plan);
    if (!isLaunch && outcome.compared >= 4096) {
      double &error = outcome.subject.find(".f32.") != std::string::npos    ? f32Error
                      : outcome.subject.find(".bf16.") != std::string::npos ? bf16Error
                                                                            : f16Error;
      error = std::max(error, outcome.relativeError);
    }
    if (!outcome.ok) {
      auto [at, isNew] = failures.try_emplace(
          outcome.subject + (isLaunch ? outcome.situation : outcome.plan), outcome, 0);
      ++at->second.second;
    }
  }
  std::string text = fmt::format("kernels: {}; checks: {}, failed {}; {} elements compared\n"
                                 "worst relative error: bf16 {:.2e}, f16 {:.2e}, f32 {:.2e}\n"
                                 "worst element: {:.3f} of its bound ({})\n"
                                 "launch tests: {}, failed {}; not run: {}\n",
                                 kernels.size(), matrix.checks, matrix.failed, matrix.elements,
                                 bf16Error, f16Error, f32Error, matrix.worstRatio, matrix.worstAt,
                                 launches.checks, launches.failed, notRun);
  int shown = 0;
  for (const auto &[key, failure] : failures) {
    if (++shown > 25) {
      text += fmt::format("… and {} more kernels that failed\n", failures.size() - 25);
      break;
    }
    text += fmt::format("{} ({} failures of it)\n", lineOf(failure.first), failure.second);
  }
  return text;
}

std::string markdownOf(const std::vector<Outcome> &outcomes, size_t notRun,
                       const std::string &device) {
  std::map<std::string, Worst> byKernel, byRouting;
  std::vector<std::string> kernelOrder, routingOrder;
  std::string launchRows;
  for (const Outcome &outcome : outcomes) {
    if (outcome.subject == "launch") {
      launchRows += fmt::format("| {} | {} | {} |\n", outcome.situation, outcome.text,
                                outcome.ok ? "ok" : "**failed**");
      continue;
    }
    std::string kernel = fmt::format("{} | {}", outcome.subject, outcome.plan);
    if (byKernel.try_emplace(kernel).second)
      kernelOrder.push_back(kernel);
    byKernel[kernel].add(outcome, outcome.situation);
    if (byRouting.try_emplace(outcome.situation).second)
      routingOrder.push_back(outcome.situation);
    byRouting[outcome.situation].add(outcome, outcome.subject);
  }
  std::sort(kernelOrder.begin(), kernelOrder.end());
  std::string text = "# Kernels on a GPU, compared with the oracle\n\n";
  text += device + "\n\n";
  text += "```\n" + summaryOf(outcomes, notRun) + "```\n\n";
  text +=
      "Made by `moejit-gpu-tests --markdown`. Every element of every output is compared: `error` "
      "is ‖out − ref‖/‖ref‖ (of outputs of 4096 elements or more), `worst element` the largest "
      "|out − ref| as a share of its bound (docs/numerics.md; above 1 is wrong). Outputs and "
      "workspaces start as NaN bytes, canaries lie around and between all tensors, and inputs "
      "must come back unchanged.\n\n";
  text += "## Launching\n\n| test | result | |\n| --- | --- | --- |\n" + launchRows + "\n";
  text += "## By routing\n\n| routing | checks | failed | error | worst element | of |\n"
          "| --- | --- | --- | --- | --- | --- |\n";
  for (const std::string &name : routingOrder) {
    const Worst &worst = byRouting[name];
    text += fmt::format("| {} | {} | {} | {:.2e} | {:.3f} | {} |\n", name, worst.checks,
                        worst.failed, worst.relativeError, worst.worstRatio, worst.worstAt);
  }
  text +=
      "\n## By kernel\n\n| kernel | rows and plan | routings | failed | error | worst element | "
      "at routing |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const std::string &name : kernelOrder) {
    const Worst &worst = byKernel[name];
    text += fmt::format("| {} | {} | {} | {:.2e} | {:.3f} | {} |\n", name, worst.checks,
                        worst.failed, worst.relativeError, worst.worstRatio, worst.worstAt);
  }
  return text;
}

std::string everyLineOf(const std::vector<Outcome> &outcomes) {
  struct Line {
    Outcome worst;
    int plans = 0;
    bool ok = true;
  };
  std::map<std::pair<std::string, std::string>, Line> lines;
  for (const Outcome &outcome : outcomes) {
    Line &line = lines[{outcome.subject, outcome.situation}];
    double relativeError = std::max(line.worst.relativeError, outcome.relativeError);
    bool isWorse = line.plans == 0 || (line.ok && !outcome.ok) ||
                   (line.ok == outcome.ok && outcome.worstRatio > line.worst.worstRatio);
    if (isWorse)
      line.worst = outcome;
    line.worst.relativeError = relativeError;
    line.ok &= outcome.ok;
    ++line.plans;
  }
  std::string text = "# Every kernel and routing, one line each\n\n"
                     "The worst of the kernel's plans; see matrix.md. Bounds are those of "
                     "docs/numerics.md.\n\n"
                     "| kernel | routing | plans | elements | error | worst element of its bound | "
                     "which | |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const auto &[key, line] : lines)
    if (line.worst.subject != "launch")
      text += fmt::format("| {} | {} | {} | {} | {:.2e} | {:.3f} | {} | {} |\n", key.first,
                          key.second, line.plans, line.worst.compared, line.worst.relativeError,
                          line.worst.worstRatio, line.worst.worst,
                          line.ok ? "ok" : "**" + line.worst.text + "**");
  return text;
}

} // namespace moejit::gpu

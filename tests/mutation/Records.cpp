// Lines of JSON, and the tables made of them.
#include "tests/mutation/Records.h"

#include "runtime/JsonReader.h"
#include "tools/moejit/Json.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

namespace moejit::mutation {
namespace {

/// What the faults of a row of a table came to.
struct Tally {
  std::array<int, outcomeCount> counts{};
  int explained = 0;

  void add(const Record &record) {
    ++counts[static_cast<size_t>(record.verdict.outcome)];
    explained += record.verdict.outcome == Outcome::Survived && record.entry > 0;
  }
  int of(Outcome outcome) const { return counts[static_cast<size_t>(outcome)]; }
  std::string row(const std::string &name) const {
    int all = 0;
    for (int count : counts)
      all += count;
    return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", name, all,
                       of(Outcome::Fault), of(Outcome::Deadlock), of(Outcome::Values),
                       of(Outcome::Endless), of(Outcome::Crash), explained,
                       of(Outcome::Survived) - explained, of(Outcome::NotRun));
  }
  static std::string head(const char *what) {
    return fmt::format("| {} | faults | found by the emulator | deadlock | wrong values | endless "
                       "| crash | survived with a reason | open | not run |\n"
                       "|---|---|---|---|---|---|---|---|---|---|\n",
                       what);
  }
};

} // namespace

std::string recordLine(const Record &record) {
  using tool::jsonString;
  if (!record.error.empty())
    return fmt::format("{{\"kernel\": {}, \"error\": {}}}\n", jsonString(record.kernel),
                       jsonString(record.error));
  const Mutant &mutant = record.verdict.mutant;
  std::string line = fmt::format(
      "{{\"kernel\": {}, \"fault\": {}, \"kind\": {}, \"line\": {}, \"text\": {}, \"change\": {}, "
      "\"outcome\": {}, \"message\": {}, \"seconds\": {:.2f}",
      jsonString(record.kernel), mutant.number, jsonString(kindName(mutant.kind)), mutant.line,
      jsonString(mutant.text), jsonString(mutant.change),
      jsonString(outcomeName(record.verdict.outcome)), jsonString(record.verdict.message),
      record.verdict.seconds);
  if (record.entry > 0)
    line += fmt::format(", \"entry\": {}, \"reason\": {}", record.entry, jsonString(record.reason));
  return line + "}\n";
}

std::optional<Record> readRecord(const std::string &line) {
  Result<JsonValue> parsed = parseJson(line);
  if (!parsed)
    return {};
  const auto text = [&](const char *name) {
    const JsonValue *value = parsed->find(name);
    return value ? value->text : std::string();
  };
  const auto integer = [&](const char *name) {
    const JsonValue *value = parsed->find(name);
    return value ? static_cast<int>(value->integer().value_or(0)) : 0;
  };
  Record record;
  record.kernel = text("kernel");
  record.error = text("error");
  if (record.kernel.empty() || !record.error.empty())
    return record.kernel.empty() ? std::nullopt : std::optional(record);
  Verdict &verdict = record.verdict;
  verdict.mutant = {integer("fault"), Kind::Other, integer("line"), text("text"), text("change")};
  verdict.message = text("message");
  if (const JsonValue *seconds = parsed->find("seconds"))
    verdict.seconds = seconds->number;
  record.entry = integer("entry");
  record.reason = text("reason");
  int known = 0;
  for (int k = 0; k < kindCount; ++k)
    if (text("kind") == kindName(static_cast<Kind>(k))) {
      verdict.mutant.kind = static_cast<Kind>(k);
      ++known;
    }
  for (int o = 0; o < outcomeCount; ++o)
    if (text("outcome") == outcomeName(static_cast<Outcome>(o))) {
      verdict.outcome = static_cast<Outcome>(o);
      ++known;
    }
  return known == 2 && verdict.mutant.number > 0 ? std::optional(record) : std::nullopt;
}

void Records::put(const Record &record) {
  auto [at, isNew] = byKernel[record.kernel].emplace(record.verdict.mutant.number, record);
  if (isNew)
    return;
  Record &known = at->second;
  if (record.verdict.outcome != Outcome::NotRun ||
      !isSameFault(known.verdict.mutant, record.verdict.mutant))
    known = record;
  known.verdict.mutant.line = record.verdict.mutant.line;
}

bool Records::read(const std::string &path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (std::optional<Record> record = readRecord(line); record && record->error.empty())
      put(*record);
  return file.is_open();
}

void Records::keep(const std::string &kernel, const std::vector<int> &numbers) {
  std::map<int, Record> kept;
  std::map<int, Record> &all = byKernel[kernel];
  for (int number : numbers)
    if (auto at = all.find(number); at != all.end())
      kept.insert(*at);
  all = std::move(kept);
}

void Records::explain(const std::vector<Equivalent> &entries) {
  for (auto &[kernel, faults] : byKernel) {
    std::vector<int> used;
    for (auto &[number, record] : faults) {
      record.entry = 0;
      record.reason.clear();
      if (record.verdict.outcome != Outcome::Survived)
        continue;
      const int index = findEquivalent(entries, kernel, record.verdict.mutant, used);
      if (index < 0)
        continue;
      record.entry = entries[static_cast<size_t>(index)].line;
      record.reason = entries[static_cast<size_t>(index)].reason;
    }
  }
}

const std::map<int, Record> &Records::of(const std::string &kernel) const {
  static const std::map<int, Record> none;
  auto at = byKernel.find(kernel);
  return at == byKernel.end() ? none : at->second;
}

std::string Records::text() const {
  std::string all;
  for (const auto &[kernel, faults] : byKernel)
    for (const auto &[number, record] : faults)
      all += recordLine(record);
  return all;
}

std::string Records::tables(const std::vector<std::string> &kernels) const {
  std::string text = Tally::head("kernel");
  Tally sum;
  std::array<Tally, kindCount> kinds;
  std::map<std::string, int> reasons;
  for (const std::string &kernel : kernels) {
    if (of(kernel).empty())
      continue;
    Tally tally;
    for (const auto &[number, record] : of(kernel)) {
      tally.add(record);
      sum.add(record);
      kinds[static_cast<size_t>(record.verdict.mutant.kind)].add(record);
      if (record.entry > 0)
        ++reasons[record.reason];
    }
    text += tally.row(kernel);
  }
  text += sum.row("all") + "\n" + Tally::head("kind of fault");
  for (int k = 0; k < kindCount; ++k)
    text += kinds[static_cast<size_t>(k)].row(kindName(static_cast<Kind>(k)));
  text += "\n| survivors | why they change nothing |\n|---|---|\n";
  for (const auto &[reason, count] : reasons)
    text += fmt::format("| {} | {} |\n", count, reason);
  return text;
}

} // namespace moejit::mutation

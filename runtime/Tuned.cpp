// Reads, writes and applies tables of measured plans.
#include "runtime/Tuned.h"

#include "runtime/JsonReader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace moejit {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", unsigned(c));
    else
      out += c;
  }
  return out + '"';
}

/// Takes fields of one object; remembers the first thing that is wrong.
class Fields {
public:
  Fields(const JsonValue &value, std::string where, std::string &problem)
      : value(value), where(std::move(where)), problem(problem) {
    if (value.kind != JsonValue::Kind::Object)
      fail("an object");
  }

  std::string text(const char *name) {
    const JsonValue *field = value.find(name);
    if (!field || field->kind != JsonValue::Kind::String)
      fail(fmt::format("a string \"{}\"", name));
    return field ? field->text : std::string();
  }
  int64_t integer(const char *name, int64_t least) {
    const JsonValue *field = value.find(name);
    std::optional<int64_t> number = field ? field->integer() : std::nullopt;
    if (!number || *number < least)
      fail(fmt::format("a whole number \"{}\" of at least {}", name, least));
    return number.value_or(least);
  }
  double time(const char *name) {
    const JsonValue *field = value.find(name);
    if (!field || field->kind != JsonValue::Kind::Number || field->number < 0)
      fail(fmt::format("a time \"{}\"", name));
    return field ? field->number : 0;
  }
  const std::vector<JsonValue> &list(const char *name) {
    static const std::vector<JsonValue> none;
    const JsonValue *field = value.find(name);
    if (!field || field->kind != JsonValue::Kind::Array)
      fail(fmt::format("a list \"{}\"", name));
    return field ? field->items : none;
  }
  void fail(const std::string &expected) {
    if (problem.empty())
      problem = fmt::format("{} (byte {}): expected {}", where, value.position, expected);
  }

private:
  const JsonValue &value;
  std::string where;
  std::string &problem;
};

TunedRange readRange(const JsonValue &value, std::string &problem) {
  Fields fields(value, "a range", problem);
  TunedRange range;
  range.minRows = fields.integer("minRows", 0);
  range.maxRows = fields.integer("maxRows", range.minRows);
  range.measuredRows = fields.integer("measuredRows", 0);
  range.us = fields.time("us");
  range.heuristicUs = fields.time("heuristicUs");
  std::string text = fields.text("plan");
  if (Result<KernelPlan> plan = parsePlan(text); plan)
    range.plan = *plan;
  else
    fields.fail(fmt::format("a plan of this version ({})", plan.error().message));
  return range;
}

TunedSpec readSpec(const JsonValue &value, std::string &problem) {
  Fields fields(value, "a spec", problem);
  TunedSpec spec;
  spec.spec = fields.text("spec");
  if (Result<Spec> parsed = parseSpec(spec.spec); !parsed)
    fields.fail(fmt::format("a canonical spec ({})", parsed.error().message));
  for (const JsonValue &item : fields.list("ranges")) {
    TunedRange range = readRange(item, problem);
    if (!spec.ranges.empty() && range.minRows <= spec.ranges.back().maxRows)
      fields.fail("ranges in order, apart from each other");
    spec.ranges.push_back(range);
  }
  return spec;
}

void addRange(std::vector<PlannedRange> &ranges, int64_t minRows, int64_t maxRows,
              const KernelPlan &plan) {
  if (minRows > maxRows)
    return;
  if (!ranges.empty() && ranges.back().plan == plan)
    ranges.back().maxRows = maxRows;
  else
    ranges.push_back({minRows, maxRows, plan});
}

const PlanTime *fastest(const MeasuredRows &point) {
  auto found = std::min_element(point.times.begin(), point.times.end(),
                                [](const PlanTime &a, const PlanTime &b) { return a.us < b.us; });
  return found == point.times.end() ? nullptr : &*found;
}

int64_t middle(int64_t a, int64_t b) {
  return std::clamp(int64_t(std::sqrt(double(a) * double(b))), a, b - 1);
}

} // namespace

const TunedSpec *TunedTable::find(const Spec &spec, const Target &target) const {
  if (arch != target.arch || smCount != target.profile.smCount)
    return nullptr;
  std::string text = canonicalText(spec);
  auto found = std::find_if(specs.begin(), specs.end(),
                            [&](const TunedSpec &each) { return each.spec == text; });
  return found == specs.end() ? nullptr : &*found;
}

Result<TunedTable> parseTunedTable(std::string_view json) {
  Result<JsonValue> parsed = parseJson(json);
  if (!parsed)
    return Error{ErrorCode::ParseError, "tuned table: " + parsed.error().message, {}};
  std::string problem;
  TunedTable table;
  Fields fields(*parsed, "the table", problem);
  if (int64_t format = fields.integer("format", 0); problem.empty() && format != table.format)
    fields.fail(fmt::format("format {}, got {}", table.format, format));
  table.gpu = fields.text("gpu");
  table.arch = fields.text("arch");
  table.smCount = fields.integer("smCount", 1);
  table.driver = fields.text("driver");
  table.nvrtc = fields.text("nvrtc");
  table.how = fields.text("how");
  for (const JsonValue &item : fields.list("specs")) {
    TunedSpec spec = readSpec(item, problem);
    for (const TunedSpec &other : table.specs)
      if (other.spec == spec.spec)
        fields.fail(fmt::format("each spec once, got {} again", spec.spec));
    table.specs.push_back(std::move(spec));
    if (!problem.empty())
      break;
  }
  if (!problem.empty())
    return Error{ErrorCode::ParseError,
                 "tuned table: " + problem,
                 {"moejit tune writes such tables; without one the heuristic chooses"}};
  return table;
}

std::string tunedTableJson(const TunedTable &table) {
  std::string text =
      fmt::format("{{\n  \"format\": {},\n  \"gpu\": {},\n  \"arch\": {},\n  \"smCount\": {},\n"
                  "  \"driver\": {},\n  \"nvrtc\": {},\n  \"how\": {},\n  \"specs\": [",
                  TunedTable::format, quoted(table.gpu), quoted(table.arch), table.smCount,
                  quoted(table.driver), quoted(table.nvrtc), quoted(table.how));
  std::vector<const TunedSpec *> sorted;
  for (const TunedSpec &spec : table.specs)
    sorted.push_back(&spec);
  std::sort(sorted.begin(), sorted.end(),
            [](const TunedSpec *a, const TunedSpec *b) { return a->spec < b->spec; });
  for (size_t i = 0; i < sorted.size(); ++i) {
    text += fmt::format("{}\n    {{\"spec\": {},\n     \"ranges\": [", i ? "," : "",
                        quoted(sorted[i]->spec));
    const std::vector<TunedRange> &ranges = sorted[i]->ranges;
    for (size_t r = 0; r < ranges.size(); ++r)
      text += fmt::format(
          "{}\n      {{\"minRows\": {}, \"maxRows\": {}, \"measuredRows\": {}, \"us\": {:.6g}, "
          "\"heuristicUs\": {:.6g},\n       \"plan\": {}}}",
          r ? "," : "", ranges[r].minRows, ranges[r].maxRows, ranges[r].measuredRows, ranges[r].us,
          ranges[r].heuristicUs, quoted(planText(ranges[r].plan)));
    text += "]}";
  }
  return text + (sorted.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

Result<void> mergeTuned(TunedTable &table, const TunedTable &newer) {
  if (!table.specs.empty() &&
      (table.gpu != newer.gpu || table.arch != newer.arch || table.smCount != newer.smCount))
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("the table is of {} ({}, {} SMs), measured was {} ({}, {} SMs)",
                             table.gpu, table.arch, table.smCount, newer.gpu, newer.arch,
                             newer.smCount),
                 {"keep a table for each kind of GPU"}};
  std::vector<TunedSpec> kept = std::move(table.specs);
  table = newer;
  for (TunedSpec &spec : kept)
    if (std::none_of(newer.specs.begin(), newer.specs.end(),
                     [&](const TunedSpec &each) { return each.spec == spec.spec; }))
      table.specs.push_back(std::move(spec));
  return {};
}

std::vector<PlannedRange> withTuned(std::vector<PlannedRange> ranges, const TunedTable &table,
                                    const Spec &spec, const Target &target) {
  const TunedSpec *tuned = table.find(spec, target);
  if (!tuned)
    return ranges;
  std::vector<PlannedRange> result;
  int64_t next = 0; // the first row count without a plan
  auto fill = [&](int64_t last) {
    for (const PlannedRange &range : ranges)
      addRange(result, std::max(range.minRows, next), std::min(range.maxRows, last), range.plan);
  };
  for (const TunedRange &range : tuned->ranges) {
    // A table may be older than what the verifier knows.
    if (!verifyPlan(range.plan, spec, target))
      continue;
    if (range.minRows > next)
      fill(range.minRows - 1);
    addRange(result, range.minRows, range.maxRows, range.plan);
    if (range.maxRows == INT64_MAX)
      return result;
    next = range.maxRows + 1;
  }
  fill(INT64_MAX);
  return result;
}

std::vector<TunedRange> tunedRanges(const std::vector<MeasuredRows> &points, double tolerance) {
  std::vector<TunedRange> ranges;
  for (size_t i = 0; i < points.size(); ++i) {
    const MeasuredRows &point = points[i];
    const PlanTime *best = fastest(point);
    if (!best)
      continue;
    auto isNear = [&](const PlanTime &time) { return time.us <= best->us * (1 + tolerance); };
    const PlanTime *taken = best;
    if (isNear(point.times.front()))
      taken = &point.times.front();
    else if (!ranges.empty())
      for (const PlanTime &time : point.times)
        if (time.plan == ranges.back().plan && isNear(time))
          taken = &time;
    TunedRange range;
    range.measuredRows = point.rows;
    range.plan = taken->plan;
    range.us = taken->us;
    range.heuristicUs = point.times.front().us;
    range.minRows =
        ranges.empty() ? int64_t(double(point.rows) / std::sqrt(2.0)) : ranges.back().maxRows + 1;
    range.maxRows = i + 1 < points.size() ? middle(point.rows, points[i + 1].rows)
                                          : int64_t(double(point.rows) * std::sqrt(2.0));
    ranges.push_back(range);
  }
  return ranges;
}

} // namespace moejit

// Plans as text: key text, JSON, and the reader of both tuning tables and command lines. Knows
// nothing of what makes a plan good.
#include "runtime/Plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <type_traits>

namespace moejit {
namespace {

constexpr const char *splitNames[] = {"rows", "columns"};
constexpr const char *schedulerNames[] = {"static", "queue"};
constexpr const char *storeNames[] = {"direct", "staged"};
constexpr const char *policyNames[] = {"normal", "evict_first"};
constexpr const char *clusterSideNames[] = {"columns", "rows"};

template <typename T> std::string valueText(const T &value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_enum_v<T>)
    return namesOf(value)[size_t(value)];
  else
    return fmt::format("{}", value);
}

template <typename T> std::string valueJson(const T &value) {
  std::string text = valueText(value);
  return std::is_enum_v<T> ? '"' + text + '"' : text;
}

/// Reads one value; what is expected instead where that fails.
template <typename T> std::string readValue(std::string_view text, T &value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = text == "true";
    return text == "true" || text == "false" ? "" : "true or false";
  } else if constexpr (std::is_enum_v<T>) {
    std::span<const char *const> names = namesOf(value);
    auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end())
      return fmt::format("{}", fmt::join(names, " or "));
    value = T(found - names.begin());
    return "";
  } else {
    auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return code == std::errc() && rest == text.data() + text.size() ? "" : "a whole number";
  }
}

} // namespace

std::span<const char *const> namesOf(WarpgroupSplit) { return splitNames; }
std::span<const char *const> namesOf(SchedulerKind) { return schedulerNames; }
std::span<const char *const> namesOf(StorePath) { return storeNames; }
std::span<const char *const> namesOf(CachePolicy) { return policyNames; }
std::span<const char *const> namesOf(ClusterSide) { return clusterSideNames; }

std::string planText(const KernelPlan &plan) {
  std::string text;
#define MOEJIT_PLAN_FIELD(type, name, value, meaning)                                              \
  text += (text.empty() ? "" : ",") + std::string(#name "=") + valueText(plan.name);
  MOEJIT_PLAN_FIELDS(MOEJIT_PLAN_FIELD)
#undef MOEJIT_PLAN_FIELD
  return text;
}

std::string planJson(const KernelPlan &plan) {
  std::string text;
#define MOEJIT_PLAN_FIELD(type, name, value, meaning)                                              \
  text += (text.empty() ? "{" : ", ") + std::string("\"" #name "\": ") + valueJson(plan.name);
  MOEJIT_PLAN_FIELDS(MOEJIT_PLAN_FIELD)
#undef MOEJIT_PLAN_FIELD
  return text + "}";
}

Result<KernelPlan> parsePlan(std::string_view text, const KernelPlan &base) {
  KernelPlan plan = base;
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    size_t equals = item.find('=');
    std::string_view name = item.substr(0, equals);
    if (equals == std::string_view::npos)
      return Error{ErrorCode::ParseError,
                   fmt::format("plan: '{}' is no NAME=VALUE", item),
                   {"a plan reads tileM=128,tileN=256,…"}};
    std::string_view value = item.substr(equals + 1);
    std::string expected;
    bool isKnown = false;
#define MOEJIT_PLAN_FIELD(type, field, standard, meaning)                                          \
  if (name == #field) {                                                                            \
    isKnown = true;                                                                                \
    expected = readValue(value, plan.field);                                                       \
  }
    MOEJIT_PLAN_FIELDS(MOEJIT_PLAN_FIELD)
#undef MOEJIT_PLAN_FIELD
    if (!isKnown)
      return Error{ErrorCode::ParseError,
                   fmt::format("plan: there is no field '{}'", name),
                   {"the fields: " + planText(base)}};
    if (!expected.empty())
      return Error{ErrorCode::ParseError,
                   fmt::format("plan: {} is '{}', expected {}", name, value, expected),
                   {}};
  }
  return plan;
}

} // namespace moejit

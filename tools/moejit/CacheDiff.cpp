// moejit cache diff: in which fields of their keys two kernels differ.
#include "runtime/Cache.h"
#include "runtime/Keys.h"
#include "tools/moejit/CacheUpkeep.h"
#include "tools/moejit/Input.h"
#include "tools/moejit/Kernels.h"
#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace moejit::tool {
namespace {

/// One line of a key, or one field of such a line.
struct KeyField {
  std::string part; ///< "spec", "plan", "nvrtc"
  std::string name; ///< of a part with fields; else empty
  std::string value;
};

/// The fields of a build key, in order.
std::vector<KeyField> fieldsOf(std::string_view key) {
  std::vector<KeyField> fields;
  while (!key.empty()) {
    size_t end = std::min(key.find('\n'), key.size());
    std::string_view line = key.substr(0, end);
    key.remove_prefix(std::min(end + 1, key.size()));
    size_t equals = std::min(line.find('='), line.size());
    std::string part(line.substr(0, equals));
    std::string_view value = line.substr(std::min(equals + 1, line.size()));
    char separator = part == "plan" ? ',' : part == "spec" || part == "target" ? ';' : '\0';
    while (separator && !value.empty()) {
      size_t stop = std::min(value.find(separator), value.size());
      std::string_view field = value.substr(0, stop);
      value.remove_prefix(std::min(stop + 1, value.size()));
      size_t middle = std::min(field.find('='), field.size());
      fields.push_back({part, std::string(field.substr(0, middle)),
                        std::string(field.substr(std::min(middle + 1, field.size())))});
    }
    if (!separator)
      fields.push_back({part, "", std::string(value)});
  }
  return fields;
}

struct Difference {
  std::string part, name;
  std::optional<std::string> a, b; ///< nothing: that key has no such field
};

std::vector<Difference> differencesOf(const std::string &a, const std::string &b) {
  std::vector<KeyField> left = fieldsOf(a), right = fieldsOf(b);
  auto find = [](const std::vector<KeyField> &fields, const KeyField &wanted) {
    auto found = std::find_if(fields.begin(), fields.end(), [&](const KeyField &field) {
      return field.part == wanted.part && field.name == wanted.name;
    });
    return found == fields.end() ? std::nullopt : std::optional(found->value);
  };
  std::vector<Difference> differences;
  for (const KeyField &field : left)
    if (std::optional<std::string> other = find(right, field); other != field.value)
      differences.push_back({field.part, field.name, field.value, other});
  for (const KeyField &field : right)
    if (!find(left, field))
      differences.push_back({field.part, field.name, std::nullopt, field.value});
  return differences;
}

/// What it means that keys differ in `part`; the parts of a lookup key first.
const char *meaningOf(const std::string &part) {
  static const std::map<std::string, const char *> meanings = {
      {"spec", "they compute different things"},
      {"target", "they are for different devices"},
      {"checked", "one of them checks its operands"},
      {"plans", "one of them was made to be measured (moejit bench, moejit tune)"},
      {"plan", "another plan: other rows, another tuning table, or a newer heuristic"},
      {"generator", "another version of moejit's compiler made it"},
      {"nvrtc", "another NVRTC compiled it"},
      {"flags", "it was compiled with other flags"},
      {"format", "it was kept in another format"},
  };
  auto found = meanings.find(part);
  return found == meanings.end() ? "another key" : found->second;
}

/// The kernel that `word` names.
Result<Artifact> load(const Arguments &arguments, const std::string &word) {
  if (word.find('/') == std::string::npos && word.find(".kernel") == std::string::npos) {
    CacheOptions options;
    options.mode = CacheMode::ReadOnly;
    Result<std::string> folder = cacheFolder(arguments);
    if (!folder)
      return folder.error();
    options.folder = *folder;
    Result<std::shared_ptr<Cache>> cache = Cache::open(options);
    if (!cache)
      return cache.error();
    if ((*cache)->diskProblem())
      return *(*cache)->diskProblem();
    return (*cache)->read(word);
  }
  Result<std::string> bytes = readFile(word);
  if (!bytes)
    return bytes.error();
  Result<Artifact> artifact = deserialize(*bytes);
  if (!artifact)
    artifact.error().message = fmt::format("{}: {}", word, artifact.error().message);
  return artifact;
}

} // namespace

int diffKernels(const Arguments &arguments) {
  Result<Artifact> a = load(arguments, arguments.words[1]);
  if (!a)
    return fail(arguments, a.error());
  Result<Artifact> b = load(arguments, arguments.words[2]);
  if (!b)
    return fail(arguments, b.error());
  std::vector<Difference> differences = differencesOf(a->buildKey, b->buildKey);
  std::vector<std::string> why;
  for (const Difference &difference : differences)
    if (std::find(why.begin(), why.end(), meaningOf(difference.part)) == why.end())
      why.push_back(meaningOf(difference.part));
  // Equal keys promise equal kernels; what was compiled says whether that held.
  bool isSameCode = a->cubin == b->cubin && a->ptx == b->ptx;
  if (arguments.has("--json")) {
    JsonWriter json;
    json.beginObject().field("a", keyName(a->buildKey)).field("b", keyName(b->buildKey));
    json.field("same", differences.empty()).field("sameLookup", a->lookupKey == b->lookupKey);
    json.field("sameCode", isSameCode).key("differences").beginArray();
    for (const Difference &difference : differences) {
      json.beginObject().field("part", difference.part).field("field", difference.name);
      for (auto [name, value] : {std::pair("a", &difference.a), std::pair("b", &difference.b)}) {
        json.key(name);
        if (*value)
          json.string(**value);
        else
          json.null();
      }
      json.endObject();
    }
    json.endArray().key("why").beginArray();
    for (const std::string &text : why)
      json.string(text);
    return print(json.endArray().endObject().text());
  }
  if (differences.empty())
    return print(fmt::format("the keys are equal; the code is {}\n",
                             isSameCode ? "equal too" : "not: NVRTC compiled it differently"));
  std::vector<std::vector<std::string>> rows = {
      {"field", keyName(a->buildKey).substr(0, 12), keyName(b->buildKey).substr(0, 12)}};
  for (const Difference &difference : differences)
    rows.push_back({difference.name.empty()
                        ? difference.part
                        : fmt::format("{}.{}", difference.part, difference.name),
                    difference.a.value_or("-"), difference.b.value_or("-")});
  std::string text = table(rows) + "\n";
  for (const std::string &line : why)
    text += line + "\n";
  if (a->lookupKey == b->lookupKey)
    text += "a launch asks for both alike: the index says which one it gets\n";
  return print(text + fmt::format("the code is {}\n", isSameCode ? "equal" : "different"));
}

} // namespace moejit::tool

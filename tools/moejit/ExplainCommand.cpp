// moejit explain: the rules, and why each holds.
#include "tools/moejit/Report.h"

#include "runtime/Rules.h"

#include <fmt/format.h>

#include <cctype>

namespace moejit::tool {
namespace {

const char *kindText(Rule::Kind kind) {
  return kind == Rule::Kind::Contract ? "contract" : "not yet";
}

void write(JsonWriter &json, const Rule &rule) {
  json.beginObject().field("id", rule.id);
  json.field("kind", rule.kind == Rule::Kind::Contract ? "contract" : "unsupported");
  json.field("summary", rule.summary).field("reason", rule.reason).field("remedy", rule.remedy);
  json.endObject();
}

int run(const Arguments &arguments) {
  bool isJson = arguments.has("--json");
  if (arguments.words.empty()) {
    JsonWriter json;
    json.beginObject().key("rules").beginArray();
    std::vector<std::vector<std::string>> rows = {{"id", "kind", "rule"}};
    for (const Rule &rule : allRules()) {
      write(json, rule);
      rows.push_back({rule.id, kindText(rule.kind), rule.summary});
    }
    json.endArray().endObject();
    return print(isJson ? json.text()
                        : table(rows) + "\ncontract: moejit never does this. not yet: it is within "
                                        "the contract, and this version does\nnot compile it. "
                                        "moejit explain ID says why, and what works instead.\n");
  }
  if (arguments.words.size() > 1)
    return fail(arguments, Error{ErrorCode::InvalidArgument, "one rule at a time", {}});
  std::string id = arguments.words[0];
  for (char &c : id)
    c = char(std::toupper(static_cast<unsigned char>(c)));
  Result<std::string> text = explainRule(id);
  if (!text)
    return fail(arguments, text.error());
  if (!isJson)
    return print(text->ends_with('\n') ? *text : *text + "\n");
  JsonWriter json;
  write(json, *findRule(id));
  return print(json.text());
}

} // namespace

const Command explainCommand = {
    "explain",
    "List the rules, or say why one of them holds and what works instead",
    "[ID]",
    "Every refusal of a kernel names a rule, such as MJ001. Without an ID all rules are "
    "listed.",
    "  moejit explain\n"
    "  moejit explain MJ001",
    "  0  printed\n"
    "  2  there is no such rule",
    {{"--json", nullptr, "print one JSON object on stdout"}, {"--help", nullptr, "print this"}},
    run,
};

} // namespace moejit::tool

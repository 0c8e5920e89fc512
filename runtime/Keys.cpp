// Key texts: one line for each field, in a fixed order, values escaped so that no value can pose as
// another field.
#include "runtime/Keys.h"

#include "runtime/Artifact.h"
#include "runtime/Sha256.h"

#include <fmt/format.h>

namespace moejit {
namespace {

void addLine(std::string &text, std::string_view name, std::string_view value) {
  text += name;
  text += '=';
  for (char c : value) {
    if (c == '\n')
      text += "\\n";
    else if (c == '\\')
      text += "\\\\";
    else
      text += c;
  }
  text += '\n';
}

} // namespace

std::string lookupKeyText(const Spec &spec, const Target &target, const PlanRequest &request) {
  std::string text;
  addLine(text, "spec", canonicalText(spec));
  addLine(text, "target", canonicalText(target));
  if (request.checked)
    addLine(text, "checked", "true");
  return text;
}

std::string buildKeyText(std::string_view lookupKey, std::string_view planText,
                         const GeneratorIdentity &generator) {
  std::string text(lookupKey);
  addLine(text, "plan", planText);
  addLine(text, "generator", generator.fingerprint);
  addLine(text, "nvrtc", generator.nvrtcVersion);
  addLine(text, "flags", generator.flags);
  addLine(text, "format", fmt::format("{}.{}", Artifact::formatMajor, Artifact::formatMinor));
  return text;
}

std::string keyName(std::string_view keyText) { return sha256Hex(keyText); }

} // namespace moejit

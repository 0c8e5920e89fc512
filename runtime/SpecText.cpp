// The canonical text of a Spec, written and read. Its grammar is one fixed sequence of `key=value`
// fields, so that a text that parses is the text of exactly one Spec.
#include "runtime/Spec.h"

#include <charconv>
#include <fmt/format.h>

namespace moejit {

namespace {

std::string listText(const std::vector<int64_t> &entries) {
  return fmt::format("[{}]", fmt::join(entries, ","));
}

std::string granuleList(const std::vector<Granule> &granule) {
  std::vector<std::string> entries;
  for (const Granule &entry : granule) {
    if (entry.kind == Granule::Kind::Extent)
      entries.push_back(std::to_string(entry.extent));
    else
      entries.push_back(entry.kind == Granule::Kind::Whole ? "*" : "expert");
  }
  return fmt::format("[{}]", fmt::join(entries, ","));
}

std::string layoutText(const ScaleLayout &layout) {
  return fmt::format("{{granule={},type={},source={},order={},align={},packing={},parts={},"
                     "interleaved={},phase={}}}",
                     granuleList(layout.granule), elementTypeName(layout.type),
                     scaleSourceName(layout.source), scaleOrderName(layout.order),
                     layout.alignBytes, layout.packing, layout.parts,
                     layout.interleaved ? "yes" : "no",
                     layout.hasPhase() ? listText(layout.phase) : std::string("[]"));
}

/// Reads one field after another. After the first failure every call does nothing; `finish` then
/// reports it.
class Reader {
public:
  explicit Reader(std::string_view text) : text(text) {}

  void literal(std::string_view expected) {
    if (failed)
      return;
    if (text.substr(position, expected.size()) != expected)
      return fail(fmt::format("'{}'", expected));
    position += expected.size();
  }

  /// A decimal number as std::to_string writes it: no sign but a minus, no leading zero.
  int64_t integer() {
    int64_t value = 0;
    if (failed)
      return value;
    const char *begin = text.data() + position;
    const char *end = text.data() + text.size();
    std::from_chars_result read = std::from_chars(begin, end, value);
    if (read.ec != std::errc() ||
        std::to_string(value) != std::string_view(begin, static_cast<size_t>(read.ptr - begin))) {
      fail("a number");
      return 0;
    }
    position += static_cast<size_t>(read.ptr - begin);
    return value;
  }

  /// A word that `parse` knows; `expected` lists the words.
  template <typename Parse> auto word(Parse parse, const char *expected) {
    using Enum = typename decltype(parse(std::string_view()))::value_type;
    if (failed)
      return Enum();
    size_t length = 0;
    while (position + length < text.size() && isWordCharacter(text[position + length]))
      ++length;
    auto value = parse(text.substr(position, length));
    if (!value) {
      fail(expected);
      return Enum();
    }
    position += length;
    return *value;
  }

  std::vector<int64_t> integers() {
    std::vector<int64_t> entries;
    list([&] { entries.push_back(integer()); });
    return entries;
  }

  std::vector<Granule> granules() {
    std::vector<Granule> entries;
    list([&] {
      if (take("*"))
        entries.push_back(Granule::whole());
      else if (take("expert"))
        entries.push_back(Granule::expert());
      else
        entries.push_back(Granule::of(granuleExtent()));
    });
    return entries;
  }

  ScaleLayout layout() {
    ScaleLayout layout;
    literal("{granule=");
    layout.granule = granules();
    literal(",type=");
    layout.type = word(parseElementType, "an element type such as f32");
    literal(",source=");
    layout.source = word(parseScaleSource, "static or dynamic");
    literal(",order=");
    layout.order = word(parseScaleOrder, "row_major or mn_major");
    literal(",align=");
    layout.alignBytes = integer();
    literal(",packing=");
    layout.packing = integer();
    literal(",parts=");
    layout.parts = integer();
    literal(",interleaved=");
    layout.interleaved = yesOrNo();
    literal(",phase=");
    size_t start = position;
    layout.phase = integers();
    if (!layout.phase.empty() && !layout.hasPhase() && !failed) {
      position = start;
      fail("'[]' for a phase of zeros");
    }
    literal("}");
    return layout;
  }

  bool yesOrNo() {
    auto parse = [](std::string_view name) -> std::optional<bool> {
      if (name == "yes" || name == "no")
        return name == "yes";
      return std::nullopt;
    };
    return word(parse, "yes or no");
  }

  std::optional<Error> finish() {
    if (!failed && position != text.size())
      fail("the end");
    if (!failed)
      return std::nullopt;
    std::string_view rest = text.substr(position, 24);
    std::string found = rest.empty() ? std::string("the end") : fmt::format("'{}'", rest);
    return Error{ErrorCode::ParseError, fmt::format("spec text, position {}: expected {}, found {}",
                                                    position, expected, found)};
  }

private:
  static bool isWordCharacter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  void fail(std::string what) {
    failed = true;
    expected = std::move(what);
  }

  bool take(std::string_view token) {
    if (failed || text.substr(position, token.size()) != token)
      return false;
    position += token.size();
    return true;
  }

  int64_t granuleExtent() {
    int64_t extent = integer();
    if (failed)
      expected = "a number, '*' or 'expert'";
    return extent;
  }

  template <typename ReadEntry> void list(ReadEntry readEntry) {
    literal("[");
    if (take("]"))
      return;
    while (!failed) {
      readEntry();
      if (take("]"))
        return;
      if (!failed && !take(","))
        fail("',' or ']'");
    }
  }

  std::string_view text;
  size_t position = 0;
  bool failed = false;
  std::string expected;
};

constexpr const char *noType = "none";

/// The outer optional is empty where `name` is neither a type nor "none".
std::optional<std::optional<ElementType>> parseQuantizeFrom(std::string_view name) {
  if (name == noType)
    return std::optional<ElementType>();
  if (std::optional<ElementType> type = parseElementType(name))
    return type;
  return std::nullopt;
}

} // namespace

std::string canonicalText(const Spec &spec) {
  return fmt::format(
      "computes={};dispatch={};experts={};n={};k={};maxRows={};x={};from={};w={};out={};xScales={};"
      "wScales={};accumulate={};skipped={};expertMap={}",
      computationName(spec.computation), dispatchName(spec.dispatch), spec.numExperts, spec.n,
      spec.k, spec.maxRows, elementTypeName(spec.xType),
      spec.quantizeFrom ? elementTypeName(*spec.quantizeFrom) : noType, elementTypeName(spec.wType),
      elementTypeName(spec.outType), layoutText(spec.xScales), layoutText(spec.wScales),
      accumulateName(spec.accumulate), skippedName(spec.skipped), spec.expertMapSize);
}

Result<Spec> parseSpec(std::string_view text) {
  constexpr const char *anElementType = "an element type such as f8E4M3FN";
  Reader reader(text);
  Spec spec;
  reader.literal("computes=");
  spec.computation = reader.word(parseComputation, "gemm or quantize");
  reader.literal(";dispatch=");
  spec.dispatch = reader.word(parseDispatch, "eager, batched, grouped or masked");
  reader.literal(";experts=");
  spec.numExperts = reader.integer();
  reader.literal(";n=");
  spec.n = reader.integer();
  reader.literal(";k=");
  spec.k = reader.integer();
  reader.literal(";maxRows=");
  spec.maxRows = reader.integer();
  reader.literal(";x=");
  spec.xType = reader.word(parseElementType, anElementType);
  reader.literal(";from=");
  spec.quantizeFrom = reader.word(parseQuantizeFrom, "an element type such as bf16, or none");
  reader.literal(";w=");
  spec.wType = reader.word(parseElementType, anElementType);
  reader.literal(";out=");
  spec.outType = reader.word(parseElementType, anElementType);
  reader.literal(";xScales=");
  spec.xScales = reader.layout();
  reader.literal(";wScales=");
  spec.wScales = reader.layout();
  reader.literal(";accumulate=");
  spec.accumulate = reader.word(parseAccumulate, "exact or fast");
  reader.literal(";skipped=");
  spec.skipped = reader.word(parseSkipped, "zeroed or untouched");
  reader.literal(";expertMap=");
  spec.expertMapSize = reader.integer();
  if (std::optional<Error> error = reader.finish())
    return *error;
  return spec;
}

} // namespace moejit

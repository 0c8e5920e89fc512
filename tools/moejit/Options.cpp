// Reads command lines and prints help.
#include "tools/moejit/Options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>

namespace moejit::tool {
namespace {

Error usage(std::string message, std::vector<std::string> notes = {}) {
  return Error{ErrorCode::InvalidArgument, std::move(message), std::move(notes)};
}

/// Levenshtein distance, with a swap of neighbours as one step.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      table[i][j] = std::min(
          {table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
    }
  return table[a.size()][b.size()];
}

/// `text` in lines of at most `width` columns, each after the first indented by `indent`.
std::string wrapped(std::string_view text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    if (column != indent && column + 1 + word.size() > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column != indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

} // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string> &known) {
  std::optional<std::string> best;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string &candidate : known) {
    // A beginning is near whatever follows: --rout for --routing.
    bool isBeginning = word.size() >= 3 && candidate.compare(0, word.size(), word) == 0;
    size_t far = isBeginning ? 1 : distance(word, candidate);
    if (far < least) {
      least = far;
      best = candidate;
    }
  }
  return best;
}

std::optional<std::string> Arguments::value(std::string_view option) const {
  auto found = given.find(option);
  if (found == given.end() || found->second.empty())
    return std::nullopt;
  return found->second.back();
}

std::vector<std::string> Arguments::values(std::string_view option) const {
  auto found = given.find(option);
  return found == given.end() ? std::vector<std::string>() : found->second;
}

Result<std::optional<int64_t>> Arguments::integer(std::string_view option, int64_t least,
                                                  int64_t most) const {
  std::optional<std::string> text = value(option);
  if (!text)
    return std::optional<int64_t>();
  int64_t number = 0;
  const char *end = text->data() + text->size();
  auto [rest, code] = std::from_chars(text->data(), end, number);
  if (code != std::errc() || rest != end || number < least || number > most)
    return usage(
        fmt::format("{} takes a whole number from {} to {}, got '{}'", option, least, most, *text));
  return std::optional<int64_t>(number);
}

Result<Arguments> readArguments(const Command &command, const std::vector<std::string> &words) {
  Arguments arguments;
  bool isPastOptions = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string &word = words[i];
    if (isPastOptions || word.size() < 2 || word[0] != '-') {
      arguments.words.push_back(word);
      continue;
    }
    if (word == "--") {
      isPastOptions = true;
      continue;
    }
    bool isLong = word[1] == '-';
    size_t equals = isLong ? word.find('=') : std::string::npos;
    std::string name = word.substr(0, equals);
    if (name == "-h")
      name = "--help";
    auto option = std::find_if(command.options.begin(), command.options.end(),
                               [&](const Option &candidate) { return name == candidate.name; });
    if (option == command.options.end()) {
      std::vector<std::string> known;
      for (const Option &candidate : command.options)
        known.push_back(candidate.name);
      std::optional<std::string> near = nearest(name, known);
      return usage(fmt::format("unknown option '{}'{}", name,
                               near ? fmt::format("; did you mean '{}'?", *near) : ""),
                   {fmt::format("moejit {} --help lists the options", command.name)});
    }
    std::vector<std::string> &values = arguments.given[name];
    if (!option->value) {
      if (equals != std::string::npos)
        return usage(fmt::format("{} takes no value", name));
      continue;
    }
    std::string value;
    if (equals != std::string::npos)
      value = word.substr(equals + 1);
    else if (i + 1 < words.size() &&
             (words[i + 1].empty() || words[i + 1][0] != '-' || words[i + 1].size() == 1 ||
              std::isdigit(static_cast<unsigned char>(words[i + 1][1]))))
      value = words[++i];
    else
      return usage(fmt::format("{} needs a value: {} {}", name, name, option->value),
                   {fmt::format("{}: {}", name, option->help)});
    if (!option->choices.empty()) {
      std::vector<std::string> choices(option->choices.begin(), option->choices.end());
      if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
        std::optional<std::string> near = nearest(value, choices);
        return usage(fmt::format("{} takes one of {}; got '{}'{}", name, fmt::join(choices, ", "),
                                 value, near ? fmt::format(". Did you mean '{}'?", *near) : ""));
      }
    }
    values.push_back(std::move(value));
  }
  return arguments;
}

std::vector<Option> withExtentOptions(std::vector<Option> own) {
  std::vector<Option> options = {
      {"--kernel", "NAME", "the kernel to take from FILE", "the only one"},
      {"--spec", "TEXT", "a kernel's canonical text, as messages print it, in place of FILE"},
      {"--experts", "E", "number of experts in place of the file's"},
      {"--n", "N", "output columns in place of the file's"},
      {"--k", "K", "reduction length in place of the file's"},
  };
  options.insert(options.begin(), own.begin(), own.end());
  return options;
}

Option checkedOption() {
  return {"--checked", nullptr,
          "kernels that look at routing and scales and report what is wrong (slower; results stay "
          "the same)"};
}

std::vector<Option> withCommonOptions(std::vector<Option> own) {
  own.push_back({"--nvrtc", "PATH", "the libnvrtc.so to compile with, or the folder it is in",
                 "the loader's, /usr/local/cuda*, then folders beside this program"});
  own.push_back({"--cache", "DIR", "the folder kernels are kept in",
                 "$XDG_CACHE_HOME/moejit or ~/.cache/moejit"});
  own.push_back({"--no-cache", nullptr, "neither read nor write a cache folder"});
  own.push_back({"--json", nullptr, "print one JSON object on stdout"});
  own.push_back({"--help", nullptr, "print this"});
  return own;
}

std::string helpOf(const Command &command) {
  constexpr size_t width = 100;
  std::string text = fmt::format("moejit {}: {}\n\nUsage: moejit {} {}\n", command.name,
                                 command.summary, command.name, command.usage);
  std::string_view rest = command.description;
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    text += '\n' + wrapped(rest.substr(0, end), 0, width) + '\n';
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  text += "\nOptions:\n";
  for (const Option &option : command.options) {
    std::string left = option.name;
    if (option.value)
      left += fmt::format(" {}", option.value);
    std::string right = option.help;
    if (option.standard)
      right += fmt::format(" (default: {})", option.standard);
    if (left.size() > 22)
      text += fmt::format("  {}\n  {:<23} {}\n", left, "", wrapped(right, 26, width));
    else
      text += fmt::format("  {:<23} {}\n", left, wrapped(right, 26, width));
  }
  text += fmt::format("\nExit codes:\n{}\n\nExamples:\n{}\n", command.exits, command.examples);
  return text;
}

std::string helpOfAll() {
  std::string text =
      "moejit compiles FP8 mixture-of-experts GEMM kernels for NVIDIA GPUs, keeps them, and runs "
      "them.\n\n"
      "Usage: moejit COMMAND [options]      moejit COMMAND --help says more, with examples\n\n"
      "Commands:\n";
  for (const Command *command : allCommands())
    text += fmt::format("  {:<9} {}\n", command->name, command->summary);
  text +=
      "\nStart here:\n"
      "  moejit compile kernels/deepseek-v3.gate_up.mlir        what the kernel takes on an H200\n"
      "  moejit compile kernels/deepseek-v3.gate_up.mlir --emit cuda     the code that is made\n"
      "  moejit run kernels/deepseek-v3.gate_up.mlir --tokens 64 --experts 4 --n 512 --check\n"
      "                                       run it, on the CPU if need be, and compare\n"
      "  moejit explain MJ001                 why a kernel was refused, and what works\n"
      "\nA kernel is described in MLIR: one moe.gemm, its types, and the layout of its scales. The "
      "files\nin kernels/ are examples. Results go to stdout; progress and errors go to stderr. "
      "With --json\nstdout is one JSON object.\n"
      "\nExit codes:\n"
      "  0  it worked\n"
      "  1  a wrong result, or a rule refuses the kernel (the message has the rule's id)\n"
      "  2  unusable input or a wrong command line\n"
      "  3  this machine lacks something: no NVRTC, no GPU, no kernel in the bundle\n"
      "  4  moejit failed; please report it\n"
      "  5  a checked kernel reported routing or scales that are wrong\n"
      "\nOther: moejit --version, moejit --help\n";
  return text;
}

} // namespace moejit::tool

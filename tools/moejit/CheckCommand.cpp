// moejit check: what a checkpoint's experts need, and what engines and moejit do with them.
#include "tools/moejit/CheckReport.h"
#include "tools/moejit/Input.h"
#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>

namespace moejit::tool {
namespace {

using namespace checkpoint;

/// "vllm:triton", "vllm@0.33.0:triton" or "moejit:grouped".
struct Requirement {
  std::string text;
  EngineChoice choice; ///< without an engine: moejit; without a version: those that are asked
  std::string dispatch;
};

bool isMeant(const Requirement &requirement, const EngineChoice &choice) {
  const EngineChoice &wanted = requirement.choice;
  return choice.engine == wanted.engine &&
         (wanted.version.empty() || choice.versionText() == wanted.versionText());
}

/// Adds the engine to `options` where it, or this version of it, is not asked yet.
Result<Requirement> readRequirement(const std::string &text, CheckOptions &options) {
  Requirement requirement;
  requirement.text = text;
  size_t colon = text.find(':');
  std::string name = text.substr(0, colon);
  requirement.dispatch = colon == std::string::npos ? "" : text.substr(colon + 1);
  std::vector<std::string> known;
  if (name == "moejit") {
    known = {"eager", "batched", "grouped"};
  } else {
    Result<std::vector<EngineChoice>> choices = parseEngines(name);
    if (!choices)
      return choices.error();
    if (choices->size() != 1)
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("--require takes ENGINE:DISPATCH, got '{}'", text),
                   {}};
    requirement.choice = choices->front();
    known.assign(requirement.choice.engine->dispatches.begin(),
                 requirement.choice.engine->dispatches.end());
    if (std::none_of(options.engines.begin(), options.engines.end(),
                     [&](const EngineChoice &choice) { return isMeant(requirement, choice); }))
      options.engines.push_back(requirement.choice);
  }
  if (std::find(known.begin(), known.end(), requirement.dispatch) == known.end())
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("{} has no dispatch '{}'", name, requirement.dispatch),
                 {fmt::format("its dispatches: {}", fmt::join(known, ", "))}};
  return requirement;
}

bool isMet(const Requirement &requirement, const Check &check) {
  if (!requirement.choice.engine)
    return std::any_of(check.moejit.begin(), check.moejit.end(), [&](const MoejitCheck &each) {
      return each.isLegal && requirement.dispatch == dispatchName(each.dispatch);
    });
  // In each version that is meant: one that works does not excuse another.
  return std::all_of(check.dispatches.begin(), check.dispatches.end(),
                     [&](const DispatchCheck &each) {
                       return !isMeant(requirement, each.choice) ||
                              each.dispatch != requirement.dispatch || works(each.overall.outcome);
                     });
}

CheckedFile checkOne(const std::string &config, const CheckOptions &options, bool isAll,
                     const std::vector<EngineChoice> &selected,
                     const std::vector<Requirement> &requirements) {
  CheckedFile file;
  file.path = config;
  Result<Checkpoint> model = readCheckpoint(config);
  if (!model) {
    file.error = model.error();
    file.exit = exitUnusable;
    return file;
  }
  file.checkpoint = *model;
  if (!model->needsFp8()) {
    file.nothingToDo = model->routed.count == 0    ? "the model has no experts"
                       : model->routed.why.empty() ? "no experts are FP8"
                                                   : model->routed.why;
    file.exit = exitLacking;
    return file;
  }
  Result<Check> checked = check(*model, options);
  if (!checked) {
    file.error = checked.error();
    file.exit = exitUnusable;
    return file;
  }
  file.check = std::move(*checked);
  if (file.check->splitProblem)
    file.unmet.push_back("the split does not divide the model");
  int64_t working = 0;
  for (const EngineChoice &choice : selected) {
    bool isWorking = file.check->hasWorking(choice);
    working += isWorking;
    if (!isWorking && !isAll && !file.check->splitProblem)
      file.unmet.push_back(fmt::format("{}{}{} has no dispatch that works", choice.engine->name,
                                       choice.version.empty() ? "" : " ", choice.version));
  }
  if (isAll && working == 0 && !file.check->splitProblem)
    file.unmet.push_back("no engine has a dispatch that works");
  for (const Requirement &requirement : requirements)
    if (!file.check->splitProblem && !isMet(requirement, *file.check))
      file.unmet.push_back(fmt::format("--require {}", requirement.text));
  if (file.check->tensors && file.check->tensors->findingCount > 0)
    file.unmet.push_back("tensors are missing or wrong");
  file.exit = file.unmet.empty() ? exitOk : exitWrong;
  return file;
}

int run(const Arguments &arguments) {
  if (arguments.words.size() != 1)
    return fail(arguments,
                {ErrorCode::InvalidArgument,
                 arguments.words.empty()
                     ? std::string("no PATH given")
                     : fmt::format("one PATH is taken, got {}", arguments.words.size()),
                 {"give a config.json, the folder of a checkpoint, or a folder of several"}});
  const std::string &path = arguments.words[0];
  CheckOptions options;
  Result<std::optional<int64_t>> tp = arguments.integer("--tp", 1, 65536);
  Result<std::optional<int64_t>> ep = arguments.integer("--ep", 1, 65536);
  Result<Target> target = loadTarget(arguments);
  std::string engines = arguments.valueOr("--engine", "all");
  Result<std::vector<EngineChoice>> selected = parseEngines(engines);
  if (!tp || !ep || !target || !selected)
    return fail(arguments, !tp       ? tp.error()
                           : !ep     ? ep.error()
                           : !target ? target.error()
                                     : selected.error());
  options.split = {tp->value_or(1), ep->value_or(1)};
  options.target = *target;
  options.engines = *selected;
  std::vector<Requirement> requirements;
  for (const std::string &text : arguments.values("--require")) {
    Result<Requirement> requirement = readRequirement(text, options);
    if (!requirement)
      return fail(arguments, requirement.error());
    requirements.push_back(*requirement);
  }
  Result<std::vector<std::string>> configs = findConfigs(path);
  if (!configs)
    return fail(arguments, configs.error(), exitUnusable);
  std::vector<CheckedFile> files;
  {
    Progress progress(fmt::format("reading {} configuration{}", configs->size(),
                                  configs->size() == 1 ? "" : "s"));
    for (const std::string &config : *configs)
      files.push_back(checkOne(config, options, engines == "all", *selected, requirements));
  }
  if (files.size() == 1 && files[0].error)
    return fail(arguments, *files[0].error, exitUnusable);
  // The worst of all; nothing to do counts where there is nothing at all to do.
  auto has = [&](int exit) {
    return std::any_of(files.begin(), files.end(),
                       [&](const CheckedFile &file) { return file.exit == exit; });
  };
  int exit = has(exitUnusable) ? exitUnusable
             : has(exitWrong)  ? exitWrong
             : has(exitOk)     ? exitOk
                               : exitLacking;
  for (const CheckedFile &file : files)
    if (file.error)
      fail(false, *file.error, exitUnusable);
  int printed = print(arguments.has("--json") ? checkJson(files, options, exit)
                      : files.size() == 1     ? checkText(files[0], options)
                                              : checkTable(files));
  return printed == exitOk ? exit : printed;
}

} // namespace

const Command checkCommand = {
    "check",
    "Say what a checkpoint's experts need, and what engines and moejit do with them",
    "PATH [options]",
    "PATH is a config.json, the folder of a checkpoint, or a folder of several. No weights are "
    "read. For each expert GEMM of one rank it prints the shape and the layout of its scales, what "
    "each dispatch of each engine does with it and how that is known, what moejit does, and the "
    "nearest change that works.\n"
    "What engines do is data, read in their sources at the versions that are printed; a newer "
    "version, a post or a pre-release is unknown, and unknown does not count as working. A "
    "projection that is not FP8 decides nothing. Where an index or headers of "
    "safetensors lie beside config.json, every expert's weights and scales are looked for in them; "
    "values are not read.",
    "  moejit check DeepSeek-V3/config.json --tp 8\n"
    "  moejit check Qwen3-30B-A3B-FP8 --tp 4 --engine vllm,sglang --require vllm:triton\n"
    "  moejit check checkpoints --json",
    "  0  every engine asked for has a dispatch that works; with all, some engine has\n"
    "  1  it has not, a --require is unmet, or tensors are missing or wrong\n"
    "  2  unusable input or command line\n"
    "  3  nothing to do: no experts are FP8",
    {{"--tp", "N", "ranks that split each expert's columns", "1"},
     {"--ep", "N", "ranks that split the experts", "1"},
     {"--arch", "ARCH", "the architecture", "sm_90a"},
     {"--engine", "LIST",
      "engines to ask, with commas: transformers, sglang, vllm, deepgemm, flashinfer, torch, each "
      "with @VERSION",
      "all"},
     {"--require", "ENGINE:DISPATCH",
      "fail unless this dispatch works, such as vllm:triton or moejit:grouped; may be repeated"},
     {"--json", nullptr, "print one JSON object on stdout"},
     {"--help", nullptr, "print this"}},
    run,
};

} // namespace moejit::tool

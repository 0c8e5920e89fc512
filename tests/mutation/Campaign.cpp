// One process a fault: a fault may do anything to the memory of the process that runs it.
#include "tests/mutation/Campaign.h"

#include "runtime/emulator/Build.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace moejit::mutation {
namespace {

/// Of a process's own time, not the clock's: the machine may be busy with other things.
constexpr time_t stopSeconds = 20;

/// A fault and the artifact that shows it; `number` chooses the fault in the artifact's text.
struct Job {
  Mutant mutant;
  Artifact artifact;
};

/// Faults of what the host does for a launch: boxes, extents, strides and swizzles of tensor maps,
/// and the size of shared memory.
std::vector<Job> launchFaults(const Artifact &artifact, int firstNumber) {
  std::vector<Job> jobs;
  const auto add = [&](Kind kind, std::string text, std::string change,
                       const std::function<void(LaunchData &)> &edit) {
    Job job;
    job.mutant = {firstNumber + static_cast<int>(jobs.size()), kind, 0, std::move(text),
                  std::move(change)};
    job.artifact = artifact;
    edit(job.artifact.launch);
    jobs.push_back(std::move(job));
  };
  const LaunchData &launch = artifact.launch;
  for (size_t i = 0; i < launch.tensorMaps.size(); ++i) {
    const TensorMapRecipe &map = launch.tensorMaps[i];
    std::string name = fmt::format("tensor map {} of {}", i, operandName(map.operand));
    for (size_t d = 0; d < map.box.size(); ++d) {
      uint32_t unit = d == 0 ? 16 / static_cast<uint32_t>(elementBytes(map.type)) : 1;
      if (map.box[d] > unit)
        add(Kind::Copy, name, fmt::format("box {}: {} -> {}", d, map.box[d], map.box[d] - unit),
            [=](LaunchData &l) { l.tensorMaps[i].box[d] -= unit; });
    }
    for (size_t d = 0; d < map.extents.size(); ++d)
      if (map.extents[d].kind == LaunchValue::Kind::Constant && map.extents[d].constant > 1)
        add(Kind::Copy, name, fmt::format("extent {} one less", d),
            [=](LaunchData &l) { --l.tensorMaps[i].extents[d].constant; });
    for (size_t d = 0; d < map.strideBytes.size(); ++d)
      if (map.strideBytes[d].kind == LaunchValue::Kind::Constant)
        add(Kind::Copy, name, fmt::format("stride {} 16 bytes less", d + 1),
            [=](LaunchData &l) { l.tensorMaps[i].strideBytes[d].constant -= 16; });
    for (Swizzle other : {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128})
      if (other != map.swizzle)
        add(Kind::Copy, name, fmt::format("swizzle {}", static_cast<int>(other)),
            [=](LaunchData &l) { l.tensorMaps[i].swizzle = other; });
  }
  add(Kind::Constant, "dynamic shared memory", "16 bytes less",
      [](LaunchData &l) { l.sharedBytes -= 16; });
  return jobs;
}

Outcome classify(const std::string &message) {
  if (message.empty())
    return Outcome::Survived;
  const auto has = [&](const char *part) { return message.find(part) != std::string::npos; };
  if (has("deadlock in cluster"))
    return Outcome::Deadlock;
  if (has("has not ended after"))
    return Outcome::Endless;
  if (has("of its bound") || has("canary") || has("relative error") || has("codes differ") ||
      has("reported '"))
    return Outcome::Values;
  return Outcome::Fault;
}

/// What the launches say of `artifact` with fault `number` of its text; empty when all is right.
std::string runTrials(const Subject &subject, const Artifact &artifact, int *chosen, int number) {
  *chosen = number;
  for (const Trial &trial : subject.trials)
    for (test::ThreadOrder order : {test::ThreadOrder::RoundRobin, test::ThreadOrder::Random})
      if (std::string wrong = trial.run(artifact, order); !wrong.empty())
        return trial.name + ": " + wrong;
  return "";
}

/// A child that runs one fault, and the pipe its report comes through.
struct Child {
  pid_t pid = -1;
  int pipe = -1;
  size_t job = 0;
};

Child start(const Subject &subject, const Job &job, size_t index, int *chosen, int number) {
  int ends[2];
  if (pipe(ends) != 0)
    return {};
  std::fflush(nullptr);
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    // A fault that kills its process says so by the signal, not by the test framework's handler.
    for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
      std::signal(signal, SIG_DFL);
    // Loops that call no wrapper end here.
    itimerval limit{};
    limit.it_value.tv_sec = stopSeconds;
    setitimer(ITIMER_PROF, &limit, nullptr);
    std::string message = runTrials(subject, job.artifact, chosen, number);
    if (message.size() > 4000)
      message.resize(4000);
    if (write(ends[1], message.data(), message.size()) < 0)
      _exit(3);
    _exit(0);
  }
  close(ends[1]);
  return {pid, ends[0], index};
}

Verdict finish(const Child &child, int status, const Mutant &mutant) {
  std::string message;
  char bytes[4096];
  for (ssize_t got; (got = read(child.pipe, bytes, sizeof bytes)) > 0;)
    message.append(bytes, static_cast<size_t>(got));
  close(child.pipe);
  Verdict verdict;
  verdict.mutant = mutant;
  if (WIFSIGNALED(status)) {
    bool isStopped = WTERMSIG(status) == SIGPROF;
    verdict.outcome = isStopped ? Outcome::Endless : Outcome::Crash;
    verdict.message = isStopped ? "stopped" : strsignal(WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    verdict.outcome = Outcome::Crash;
    verdict.message = fmt::format("exit status {}", WEXITSTATUS(status));
  } else {
    verdict.outcome = classify(message);
    verdict.message = message.substr(0, message.find('\n'));
  }
  return verdict;
}

} // namespace

const char *outcomeName(Outcome outcome) {
  static const char *const names[outcomeCount] = {"survived", "fault",   "deadlock",
                                                  "values",   "endless", "crash"};
  return names[static_cast<int>(outcome)];
}

CampaignResult runCampaign(const Subject &subject, const CampaignOptions &options) {
  CampaignResult result;
  MutatedSource mutated = mutate(subject.artifact.source);
  result.unread = mutated.unread;
  Artifact base = subject.artifact;
  base.source = mutated.source;
  // Loaded here once; the processes inherit it, and with it the variable that chooses the fault.
  Result<std::shared_ptr<const EmulatedModule>> module =
      test::emulator().load(base.source, base.launch.entry);
  Result<std::shared_ptr<const EmulatedModule>> shuffled =
      test::emulator(test::ThreadOrder::Random).load(base.source, base.launch.entry);
  if (!module || !shuffled) {
    result.error = (module ? shuffled : module).error().text();
    return result;
  }
  auto *chosen = static_cast<int *>(dlsym((*module)->handle, "moejit_mutant"));
  if (!chosen) {
    result.error = "the kernel's unit has no moejit_mutant";
    return result;
  }

  std::vector<Job> jobs = {{Mutant{}, base}};
  for (const Mutant &mutant : mutated.mutants)
    jobs.push_back({mutant, base});
  for (Job &job : launchFaults(base, static_cast<int>(mutated.mutants.size()) + 1))
    jobs.push_back(std::move(job));
  std::vector<size_t> order = {0};
  for (size_t i = 1; i < jobs.size(); ++i)
    if (options.faults.empty() ? static_cast<int>(i) % options.shards == options.shard
                               : options.faults.count(static_cast<int>(i)) > 0)
      order.push_back(i);

  std::map<size_t, Verdict> verdicts;
  std::vector<Child> running;
  size_t next = 0;
  while (next < order.size() || !running.empty()) {
    // Alone first: a kernel that is wrong as it is proves nothing.
    size_t most = next == 1 && verdicts.empty() ? 0 : static_cast<size_t>(options.processes);
    while (next < order.size() && running.size() < most) {
      size_t index = order[next++];
      const Mutant &mutant = jobs[index].mutant;
      bool isInText = mutant.number <= static_cast<int>(mutated.mutants.size());
      running.push_back(start(subject, jobs[index], index, chosen, isInText ? mutant.number : 0));
      if (index == 0)
        break;
    }
    int status = 0;
    pid_t ended = waitpid(-1, &status, 0);
    for (size_t i = 0; i < running.size(); ++i)
      if (running[i].pid == ended) {
        Verdict verdict = finish(running[i], status, jobs[running[i].job].mutant);
        if (running[i].job == 0 && verdict.outcome != Outcome::Survived) {
          result.error = "wrong without a fault: " + verdict.message;
          return result;
        }
        verdicts[running[i].job] = verdict;
        running.erase(running.begin() + static_cast<long>(i));
        break;
      }
    if (options.showProgress && verdicts.size() % 20 == 0)
      std::fprintf(stderr, "\r%s: %zu of %zu faults", subject.name.c_str(), verdicts.size() - 1,
                   order.size() - 1);
  }
  if (options.showProgress)
    std::fprintf(stderr, "\n");
  for (auto &[index, verdict] : verdicts)
    if (index != 0)
      result.verdicts.push_back(verdict);
  return result;
}

} // namespace moejit::mutation

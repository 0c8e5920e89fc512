// One process a fault: a fault may do anything to the memory of the process that runs it.
#include "tests/mutation/Campaign.h"

#include "runtime/emulator/Build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace moejit::mutation {
namespace {

/// A fault is endless after so many seconds and so many times what the kernel takes without one.
/// Of a process's own time, not the clock's: the machine may be busy with other things.
constexpr double leastStopSeconds = 6, stopFactor = 5;

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
std::string runTrials(const Subject &subject, const Artifact &artifact,
                      const std::vector<int *> &chosen, int number) {
  for (int *variable : chosen)
    *variable = number;
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

/// Forks a process that runs `job` and is stopped after `stopSeconds` of its own time.
Child start(const Subject &subject, const Job &job, size_t index, const std::vector<int *> &chosen,
            int number, double stopSeconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
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
    limit.it_value.tv_sec = static_cast<time_t>(stopSeconds);
    setitimer(ITIMER_PROF, &limit, nullptr);
    std::string message = runTrials(subject, job.artifact, chosen, number);
    if (message.size() > 4000)
      message.resize(4000);
    if (write(ends[1], message.data(), message.size()) < 0)
      _exit(3);
    _exit(0);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return {};
  }
  return {pid, ends[0], index};
}

/// The verdict of a child whose end of the pipe is closed.
Verdict finish(const Child &child, const Mutant &mutant) {
  std::string message;
  char bytes[4096];
  for (ssize_t got; (got = read(child.pipe, bytes, sizeof bytes)) > 0;)
    message.append(bytes, static_cast<size_t>(got));
  close(child.pipe);
  int status = 0;
  rusage usage{};
  while (wait4(child.pid, &status, 0, &usage) < 0 && errno == EINTR)
    ;
  Verdict verdict;
  verdict.mutant = mutant;
  for (const timeval &time : {usage.ru_utime, usage.ru_stime})
    verdict.seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
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

/// Kinds whose faults may run until they are stopped come first, so that none is alone at the end.
int turnOf(Kind kind) {
  return kind == Kind::Loop || kind == Kind::Mask || kind == Kind::Condition ? 0 : 1;
}

/// The processes that run faults of one kernel.
class Workers {
public:
  Workers(const Subject &subject, const std::vector<int *> &chosen, Slots &slots)
      : subject(subject), chosen(chosen), slots(slots) {}

  /// Runs the jobs `order` of `jobs` until `deadline`.
  void run(const std::vector<Job> &jobs, const std::vector<size_t> &order, int mutantsInText,
           double stopSeconds, std::chrono::steady_clock::time_point deadline,
           const std::function<void(const Verdict &)> &onVerdict) {
    size_t next = 0;
    while (next < order.size() || !running.empty()) {
      while (next < order.size() && slots.tryTake()) {
        const Job &job = jobs[order[next]];
        const int number = job.mutant.number <= mutantsInText ? job.mutant.number : 0;
        Child child = start(subject, job, order[next], chosen, number, stopSeconds);
        if (child.pid < 0) { // no process to be had: later
          slots.give();
          break;
        }
        running.push_back(child);
        ++next;
      }
      using namespace std::chrono;
      const auto left = deadline - steady_clock::now();
      if (left <= left.zero())
        return stop();
      const auto wait = std::min<milliseconds>(duration_cast<milliseconds>(left) + 1ms, 1000ms);
      std::vector<pollfd> watched;
      for (const Child &child : running)
        watched.push_back({child.pipe, POLLIN, 0});
      if (next < order.size())
        watched.push_back({slots.descriptor(), POLLIN, 0});
      poll(watched.data(), watched.size(), static_cast<int>(wait.count()));
      for (size_t i = running.size(); i-- > 0;) {
        if (!watched[i].revents)
          continue;
        onVerdict(finish(running[i], jobs[running[i].job].mutant));
        slots.give();
        running.erase(running.begin() + static_cast<long>(i));
      }
    }
  }

private:
  void stop() {
    for (const Child &child : running) {
      kill(child.pid, SIGKILL);
      finish(child, {});
      slots.give();
    }
    running.clear();
  }

  const Subject &subject;
  const std::vector<int *> &chosen; ///< the variable that chooses the fault, of each unit
  Slots &slots;
  std::vector<Child> running;
};

} // namespace

const char *outcomeName(Outcome outcome) {
  static const char *const names[outcomeCount] = {"survived", "fault", "deadlock", "values",
                                                  "endless",  "crash", "not run"};
  return names[static_cast<int>(outcome)];
}

Slots::Slots(int count) {
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    std::abort();
  for (int i = 0; i < count; ++i)
    give();
}

bool Slots::tryTake() {
  char byte;
  return read(ends[0], &byte, 1) == 1;
}

void Slots::take() {
  while (!tryTake()) {
    pollfd watched = {ends[0], POLLIN, 0};
    poll(&watched, 1, -1);
  }
}

void Slots::give() {
  if (write(ends[1], "", 1) != 1)
    std::abort();
}

Result<void> runCampaign(const Subject &subject, const CampaignOptions &options, Slots &slots,
                         const CampaignEvents &events) {
  MutatedSource mutated = mutate(subject.artifact.source);
  if (!mutated.unread.empty())
    return Error{ErrorCode::Internal, "no fault is made in line " + mutated.unread.front()};
  Artifact base = subject.artifact;
  base.source = mutated.source;
  // Loaded here once; the processes inherit them, and with them the variables that choose the
  // fault.
  Result<std::shared_ptr<const EmulatedModule>> module =
      test::emulator().load(base.source, base.launch.entry);
  Result<std::shared_ptr<const EmulatedModule>> shuffled =
      test::emulator(test::ThreadOrder::Random).load(base.source, base.launch.entry);
  if (!module || !shuffled)
    return (module ? shuffled : module).error();
  std::vector<int *> chosen;
  for (const auto *unit : {&*module, &*shuffled}) {
    chosen.push_back(static_cast<int *>(dlsym((*unit)->handle, "moejit_mutant")));
    if (!chosen.back())
      return Error{ErrorCode::Internal, "the kernel's unit has no moejit_mutant"};
  }
  if (options.onlyBuilds)
    return {};

  const int mutantsInText = static_cast<int>(mutated.mutants.size());
  std::vector<Job> jobs = {{Mutant{}, base}};
  for (const Mutant &mutant : mutated.mutants)
    jobs.push_back({mutant, base});
  for (Job &job : launchFaults(base, mutantsInText + 1))
    jobs.push_back(std::move(job));
  std::vector<size_t> order;
  std::vector<Mutant> chosenFaults;
  for (size_t i = 1; i < jobs.size(); ++i) {
    const int number = static_cast<int>(i);
    const bool isWanted = options.faults.empty() ? number % options.shards == options.shard
                                                 : options.faults.count(number) > 0;
    if (!isWanted)
      continue;
    chosenFaults.push_back(jobs[i].mutant);
    const auto known = options.known.find(number);
    if (known == options.known.end() || !isSameFault(known->second, jobs[i].mutant))
      order.push_back(i);
  }
  events.onFaults(chosenFaults);
  if (order.empty() || options.deadline <= std::chrono::steady_clock::now())
    return {};

  // Without a fault first: a kernel that is wrong as it is proves nothing.
  Child alone = start(subject, jobs[0], 0, chosen, 0, /*stopSeconds=*/600);
  if (alone.pid < 0)
    return Error{ErrorCode::IoError, "no process can be started"};
  const Verdict asItIs = finish(alone, {});
  if (asItIs.outcome != Outcome::Survived)
    return Error{ErrorCode::Internal, "wrong without a fault: " + asItIs.message};
  const double stopSeconds = std::ceil(std::max(leastStopSeconds, stopFactor * asItIs.seconds));

  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return turnOf(jobs[a].mutant.kind) < turnOf(jobs[b].mutant.kind);
  });
  slots.give(); // the caller's place
  Workers(subject, chosen, slots)
      .run(jobs, order, mutantsInText, stopSeconds, options.deadline, events.onVerdict);
  slots.take();
  return {};
}

} // namespace moejit::mutation

// Generated faults of generated kernels, run on the emulator: each must be found, or stand in
// equivalents.txt with the reason why it changes nothing.
//
//   moejit-mutation-tests                        a sample of every kernel, as ctest runs it
//   moejit-mutation-tests --every=1              every fault of every kernel
//   … --part=0/2                                 every second kernel
//   … --kernel=NAME --faults=3,17                one kernel; of its faults these alone, by number
//   … --jobs=N --seconds=N                       processes; time, after which the rest is not run
//   … --json=FILE --from=FILE                    records as they come; faults in a file of records
//                                                count, and are not run again (unless by --faults)
//   … --table=FILE --survivors --verbose         the tables as Markdown; lists survivors; lists all
//   … --units=FOLDER --equivalents=FILE --golden=FILE   what else lies in the build and source
//   trees … --prepare                                  compiles the units, with which no compiler
//   is needed
#include "runtime/emulator/Build.h"
#include "tests/mutation/Expression.h"
#include "tests/mutation/Kernels.h"
#include "tests/mutation/Records.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <poll.h>
#include <set>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace moejit;
using namespace moejit::mutation;

namespace {

struct Settings {
  int every = 200;         ///< one fault of so many
  int part = 0, parts = 1; ///< kernels `part`, `part` + `parts`, …
  int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  double seconds = -1; ///< less than 0: no limit
  std::string kernel, table, json, from, units;
  std::string equivalents = MOEJIT_SOURCE_DIR "/tests/mutation/equivalents.txt";
  std::string golden = MOEJIT_SOURCE_DIR "/tests/golden/dense-gemm.cu";
  std::set<int> faults;
  bool listsSurvivors = false, listsAll = false, onlyBuilds = false;
};
Settings settings;
Records records;

/// What a kernel's process tells: every fault as not run, then verdicts, or an error.
class Teller {
public:
  Teller(std::string kernel, int pipe) : kernel(std::move(kernel)), pipe(pipe) {}
  void tell(const Record &record) const {
    const std::string line = recordLine(record);
    for (size_t done = 0; done < line.size();) {
      const ssize_t wrote = write(pipe, line.data() + done, line.size() - done);
      if (wrote < 0)
        _exit(1); // nobody listens
      done += static_cast<size_t>(wrote);
    }
  }
  void verdict(const Verdict &verdict) const { tell({kernel, verdict, 0, "", ""}); }
  void error(const std::string &text) const { tell({kernel, {}, 0, "", text}); }

private:
  std::string kernel;
  int pipe;
};

/// The work of a kernel's process.
void runKernel(const std::string &name, CampaignOptions options, Slots &slots,
               const Teller &teller) {
  slots.take();
  Subject subject;
  try {
    subject = makeSubject(name, settings.golden);
  } catch (...) { // a failed check of the test framework, which has said why
  }
  if (subject.artifact.source.empty())
    return teller.error("the kernel cannot be made");
  CampaignEvents events;
  events.onFaults = [&](const std::vector<Mutant> &mutants) {
    for (const Mutant &mutant : mutants)
      teller.verdict({mutant, Outcome::NotRun, "", 0});
  };
  events.onVerdict = [&](const Verdict &verdict) { teller.verdict(verdict); };
  if (Result<void> done = runCampaign(subject, options, slots, events); !done)
    teller.error(done.error().text());
  slots.give();
}

/// A kernel's process, as the one that started it sees it.
struct KernelProcess {
  std::string kernel;
  pid_t pid = -1;
  int pipe = -1;
  std::string unread; ///< the beginning of a line
  std::vector<int> faults;
};

KernelProcess start(const std::string &name, const CampaignOptions &options, Slots &slots) {
  KernelProcess process;
  process.kernel = name;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  process.pid = fork();
  REQUIRE(process.pid >= 0);
  if (process.pid == 0) {
    close(ends[0]);
    runKernel(name, options, slots, Teller(name, ends[1]));
    std::fflush(nullptr);
    _exit(0);
  }
  close(ends[1]);
  process.pipe = ends[0];
  return process;
}

/// Takes one line of a kernel's process; results go to `file` too, where there is one.
void take(KernelProcess &process, const std::string &line, std::FILE *file) {
  std::optional<Record> record = readRecord(line);
  REQUIRE_MESSAGE(record, process.kernel, " tells: ", line);
  if (!record->error.empty()) {
    FAIL_CHECK(process.kernel, ": ", record->error);
    return;
  }
  records.put(*record);
  const Verdict &verdict = record->verdict;
  if (verdict.outcome == Outcome::NotRun) {
    process.faults.push_back(verdict.mutant.number);
    return;
  }
  if (file) {
    std::fputs(recordLine(*record).c_str(), file);
    std::fflush(file);
  }
  if (settings.listsAll)
    std::printf("%s fault %d, line %d: %s | %s | %s => %s: %s\n", process.kernel.c_str(),
                verdict.mutant.number, verdict.mutant.line, kindName(verdict.mutant.kind),
                verdict.mutant.text.c_str(), verdict.mutant.change.c_str(),
                outcomeName(verdict.outcome), verdict.message.c_str());
}

/// Reads what there is; false at the end, when the process is gone.
bool listen(KernelProcess &process, std::FILE *file) {
  char bytes[65536];
  const ssize_t got = read(process.pipe, bytes, sizeof bytes);
  if (got > 0) {
    process.unread.append(bytes, static_cast<size_t>(got));
    for (size_t end; (end = process.unread.find('\n')) != std::string::npos;) {
      take(process, process.unread.substr(0, end), file);
      process.unread.erase(0, end + 1);
    }
    return true;
  }
  close(process.pipe);
  int status = 0;
  waitpid(process.pid, &status, 0);
  CHECK_MESSAGE(status == 0, process.kernel, ": its process ended with status ", status);
  return false;
}

/// Runs the kernels `names`, each in a process of its own, which starts one for each fault.
void runKernels(const std::vector<std::string> &names) {
  CampaignOptions options;
  options.shards = settings.every;
  options.faults = settings.faults;
  options.onlyBuilds = settings.onlyBuilds;
  using namespace std::chrono;
  if (settings.seconds >= 0)
    options.deadline =
        steady_clock::now() + milliseconds(static_cast<int64_t>(1e3 * settings.seconds));
  if (!settings.from.empty())
    CHECK_MESSAGE(records.read(settings.from), "cannot read ", settings.from);
  std::FILE *file = settings.json.empty() ? nullptr : std::fopen(settings.json.c_str(), "w");
  CHECK_MESSAGE((file || settings.json.empty()), "cannot write ", settings.json);

  Slots slots(settings.jobs);
  std::vector<KernelProcess> running;
  for (const std::string &name : names) {
    CampaignOptions own = options;
    if (own.faults.empty())
      for (const auto &[number, record] : records.of(name))
        if (record.verdict.outcome != Outcome::NotRun)
          own.known[number] = record.verdict.mutant;
    running.push_back(start(name, own, slots));
  }
  size_t done = 0;
  while (!running.empty()) {
    std::vector<pollfd> watched;
    for (const KernelProcess &process : running)
      watched.push_back({process.pipe, POLLIN, 0});
    poll(watched.data(), watched.size(), -1);
    for (size_t i = running.size(); i-- > 0;) {
      if (!watched[i].revents || listen(running[i], file))
        continue;
      if (settings.faults.empty() && !settings.onlyBuilds)
        records.keep(running[i].kernel, running[i].faults);
      if (settings.every == 1)
        std::fprintf(stderr, "%s is done, %zu of %zu\n", running[i].kernel.c_str(), ++done,
                     names.size());
      running.erase(running.begin() + static_cast<long>(i));
    }
  }
  if (file)
    std::fclose(file);
}

/// Fails for every survivor without a reason.
void judge(const std::vector<std::string> &names) {
  const std::vector<Equivalent> entries = readEquivalents(settings.equivalents);
  CHECK_MESSAGE(!entries.empty(), "no entries in ", settings.equivalents);
  for (const Equivalent &entry : entries)
    CHECK_MESSAGE(!entry.reason.empty(), settings.equivalents, ", line ", entry.line,
                  ": expected kernel | kind | text | change | most | reason");
  records.explain(entries);
  std::set<int> used;
  size_t left = 0, found = 0, all = 0;
  for (const std::string &name : names)
    for (const auto &[number, record] : records.of(name)) {
      ++all;
      const Verdict &verdict = record.verdict;
      used.insert(record.entry);
      left += verdict.outcome == Outcome::NotRun;
      found += verdict.outcome != Outcome::NotRun && verdict.outcome != Outcome::Survived;
      if (verdict.outcome != Outcome::Survived || record.entry > 0)
        continue;
      const Mutant &mutant = verdict.mutant;
      const std::string what =
          fmt::format("{} | {} | {} | {}", name, kindName(mutant.kind), mutant.text, mutant.change);
      if (settings.listsSurvivors)
        std::printf("%s | fault %d, line %d\n", what.c_str(), mutant.number, mutant.line);
      FAIL_CHECK("a fault is not found: fault ", number, ", line ", mutant.line, ": ", what);
    }
  CHECK((found > 0 || all < 5 || settings.seconds == 0));
  // A part of the faults needs a part of the entries.
  if (settings.every > 1 || settings.parts > 1 || !settings.kernel.empty() || left > 0)
    return;
  for (const Equivalent &entry : entries)
    CHECK_MESSAGE(used.count(entry.line) > 0, settings.equivalents, ", line ", entry.line,
                  ": no fault needs it");
}

/// The emulators of this program, with the folder of units and who has compiled them.
void setUpEmulators() {
  // Written by --prepare: name and version of the compiler.
  std::string compiler;
  std::stringstream version;
  if (std::ifstream file(settings.units + "/compiler.txt"); std::getline(file, compiler))
    version << file.rdbuf();
  for (test::ThreadOrder order : {test::ThreadOrder::RoundRobin, test::ThreadOrder::Random}) {
    EmulatorOptions &options = test::emulatorOptions(order);
    options.threads = 4; // whatever the machine has: one for each emulated block
    // Registers that nobody has set hold large negative numbers in one order, zeros in the other.
    // With few blocks a block takes many tiles, with more its first tile lies past experts.
    if (order == test::ThreadOrder::Random) {
      options.compilerFlags = {"-ftrivial-auto-var-init=zero"};
      options.smCount = 9;
    }
    if (!settings.units.empty())
      options.workFolder = settings.units;
    options.compiler = compiler;
    options.compilerVersion = version.str();
  }
}

/// Writes down who has compiled the units, for a machine that may have no compiler.
bool noteCompiler() {
  const EmulatorOptions &options = test::emulatorOptions(test::ThreadOrder::RoundRobin);
  Result<emulated::HostCompiler> compiler =
      emulated::findCompiler(options.compiler, options.workFolder);
  if (!compiler)
    return false;
  std::ofstream file(options.workFolder + "/compiler.txt");
  file << compiler->path << '\n' << compiler->version;
  file.close();
  return bool(file);
}

} // namespace

TEST_CASE("every fault is found, or is no fault") {
  const std::vector<std::string> &all = subjectNames();
  std::vector<std::string> names;
  for (size_t i = 0; i < all.size(); ++i)
    if (settings.kernel.empty() ? static_cast<int>(i) % settings.parts == settings.part
                                : settings.kernel == all[i])
      names.push_back(all[i]);
  REQUIRE_MESSAGE(!names.empty(), "no kernel ", settings.kernel);
  runKernels(names);
  if (settings.onlyBuilds)
    return;
  judge(names);
  if (!settings.json.empty())
    std::ofstream(settings.json) << records.text();
  const std::string tables = records.tables(all);
  std::printf("%s", tables.c_str());
  if (!settings.table.empty())
    std::ofstream(settings.table) << tables;
}

TEST_CASE("a record is read as it was written") {
  Record record;
  record.kernel = "a.kernel";
  record.verdict = {
      {7, Kind::Loop, 12, "for (\"x\\\")", "1 -> 2"}, Outcome::Values, "tab\there", 1.5};
  std::optional<Record> read = readRecord(recordLine(record));
  REQUIRE(read);
  CHECK(recordLine(*read) == recordLine(record));
  CHECK(isSameFault(read->verdict.mutant, record.verdict.mutant));
  CHECK(read->verdict.outcome == Outcome::Values);
  CHECK(readRecord(recordLine({"a.kernel", {}, 0, "", "broken"}))->error == "broken");
  CHECK(!readRecord("{\"kernel\": \"a.kernel\"}"));
  CHECK(!readRecord("{\"kernel"));

  // A fault that was not run does not hide that it was run before; another fault does.
  Records all;
  all.put(record);
  record.verdict.outcome = Outcome::NotRun;
  all.put(record);
  CHECK(all.of("a.kernel").at(7).verdict.outcome == Outcome::Values);
  record.verdict.mutant.change = "1 -> 3";
  all.put(record);
  CHECK(all.of("a.kernel").at(7).verdict.outcome == Outcome::NotRun);
}

TEST_CASE("expressions are parsed as C does") {
  const auto printed = [](const char *text) {
    ExpressionPtr parsed = parseExpression(text);
    return parsed ? parsed->print() : "none";
  };
  CHECK(printed("a + b * c - d") == "((a + (b * c)) - d)");
  CHECK(printed("x < 4 ? x : y & -4") == "((x < 4) ? x : (y & -(4)))");
  CHECK(printed("(long long)(a + 1) * 2ll") == "((long long)((a + 1)) * 2ll)");
  CHECK(printed("phase ^ (int)v38") == "(phase ^ (int)(v38))");
  CHECK(printed("acc[0][v + 2]") == "acc[0][(v + 2)]");
  CHECK(printed("wgmma_wait<0>()") == "wgmma_wait<0>()");
  CHECK(printed("a && b || c >> 2 >= d") == "((a && b) || ((c >> 2) >= d))");
  CHECK(printed("a +") == "none");
  CHECK(printed("a b") == "none");
}

TEST_CASE("each statement has its faults, and only those") {
  const std::string source = "extern \"C\" __global__ void __launch_bounds__(32, 1)\n"
                             "moejit_kernel(void *y, int rows) {\n"
                             "  const int v0 = rows < 4 ? rows : 4;\n"
                             "  if (v0 == 2) {\n"
                             "    mbarrier_wait(v0, 1);\n"
                             "  }\n"
                             "  wgmma_wait<0>();\n"
                             "}\n";
  MutatedSource made = mutate(source);
  CHECK(made.unread.empty());
  std::vector<std::string> changes;
  for (const Mutant &mutant : made.mutants)
    changes.push_back(fmt::format("{}: {}: {}", mutant.line, kindName(mutant.kind), mutant.change));
  CHECK(changes ==
        std::vector<std::string>{"3: constant: 4 -> 8", "3: condition: first value always",
                                 "3: condition: second value always", "4: constant: 2 -> 4",
                                 "4: mask: == -> !=", "4: condition: always", "5: constant: 1 -> 2",
                                 "5: phase: other parity", "5: wait: left out",
                                 "7: wait: one group more may be under way", "7: wait: left out"});
  std::set<int> numbers;
  for (const Mutant &mutant : made.mutants)
    numbers.insert(mutant.number);
  CHECK(numbers.size() == made.mutants.size());
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    const auto value = [&](const char *option) {
      return argument.compare(0, std::strlen(option), option) == 0
                 ? argument.substr(std::strlen(option))
                 : std::string();
    };
    for (auto [option, text] : {std::pair{"--kernel=", &settings.kernel},
                                {"--table=", &settings.table},
                                {"--json=", &settings.json},
                                {"--from=", &settings.from},
                                {"--units=", &settings.units},
                                {"--equivalents=", &settings.equivalents},
                                {"--golden=", &settings.golden}})
      if (std::string given = value(option); !given.empty())
        *text = given;
    if (std::string every = value("--every="); !every.empty())
      settings.every = std::max(1, std::atoi(every.c_str()));
    if (std::string jobs = value("--jobs="); !jobs.empty())
      settings.jobs = std::max(1, std::atoi(jobs.c_str()));
    if (std::string seconds = value("--seconds="); !seconds.empty())
      settings.seconds = std::max(0.0, std::atof(seconds.c_str()));
    if (std::string part = value("--part="); !part.empty())
      std::sscanf(part.c_str(), "%d/%d", &settings.part, &settings.parts);
    if (std::string list = value("--faults="); !list.empty())
      for (size_t at = 0; at < list.size(); at = std::min(list.find(',', at), list.size() - 1) + 1)
        settings.faults.insert(std::atoi(list.c_str() + at));
    settings.listsSurvivors |= argument == "--survivors";
    settings.listsAll |= argument == "--verbose";
    settings.onlyBuilds |= argument == "--prepare";
  }
  setUpEmulators();
  doctest::Context context(argc, argv);
  int status = context.run();
  if (settings.onlyBuilds && status == 0)
    status = !noteCompiler();
  return status;
}

#include "tests/torture/Torture.h"

#include "tests/torture/Faults.h"

#include <doctest/doctest.h>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace moejit::torture {

Artifact compiledBy(const GeneratorIdentity &generator, const Spec &spec, const Target &target,
                    const KernelPlan &plan, size_t cubinBytes) {
  std::string key =
      buildKeyText(lookupKeyText(spec, target, {plan.checked, {}}), planText(plan), generator);
  Artifact artifact = samples::artifact();
  artifact.lookupKey = artifact.buildKey = artifact.planText = "";
  artifact.nvrtcVersion = generator.nvrtcVersion;
  std::seed_seq seed(key.begin(), key.end());
  std::mt19937 random(seed);
  while (artifact.cubin.size() < cubinBytes)
    artifact.cubin += char(random());
  artifact.source = "// " + keyName(key) + "\n";
  return artifact;
}

std::vector<Spec> specs(int count) {
  std::vector<Spec> result(size_t(count), samples::spec());
  for (int i = 0; i < count; ++i)
    result[size_t(i)].numExperts = 4 + i;
  return result;
}

CacheOptions Place::cacheOptions() {
  CacheOptions options;
  options.folder = folder.path;
  options.sizeLimitBytes = 0;
  options.log = [this](const std::string &message) {
    ++warnings;
    messages.push_back(message);
  };
  return options;
}

std::shared_ptr<Cache> Place::openCache(CacheOptions options) {
  Result<std::shared_ptr<Cache>> cache = Cache::open(std::move(options));
  REQUIRE(cache);
  return *cache;
}

JitOptions Place::jitOptions(std::shared_ptr<Cache> cache) {
  JitOptions options;
  options.cache = std::move(cache);
  options.target = target;
  options.generator = generator;
  options.compile = [this](const Spec &spec, const Target &made, const KernelPlan &plan) {
    FaultsSuspended suspended;
    int fd = open((counts.path + "/compiles").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)!write(fd, "c", 1);
    close(fd);
    std::this_thread::sleep_for(std::chrono::microseconds(compileUs));
    return Result<Artifact>(compiledBy(generator, spec, made, plan, cubinBytes));
  };
  return options;
}

int Place::compiles() const {
  struct stat info = {};
  return stat((counts.path + "/compiles").c_str(), &info) == 0 ? int(info.st_size) : 0;
}

bool Place::isRight(const Result<std::shared_ptr<Kernel>> &kernel, const Spec &spec,
                    int64_t rows) const {
  if (!kernel)
    return false;
  KernelPlan plan = choosePlan(spec, target, rows);
  Artifact wanted = compiledBy(generator, spec, target, plan, cubinBytes);
  const Artifact &artifact = (*kernel)->artifact();
  return artifact.cubin == wanted.cubin && artifact.source == wanted.source &&
         artifact.planText == planText(plan) && artifact.spec == spec &&
         artifact.arch == target.arch;
}

std::vector<std::string> Place::leftovers() const {
  std::vector<std::string> names = samples::filesIn(folder.path, ".lock");
  for (const std::string &name : samples::filesIn(folder.path, ".tmp"))
    names.push_back(name);
  return names;
}

pid_t startProcess(const std::function<int()> &body) {
  pid_t child = fork();
  if (child != 0)
    return child;
  _exit(body());
}

int waitFor(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR)
    ;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string readAll(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

void writeAll(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

} // namespace moejit::torture

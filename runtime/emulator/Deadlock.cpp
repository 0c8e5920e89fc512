// The report of a cluster that cannot go on: who waits for what, threads that wait alike on one
// line.
#include "runtime/emulator/Build.h"
#include "runtime/emulator/Cluster.h"

#include <fmt/format.h>

#include <bit>
#include <map>

namespace moejit::emulated {

/// "0-3, 7" for sorted numbers.
static std::string ranges(const std::vector<int> &numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1)
      ++j;
    text += text.empty() ? "" : ", ";
    text += j > i ? fmt::format("{}-{}", numbers[i], numbers[j]) : fmt::format("{}", numbers[i]);
    i = j + 1;
  }
  return text;
}

static std::string describe(const Fiber &f, int clusterArrived, int live) {
  Block &block = *f.block;
  if (f.done)
    return "has ended";
  const Wait &wait = f.wait;
  switch (wait.kind) {
  case Wait::Kind::None:
    return "is ready";
  case Wait::Kind::Mbarrier: {
    const Mbarrier &barrier = *block.shared.findBarrier(wait.a);
    return fmt::format(
        "waits at mbarrier_wait({}, parity {}): the barrier is in phase {} (parity {}), {} of "
        "{} arrivals pending, {} bytes expected and not delivered",
        SharedMemory::place(wait.a), wait.b, barrier.phase, barrier.phase & 1, barrier.pending,
        barrier.count, barrier.txBytes);
  }
  case Wait::Kind::NamedBarrier:
    return fmt::format("waits at bar_sync({}, {}): {} of {} threads have arrived", wait.a, wait.b,
                       block.barriers[wait.a].arrived, wait.b);
  case Wait::Kind::Warp: {
    const uint32_t lanes = block.warps[f.thread / 32].lanes;
    return fmt::format("waits at {}: {} of 32 lanes have arrived", wait.op, std::popcount(lanes));
  }
  case Wait::Kind::ClusterBarrier:
    return fmt::format("waits at cluster_wait: {} of {} threads of the cluster have arrived",
                       clusterArrived, live);
  case Wait::Kind::Wgmma: {
    const Warpgroup &warpgroup = block.warpgroups[f.thread / Warpgroup::threads];
    return fmt::format(
        "waits at wgmma_wait<{}>: {} of {} groups complete, the next one committed by {} of "
        "128 threads",
        wait.a, warpgroup.groupsComplete(), wait.b,
        warpgroup.threadsCommitted(warpgroup.groupsComplete()));
  }
  case Wait::Kind::Registers:
    return fmt::format("waits at setmaxnreg_inc<{}>: needs {} more registers, {} are free", wait.b,
                       wait.a, block.freeRegisters);
  case Wait::Kind::Copies:
    return fmt::format("waits at {}", wait.op);
  case Wait::Kind::Global:
    return fmt::format("waits at wait_global_i32: byte {} of {} is less than {}", wait.b, wait.op,
                       wait.a);
  }
  return {};
}

std::string describeDeadlock(Cluster &cluster) {
  std::string text;
  std::map<const void *, std::string> known;
  const auto place = [&](const Fiber &f) {
    if (f.done || !f.site)
      return std::string();
    auto [line, isNew] = known.try_emplace(f.site);
    if (isNew)
      line->second = lineOf(*cluster.launch.module, f.site);
    return line->second.empty() ? "" : ", " + line->second;
  };
  for (int rank = 0; rank < cluster.size(); ++rank) {
    Block &block = cluster.peer(rank);
    // Warps whose lanes wait alike share their lines; the key is the text of all lines of a warp.
    std::vector<std::pair<std::string, std::vector<int>>> groups;
    for (int warp = 0; warp < static_cast<int>(block.warps.size()); ++warp) {
      std::map<std::string, std::vector<int>> lanes;
      for (int lane = 0; lane < 32; ++lane) {
        const Fiber &f = cluster.fiberOf(block, 32 * warp + lane);
        lanes[describe(f, cluster.clusterArrived, cluster.live) + place(f)].push_back(lane);
      }
      std::string lines;
      for (const auto &[what, which] : lanes)
        lines += which.size() == 32 ? fmt::format(": {}", what)
                                    : fmt::format("\n    lanes {}: {}", ranges(which), what);
      auto same = groups.begin();
      while (same != groups.end() && same->first != lines)
        ++same;
      if (same == groups.end())
        groups.push_back({lines, {warp}});
      else
        same->second.push_back(warp);
    }
    for (const auto &[lines, warps] : groups)
      text += fmt::format("{}block {} warps {}{}", text.empty() ? "" : "\n", block.index,
                          ranges(warps), lines);
  }
  return text;
}

} // namespace moejit::emulated

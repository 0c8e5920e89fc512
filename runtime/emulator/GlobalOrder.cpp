// Marks of stored bytes, and what threads learn of other blocks.
#include "runtime/emulator/GlobalOrder.h"

#include <algorithm>
#include <atomic>

namespace moejit::emulated {
namespace {

void joinRow(std::vector<uint32_t> &into, const uint32_t *from, size_t count) {
  into.resize(std::max(into.size(), count));
  for (size_t i = 0; i < count; ++i)
    into[i] = std::max(into[i], from[i]);
}

void joinRow(std::vector<uint32_t> &into, const std::vector<uint32_t> &from) {
  joinRow(into, from.data(), from.size());
}

} // namespace

void GlobalOrder::reset(const EmulatedLaunch &l, const Footprint *touchedBefore) {
  launch = &l;
  before = touchedBefore;
  threads = l.threads;
  marks.clear();
  for (const MemoryRange &range : l.ranges)
    marks.emplace_back(range.writable ? static_cast<size_t>(range.bytes) : 0);
  words.clear();
}

std::shared_ptr<const Snapshot> GlobalOrder::fence(const Actor &actor) const {
  {
    const std::lock_guard lock(mutex);
    std::erase_if(actor.observed, [&](const Observation &seen) {
      if (seen.thread != actor.thread)
        return false;
      if (const auto known = words.find(seen.word); known != words.end())
        learn(actor, known->second, seen.changes);
      return true;
    });
  }
  auto made = std::make_shared<Snapshot>();
  made->known.resize(launch->blocks);
  made->fenced.resize(launch->blocks);
  const size_t own = static_cast<size_t>(actor.block);
  joinRow(made->known[own], actor.races.known(actor.thread), threads);
  joinRow(made->fenced[own], actor.races.fenced(actor.thread), threads);
  for (const Acquisition &acquisition : actor.acquired) {
    if (!actor.races.isOrdered(acquisition.thread, acquisition.clock, actor.thread))
      continue;
    const bool isFenced = actor.races.isFenced(acquisition.thread, acquisition.clock, actor.thread);
    for (size_t block = 0; block < launch->blocks; ++block) {
      joinRow(made->known[block], acquisition.what->known[block]);
      joinRow(made->fenced[block],
              isFenced ? acquisition.what->known[block] : acquisition.what->fenced[block]);
    }
  }
  // What the thread does from now on is not vouched for.
  actor.races.advance(actor.thread);
  return made;
}

GlobalOrder::Mark GlobalOrder::markAt(size_t range, int64_t at) const {
  auto &word = const_cast<uint64_t &>(marks[range][static_cast<size_t>(at)]);
  const uint64_t bits = std::atomic_ref<uint64_t>(word).load(std::memory_order_relaxed);
  const uint32_t number = static_cast<uint32_t>(bits >> 32), clock = static_cast<uint32_t>(bits);
  if (number == atomicNumber)
    return {number, clock, false};
  return {number & ~asyncBit, clock, (number & asyncBit) != 0};
}

void GlobalOrder::setMark(size_t range, int64_t at, Mark mark) {
  std::atomic_ref<uint64_t>(marks[range][static_cast<size_t>(at)])
      .store(mark.bits(), std::memory_order_relaxed);
}

bool GlobalOrder::isUnwritten(const MemoryRange &memory, int64_t at, Mark mark) const {
  return mark.number == 0 && memory.isScratch && at >= memory.zeroedBytes &&
         !(before && before->hasWritten(static_cast<const char *>(memory.base) + at));
}

bool GlobalOrder::knows(const Actor &actor, Mark mark, bool needsFence) const {
  const int block = static_cast<int>((mark.number - 1) / threads);
  const int thread = static_cast<int>((mark.number - 1) % threads);
  if (block == actor.block)
    return needsFence ? actor.races.isFenced(thread, mark.clock, actor.thread)
                      : actor.races.isOrdered(thread, mark.clock, actor.thread);
  const auto has = [&](const std::vector<std::vector<uint32_t>> &rows) {
    const std::vector<uint32_t> &row = rows[static_cast<size_t>(block)];
    return !row.empty() && row[static_cast<size_t>(thread)] >= mark.clock;
  };
  for (auto a = actor.acquired.rbegin(); a != actor.acquired.rend(); ++a) {
    if (!actor.races.isOrdered(a->thread, a->clock, actor.thread))
      continue;
    const bool isFenced = !needsFence || actor.races.isFenced(a->thread, a->clock, actor.thread);
    if (isFenced ? has(a->what->known) : has(a->what->fenced))
      return true;
  }
  return false;
}

Text GlobalOrder::name(Mark mark) const {
  return Text::format("thread {} of block {}", (mark.number - 1) % threads,
                      (mark.number - 1) / threads);
}

Text GlobalOrder::endAtomic(const Actor &actor, size_t range, int64_t at) {
  const MemoryRange &memory = launch->ranges[range];
  const int64_t first = at / 4 * 4;
  const auto *word = reinterpret_cast<const int *>(static_cast<const char *>(memory.base) + first);
  const std::lock_guard lock(mutex);
  // Changes of a word have an order: behind the last is behind them all.
  if (const auto known = words.find(word); known != words.end()) {
    if (!knows(actor, known->second.changes.back().by, false))
      return Text::format("stores byte {} of {}, which is changed atomically, by {} last: nothing "
                          "orders the two",
                          at, memory.name, name(known->second.changes.back().by));
    words.erase(known);
  }
  for (int64_t i = first; i < first + 4; ++i)
    setMark(range, i, {numberOf(actor), actor.races.now(actor.thread)});
  return {};
}

Text GlobalOrder::store(const Actor &actor, size_t range, int64_t at, int bytes) {
  const MemoryRange &memory = launch->ranges[range];
  const Mark own = {numberOf(actor), actor.races.now(actor.thread)};
  for (int64_t i = at; i < at + bytes; ++i) {
    const Mark last = markAt(range, i);
    if (last.number == atomicNumber) {
      if (const Text message = endAtomic(actor, range, i); !message.empty())
        return message;
      continue;
    }
    if (last.isInFlight())
      return Text::format("stores byte {} of {}, which a TMA store of {} writes: its bulk_wait "
                          "must come first",
                          i, memory.name, name(last));
    if (last.number != 0 && last.number != own.number) {
      if (launch->storesOnce)
        return Text::format("stores byte {} of {}, which {} has stored", i, memory.name,
                            name(last));
      if (!knows(actor, last, false))
        return Text::format("stores byte {} of {}, which {} has stored: nothing orders the two", i,
                            memory.name, name(last));
    }
    setMark(range, i, own);
  }
  return {};
}

Text GlobalOrder::storeAsync(const Actor &actor, size_t range, int64_t at, int bytes) {
  const MemoryRange &memory = launch->ranges[range];
  const Mark own = {numberOf(actor), UINT32_MAX, true};
  for (int64_t i = at; i < at + bytes; ++i) {
    const Mark last = markAt(range, i);
    if (last.number == atomicNumber)
      return Text::format("stores byte {} of {}, which is changed atomically", i, memory.name);
    if (last.number != 0) {
      if (last.isInFlight())
        return Text::format("stores byte {} of {}, which another TMA store of {} writes: its "
                            "bulk_wait must come first",
                            i, memory.name, name(last));
      if (launch->storesOnce && last.number != own.number)
        return Text::format("stores byte {} of {}, which {} has stored", i, memory.name,
                            name(last));
      if (!knows(actor, last, false))
        return Text::format("stores byte {} of {}, which {} has stored: nothing orders the two", i,
                            memory.name, name(last));
      if (!last.isAsync && !knows(actor, last, true))
        return Text::format("stores byte {} of {}, which {} has stored: no "
                            "fence_proxy_async_global lies between the two",
                            i, memory.name, name(last));
    }
    setMark(range, i, own);
  }
  return {};
}

void GlobalOrder::finishAsync(const Actor &actor, size_t range, int64_t at, int bytes) {
  for (int64_t i = at; i < at + bytes; ++i)
    setMark(range, i, {numberOf(actor), actor.races.now(actor.thread), true});
}

Text GlobalOrder::load(const Actor &actor, size_t range, int64_t at, int bytes,
                       bool isReadOnly) const {
  const MemoryRange &memory = launch->ranges[range];
  if (!memory.writable)
    return {};
  Mark last;
  for (int64_t i = at; i < at + bytes; ++i) {
    const Mark mark = markAt(range, i);
    if (isUnwritten(memory, i, mark))
      return Text::format("reads byte {} of {}, which nothing has written", i, memory.name);
    if (mark.number == 0 || mark.number == atomicNumber ||
        (mark.number == last.number && mark.clock == last.clock))
      continue;
    if (mark.isInFlight())
      return Text::format("reads byte {} of {}, which a TMA store of {} writes: its bulk_wait must "
                          "come first",
                          i, memory.name, name(mark));
    if (isReadOnly)
      return Text::format("reads byte {} of {}, which {} has stored, through the path for data "
                          "that the launch does not change (ld.global.nc)",
                          i, memory.name, name(mark));
    if (!knows(actor, mark, false))
      return Text::format("reads byte {} of {}, which {} has stored: nothing orders the two", i,
                          memory.name, name(mark));
    last = mark;
  }
  return {};
}

Text GlobalOrder::copy(const Actor &actor, size_t range, int64_t at, int bytes) const {
  const MemoryRange &memory = launch->ranges[range];
  Mark last;
  for (int64_t i = at; i < at + bytes; ++i) {
    const Mark mark = markAt(range, i);
    if (isUnwritten(memory, i, mark))
      return Text::format("copies byte {} of {}, which nothing has written", i, memory.name);
    if (mark.number == 0 || (mark.number == last.number && mark.clock == last.clock))
      continue;
    if (mark.number == atomicNumber)
      return Text::format("copies byte {} of {}, which is changed atomically", i, memory.name);
    if (mark.isInFlight())
      return Text::format("copies byte {} of {}, which a TMA store of {} writes: its bulk_wait "
                          "must come first",
                          i, memory.name, name(mark));
    if (!knows(actor, mark, false))
      return Text::format("copies byte {} of {}, which {} has stored: nothing orders the two", i,
                          memory.name, name(mark));
    // The end of a TMA store is followed by a fence of its own.
    if (!mark.isAsync && !knows(actor, mark, true))
      return Text::format("copies byte {} of {}, which {} has stored: no fence_proxy_async_global "
                          "lies between the two",
                          i, memory.name, name(mark));
    last = mark;
  }
  return {};
}

bool GlobalOrder::isAtomic(size_t range, int64_t at) const {
  return launch->ranges[range].writable && markAt(range, at).number == atomicNumber;
}

int GlobalOrder::change(const Actor &actor, size_t range, int64_t at, int *word,
                        const std::shared_ptr<const Snapshot> &vouched,
                        int (*change)(int old, int operand), int operand) {
  const std::lock_guard lock(mutex);
  const std::atomic_ref<int> value(*word);
  const int old = value.load(std::memory_order_relaxed), made = change(old, operand);
  Word &known = words[word];
  if (known.changes.empty()) {
    known.initial = old;
    for (int64_t i = at; i < at + 4; ++i)
      setMark(range, i, {atomicNumber, 0});
  }
  known.changes.push_back({{numberOf(actor), actor.races.now(actor.thread)}, made, vouched});
  const auto seen =
      std::find_if(actor.observed.begin(), actor.observed.end(), [&](const Observation &o) {
        return o.thread == actor.thread && o.word == word;
      });
  if (seen != actor.observed.end())
    seen->changes = known.changes.size();
  else
    actor.observed.push_back({actor.thread, word, known.changes.size()});
  value.store(made, std::memory_order_release);
  return old;
}

int GlobalOrder::staleValue(const Actor &actor, const int *word) const {
  const std::lock_guard lock(mutex);
  const Word &known = words.at(word);
  for (auto c = known.changes.rbegin(); c != known.changes.rend(); ++c)
    if (knows(actor, c->by, false))
      return c->value;
  return known.initial;
}

void GlobalOrder::acquire(const Actor &actor, const int *word, int value) const {
  const std::lock_guard lock(mutex);
  const auto known = words.find(word);
  if (known == words.end() || known->second.initial >= value)
    return;
  // The first value that is large enough is what the wait is sure to have seen, with all changes
  // before it.
  const std::vector<Change> &changes = known->second.changes;
  const auto enough = std::find_if(changes.begin(), changes.end(),
                                   [&](const Change &change) { return change.value >= value; });
  learn(actor, known->second, static_cast<size_t>(enough - changes.begin()) + 1);
}

void GlobalOrder::learn(const Actor &actor, const Word &word, size_t changes) const {
  changes = std::min(changes, word.changes.size());
  auto all = std::make_shared<Snapshot>();
  for (size_t i = 0; i < changes; ++i) {
    const Snapshot *vouched = word.changes[i].vouched.get();
    if (!vouched)
      continue;
    all->known.resize(launch->blocks);
    all->fenced.resize(launch->blocks);
    for (size_t block = 0; block < launch->blocks; ++block) {
      joinRow(all->known[block], vouched->known[block]);
      joinRow(all->fenced[block], vouched->fenced[block]);
    }
  }
  if (!all->known.empty())
    actor.acquired.push_back({actor.thread, actor.races.now(actor.thread), std::move(all)});
}

} // namespace moejit::emulated

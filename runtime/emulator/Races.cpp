// Clocks and the words' last accesses.
#include "runtime/emulator/Races.h"

#include <algorithm>

namespace moejit::emulated {

void RaceDetector::reset(int bytes, int count) {
  threads = count;
  clocks.assign(threads * width(), 0);
  for (int thread = 0; thread < threads; ++thread)
    clockOf(thread)[thread] = 1;
  std::fill_n(deliveries, copyLanes, 0);
  hasLearnt.assign(threads, true);
  sharedFences.assign(threads, {});
  knownAtFence.assign(threads, {});
  words.assign(static_cast<size_t>(bytes) / 4 + 1, {});
  pool.clear();
  freeReaders = -1;
}

void RaceDetector::join(VectorClock &into, const VectorClock &from) {
  if (into.size() < from.size())
    into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

void RaceDetector::release(int thread, VectorClock &into) {
  if (into.size() < width())
    into.resize(width());
  uint32_t *own = clockOf(thread);
  for (size_t i = 0; i < width(); ++i)
    into[i] = std::max(into[i], own[i]);
  ++own[thread];
}

void RaceDetector::acquire(int thread, const VectorClock &from) {
  uint32_t *own = clockOf(thread);
  hasLearnt[thread] = true;
  for (size_t i = 0; i < from.size(); ++i)
    own[i] = std::max(own[i], from[i]);
}

void RaceDetector::meet(int first, int count) {
  const int end = first + count;
  // Shuffles follow each other closely: what the lanes of a warp know of others is the same
  // already.
  const bool isSame =
      count == 32 &&
      std::none_of(hasLearnt.begin() + first, hasLearnt.begin() + end, [](uint8_t b) { return b; });
  VectorClock &all = meeting;
  if (isSame) {
    all.resize(width());
    for (int thread = first; thread < end; ++thread)
      all[thread] = clockOf(thread)[thread]++;
    for (int thread = first; thread < end; ++thread) {
      uint32_t *own = clockOf(thread);
      const uint32_t now = own[thread];
      std::copy_n(all.begin() + first, count, own + first);
      own[thread] = now;
    }
    return;
  }
  all.assign(width(), 0);
  for (int thread = first; thread < end; ++thread)
    release(thread, all);
  for (int thread = first; thread < end; ++thread) {
    uint32_t *own = clockOf(thread);
    const uint32_t now = own[thread];
    std::copy(all.begin(), all.end(), own);
    own[thread] = now;
    hasLearnt[thread] = false;
  }
}

void RaceDetector::fence(int thread) {
  uint32_t *own = clockOf(thread);
  hasLearnt[thread] = true;
  std::copy_n(own, lanes(), own + lanes());
  ++own[thread];
}

void RaceDetector::fenceShared(int thread) {
  uint32_t *own = clockOf(thread);
  sharedFences[thread].push_back(own[thread]);
  knownAtFence[thread].assign(own, own + lanes());
  ++own[thread]; // what follows the fence is told from what lies before
}

bool RaceDetector::isFencedShared(int lane, uint32_t clock, int thread) const {
  if (const std::vector<uint32_t> &last = knownAtFence[thread];
      !last.empty() && last[lane] >= clock)
    return true;
  if (lane >= threads)
    return false;
  const std::vector<uint32_t> &fences = sharedFences[lane];
  const auto next = std::lower_bound(fences.begin(), fences.end(), clock);
  return next != fences.end() && *next <= known(thread)[lane];
}

std::pair<int, uint32_t> RaceDetector::deliver(int barrier, VectorClock &into) {
  if (into.size() < width())
    into.resize(width());
  const int lane = barrier % copyLanes;
  const uint32_t clock = ++deliveries[lane];
  into[static_cast<size_t>(threads + lane)] = clock;
  return {threads + lane, clock};
}

void RaceDetector::learn(int thread, std::pair<int, uint32_t> delivery) {
  uint32_t &known = clockOf(thread)[delivery.first];
  known = std::max(known, delivery.second);
  hasLearnt[thread] = true;
}

void RaceDetector::noteDelivery(int offset, int bytes, std::pair<int, uint32_t> delivery) {
  for (int at = offset; at < offset + bytes; at += 4) {
    Word &word = words[at / 4];
    word.writer = static_cast<int16_t>(delivery.first);
    word.writeClock = delivery.second;
  }
}

Text RaceDetector::deed(int lane, const char *did) const {
  if (lane >= threads)
    return "a copy has delivered: this thread has not waited for its mbarrier, nor does a "
           "barrier order one that has before it";
  return Text::format("thread {} has {}: no barrier orders the two", lane, did);
}

Text RaceDetector::race(const char *what, int offset, int other, const char *did) {
  return Text::format("{} [shared_base + {:#x}], which {}", what, offset, deed(other, did));
}

Text RaceDetector::unorderedReader(const char *what, int offset, const Word &word,
                                   const uint32_t *known, bool countPlain, bool countAtomic) {
  for (int32_t i = word.readers; i >= 0; i = pool[i].next) {
    const Reader &reader = pool[i];
    if ((reader.isAtomic ? countAtomic : countPlain) && known[reader.thread] < reader.clock)
      return race(what, offset, reader.thread, reader.isAtomic ? "changed atomically" : "read");
  }
  return {};
}

void RaceDetector::addReader(Word &word, int thread, bool isAtomic) {
  const uint32_t clock = clockOf(thread)[thread];
  for (int32_t i = word.readers; i >= 0; i = pool[i].next)
    if (pool[i].thread == thread && pool[i].isAtomic == isAtomic) {
      pool[i].clock = clock;
      return;
    }
  int32_t index = freeReaders;
  if (index >= 0) {
    freeReaders = pool[index].next;
  } else {
    index = static_cast<int32_t>(pool.size());
    pool.emplace_back();
  }
  pool[index] = {clock, static_cast<int16_t>(thread), isAtomic, word.readers};
  word.readers = index;
}

void RaceDetector::clear(Word &word) {
  while (word.readers >= 0) {
    const int32_t next = pool[word.readers].next;
    pool[word.readers].next = freeReaders;
    freeReaders = word.readers;
    word.readers = next;
  }
  word = {};
}

Text RaceDetector::read(int offset, int bytes, int thread) {
  for (int at = offset; at < offset + bytes; at += 4) {
    Word &word = words[at / 4];
    if (word.writer >= 0 && !isOrdered(word.writer, word.writeClock, thread))
      return race("reads", at, word.writer, "stored");
    if (const Text message = unorderedReader("reads", at, word, known(thread), false, true);
        !message.empty())
      return message;
    addReader(word, thread, false);
  }
  return {};
}

Text RaceDetector::write(int offset, int bytes, int thread) {
  for (int at = offset; at < offset + bytes; at += 4) {
    Word &word = words[at / 4];
    if (word.writer >= 0 && !isOrdered(word.writer, word.writeClock, thread))
      return race("writes", at, word.writer, "stored");
    if (const Text message = unorderedReader("writes", at, word, known(thread), true, true);
        !message.empty())
      return message;
    clear(word);
    word.writer = static_cast<int16_t>(thread);
    word.writeClock = clockOf(thread)[thread];
  }
  return {};
}

void RaceDetector::noteWrite(int offset, int bytes, int thread) {
  for (int at = offset; at < offset + bytes; at += 4) {
    Word &word = words[at / 4];
    word.writer = static_cast<int16_t>(thread);
    word.writeClock = now(thread);
  }
}

void RaceDetector::noteRead(int offset, int bytes, int thread) {
  for (int at = offset; at < offset + bytes; at += 4)
    addReader(words[at / 4], thread, false);
}

Text RaceDetector::update(int offset, int bytes, int thread) {
  for (int at = offset; at < offset + bytes; at += 4) {
    Word &word = words[at / 4];
    if (word.writer >= 0 && !isOrdered(word.writer, word.writeClock, thread))
      return race("changes", at, word.writer, "stored");
    if (const Text message = unorderedReader("changes", at, word, known(thread), true, false);
        !message.empty())
      return message;
    addReader(word, thread, true);
  }
  return {};
}

Text RaceDetector::copy(int offset, int bytes, int thread) {
  return copyOver(offset, bytes, known(thread));
}

Text RaceDetector::copyFrom(int offset, int bytes, const VectorClock &known) {
  VectorClock all = known;
  all.resize(width());
  return copyOver(offset, bytes, all.data());
}

Text RaceDetector::copyOver(int offset, int bytes, const uint32_t *known) {
  for (int at = offset; at < offset + bytes; at += 4) {
    Word &word = words[at / 4];
    if (word.writer < 0 && word.readers < 0)
      continue;
    if (word.writer >= 0 && known[word.writer] < word.writeClock)
      return race("copies over", at, word.writer, "stored");
    if (const Text message = unorderedReader("copies over", at, word, known, true, true);
        !message.empty())
      return message;
    clear(word);
  }
  return {};
}

VectorClock RaceDetector::everything() const {
  VectorClock all(width());
  for (int thread = 0; thread < threads; ++thread)
    all[thread] = now(thread) - 1;
  for (int lane = 0; lane < copyLanes; ++lane)
    all[threads + lane] = deliveries[lane];
  return all;
}

} // namespace moejit::emulated

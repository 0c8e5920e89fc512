// Owns the machine side of fibers: stacks with guard pages and the switch between two of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace moejit::emulated {

/// A suspended flow of control. Not movable while it is in use.
struct FiberContext {
#if defined(__x86_64__)
  void *stackPointer = nullptr;
#else
  ucontext_t machine;
#endif
  void *stackLow = nullptr;
  size_t stackBytes = 0;
};

/// Makes `context` start in `entry` on the given stack at the next switch to it. `entry` must not
/// return.
void prepareFiber(FiberContext &context, void *stackLow, size_t stackBytes, void (*entry)());
/// Leaves the running flow in `from` and goes on with `to`. Both must stay on one OS thread.
void switchFiber(FiberContext &from, FiberContext &to);
/// To be called first thing by a fiber's entry (tells the address sanitizer where it is).
void enterFiber();

/// Stacks of equal size, each above a guard page.
class StackPool {
public:
  StackPool() = default;
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;
  ~StackPool();

  /// Grows to `count` stacks of `bytes` (rounded up to pages). False when the system refuses.
  bool reserve(size_t count, size_t bytes);
  void *stack(size_t index) const { return stacks[index]; }
  size_t stackBytes() const { return bytesEach; }

private:
  struct Mapping {
    void *base;
    size_t bytes;
  };
  std::vector<Mapping> mappings;
  std::vector<void *> stacks;
  size_t bytesEach = 0;
};

} // namespace moejit::emulated

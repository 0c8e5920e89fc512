// The context switch (x86-64 assembly, ucontext elsewhere) and the stack pool.
#include "runtime/emulator/Fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#endif

namespace moejit::emulated {

#if defined(__x86_64__)

// System V ABI: rbx, rbp and r12 to r15 survive a call; everything else is the caller's to save.
asm(R"(
  .text
  .p2align 4
  .globl moejitSwitchStacks
  .hidden moejitSwitchStacks
  .type moejitSwitchStacks, @function
moejitSwitchStacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size moejitSwitchStacks, .-moejitSwitchStacks
)");
extern "C" void moejitSwitchStacks(void **savedStackPointer, void *newStackPointer);

void prepareFiber(FiberContext &context, void *stackLow, size_t stackBytes, void (*entry)()) {
  // An earlier fiber on this stack never returned from its frames: their red zones are still
  // marked.
  ASAN_UNPOISON_MEMORY_REGION(stackLow, stackBytes);
  void **top = reinterpret_cast<void **>(static_cast<char *>(stackLow) + stackBytes);
  // At a function's first instruction rsp is 8 below a multiple of 16: one slot for the return
  // address nobody uses.
  *--top = nullptr;
  *--top = reinterpret_cast<void *>(entry);
  for (int i = 0; i < 6; ++i)
    *--top = nullptr;
  context.stackPointer = top;
  context.stackLow = stackLow;
  context.stackBytes = stackBytes;
}

static void switchMachine(FiberContext &from, FiberContext &to) {
  moejitSwitchStacks(&from.stackPointer, to.stackPointer);
}

#else

void prepareFiber(FiberContext &context, void *stackLow, size_t stackBytes, void (*entry)()) {
  // An earlier fiber on this stack never returned from its frames: their red zones are still
  // marked.
  ASAN_UNPOISON_MEMORY_REGION(stackLow, stackBytes);
  getcontext(&context.machine);
  context.machine.uc_stack.ss_sp = stackLow;
  context.machine.uc_stack.ss_size = stackBytes;
  context.machine.uc_link = nullptr;
  makecontext(&context.machine, entry, 0);
  context.stackLow = stackLow;
  context.stackBytes = stackBytes;
}

static void switchMachine(FiberContext &from, FiberContext &to) {
  swapcontext(&from.machine, &to.machine);
}

#endif

#if defined(__SANITIZE_ADDRESS__)

void switchFiber(FiberContext &from, FiberContext &to) {
  if (!from.stackLow) { // the scheduler runs on its thread's own stack
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &from.stackLow, &from.stackBytes);
    pthread_attr_destroy(&attributes);
  }
  void *fakeStack = nullptr;
  __sanitizer_start_switch_fiber(&fakeStack, to.stackLow, to.stackBytes);
  switchMachine(from, to);
  __sanitizer_finish_switch_fiber(fakeStack, nullptr, nullptr);
}
void enterFiber() { __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr); }

#else

void switchFiber(FiberContext &from, FiberContext &to) { switchMachine(from, to); }
void enterFiber() {}

#endif

StackPool::~StackPool() {
  for (const Mapping &mapping : mappings)
    munmap(mapping.base, mapping.bytes);
}

bool StackPool::reserve(size_t count, size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (stacks.empty())
    bytesEach = (bytes + page - 1) / page * page;
  if (count <= stacks.size())
    return true;
  const size_t added = count - stacks.size();
  const size_t pitch = bytesEach + page;
  void *base = mmap(nullptr, added * pitch, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return false;
  mappings.push_back({base, added * pitch});
  for (size_t i = 0; i < added; ++i) {
    char *low = static_cast<char *>(base) + i * pitch;
    if (mprotect(low, page, PROT_NONE) != 0)
      return false;
    // Staggered starts keep equal frames of different fibers out of one cache set.
    stacks.push_back(low + page);
  }
  return true;
}

} // namespace moejit::emulated

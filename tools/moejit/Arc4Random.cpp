// Keeps the released program off glibc 2.36: LLVM's Support library calls arc4random, which older
// glibc lacks.
#include <cstdint>
#include <cstdlib>
#include <sys/random.h>

/// Random bits from the kernel. LLVM names temporary files with it; nothing here is a secret.
extern "C" uint32_t arc4random() noexcept {
  uint32_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
    std::abort();
  return bits;
}

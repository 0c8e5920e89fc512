// An array of zeros that costs memory only where it is touched: tensors of a launch may be larger
// than what the host has room for notes on each byte of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>

namespace moejit::emulated {

class SparseWords {
public:
  /// `count` words that are 0. Ends the process where there is no address space for them.
  explicit SparseWords(size_t count) : bytes(count * sizeof(uint64_t)) {
    if (bytes == 0)
      return;
    void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
      std::abort();
    words = static_cast<uint64_t *>(mapped);
  }
  SparseWords(SparseWords &&other) noexcept : words(other.words), bytes(other.bytes) {
    other.words = nullptr;
  }
  SparseWords(const SparseWords &) = delete;
  SparseWords &operator=(const SparseWords &) = delete;
  ~SparseWords() {
    if (words)
      munmap(words, bytes);
  }

  uint64_t &operator[](size_t index) { return words[index]; }
  const uint64_t &operator[](size_t index) const { return words[index]; }

private:
  uint64_t *words = nullptr;
  size_t bytes = 0;
};

} // namespace moejit::emulated

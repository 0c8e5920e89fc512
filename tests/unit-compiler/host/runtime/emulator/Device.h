// Owns the least that printed integer arithmetic needs to run on the host: one thread, one kind of store.
#pragma once

#include <cstring>

#define __global__
#define __launch_bounds__(...)
#define MOEJIT_EMULATED_KERNEL(name)

inline void st_global_b32(void *pointer, long long offset, int value) {
  std::memcpy(static_cast<char *>(pointer) + offset, &value, sizeof value);
}

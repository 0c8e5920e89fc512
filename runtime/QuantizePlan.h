// How a kernel that quantizes is scheduled. Internal to runtime/Plan.cpp, which is the way in.
#pragma once

#include "runtime/Plan.h"

namespace moejit {

/// Most row tiles that share a sweep: tiles of a sweep are counted in 32 bits.
inline constexpr int64_t mostRaster = 1024;

/// The plans of a quantization of its own, by rows: few rows are spread over more blocks. Pure.
std::vector<PlannedRange> quantizePlanRanges(const Spec &spec, const Target &target);

/// Refuses plans that a quantization cannot have. Errors: InvalidArgument naming the field.
Result<void> verifyQuantizePlan(const KernelPlan &plan);

} // namespace moejit

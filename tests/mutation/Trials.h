// The launches that must find the faults of a kernel: operands, and the right answer, made once.
#pragma once

#include "tests/mutation/Campaign.h"
#include "tests/oracle/Quantization.h"

namespace moejit::mutation {

/// One launch of a GEMM. Rows that nobody owns hold NaN, and so do their scales. On `smLimit` SMs,
/// or, when that is 0, on all.
Trial gemmTrial(const std::string &name, oracle::HostProblem problem, bool misalignScales = false,
                int64_t smLimit = 0);
/// The launches that reach the edges of `plan`'s tiles, and those that reach what `plan` does once
/// in a while: a sweep over the columns that is not the first, a first tile that comes late.
std::vector<Trial> gemmTrials(const Spec &spec, const KernelPlan &plan);
/// Routing and scales that are wrong, for a checked kernel.
std::vector<Trial> wrongTrials(const Spec &spec);
/// Scales at both ends of the powers of two; products are as large as ever. The scales of x are the
/// small ones, or those of w: the least of all, 2^-127, has some rows (columns) to itself.
enum class Smallest { X, W };
Trial extremeScalesTrial(const Spec &spec, int64_t rows, Smallest smallest);
/// Each group of K has a row and a column in which its scale is NaN: these must be NaN, and no
/// more.
Trial notANumberTrial(const Spec &spec, int64_t rows);
/// Activations of a GEMM that quantizes them in which each of the elements a thread has is the
/// largest of its granule once, once infinite, and once next to a NaN.
std::vector<Trial> sourceTrials(const Spec &spec);
/// Launches of a quantization of its own.
std::vector<Trial> quantizeTrials(const Spec &spec);
/// tests/golden/dense-gemm.cu, whose text is `source`, and its one launch.
Subject denseGemm(const std::string &source);

} // namespace moejit::mutation

// Tiles of 64 rows of one expert by 16 columns, in steps of 32 along K, like the hardware whose
// errors are bounded.
#include "tests/oracle/Oracle.h"

#include "tests/oracle/Fp8.h"
#include "tests/oracle/Random.h"
#include "tests/oracle/ScaleGeometry.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

namespace moejit::oracle {

namespace {

constexpr int64_t tileRows = 64;
constexpr int64_t tileColumns = 16;
constexpr int64_t chunkColumns = 128; ///< columns of one task
constexpr int64_t instructionK = 32;
constexpr int64_t promotionK = 128;

// Clones by processor where the loader can choose; sanitizers start too late for that.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MOEJIT_CLONES __attribute__((target_clones("arch=haswell", "default")))
#else
#define MOEJIT_CLONES
#endif

/// Part of K: at most one instruction's worth, under one scale of x and one of w.
struct Step {
  int64_t begin, end;
  bool endsBlock; ///< the sum is scaled and promoted after it
};

bool isBoundary(int64_t k, int64_t granule, int64_t phase) {
  return granule != 0 && (k + phase) % granule == 0;
}

std::vector<Step> stepsOf(const Spec &spec, const ScaleGeometry &x, const ScaleGeometry &w) {
  int64_t phase = w.k.phase ? w.k.phase : x.k.phase;
  std::vector<Step> steps;
  int64_t begin = 0;
  for (int64_t k = 1; k <= spec.k; ++k) {
    bool endsBlock = k == spec.k || isBoundary(k, x.k.granule, x.k.phase) ||
                     isBoundary(k, w.k.granule, w.k.phase) ||
                     (spec.accumulate == Accumulate::Exact && isBoundary(k, promotionK, phase));
    if (!endsBlock && !isBoundary(k, instructionK, phase))
      continue;
    steps.push_back({begin, k, endsBlock});
    begin = k;
  }
  return steps;
}

/// sum[r][c] += Σ_k x[r][k] · w[k][c] for `rows` rows and tileColumns columns.
MOEJIT_CLONES
void multiply(const double *x, int64_t xStride, const double *w, int64_t length, int64_t rows,
              double *sum) {
  typedef double Vector __attribute__((vector_size(32), aligned(8), may_alias));
  constexpr int64_t vectors = tileColumns / 4;
  for (int64_t r = 0; r < rows; r += 2) {
    const double *x0 = x + r * xStride;
    const double *x1 = r + 1 < rows ? x0 + xStride : x0;
    Vector acc0[vectors] = {}, acc1[vectors] = {};
    for (int64_t k = 0; k < length; ++k) {
      const Vector *wk = reinterpret_cast<const Vector *>(w + k * tileColumns);
#pragma GCC unroll 4
      for (int64_t v = 0; v < vectors; ++v) {
        acc0[v] += x0[k] * wk[v];
        acc1[v] += x1[k] * wk[v];
      }
    }
    Vector *out = reinterpret_cast<Vector *>(sum + r * tileColumns);
#pragma GCC unroll 4
    for (int64_t v = 0; v < vectors; ++v) {
      out[v] += acc0[v];
      if (r + 1 < rows)
        out[vectors + v] += acc1[v];
    }
  }
}

/// Everything the tiles share, and one row tile's decoded x.
struct Reference {
  const HostProblem &problem;
  OracleResult &result;
  ScaleGeometry xGeometry, wGeometry;
  std::vector<Step> steps;
  int64_t blocks = 0;

  Reference(const HostProblem &problem, OracleResult &result)
      : problem(problem), result(result),
        xGeometry(ScaleGeometry::ofX(problem.spec, problem.rows, problem.xScaleStride)),
        wGeometry(ScaleGeometry::ofW(problem.spec)),
        steps(stepsOf(problem.spec, xGeometry, wGeometry)) {
    for (const Step &step : steps)
      blocks += step.endsBlock;
  }

  /// Rows of one tile, as positions in the selection; all of expert `expert`.
  struct Tile {
    int64_t expert;
    std::vector<int64_t> positions;
    int64_t firstColumn, lastColumn; ///< positions in the selection
  };

  void compute(const Tile &tile) const;
  void computeColumns(const Tile &tile, const std::vector<double> &x,
                      const std::vector<double> &xLargest, int64_t first, int64_t last) const;
};

void Reference::compute(const Tile &tile) const {
  int64_t k = problem.spec.k, rows = int64_t(tile.positions.size());
  const auto &table = decodeTable(problem.spec.xType);
  std::vector<double> x(rows * k);
  std::vector<double> xLargest(rows * steps.size());
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t *codes =
        problem.x.data() + result.selection.rows[tile.positions[r]] * problem.xStride;
    for (int64_t i = 0; i < k; ++i)
      x[r * k + i] = table[codes[i]];
    for (size_t s = 0; s < steps.size(); ++s)
      for (int64_t i = steps[s].begin; i < steps[s].end; ++i)
        xLargest[r * steps.size() + s] =
            std::max(xLargest[r * steps.size() + s], std::fabs(x[r * k + i]));
  }
  for (int64_t c = tile.firstColumn; c < tile.lastColumn; c += tileColumns)
    computeColumns(tile, x, xLargest, c, std::min(c + tileColumns, tile.lastColumn));
}

void Reference::computeColumns(const Tile &tile, const std::vector<double> &x,
                               const std::vector<double> &xLargest, int64_t first,
                               int64_t last) const {
  int64_t k = problem.spec.k, n = problem.spec.n;
  int64_t rows = int64_t(tile.positions.size()), columns = last - first;
  const auto &table = decodeTable(problem.spec.wType);
  constexpr int64_t tileSize = tileRows * tileColumns;
  // Of the running block: its sum, that sum before the step, and Σ over steps of the largest term.
  std::vector<double> sum(tileSize), before(tileSize), largest(tileSize);
  // Of the whole row: Σ block·scale, Σ |block·scale|, Σ largest·scale.
  std::vector<double> total(tileSize), magnitude(tileSize), truncated(tileSize);
  std::vector<double> w(instructionK * tileColumns);

  for (size_t s = 0; s < steps.size(); ++s) {
    const Step &step = steps[s];
    double wLargest[tileColumns] = {};
    std::fill(w.begin(), w.end(), 0.0);
    for (int64_t c = 0; c < columns; ++c) {
      const uint8_t *codes =
          problem.w.data() + (tile.expert * n + result.selection.columns[first + c]) * k;
      for (int64_t i = step.begin; i < step.end; ++i) {
        double value = table[codes[i]];
        w[(i - step.begin) * tileColumns + c] = value;
        wLargest[c] = std::max(wLargest[c], std::fabs(value));
      }
    }
    before = sum;
    multiply(x.data() + step.begin, k, w.data(), step.end - step.begin, rows, sum.data());
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < tileColumns; ++c) {
        int64_t i = r * tileColumns + c;
        double product = xLargest[r * steps.size() + s] * wLargest[c];
        largest[i] += std::max({std::fabs(before[i]), std::fabs(sum[i]), product});
      }
    if (!step.endsBlock)
      continue;
    double wScale[tileColumns] = {};
    for (int64_t c = 0; c < columns; ++c)
      wScale[c] = problem.wScales[wGeometry.index(tile.expert, result.selection.columns[first + c],
                                                  step.begin)];
    for (int64_t r = 0; r < rows; ++r) {
      int64_t row = result.selection.rows[tile.positions[r]];
      double xScale = problem.xScales[xGeometry.index(tile.expert, row, step.begin)];
      for (int64_t c = 0; c < columns; ++c) {
        int64_t i = r * tileColumns + c;
        double scale = xScale * wScale[c];
        total[i] += sum[i] * scale;
        magnitude[i] += std::fabs(sum[i] * scale);
        truncated[i] += largest[i] * std::fabs(scale);
      }
    }
    std::fill(sum.begin(), sum.end(), 0.0);
    std::fill(largest.begin(), largest.end(), 0.0);
  }

  // Two roundings for the scales and one for each promoted block (γ_n of Higham).
  double gamma = double(blocks + 2) * fp32Roundoff / (1 - double(blocks + 2) * fp32Roundoff);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      int64_t i = r * tileColumns + c;
      int64_t out = tile.positions[r] * int64_t(result.selection.columns.size()) + first + c;
      double tensorCore = truncatedTerms * truncationUnit * truncated[i];
      result.reference[out] = total[i];
      result.bound[out] = tensorCore + gamma * (magnitude[i] + tensorCore);
    }
}

} // namespace

std::vector<int32_t> rowOwners(const HostProblem &problem) {
  const Spec &spec = problem.spec;
  int64_t rows = problem.rows;
  std::vector<int32_t> owners(rows, -1);
  switch (spec.dispatch) {
  case Dispatch::Eager:
    std::fill(owners.begin(), owners.end(), 0);
    break;
  case Dispatch::Grouped: {
    assert(int64_t(problem.offsets.size()) == spec.numExperts + 1);
    auto clamped = [&](int64_t i) { return std::clamp<int64_t>(problem.offsets[i], 0, rows); };
    int64_t begin = clamped(0);
    for (int64_t e = 0; e < spec.numExperts; ++e) {
      int64_t end = std::max(begin, clamped(e + 1));
      std::fill(owners.begin() + begin, owners.begin() + end, int32_t(e));
      begin = end;
    }
    break;
  }
  case Dispatch::Batched:
    assert(int64_t(problem.expertIds.size()) == rows);
    for (int64_t r = 0; r < rows; ++r) {
      int64_t id = problem.expertIds[r];
      if (spec.expertMapSize != 0)
        id = id >= 0 && id < int64_t(problem.expertMap.size()) ? problem.expertMap[id] : -1;
      owners[r] = id >= 0 && id < spec.numExperts ? int32_t(id) : -1;
    }
    break;
  case Dispatch::Masked:
    assert(rows == spec.numExperts * spec.maxRows);
    for (int64_t r = 0; r < rows; ++r) {
      int64_t expert = r / spec.maxRows;
      if (r % spec.maxRows < std::min<int64_t>(problem.counts[expert], spec.maxRows))
        owners[r] = int32_t(expert);
    }
    break;
  }
  return owners;
}

Selection Selection::all(const HostProblem &problem) {
  Selection selection;
  selection.rows.resize(problem.rows);
  selection.columns.resize(problem.spec.n);
  std::iota(selection.rows.begin(), selection.rows.end(), 0);
  std::iota(selection.columns.begin(), selection.columns.end(), 0);
  return selection;
}

Selection Selection::sampled(const HostProblem &problem, int64_t maxProducts, uint64_t seed) {
  Selection selection = all(problem);
  int64_t n = problem.spec.n;
  int64_t affordable = maxProducts / std::max<int64_t>(1, problem.rows * problem.spec.k);
  int64_t wanted = std::max<int64_t>(16, affordable);
  if (wanted >= n)
    return selection;
  std::set<int64_t> chosen;
  auto choose = [&](int64_t column) {
    if (column >= 0 && column < n && int64_t(chosen.size()) < wanted)
      chosen.insert(column);
  };
  int64_t part = n / std::max<int64_t>(1, problem.spec.wScales.parts);
  for (int64_t column : {int64_t(0), n - 1, part - 1, part})
    choose(column);
  // Half of the rest at tile edges (both sides of random multiples of 64), half anywhere.
  Random random(seed);
  while (int64_t(chosen.size()) < std::min(wanted, 4 + (wanted - 4) / 2)) {
    int64_t edge = 64 * int64_t(random.below(uint64_t(n / 64 + 1)));
    choose(edge - 1);
    choose(edge);
    choose(int64_t(random.below(uint64_t(n))));
  }
  while (int64_t(chosen.size()) < wanted)
    choose(int64_t(random.below(uint64_t(n))));
  selection.columns.assign(chosen.begin(), chosen.end());
  return selection;
}

OracleResult reference(const HostProblem &problem, const Selection &selection, unsigned threads) {
  OracleResult result;
  result.selection = selection;
  result.owners = rowOwners(problem);
  int64_t rows = int64_t(selection.rows.size()), columns = int64_t(selection.columns.size());
  result.reference.assign(rows * columns, 0.0);
  result.bound.assign(rows * columns, 0.0);
  Reference reference(problem, result);

  std::vector<std::vector<int64_t>> byExpert(problem.spec.numExperts);
  for (int64_t i = 0; i < rows; ++i)
    if (int32_t owner = result.owners[selection.rows[i]]; owner >= 0)
      byExpert[owner].push_back(i);
  std::vector<Reference::Tile> tiles;
  for (int64_t e = 0; e < problem.spec.numExperts; ++e)
    for (int64_t r = 0; r < int64_t(byExpert[e].size()); r += tileRows) {
      auto begin = byExpert[e].begin() + r;
      auto end = byExpert[e].begin() + std::min(r + tileRows, int64_t(byExpert[e].size()));
      for (int64_t c = 0; c < columns; c += chunkColumns)
        tiles.push_back({e, {begin, end}, c, std::min(c + chunkColumns, columns)});
    }

  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < tiles.size(); i = next++)
      reference.compute(tiles[i]);
  };
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < std::min<size_t>(threads, tiles.size()); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  return result;
}

OracleResult reference(const HostProblem &problem) {
  return reference(problem, Selection::all(problem));
}

} // namespace moejit::oracle

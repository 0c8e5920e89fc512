// Operands and right answers of launches.
#include "tests/mutation/Trials.h"

#include "tests/emulator/Harness.h"
#include "tests/oracle/Fp8.h"
#include "tests/oracle/ScaleGeometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

namespace moejit::mutation {
namespace {

/// Nobody may look at rows that nobody owns.
void poisonUnowned(oracle::HostProblem &problem) {
  const Spec &spec = problem.spec;
  if (spec.quantizeFrom)
    return; // a scale of the whole tensor is made of all rows
  const std::vector<Granule> &granule = spec.xScales.granule;
  const bool hasOwnScales = granule[granule.size() - 2] == Granule::of(1);
  const auto geometry = oracle::ScaleGeometry::ofX(spec, problem.rows, problem.xScaleStride);
  const std::vector<int32_t> owners = oracle::rowOwners(problem);
  for (int64_t row = 0; row < problem.rows; ++row) {
    if (owners[static_cast<size_t>(row)] >= 0)
      continue;
    const int64_t buffer = spec.dispatch == Dispatch::Masked ? row / spec.maxRows : 0;
    // A NaN in both types of fp8.
    std::memset(problem.x.data() + row * problem.xStride, 0x7f, static_cast<size_t>(spec.k));
    for (int64_t k = 0; hasOwnScales && k < spec.k; k += 16)
      problem.xScales[static_cast<size_t>(geometry.index(buffer, row, k))] = NAN;
  }
}

} // namespace

Trial gemmTrial(const std::string &name, oracle::HostProblem problem, bool misalignScales,
                int64_t smLimit) {
  poisonUnowned(problem);
  auto shared = std::make_shared<const oracle::HostProblem>(std::move(problem));
  auto reference = std::make_shared<const oracle::OracleResult>(oracle::reference(*shared));
  return {
      name, [=](const Artifact &artifact, test::ThreadOrder order) {
        return test::run(artifact, *shared, order, misalignScales, reference.get(), smLimit).wrong;
      }};
}

/// Rows of nobody say so by ids and entries of the map beyond all experts, or below 0.
static Trial strangeIdsTrial(const Spec &spec) {
  std::vector<int64_t> counts = {20, 30, 5};
  while (static_cast<int64_t>(counts.size()) < spec.numExperts)
    counts.push_back(counts.size() % 2);
  const test::LaunchCase some{"ids of no expert", 75, oracle::Routing::fromCounts(counts)};
  oracle::HostProblem problem = test::problemOf(spec, some, 9);
  const int32_t experts = static_cast<int32_t>(spec.numExperts),
                ids = spec.expertMapSize > 0 ? static_cast<int32_t>(spec.expertMapSize) : experts;
  std::vector<int32_t> strange = {ids, ids + 5, INT_MAX, -7, INT_MIN, -1};
  for (size_t id = 0; id < problem.expertMap.size(); ++id)
    if (problem.expertMap[id] < 0) {
      problem.expertMap[id] = id % 2 ? experts : INT_MAX;
      strange.push_back(static_cast<int32_t>(id));
    }
  const std::vector<int32_t> owners = oracle::rowOwners(problem);
  size_t next = 0;
  for (size_t row = 0; row < owners.size(); ++row)
    if (owners[row] < 0)
      problem.expertIds[row] = strange[next++ % strange.size()];
  return gemmTrial(some.name, std::move(problem));
}

std::vector<Trial> gemmTrials(const Spec &spec, const KernelPlan &plan) {
  std::vector<test::LaunchCase> launches = test::edgeCases(spec, plan.tileM);
  // Nothing runs where there is no row.
  std::erase_if(launches, [](const test::LaunchCase &launch) { return launch.rows == 0; });
  const int64_t experts = spec.numExperts;
  if (spec.dispatch == Dispatch::Grouped) {
    // A fragment and a little: 64 rows would hold them but for these.
    launches.push_back({"one row past a fragment", 131, oracle::Routing::fromCounts({65, 0, 66})});
    if (plan.raster > 1)
      launches.push_back({"more row tiles than one sweep has", (plan.raster + 1) * plan.tileM + 1,
                          oracle::Routing::oneExpert(experts / 2)});
    // Blocks whose first tile lies past an offset that falls.
    launches.push_back({"an early offset falls", 70, oracle::Routing::fromOffsets({0, 10, 3, 60})});
    launches.push_back(
        {"the first offset falls", 75, oracle::Routing::fromOffsets({20, 5, 60, 70})});
    // One row fewer before the experts is a tile fewer.
    const int64_t whole = plan.tileM + plan.tailRows;
    test::LaunchCase leading{"a tile and a row before the first expert", whole + 40,
                             oracle::Routing::uniform()};
    leading.options.leadingRows = whole + 1;
    launches.push_back(leading);
  }
  if (const int64_t tail = plan.tailRows; tail > 0 && spec.dispatch == Dispatch::Grouped) {
    const int64_t t = plan.tileM;
    for (std::vector<int64_t> counts : {std::vector<int64_t>{t + tail, t + tail + 1, t + 1},
                                        {2 * t + tail - 1, tail, 2 * t + tail + 1}})
      launches.push_back({"tails, whole and one row past them", 6 * t,
                          oracle::Routing::fromCounts(std::move(counts))});
  }
  if (spec.dispatch == Dispatch::Masked)
    // First tiles of blocks in one buffer after the other.
    for (std::vector<int64_t> counts :
         {std::vector<int64_t>{0, 20, 20}, {0, 0, 40}, {20, 0, 0}, {20, 20, 20}})
      launches.push_back({"few rows a buffer", experts * spec.maxRows,
                          oracle::Routing::fromCounts(std::move(counts))});
  // The second fragment has few rows.
  if (spec.dispatch == Dispatch::Eager && plan.tileM > 64)
    launches.push_back({"one row past a fragment", 65});
  // A block draws more tiles than the ring of drawn tiles has places.
  const bool isFast =
      spec.accumulate == Accumulate::Fast; // wgmma alone reads slots: they are freed in no time
  if ((plan.scheduler == SchedulerKind::Queue || isFast) && spec.dispatch != Dispatch::Masked)
    launches.push_back(
        {"far more tiles than blocks", 8 * plan.tileM + 3,
         spec.dispatch == Dispatch::Eager ? oracle::Routing() : oracle::Routing::oneExpert(0)});
  std::vector<Trial> trials;
  for (const test::LaunchCase &launch : launches)
    trials.push_back(gemmTrial(launch.name, test::problemOf(spec, launch, 100 + trials.size()),
                               launch.misalignScales));
  if (spec.dispatch == Dispatch::Batched) {
    trials.push_back(strangeIdsTrial(spec));
    // Rows of nobody that make tiles of their own, after more tiles than blocks.
    std::vector<int64_t> counts = {3, plan.tileM, 20};
    counts.resize(static_cast<size_t>(experts), 0);
    const int64_t rows = plan.tileM + 23 + plan.tileM + 26;
    trials.push_back(
        gemmTrial("more rows of nobody than a tile has",
                  test::problemOf(spec, {"", rows, oracle::Routing::fromCounts(counts)}, 10)));
  }
  // Several tiles of few rows in one block, so that the ring comes round while there are no others.
  if (spec.dispatch == Dispatch::Eager && plan.tileM > 64)
    trials.push_back(gemmTrial("all tiles in one block",
                               test::problemOf(spec, {"", 60, oracle::Routing()}, 11),
                               /*misalignScales=*/false, /*smLimit=*/1));
  return trials;
}

std::vector<Trial> wrongTrials(const Spec &spec) {
  std::vector<Trial> trials;
  const auto add = [&](const char *name, auto edit) {
    oracle::HostProblem problem =
        oracle::makeProblem(spec, 90, oracle::Routing::fromCounts({40, 0, 30}), 7 + trials.size());
    edit(problem);
    Trial trial = gemmTrial(name, std::move(problem));
    // There is no right value where a scale is not a number.
    trial.run = [run = trial.run](const Artifact &artifact, test::ThreadOrder order) {
      const std::string wrong = run(artifact, order);
      return wrong.compare(0, 6, "WRONG:") == 0
                 ? wrong.substr(std::min(wrong.find("reported '"), wrong.size()))
                 : wrong;
    };
    trials.push_back(std::move(trial));
  };
  // The last is the least number there is, and right.
  for (float value : {NAN, INFINITY, 0.0f, -1.0f, 0x1p-149f}) {
    add("a wrong scale of x", [&](oracle::HostProblem &problem) {
      const auto x = oracle::ScaleGeometry::ofX(spec, problem.rows, problem.xScaleStride);
      problem.xScales[static_cast<size_t>(x.index(2, 69, spec.k - 1))] = value;
    });
    add("a wrong scale of w", [&](oracle::HostProblem &problem) {
      const auto w = oracle::ScaleGeometry::ofW(spec);
      problem.wScales[static_cast<size_t>(w.index(2, spec.n - 1, spec.k - 1))] = value;
    });
  }
  // In the second block of columns of a tile.
  add("a wrong scale of w between others", [&](oracle::HostProblem &problem) {
    const auto w = oracle::ScaleGeometry::ofW(spec);
    problem.wScales[static_cast<size_t>(w.index(0, 200, 0))] = NAN;
  });
  for (std::vector<int32_t> offsets : {std::vector<int32_t>{-1, 40, 40, 91}, {0, 40, 39, 90}})
    trials.push_back(gemmTrial(
        "wrong offsets",
        oracle::makeProblem(spec, 90, oracle::Routing::fromOffsets(std::move(offsets)), 7)));
  return trials;
}

Trial extremeScalesTrial(const Spec &spec, int64_t rows, Smallest smallest) {
  oracle::HostProblem problem = oracle::makeProblem(spec, rows, oracle::Routing::uniform(), 5);
  std::vector<float> &small = smallest == Smallest::X ? problem.xScales : problem.wScales,
                     &large = smallest == Smallest::X ? problem.wScales : problem.xScales;
  // The least becomes 2^-127, and the others grow as these shrink.
  int least = 127;
  for (float scale : small)
    if (std::isfinite(scale)) // others belong to nobody
      least = std::min(least, std::ilogb(scale));
  for (float &scale : small)
    scale = std::ldexp(scale, -127 - least);
  for (float &scale : large)
    scale = std::min(std::ldexp(scale, 127 + least), std::ldexp(1.0f, 127));
  // In rows of both halves of a fragment and of a tile, and in columns even and odd.
  const auto x = oracle::ScaleGeometry::ofX(spec, rows, problem.xScaleStride);
  const auto w = oracle::ScaleGeometry::ofW(spec);
  for (int64_t at :
       smallest == Smallest::X ? std::vector<int64_t>{1, 9, 65, 73} : std::vector<int64_t>{2, 3})
    for (int64_t k = 0; k < spec.k && (smallest == Smallest::W || at < rows); k += 16)
      small[static_cast<size_t>(smallest == Smallest::X ? x.index(0, at, k) : w.index(0, at, k))] =
          std::ldexp(1.0f, -127);
  return gemmTrial("scales at both ends", std::move(problem));
}

Trial notANumberTrial(const Spec &spec, int64_t rows) {
  const int64_t granule = spec.xScales.granule.back().extent,
                groups = (spec.k + granule - 1) / granule;
  const auto rowOf = [](int64_t group) { return 1 + group; };
  const auto columnOf = [](int64_t group) { return 2 + 2 * group + group / 4 % 2; };
  std::set<int64_t> badRows, badColumns;
  auto problem = std::make_shared<oracle::HostProblem>(
      oracle::makeProblem(spec, rows, oracle::Routing::uniform(), 5));
  const auto x = oracle::ScaleGeometry::ofX(spec, rows, problem->xScaleStride);
  const auto w = oracle::ScaleGeometry::ofW(spec);
  for (int64_t group = 0; group < groups; ++group) {
    // Rows of both halves of a tile, columns even and odd.
    for (int64_t row : {rowOf(group), 64 + rowOf(group)})
      if (row < rows) {
        problem->xScales[static_cast<size_t>(x.index(0, row, group * granule))] = NAN;
        badRows.insert(row);
      }
    problem->wScales[static_cast<size_t>(w.index(0, columnOf(group), group * granule))] = NAN;
    badColumns.insert(columnOf(group));
  }
  auto reference = std::make_shared<const oracle::OracleResult>(oracle::reference(*problem));
  return {"scales that are no numbers", [=](const Artifact &artifact, test::ThreadOrder order) {
            test::LaunchResult result =
                test::run(artifact, *problem, order, false, reference.get());
            if (!result.wrong.empty() && result.wrong.compare(0, 6, "WRONG:") != 0)
              return result.wrong;
            int wrong = 0;
            for (int64_t row = 0; row < rows; ++row)
              for (int64_t column = 0; column < spec.n; ++column) {
                uint16_t bits; // of a bf16
                std::memcpy(&bits,
                            static_cast<const uint8_t *>(result.output.data()) +
                                2 * (row * problem->yStride + column),
                            2);
                wrong += ((bits & 0x7fff) > 0x7f80) !=
                         (badRows.count(row) > 0 || badColumns.count(column) > 0);
              }
            return wrong ? fmt::format("{} elements, relative error", wrong) : std::string();
          }};
}

namespace {

/// Where the k-th of the eight elements a thread has at once lies in a row of `k`: in lanes of both
/// halves of a warp, in the first of its second vector, and in the last of K.
int64_t placeOf(int64_t element, int64_t k) {
  const int64_t vectors = k / 8, second = 256 / 8;
  const int64_t vector = element == 7                       ? vectors - 1
                         : element == 4 && second < vectors ? second
                                                            : (element * 11 + 3) % vectors;
  return 8 * vector + element;
}

struct Special {
  int64_t row, at;
  double value;
};

/// Writes `specials` into the source of `problem` and makes codes and scales anew. Rows are counted
/// among those that experts own; those with a NaN are returned.
std::set<int64_t> writeSpecials(oracle::HostProblem &problem,
                                const std::vector<Special> &specials) {
  const Spec &spec = problem.spec;
  const std::vector<int32_t> owners = oracle::rowOwners(problem);
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < problem.rows; ++row)
    if (owners[static_cast<size_t>(row)] >= 0)
      rows.push_back(row);
  std::set<int64_t> withNan;
  for (const Special &special : specials) {
    const int64_t row = rows[static_cast<size_t>(special.row)];
    oracle::writeElement(*spec.quantizeFrom, problem.xSource.data(),
                         row * problem.xSourceStride + special.at, special.value);
    if (std::isnan(special.value))
      withNan.insert(row);
  }
  const bool isPerTensor = spec.xScales.isPerTensor();
  const int64_t granule = spec.xScales.kGranule() ? spec.xScales.kGranule() : spec.k;
  const auto geometry = oracle::ScaleGeometry::ofX(spec, problem.rows, problem.xScaleStride);
  std::vector<float> all;
  const auto valuesOf = [&](int64_t row, int64_t from, int64_t to) {
    std::vector<float> values;
    for (int64_t k = from; k < to; ++k)
      values.push_back(static_cast<float>(oracle::readElement(
          *spec.quantizeFrom, problem.xSource.data(), row * problem.xSourceStride + k)));
    return values;
  };
  for (int64_t row : rows)
    for (float value : valuesOf(row, 0, isPerTensor ? spec.k : 0))
      all.push_back(value);
  for (int64_t row : rows)
    for (int64_t k = 0; k < spec.k; k += granule) {
      const std::vector<float> values = valuesOf(row, k, std::min(k + granule, spec.k));
      const float scale = oracle::quantizationScale(isPerTensor ? all : values, spec.xType);
      problem
          .xScales[static_cast<size_t>(geometry.index(owners[static_cast<size_t>(row)], row, k))] =
          scale;
      for (size_t i = 0; i < values.size(); ++i)
        problem.x[static_cast<size_t>(row * problem.xStride + k) + i] =
            oracle::quantize(values[i], scale, spec.xType);
    }
  return withNan;
}

Trial sourceTrial(const Spec &spec, std::string name, int64_t rows,
                  const std::vector<Special> &specials) {
  auto problem = std::make_shared<oracle::HostProblem>(
      oracle::makeProblem(spec, rows, oracle::Routing::uniform(), 61));
  const std::set<int64_t> nanRows = writeSpecials(*problem, specials);
  // Results of the largest finite number are finite yet.
  for (float &scale : problem->wScales)
    scale = std::ldexp(scale, -100);
  // A row with a NaN is compared apart.
  auto finite = std::make_shared<oracle::HostProblem>(*problem);
  for (int64_t row : nanRows)
    std::memset(finite->x.data() + row * finite->xStride, 0, static_cast<size_t>(spec.k));
  auto reference = std::make_shared<const oracle::OracleResult>(oracle::reference(*finite));
  return {std::move(name), [=](const Artifact &artifact, test::ThreadOrder order) -> std::string {
            test::LaunchResult result =
                test::run(artifact, *problem, order, false, reference.get());
            if (!result.wrong.empty() && result.wrong.compare(0, 6, "WRONG:") != 0)
              return result.wrong;
            for (int64_t row : nanRows)
              for (int64_t column = 0; column < spec.n; ++column) {
                const int64_t at = row * problem->yStride + column;
                if (!std::isnan(oracle::readElement(spec.outType, result.output.data(), at)))
                  return fmt::format("row {} is no NaN: relative error", row);
                oracle::writeElement(spec.outType, result.output.data(), at, 0);
              }
            const oracle::Comparison comparison =
                oracle::compare(*finite, *reference, result.output);
            return comparison.ok() ? "" : comparison.text();
          }};
}

} // namespace

std::vector<Trial> sourceTrials(const Spec &spec) {
  std::vector<Trial> trials;
  const double largest = *spec.quantizeFrom == ElementType::F16 ? -0x1p15 : -0x1p30;
  if (spec.xScales.isPerTensor()) {
    for (int64_t element = 0; element < 8; ++element)
      for (double value : {largest, HUGE_VAL})
        trials.push_back(sourceTrial(spec, fmt::format("element {} is {}", element, value), 12,
                                     {{element, placeOf(element, spec.k), value},
                                      {element + 1, placeOf(element, spec.k), NAN}}));
    // Boxes of four rows, of which the third has the largest: a warp past the first four finds it.
    trials.push_back(
        sourceTrial(spec, "another warp has the largest", 100, {{2, placeOf(0, spec.k), largest}}));
    // The box that is drawn last has it: a scale read before that box is done is another. Which
    // block is done first is left to chance, so there are several.
    for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 33, 100})
      trials.push_back(sourceTrial(spec, fmt::format("the last of {} rows has the largest", rows),
                                   rows, {{rows - 1, placeOf(0, spec.k), largest}}));
    return trials;
  }
  std::vector<Special> specials;
  for (int64_t element = 0; element < 8; ++element) {
    const int64_t at = placeOf(element, spec.k);
    specials.push_back({element, at, HUGE_VAL});
    specials.push_back({8 + element, at, largest});
    specials.push_back({16 + element, at, NAN});
  }
  trials.push_back(sourceTrial(spec, "infinities, numbers as large, and NaN", 40, specials));
  return trials;
}

std::vector<Trial> quantizeTrials(const Spec &spec) {
  std::vector<Trial> trials;
  const auto add = [&](std::string name, oracle::QuantizeProblem made) {
    auto problem = std::make_shared<const oracle::QuantizeProblem>(std::move(made));
    trials.push_back({std::move(name), [=](const Artifact &artifact, test::ThreadOrder order) {
                        return test::runQuantization(artifact, *problem, order);
                      }});
  };
  oracle::QuantizeOptions padded, plain;
  padded.xPadElements = 40;
  padded.yPadElements = 24;
  padded.scalePadWords = 5;
  plain.hasSpecialValues = false;
  for (auto &[rows, options] :
       {std::pair{1, padded}, {6, padded}, {75, oracle::QuantizeOptions()}, {3, plain}})
    add(fmt::format("{} rows", rows),
        oracle::makeQuantizeProblem(spec, rows, 12 + trials.size(), options));
  if (spec.xScales.granule.front() != Granule::whole()) {
    // Each of the elements a thread has is the largest of its granule once, once infinite, and once
    // a NaN next to one that is.
    oracle::QuantizeProblem problem =
        oracle::makeQuantizeProblem(spec, 24, 30 + trials.size(), plain);
    for (int64_t element = 0; element < 8; ++element) {
      const int64_t at = placeOf(element, spec.k), beside = at ^ 1;
      const auto write = [&](int64_t row, int64_t place, double value) {
        oracle::writeElement(*spec.quantizeFrom, problem.x.data(), row * problem.xStride + place,
                             value);
      };
      write(element, at, HUGE_VAL);
      write(8 + element, at, -0x1p15);
      write(16 + element, at, NAN);
      write(16 + element, beside, HUGE_VAL);
    }
    add("each element in turn", std::move(problem));
    return trials;
  }
  // One scale for all: of nothing but zeros it is the least there is.
  {
    oracle::QuantizeProblem zeros = oracle::makeQuantizeProblem(spec, 5, 39, plain);
    std::fill(zeros.x.begin(), zeros.x.end(), uint8_t(0));
    add("zeros", std::move(zeros));
  }
  // The last box that is drawn has the largest: a scale read before that box is done is another.
  // Which block is done first is left to chance, so there are several, most of one box for all but
  // one of the four blocks.
  for (int64_t rows : {1, 5, 9, 10, 11, 12, 12, 12, 12, 29, 33}) {
    oracle::QuantizeProblem problem =
        oracle::makeQuantizeProblem(spec, rows, 60 + trials.size(), plain);
    oracle::writeElement(*spec.quantizeFrom, problem.x.data(),
                         (rows - 1) * problem.xStride + placeOf(0, spec.k), -0x1p15);
    add(fmt::format("the last of {} rows has the largest", rows), std::move(problem));
  }
  // Each of the elements a thread has is the largest once, once infinite, in one
  // row after the other.
  for (int64_t element = 0; element < 8; ++element)
    for (double largest : {-0x1p15, HUGE_VAL}) {
      const int64_t rows = 9, row = element;
      oracle::QuantizeProblem problem =
          oracle::makeQuantizeProblem(spec, rows, 40 + trials.size(), plain);
      const int64_t at = placeOf(element, spec.k);
      oracle::writeElement(*spec.quantizeFrom, problem.x.data(), row * problem.xStride + at,
                           largest);
      // Elsewhere: next to a NaN all are looked at one by one.
      oracle::writeElement(*spec.quantizeFrom, problem.x.data(), (row + 1) * problem.xStride + at,
                           NAN);
      add(fmt::format("element {} is {}", element, largest), std::move(problem));
    }
  return trials;
}

Subject denseGemm(const std::string &source) {
  constexpr int m = 128, n = 128, k = 7168;
  Subject subject;
  subject.name = "golden.dense-gemm";
  subject.artifact.source = source;
  subject.artifact.launch.entry = "moejit_kernel";
  subject.artifact.launch.sharedBytes = 131136;
  struct Operands {
    test::Buffer x{"x", m * k, false}, w{"w", n * k, false};
    std::vector<float> expected = std::vector<float>(m * n);
  };
  auto operands = std::make_shared<Operands>();
  // Small integers: every sum is exact, whatever the order.
  constexpr uint8_t codes[] = {0x00, 0x38, 0x40, 0xb8, 0xc0}; // 0, 1, 2, -1, -2 in e4m3
  std::mt19937 random(7);
  for (int i = 0; i < m * k; ++i) {
    operands->x.data()[i] = codes[random() % 5];
    operands->w.data()[i] = codes[random() % 5];
  }
  const auto &values = oracle::decodeTable(ElementType::F8E4M3FN);
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int i = 0; i < k; ++i)
        sum += values[operands->x.data()[row * k + i]] * values[operands->w.data()[column * k + i]];
      operands->expected[static_cast<size_t>(row * n + column)] = sum;
    }
  subject.trials.push_back(
      {"one tile", [=](const Artifact &artifact, test::ThreadOrder order) {
         test::Buffer y("y", m * n * 2, true);
         test::TestLaunch launch(1, 384, static_cast<int64_t>(artifact.launch.sharedBytes));
         launch
             .map(test::mapOf(operands->x, ElementType::F8E4M3FN, {k, m}, {k}, {128, 128},
                              Swizzle::B128))
             .map(test::mapOf(operands->w, ElementType::F8E4M3FN, {k, n}, {k}, {128, 128},
                              Swizzle::B128))
             .pointer(y)
             .integer(n * 2) // in a zeroed slot, so it reads as i64 too
             .range(operands->x)
             .range(operands->w)
             .storesOnce(true);
         if (Result<EmulatorReport> report = launch.run(artifact.source, test::emulator(order));
             !report)
           return report.error().text();
         int wrong = 0;
         for (int i = 0; i < m * n; ++i) {
           const uint32_t bits = static_cast<uint32_t>(y.as<uint16_t>()[i]) << 16;
           float value;
           std::memcpy(&value, &bits, 4);
           const float expected = operands->expected[static_cast<size_t>(i)];
           wrong += !(std::fabs(value - expected) <= std::fabs(expected) / 256);
         }
         return wrong ? fmt::format("{} elements, relative error", wrong) : std::string();
       }});
  return subject;
}

} // namespace moejit::mutation

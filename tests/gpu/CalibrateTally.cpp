// Compares arrays of small floats bit by bit; prints tables.
#include "tests/gpu/CalibrateTally.h"

#include "tests/oracle/Fp8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace moejit::gpu {

namespace {

uint32_t bitsAt(const uint8_t *data, int64_t index, int64_t bytes) {
  uint32_t bits = 0;
  std::memcpy(&bits, data + index * bytes, size_t(bytes));
  return bits;
}

float valueOf(ElementType type, uint32_t bits) {
  if (oracle::isFp8(type))
    return oracle::decodeTable(type)[bits];
  return float(oracle::readElement(type, &bits, 0));
}

/// Neighbours of a type get neighbouring numbers, across zero too.
int64_t orderOf(uint32_t bits, int64_t bytes) {
  const int64_t sign = int64_t(1) << (8 * bytes - 1);
  const int64_t magnitude = int64_t(bits) & (sign - 1);
  return int64_t(bits) & sign ? -magnitude : magnitude;
}

std::string percent(int64_t part, int64_t whole) {
  if (whole == 0)
    return "–";
  if (part == whole)
    return "100 %";
  // Never rounded up to all.
  double share = 100.0 * double(part) / double(whole);
  return fmt::format("{:.4f} %", std::min(share, 99.9999));
}

} // namespace

void Tally::add(const Tally &other) {
  launches += other.launches;
  elements += other.elements;
  equal += other.equal;
  nanBits += other.nanBits;
  worstRatio = std::max(worstRatio, other.worstRatio);
  worstUlps = std::max(worstUlps, other.worstUlps);
  modelElements += other.modelElements;
  modelEqual += other.modelEqual;
  failures += other.failures;
  if (first.empty())
    first = other.first;
}

void Tallies::add(Section section, const std::string &family, const Tally &tally) {
  const std::lock_guard lock(mutex);
  sums[{section, family}].add(tally);
}

std::map<std::pair<Section, std::string>, Tally> Tallies::all() const {
  const std::lock_guard lock(mutex);
  return sums;
}

std::vector<std::string> Tallies::failures() const {
  std::vector<std::string> names;
  for (const auto &[key, tally] : all()) {
    const bool isWithin = key.first == Section::Random
                              ? tally.worstRatio <= 2 && tally.failures == 0
                              : tally.isEqual();
    if (!isWithin)
      names.push_back(fmt::format("{}{}: {}", key.second,
                                  key.first == Section::Exact    ? ", exact sums"
                                  : key.first == Section::Random ? ", random sums"
                                                                 : "",
                                  tally.first));
  }
  return names;
}

void compareElements(const Elements &elements, const double *bounds, const std::string &place,
                     Tally &tally) {
  const ElementType type = elements.type;
  const int64_t bytes = oracle::bytesOf(type);
  tally.elements += elements.count;
  for (int64_t i = 0; i < elements.count; ++i) {
    const uint32_t gpu = bitsAt(elements.gpu, i, bytes), here = bitsAt(elements.emulator, i, bytes);
    if (gpu == here) {
      ++tally.equal;
      continue;
    }
    const float gpuValue = valueOf(type, gpu), value = valueOf(type, here);
    if (std::isnan(gpuValue) && std::isnan(value)) {
      ++tally.equal;
      ++tally.nanBits;
      continue;
    }
    tally.worstUlps =
        std::max(tally.worstUlps, std::abs(orderOf(gpu, bytes) - orderOf(here, bytes)));
    if (bounds) {
      const double difference = std::fabs(double(gpuValue) - double(value));
      tally.worstRatio = std::max(tally.worstRatio, std::isfinite(difference) && bounds[i] > 0
                                                        ? difference / bounds[i]
                                                        : std::numeric_limits<double>::infinity());
    }
    if (tally.first.empty())
      tally.first = fmt::format("element {} of {}: {:#x} ({:g}) on the GPU, {:#x} ({:g}) here", i,
                                place, gpu, gpuValue, here, value);
  }
}

void compareBytes(const uint8_t *gpu, const uint8_t *emulator, int64_t count,
                  const std::string &place, Tally &tally) {
  tally.elements += count;
  for (int64_t i = 0; i < count; ++i)
    if (gpu[i] == emulator[i])
      ++tally.equal;
    else if (tally.first.empty())
      tally.first =
          fmt::format("byte {} of {}: {:#x} on the GPU, {:#x} here", i, place, gpu[i], emulator[i]);
}

std::string calibrationPage(const std::map<std::pair<Section, std::string>, Tally> &tallies,
                            const PageParts &parts) {
  std::string page = fmt::format("# The emulator beside the GPU\n\n{}\n", parts.where);
  if (!parts.notRun.empty())
    page += fmt::format("\nNot run: {}.\n", parts.notRun);
  auto sumOf = [&](Section section) {
    Tally sum;
    for (const auto &[key, tally] : tallies)
      if (key.first == section)
        sum.add(tally);
    return sum;
  };
  const Tally specified = sumOf(Section::Specified), exact = sumOf(Section::Exact),
              random = sumOf(Section::Random);
  page += fmt::format("\n| what | launches | elements | equal bit for bit |\n|---|---|---|---|\n"
                      "| arithmetic that is specified | {} | {} | {} |\n"
                      "| GEMMs whose sums are exact | {} | {} | {} |\n"
                      "| GEMMs on random codes | {} | {} | {} |\n",
                      specified.launches, specified.elements,
                      percent(specified.equal, specified.elements), exact.launches, exact.elements,
                      percent(exact.equal, exact.elements), random.launches, random.elements,
                      percent(random.equal, random.elements));

  page +=
      "\n## Specified to the last bit\n\nTwo NaNs are equal; how many of them differ in sign or "
      "payload stands in the last column.\n\n"
      "| family | launches | elements | compared | equal | NaNs of other bits |\n"
      "|---|---|---|---|---|---|\n";
  for (const auto &[key, tally] : tallies)
    if (key.first == Section::Specified)
      page += fmt::format("| {} | {} | {} | bit for bit | {} | {} |\n", key.second, tally.launches,
                          tally.elements, percent(tally.equal, tally.elements), tally.nanBits);

  page += "\n## GEMMs\n\nExact: codes of which every sum fits into what the tensor cores keep, "
          "compared bit for bit. Random: the codes of the tests; worst differences between GPU and "
          "emulator in units of the bound of docs/numerics.md and of the output type's last place; "
          "model: the share of random elements for which the GPU has the bits of the model of "
          "13 fraction bits, where that model says what every bit is.\n\n"
          "| family | exact: launches | elements | equal | random: launches | elements | equal | "
          "worst / bound | ulps | model |\n|---|---|---|---|---|---|---|---|---|---|\n";
  std::map<std::string, std::pair<Tally, Tally>> rows;
  for (const auto &[key, tally] : tallies) {
    if (key.first == Section::Exact)
      rows[key.second].first = tally;
    if (key.first == Section::Random)
      rows[key.second].second = tally;
  }
  for (const auto &[family, pair] : rows) {
    const auto &[sure, drawn] = pair;
    page += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", family,
                        sure.launches, sure.elements, percent(sure.equal, sure.elements),
                        drawn.launches, drawn.elements, percent(drawn.equal, drawn.elements),
                        drawn.elements ? fmt::format("{:.3f}", drawn.worstRatio) : "–",
                        drawn.worstUlps, percent(drawn.modelEqual, drawn.modelElements));
  }
  if (!parts.probes.empty()) {
    page += "\n## How the tensor cores add\n\nA large product and small ones of 2^-j of it. "
            "\"exact to\": the largest j up to which the sum is exact; \"noticed to\": up to which "
            "the small ones change it at all (j goes to 17).\n\n"
            "| terms | GPU: exact to | noticed to | emulator: exact to | noticed to | model: exact "
            "to | noticed to | the GPU's first inexact sum |\n|---|---|---|---|---|---|---|---|\n";
    for (const ProbeRow &row : parts.probes)
      page += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", row.name, row.exactTo[0],
                          row.noticedTo[0], row.exactTo[1], row.noticedTo[1], row.exactTo[2],
                          row.noticedTo[2], row.lostSum);
  }
  if (!parts.sums.empty()) {
    page +=
        "\n## Which model has the GPU's bits\n\nRaw sums of 32 to 128 products of random codes, "
        "beside models of the addition; the best of them, and last that of docs/numerics.md.\n\n"
        "| model | sums of one instruction | equal | of one to four | equal |\n"
        "|---|---|---|---|---|\n";
    std::vector<SumScore> shown(parts.sums.begin(),
                                parts.sums.begin() + long(std::min<size_t>(8, parts.sums.size())));
    const std::string documented = SumModel().text();
    for (const SumScore &score : parts.sums)
      if (score.model.text() == documented)
        shown.push_back(score);
    for (const SumScore &score : shown)
      page += fmt::format("| {} | {} | {} | {} | {} |\n", score.model.text(), score.compared,
                          percent(score.equal, score.compared), score.comparedAll,
                          percent(score.equalAll, score.comparedAll));
  }
  std::string differences;
  for (const auto &[key, tally] : tallies)
    if (!tally.first.empty() && (key.first != Section::Random || tally.failures > 0))
      differences += fmt::format("* {}: {}\n", key.second, tally.first);
  page += "\n## Differences where there must be none\n\n" +
          (differences.empty() ? std::string("None.\n") : differences);
  return page;
}

} // namespace moejit::gpu

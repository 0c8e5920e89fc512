// Checks the tensors of one launch and computes its grid, tensor maps and parameters.
#include "runtime/Arguments.h"

#include "runtime/Checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <utility>

namespace moejit {
namespace {

Error refusal(std::string message, std::string note) {
  return {ErrorCode::InvalidArgument, std::move(message), {std::move(note)}};
}

int64_t ceilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0); }
int64_t roundUp(int64_t a, int64_t b) { return ceilDivide(a, b) * b; }

/// Extents of a tensor; a launch allocates nothing to know them.
struct Extents {
  std::array<int64_t, 3> of = {};
  size_t rank = 0;

  Extents(std::initializer_list<int64_t> extents) : rank(extents.size()) {
    std::copy(extents.begin(), extents.end(), of.begin());
  }
  std::span<int64_t> span() { return {of.data(), rank}; }
};

/// xShape and wShape of runtime/Spec.h, in a launch of `rows` rows.
Extents xExtents(const Spec &spec, int64_t rows) {
  if (spec.dispatch == Dispatch::Masked)
    return {spec.numExperts, spec.maxRows, spec.k};
  return {rows, spec.k};
}
Extents wExtents(const Spec &spec) {
  if (spec.dispatch == Dispatch::Eager)
    return {spec.n, spec.k};
  return {spec.numExperts, spec.n, spec.k};
}

/// Scales of data with extents `data`, in storage order; leading dimensions fold into stored rows.
OperandLayout scaleLayout(const ScaleLayout &scales, Extents data, int64_t numExperts) {
  OperandLayout layout;
  layout.elementBytes = elementBytes(scales.storedType());
  layout.alignBytes = layout.elementBytes;
  layout.strideAlignBytes = std::max(scales.alignBytes, layout.elementBytes);
  const std::span<int64_t> shape = data.span();
  if (!makeScaleShape(scales, shape, numExperts))
    return layout;
  layout.columns = shape.back();
  layout.packedStride = layout.columns;
  if (scales.alignBytes > 0)
    layout.packedStride =
        roundUp(layout.columns * layout.elementBytes, scales.alignBytes) / layout.elementBytes;
  layout.rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    layout.rows *= shape[i];
  return layout;
}

OperandLayout matrixLayout(int64_t rows, int64_t columns, int64_t elementBytes) {
  return {rows, columns, columns, elementBytes, 16, 16};
}

OperandLayout vectorLayout(int64_t columns) {
  return {columns > 0 ? 1 : 0, columns, columns, 4, 4, 4};
}

/// Whether the kernel is told the row stride of `operand`; if not, it was built for the packed one.
bool takesStride(const LaunchData &launch, Operand operand) {
  for (const KernelParameter &parameter : launch.parameters)
    if (parameter.kind == KernelParameter::Kind::Stride && parameter.operand == operand)
      return true;
  for (const TensorMapRecipe &recipe : launch.tensorMaps)
    for (const LaunchValue &value : recipe.strideBytes)
      if (value.kind == LaunchValue::Kind::StrideBytes && value.operand == operand)
        return true;
  return false;
}

bool reads(const LaunchData &launch, Operand operand) {
  for (const KernelParameter &parameter : launch.parameters)
    if (parameter.kind == KernelParameter::Kind::Pointer && parameter.operand == operand)
      return true;
  for (const TensorMapRecipe &recipe : launch.tensorMaps)
    if (recipe.operand == operand)
      return true;
  return false;
}

/// The memory of an operand: [begin, begin + bytes), rows of `rowBytes` every `strideBytes`.
struct Footprint {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t rowBytes = 0;
  uint64_t strideBytes = 0;
};

bool overlap(const Footprint &a, const Footprint &b) {
  if (!a.bytes || !b.bytes || a.begin >= b.begin + b.bytes || b.begin >= a.begin + a.bytes)
    return false;
  // Views of one buffer that interleave row by row (columns of a wider matrix) do not touch.
  if (a.strideBytes != b.strideBytes || !a.strideBytes)
    return true;
  uint64_t ahead = (b.begin - a.begin) % a.strideBytes;
  if (a.begin > b.begin)
    ahead = (a.strideBytes - (a.begin - b.begin) % a.strideBytes) % a.strideBytes;
  return ahead < a.rowBytes || ahead + b.rowBytes > a.strideBytes;
}

/// Checks one operand alone and gives its memory; the message says what is wrong with it.
Result<Footprint> checkOperand(const Spec &spec, const LaunchData &launch,
                               const GemmArguments &arguments, Operand operand) {
  const char *name = operandName(operand);
  TensorArgument tensor = tensorOf(arguments, operand);
  OperandLayout layout = operandLayout(spec, operand, arguments.rows);
  auto address = reinterpret_cast<uint64_t>(tensor.data);
  if (!tensor.data)
    return refusal(fmt::format("{}: the pointer is null with {} rows", name, arguments.rows),
                   "null pointers are for launches of 0 rows");
  if (address % layout.alignBytes)
    return refusal(
        fmt::format("{}: address {:#x} is not a multiple of {}", name, address, layout.alignBytes),
        fmt::format("it must be aligned to {} bytes", layout.alignBytes));
  if (tensor.rowStride < 0)
    return refusal(fmt::format("{}: row stride {} is negative", name, tensor.rowStride),
                   "0 means packed");
  const int64_t stride = rowStrideElements(tensor, layout);
  if (layout.rows > 1) {
    if (stride < layout.columns)
      return refusal(fmt::format("{}: row stride {} is less than the {} elements of a row", name,
                                 stride, layout.columns),
                     fmt::format("the least row stride is {}", layout.packedStride));
    if (stride != layout.packedStride && !takesStride(launch, operand))
      return refusal(
          fmt::format("{}: row stride {}, but this kernel takes packed rows", name, stride),
          fmt::format("the row stride must be {} (or 0)", layout.packedStride));
  }
  Footprint footprint;
  int64_t strideBytes = 0, spanBytes = 0;
  if (__builtin_mul_overflow(stride, layout.elementBytes, &strideBytes) ||
      __builtin_mul_overflow(std::max<int64_t>(layout.rows - 1, 0), strideBytes, &spanBytes) ||
      __builtin_add_overflow(spanBytes, layout.columns * layout.elementBytes, &spanBytes) ||
      address + uint64_t(spanBytes) < address)
    return refusal(fmt::format("{}: row stride {} leaves the address space", name, stride),
                   fmt::format("it has {} rows", layout.rows));
  if (takesStride(launch, operand) && strideBytes % layout.strideAlignBytes)
    return refusal(
        fmt::format("{}: row stride of {} bytes is not a multiple of {}", name, strideBytes,
                    layout.strideAlignBytes),
        fmt::format("the next legal row stride is {} elements",
                    roundUp(strideBytes, layout.strideAlignBytes) / layout.elementBytes));
  footprint.begin = address;
  footprint.bytes = layout.rows > 0 ? uint64_t(spanBytes) : 0;
  footprint.rowBytes = uint64_t(layout.columns * layout.elementBytes);
  footprint.strideBytes = layout.rows > 1 ? uint64_t(strideBytes) : 0;
  return footprint;
}

Result<void> checkLaunchData(const LaunchData &launch) {
  const GridRule &grid = launch.grid;
  // Of such numbers the tiles of any number of rows are counted in 64 bits.
  auto isCount = [](int64_t value) { return value > 0 && value <= 1 << 30; };
  bool gridIsSound = isCount(grid.tileM) && isCount(grid.tileN) && isCount(grid.n) &&
                     isCount(grid.numExperts) && grid.blocksPerSm > 0 && grid.blocksPerSm <= 32;
  if (!gridIsSound || launch.threads < 32 || launch.threads > 1024 || launch.cluster < 1 ||
      launch.cluster > 16)
    return Error{ErrorCode::ParseError,
                 fmt::format("launch data cannot be launched: tile {}x{}, n {}, {} experts, {} "
                             "blocks an SM, {} threads, cluster {}",
                             grid.tileM, grid.tileN, grid.n, grid.numExperts, grid.blocksPerSm,
                             launch.threads, launch.cluster),
                 {}};
  if (launch.tensorMaps.size() > maxTensorMaps || launch.parameters.size() > maxKernelParameters)
    return Error{ErrorCode::ParseError,
                 fmt::format("launch data cannot be launched: {} tensor maps and {} parameters, at "
                             "most {} and {}",
                             launch.tensorMaps.size(), launch.parameters.size(), maxTensorMaps,
                             maxKernelParameters),
                 {}};
  for (const KernelParameter &parameter : launch.parameters)
    if (parameter.kind == KernelParameter::Kind::TensorMap &&
        parameter.recipe >= launch.tensorMaps.size())
      return Error{ErrorCode::ParseError,
                   fmt::format("a parameter names tensor map {} of {}", parameter.recipe,
                               launch.tensorMaps.size()),
                   {}};
  for (Operand operand :
       {Operand::Workspace, Operand::Counters, Operand::XQuantized, Operand::XQuantizedScales})
    if (reads(launch, operand) && regionPlace(launch, operand, 1).bytes == 0)
      return Error{ErrorCode::ParseError,
                   fmt::format("the kernel uses {}, which has no place in its workspace",
                               operandName(operand)),
                   {}};
  return {};
}

constexpr std::array tensorOperands = {
    Operand::X,         Operand::XScales, Operand::W,         Operand::WScales, Operand::Offsets,
    Operand::ExpertIds, Operand::Counts,  Operand::ExpertMap, Operand::Y,       Operand::Errors};

} // namespace

TensorArgument GemmArguments::*memberOf(Operand operand) {
  switch (operand) {
  case Operand::X:
    return &GemmArguments::x;
  case Operand::XScales:
    return &GemmArguments::xScales;
  case Operand::W:
    return &GemmArguments::w;
  case Operand::WScales:
    return &GemmArguments::wScales;
  case Operand::Offsets:
    return &GemmArguments::offsets;
  case Operand::ExpertIds:
    return &GemmArguments::expertIds;
  case Operand::Counts:
    return &GemmArguments::counts;
  case Operand::ExpertMap:
    return &GemmArguments::expertMap;
  case Operand::Y:
    return &GemmArguments::y;
  case Operand::Errors:
    return &GemmArguments::errors;
  case Operand::Workspace:
  case Operand::Counters:
  case Operand::XQuantized:
  case Operand::XQuantizedScales:
    break;
  }
  return nullptr;
}

TensorArgument tensorOf(const GemmArguments &arguments, Operand operand) {
  TensorArgument GemmArguments::*member = memberOf(operand);
  return member ? arguments.*member : TensorArgument{arguments.workspace, 0};
}

bool isOutput(const Spec &spec, Operand operand) {
  if (operand == Operand::XScales)
    return spec.computation == Computation::Quantize && spec.xScales.source == ScaleSource::Dynamic;
  return operand == Operand::Y || operand == Operand::Errors;
}

OperandLayout operandLayout(const Spec &spec, Operand operand, int64_t rows) {
  switch (operand) {
  case Operand::X:
    return matrixLayout(rows, spec.k, elementBytes(spec.quantizeFrom.value_or(spec.xType)));
  case Operand::W:
    return matrixLayout(spec.numExperts * spec.n, spec.k, elementBytes(spec.wType));
  case Operand::Y:
    if (spec.computation == Computation::Quantize)
      return matrixLayout(rows, spec.k, elementBytes(spec.xType));
    return matrixLayout(rows, spec.n, elementBytes(spec.outType));
  case Operand::XScales:
    return scaleLayout(spec.xScales, xExtents(spec, rows), spec.numExperts);
  case Operand::WScales:
    return scaleLayout(spec.wScales, wExtents(spec), spec.numExperts);
  case Operand::Offsets:
    return vectorLayout(spec.numExperts + 1);
  case Operand::ExpertIds:
    return vectorLayout(rows);
  case Operand::Counts:
    return vectorLayout(spec.numExperts);
  case Operand::ExpertMap:
    return vectorLayout(spec.expertMapSize);
  case Operand::XQuantized:
    return matrixLayout(rows, spec.k, elementBytes(spec.xType));
  case Operand::XQuantizedScales:
    return scaleLayout(spec.quantizeFrom ? quantizedScales(spec.xScales) : spec.xScales,
                       xExtents(spec, rows), spec.numExperts);
  case Operand::Errors:
    return {1, errorWords, errorWords, 8, 8, 8};
  case Operand::Workspace:
  case Operand::Counters:
    break;
  }
  return {0, 0, 0, 1, 16, 1};
}

int64_t rowStrideElements(const Spec &spec, const GemmArguments &arguments, Operand operand) {
  return rowStrideElements(tensorOf(arguments, operand),
                           operandLayout(spec, operand, arguments.rows));
}

int64_t rowStrideElements(const TensorArgument &tensor, const OperandLayout &layout) {
  // What a framework says of the stride of a single row means nothing.
  return tensor.rowStride && layout.rows > 1 ? tensor.rowStride : layout.packedStride;
}

Result<void> checkArguments(const Spec &spec, const LaunchData &launch,
                            const GemmArguments &arguments) {
  int64_t rows = arguments.rows;
  if (rows < 0 || rows > maxLaunchRows)
    return refusal(fmt::format("rows: {} is out of range", rows),
                   fmt::format("a launch takes 0 to {} rows; split larger ones", maxLaunchRows));
  if (arguments.smLimit < 0)
    return refusal(fmt::format("smLimit: {} is negative", arguments.smLimit), "0 means all SMs");
  if (rows == 0)
    return {};
  if (spec.dispatch == Dispatch::Masked && rows != spec.numExperts * spec.maxRows)
    return refusal(fmt::format("rows: {}, but the masked buffers have {} ({} experts of {})", rows,
                               spec.numExperts * spec.maxRows, spec.numExperts, spec.maxRows),
                   "pass all rows of the buffers; counts say which are used");
  if (spec.dispatch == Dispatch::Batched && rows > batchedRowLimit)
    return refusal(fmt::format("rows: batched takes at most {}, got {}", batchedRowLimit, rows),
                   "sort the rows by expert and use 'grouped', or launch in parts");
  const uint64_t needed = workspaceBytes(launch, rows);
  if (needed > 0) {
    auto address = reinterpret_cast<uint64_t>(arguments.workspace);
    if (!arguments.workspace || arguments.workspaceBytes < needed)
      return refusal(fmt::format("workspace: {} bytes at {:#x}, the kernel needs {} for {} rows",
                                 arguments.workspaceBytes, address, needed, rows),
                     "allocate workspaceBytes(rows) once and keep it for one launch in flight");
    if (address % 16)
      return refusal(fmt::format("workspace: address {:#x} is not a multiple of 16", address),
                     "it must be aligned to 16 bytes");
  }

  Footprint workspace = {reinterpret_cast<uint64_t>(arguments.workspace), needed, needed, 0};
  std::array<std::pair<Operand, Footprint>, tensorOperands.size()> outputs;
  size_t numOutputs = 0;
  for (Operand operand : tensorOperands)
    if (isOutput(spec, operand) && reads(launch, operand)) {
      Result<Footprint> checked = checkOperand(spec, launch, arguments, operand);
      if (!checked)
        return checked.error();
      outputs[numOutputs++] = {operand, *checked};
    }
  auto refuseOverlap = [](Operand output, const Footprint &of, const char *other,
                          const Footprint &at) {
    return refusal(fmt::format("{}: [{:#x}, {:#x}) overlaps {} at [{:#x}, {:#x})",
                               operandName(output), of.begin, of.begin + of.bytes, other, at.begin,
                               at.begin + at.bytes),
                   "an output has memory of its own");
  };
  for (Operand operand : tensorOperands) {
    if (isOutput(spec, operand) || !reads(launch, operand))
      continue;
    Result<Footprint> input = checkOperand(spec, launch, arguments, operand);
    if (!input)
      return input.error();
    for (const auto &[output, footprint] : std::span(outputs).first(numOutputs))
      if (overlap(footprint, *input))
        return refuseOverlap(output, footprint, operandName(operand), *input);
    // A launch zeroes its workspace first, or leaves it zero.
    if (overlap(workspace, *input))
      return refusal(
          fmt::format("{}: overlaps the workspace at {:#x}", operandName(operand), workspace.begin),
          "the workspace has memory of its own");
  }
  for (size_t i = 0; i < numOutputs; ++i) {
    const auto &[operand, footprint] = outputs[i];
    if (overlap(footprint, workspace))
      return refusal(
          fmt::format("{}: overlaps the workspace at {:#x}", operandName(operand), workspace.begin),
          "an output has memory of its own");
    for (size_t j = 0; j < i; ++j)
      if (overlap(footprint, outputs[j].second))
        return refuseOverlap(operand, footprint, operandName(outputs[j].first), outputs[j].second);
  }
  return {};
}

Result<uint32_t> gridBlocks(const Spec &spec, const LaunchData &launch, int64_t rows,
                            int64_t smCount, int64_t smLimit) {
  if (rows <= 0)
    return uint32_t(0);
  const GridRule &grid = launch.grid;
  int64_t sms = smLimit > 0 ? std::min(smLimit, smCount) : smCount;
  int64_t cluster = launch.cluster;
  int64_t resident = sms * grid.blocksPerSm / cluster * cluster;
  if (resident < 1)
    return refusal(
        fmt::format("smLimit: {} of {} SMs hold no cluster of {} blocks", sms, smCount, cluster),
        fmt::format("allow at least {} SMs", ceilDivide(cluster, grid.blocksPerSm)));
  // Rows nobody owns lie before the first and after the last expert: two more groups to zero.
  int64_t zeroGroups = spec.skipped == Skipped::Zeroed ? 1 : 0;
  int64_t rowTiles =
      ceilDivide(rows, grid.tileM) + std::min(grid.numExperts, rows) + 2 * zeroGroups;
  int64_t tiles = roundUp(rowTiles * ceilDivide(grid.n, grid.tileN), cluster);
  return uint32_t(std::min(resident, tiles));
}

Result<LaunchPlan> prepareLaunch(const Artifact &artifact, const GemmArguments &arguments,
                                 int64_t smCount) {
  const LaunchData &launch = artifact.launch;
  if (Result<void> sound = checkLaunchData(launch); !sound)
    return sound.error();
  if (Result<void> checked = checkArguments(artifact.spec, launch, arguments); !checked)
    return checked.error();
  LaunchPlan plan;
  plan.threads = launch.threads;
  plan.cluster = launch.cluster;
  plan.sharedBytes = launch.sharedBytes;
  if (arguments.rows == 0)
    return plan;
  Result<uint32_t> blocks =
      gridBlocks(artifact.spec, launch, arguments.rows, smCount, arguments.smLimit);
  if (!blocks)
    return blocks.error();
  plan.blocks = *blocks;
  plan.workspace = arguments.workspace;
  if (!launch.cleansWorkspace || !arguments.workspaceIsClean)
    plan.zeroedBytes = zeroedBytes(launch);

  plan.tensorMaps.reserve(launch.tensorMaps.size());
  for (const TensorMapRecipe &recipe : launch.tensorMaps) {
    Result<TensorMapValues> values = resolveTensorMap(artifact.spec, recipe, arguments);
    if (!values)
      return values.error();
    values->address += regionPlace(launch, recipe.operand, arguments.rows).offset;
    plan.tensorMaps.push_back(*values);
  }
  plan.parameters.reserve(launch.parameters.size());
  for (const KernelParameter &parameter : launch.parameters) {
    LaunchParameter value;
    value.kind = parameter.kind;
    switch (parameter.kind) {
    case KernelParameter::Kind::TensorMap:
      value.tensorMap = parameter.recipe;
      break;
    case KernelParameter::Kind::Pointer:
      value.value = reinterpret_cast<uint64_t>(tensorOf(arguments, parameter.operand).data) +
                    regionPlace(launch, parameter.operand, arguments.rows).offset;
      break;
    case KernelParameter::Kind::Rows:
      value.value = uint64_t(arguments.rows);
      break;
    case KernelParameter::Kind::Stride:
      value.value = uint64_t(rowStrideElements(artifact.spec, arguments, parameter.operand));
      break;
    }
    plan.parameters.push_back(value);
  }
  return plan;
}

} // namespace moejit

// Which bytes each operand of a launch is.
#include "tools/moejit/HostLaunch.h"

namespace moejit::tool {
namespace {

template <typename T>
OperandBytes inputOf(Operand operand, std::vector<T> &values, int64_t rowStride = 0) {
  return {operand, values.data(), values.size() * sizeof(T), rowStride};
}

/// Operands without a byte are those that the launch does not have.
void dropEmpty(HostLaunch &launch) {
  std::erase_if(launch.operands, [](const OperandBytes &operand) { return operand.bytes == 0; });
}

} // namespace

HostLaunch launchOf(oracle::HostProblem &problem, oracle::HostOutput &output,
                    std::span<int64_t> errors) {
  const Spec &spec = problem.spec;
  HostLaunch launch;
  launch.rows = problem.rows;
  launch.storage.push_back(oracle::storedScales(spec.xScales, problem.xScales));
  launch.storage.push_back(oracle::storedScales(spec.wScales, problem.wScales));
  // A launch that quantizes is given wider values, and makes its own scales.
  launch.operands = {spec.quantizeFrom ? inputOf(Operand::X, problem.xSource, problem.xSourceStride)
                                       : inputOf(Operand::X, problem.x, problem.xStride),
                     inputOf(Operand::W, problem.w),
                     inputOf(Operand::WScales, launch.storage[1]),
                     inputOf(Operand::Offsets, problem.offsets),
                     inputOf(Operand::ExpertIds, problem.expertIds),
                     inputOf(Operand::Counts, problem.counts),
                     inputOf(Operand::ExpertMap, problem.expertMap)};
  if (!spec.quantizeFrom)
    launch.operands.push_back(inputOf(Operand::XScales, launch.storage[0], problem.xScaleStride));
  size_t canary = size_t(oracle::HostOutput::canaryRows * output.rowBytes);
  launch.operands.push_back(
      {Operand::Y, output.bytes.data(), output.bytes.size(), problem.yStride, canary, true});
  launch.operands.push_back({Operand::Errors, errors.data(), errors.size_bytes(), 0, 0, true});
  dropEmpty(launch);
  return launch;
}

HostLaunch launchOf(oracle::QuantizeProblem &problem, oracle::QuantizeOutput &output) {
  constexpr size_t canary = oracle::QuantizeOutput::canaryBytes;
  HostLaunch launch;
  launch.rows = problem.rows;
  bool isComputed = problem.spec.xScales.source == ScaleSource::Dynamic;
  launch.operands = {inputOf(Operand::X, problem.x, problem.xStride),
                     {Operand::XScales, output.scales.data(), output.scales.size(),
                      problem.scaleStride, canary, isComputed},
                     {Operand::Y, output.y.data(), output.y.size(), problem.yStride, canary, true}};
  dropEmpty(launch);
  return launch;
}

} // namespace moejit::tool

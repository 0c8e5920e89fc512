// One spec at one number of rows, on the device: its operands, its launches, and what is right.
#pragma once

#include "runtime/Kernel.h"
#include "tests/oracle/Problem.h"
#include "tools/moejit/BenchDevice.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace moejit::tool {

/// What the cases of one spec share: the weights, on the host until the cases are made.
struct BenchWeights {
  Spec spec;
  oracle::HostProblem problem;                              ///< of the last case
  std::map<Operand, std::shared_ptr<DeviceBuffer>> buffers; ///< W and WScales
};

struct CaseRequest {
  int64_t rows = 0;    ///< that experts own; of masked kernels spread over the buffers
  std::string routing; ///< readRouting
  uint64_t seed = 1;
  bool isChecked = true; ///< the right answer is computed
};

/// How a kernel's output compares with the oracle.
struct CaseCheck {
  bool isDone = false;
  bool isOk = false;
  double relativeError = 0; ///< of a GEMM
  int64_t columns = 0;      ///< that were looked at, in every row
  std::string text;
};

class BenchCase {
public:
  /// Makes operands, puts them on the device and computes the right answer. Errors: those of
  /// readRouting and BenchDevice.
  static Result<std::unique_ptr<BenchCase>> make(BenchDevice &device, BenchWeights &weights,
                                                 const CaseRequest &request);
  ~BenchCase();

  const Spec &spec() const { return what; }
  int64_t rows() const { return launched; } ///< of a launch
  int64_t ownedRows() const { return owned; }
  int64_t activeExperts() const { return active; }
  int64_t leastRows() const { return least; } ///< of an active expert
  int64_t mostRows() const { return most; }
  const std::string &routing() const { return routingName; }

  /// 2 · rows · N · K of owned rows; 0 for a quantization.
  double operations() const;
  /// Bytes of the active experts' weights.
  double weightBytes() const;
  /// Least bytes to and from memory: active weights, scales, owned rows of x and y.
  double leastBytes() const;

  /// Loads `kernel`, gives it a workspace, launches it into a poisoned output and compares.
  Result<CaseCheck> check(Kernel &kernel);
  /// Puts one launch on the stream, in a clean workspace as long as all kernels that were given to
  /// check() leave it so. `kernel` was one of them.
  Result<void> launch(Kernel &kernel);
  /// Puts a plain read of the active experts' weights on the stream; of x for a quantization.
  Result<void> readWeights();
  /// Gives back what check() needs on the host.
  void dropHost();

private:
  struct Host;
  BenchCase(BenchDevice &device, Spec spec);
  Result<void> upload(BenchWeights &weights);

  BenchDevice &on;
  Spec what;
  std::string routingName;
  int64_t launched = 0, owned = 0, active = 0, least = 0, most = 0;
  std::unique_ptr<Host> host;
  std::map<Operand, std::shared_ptr<DeviceBuffer>> buffers;
  DeviceBuffer workspace;
  bool allClean = true;
  GemmArguments arguments;
};

} // namespace moejit::tool

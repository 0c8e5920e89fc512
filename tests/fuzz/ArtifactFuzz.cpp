// Files of kernels: as they are, and with every checksum made right, since a checksum is no
// signature. What is accepted is launched, on a driver that only looks.
#include "runtime/Artifact.h"
#include "runtime/Jit.h"
#include "runtime/Kernel.h"
#include "runtime/Sha256.h"
#include "tests/fuzz/Fuzz.h"
#include "tests/unit/FakeDriver.h"

#include <cstring>
#include <string>

using namespace moejit;

const char *const fuzz::dictionary[] = {"f8E4M3FN",      "bf16",   "f32",
                                        "moejit_kernel", "sm_90a", nullptr};

static constexpr size_t headBytes = 56;

/// `file` with length and checksum as its payload wants them. Short files stay as they are.
static std::string sealed(std::string_view file) {
  std::string bytes(file);
  if (bytes.size() < headBytes)
    return bytes;
  std::string_view payload = std::string_view(bytes).substr(headBytes);
  uint64_t length = payload.size();
  std::memcpy(bytes.data() + 16, &length, 8);
  auto digest = [](const std::string &text) {
    auto raw = sha256(text);
    return std::string(raw.begin(), raw.end());
  };
  std::string sum = digest(bytes.substr(8, 16) + digest(std::string(payload)));
  bytes.replace(24, 32, sum);
  return bytes;
}

static void launch(Artifact artifact) {
  // A loader of the driver's own reads images; this fake looks at the first four bytes.
  artifact.cubin.resize(std::max<size_t>(artifact.cubin.size(), 4));
  samples::FakeDriver driver;
  samples::installFakeDriver(driver);
  GemmArguments arguments;
  for (Operand operand = Operand::X; operand <= lastOperand; operand = Operand(int(operand) + 1))
    if (TensorArgument GemmArguments::*member = memberOf(operand))
      (arguments.*member).data = reinterpret_cast<void *>((uintptr_t(operand) + 1) << 44);
  arguments.workspace = reinterpret_cast<void *>(uintptr_t(100) << 44);
  auto shared = std::make_shared<const Artifact>(std::move(artifact));
  for (int64_t rows : {int64_t(1), int64_t(300), maxLaunchRows}) {
    Kernel kernel(shared, &driver.api);
    arguments.rows = rows;
    arguments.workspaceBytes = kernel.workspaceBytes(rows);
    (void)kernel.launch(arguments, nullptr);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view file = fuzz::textOf(data, size);
  for (const std::string &bytes : {std::string(file), sealed(file)}) {
    Result<Artifact> artifact = deserialize(bytes);
    if (!artifact) {
      fuzz::require(artifact.error().code == ErrorCode::ParseError, "a refusal is a ParseError");
      continue;
    }
    Result<Artifact> again = deserialize(serialize(*artifact));
    fuzz::require(again && *again == *artifact, "what is read is written and read again");
    (void)checkImage(*artifact);
    launch(*artifact);
  }
  return 0;
}

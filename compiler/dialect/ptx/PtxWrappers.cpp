// Owns how wrappers are put into text, and the text of those that depend on their operation: wgmma,
// TMA, pins.
#include "compiler/dialect/ptx/PtxDetail.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace moejit::ptx;

constexpr size_t columns = 100;

/// The inside of asm(…), which starts in column `indent`: string literals, one a line, then
/// constraints.
static std::string assemblyArguments(StringRef assembly, StringRef constraints, size_t indent) {
  std::string newLine = "\n" + std::string(indent, ' '), text;
  SmallVector<StringRef> lines;
  assembly.trim().split(lines, '\n');
  for (auto [index, line] : llvm::enumerate(lines)) {
    bool isLast = index + 1 == lines.size();
    text += (index ? newLine : "") + "\"" + line.trim().str() + (isLast ? "\"" : "\\n\"");
  }
  size_t lastLine = text.size() - (text.rfind('\n') + 1) + (lines.size() == 1 ? indent : 0);
  if (lastLine + constraints.size() + 3 <= columns && !constraints.contains('\n'))
    return text + " " + constraints.str();
  size_t clobber = constraints.rfind(" : ");
  bool isLong = indent + constraints.size() + 2 > columns && clobber != StringRef::npos;
  size_t number = 0;
  for (StringRef line : llvm::split(isLong ? constraints.take_front(clobber) : constraints, '\n')) {
    text += newLine + (number && !line.starts_with(":") ? "  " : "") + line.str();
    ++number;
  }
  return isLong ? text + newLine + constraints.drop_front(clobber + 1).str() : text;
}

std::string moejit::ptx::instructionWrapper(const InstructionText &text) {
  std::string definition;
  llvm::raw_string_ostream os(definition);
  bool hasResult = StringRef(text.result) != "void";
  if (*text.head)
    os << text.head << '\n';
  std::string type = std::string("static __device__ __forceinline__ ") + text.result;
  std::string signature = std::string(text.name) + "(" + text.parameters + ") {\n";
  os << type << (type.size() + signature.size() > columns ? "\n" : " ") << signature;
  if (*text.body) {
    for (StringRef line : llvm::split(StringRef(text.body), '\n'))
      os << (line.starts_with("#") ? "" : "  ") << line << '\n';
  } else {
    if (hasResult)
      os << "  " << text.result << " result;\n";
    StringRef head = text.hasEffect ? "  asm volatile(" : "  asm(";
    os << head << assemblyArguments(text.assembly, text.constraints, head.size()) << ");\n";
    if (hasResult)
      os << "  return result;\n";
  }
  os << "}\n";
  return definition;
}

SmallVector<CallArgument> moejit::ptx::vectorArguments(Operation *op, Value regs,
                                                       ValueRange indices,
                                                       ArrayRef<int64_t> staticIndices) {
  SmallVector<CallArgument> arguments;
  // The indices follow the array they index.
  for (unsigned number = 0; number < op->getNumOperands(); ++number) {
    Value operand = op->getOperand(number);
    if (operand != regs) {
      arguments.push_back(operand);
      continue;
    }
    arguments.push_back({regs, mixedIndices(indices, staticIndices, op->getContext())});
    number += indices.size();
  }
  return arguments;
}

//===- Pins -----------------------------------------------------------------------------------===//

std::string RegsPinOp::wrapperName() { return "regs_pin"; }
std::string RegsPinOp::calleeName() { return wrapperName(); }

SmallVector<CallArgument> RegsPinOp::callArguments() {
  return {{getRegs(), mixedIndices(getIndices(), getStaticIndices(), getContext())}};
}

std::string RegsPinOp::wrapperSource() {
  bool isFloat = getRegs().getType().getElementType().isF32();
  std::string body = "#pragma unroll\n"
                     "for (int i = 0; i < N; ++i)\n"
                     "  asm volatile(\"\" : \"+";
  body += isFloat ? 'f' : 'r';
  body += "\"(regs[i]) :: \"memory\");";
  std::string parameters = isFloat ? "float (&regs)[N]" : "int (&regs)[N]";
  return instructionWrapper({"regs_pin", "void", parameters.c_str(), "", "", body.c_str(),
                             "// No instruction: keeps the registers in place around wgmma.\n"
                             "template <int N>",
                             true});
}

//===- TMA ------------------------------------------------------------------------------------===//

std::string TmaLoadOp::wrapperName() {
  std::string name = "tma_load_" + std::to_string(getCoords().size()) + "d";
  if (getPolicy())
    name += "_hint";
  if (getMulticast())
    name += "_multicast";
  return name;
}
std::string TmaLoadOp::calleeName() { return wrapperName(); }

SmallVector<CallArgument> TmaLoadOp::callArguments() {
  SmallVector<CallArgument> arguments;
  for (Value operand : getOperands())
    arguments.push_back(operand);
  return arguments;
}

std::string TmaLoadOp::wrapperSource() {
  size_t rank = getCoords().size();
  std::string name = wrapperName(), parameters = "int dst, const TensorMap &map, ";
  std::string assembly = "cp.async.bulk.tensor." + std::to_string(rank) +
                         "d.shared::cluster.global.mbarrier::complete_tx::bytes";
  std::string places, constraints = ":: \"r\"(dst), \"l\"(&map), \"r\"(barrier)";
  size_t place = 3;
  for (size_t d = 0; d < rank; ++d) {
    std::string coordinate = "c" + std::to_string(d);
    parameters += "int " + coordinate + ", ";
    places += d ? ", %" : "%";
    places += std::to_string(place++);
    constraints += ", \"r\"(" + coordinate + ")";
  }
  parameters += "int barrier";
  // The mask comes before the policy in PTX, after it in the operands of the op.
  std::string last;
  if (getPolicy())
    parameters += ", long long policy";
  if (getMulticast()) {
    parameters += ", int ctaMask";
    assembly += ".multicast::cluster";
    constraints += ", \"h\"((short)ctaMask)";
    last += ", %";
    last += std::to_string(place++);
  }
  if (getPolicy()) {
    assembly += ".L2::cache_hint";
    constraints += ", \"l\"(policy)";
    last += ", %";
    last += std::to_string(place++);
  }
  assembly += "\n[%0], [%1, {" + places + "}], [%2]" + last + ";";
  constraints += " : \"memory\"";
  return instructionWrapper({name.c_str(), "void", parameters.c_str(), assembly.c_str(),
                             constraints.c_str(), "", "", true});
}

//===- wgmma ----------------------------------------------------------------------------------===//

std::string WgmmaOp::wrapperName() {
  return "wgmma_m64n" + std::to_string(getN()) + "k32_" + getA().str() + "_" + getB().str();
}
std::string WgmmaOp::calleeName() { return wrapperName(); }

SmallVector<CallArgument> WgmmaOp::callArguments() {
  return {{getRegs(), mixedIndices(getIndices(), getStaticIndices(), getContext())},
          getDescA(),
          getDescB(),
          getAccumulate()};
}

std::string WgmmaOp::wrapperSource() {
  constexpr int perLine = 8;
  int numRegs = getN() / 2;
  auto place = [&](int offset) { return "%" + std::to_string(numRegs + offset); };
  std::string assembly = "{\n"
                         ".reg .pred p;\n"
                         ".reg .b64 a, b;\n"
                         "setp.ne.b32 p, " +
                         place(2) + ", 0;\n" + "mov.b64 a, {" + place(0) + ", " + place(3) +
                         "};\n" + "mov.b64 b, {" + place(1) + ", " + place(3) + "};\n" +
                         "wgmma.mma_async.sync.aligned.m64n" + std::to_string(getN()) + "k32.f32." +
                         getA().str() + "." + getB().str() + "\n{";
  std::string constraints = ": ";
  for (int i = 0; i < numRegs; ++i) {
    if (i) {
      assembly += i % perLine ? ", " : ",\n";
      constraints += i % (perLine / 2) ? ", " : ",\n";
    }
    assembly += "%" + std::to_string(i);
    constraints += "\"+f\"(d[" + std::to_string(i) + "])";
  }
  assembly += "},\na, b, p, 1, 1;\n}";
  constraints += "\n: \"r\"(descALow), \"r\"(descBLow), \"r\"(accumulate), \"n\"(0x40000040)";
  std::string name = wrapperName();
  std::string parameters =
      "float (&d)[" + std::to_string(numRegs) + "], int descALow, int descBLow, int accumulate";
  return instructionWrapper({name.c_str(), "void", parameters.c_str(), assembly.c_str(),
                             constraints.c_str(), "",
                             "// The high word of both descriptors: K-major, SWIZZLE_128B, 1024 "
                             "bytes between groups of 8 rows.",
                             true});
}

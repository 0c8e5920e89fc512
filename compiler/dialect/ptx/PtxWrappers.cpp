// Owns how wrappers are put into text, and the text of those that depend on their operation: wgmma,
// mma, ldmatrix, copies, pins.
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

std::string TmaStoreOp::wrapperName() {
  return "tma_store_" + std::to_string(getCoords().size()) + "d";
}
std::string TmaStoreOp::calleeName() { return wrapperName(); }

SmallVector<CallArgument> TmaStoreOp::callArguments() {
  SmallVector<CallArgument> arguments;
  for (Value operand : getOperands())
    arguments.push_back(operand);
  return arguments;
}

std::string TmaStoreOp::wrapperSource() {
  std::string name = wrapperName(), parameters = "const TensorMap &map, ", places;
  std::string constraints = ":: \"l\"(&map), \"r\"(src)";
  for (size_t d = 0; d < getCoords().size(); ++d) {
    std::string coordinate = "c" + std::to_string(d);
    parameters += "int " + coordinate + ", ";
    places += d ? ", %" : "%";
    places += std::to_string(d + 2);
    constraints += ", \"r\"(" + coordinate + ")";
  }
  parameters += "int src";
  constraints += " : \"memory\"";
  std::string assembly = "cp.async.bulk.tensor." + std::to_string(getCoords().size()) +
                         "d.global.shared::cta.tile.bulk_group\n[%0, {" + places + "}], [%1];";
  return instructionWrapper({name.c_str(), "void", parameters.c_str(), assembly.c_str(),
                             constraints.c_str(), "", "", true});
}

//===- cp.async -------------------------------------------------------------------------------===//

std::string CpAsyncOp::wrapperName() {
  return "cp_async_" + getCache().str() + "_" + std::to_string(getBytes()) +
         (getSize() ? "_sized" : "");
}
std::string CpAsyncOp::calleeName() { return wrapperName(); }

SmallVector<CallArgument> CpAsyncOp::callArguments() {
  SmallVector<CallArgument> arguments;
  for (Value operand : getOperands())
    arguments.push_back(operand);
  return arguments;
}

std::string CpAsyncOp::wrapperSource() {
  std::string name = wrapperName();
  std::string parameters = "int dst, const void *pointer, long long offset";
  std::string assembly = "cp.async." + getCache().str() + ".shared::cta.global [%0], [%1], " +
                         std::to_string(getBytes());
  std::string constraints = ":: \"r\"(dst), \"l\"((const char *)pointer + offset)";
  if (getSize()) {
    parameters += ", int size";
    assembly += ", %2";
    constraints += ", \"r\"(size)";
  }
  assembly += ";";
  constraints += " : \"memory\"";
  return instructionWrapper({name.c_str(), "void", parameters.c_str(), assembly.c_str(),
                             constraints.c_str(), "", "", true});
}

//===- Matrices of a warp ---------------------------------------------------------------------===//

std::string LdmatrixOp::wrapperName() {
  return "ldmatrix_x" + std::to_string(getRegs().getType().getFragmentSize()) +
         (getTrans() ? "_trans" : "");
}
std::string LdmatrixOp::calleeName() { return wrapperName(); }

SmallVector<CallArgument> LdmatrixOp::callArguments() {
  return vectorArguments(*this, getRegs(), getIndices(), getStaticIndices());
}

/// "%first, %first + 1, …" of `count` operands.
static std::string operandPlaces(int first, int count) {
  std::string places;
  for (int i = first; i < first + count; ++i) {
    places += i > first ? ", %" : "%";
    places += std::to_string(i);
  }
  return places;
}

/// `"constraint"(name[0]), "constraint"(name[1]), …` of `count` registers.
static std::string registerConstraints(const char *constraint, const char *name, int count) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int i = 0; i < count; ++i)
    os << (i ? ", \"" : "\"") << constraint << "\"(" << name << '[' << i << "])";
  return text;
}

std::string LdmatrixOp::wrapperSource() {
  int count = static_cast<int>(getRegs().getType().getFragmentSize());
  std::string name = wrapperName(), number = std::to_string(count);
  std::string parameters = "int address, int (&v)[" + number + "]";
  std::string assembly = "ldmatrix.sync.aligned.m8n8.x" + number + (getTrans() ? ".trans" : "") +
                         ".shared.b16 {" + operandPlaces(0, count) + "}, [%" + number + "];";
  std::string constraints =
      ": " + registerConstraints("=r", "v", count) + "\n: \"r\"(address) : \"memory\"";
  return instructionWrapper({name.c_str(), "void", parameters.c_str(), assembly.c_str(),
                             constraints.c_str(), "", "", true});
}

static bool isSixteenBits(MmaOp op) { return op.getAType() == "bf16" || op.getAType() == "f16"; }

std::string MmaOp::wrapperName() {
  return std::string("mma_m16n8k") + (isSixteenBits(*this) ? "16_" : "32_") + getAType().str() +
         "_" + getBType().str();
}
std::string MmaOp::calleeName() { return wrapperName(); }

SmallVector<CallArgument> MmaOp::callArguments() {
  MLIRContext *context = getContext();
  return {{getAcc(), mixedIndices(getAccIndices(), getStaticAccIndices(), context)},
          {getA(), mixedIndices(getAIndices(), getStaticAIndices(), context)},
          {getB(), mixedIndices(getBIndices(), getStaticBIndices(), context)}};
}

std::string MmaOp::wrapperSource() {
  std::string name = wrapperName();
  std::string assembly = std::string("mma.sync.aligned.m16n8k") +
                         (isSixteenBits(*this) ? "16" : "32") + ".row.col.f32." + getAType().str() +
                         "." + getBType().str() + ".f32\n{" + operandPlaces(0, 4) + "}, {" +
                         operandPlaces(4, 4) + "}, {" + operandPlaces(8, 2) + "}, {" +
                         operandPlaces(0, 4) + "};";
  std::string constraints = ": " + registerConstraints("+f", "d", 4) +
                            "\n: " + registerConstraints("r", "a", 4) + ", " +
                            registerConstraints("r", "b", 2);
  return instructionWrapper({name.c_str(), "void",
                             "float (&d)[4], const int (&a)[4], const int (&b)[2]",
                             assembly.c_str(), constraints.c_str(), "", "", true});
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

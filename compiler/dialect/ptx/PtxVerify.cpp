// Owns what the ptx dialect accepts: verifiers of types, operations and the `ptx.name` attributes.
#include "compiler/dialect/ptx/PtxDetail.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace moejit::ptx;

//===- Identifiers ----------------------------------------------------------------------------===//

bool moejit::ptx::isIdentifier(StringRef name) {
  static const llvm::StringSet<> reserved = {
      // C++20 keywords and alternative tokens.
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
      "case", "catch", "char", "char8_t", "char16_t", "char32_t", "class", "compl", "concept",
      "const", "consteval", "constexpr", "constinit", "const_cast", "continue", "co_await",
      "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast",
      "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
      "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
      "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
      "reinterpret_cast", "requires", "return", "short", "signed", "sizeof", "static",
      "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
      "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using",
      "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
      // Names the compilers or the translation unit take.
      "blockDim", "blockIdx", "gridDim", "linux", "main", "moejit_kernel", "threadIdx", "unix",
      "warpSize", "NULL", "TensorMap", "MOEJIT_EMULATOR", "MOEJIT_EMULATED_KERNEL"};
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  return !name.empty() && name.size() <= 64 && llvm::isAlpha(name.front()) &&
         llvm::all_of(name, isWord) && !name.contains("__") && !reserved.contains(name);
}

static LogicalResult verifyName(Attribute attribute, function_ref<InFlightDiagnostic()> emitError) {
  auto name = dyn_cast<StringAttr>(attribute);
  if (!name)
    return emitError() << "'ptx.name' takes a string, got " << attribute;
  if (!isIdentifier(name))
    return emitError() << "'ptx.name' takes an identifier ([a-zA-Z][a-zA-Z0-9_]*, no keyword, no "
                          "'__', at most 64 characters), got "
                       << name;
  return success();
}

LogicalResult PtxDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  auto emitError = [&] { return op->emitOpError(); };
  if (attribute.getName() == "ptx.name")
    return verifyName(attribute.getValue(), emitError);
  if (attribute.getName() != "ptx.names")
    return op->emitOpError() << "has no attribute '" << attribute.getName().strref()
                             << "' in dialect ptx; there are 'ptx.name' and 'ptx.names'";
  auto names = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!names || names.size() != op->getNumResults())
    return op->emitOpError() << "'ptx.names' takes an array of " << op->getNumResults()
                             << " strings, one for each result, got " << attribute.getValue();
  for (Attribute name : names)
    if (failed(verifyName(name, emitError)))
      return failure();
  return success();
}

LogicalResult PtxDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argIndex,
                                                   NamedAttribute attribute) {
  if (attribute.getName() != "ptx.name")
    return op->emitOpError() << "parameter " << argIndex << " has no attribute '"
                             << attribute.getName().strref() << "' in dialect ptx";
  return verifyName(attribute.getValue(),
                    [&] { return op->emitOpError() << "parameter " << argIndex << " "; });
}

//===- Types ----------------------------------------------------------------------------------===//

LogicalResult RegsType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type elementType) {
  if (shape.empty() || shape.size() > 2)
    return emitError() << "register arrays have rank 1 or 2, got rank " << shape.size();
  int64_t registers = 1;
  for (int64_t extent : shape) {
    if (extent < 1 || extent > 1024)
      return emitError() << "extents of register arrays are 1 to 1024, got " << extent;
    registers *= extent;
  }
  if (registers > 1024)
    return emitError() << "register arrays have at most 1024 registers, got " << registers;
  if (!elementType.isF32() && !elementType.isSignlessInteger(32))
    return emitError() << "registers are f32 or i32, got " << elementType;
  return success();
}

//===- Fragments of register arrays -----------------------------------------------------------===//

static LogicalResult verifyIndices(Operation *op, Value regs, size_t numDynamic,
                                   ArrayRef<int64_t> staticIndices, size_t expected,
                                   StringRef what) {
  auto type = cast<RegsType>(regs.getType());
  if (staticIndices.size() != expected)
    return op->emitOpError() << "takes " << expected << " indices to pick a " << what << " of "
                             << type << ", got " << staticIndices.size();
  size_t dynamic = llvm::count_if(staticIndices, ShapedType::isDynamic);
  if (dynamic != numDynamic)
    return op->emitOpError() << "has " << numDynamic << " index values for " << dynamic
                             << " places in 'static_indices'";
  for (auto [index, extent] : llvm::zip(staticIndices, type.getShape()))
    if (!ShapedType::isDynamic(index) && (index < 0 || index >= extent))
      return op->emitOpError() << "index " << index << " is outside of " << type
                               << ", whose extent there is " << extent;
  return success();
}

LogicalResult moejit::ptx::verifyFragment(Operation *op, Value regs, size_t numIndices,
                                          ArrayRef<int64_t> staticIndices, int64_t size,
                                          Type element) {
  auto type = cast<RegsType>(regs.getType());
  if (failed(verifyIndices(op, regs, numIndices, staticIndices, type.getRank() - 1, "fragment")))
    return failure();
  if (size && type.getFragmentSize() != size)
    return op->emitOpError() << "takes a fragment of " << size << " registers, got "
                             << type.getFragmentSize() << " in " << type;
  if (element && type.getElementType() != element)
    return op->emitOpError() << "takes registers of " << element << ", got " << type;
  return success();
}

LogicalResult moejit::ptx::verifyVector(Operation *op, Value regs, ValueRange indices,
                                        ArrayRef<int64_t> staticIndices) {
  return verifyFragment(op, regs, indices.size(), staticIndices, 4,
                        IntegerType::get(op->getContext(), 32));
}

LogicalResult RegsGetOp::verify() {
  unsigned rank = getRegs().getType().getRank();
  return verifyIndices(*this, getRegs(), getIndices().size(), getStaticIndices(), rank, "register");
}

LogicalResult RegsSetOp::verify() {
  unsigned rank = getRegs().getType().getRank();
  return verifyIndices(*this, getRegs(), getIndices().size(), getStaticIndices(), rank, "register");
}

LogicalResult RegsPinOp::verify() {
  return verifyFragment(*this, getRegs(), getIndices().size(), getStaticIndices(), 0, {});
}

//===- Instructions ---------------------------------------------------------------------------===//

LogicalResult moejit::ptx::verifyNamedBarrier(Operation *op, uint32_t id, uint32_t threads) {
  if (id > 15)
    return op->emitOpError() << "takes a barrier from 0 to 15, got " << static_cast<int32_t>(id);
  if (threads == 0 || threads > 1024 || threads % 32)
    return op->emitOpError() << "takes 32 to 1024 threads, a multiple of 32, got "
                             << static_cast<int32_t>(threads);
  return success();
}

LogicalResult moejit::ptx::verifyRegisterCount(Operation *op, uint32_t registers) {
  if (registers < 24 || registers > 256 || registers % 8)
    return op->emitOpError() << "takes 24 to 256 registers, a multiple of 8, got "
                             << static_cast<int32_t>(registers);
  return success();
}

LogicalResult moejit::ptx::verifyPendingGroups(Operation *op, uint32_t pending) {
  if (static_cast<int32_t>(pending) < 0)
    return op->emitOpError() << "takes a number of pending groups, got "
                             << static_cast<int32_t>(pending);
  return success();
}

static LogicalResult verifyCoordinates(Operation *op, size_t count) {
  if (count == 0 || count > 3)
    return op->emitOpError() << "takes 1 to 3 coordinates, got " << count;
  return success();
}

LogicalResult TmaLoadOp::verify() { return verifyCoordinates(*this, getCoords().size()); }
LogicalResult TmaStoreOp::verify() { return verifyCoordinates(*this, getCoords().size()); }

LogicalResult CpAsyncOp::verify() {
  if (getCache() != "ca" && getCache() != "cg")
    return emitOpError() << "takes the cache operator ca or cg, got '" << getCache() << "'";
  int32_t bytes = static_cast<int32_t>(getBytes());
  if (getCache() == "cg" && bytes != 16)
    return emitOpError() << "copies 16 bytes with cg, got " << bytes;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return emitOpError() << "copies 4, 8 or 16 bytes, got " << bytes;
  return success();
}

LogicalResult LdmatrixOp::verify() {
  int64_t count = getRegs().getType().getFragmentSize();
  if (count != 1 && count != 2 && count != 4)
    return emitOpError() << "takes a fragment of 1, 2 or 4 registers, got " << count << " in "
                         << getRegs().getType();
  return verifyFragment(*this, getRegs(), getIndices().size(), getStaticIndices(), count,
                        IntegerType::get(getContext(), 32));
}

LogicalResult MmaOp::verify() {
  auto isFp8 = [](StringRef type) { return type == "e4m3" || type == "e5m2"; };
  auto isHalf = [](StringRef type) { return type == "bf16" || type == "f16"; };
  StringRef a = getAType(), b = getBType();
  if (!(isFp8(a) && isFp8(b)) && !(isHalf(a) && a == b))
    return emitOpError() << "takes operands of type e4m3 or e5m2, or both bf16, or both f16, got '"
                         << a << "' and '" << b << "'";
  Type word = IntegerType::get(getContext(), 32);
  if (failed(verifyFragment(*this, getAcc(), getAccIndices().size(), getStaticAccIndices(), 4,
                            Float32Type::get(getContext()))) ||
      failed(verifyFragment(*this, getA(), getAIndices().size(), getStaticAIndices(), 4, word)))
    return failure();
  return verifyFragment(*this, getB(), getBIndices().size(), getStaticBIndices(), 2, word);
}

LogicalResult WgmmaWaitOp::verify() {
  if (getPending() > 7)
    return emitOpError() << "takes 0 to 7 pending groups, got "
                         << static_cast<int32_t>(getPending());
  return success();
}

LogicalResult WgmmaOp::verify() {
  uint32_t n = getN();
  if (n == 0 || n > 256 || n % 8)
    return emitOpError() << "takes n from 8 to 256, a multiple of 8, got "
                         << static_cast<int32_t>(n);
  for (StringRef type : {getA(), getB()})
    if (type != "e4m3" && type != "e5m2")
      return emitOpError() << "takes operands of type e4m3 or e5m2, got '" << type << "'";
  return verifyFragment(*this, getRegs(), getIndices().size(), getStaticIndices(), n / 2,
                        Float32Type::get(getContext()));
}

//===- Structure ------------------------------------------------------------------------------===//

LogicalResult KernelOp::verify() {
  if (!getResultTypes().empty())
    return emitOpError() << "returns nothing, got " << getResultTypes().size() << " results";
  for (auto [index, type] : llvm::enumerate(getArgumentTypes()))
    if (!isa<TmapType, PtrType>(type) && !type.isSignlessInteger(32) && !type.isSignlessInteger(64))
      return emitOpError() << "parameter " << index
                           << " is one of !ptx.tmap, !ptx.ptr, i32 and i64, got " << type;
  if (getThreads() == 0 || getThreads() > 1024 || getThreads() % 32)
    return emitOpError() << "takes 32 to 1024 threads, a multiple of 32, got "
                         << static_cast<int32_t>(getThreads());
  if (getCluster() == 0 || getCluster() > 16)
    return emitOpError() << "takes 1 to 16 blocks in a cluster, got "
                         << static_cast<int32_t>(getCluster());
  if (getSharedBytes() > 232448)
    return emitOpError() << "takes at most 232448 bytes of shared memory, got "
                         << static_cast<int32_t>(getSharedBytes());
  if (getMinBlocks() == 0 || getMinBlocks() > 32)
    return emitOpError() << "takes 1 to 32 blocks per multiprocessor, got "
                         << static_cast<int32_t>(getMinBlocks());
  return success();
}

LogicalResult UnrollOp::verify() {
  int64_t lower = static_cast<int32_t>(getLower()), upper = static_cast<int32_t>(getUpper());
  int64_t step = static_cast<int32_t>(getStep());
  if (getBody().empty() || getBody().front().getNumArguments() != 1 ||
      !getBody().front().getArgument(0).getType().isSignlessInteger(32))
    return emitOpError() << "has a body with one i32 argument, the induction variable";
  if (step < 1 || lower > upper)
    return emitOpError() << "counts up by a positive step, got " << lower << " to " << upper
                         << " step " << step;
  if ((upper - lower + step - 1) / step > 1024)
    return emitOpError() << "unrolls at most 1024 times, got " << (upper - lower + step - 1) / step;
  return success();
}

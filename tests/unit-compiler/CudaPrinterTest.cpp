// Owns the tests of compiler/emit/CudaPrinter.h that text patterns cannot make: every wgmma
// assembles, every operation has a test, and printed arithmetic computes what arith defines (its
// folders are the oracle).
#include "compiler/emit/CudaPrinter.h"
#include "compiler/Nvrtc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fstream>
#include <random>
#include <sstream>

using namespace mlir;
using namespace moejit;

namespace {

struct Fixture {
  Fixture() : context(MLIRContext::Threading::DISABLED), builder(&context) {
    context.loadDialect<ptx::PtxDialect, arith::ArithDialect, scf::SCFDialect>();
    module = ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
  }

  ptx::KernelOp addKernel(TypeRange parameters) {
    builder.setInsertionPointToEnd(module->getBody());
    auto kernel = ptx::KernelOp::create(builder, builder.getUnknownLoc(), "kernel", parameters, {},
                                        /*threads=*/128);
    builder.setInsertionPointToEnd(kernel.getEntry());
    return kernel;
  }

  static std::string print(ptx::KernelOp kernel) {
    std::string text;
    llvm::raw_string_ostream os(text);
    REQUIRE(succeeded(emit::printCuda(kernel, os)));
    return text;
  }

  MLIRContext context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
};

} // namespace

TEST_CASE("every operation of the dialect is in the test that assembles them all") {
  Fixture fixture;
  std::stringstream text;
  text << std::ifstream(MOEJIT_SOURCE "/tests/lit/emit/every-instruction.mlir").rdbuf();
  auto isTested = [&](const std::string &name) {
    return text.str().find(name + " ") != std::string::npos ||
           text.str().find(name + "\n") != std::string::npos;
  };
  for (RegisteredOperationName name : fixture.context.getRegisteredOperationsByDialect("ptx"))
    CHECK_MESSAGE(isTested(name.getStringRef().str()), name.getStringRef().str());
}

TEST_CASE("wgmma of every n assembles, and spills nothing") {
  Result<Nvrtc> nvrtc = Nvrtc::open({});
  if (!nvrtc) {
    MESSAGE("skipped: " << nvrtc.error().message);
    return;
  }
  Fixture fixture;
  OpBuilder &b = fixture.builder;
  Location loc = b.getUnknownLoc();
  for (int n = 8; n <= 256; n += 8) {
    CAPTURE(n);
    ptx::KernelOp kernel = fixture.addKernel({b.getType<ptx::PtrType>(), b.getI32Type()});
    Value out = kernel.getArgument(0), descriptor = kernel.getArgument(1);
    Value acc = ptx::RegsOp::create(b, loc, ptx::RegsType::get({n / 2}, b.getF32Type()));
    Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
    ptx::WgmmaFenceOp::create(b, loc);
    ptx::WgmmaOp::create(b, loc, acc, descriptor, descriptor, zero, n, "e4m3", "e5m2");
    ptx::WgmmaCommitOp::create(b, loc);
    ptx::WgmmaWaitOp::create(b, loc, 0);
    ptx::RegsPinOp::create(b, loc, acc);
    for (int i = 0; i < n / 2; ++i) {
      Value value = ptx::RegsGetOp::create(b, loc, acc, {OpFoldResult(b.getI64IntegerAttr(i))});
      Value offset = arith::ConstantIntOp::create(b, loc, 4 * i, 64);
      ptx::StGlobalF32Op::create(b, loc, out, offset, value);
    }
    REQUIRE(succeeded(verify(kernel)));
    Result<NvrtcOutput> output = nvrtc->compile(Fixture::print(kernel), "sm_90a");
    REQUIRE_MESSAGE(output, output.error().text());
    CHECK(output->ptx.find("m64n" + std::to_string(n) + "k32.f32.e4m3.e5m2") != std::string::npos);
    CHECK(output->resources.spillStoreBytes == 0);
    CHECK(output->warnings.empty());
    kernel.erase();
  }
}

namespace {

/// Random straight-line arithmetic on three i32 and two i64 parameters, every result stored.
class RandomProgram {
public:
  RandomProgram(Fixture &fixture, unsigned seed)
      : b(fixture.builder), loc(b.getUnknownLoc()), random(seed) {
    Type i32 = b.getI32Type(), i64 = b.getI64Type();
    kernel = fixture.addKernel({i32, i32, i32, i64, i64, b.getType<ptx::PtrType>()});
    for (int i = 0; i < 3; ++i)
      words.push_back(kernel.getArgument(i));
    longs = {kernel.getArgument(3), kernel.getArgument(4)};
    for (Value word : words)
      bools.push_back(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, word, words[0]));
    for (int i = 0; i < 80; ++i)
      grow();
    for (Value word : words)
      store(word);
    for (Value wide : longs) {
      store(arith::TruncIOp::create(b, loc, i32, wide));
      Value half = arith::ConstantIntOp::create(b, loc, 32, 64);
      store(arith::TruncIOp::create(b, loc, i32, arith::ShRUIOp::create(b, loc, wide, half)));
    }
    for (Value flag : bools)
      store(arith::ExtUIOp::create(b, loc, i32, flag));
  }

  ptx::KernelOp kernel;
  unsigned numStores = 0;

private:
  unsigned below(unsigned end) { return random() % end; }
  /// Prefers what is new, so that expressions nest.
  Value pick(std::vector<Value> &values) {
    size_t recent = std::min<size_t>(values.size(), 6);
    return below(3) ? values[values.size() - 1 - below(recent)] : values[below(values.size())];
  }

  void store(Value word) {
    Value offset = arith::ConstantIntOp::create(b, loc, 4 * numStores++, 64);
    ptx::StGlobalB32Op::create(b, loc, kernel.getArgument(5), offset, word);
  }

  Value constant(unsigned width) {
    constexpr int64_t values[] = {0, 1, -1, 2, 3, -5, 31, 128, 65536, INT32_MAX, INT32_MIN};
    return arith::ConstantIntOp::create(b, loc, values[below(std::size(values))], width);
  }

  /// Not 0 and not -1, of either sign.
  Value divisor(std::vector<Value> &values, unsigned width) {
    if (below(2))
      return arith::ConstantIntOp::create(b, loc, below(2) ? 7 : -3, width);
    Value mask = arith::ConstantIntOp::create(b, loc, 63, width);
    Value two = arith::ConstantIntOp::create(b, loc, 2, width);
    Value zero = arith::ConstantIntOp::create(b, loc, 0, width);
    Value some = arith::AndIOp::create(b, loc, pick(values), mask);
    Value positive = arith::AddIOp::create(b, loc, some, two);
    Value negative = arith::SubIOp::create(b, loc, zero, positive);
    return arith::SelectOp::create(b, loc, pick(bools), positive, negative);
  }

  void grow() {
    switch (below(8)) {
    case 0:
      return growBool();
    case 1:
      return words.push_back(
          below(2) ? arith::TruncIOp::create(b, loc, b.getI32Type(), pick(longs)).getResult()
                   : arith::ExtSIOp::create(b, loc, b.getI32Type(), pick(bools)).getResult());
    case 2:
      return longs.push_back(
          below(2) ? arith::ExtSIOp::create(b, loc, b.getI64Type(), pick(words)).getResult()
                   : arith::ExtUIOp::create(b, loc, b.getI64Type(), pick(words)).getResult());
    case 3:
    case 4:
      return growIntegers(longs, 64);
    default:
      return growIntegers(words, 32);
    }
  }

  void growBool() {
    auto predicate = static_cast<arith::CmpIPredicate>(below(10));
    switch (below(6)) {
    case 0:
      return bools.push_back(arith::AndIOp::create(b, loc, pick(bools), pick(bools)));
    case 1:
      return bools.push_back(arith::OrIOp::create(b, loc, pick(bools), pick(bools)));
    case 2: {
      Value all = arith::ConstantIntOp::create(b, loc, 1, 1);
      return bools.push_back(
          arith::XOrIOp::create(b, loc, pick(bools), below(2) ? pick(bools) : all));
    }
    case 3:
      return bools.push_back(arith::TruncIOp::create(b, loc, b.getI1Type(), pick(words)));
    case 4:
      return bools.push_back(arith::CmpIOp::create(b, loc, predicate, pick(longs), constant(64)));
    default:
      return bools.push_back(arith::CmpIOp::create(b, loc, predicate, pick(words), pick(words)));
    }
  }

  template <typename OpTy> void add(std::vector<Value> &values, Value lhs, Value rhs) {
    values.push_back(OpTy::create(b, loc, lhs, rhs));
  }

  void growIntegers(std::vector<Value> &values, unsigned width) {
    Value lhs = pick(values), rhs = below(3) ? pick(values) : constant(width);
    Value shift = arith::ConstantIntOp::create(b, loc, below(width), width);
    switch (below(17)) {
    case 0:
      return add<arith::SubIOp>(values, lhs, rhs);
    case 1:
      return add<arith::MulIOp>(values, lhs, rhs);
    case 2:
      return add<arith::DivSIOp>(values, lhs, divisor(values, width));
    case 3:
      return add<arith::DivUIOp>(values, lhs, divisor(values, width));
    case 4:
      return add<arith::RemSIOp>(values, lhs, divisor(values, width));
    case 5:
      return add<arith::RemUIOp>(values, lhs, divisor(values, width));
    case 6:
      return add<arith::AndIOp>(values, lhs, rhs);
    case 7:
      return add<arith::OrIOp>(values, lhs, rhs);
    case 8:
      return add<arith::XOrIOp>(values, lhs, rhs);
    case 9:
      return add<arith::ShLIOp>(values, lhs, shift);
    case 10:
      return add<arith::ShRSIOp>(values, lhs, shift);
    case 11:
      return add<arith::ShRUIOp>(values, lhs, shift);
    case 12:
      return add<arith::MinSIOp>(values, lhs, rhs);
    case 13:
      return add<arith::MaxSIOp>(values, lhs, rhs);
    case 14:
      return add<arith::CeilDivSIOp>(values, lhs, divisor(values, width));
    case 15:
      return values.push_back(arith::SelectOp::create(b, loc, pick(bools), lhs, rhs));
    default:
      return add<arith::AddIOp>(values, lhs, rhs);
    }
  }

  OpBuilder &b;
  Location loc;
  std::mt19937 random;
  std::vector<Value> words, longs, bools;
};

/// What the folders of arith make of the kernel's stores for these parameters; nothing where they
/// leave an operation alone, as ceildivsi that overflows on its way. Folding may change the kernel.
std::optional<std::vector<int>> evaluate(ptx::KernelOp kernel, ArrayRef<Attribute> parameters) {
  llvm::DenseMap<Value, Attribute> known;
  for (auto [argument, value] : llvm::zip(kernel.getEntry()->getArguments(), parameters))
    known[argument] = value;
  std::vector<int> stored;
  for (Operation &op : *kernel.getEntry()) {
    if (auto store = dyn_cast<ptx::StGlobalB32Op>(op)) {
      stored.push_back(cast<IntegerAttr>(known[store.getValue()]).getInt());
      continue;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      known[constant] = constant.getValue();
      continue;
    }
    SmallVector<OpFoldResult> folded;
    for (int attempt = 0; attempt < 4 && folded.empty();
         ++attempt) { // a fold may only swap operands
      SmallVector<Attribute> operands;
      for (Value operand : op.getOperands())
        operands.push_back(known[operand]);
      if (failed(op.fold(operands, folded)))
        return std::nullopt;
    }
    REQUIRE(folded.size() == 1);
    auto value = dyn_cast<Value>(folded[0]);
    known[op.getResult(0)] = value ? known[value] : cast<Attribute>(folded[0]);
  }
  return stored;
}

} // namespace

TEST_CASE("printed arithmetic computes what arith defines") {
  using Entry = void (*)(int, int, int, long long, long long, void *);
  int numCompared = 0;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    Fixture fixture;
    RandomProgram program(fixture, seed);
    REQUIRE(succeeded(verify(program.kernel)));
    std::string name = "./printed-arithmetic-" + std::to_string(seed);
    std::ofstream(name + ".cu") << Fixture::print(program.kernel);
    // arith wraps around; the printed text leaves overflow to its reader, so the test asks for the
    // same.
    std::string command = std::string(MOEJIT_CXX) +
                          " -std=c++20 -fwrapv -w -O1 -fPIC -shared -DMOEJIT_EMULATOR"
                          " -I" MOEJIT_SOURCE "/tests/unit-compiler/host -x c++ " +
                          name + ".cu -o " + name + ".so";
    REQUIRE(std::system(command.c_str()) == 0);
    void *library = dlopen((name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library);
    auto entry = reinterpret_cast<Entry>(dlsym(library, "moejit_kernel"));
    bool hasEntry = entry;
    REQUIRE(hasEntry);

    std::mt19937_64 random(seed);
    constexpr int64_t special[] = {0, 1, -1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 127, -128};
    for (int round = 0; round < 12; ++round) {
      auto draw = [&] {
        return static_cast<int64_t>(random() % 3 ? random() : special[random() % 9]);
      };
      int a = draw(), b = draw(), c = draw();
      int64_t d = draw(), e = draw();
      std::vector<int> got(program.numStores, -1);
      entry(a, b, c, d, e, got.data());
      OwningOpRef<Operation *> copy = program.kernel->clone();
      Builder &builder = fixture.builder;
      std::optional<std::vector<int>> expected = evaluate(
          cast<ptx::KernelOp>(*copy),
          {builder.getI32IntegerAttr(a), builder.getI32IntegerAttr(b), builder.getI32IntegerAttr(c),
           builder.getI64IntegerAttr(d), builder.getI64IntegerAttr(e)});
      if (!expected)
        continue;
      ++numCompared;
      REQUIRE(got == *expected);
    }
    dlclose(library);
    std::remove((name + ".cu").c_str());
    std::remove((name + ".so").c_str());
  }
  CHECK(numCompared > 50); // of 72
}

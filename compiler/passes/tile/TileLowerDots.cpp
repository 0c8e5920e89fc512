// Owns how a dot becomes wgmma instructions.
#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERDOTS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

constexpr int64_t rowBytes = 128;    // of a swizzled field
constexpr int64_t instructionK = 32; // fp8 elements of K one wgmma sums

struct LowerDots : tile::impl::TileLowerDotsBase<LowerDots> {
  void runOnOperation() override {
    SmallVector<DotOp> dots;
    SmallVector<WaitOp> waits;
    getOperation().walk([&](DotOp dot) { dots.push_back(dot); });
    getOperation().walk([&](WaitOp wait) { waits.push_back(wait); });
    for (DotOp dot : dots)
      if (failed(lower(dot)))
        return signalPassFailure();
    for (WaitOp wait : waits)
      lower(wait);
  }

  /// Low word of the shared-memory descriptor of the rows from `row` on.
  Value descriptor(Code &code, Value base, Value row) {
    return code.bitOr(code.shr(code.add(base, code.mul(row, rowBytes)), 4), 0x10000);
  }

  LogicalResult lower(DotOp dot) {
    KernelOp kernel = getOperation();
    if (dot.getExact() || dot.getRowScales() || dot.getColumnScales())
      return dot.emitOpError("is scaled or exact; run tile-promote-dots first");
    auto fieldA = dot.getA().getDefiningOp<FieldOp>(), fieldB = dot.getB().getDefiningOp<FieldOp>();
    if (!fieldA || !fieldB)
      return dot.emitOpError("reads operands outside shared memory; run tile-stage-loads first");
    AccType whole = dot.getOf() ? *dot.getOf() : cast<AccType>(dot.getAcc().getType());
    std::optional<Distribution> distribution = distribute(whole, kernel.getWarpgroups());
    if (!distribution)
      return dot.emitOpError("cannot divide ")
             << whole << " over " << kernel.getWarpgroups() << " warpgroups";

    for (Operation *user : dot.getAcc().getUsers())
      if (auto promote = dyn_cast<PromoteOp>(user);
          promote && dot.getBatch() && promote.getInto().getType() != whole) {
        InFlightDiagnostic diag = dot.emitOpError("computes a batch of ")
                                  << whole << " that is promoted into "
                                  << promote.getInto().getType();
        diag.attachNote(promote.getLoc()) << "promoted here";
        return diag;
      }

    OpBuilder builder(dot);
    Code code(builder, dot.getLoc());
    Value baseA = fieldAddress(code, dot, fieldA.getSlot(), fieldA.getField());
    Value baseB = fieldAddress(code, dot, fieldB.getSlot(), fieldB.getField());
    if (!baseA || !baseB)
      return failure();
    baseA = code.add(baseA, static_cast<int64_t>(fieldA.getFrom()) * rowBytes);
    baseB = code.add(baseB, static_cast<int64_t>(fieldB.getFrom()) * rowBytes);
    StringRef typeA = isa<Float8E5M2Type>(dot.getA().getType().getElementType()) ? "e5m2" : "e4m3";
    StringRef typeB = isa<Float8E5M2Type>(dot.getB().getType().getElementType()) ? "e5m2" : "e4m3";
    int64_t begin = dot.getKBegin().value_or(0);
    int64_t steps = dot.getK() / instructionK;
    Value registers = registersOf(code, kernel, dot.getAcc());
    auto narrower = dyn_cast<FragmentType>(dot.getAcc().getType());
    const int64_t n = narrower ? narrower.getN() : distribution->n;
    int64_t first = dot.getBatch().value_or(0);
    int64_t last = dot.getBatch() ? first : distribution->fragments() - 1;

    forEachFragment(code, registers, [&](ArrayRef<OpFoldResult> fragment) {
      ptx::RegsPinOp::create(builder, dot.getLoc(), registers, fragment);
    });
    ptx::WgmmaFenceOp::create(builder, dot.getLoc());
    for (int64_t batch = first; batch <= last; ++batch) {
      Value a = code.name(descriptor(code, baseA, fragmentRow(code, kernel, *distribution, batch)),
                          "descA");
      Value b = code.name(
          descriptor(code, baseB, fragmentColumn(code, kernel, *distribution, batch)), "descB");
      SmallVector<OpFoldResult> fragment;
      if (!dot.getBatch())
        fragment.push_back(code.index(batch));
      for (int64_t step = 0; step < steps; ++step) {
        int64_t skip = (begin + step * instructionK) >> 4;
        ptx::WgmmaOp::create(builder, dot.getLoc(), registers, code.add(a, skip), code.add(b, skip),
                             code.i32(step > 0 || !dot.getFresh()), n, typeA, typeB, fragment);
      }
    }
    ptx::WgmmaCommitOp::create(builder, dot.getLoc());
    dot.erase();
    return success();
  }

  void lower(WaitOp wait) {
    OpBuilder builder(wait);
    Code code(builder, wait.getLoc());
    ptx::WgmmaWaitOp::create(builder, wait.getLoc(), wait.getPending());
    // Without the pins the compiler could move reads of the registers above the wait.
    Value registers = registersOf(code, getOperation(), wait.getAcc());
    forEachFragment(code, registers, [&](ArrayRef<OpFoldResult> fragment) {
      ptx::RegsPinOp::create(builder, wait.getLoc(), registers, fragment);
    });
    wait.erase();
  }

  void forEachFragment(Code &code, Value registers,
                       function_ref<void(ArrayRef<OpFoldResult>)> body) {
    auto type = cast<ptx::RegsType>(registers.getType());
    if (type.getRank() == 1)
      return body({});
    for (int64_t i = 0; i < type.getShape().front(); ++i)
      body({code.index(i)});
  }
};

} // namespace

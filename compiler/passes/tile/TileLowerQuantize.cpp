// Owns how values are quantized: which lane takes which elements, how magnitudes meet, what is
// stored.
#include "compiler/passes/tile/Lowering.h"

#include "llvm/Support/MathExtras.h"

#include <bit>

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERQUANTIZE
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

constexpr int64_t laneElements = 8; // one 16-byte load of 16-bit values, one 8-byte store of codes
constexpr int64_t warpElements = 32 * laneElements;
constexpr int64_t infinityBits = 0x7f800000;
constexpr int64_t largestBits = 0x7f7fffff; // of the largest finite f32

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The largest finite value of an fp8 type (OCP FP8 1.0).
float largestOf(Type fp8) { return isa<Float8E5M2Type>(fp8) ? 57344.0f : 448.0f; }

/// Rows of 16-bit or 32-bit values in global memory, eight elements a lane at a time.
class Source {
public:
  Source(Code &code, Value view) : code(code), pointer(pointerTo(code, view)) {
    auto type = cast<ViewType>(view.getType());
    element = type.getElementType();
    columns = type.getShape()[1];
    parts = type.getElementBytes() / 2;
    strideBytes = code.name(code.mul(rowStride(code, view), type.getElementBytes()), "strideBytes");
  }

  /// Elements from one row of `view` to the next, i64.
  static Value rowStride(Code &code, Value view) {
    auto type = cast<ViewType>(view.getType());
    if (type.hasLaunchStride())
      return StrideOp::create(code.builder, code.loc, code.builder.getI64Type(), view);
    return code.i64(type.getRank() == 2 ? type.getShape()[1] : 1);
  }

  int64_t getColumns() const { return columns; }

  /// Registers for `vectors` vectors.
  Value makeRegisters(int64_t vectors) {
    Value registers =
        ptx::RegsOp::create(code.builder, code.loc,
                            ptx::RegsType::get({vectors * parts, 4}, code.builder.getI32Type()));
    return code.name(registers, "values");
  }

  /// Fills vector `v` from `column` on; with zeros where `isInside` is given and false.
  void load(Value registers, Value v, Value row, Value column, Value isInside) {
    auto loadParts = [&] {
      Value offset = code.add(code.mul(code.extend(row), strideBytes),
                              code.mul(code.extend(column), 2 * parts));
      for (int64_t p = 0; p < parts; ++p)
        ptx::LdGlobalV4Op::create(code.builder, code.loc, pointer, code.add(offset, 16 * p),
                                  registers, ArrayRef<OpFoldResult>{fragment(v, p)});
    };
    if (!isInside)
      return loadParts();
    auto branch = scf::IfOp::create(code.builder, code.loc, isInside, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(code.builder);
    code.builder.setInsertionPointToStart(branch.thenBlock());
    loadParts();
    code.builder.setInsertionPointToStart(branch.elseBlock());
    for (int64_t p = 0; p < parts; ++p)
      for (int64_t word = 0; word < 4; ++word)
        code.set(registers, {fragment(v, p), code.index(word)}, code.i32(0));
  }

  /// Bits of element `i` of vector `v` as f32.
  Value bits(Value registers, Value v, int64_t i) {
    int64_t perPart = laneElements / parts, inPart = i % perPart;
    Value word = code.get(registers, {fragment(v, i / perPart), code.index(inPart * parts / 2)});
    if (element.isF32())
      return word;
    bool isHigh = inPart % 2 != 0;
    if (element.isBF16())
      return isHigh ? code.bitAnd(word, int64_t(int32_t(0xffff0000))) : shiftLeft(code, word, 16);
    Value half = isHigh ? code.shr(word, 16) : word;
    return ptx::BitsF32Op::create(code.builder, code.loc,
                                  ptx::CvtF32F16Op::create(code.builder, code.loc, half));
  }

  static Value shiftLeft(Code &code, Value value, int64_t places) {
    return code.builder.createOrFold<arith::ShLIOp>(code.loc, value, code.i32(places));
  }

private:
  OpFoldResult fragment(Value v, int64_t part) {
    Value index = code.add(code.mul(v, parts), part);
    if (auto constant = index.getDefiningOp<arith::ConstantIntOp>())
      return code.index(constant.value());
    return index;
  }

  Code &code;
  Value pointer, strideBytes;
  Type element;
  int64_t columns = 0;
  int64_t parts = 1; ///< 16-byte loads of eight elements
};

/// Magnitudes as the bits of non-negative floats, which are in the order of the floats.
class Magnitudes {
public:
  Magnitudes(Code &code, Source &source) : code(code), source(source) {}

  /// The largest magnitude in vector `v`: NaN counts as 0, an infinity as the largest finite f32.
  Value ofVector(Value registers, Value v) {
    Value largest = makeRegister("largest");
    code.set(largest, {code.index(0)}, over(registers, v, /*isFinite=*/true));
    Value isSpecial = code.less(code.i32(largestBits), code.get(largest, {code.index(0)}));
    code.onlyIf(isSpecial, [&] {
      code.set(largest, {code.index(0)}, over(registers, v, /*isFinite=*/false));
    });
    return code.get(largest, {code.index(0)});
  }

  /// The largest over `lanes` neighbouring lanes, a power of two; every lane of the warp takes
  /// part.
  Value overLanes(Value magnitude, int64_t lanes) {
    for (int64_t mask = lanes / 2; mask > 0; mask /= 2)
      magnitude = code.max(
          magnitude, ptx::ShflBflyOp::create(code.builder, code.loc, magnitude, code.i32(mask)));
    return magnitude;
  }

  Value makeRegister(StringRef name) {
    Value made = ptx::RegsOp::create(code.builder, code.loc,
                                     ptx::RegsType::get({1}, code.builder.getI32Type()));
    return code.name(made, name);
  }

private:
  Value over(Value registers, Value v, bool isFinite) {
    Value largest;
    for (int64_t i = 0; i < laneElements; ++i) {
      Value magnitude = code.bitAnd(source.bits(registers, v, i), 0x7fffffff);
      if (!isFinite) {
        Value isNan = code.less(code.i32(infinityBits), magnitude);
        magnitude = code.select(isNan, code.i32(0), code.min(magnitude, code.i32(largestBits)));
      }
      largest = largest ? code.max(largest, magnitude) : magnitude;
    }
    return largest;
  }

  Code &code;
  Source &source;
};

/// The scales of a quantization: how they come from magnitudes, and where they lie.
class Scales {
public:
  Scales(Code &code, QuantizeOp op)
      : code(code), pointer(pointerTo(code, op.getScales())), type(op.getScales().getType()),
        largest(largestOf(op.getInto().getType().getElementType())), isMnMajor(op.getMnMajor()),
        isPower(!type.getElementType().isF32()),
        packing(type.getElementType().isInteger(32) ? 4 : 1) {
    if (op.getGranule() && type.getRank() == 2)
      stride = Source::rowStride(code, op.getScales());
    if (op.getGranule())
      groups = ceilDivide(op.getFrom().getType().getShape()[1], *op.getGranule());
  }

  /// The scale of a granule whose largest magnitude has the bits `magnitude`, as f32 bits.
  Value fromMagnitude(Value magnitude) {
    Value least = code.i32(std::bit_cast<int32_t>(1e-12f));
    Value floored = ptx::FloatBitsOp::create(code.builder, code.loc, code.max(magnitude, least));
    Value quotient = ptx::DivF32Op::create(code.builder, code.loc, floored, code.f32(largest));
    Value bits = ptx::BitsF32Op::create(code.builder, code.loc, quotient);
    if (!isPower)
      return bits;
    // A fraction that is not zero carries into the exponent; a quotient is never subnormal.
    return code.bitAnd(code.add(bits, 0x7fffff), infinityBits);
  }

  /// The one scale that was given, as f32 bits.
  Value read() {
    if (!isPower)
      return ptx::BitsF32Op::create(
          code.builder, code.loc,
          ptx::LdGlobalF32Op::create(code.builder, code.loc, pointer, code.i64(0)));
    // The first of four packed scales is the first byte.
    Value exponent = ptx::LdGlobalU8Op::create(code.builder, code.loc, pointer, code.i64(0));
    Value bits = Source::shiftLeft(code, exponent, 23);
    // 0 stands for 2^-127, a subnormal, and 255 for NaN (OCP MX 1.0).
    bits = code.select(code.equal(exponent, code.i32(0)), code.i32(0x400000), bits);
    return code.select(code.equal(exponent, code.i32(255)), code.i32(0x7fffffff), bits);
  }

  /// Stores the scale with the bits `bits` at `row` and `group`.
  void store(Value bits, Value row, Value group) {
    Value offset = offsetOf(row, group);
    if (!isPower) {
      Value scale = ptx::FloatBitsOp::create(code.builder, code.loc, bits);
      ptx::StGlobalF32Op::create(code.builder, code.loc, pointer, offset, scale);
      return;
    }
    ptx::StGlobalB8Op::create(code.builder, code.loc, pointer, offset, code.shr(bits, 23));
    int64_t left = (packing - groups % packing) % packing;
    if (left == 0)
      return;
    code.onlyIf(code.equal(group, code.i32(groups - 1)), [&] {
      for (int64_t i = 1; i <= left; ++i)
        ptx::StGlobalB8Op::create(code.builder, code.loc, pointer, code.add(offset, i),
                                  code.i32(0));
    });
  }

private:
  /// Byte offset of a scale.
  Value offsetOf(Value row, Value group) {
    int64_t wordBytes = type.getElementBytes();
    if (!stride)
      return code.mul(code.extend(code.add(row, group)), wordBytes);
    Value word = code.div(group, packing);
    Value outer = isMnMajor ? word : row, inner = isMnMajor ? row : word;
    Value words = code.add(code.mul(code.extend(outer), stride), code.extend(inner));
    return code.add(code.mul(words, wordBytes), code.extend(code.rem(group, packing)));
  }

  Code &code;
  Value pointer, stride;
  ViewType type;
  float largest;
  bool isMnMajor;
  bool isPower;       ///< scales are powers of two
  int64_t packing;    ///< scales in one word
  int64_t groups = 1; ///< scales of one row
};

/// Codes on their way to global memory.
class Codes {
public:
  Codes(Code &code, Source &source, Value view)
      : code(code), source(source), pointer(pointerTo(code, view)),
        stride(Source::rowStride(code, view)),
        isE5M2(isa<Float8E5M2Type>(cast<ViewType>(view.getType()).getElementType())) {}

  /// Divides vector `v` by `scale` (f32 bits) and stores its eight codes.
  void store(Value registers, Value v, Value scale, Value row, Value column) {
    Value divisor = ptx::FloatBitsOp::create(code.builder, code.loc, scale);
    Value codes = ptx::RegsOp::create(code.builder, code.loc,
                                      ptx::RegsType::get({4}, code.builder.getI32Type()));
    code.name(codes, "codes");
    for (int64_t word = 0; word < 2; ++word) {
      Value low = pack(registers, v, 4 * word, divisor);
      Value high = pack(registers, v, 4 * word + 2, divisor);
      Value both =
          code.builder.createOrFold<arith::OrIOp>(code.loc, low, Source::shiftLeft(code, high, 16));
      code.set(codes, {code.index(word)}, both);
    }
    Value offset = code.add(code.mul(code.extend(row), stride), code.extend(column));
    ptx::StGlobalV2Op::create(code.builder, code.loc, pointer, offset, codes,
                              ArrayRef<OpFoldResult>());
  }

private:
  /// Elements `i` and `i` + 1 as two codes.
  Value pack(Value registers, Value v, int64_t i, Value divisor) {
    auto quotient = [&](int64_t element) -> Value {
      Value value =
          ptx::FloatBitsOp::create(code.builder, code.loc, source.bits(registers, v, element));
      return ptx::DivF32Op::create(code.builder, code.loc, value, divisor);
    };
    Value low = quotient(i), high = quotient(i + 1);
    if (isE5M2)
      return ptx::CvtE5m2x2F32Op::create(code.builder, code.loc, low, high);
    return ptx::CvtE4m3x2F32Op::create(code.builder, code.loc, low, high);
  }

  Code &code;
  Source &source;
  Value pointer, stride;
  bool isE5M2;
};

struct LowerQuantize : tile::impl::TileLowerQuantizeBase<LowerQuantize> {
  KernelOp kernel;

  void runOnOperation() override {
    kernel = getOperation();
    SmallVector<Operation *> ops;
    kernel.walk([&](Operation *op) {
      if (isa<AmaxOp, QuantizeOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      LogicalResult result = success();
      if (auto amax = dyn_cast<AmaxOp>(op))
        result = lower(amax);
      else if (auto quantize = cast<QuantizeOp>(op); quantize.isWideGranule())
        result = lowerWide(quantize);
      else
        lowerNarrow(quantize);
      if (failed(result))
        return signalPassFailure();
      op->erase();
    }
  }

  int64_t numWarps() { return kernel.getThreads() / 32; }

  /// A loop of `body` over `begin`, `begin` + `step`, … below `end`.
  void forEach(Code &code, Value begin, Value end, int64_t step, StringRef name,
               function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(code.builder, code.loc, begin, end, code.i32(step));
    loop->setAttr("ptx.name", code.builder.getStringAttr(name));
    OpBuilder::InsertionGuard guard(code.builder);
    code.builder.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  /// Walks the box of `op` in pieces of a row, `vectors` vectors of the warp's 256 columns each.
  /// `body` is given the loaded registers, the row, the lane's first column, and whether vector v
  /// lies inside the view (null: always).
  template <typename Op>
  void forPieces(Code &code, Op op, Source &source,
                 function_ref<void(Value registers, Value row, Value column,
                                   function_ref<Value(Value)> isInside)>
                     body) {
    int64_t vectors = op.getVectors(), columns = op.getColumns();
    int64_t span = warpElements * vectors, pieces = ceilDivide(columns, span);
    bool isWhole = columns % span == 0 && source.getColumns() % columns == 0;
    Value lane = threadValue(kernel, ThreadValue::Lane);
    Value end = code.name(code.mul(op.getRows(), pieces), "pieces");
    Value limit = columns >= source.getColumns()
                      ? code.i32(source.getColumns())
                      : code.min(code.add(op.getColumn(), columns), code.i32(source.getColumns()));
    forEach(code, threadValue(kernel, ThreadValue::Warp), end, numWarps(), "piece",
            [&](Value piece) {
              Value down = code.div(piece, pieces);
              Value across = code.sub(piece, code.mul(down, pieces));
              Value row = code.name(code.add(op.getRow(), down), "row");
              Value column = code.add(op.getColumn(), code.mul(across, span));
              column = code.name(code.add(column, code.mul(lane, laneElements)), "column");
              auto isInside = [&](Value v) {
                return isWhole ? Value() : code.less(columnOf(code, column, v), limit);
              };
              Value registers = source.makeRegisters(vectors);
              code.unroll(0, vectors, 1, [&](Value v) {
                source.load(registers, v, row, columnOf(code, column, v), isInside(v));
              });
              body(registers, row, column, isInside);
            });
  }

  static Value columnOf(Code &code, Value column, Value v) {
    return code.add(column, code.mul(v, warpElements));
  }

  void ifInside(Code &code, Value isInside, function_ref<void()> body) {
    return isInside ? code.onlyIf(isInside, body) : body();
  }

  LogicalResult lower(AmaxOp op) {
    if (!op.getSharedOffset())
      return op.emitOpError("has no shared memory to meet in; run tile-allocate-shared first");
    OpBuilder builder(op);
    Code code(builder, op.getLoc());
    Source source(code, op.getFrom());
    Magnitudes magnitudes(code, source);
    Value word = pointerTo(code, op.getWord()), at = code.i64(4 * op.getAt());
    Value total = magnitudes.makeRegister("amax");
    code.set(total, {code.index(0)}, code.i32(0));
    forPieces(code, op, source, [&](Value registers, Value, Value, function_ref<Value(Value)>) {
      code.unroll(0, op.getVectors(), 1, [&](Value v) {
        Value largest = magnitudes.ofVector(registers, v);
        code.set(total, {code.index(0)}, code.max(code.get(total, {code.index(0)}), largest));
      });
    });
    Value largest = magnitudes.overLanes(code.get(total, {code.index(0)}), 32);
    Value warp = threadValue(kernel, ThreadValue::Warp);
    Value lane = threadValue(kernel, ThreadValue::Lane);
    Value words = code.name(
        code.add(threadValue(kernel, ThreadValue::SharedBase), *op.getSharedOffset()), "words");
    auto wordOf = [&](Value index) { return code.add(words, code.mul(index, 4)); };
    code.onlyIf(code.equal(lane, code.i32(0)),
                [&] { ptx::StSharedI32Op::create(builder, op.getLoc(), wordOf(warp), largest); });
    ptx::BarSyncOp::create(builder, op.getLoc(), 0, kernel.getThreads());
    // One reduction a box: thousands on one word would wait for each other.
    code.onlyIf(code.equal(warp, code.i32(0)), [&] {
      Value known = code.min(lane, code.i32(numWarps() - 1));
      Value theirs = ptx::LdSharedI32Op::create(builder, op.getLoc(), wordOf(known));
      Value ours = magnitudes.overLanes(theirs, 32);
      code.onlyIf(code.equal(lane, code.i32(0)),
                  [&] { ptx::RedMaxGlobalI32Op::create(builder, op.getLoc(), word, at, ours); });
    });
    leaveWords(op);
    return success();
  }

  /// Granules of a few lanes, or one scale for all: a lane meets its elements once.
  void lowerNarrow(QuantizeOp op) {
    OpBuilder builder(op);
    Code code(builder, op.getLoc());
    Source source(code, op.getFrom());
    Scales scales(code, op);
    Codes codes(code, source, op.getInto());
    Magnitudes magnitudes(code, source);
    Value lane = threadValue(kernel, ThreadValue::Lane);
    int64_t granule = op.getGranule().value_or(0);
    Value known = granule == 0 ? knownScale(code, op, scales) : Value();
    forPieces(code, op, source,
              [&](Value registers, Value row, Value column, function_ref<Value(Value)> isInside) {
                code.unroll(0, op.getVectors(), 1, [&](Value v) {
                  Value scale = known;
                  if (!known) {
                    int64_t lanes = granule / laneElements;
                    Value largest = magnitudes.overLanes(magnitudes.ofVector(registers, v), lanes);
                    scale = code.name(scales.fromMagnitude(largest), "scale");
                  }
                  Value at = columnOf(code, column, v);
                  ifInside(code, isInside(v), [&] {
                    codes.store(registers, v, scale, row, at);
                    if (known)
                      return;
                    Value isFirst = code.equal(code.rem(lane, granule / laneElements), code.i32(0));
                    code.onlyIf(isFirst, [&] { scales.store(scale, row, code.div(at, granule)); });
                  });
                });
              });
  }

  /// The one scale of all elements, given or from the magnitude of all; the first box writes the
  /// latter.
  Value knownScale(Code &code, QuantizeOp op, Scales &scales) {
    if (!op.getAmax())
      return code.name(scales.read(), "scale");
    Value amax = ptx::LdGlobalI32Op::create(code.builder, code.loc, pointerTo(code, op.getAmax()),
                                            code.i64(4 * op.getAt()));
    Value scale = code.name(scales.fromMagnitude(amax), "scale");
    Value zero = code.i32(0);
    Value isFirst = code.both(code.equal(op.getRow(), zero), code.equal(op.getColumn(), zero));
    Value thread = threadValue(kernel, ThreadValue::Thread);
    code.onlyIf(code.both(isFirst, code.equal(thread, zero)),
                [&] { scales.store(scale, zero, zero); });
    return scale;
  }

  /// Granules of whole warps: `warps` of them reduce one together, then quantize what they hold, or
  /// what they read a second time where it is too much to hold.
  LogicalResult lowerWide(QuantizeOp op) {
    OpBuilder builder(op);
    Code code(builder, op.getLoc());
    int64_t granule = *op.getGranule(), warps = op.getWarps(), vectors = op.getVectors();
    if (numWarps() % warps != 0)
      return op.emitOpError("shares a granule among ")
             << warps << " warps, which do not divide the " << numWarps() << " of the block";
    if (warps > 1 && !op.getSharedOffset())
      return op.emitOpError("has no shared memory to meet in; run tile-allocate-shared first");
    Source source(code, op.getFrom());
    Scales scales(code, op);
    Codes codes(code, source, op.getInto());
    Magnitudes magnitudes(code, source);
    Value lane = threadValue(kernel, ThreadValue::Lane);
    Value warp = threadValue(kernel, ThreadValue::Warp);
    Value team = code.div(warp, warps), member = code.rem(warp, warps);
    int64_t teams = numWarps() / warps, span = warpElements * vectors * warps;
    int64_t inBox = ceilDivide(std::min<int64_t>(op.getColumns(), source.getColumns()), granule);
    Value end = code.name(code.mul(op.getRows(), inBox), "granules");

    // Every warp of the block comes as often as any other, for they meet.
    forEach(code, code.i32(0), end, teams, "round", [&](Value round) {
      Value item = code.add(round, team);
      Value down = code.div(item, inBox);
      Value row = code.name(code.add(op.getRow(), down), "row");
      Value first =
          code.add(op.getColumn(), code.mul(code.sub(item, code.mul(down, inBox)), granule));
      // The last box may reach past the view.
      Value isLive =
          code.both(code.less(item, end), code.less(first, code.i32(source.getColumns())));
      Value limit = code.min(code.add(first, granule), code.i32(source.getColumns()));
      limit = code.name(code.select(isLive, limit, code.i32(0)), "columnEnd");
      Value start =
          code.add(code.mul(member, warpElements * vectors), code.mul(lane, laneElements));
      start = code.name(code.add(first, start), "column");
      Value registers = source.makeRegisters(vectors);
      Value total = magnitudes.makeRegister("amax");
      code.set(total, {code.index(0)}, code.i32(0));
      auto load = [&](Value column) {
        code.unroll(0, vectors, 1, [&](Value v) {
          Value at = columnOf(code, column, v);
          source.load(registers, v, row, at, code.less(at, limit));
        });
      };
      auto addMagnitudes = [&] {
        code.unroll(0, vectors, 1, [&](Value v) {
          Value largest = magnitudes.ofVector(registers, v);
          code.set(total, {code.index(0)}, code.max(code.get(total, {code.index(0)}), largest));
        });
      };
      auto quantize = [&](Value column, Value scale) {
        code.unroll(0, vectors, 1, [&](Value v) {
          Value at = columnOf(code, column, v);
          code.onlyIf(code.less(at, limit), [&] { codes.store(registers, v, scale, row, at); });
        });
      };
      bool isHeld = granule <= span;
      auto forParts = [&](function_ref<void(Value)> body) {
        forEach(code, code.i32(0), code.i32(granule), span, "part",
                [&](Value part) { body(code.add(start, part)); });
      };
      if (isHeld) {
        load(start);
        addMagnitudes();
      } else {
        forParts([&](Value column) {
          load(column);
          addMagnitudes();
        });
      }
      Value largest = magnitudes.overLanes(code.get(total, {code.index(0)}), 32);
      if (warps > 1)
        largest = meet(code, op, magnitudes, largest, round, teams);
      Value scale = code.name(scales.fromMagnitude(largest), "scale");
      Value isFirst = code.both(isLive, code.equal(code.add(member, lane), code.i32(0)));
      code.onlyIf(isFirst, [&] { scales.store(scale, row, code.div(first, granule)); });
      if (isHeld) {
        quantize(start, scale);
      } else {
        forParts([&](Value column) {
          load(column);
          quantize(column, scale);
        });
      }
    });
    if (warps > 1)
      leaveWords(op);
    return success();
  }

  /// The words that warps meet in are read before the next box writes them again. At the end of a
  /// round of tile.grid_for all threads meet anyhow.
  void leaveWords(Operation *op) {
    if (!op->getNextNode() && isa<GridForOp>(op->getParentOp()))
      return;
    OpBuilder builder(op);
    ptx::BarSyncOp::create(builder, op->getLoc(), 0, kernel.getThreads());
  }

  /// The largest magnitude over the warps that share a granule. Rounds take turns with two sets of
  /// words, so one barrier a round is enough.
  Value meet(Code &code, QuantizeOp op, Magnitudes &magnitudes, Value largest, Value round,
             int64_t teams) {
    Value lane = threadValue(kernel, ThreadValue::Lane);
    Value warp = threadValue(kernel, ThreadValue::Warp);
    Value set = code.mul(code.bitAnd(code.div(round, teams), 1), 4 * numWarps());
    Value words = code.name(code.add(code.add(threadValue(kernel, ThreadValue::SharedBase), set),
                                     *op.getSharedOffset()),
                            "words");
    code.onlyIf(code.equal(lane, code.i32(0)), [&] {
      ptx::StSharedI32Op::create(code.builder, code.loc, code.add(words, code.mul(warp, 4)),
                                 largest);
    });
    ptx::BarSyncOp::create(code.builder, code.loc, 0, kernel.getThreads());
    int64_t warps = op.getWarps();
    Value neighbour = code.add(code.mul(code.div(warp, warps), warps), code.rem(lane, warps));
    Value theirs =
        ptx::LdSharedI32Op::create(code.builder, code.loc, code.add(words, code.mul(neighbour, 4)));
    return magnitudes.overLanes(theirs, warps);
  }
};

} // namespace

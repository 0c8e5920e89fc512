// Owns how the sums of blocks that share a tile meet in the first of them.
#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERREDUCE
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

constexpr int64_t vectorBytes = 16;
constexpr int64_t warpVectorBytes = 32 * vectorBytes;
constexpr int64_t warpBarrierBytes = 8;
constexpr int64_t warpRows = 16;
constexpr int64_t tokensPerVector = 8;

/// Vectors of four registers of one fragment that are sent or left out together, or one by one.
struct Run {
  int64_t fragment = 0;
  int64_t first = 0;     ///< register of the first vector's first element
  int64_t stride = 4;    ///< registers from one vector to the next
  bool isPaired = false; ///< a vector's elements are registers 0, 1, 4 and 5, not 0 to 3
  int64_t count = 0;
  Value at;         ///< row of the tile where the first vector begins
  int64_t step = 0; ///< rows from one vector to the next; 0: all begin there
};

/// A warp's elements pass from the same warp of each other block through a buffer of its own in the
/// first block's shared memory, and its barrier there counts them. The same barrier of the other
/// blocks says that the buffer is free again.
struct LowerReduce : tile::impl::TileLowerReduceBase<LowerReduce> {
  KernelOp kernel;
  /// The parity of the next exchange, by the loop over tiles that makes it.
  DenseMap<Operation *, Value> phases;

  void runOnOperation() override {
    kernel = getOperation();
    SmallVector<ReduceOp> reductions;
    kernel.walk([&](ReduceOp reduce) { reductions.push_back(reduce); });
    for (ReduceOp reduce : reductions)
      if (!reduce.getSharedOffset() || !reduce.getVectors()) {
        reduce.emitOpError("has no buffers; run tile-allocate-shared first");
        return signalPassFailure();
      }
    if (!reductions.empty())
      initBarriers(reductions.front());
    for (ReduceOp reduce : reductions)
      lower(reduce);
  }

  int64_t threads() { return 128 * kernel.getWarpgroups(); }
  int64_t blocks() { return kernel.getClusterSize(); }

  Value barriers(Code &code, ReduceOp reduce) {
    return code.add(threadValue(kernel, ThreadValue::SharedBase), *reduce.getSharedOffset());
  }

  void initBarriers(ReduceOp reduce) {
    auto tiles = reduce->getParentOfType<ForTilesOp>();
    OpBuilder builder(tiles.getScheduler().getDefiningOp());
    Code code(builder, reduce.getLoc());
    Value thread = threadValue(kernel, ThreadValue::Thread);
    Value first = barriers(code, reduce);
    code.onlyIf(code.equal(thread, code.i32(0)), [&] {
      code.unroll(0, threads() / 32, 1, [&](Value warp) {
        ptx::MbarrierInitOp::create(builder, code.loc,
                                    code.add(first, code.mul(warp, warpBarrierBytes)), code.i32(1));
      });
      ptx::FenceMbarrierInitOp::create(builder, code.loc);
    });
  }

  Value phaseOf(ForTilesOp tiles) {
    Value &phase = phases[tiles];
    if (phase)
      return phase;
    OpBuilder builder(tiles);
    Code code(builder, tiles.getLoc());
    phase = ptx::RegsOp::create(builder, code.loc, ptx::RegsType::get({1}, builder.getI32Type()));
    code.name(phase, "sumPhase");
    code.set(phase, {code.index(0)}, code.i32(0));
    return phase;
  }

  /// All vectors of a thread.
  SmallVector<Run> runsOf(Code &code, ReduceOp reduce, const Distribution &distribution) {
    SmallVector<Run> runs;
    if (reduce.getTransposed()) {
      for (int64_t f = 0; f < distribution.fragments(); ++f) {
        Value token = fragmentColumn(code, kernel, distribution, f);
        runs.push_back({f, 0, 4, false, distribution.n / 8, token, tokensPerVector});
      }
      return runs;
    }
    Value warp = code.mul(threadValue(kernel, ThreadValue::WarpInGroup), warpRows);
    // A thread's registers 4j and 4j + 1 are of one row, the next two of the eighth after it.
    const bool isPaired = distribution.n % 16 == 0;
    for (int64_t f = 0; f < distribution.fragments(); ++f) {
      Value row = code.add(fragmentRow(code, kernel, distribution, f), warp);
      if (!isPaired)
        runs.push_back({f, 0, 4, false, distribution.n / 8, row, 0});
      else
        for (int64_t down : {0, 8})
          runs.push_back({f, down / 4, 8, true, distribution.n / 16, code.add(row, down), 0});
    }
    return runs;
  }

  /// Takes the first `most` vectors off `runs`.
  static SmallVector<Run> takePiece(Code &code, SmallVectorImpl<Run> &runs, int64_t most) {
    SmallVector<Run> piece;
    while (most > 0 && !runs.empty()) {
      Run &rest = runs.front();
      Run taken = rest;
      taken.count = std::min(most, rest.count);
      most -= taken.count;
      piece.push_back(taken);
      rest.count -= taken.count;
      rest.first += taken.count * rest.stride;
      if (rest.step != 0)
        rest.at = code.add(rest.at, taken.count * rest.step);
      if (rest.count == 0)
        runs.erase(runs.begin());
    }
    return piece;
  }

  /// How many vectors of `piece` the tile's rows have.
  static Value vectorsIn(Code &code, ArrayRef<Run> piece, Value rows) {
    Value sum = code.i32(0);
    for (const Run &run : piece) {
      Value most = code.i32(run.count), none = code.i32(0);
      Value has =
          run.step == 0
              ? code.select(code.less(run.at, rows), most, none)
              : code.min(code.max(code.ceilDiv(code.sub(rows, run.at), run.step), none), most);
      sum = code.add(sum, has);
    }
    return sum;
  }

  /// Builds `body` for each vector of `piece` that the tile's rows have, given its address in the
  /// buffer at `buffer` and the indices of its registers.
  void forEach(Code &code, ArrayRef<Run> piece, Value rows, Value buffer,
               function_ref<void(Value, ArrayRef<OpFoldResult>, ArrayRef<Value>)> body) {
    int64_t before = 0;
    for (const Run &run : piece) {
      auto vectors = [&] {
        code.unroll(0, run.count, 1, [&](Value v) {
          auto vector = [&] {
            Value address =
                code.add(buffer, code.mul(code.add(v, before), threads() * vectorBytes));
            Value first = code.add(code.mul(v, run.stride), run.first);
            SmallVector<Value> registers;
            for (int64_t i = 0; i < 4; ++i)
              registers.push_back(code.add(first, run.isPaired && i > 1 ? i + 2 : i));
            body(address, {code.index(run.fragment)}, registers);
          };
          if (run.step == 0)
            return vector();
          code.onlyIf(code.less(code.add(run.at, code.mul(v, run.step)), rows), vector);
        });
      };
      if (run.step == 0)
        code.onlyIf(code.less(run.at, rows), vectors);
      else
        vectors();
      before += run.count;
    }
  }

  void lower(ReduceOp reduce) {
    OpBuilder builder(reduce);
    Code code(builder, reduce.getLoc());
    Distribution distribution = *distribute(reduce.getAcc().getType(), kernel.getWarpgroups());
    Value registers = registersOf(code, kernel, reduce.getAcc());
    Value phases = phaseOf(reduce->getParentOfType<ForTilesOp>());
    Value lane = threadValue(kernel, ThreadValue::Lane);
    Value rank = threadValue(kernel, ThreadValue::ClusterRank);
    Value warp = code.add(code.mul(threadValue(kernel, ThreadValue::Warpgroup), 4),
                          threadValue(kernel, ThreadValue::WarpInGroup));
    Value barrier =
        code.name(code.add(barriers(code, reduce), code.mul(warp, warpBarrierBytes)), "sumBarrier");
    Value thread = code.add(code.mul(warp, 32), lane);
    const int64_t barrierBytes = threads() / 32 * warpBarrierBytes;
    Value buffers = code.name(
        code.add(code.add(barriers(code, reduce), barrierBytes), code.mul(thread, vectorBytes)),
        "sumBuffers");
    const int64_t bufferBytes = *reduce.getVectors() * threads() * vectorBytes;
    auto bufferOf = [&](Value rank) {
      return code.add(buffers, code.mul(code.add(rank, -1), bufferBytes));
    };
    Value isFirst = code.equal(rank, code.i32(0));
    Value rows = reduce.getRows();
    SmallVector<Run> runs = runsOf(code, reduce, distribution);
    while (!runs.empty()) {
      SmallVector<Run> piece = takePiece(code, runs, *reduce.getVectors());
      Value vectors = code.name(vectorsIn(code, piece, rows), "vectorsToSum");
      code.onlyIf(code.less(code.i32(0), vectors), [&] {
        Value phase = code.get(phases, {code.index(0)});
        auto branch = scf::IfOp::create(builder, code.loc, isFirst, /*withElseRegion=*/true);
        {
          OpBuilder::InsertionGuard guard(builder);
          builder.setInsertionPointToStart(branch.thenBlock());
          code.onlyIf(code.equal(lane, code.i32(0)), [&] {
            ptx::MbarrierExpectTxOp::create(builder, code.loc, barrier,
                                            code.mul(vectors, warpVectorBytes * (blocks() - 1)));
          });
          ptx::SyncwarpOp::create(builder, code.loc);
          ptx::MbarrierWaitClusterOp::create(builder, code.loc, barrier, phase);
          addBuffers(code, piece, rows, registers, bufferOf);
          // Every lane has read before one of them says so to each sender.
          ptx::SyncwarpOp::create(builder, code.loc);
          Value isSender =
              code.both(code.less(code.i32(0), lane), code.less(lane, code.i32(blocks())));
          code.onlyIf(isSender, [&] {
            ptx::MbarrierArriveClusterOp::create(builder, code.loc, barrier, lane);
          });
          builder.setInsertionPointToStart(branch.elseBlock());
          // A fresh barrier counts as having completed the phase before its first.
          ptx::MbarrierWaitClusterOp::create(builder, code.loc, barrier,
                                             code.bitXor(phase, code.i32(1)));
          send(code, piece, rows, registers, barrier, bufferOf(rank));
        }
        code.set(phases, {code.index(0)}, code.bitXor(phase, code.i32(1)));
      });
    }
    reduce.erase();
  }

  /// Block by block, so that every element is summed in the order of the ranks.
  void addBuffers(Code &code, ArrayRef<Run> piece, Value rows, Value registers,
                  function_ref<Value(Value)> bufferOf) {
    OpBuilder &builder = code.builder;
    Value words =
        ptx::RegsOp::create(builder, code.loc, ptx::RegsType::get({4}, builder.getI32Type()));
    code.name(words, "sums");
    code.unroll(1, blocks(), 1, [&](Value rank) {
      forEach(code, piece, rows, bufferOf(rank),
              [&](Value address, ArrayRef<OpFoldResult> fragment, ArrayRef<Value> at) {
                ptx::LdSharedV4Op::create(builder, code.loc, address, words,
                                          ArrayRef<OpFoldResult>());
                for (auto [i, index] : llvm::enumerate(at)) {
                  Value part =
                      ptx::FloatBitsOp::create(builder, code.loc, code.get(words, {code.index(i)}));
                  Value own = code.get(registers, {fragment[0], index});
                  code.set(registers, {fragment[0], index},
                           ptx::AddF32Op::create(builder, code.loc, own, part));
                }
              });
    });
  }

  void send(Code &code, ArrayRef<Run> piece, Value rows, Value registers, Value barrier,
            Value buffer) {
    Value first = code.i32(0);
    forEach(code, piece, rows, buffer,
            [&](Value address, ArrayRef<OpFoldResult> fragment, ArrayRef<Value> at) {
              SmallVector<Value> own;
              for (Value index : at)
                own.push_back(code.get(registers, {fragment[0], index}));
              ptx::StAsyncV4F32Op::create(code.builder, code.loc, address, own[0], own[1], own[2],
                                          own[3], barrier, first);
            });
  }
};

} // namespace

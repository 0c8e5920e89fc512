// Owns the order in which a block walks the output tiles.
#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERSCHEDULER
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// Shared memory of a scheduler: the queue (two full barriers, two empty ones, two tile numbers),
/// then the boundaries of the experts.
constexpr int64_t queueBytes = 48;
constexpr int64_t queueSlots = 2;
constexpr int64_t emptyOffset = 16;
constexpr int64_t numberOffset = 32;
constexpr int64_t numberBytes = 4;

/// Registers of a walk.
enum Walk : int64_t {
  TileNumber, ///< the tile drawn last
  /// Of offsets: 0 the rows before the first expert, 1 + e expert e, E + 1 the rows after the last.
  /// Of counts: 2e the rows expert e owns, 2e + 1 the rest of its buffer.
  GroupNumber,
  Low,       ///< first row of the group
  High,      ///< row after its last
  FirstTile, ///< number of the group's first tile
  WalkSize,
};

struct LowerScheduler : tile::impl::TileLowerSchedulerBase<LowerScheduler> {
  KernelOp kernel;
  Value rows;

  void runOnOperation() override {
    kernel = getOperation();
    SmallVector<SchedulerOp> schedulers;
    kernel.walk([&](SchedulerOp op) { schedulers.push_back(op); });
    for (SchedulerOp scheduler : schedulers) {
      if (!scheduler.getSharedOffset()) {
        scheduler.emitOpError("has no shared memory; run tile-allocate-shared first");
        return signalPassFailure();
      }
      SmallVector<ForTilesOp> loops;
      for (Operation *user : scheduler.getResult().getUsers())
        loops.push_back(cast<ForTilesOp>(user));
      for (ForTilesOp loop : loops)
        lower(scheduler, loop);
      // The launch sizes its grid by the tiles there can be, and by the blocks that share one.
      Builder builder(&getContext());
      const int64_t blocks = scheduler.getCluster() == Spread::K ? kernel.getClusterSize() : 1;
      const int64_t columns = columnTiles(scheduler) * scheduler.getTileN() * blocks;
      kernel->setAttr(
          "tile.grid",
          builder.getDictionaryAttr(
              {builder.getNamedAttr("tile_m", scheduler.getTileMAttr()),
               builder.getNamedAttr("tile_n", scheduler.getTileNAttr()),
               builder.getNamedAttr("columns", blocks == 1 ? scheduler.getColumnsAttr()
                                                           : builder.getI64IntegerAttr(columns)),
               builder.getNamedAttr("experts", scheduler.getExpertsAttr())}));
      lower(scheduler);
    }
  }

  /// Brings offsets or counts to shared memory, inside [0, S] or the buffer; every thread copies
  /// some.
  void lower(SchedulerOp scheduler) {
    OpBuilder builder(scheduler);
    Location loc = scheduler.getLoc();
    Code code(builder, loc);
    if (scheduler.getCounter())
      initQueue(code, scheduler);
    if (scheduler.getIds())
      sortRows(code, kernel, scheduler);
    if (Value source = scheduler.getOffsets() ? scheduler.getOffsets() : scheduler.getCounts()) {
      int64_t entries = scheduler.getExperts() + (scheduler.getOffsets() ? 1 : 0);
      Value most = RowsOp::create(builder, loc, builder.getI32Type());
      if (scheduler.getCounts())
        most = code.name(code.div(most, scheduler.getExperts()), "bufferRows");
      Value thread = threadValue(kernel, ThreadValue::Thread);
      Value pointer = pointerTo(code, source);
      auto loop = scf::ForOp::create(builder, loc, thread, code.i32(entries),
                                     code.i32(kernel.getThreads()));
      loop->setAttr("ptx.name", builder.getStringAttr("expert"));
      builder.setInsertionPointToStart(loop.getBody());
      Value offset = code.mul(loop.getInductionVar(), 4);
      Value boundary = ptx::LdGlobalI32Op::create(builder, loc, pointer, code.extend(offset));
      Value inside = code.min(code.max(boundary, code.i32(0)), most);
      ptx::StSharedI32Op::create(builder, loc, code.add(boundaries(code, scheduler), offset),
                                 inside);
    }
    scheduler.erase();
  }

  Value boundaries(Code &code, SchedulerOp scheduler) {
    return code.add(threadValue(kernel, ThreadValue::SharedBase),
                    *scheduler.getSharedOffset() + queueBytes);
  }

  int64_t columnTiles(SchedulerOp scheduler) {
    return (scheduler.getColumns() + scheduler.getTileN() - 1) / scheduler.getTileN();
  }

  /// Tiles that the blocks of a cluster take together along a side, and blocks that walk together.
  /// What is counted, walked and drawn are sets of as many tiles: of one, where all blocks take the
  /// same.
  int64_t togetherAlong(SchedulerOp scheduler, Spread side) {
    return scheduler.getCluster() == side ? kernel.getClusterSize() : 1;
  }
  int64_t together(SchedulerOp scheduler) {
    return scheduler.getCluster() ? kernel.getClusterSize() : 1;
  }
  int64_t columnSets(SchedulerOp scheduler) {
    int64_t columns = togetherAlong(scheduler, Spread::Columns);
    return (columnTiles(scheduler) + columns - 1) / columns;
  }

  void lower(SchedulerOp scheduler, ForTilesOp loop) {
    OpBuilder builder(loop);
    Location loc = loop.getLoc();
    Code code(builder, loc);
    rows = RowsOp::create(builder, loc, builder.getI32Type());
    Value walk =
        ptx::RegsOp::create(builder, loc, ptx::RegsType::get({WalkSize}, builder.getI32Type()));
    code.name(walk, "walk");
    Value queue;
    if (scheduler.getCounter()) {
      queue = ptx::RegsOp::create(builder, loc, ptx::RegsType::get({2}, builder.getI32Type()));
      code.name(queue, "queue");
      code.set(queue, {code.index(0)}, code.i32(0));
      code.set(queue, {code.index(1)}, code.i32(0));
    }
    const bool asksAhead = queue && drawsAlone(loop);
    Value ahead;
    if (asksAhead && together(scheduler) > 1) {
      ahead = ptx::RegsOp::create(builder, loc, ptx::RegsType::get({1}, builder.getI32Type()));
      code.name(ahead, "ahead");
    }
    start(code, scheduler, walk);
    skipGroups(code, scheduler, walk);

    auto whileOp = scf::WhileOp::create(builder, loc, TypeRange(), ValueRange());
    builder.createBlock(&whileOp.getBefore());
    scf::ConditionOp::create(builder, loc, hasTile(code, scheduler, walk), ValueRange());
    Block *body = builder.createBlock(&whileOp.getAfter());
    // The counter is asked as the tile begins and its answer used when it ends.
    if (asksAhead && !ahead)
      ahead = askCounter(code, scheduler);
    else if (asksAhead)
      byFirstBlock(code, scheduler,
                   [&] { code.set(ahead, {code.index(0)}, askCounter(code, scheduler)); });
    replaceArguments(code, scheduler, walk, loop);
    body->getOperations().splice(body->end(), loop.getBody().front().getOperations());

    auto draw = [&] {
      Value next =
          queue ? drawFromQueue(code, scheduler, loop, queue, ahead)
                : code.add(code.get(walk, {code.index(TileNumber)}), walkers(code, scheduler));
      code.set(walk, {code.index(TileNumber)}, next);
      skipGroups(code, scheduler, walk);
    };
    auto nextTiles = llvm::to_vector(body->getOps<NextTileOp>());
    if (nextTiles.empty()) {
      builder.setInsertionPointToEnd(body);
      draw();
    } else {
      builder.setInsertionPoint(nextTiles.front());
      draw();
      nextTiles.front().erase();
    }
    builder.setInsertionPointToEnd(body);
    scf::YieldOp::create(builder, loc);
    loop.erase();
  }

  /// True where one thread runs the loop: a producer, which draws for the whole block.
  bool drawsAlone(Operation *loop) {
    auto role = loop->getParentOfType<RoleOp>();
    return role && role.getKind() == RoleKind::Producer;
  }

  /// How many tiles were drawn before the block's next.
  Value askCounter(Code &code, SchedulerOp scheduler) {
    return ptx::AtomAddGlobalI32Op::create(
        code.builder, code.loc, pointerTo(code, scheduler.getCounter()), code.i64(0), code.i32(1));
  }

  /// The number of the tile that was drawn after `drawn` others. One tile a block is its own
  /// without asking. Built where the number is needed: what asked for it does not wait for the
  /// answer.
  Value numberAfter(Code &code, SchedulerOp scheduler, Value drawn) {
    return code.add(drawn, walkers(code, scheduler));
  }

  /// Builds `body` for the one block of a cluster that draws for all.
  void byFirstBlock(Code &code, SchedulerOp scheduler, function_ref<void()> body) {
    if (together(scheduler) == 1)
      return body();
    Value rank = threadValue(kernel, ThreadValue::ClusterRank);
    code.onlyIf(code.equal(rank, code.i32(0)), body);
  }

  Value queueBase(Code &code, SchedulerOp scheduler) {
    return code.add(threadValue(kernel, ThreadValue::SharedBase), *scheduler.getSharedOffset());
  }

  /// The producer, or thread 0 where there is none, hands its draw to the warps that compute. In a
  /// cluster that of the first block hands it to all warps of all blocks.
  Value drawFromQueue(Code &code, SchedulerOp scheduler, ForTilesOp loop, Value queue,
                      Value ahead) {
    OpBuilder &builder = code.builder;
    Value slot = code.get(queue, {code.index(0)}), phase = code.get(queue, {code.index(1)});
    Value base = queueBase(code, scheduler);
    Value full = code.name(code.add(base, code.mul(slot, 8)), "tileFull");
    Value number = code.add(base, code.add(code.mul(slot, 4), numberOffset));
    Value one = code.i32(1);
    const bool isTogether = together(scheduler) > 1;
    auto waitEmpty = [&] {
      ptx::MbarrierWaitOp::create(builder, code.loc, code.add(full, emptyOffset),
                                  code.bitXor(phase, one));
    };
    auto push = [&](function_ref<Value()> draw) {
      if (!isTogether) {
        Value tile = draw();
        waitEmpty();
        ptx::StSharedI32Op::create(builder, code.loc, number, tile);
        ptx::MbarrierArriveOp::create(builder, code.loc, full);
        return;
      }
      // Once the slot is empty its last number has arrived: the barrier may expect the next.
      byFirstBlock(code, scheduler, waitEmpty);
      ptx::MbarrierExpectTxOp::create(builder, code.loc, full, code.i32(numberBytes));
      byFirstBlock(code, scheduler, [&] {
        Value tile = draw();
        for (int64_t rank = 0; rank < together(scheduler); ++rank)
          ptx::StAsyncI32Op::create(builder, code.loc, number, tile, full, code.i32(rank));
      });
    };
    auto pull = [&] {
      if (isTogether)
        ptx::MbarrierWaitClusterOp::create(builder, code.loc, full, phase);
      else
        ptx::MbarrierWaitOp::create(builder, code.loc, full, phase);
      return ptx::LdSharedI32Op::create(builder, code.loc, number);
    };
    auto empty = [&] {
      Value barrier = code.add(full, emptyOffset);
      if (isTogether)
        ptx::MbarrierArriveClusterOp::create(builder, code.loc, barrier, code.i32(0));
      else
        ptx::MbarrierArriveOp::create(builder, code.loc, barrier);
    };
    Value drawn;
    if (ahead) {
      // Blocks of a cluster keep it in a register, where the first writes the number back.
      push([&] {
        if (!isTogether)
          return ahead = numberAfter(code, scheduler, ahead);
        Value tile = numberAfter(code, scheduler, code.get(ahead, {code.index(0)}));
        code.set(ahead, {code.index(0)}, tile);
        return tile;
      });
      if (isTogether) {
        // Other producers are told too.
        Value rank = threadValue(kernel, ThreadValue::ClusterRank);
        code.onlyIf(code.less(code.i32(0), rank), [&] {
          code.set(ahead, {code.index(0)}, pull());
          empty();
        });
      }
      drawn = isTogether ? code.get(ahead, {code.index(0)}) : ahead;
    } else {
      if (!kernel.hasRoles()) {
        Value thread = threadValue(kernel, ThreadValue::Thread);
        code.onlyIf(code.equal(thread, code.i32(0)), [&] {
          push([&] { return numberAfter(code, scheduler, askCounter(code, scheduler)); });
        });
        ptx::SyncwarpOp::create(builder, code.loc);
      }
      // The shuffle makes the number the same in every lane for the compiler too.
      drawn = ptx::ShflIdxOp::create(builder, code.loc, pull(), code.i32(0));
      // A shuffle orders no memory: every lane has read before one of them says so.
      ptx::SyncwarpOp::create(builder, code.loc);
      Value lane = threadValue(kernel, ThreadValue::Lane);
      code.onlyIf(code.equal(lane, code.i32(0)), empty);
    }
    Value wraps = code.equal(slot, code.i32(queueSlots - 1));
    code.set(queue, {code.index(0)}, code.select(wraps, code.i32(0), code.add(slot, 1)));
    code.set(queue, {code.index(1)}, code.bitXor(phase, code.extend(wraps)));
    return drawn;
  }

  /// Thread 0 sets the queue's barriers up: one push fills a slot, every computing warp empties it.
  /// Slots of a cluster are emptied in its first block, by all its blocks and their producers.
  void initQueue(Code &code, SchedulerOp scheduler) {
    Value thread = threadValue(kernel, ThreadValue::Thread);
    Value base = queueBase(code, scheduler);
    const int64_t blocks = together(scheduler);
    const int64_t readers =
        4 * kernel.getWarpgroups() * blocks + (kernel.hasRoles() ? blocks - 1 : 0);
    code.onlyIf(code.equal(thread, code.i32(0)), [&] {
      for (int64_t slot = 0; slot < queueSlots; ++slot) {
        ptx::MbarrierInitOp::create(code.builder, code.loc, code.add(base, slot * 8), code.i32(1));
        ptx::MbarrierInitOp::create(code.builder, code.loc, code.add(base, slot * 8 + emptyOffset),
                                    code.i32(readers));
      }
      ptx::FenceMbarrierInitOp::create(code.builder, code.loc);
    });
  }

  /// Blocks, or clusters where these walk together.
  Value walkers(Code &code, SchedulerOp scheduler) {
    return code.div(ptx::GridSizeOp::create(code.builder, code.loc), together(scheduler));
  }

  void start(Code &code, SchedulerOp scheduler, Value walk) {
    Value block = ptx::BlockIndexOp::create(code.builder, code.loc);
    code.set(walk, {code.index(TileNumber)}, code.div(block, together(scheduler)));
    code.set(walk, {code.index(FirstTile)}, code.i32(0));
    if (scheduler.getCounts()) {
      code.set(walk, {code.index(GroupNumber)}, code.i32(0));
      code.set(walk, {code.index(Low)}, code.i32(0));
      code.set(walk, {code.index(High)},
               ptx::LdSharedI32Op::create(code.builder, code.loc, boundaries(code, scheduler)));
      return;
    }
    if (!scheduler.hasBoundaries()) {
      code.set(walk, {code.index(GroupNumber)}, code.i32(1));
      code.set(walk, {code.index(Low)}, code.i32(0));
      code.set(walk, {code.index(High)}, rows);
      return;
    }
    Value first = ptx::LdSharedI32Op::create(code.builder, code.loc, boundaries(code, scheduler));
    code.name(first, "firstOwned");
    if (scheduler.getZeroed()) {
      code.set(walk, {code.index(GroupNumber)}, code.i32(0));
      code.set(walk, {code.index(Low)}, code.i32(0));
      code.set(walk, {code.index(High)}, first);
      return;
    }
    Value second = ptx::LdSharedI32Op::create(code.builder, code.loc,
                                              code.add(boundaries(code, scheduler), 4));
    code.set(walk, {code.index(GroupNumber)}, code.i32(1));
    code.set(walk, {code.index(Low)}, first);
    code.set(walk, {code.index(High)}, code.max(first, second));
  }

  /// The last group that has tiles.
  int64_t lastGroup(SchedulerOp scheduler) {
    if (scheduler.getCounts())
      return 2 * scheduler.getExperts() - 1;
    return scheduler.getExperts() + (scheduler.hasBoundaries() && scheduler.getZeroed() ? 1 : 0);
  }

  Value hasTile(Code &code, SchedulerOp scheduler, Value walk) {
    Value group = code.get(walk, {code.index(GroupNumber)});
    return code.less(group, code.i32(lastGroup(scheduler) + 1));
  }

  /// Sets of tiles, one below the other, that `count` rows take.
  Value rowSets(Code &code, SchedulerOp scheduler, Value count) {
    // The last tile takes the tail, but there is one for the first row.
    if (int64_t tail = scheduler.getTail().value_or(0))
      count = code.max(code.add(count, -tail), code.min(count, code.i32(1)));
    return code.ceilDiv(count, scheduler.getTileM() * togetherAlong(scheduler, Spread::Rows));
  }

  /// Steps over groups until the drawn tile lies in the current one, or no group is left.
  void skipGroups(Code &code, SchedulerOp scheduler, Value walk) {
    OpBuilder &builder = code.builder;
    auto whileOp = scf::WhileOp::create(builder, code.loc, TypeRange(), ValueRange());
    OpBuilder::InsertionGuard guard(builder);
    auto tilesOf = [&] {
      Value count = code.sub(code.get(walk, {code.index(High)}), code.get(walk, {code.index(Low)}));
      return code.mul(rowSets(code, scheduler, count), columnSets(scheduler));
    };
    builder.createBlock(&whileOp.getBefore());
    Value end = code.add(code.get(walk, {code.index(FirstTile)}), tilesOf());
    Value isPast = code.less(code.get(walk, {code.index(TileNumber)}), end);
    Value isLater = code.bitXor(isPast, arith::ConstantIntOp::create(builder, code.loc, 1, 1));
    scf::ConditionOp::create(builder, code.loc, code.both(hasTile(code, scheduler, walk), isLater),
                             ValueRange());
    builder.createBlock(&whileOp.getAfter());
    Value base = code.add(code.get(walk, {code.index(FirstTile)}), tilesOf());
    Value group = code.name(code.add(code.get(walk, {code.index(GroupNumber)}), 1), "group");
    Value low = code.name(code.get(walk, {code.index(High)}), "low");
    code.set(walk, {code.index(FirstTile)}, base);
    code.set(walk, {code.index(GroupNumber)}, group);
    code.set(walk, {code.index(Low)}, low);
    if (scheduler.getCounts()) {
      setBufferGroup(code, scheduler, walk, group, low);
    } else if (scheduler.hasBoundaries()) {
      // Boundary E + 1 is S; past the last group the boundary is read, not used.
      Value expert = code.min(group, code.i32(scheduler.getExperts()));
      Value boundary = ptx::LdSharedI32Op::create(
          builder, code.loc, code.add(boundaries(code, scheduler), code.mul(expert, 4)));
      Value isTail = code.less(code.i32(scheduler.getExperts()), group);
      Value high = code.max(low, code.select(isTail, rows, boundary));
      code.set(walk, {code.index(High)}, high);
    }
    scf::YieldOp::create(builder, code.loc);
  }

  /// Rows of `group` where each expert has a buffer; `owned` is the end of the group before.
  void setBufferGroup(Code &code, SchedulerOp scheduler, Value walk, Value group, Value owned) {
    Value bufferRows = code.name(code.div(rows, scheduler.getExperts()), "bufferRows");
    // Past the last group a count is read, not used.
    Value expert = code.min(code.shr(group, 1), code.i32(scheduler.getExperts() - 1));
    Value first = code.mul(expert, bufferRows), end = code.add(first, bufferRows);
    Value count = ptx::LdSharedI32Op::create(
        code.builder, code.loc, code.add(boundaries(code, scheduler), code.mul(expert, 4)));
    Value isRest = code.equal(code.bitAnd(group, 1), code.i32(1));
    code.set(walk, {code.index(Low)},
             code.select(isRest, scheduler.getZeroed() ? owned : end, first));
    code.set(walk, {code.index(High)}, code.select(isRest, end, code.add(first, count)));
  }

  /// Turns the drawn tile number into expert, first row and column, rows and liveness.
  void replaceArguments(Code &code, SchedulerOp scheduler, Value walk, ForTilesOp loop) {
    int64_t tileM = scheduler.getTileM(), tileN = scheduler.getTileN();
    int64_t setM = tileM * togetherAlong(scheduler, Spread::Rows);
    int64_t setN = tileN * togetherAlong(scheduler, Spread::Columns);
    int64_t across = columnSets(scheduler), raster = scheduler.getRaster();
    Value low = code.name(code.get(walk, {code.index(Low)}), "low");
    Value high = code.name(code.get(walk, {code.index(High)}), "high");
    Value group = code.name(code.get(walk, {code.index(GroupNumber)}), "group");
    Value inGroup = code.name(
        code.sub(code.get(walk, {code.index(TileNumber)}), code.get(walk, {code.index(FirstTile)})),
        "tileInGroup");
    // `raster` row tiles share a sweep: row tiles run fastest inside it.
    Value sweep = code.div(inGroup, raster * across);
    Value inSweep = code.sub(inGroup, code.mul(sweep, raster * across));
    Value rowTilesLeft =
        code.sub(rowSets(code, scheduler, code.sub(high, low)), code.mul(sweep, raster));
    Value height = code.name(code.min(rowTilesLeft, code.i32(raster)), "sweepHeight");
    Value columnTile = raster == 1 ? inSweep : code.div(inSweep, height);
    Value rowTile = code.mul(sweep, raster);
    if (raster != 1)
      rowTile = code.add(rowTile, code.sub(inSweep, code.mul(columnTile, height)));
    Value firstRow = code.add(low, code.mul(rowTile, setM));
    Value firstColumn = code.mul(columnTile, setN);
    Value isIdle;
    if (scheduler.getCluster() && scheduler.getCluster() != Spread::K) {
      // A block past the last tile takes it too, with no rows: it loads, and stores nothing.
      Value rank = threadValue(kernel, ThreadValue::ClusterRank);
      Value &first = setM != tileM ? firstRow : firstColumn;
      first = code.add(first, code.mul(rank, setM != tileM ? tileM : tileN));
      Value last;
      if (setM != tileM)
        last =
            code.add(low, code.mul(code.add(code.ceilDiv(code.sub(high, low), tileM), -1), tileM));
      else if (columnTiles(scheduler) % together(scheduler) != 0)
        last = code.i32((columnTiles(scheduler) - 1) * tileN);
      if (last) {
        isIdle = code.name(code.less(last, first), "isIdle");
        first = code.min(first, last);
      }
    }
    code.name(firstRow, "tileRow");
    code.name(firstColumn, "tileColumn");
    Value left = code.sub(high, firstRow);
    const int64_t tail = scheduler.getTail().value_or(0);
    Value tileRows =
        tail == 0 ? code.min(left, code.i32(tileM))
                  : code.select(code.less(code.i32(tileM + tail), left), code.i32(tileM), left);
    if (isIdle)
      tileRows = code.select(isIdle, code.i32(0), tileRows);
    code.name(tileRows, "rowsInTile");
    Value expert = code.i32(0), live = arith::ConstantIntOp::create(code.builder, code.loc, 1, 1);
    if (scheduler.getCounts()) {
      expert = code.name(code.shr(group, 1), "expert");
      live = code.name(code.equal(code.bitAnd(group, 1), code.i32(0)), "isOwned");
    } else if (scheduler.hasBoundaries()) {
      Value last = code.i32(scheduler.getExperts() - 1);
      expert = code.name(code.min(code.max(code.add(group, -1), code.i32(0)), last), "expert");
      if (scheduler.getZeroed())
        live = code.name(code.both(code.less(code.i32(0), group),
                                   code.less(group, code.i32(scheduler.getExperts() + 1))),
                         "isOwned");
    }
    for (auto [argument, value] :
         llvm::zip(loop.getBody().getArguments(),
                   SmallVector<Value>{expert, firstRow, firstColumn, tileRows, live}))
      argument.replaceAllUsesWith(value);
  }
};

} // namespace

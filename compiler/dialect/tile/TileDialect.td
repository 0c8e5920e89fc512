// The `tile` dialect: how one thread block works. Types and attributes; the ops are in TileOps.td.
#ifndef MOEJIT_TILE_DIALECT
#define MOEJIT_TILE_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "mlir/IR/EnumAttr.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::moejit::tile";
  let summary = "How one thread block computes output tiles";
  let description = [{
    Roles, staged rings, tile schedulers, loads, dots, promotion and stores. A kernel starts as values (`tile.load`,
    `tile.dot`, `tile.store`); every schedule decision is a pass that rewrites it; the lowering passes turn what is
    left into `ptx`, `scf` and `arith`.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

class Tile_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::moejit::tile";
}
class Tile_EnumAttr<I32EnumAttr info, string mnemonic> : EnumAttr<Tile_Dialect, info, mnemonic>;

def Tile_Split : Tile_Enum<"Split", "Which side of an accumulator the warpgroups divide",
  [I32EnumAttrCase<"Rows", 0, "rows">, I32EnumAttrCase<"Columns", 1, "columns">]>;
def Tile_SplitAttr : Tile_EnumAttr<Tile_Split, "split">;

def Tile_RoleKind : Tile_Enum<"RoleKind", "What the warps of a role do",
  [I32EnumAttrCase<"Producer", 0, "producer">, I32EnumAttrCase<"Consumer", 1, "consumer">]>;
def Tile_RoleKindAttr : Tile_EnumAttr<Tile_RoleKind, "role_kind">;

def Tile_Order : Tile_Enum<"Order", "How blocks come by their next tile",
  [I32EnumAttrCase<"Static", 0, "static">, I32EnumAttrCase<"Queue", 1, "queue">]>;
def Tile_OrderAttr : Tile_EnumAttr<Tile_Order, "order">;

def Tile_Side : Tile_Enum<"Side", "Which side of an accumulator a scale belongs to",
  [I32EnumAttrCase<"Rows", 0, "rows">, I32EnumAttrCase<"Columns", 1, "columns">]>;
def Tile_SideAttr : Tile_EnumAttr<Tile_Side, "side">;

def Tile_Spread : Tile_Enum<"Spread", "Where the blocks of a cluster part ways: at rows or columns of tiles, or along K",
  [I32EnumAttrCase<"Rows", 0, "rows">, I32EnumAttrCase<"Columns", 1, "columns">, I32EnumAttrCase<"K", 2, "k">]>;
def Tile_SpreadAttr : Tile_EnumAttr<Tile_Spread, "spread">;

def Tile_Items : AttrDef<Tile_Dialect, "Items"> {
  let mnemonic = "items";
  let summary = "Which scale each row or column has, where that is not one after the other";
  let description = [{
    `extent` items (0: the rows of the launch) are one part; `parts` of them are stacked, or alternate item by item where
    they are `interleaved`. Inside a part, item i has scale (i + phase) / granule, rounded down; granule 0 is one scale for
    all of a part. The scales of the parts are stacked, or alternate as the items do.

    ```mlir
    #tile.items<granule = 96, extent = 320, parts = 2>
    ```
  }];
  let parameters = (ins "int64_t":$granule, "int64_t":$extent, DefaultValuedParameter<"int64_t", "0">:$phase,
                        DefaultValuedParameter<"int64_t", "1">:$parts, DefaultValuedParameter<"bool", "false">:$interleaved);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Scales of one part; 0 where the rows of the launch are a part.
    int64_t getScalesPerPart() const;
    /// True where neighbours 2i and 2i + 1, counted from an even item on, have one scale.
    bool hasPairs() const;
  }];
}

class Tile_Type<string name, string typeMnemonic> : TypeDef<Tile_Dialect, name> {
  let mnemonic = typeMnemonic;
}

class Tile_ShapedType<string name, string typeMnemonic> : Tile_Type<name, typeMnemonic> {
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    /// Bytes of one element.
    int64_t getElementBytes() const { return (getElementType().getIntOrFloatBitWidth() + 7) / 8; }
  }];
}

def Tile_View : Tile_Type<"View", "view"> {
  let summary = "A tensor in global memory, row-major; `?` is an extent known at launch";
  let description = [{
    A matrix with a `?`, or a view marked `strided`, has its rows as far apart as the launch says; any other view is packed.
    The rows of a view of three dimensions are those of the matrices it stacks, one after the other.

    ```mlir
    !tile.view<?x7168xf8E4M3FN>
    !tile.view<224x70xf32, strided>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType, DefaultValuedParameter<"bool", "false">:$strided);
  let builders = [TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType), [{
    return $_get($_ctxt, shape, elementType, false);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    /// Bytes of one element.
    int64_t getElementBytes() const { return (getElementType().getIntOrFloatBitWidth() + 7) / 8; }
    /// True where the launch says how far apart rows are.
    bool hasLaunchStride() const {
      return getStrided() || (getRank() == 2 && (::mlir::ShapedType::isDynamic(getShape()[0]) ||
                                                 ::mlir::ShapedType::isDynamic(getShape()[1])));
    }
  }];
}

def Tile_Block : Tile_ShapedType<"Block", "block"> {
  let summary = "The values of a box of a view; out-of-bounds elements read as zero";
}

def Tile_Acc : Tile_Type<"Acc", "acc"> {
  let summary = "A mutable fp32 accumulator of the whole block";
  let description = [{
    `!tile.acc<128x256>`. `columns, n = 128` says that the warpgroups divide the columns and that each holds its
    share as fragments of 64 rows by 128 columns. Without it the warpgroups divide the rows where they can.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns, "std::optional<Split>":$split, "int64_t":$n);
  let hasCustomAssemblyFormat = 1;
}

def Tile_Fragment : Tile_Type<"Fragment", "fragment"> {
  let summary = "A mutable fp32 accumulator of one warpgroup: 64 rows by n columns";
  let parameters = (ins "int64_t":$n);
  let assemblyFormat = "`<` `n` `=` $n `>`";
}

def Tile_Ring : Tile_Type<"Ring", "ring"> {
  let summary = "Slots of shared memory that loads fill and dots empty in turn";
}
def Tile_Slot : Tile_Type<"Slot", "slot"> {
  let summary = "One slot of a ring, held between acquire and publish or await and release";
}
def Tile_Scheduler : Tile_Type<"Scheduler", "scheduler"> {
  let summary = "Hands out output tiles";
}

#endif

// The `moe` dialect and its attributes. Enumerations and granules are those of runtime/Spec.h, used directly.
#ifndef MOEJIT_MOE_DIALECT
#define MOEJIT_MOE_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "mlir/IR/TensorEncoding.td"

def Moe_Dialect : Dialect {
  let name = "moe";
  let cppNamespace = "::moejit::moe";
  let summary = "What one launch of a mixture-of-experts layer computes";
  let description = [{
    Ops on ranked tensors. A scaled tensor is data and scales together: the layout of its scales is the tensor's
    encoding, `#moe.scales`, and so part of its type. Nothing here says how a result is computed.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{ void registerAttributes(); }];
}

class Moe_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Moe_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

/// An attribute that holds one enumerator of runtime/Spec.h, spelled by the functions there.
class Moe_EnumAttr<string name, string attrMnemonic> : Moe_Attr<name, attrMnemonic> {
  let parameters = (ins "::moejit::" # name:$value);
  let hasCustomAssemblyFormat = 1;
  let returnType = "::moejit::" # name;
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "::moejit::moe::" # cppClassName # "::get($_builder.getContext(), $0)";
}
def Moe_DispatchAttr : Moe_EnumAttr<"Dispatch", "dispatch"> {
  let summary = "How a row finds its expert";
}
def Moe_AccumulateAttr : Moe_EnumAttr<"Accumulate", "accumulate"> {
  let summary = "Whether sums are promoted to fp32 at least every 128 of K";
}
def Moe_SkippedAttr : Moe_EnumAttr<"Skipped", "skipped"> {
  let summary = "What happens to rows no expert owns";
}

def Moe_ScalesAttr : Moe_Attr<"Scales", "scales", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "The layout of the scales of a tensor, as its encoding";
  let description = [{
    ```mlir
    #w = #moe.scales<granule = [1, 128, 128]>
    #x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
    #e = #moe.scales<granule = [expert, *]>
    ```

    Entries, in any order; all but `granule` may be left away, and what equals its default is not printed:

    | entry | meaning | default |
    |---|---|---|
    | `granule = [1, 128]` | extent one scale covers on each dimension; `*` all of it; `expert` (rows of x) the rows of one expert | |
    | `type = f32` | type of a scale: `f32` or `f8E8M0FNU` | `f32` |
    | `source = static` | `static`: calibrated ahead; `dynamic`: computed from the live values | `static` |
    | `order = row_major` | `mn_major`: the row (or N) index is contiguous | `row_major` |
    | `align = 16` | every stride is a multiple of so many bytes | 0, packed |
    | `packing = 4` | scales in one stored word | 1 |
    | `parts = 2` | projections stacked along N, each with its own ceil-divided scale rows | 1 |
    | `interleaved` | the parts alternate row by row | stacked |
    | `phase = [0, 64]` | how far inside its first granule the tensor starts, by dimension | zeros |
  }];
  let parameters = (ins
    ArrayRefParameter<"::moejit::Granule">:$granule,
    "::moejit::ElementType":$type,
    "::moejit::ScaleSource":$source,
    "::moejit::ScaleOrder":$order,
    "int64_t":$alignBytes,
    "int64_t":$packing,
    "int64_t":$parts,
    "bool":$interleaved,
    ArrayRefParameter<"int64_t">:$phase);
  let builders = [
    AttrBuilder<(ins "const ::moejit::ScaleLayout &":$layout)>,
  ];
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The same layout as runtime/Spec.h has it. A phase of zeros is an empty one.
    ::moejit::ScaleLayout getLayout() const;
  }];
}

#endif

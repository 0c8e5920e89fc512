// Owns the parameters of a kernel: which of its views become pointers, strides and tensor maps.
#include "compiler/passes/tile/Lowering.h"

#include "llvm/ADT/StringSwitch.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOWERKERNEL
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// The identifier a launch operand has in the printed kernel; empty for unknown operands.
StringRef identifierOf(StringRef operand) {
  return llvm::StringSwitch<StringRef>(operand)
      .Case("x", "x")
      .Case("x_scales", "xScales")
      .Case("w", "w")
      .Case("w_scales", "wScales")
      .Case("offsets", "offsets")
      .Case("counts", "counts")
      .Case("expert_ids", "expertIds")
      .Case("expert_map", "expertMap")
      .Case("y", "y")
      .Case("workspace", "workspace")
      .Case("counters", "counters")
      .Case("x_quantized", "xQuantized")
      .Case("x_quantized_scales", "xQuantizedScales")
      .Case("errors", "errors")
      .Default("");
}

/// The memory of a scratch operand: bytes, and bytes for each row of the launch. Counters are zero
/// when the kernel starts.
DictionaryAttr regionOf(Builder &builder, StringRef operand, ViewType view) {
  int64_t bytes = view.getElementBytes();
  for (int64_t extent : view.getShape())
    bytes *= ShapedType::isDynamic(extent) ? 1 : extent;
  bool growsByRows = !ShapedType::isStaticShape(view.getShape());
  bool isZeroed = operand == "workspace" || operand == "counters";
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("operand", builder.getStringAttr(operand)),
       builder.getNamedAttr("bytes", builder.getI64IntegerAttr(growsByRows ? 0 : bytes)),
       builder.getNamedAttr("row_bytes", builder.getI64IntegerAttr(growsByRows ? bytes : 0)),
       builder.getNamedAttr("zeroed", builder.getBoolAttr(isZeroed))});
}

struct LowerKernel : tile::impl::TileLowerKernelBase<LowerKernel> {
  void runOnOperation() override {
    SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
    for (KernelOp kernel : kernels)
      if (failed(lower(kernel)))
        return signalPassFailure();
  }

  /// One parameter of the kernel to be, and the values in the body that it replaces.
  struct Parameter {
    Type type;
    std::string identifier;
    DictionaryAttr launch; ///< how the host binds it
    SmallVector<Value> replaces;
  };

  LogicalResult lower(KernelOp kernel) {
    Builder attributes(&getContext());
    SmallVector<Parameter> maps, pointers, strides;
    Parameter rows;
    SmallVector<Attribute> scratch;
    Type i64 = attributes.getI64Type();
    auto launchOf = [&](StringRef kind, StringRef operand, int64_t recipe = -1) {
      SmallVector<NamedAttribute> entries = {
          attributes.getNamedAttr("kind", attributes.getStringAttr(kind)),
          attributes.getNamedAttr("operand", attributes.getStringAttr(operand))};
      if (recipe >= 0)
        entries.push_back(attributes.getNamedAttr("recipe", attributes.getI64IntegerAttr(recipe)));
      return attributes.getDictionaryAttr(entries);
    };

    for (BlockArgument argument : kernel.getBody().getArguments()) {
      StringRef operand = kernel.getOperandName(argument.getArgNumber());
      StringRef identifier = identifierOf(operand);
      if (identifier.empty())
        return kernel.emitOpError("binds an argument to '")
               << operand
               << "'; known are x, x_scales, w, w_scales, offsets, counts, expert_ids, expert_map, "
                  "y and "
                  "workspace";
      if (isa<ptx::TmapType>(argument.getType())) {
        maps.push_back({argument.getType(),
                        (identifier + "Map").str(),
                        launchOf("map", operand, maps.size()),
                        {argument}});
        continue;
      }
      Parameter pointer{
          ptx::PtrType::get(&getContext()), identifier.str(), launchOf("pointer", operand), {}};
      Parameter stride{i64, (identifier + "Stride").str(), launchOf("stride", operand), {}};
      for (Operation *user : argument.getUsers()) {
        if (isa<UnrealizedConversionCastOp>(user))
          pointer.replaces.push_back(user->getResult(0));
        else if (isa<StrideOp>(user))
          stride.replaces.push_back(user->getResult(0));
        else
          return user->emitOpError("still uses a view; lower it before the kernel");
      }
      if (auto view = dyn_cast<ViewType>(argument.getType()); view && isScratchName(operand))
        scratch.push_back(regionOf(attributes, operand, view));
      if (!pointer.replaces.empty())
        pointers.push_back(pointer);
      if (!stride.replaces.empty())
        strides.push_back(stride);
    }
    kernel.walk([&](RowsOp op) { rows.replaces.push_back(op.getResult()); });
    SmallVector<Parameter> parameters = maps;
    parameters.append(pointers);
    if (!rows.replaces.empty()) {
      rows.type = attributes.getI32Type();
      rows.identifier = "rows";
      rows.launch = launchOf("rows", "");
      parameters.push_back(rows);
    }
    parameters.append(strides);
    // Two maps of one operand need two names.
    for (auto [index, parameter] : llvm::enumerate(parameters))
      for (const Parameter &earlier : ArrayRef(parameters).take_front(index))
        if (earlier.identifier == parameter.identifier)
          parameter.identifier += std::to_string(index);

    auto threads = kernel->getAttrOfType<IntegerAttr>("tile.threads");
    if (!threads)
      return kernel.emitOpError("still has roles; run tile-lower-roles first");
    OpBuilder builder(kernel);
    SmallVector<Type> types;
    SmallVector<StringRef> identifiers;
    SmallVector<Attribute> launch;
    for (const Parameter &parameter : parameters) {
      types.push_back(parameter.type);
      identifiers.push_back(parameter.identifier);
      launch.push_back(parameter.launch);
    }
    auto lowered = ptx::KernelOp::create(builder, kernel.getLoc(), kernel.getSymName(), types,
                                         identifiers, static_cast<int32_t>(threads.getInt()),
                                         static_cast<int32_t>(kernel.getClusterSize()),
                                         static_cast<int32_t>(kernel.getSharedBytes().value_or(0)),
                                         static_cast<int32_t>(kernel.getSmShare()));
    lowered->setAttr("tile.parameters", builder.getArrayAttr(launch));
    lowered->setAttr("tile.tensor_maps", kernel.getTensorMapsAttr() ? kernel.getTensorMapsAttr()
                                                                    : builder.getArrayAttr({}));
    if (!scratch.empty()) {
      // What is zeroed before the launch lies together.
      llvm::stable_sort(scratch, [](Attribute a, Attribute b) {
        auto isZeroed = [](Attribute region) {
          return cast<DictionaryAttr>(region).getAs<BoolAttr>("zeroed").getValue();
        };
        return isZeroed(a) && !isZeroed(b);
      });
      lowered->setAttr("tile.workspace", builder.getArrayAttr(scratch));
    }
    for (const char *flag : {"tile.cleans", "tile.dependent"})
      if (kernel->hasAttr(flag))
        lowered->setAttr(flag, builder.getUnitAttr());
    if (Attribute grid = kernel->getAttr("tile.grid"))
      lowered->setAttr("tile.grid", grid);

    for (auto [index, parameter] : llvm::enumerate(parameters))
      for (Value value : parameter.replaces) {
        value.replaceAllUsesWith(lowered.getBody().getArgument(index));
        if (Operation *op = value.getDefiningOp())
          op->erase();
      }
    Block &body = kernel.getBody().front();
    lowered.getEntry()->getOperations().splice(lowered.getEntry()->end(), body.getOperations());
    lowered.walk([](Operation *op) { op->removeAttr("tile.thread_value"); });
    kernel.erase();

    WalkResult left = lowered.walk([](Operation *op) {
      if (isa<TileDialect>(op->getDialect()) || isa<UnrealizedConversionCastOp>(op)) {
        op->emitOpError("is not lowered; a lowering pass is missing from the pipeline");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(left.wasInterrupted());
  }
};

} // namespace

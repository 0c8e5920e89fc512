// Launch data from attributes.
#include "compiler/LaunchDataFromKernel.h"

#include "compiler/dialect/moe/Moe.h"

#include "llvm/ADT/StringSwitch.h"

#include <fmt/format.h>

using namespace mlir;

namespace moejit {
namespace {

std::optional<Operand> operandFrom(StringRef name) {
  return llvm::StringSwitch<std::optional<Operand>>(name)
      .Case("x", Operand::X)
      .Case("x_scales", Operand::XScales)
      .Case("w", Operand::W)
      .Case("w_scales", Operand::WScales)
      .Case("offsets", Operand::Offsets)
      .Case("counts", Operand::Counts)
      .Case("expert_ids", Operand::ExpertIds)
      .Case("expert_map", Operand::ExpertMap)
      .Case("y", Operand::Y)
      .Case("workspace", Operand::Workspace)
      .Case("counters", Operand::Counters)
      .Case("x_quantized", Operand::XQuantized)
      .Case("x_quantized_scales", Operand::XQuantizedScales)
      .Case("errors", Operand::Errors)
      .Default(std::nullopt);
}

Error missing(StringRef what) {
  return {ErrorCode::Internal, fmt::format("the kernel has no launch data: {}", what.str())};
}

LaunchValue constant(int64_t value) { return {LaunchValue::Kind::Constant, value, Operand::X}; }

Result<TensorMapRecipe> recipeFrom(DictionaryAttr entry) {
  auto name = entry.getAs<StringAttr>("operand");
  auto type = entry.getAs<TypeAttr>("type");
  auto extents = entry.getAs<DenseI64ArrayAttr>("extents");
  auto strides = entry.getAs<DenseI64ArrayAttr>("strides");
  auto box = entry.getAs<DenseI64ArrayAttr>("box");
  auto swizzled = entry.getAs<BoolAttr>("swizzled");
  if (!name || !type || !extents || !strides || !box || !swizzled)
    return missing("a tensor map lacks a field");
  std::optional<Operand> operand = operandFrom(name.getValue());
  std::optional<ElementType> element = moe::elementTypeOf(type.getValue());
  if (!operand || !element)
    return missing("a tensor map of an unknown operand or type");
  TensorMapRecipe recipe;
  recipe.operand = *operand;
  recipe.type = *element;
  for (int64_t extent : extents.asArrayRef())
    recipe.extents.push_back(ShapedType::isDynamic(extent)
                                 ? LaunchValue{LaunchValue::Kind::Rows, 0, *operand}
                                 : constant(extent));
  for (int64_t stride : strides.asArrayRef())
    recipe.strideBytes.push_back(ShapedType::isDynamic(stride)
                                     ? LaunchValue{LaunchValue::Kind::StrideBytes, 0, *operand}
                                     : constant(stride));
  for (int64_t extent : box.asArrayRef())
    recipe.box.push_back(static_cast<uint32_t>(extent));
  recipe.swizzle = swizzled.getValue() ? Swizzle::B128 : Swizzle::None;
  return recipe;
}

Result<KernelParameter> parameterFrom(DictionaryAttr entry) {
  auto kind = entry.getAs<StringAttr>("kind");
  auto name = entry.getAs<StringAttr>("operand");
  if (!kind || !name)
    return missing("a parameter lacks a field");
  KernelParameter parameter;
  if (kind.getValue() == "rows") {
    parameter.kind = KernelParameter::Kind::Rows;
    return parameter;
  }
  std::optional<Operand> operand = operandFrom(name.getValue());
  if (!operand)
    return missing("a parameter of an unknown operand");
  parameter.operand = *operand;
  parameter.kind = llvm::StringSwitch<KernelParameter::Kind>(kind.getValue())
                       .Case("map", KernelParameter::Kind::TensorMap)
                       .Case("stride", KernelParameter::Kind::Stride)
                       .Default(KernelParameter::Kind::Pointer);
  if (auto recipe = entry.getAs<IntegerAttr>("recipe"))
    parameter.recipe = static_cast<uint32_t>(recipe.getInt());
  return parameter;
}

Result<WorkspaceRegion> regionFrom(DictionaryAttr entry) {
  auto name = entry.getAs<StringAttr>("operand");
  auto bytes = entry.getAs<IntegerAttr>("bytes");
  auto rowBytes = entry.getAs<IntegerAttr>("row_bytes");
  auto isZeroed = entry.getAs<BoolAttr>("zeroed");
  std::optional<Operand> operand = name ? operandFrom(name.getValue()) : std::nullopt;
  if (!operand || !bytes || !rowBytes || !isZeroed)
    return missing("a region of the workspace lacks a field");
  WorkspaceRegion region;
  region.operand = *operand;
  region.bytes = static_cast<uint64_t>(bytes.getInt());
  region.rowBytes = static_cast<uint64_t>(rowBytes.getInt());
  region.isZeroed = isZeroed.getValue();
  return region;
}

} // namespace

Result<LaunchData> launchDataFromKernel(ptx::KernelOp kernel) {
  auto parameters = kernel->getAttrOfType<ArrayAttr>("tile.parameters");
  auto maps = kernel->getAttrOfType<ArrayAttr>("tile.tensor_maps");
  auto grid = kernel->getAttrOfType<DictionaryAttr>("tile.grid");
  if (!parameters || !maps || !grid)
    return missing("tile.parameters, tile.tensor_maps or tile.grid");
  LaunchData launch;
  launch.threads = kernel.getThreads();
  launch.cluster = kernel.getCluster();
  launch.grid.blocksPerSm = kernel.getMinBlocks();
  launch.sharedBytes = kernel.getSharedBytes();
  launch.grid.tileM = grid.getAs<IntegerAttr>("tile_m").getInt();
  launch.grid.tileN = grid.getAs<IntegerAttr>("tile_n").getInt();
  launch.grid.n = grid.getAs<IntegerAttr>("columns").getInt();
  launch.grid.numExperts = grid.getAs<IntegerAttr>("experts").getInt();
  if (auto regions = kernel->getAttrOfType<ArrayAttr>("tile.workspace"))
    for (Attribute entry : regions) {
      Result<WorkspaceRegion> region = regionFrom(cast<DictionaryAttr>(entry));
      if (!region)
        return region.error();
      launch.workspace.push_back(*region);
    }
  launch.cleansWorkspace = kernel->hasAttr("tile.cleans");
  launch.dependentLaunch = kernel->hasAttr("tile.dependent");
  for (Attribute entry : maps) {
    Result<TensorMapRecipe> recipe = recipeFrom(cast<DictionaryAttr>(entry));
    if (!recipe)
      return recipe.error();
    launch.tensorMaps.push_back(*recipe);
  }
  for (Attribute entry : parameters) {
    Result<KernelParameter> parameter = parameterFrom(cast<DictionaryAttr>(entry));
    if (!parameter)
      return parameter.error();
    launch.parameters.push_back(*parameter);
  }
  return launch;
}

} // namespace moejit

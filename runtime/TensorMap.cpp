// Resolves tensor-map recipes and checks them against the limits of cuTensorMapEncodeTiled.
#include "runtime/TensorMap.h"

#include "runtime/Arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace moejit {
namespace {

constexpr int64_t maxExtent = int64_t(1) << 32;
constexpr int64_t strideLimit = int64_t(1) << 40;

Error refusal(Operand operand, std::string what, std::string note) {
  return {ErrorCode::InvalidArgument, fmt::format("{}: {}", operandName(operand), what), {note}};
}

/// The value at launch; false when a product leaves 64 bits.
bool evaluate(const Spec &spec, const LaunchValue &value, const GemmArguments &arguments,
              int64_t &result) {
  switch (value.kind) {
  case LaunchValue::Kind::Constant:
    result = value.constant;
    return true;
  case LaunchValue::Kind::Rows:
    result = arguments.rows;
    return true;
  case LaunchValue::Kind::StrideBytes:
    break;
  }
  const OperandLayout layout = operandLayout(spec, value.operand, arguments.rows);
  const int64_t elements = rowStrideElements(tensorOf(arguments, value.operand), layout);
  return !__builtin_mul_overflow(elements, layout.elementBytes, &result);
}

int64_t swizzleSpan(Swizzle swizzle) {
  switch (swizzle) {
  case Swizzle::None:
    return 0;
  case Swizzle::B32:
    return 32;
  case Swizzle::B64:
    return 64;
  case Swizzle::B128:
    break;
  }
  return 128;
}

} // namespace

Result<TensorMapValues> resolveTensorMap(const Spec &spec, const TensorMapRecipe &recipe,
                                         const GemmArguments &arguments) {
  TensorMapValues values;
  size_t rank = recipe.extents.size();
  if (rank < 1 || rank > TensorMapValues::maxRank || recipe.box.size() != rank ||
      recipe.strideBytes.size() != rank - 1)
    return Error{ErrorCode::ParseError,
                 fmt::format("the tensor map of {} has {} extents, {} strides and {} box entries",
                             operandName(recipe.operand), rank, recipe.strideBytes.size(),
                             recipe.box.size()),
                 {"a map has 1 to 5 dimensions, one stride less and as many box entries"}};
  values.operand = recipe.operand;
  values.type = recipe.type;
  values.swizzle = recipe.swizzle;
  values.rank = uint32_t(rank);
  values.address = reinterpret_cast<uint64_t>(tensorOf(arguments, recipe.operand).data);
  if (values.address % 16)
    return refusal(recipe.operand,
                   fmt::format("address {:#x} is not a multiple of 16", values.address),
                   "tensor maps take addresses that are multiples of 16 bytes");

  for (size_t i = 0; i < rank; ++i) {
    int64_t extent = 0;
    if (!evaluate(spec, recipe.extents[i], arguments, extent) || extent < 0 || extent > maxExtent)
      return refusal(recipe.operand,
                     fmt::format("extent {} of dimension {} is out of range", extent, i),
                     "tensor maps take extents from 0 to 4294967296");
    values.extents[i] = uint64_t(std::max<int64_t>(extent, 1));
    values.box[i] = recipe.box[i];
    if (recipe.box[i] < 1 || recipe.box[i] > 256)
      return refusal(recipe.operand,
                     fmt::format("box entry {} of dimension {} is out of range", recipe.box[i], i),
                     "tensor maps take boxes of 1 to 256 elements a dimension");
  }
  for (size_t i = 0; i + 1 < rank; ++i) {
    int64_t stride = 0;
    if (!evaluate(spec, recipe.strideBytes[i], arguments, stride) || stride <= 0 ||
        stride >= strideLimit)
      return refusal(
          recipe.operand,
          fmt::format("stride of {} bytes of dimension {} is out of range", stride, i + 1),
          "tensor maps take strides from 16 to below 2^40 bytes");
    if (stride % 16)
      return refusal(
          recipe.operand,
          fmt::format("stride of {} bytes of dimension {} is not a multiple of 16", stride, i + 1),
          fmt::format("tensor maps take strides that are multiples of 16 bytes; the next is {}",
                      (stride + 15) / 16 * 16));
    values.strideBytes[i] = uint64_t(stride);
  }
  int64_t innerBytes = int64_t(recipe.box[0]) * elementBytes(recipe.type);
  if (innerBytes % 16)
    return refusal(recipe.operand,
                   fmt::format("inner box of {} bytes is not a multiple of 16", innerBytes),
                   "tensor maps move whole 16-byte pieces");
  if (recipe.swizzle != Swizzle::None && innerBytes > swizzleSpan(recipe.swizzle))
    return refusal(recipe.operand,
                   fmt::format("inner box of {} bytes is wider than its swizzle of {} bytes",
                               innerBytes, swizzleSpan(recipe.swizzle)),
                   "the inner box may be as wide as the swizzle");
  return values;
}

} // namespace moejit

// Tensor maps: the numbers of a recipe at launch, and what is refused before the driver sees it.
#include "runtime/TensorMap.h"

#include "FakeDriver.h"
#include "Samples.h"
#include "runtime/Arguments.h"

#include <doctest/doctest.h>

using namespace moejit;

namespace {

GemmArguments arguments(int64_t rows, uint64_t address = 0x1000, int64_t rowStride = 0) {
  GemmArguments arguments;
  arguments.x = {reinterpret_cast<void *>(address), rowStride};
  arguments.w.data = reinterpret_cast<void *>(0x100000);
  arguments.rows = rows;
  return arguments;
}

TensorMapRecipe xRecipe() { return samples::launchData().tensorMaps[0]; }

std::string refusal(const TensorMapRecipe &recipe, const GemmArguments &given) {
  Result<TensorMapValues> values = resolveTensorMap(samples::spec(), recipe, given);
  return values ? "" : values.error().message;
}

} // namespace

TEST_CASE("a recipe takes rows, address and stride from the launch") {
  Result<TensorMapValues> x =
      resolveTensorMap(samples::spec(), xRecipe(), arguments(33, 0x1230, 528));
  REQUIRE(x);
  CHECK(x->operand == Operand::X);
  CHECK(x->rank == 2);
  CHECK(x->address == 0x1230);
  CHECK(x->extents[0] == 512);
  CHECK(x->extents[1] == 33);
  CHECK(x->strideBytes[0] == 528);
  CHECK(x->box[0] == 128);
  CHECK(x->box[1] == 64);
  CHECK(x->swizzle == Swizzle::B128);
  Result<TensorMapValues> packed = resolveTensorMap(samples::spec(), xRecipe(), arguments(33));
  REQUIRE(packed);
  CHECK(packed->strideBytes[0] == 512);
  Result<TensorMapValues> w =
      resolveTensorMap(samples::spec(), samples::launchData().tensorMaps[1], arguments(33));
  REQUIRE(w);
  CHECK(w->rank == 3);
  CHECK(w->extents[2] == 4);
  CHECK(w->strideBytes[1] == 512 * 256);
}

TEST_CASE("strides of elements wider than a byte are counted in bytes") {
  TensorMapRecipe recipe = xRecipe();
  recipe.operand = Operand::XScales;
  recipe.type = ElementType::F32;
  recipe.strideBytes = {{LaunchValue::Kind::StrideBytes, 0, Operand::XScales}};
  recipe.swizzle = Swizzle::None;
  Result<TensorMapValues> scales = resolveTensorMap(samples::spec(), recipe, arguments(101));
  REQUIRE(scales);
  CHECK(scales->strideBytes[0] == 416); // 104 scales: the next multiple of 16 bytes
}

// The driver refuses extents of 0. A launch of no rows launches nothing, but its map must encode.
TEST_CASE("an extent of no rows becomes one") {
  Result<TensorMapValues> empty = resolveTensorMap(samples::spec(), xRecipe(), arguments(0));
  REQUIRE(empty);
  CHECK(empty->extents[1] == 1);
}

TEST_CASE("what cuTensorMapEncodeTiled would refuse is refused by name") {
  CHECK(refusal(xRecipe(), arguments(33, 0x1008)) == "x: address 0x1008 is not a multiple of 16");
  CHECK(refusal(xRecipe(), arguments(33, 0x1000, 520)) ==
        "x: stride of 520 bytes of dimension 1 is not a multiple of 16");
  CHECK(refusal(xRecipe(), arguments(33, 0x1000, int64_t(1) << 40)) ==
        "x: stride of 1099511627776 bytes of dimension 1 is out of range");
  TensorMapRecipe recipe = xRecipe();
  recipe.box[0] = 257;
  CHECK(refusal(recipe, arguments(33)) == "x: box entry 257 of dimension 0 is out of range");
  recipe.box[0] = 120;
  CHECK(refusal(recipe, arguments(33)) == "x: inner box of 120 bytes is not a multiple of 16");
  recipe.box[0] = 144;
  CHECK(refusal(recipe, arguments(33)) ==
        "x: inner box of 144 bytes is wider than its swizzle of 128 bytes");
  recipe = xRecipe();
  recipe.extents[0].constant = (int64_t(1) << 32) + 1;
  CHECK(refusal(recipe, arguments(33)) == "x: extent 4294967297 of dimension 0 is out of range");
  recipe.extents[0].constant = -1;
  CHECK(refusal(recipe, arguments(33)) == "x: extent -1 of dimension 0 is out of range");
  recipe = xRecipe();
  recipe.extents.resize(6);
  recipe.box.resize(6, 1);
  recipe.strideBytes.resize(5);
  CHECK(refusal(recipe, arguments(33)) ==
        "the tensor map of x has 6 extents, 5 strides and 6 box entries");
}

TEST_CASE("the driver is asked in its own words") {
  samples::FakeDriver driver;
  samples::installFakeDriver(driver);
  Result<TensorMapValues> values =
      resolveTensorMap(samples::spec(), xRecipe(), arguments(33, 0x1230, 528));
  REQUIRE(values);
  Result<TensorMapBytes> bytes = encodeTensorMap(driver.api, *values);
  REQUIRE(bytes);
  CHECK(bytes->words[0] == 0xabc1);
  REQUIRE(driver.encoded.size() == 1);
  const auto &encoded = driver.encoded[0];
  CHECK(encoded.type == 0); // CU_TENSOR_MAP_DATA_TYPE_UINT8
  CHECK(encoded.address == 0x1230);
  CHECK(encoded.extents == std::vector<uint64_t>{512, 33});
  CHECK(encoded.strideBytes == std::vector<uint64_t>{528});
  CHECK(encoded.box == std::vector<uint32_t>{128, 64});
  CHECK(encoded.swizzle == 3); // CU_TENSOR_MAP_SWIZZLE_128B

  driver.encodeStatus = 1;
  Result<TensorMapBytes> refused = encodeTensorMap(driver.api, *values);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::DriverError);
  CHECK(refused.error().message.find("cuTensorMapEncodeTiled") != std::string::npos);
  CHECK(refused.error().notes[0].find("operand is x") != std::string::npos);
}

TEST_CASE("element types have the driver's numbers") {
  samples::FakeDriver driver;
  samples::installFakeDriver(driver);
  const std::pair<ElementType, int> expected[] = {
      {ElementType::F8E4M3FN, 0}, {ElementType::F8E5M2, 0}, {ElementType::F8E8M0FNU, 0},
      {ElementType::I32, 3},      {ElementType::F16, 6},    {ElementType::F32, 7},
      {ElementType::BF16, 9}};
  for (auto [type, number] : expected) {
    TensorMapValues values;
    values.type = type;
    values.rank = 1;
    REQUIRE(encodeTensorMap(driver.api, values));
    CHECK(driver.encoded.back().type == number);
  }
}

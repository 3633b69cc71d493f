// The device's kernels of quantised tensors, byte for byte as the reference: the same cases as the processor's vector kernels, and those that only these take.

#include <gtest/gtest.h>

#include "tests/gpu/on_device.h"
#include "tests/kernels/quant_cases.h"

namespace serin::kernels::test {
namespace {

using quant::bytes, quant::number, quant::scales, quant::zero;
constexpr DType kU8 = DType::kUInt8, kS8 = DType::kInt8;

void agree(const Case& c, Tolerance tolerance) { expect_agrees(c, tolerance); }
/// As if no weight were known at load.
void agree_computed(Case c, Tolerance tolerance) {
  c.constants = 0;
  expect_agrees(c, tolerance);
}

TEST(DeviceQuant, Convolutions) { quant::for_convolutions(agree); }
TEST(DeviceQuant, ConvolutionsOfComputedWeights) { quant::for_convolutions(agree_computed); }
TEST(DeviceQuant, ConvolutionsWithWhatFollows) { quant::for_convolutions_with_what_follows(agree); }
TEST(DeviceQuant, Products) { quant::for_products(agree); }
TEST(DeviceQuant, ProductsOfComputedWeights) { quant::for_products(agree_computed); }
TEST(DeviceQuant, ProductsThatQuantiseFirst) { quant::for_products_that_quantise_first(agree); }
TEST(DeviceQuant, BetweenFloatsAndBytes) { quant::for_floats_and_bytes(agree); }
TEST(DeviceQuant, SumsAndPools) { quant::for_sums_and_pools(agree); }
TEST(DeviceQuant, ProductsOfFewBits) { quant::for_products_of_few_bits(agree); }

TEST(DeviceQuant, IntegerProductsWithAnyZeroPoints) {
  for (const DType a : {kU8, kS8}) {
    for (const DType b : {kU8, kS8}) {
      for (const int64_t k : {1, 16, 77, 130}) {
        const Output y{DType::kInt32, {9, 70}};
        expect_agrees({.op = Generic{"MatMulInteger", {}}, .inputs = {bytes(a, {9, k}, 1), bytes(b, {k, 70}, 2)}, .outputs = {y}});
        expect_agrees({.op = Generic{"MatMulInteger", {}},
                       .inputs = {bytes(a, {9, k}, 1), bytes(b, {k, 70}, 2), bytes(a, {9}, 3), bytes(b, {70}, 4)},
                       .outputs = {y},
                       .constants = 0b1010});
      }
      expect_agrees({.op = Generic{"MatMulInteger", {}},
                     .inputs = {bytes(a, {3, 5, 20}, 1), bytes(b, {3, 20, 7}, 2), zero(a, 3), zero(b, 5)},
                     .outputs = {{DType::kInt32, {3, 5, 7}}}});
      expect_agrees({.op = Generic{"QLinearMatMul", {}},
                     .inputs = {bytes(a, {9, 33}, 1), number(0.02f), zero(a, 11), bytes(b, {33, 70}, 2), scales(70), bytes(b, {70}, 4),
                                number(0.5f), zero(a, 7)},
                     .outputs = {{a, {9, 70}}},
                     .constants = 0b101000});
    }
  }
}

TEST(DeviceQuant, ConvolutionsWithChannelsFirst) {
  Attributes window;
  window.set("strides", std::vector<int64_t>{2, 1});
  window.set("dilations", std::vector<int64_t>{1, 2});
  window.set("pads", std::vector<int64_t>{1, 2, 0, 1});
  for (const int64_t group : {1, 3}) {
    window.set("group", group);
    for (const DType dtype : {kU8, kS8}) {
      expect_agrees({.op = Generic{"ConvInteger", window},
                     .inputs = {bytes(dtype, {2, 6, 9, 11}, 1), bytes(kS8, {9, 6 / group, 3, 3}, 2), zero(dtype, 17), bytes(kS8, {9}, 3)},
                     .outputs = {{DType::kInt32, {2, 9, 4, 10}}}});
      expect_agrees({.op = Generic{"QLinearConv", window},
                     .inputs = {bytes(dtype, {2, 6, 9, 11}, 1), number(0.02f), zero(dtype, 17), bytes(kU8, {9, 6 / group, 3, 3}, 2),
                                scales(9), bytes(kU8, {9}, 3), number(0.3f), zero(dtype, 5)},
                     .outputs = {{dtype, {2, 9, 4, 10}}},
                     .constants = 0b1000});
    }
  }
}

TEST(DeviceQuant, OneScaleForEachIndexOrBlock) {
  Attributes axis, blocks;
  axis.set("axis", int64_t{1});
  blocks.set("axis", int64_t{1});
  blocks.set("block_size", int64_t{4});
  const auto check = [](const Attributes& attributes, const Shape& parameters) {
    const Tensor scale = random_integers(kF32, parameters, 2, 1, 9);
    for (const DType dtype : {kU8, kS8, DType::kInt16, DType::kUInt16}) {
      const Tensor zeros = random_integers(dtype, parameters, 3, 0, 9);
      expect_agrees({.op = Generic{"QuantizeLinear", attributes},
                     .inputs = {random_tensor({3, 10, 5}, 1, 99.f), scale, zeros},
                     .outputs = {{dtype, {3, 10, 5}}}},
                    {0, 0});
      expect_agrees({.op = Generic{"DequantizeLinear", attributes},
                     .inputs = {random_integers(dtype, {3, 10, 5}, 1, 0, 100), scale, zeros},
                     .outputs = {{kF32, {3, 10, 5}}}},
                    {0, 0});
    }
    expect_agrees({.op = Generic{"DequantizeLinear", attributes},
                   .inputs = {random_integers(DType::kInt32, {3, 10, 5}, 1, -70000, 70000), scale},
                   .outputs = {{kF32, {3, 10, 5}}}},
                  {0, 0});
  };
  check(axis, {10});
  check(blocks, {3, 3, 5});
}

TEST(DeviceQuant, FindsTheScaleOfAll) {
  for (const int64_t n : {1, 300, 70001}) {
    expect_agrees({.op = Generic{"DynamicQuantizeLinear", {}},
                   .inputs = {random_tensor({n}, 1, 3.f)},
                   .outputs = {{kU8, {n}}, {kF32, {}}, {kU8, {}}}},
                  {0, 0});
  }
}

TEST(DeviceQuant, LooksUp) {
  for (const DType dtype : {kU8, kS8})
    expect_agrees(
        {.op = Generic{"QuantizedLookup", {}}, .inputs = {bytes(dtype, {5003}, 1), bytes(kU8, {256}, 2)}, .outputs = {{dtype, {5003}}}});
}

TEST(DeviceQuant, SumsOfWhatIsBroadcast) {
  expect_agrees({.op = Generic{"QuantizedBinary", {}},
                 .inputs = {bytes(kU8, {4, 1, 7}, 1), number(0.02f), zero(kU8, 3), bytes(kS8, {5, 1}, 2), number(0.03f), zero(kS8, -20),
                            number(0.05f), zero(kU8, 100)},
                 .outputs = {{kU8, {4, 5, 7}}}},
                {0, 0});
}

}  // namespace
}  // namespace serin::kernels::test

// Vector kernels of quantised tensors against the reference, byte for byte, on every instruction set that this machine has.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/quant_cases.h"

namespace serin::kernels::test {
namespace {

class Quant : public EveryIsa {
 protected:
  auto match() {
    return [](const Case& c, Tolerance tolerance) {
      const auto rows = expect_rows_match_reference(backend(GetParam()), c, tolerance);
      EXPECT_EQ(rows.size(), 1U) << c.str();
    };
  }
};
SERIN_ON_EVERY_ISA(Quant);

TEST_P(Quant, Convolutions) { quant::for_convolutions(match()); }
TEST_P(Quant, ConvolutionsWithWhatFollows) { quant::for_convolutions_with_what_follows(match()); }
TEST_P(Quant, Products) { quant::for_products(match()); }
TEST_P(Quant, WeightsOfSevenBits) { quant::for_weights_of_seven_bits(match()); }
TEST_P(Quant, ProductsThatQuantiseFirst) { quant::for_products_that_quantise_first(match()); }
TEST_P(Quant, BetweenFloatsAndBytes) { quant::for_floats_and_bytes(match()); }
TEST_P(Quant, SumsAndPools) { quant::for_sums_and_pools(match()); }
TEST_P(Quant, ProductsOfFewBits) { quant::for_products_of_few_bits(match()); }

TEST_P(Quant, ProductsThatQuantiseEachRowFirst) {
  using namespace quant;
  for (const int64_t m : {1, 7, 200}) {
    for (const int64_t k : {5, 64}) {
      for (const bool bias : {true, false}) {
        Case c{.op = Generic{"DynamicQuantizeMatMul", {}},
               .inputs = {random_tensor({2, m, k}, 1), bytes(kS8, {k, 70}, 2), scales(70), zero(kS8, 0),
                          bias ? random_tensor({70}, 3) : absent()},
               .outputs = {{kF32, {2, m, 70}}},
               .constants = bias ? 0x1eU : 0xeU};
        Attributes& attributes = std::get<Generic>(c.op).attributes;
        attributes.set("by_row", int64_t{1});
        auto* x = c.inputs[0].view().as<float>();
        for (int64_t row = 0; row < 2 * m; ++row)  // from all negative to all positive, of sizes that are far apart; the last one zero
          for (int64_t i = 0; i < k; ++i)
            x[row * k + i] =
                (x[row * k + i] + static_cast<float>(row % 5) - 2) * (row + 1 == 2 * m ? 0.f : std::exp2(static_cast<float>(row % 9)));
        match()(c, Tolerance{1e-5, 1e-5});
        attributes.set("activation", std::string("Relu"));
        match()(c, Tolerance{1e-5, 1e-5});
      }
    }
  }
}

TEST_P(Quant, Tables) {
  using namespace quant;
  for (const int64_t n : {1, 7, 8, 63, 64, 65, 1000, 70000}) {
    for (const DType dtype : {kU8, kS8})
      match()({.op = Generic{"QuantizedLookup", {}},
               .inputs = {bytes(dtype, {n}, 1), bytes(kU8, {256}, 2)},
               .outputs = {{kU8, {n}}},
               .constants = 2},
              {0, 0});
  }
}

TEST_P(Quant, SumsAndProductsWithARowOrANumber) {
  using namespace quant;
  for (const int64_t channels : {1, 16, 19, 100}) {
    const Shape image{3, 5, 7, channels};
    for (const Shape& row : {Shape{3, 1, 1, channels}, Shape{channels}, Shape{1, 1, channels}, Shape{}, Shape{1, 1}}) {
      for (const char* function : {"Add", "Mul"}) {
        for (const bool swapped : {true, false}) {
          Attributes attributes;
          attributes.set("function", std::string(function));
          match()({.op = Generic{"QuantizedBinary", attributes},
                   .inputs = {bytes(kU8, swapped ? row : image, 1), number(0.02f), zero(kU8, 113), bytes(kS8, swapped ? image : row, 2),
                              number(0.03f), zero(kS8, -9), number(0.07f), zero(kU8, 100)},
                   .outputs = {{kU8, image}},
                   .constants = 0xf6},
                  {0, 0});
        }
      }
    }
  }
}

}  // namespace
}  // namespace serin::kernels::test

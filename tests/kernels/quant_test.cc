// Vector kernels of quantised tensors against the reference, byte for byte, on every instruction set that this machine has.

#include <gtest/gtest.h>

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
TEST_P(Quant, ProductsThatQuantiseFirst) { quant::for_products_that_quantise_first(match()); }
TEST_P(Quant, BetweenFloatsAndBytes) { quant::for_floats_and_bytes(match()); }
TEST_P(Quant, SumsAndPools) { quant::for_sums_and_pools(match()); }
TEST_P(Quant, ProductsOfFewBits) { quant::for_products_of_few_bits(match()); }

}  // namespace
}  // namespace serin::kernels::test

// Vector kernels of quantised tensors against the reference, byte for byte, on every instruction set that this machine has.

#include <gtest/gtest.h>

#include "tests/kernels/harness.h"
#include "tests/kernels/quant_cases.h"

namespace serin::kernels::test {
namespace {

class Quant : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  auto match() {
    return [](const Case& c, Tolerance tolerance) {
      const auto rows = expect_rows_match_reference(backend(GetParam()), c, tolerance);
      EXPECT_EQ(rows.size(), 1U) << c.str();
    };
  }
};
INSTANTIATE_TEST_SUITE_P(Isa, Quant, testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

TEST_P(Quant, Convolutions) { quant::for_convolutions(match()); }
TEST_P(Quant, ConvolutionsWithWhatFollows) { quant::for_convolutions_with_what_follows(match()); }
TEST_P(Quant, Products) { quant::for_products(match()); }
TEST_P(Quant, ProductsThatQuantiseFirst) { quant::for_products_that_quantise_first(match()); }
TEST_P(Quant, BetweenFloatsAndBytes) { quant::for_floats_and_bytes(match()); }
TEST_P(Quant, SumsAndPools) { quant::for_sums_and_pools(match()); }
TEST_P(Quant, ProductsOfFewBits) { quant::for_products_of_few_bits(match()); }

}  // namespace
}  // namespace serin::kernels::test

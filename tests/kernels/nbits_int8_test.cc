// Products of weights of 4 bits with activations that are rounded to 8 (MatMulNBits, accuracy_level 4), against the reference, which rounds nothing.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/kernels/harness.h"

namespace serin::kernels::test {
namespace {

Tensor bytes(const Shape& shape, uint32_t seed) { return random_integers(DType::kUInt8, shape, seed, 0, 255); }

Case few_bits(int64_t block, int64_t rows, int64_t k, int64_t n, const Tensor& x) {
  const int64_t blocks = (k + block - 1) / block;
  Attributes attributes;
  for (const auto& [key, value] :
       {std::pair("K", k), std::pair("N", n), std::pair("block_size", block), std::pair("accuracy_level", int64_t{4})})
    attributes.set(key, value);
  return {.op = Generic{"MatMulNBits", attributes},
          .inputs = {x, bytes({n, blocks, block / 2}, 2), random_tensor({n * blocks}, 3), bytes({n * ((blocks + 1) / 2)}, 4)},
          .outputs = {{kF32, {rows, n}}},
          .constants = 0xe};
}

void expect_match(const Case& c, Tolerance tolerance) { expect_rows_match_reference(backend(best_isa()), c, tolerance); }

template <class F>
void for_sizes(F&& f) {
  for (const int64_t block : {32, 64, 128}) {
    for (const int64_t rows : {1, 4, 7, 20}) {
      for (const int64_t k : {32, 96, 640, 1056}) f(block, rows, k);
    }
  }
}

/// 127 in each block makes 1 the step between them.
TEST(NBitsInt8, WholeNumbersAreNotRounded) {
  for_sizes([](int64_t block, int64_t rows, int64_t k) {
    Tensor x = random_integers(kF32, {rows, k}, 1, -126, 126);
    for (int64_t i = 0; i < rows * k; i += 32) x.view().as<float>()[i] = 127;
    expect_match(few_bits(block, rows, k, 31, x), {1e-4, 1e-5});
  });
}

TEST(NBitsInt8, OthersAreRoundedToAPartOfTheLargestInTheirBlock) {
  for_sizes(
      [](int64_t block, int64_t rows, int64_t k) { expect_match(few_bits(block, rows, k, 31, random_tensor({rows, k}, 1)), {0, 2e-2}); });
}

TEST(NBitsInt8, NanStaysAndZerosAreZero) {
  Tensor x = random_tensor({3, 64}, 1);
  x.view().as<float>()[40] = std::numeric_limits<float>::quiet_NaN();
  std::fill_n(x.view().as<float>() + 128, 64, 0.f);
  expect_match(few_bits(32, 3, 64, 9, x), {0, 2e-2});
}

}  // namespace
}  // namespace serin::kernels::test

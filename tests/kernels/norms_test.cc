// The vector kernels of norms and activations against the reference, on every instruction set.

#include <gtest/gtest.h>

#include "tests/kernels/every_isa.h"

namespace serin::kernels::test {
namespace {

Attributes with(std::initializer_list<std::pair<std::string, Attribute>> values) {
  Attributes attributes;
  for (const auto& [key, value] : values) attributes.set(key, value);
  return attributes;
}

Case one(std::string name, Attributes attributes, std::vector<Tensor> inputs) {
  const Shape y = inputs[0].shape();
  return {.op = Generic{std::move(name), std::move(attributes)}, .inputs = std::move(inputs), .outputs = {{DType::kFloat32, y}}};
}

class Norms : public EveryIsa {
 protected:
  static void expect_agrees(const Case& c, Tolerance tolerance = {1e-5, 1e-6}) { expect_match(c, tolerance); }
};

TEST_P(Norms, Instance) {
  for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1, 4, 33}, Shape{3, 1, 2, 2, 100}}) {
    expect_agrees(one("InstanceNormalization", with({{"epsilon", 0.01}}),
                      {random_tensor(shape, 1), random_tensor({shape[1]}, 2), random_tensor({shape[1]}, 3)}));
  }
}

TEST_P(Norms, GroupFarFromZero) {
  Tensor x = random_tensor({2, 8, 9, 31}, 1);
  for (float& value : x.view().span<float>()) value += 100;
  expect_agrees(one("GroupNormalization", with({{"num_groups", int64_t{4}}}), {x, random_tensor({8}, 2), random_tensor({8}, 3)}),
                {1e-4, 1e-5});
}

TEST_P(Norms, MeanVariance) {
  Tensor x = random_tensor({3, 5, 7, 9}, 1);
  for (float& value : x.view().span<float>()) value += 10;
  expect_agrees(one("MeanVarianceNormalization", {}, {x}), {1e-5, 1e-5});
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{2, -1}, {3}, {0, 1, 2, 3}, {0, 3}})
    expect_agrees(one("MeanVarianceNormalization", with({{"axes", axes}}), {x}), {1e-5, 1e-5});
}

TEST_P(Norms, RootMeanSquare) {
  for (const int64_t axis : {-1, 1}) {
    const Shape scale = axis == 1 ? Shape{5, 67} : Shape{67};
    expect_agrees(one("RMSNormalization", with({{"axis", axis}}), {random_tensor({19, 5, 67}, 1), random_tensor(scale, 2)}));
  }
}

TEST_P(Norms, LocalResponse) {
  for (const int64_t size : {1, 4, 5, 30}) {
    expect_agrees(one("LRN", with({{"size", size}, {"alpha", 0.3}, {"bias", 2.0}}), {random_tensor({2, 11, 17, 19}, 1)}));
  }
}

TEST_P(Norms, PReluOfEachForm) {
  const Tensor x = random_tensor({2, 6, 5, 7}, 1);
  expect_agrees(one("PRelu", {}, {x, random_tensor({6, 1, 1}, 2)}));
  expect_agrees(one("PRelu", {}, {x, random_tensor({1}, 2)}));
  expect_agrees(one("PRelu", {}, {x, random_tensor({1, 6, 1, 1}, 2)}));
  expect_agrees(one("PRelu", {}, {special_values({4, 9}), random_tensor({1}, 3)}));
}

TEST_P(Norms, ModOfFloatsIsExact) {
  const Case few{.op = Binary{BinaryFn::kFMod},
                 .inputs = {special_values({1, 60}), special_values({60, 1})},
                 .outputs = {{DType::kFloat32, {60, 60}}}};
  expect_agrees(few, {0, 0});
  for (const float scale : {1e-30f, 1e-3f, 1.f, 1e9f, 1e30f}) {
    Tensor whole = random_integers(DType::kFloat32, {5000}, 1), tenths = random_tensor({5000}, 2, scale);
    expect_agrees({.op = Binary{BinaryFn::kFMod}, .inputs = {tenths, random_tensor({5000}, 3)}, .outputs = {{DType::kFloat32, {5000}}}},
                  {0, 0});
    expect_agrees({.op = Binary{BinaryFn::kFMod}, .inputs = {whole, tenths}, .outputs = {{DType::kFloat32, {5000}}}}, {0, 0});
  }
}

TEST_P(Norms, BinaryOnIntegersAndBool) {
  const std::pair<Shape, Shape> shapes[] = {{{3, 37}, {3, 37}}, {{3, 37}, {37}}, {{3, 1}, {1, 37}}, {{1}, {5, 9}}, {{0, 4}, {4}}};
  for (const DType dtype : {DType::kInt8, DType::kUInt8, DType::kInt32, DType::kInt64, DType::kBool}) {
    for (const auto& [a, b] : shapes) {
      for (int fn = 0; fn <= static_cast<int>(BinaryFn::kXor); ++fn) {
        const auto op = static_cast<BinaryFn>(fn);
        const bool logical = op >= BinaryFn::kAnd, answers_bool = logical || is_compare(op);
        if (logical != (dtype == DType::kBool) || op == BinaryFn::kPow || op == BinaryFn::kFMod) continue;
        const Shape y = a.elements() == 0 ? a : a.rank() < b.rank() || a == Shape{1} ? b : Shape{3, 37};
        expect_agrees({.op = Binary{op},
                       .inputs = {random_integers(dtype, a, 1), random_integers(dtype, b, 2)},
                       .outputs = {{answers_bool ? DType::kBool : dtype, y}}});
      }
    }
  }
}

TEST_P(Norms, PowersOfFloats) {
  expect_agrees({.op = Binary{BinaryFn::kPow},
                 .inputs = {special_values({5, 40}), random_tensor({40}, 1, 3.f)},
                 .outputs = {{DType::kFloat32, {5, 40}}}});
}

SERIN_ON_EVERY_ISA(Norms);

}  // namespace
}  // namespace serin::kernels::test

// Vector kernels of image operators and of those that move elements, against the reference, on every instruction set that this machine has.

#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/harness.h"

namespace serin::kernels::test {
namespace {

class Images : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  void expect_match(const Case& c, Tolerance tolerance = {}) { expect_rows_match_reference(backend(GetParam()), c, tolerance); }
};
INSTANTIATE_TEST_SUITE_P(Isa, Images, testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

constexpr DType kF32 = DType::kFloat32;
using Integers = std::vector<int64_t>;

Tensor absent() { return {DType::kUndefined, Shape{0}}; }

Case resize(const std::string& mode, const std::string& coordinates, const Shape& x, int64_t height, int64_t width,
            bool antialias = false) {
  Generic op{"Resize", {}};
  op.attributes.set("mode", mode);
  op.attributes.set("coordinate_transformation_mode", coordinates);
  op.attributes.set("axes", Integers{-2, -1});
  op.attributes.set("antialias", int64_t{antialias});
  Shape y = x;
  y[x.rank() - 2] = height, y[x.rank() - 1] = width;
  const Tensor sizes({2}, Integers{height, width});
  return {.op = op, .inputs = {random_tensor(x, 1), absent(), absent(), sizes}, .outputs = {{kF32, y}}};
}

TEST_P(Images, ResizeLargerAndSmallerOnEitherAxis) {
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    for (const std::string coordinates : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
      SCOPED_TRACE(mode + " " + coordinates);
      expect_match(resize(mode, coordinates, {2, 3, 5, 7}, 10, 14), {1e-5, 1e-6});
      expect_match(resize(mode, coordinates, {1, 2, 9, 33}, 4, 70), {1e-5, 1e-6});
      expect_match(resize(mode, coordinates, {3, 8, 16}, 8, 16), {1e-5, 1e-6});
      expect_match(resize(mode, coordinates, {6, 5}, 6, 1), {1e-5, 1e-6});
      expect_match(resize(mode, coordinates, {1, 1}, 3, 17), {1e-5, 1e-6});
    }
  }
  expect_match(resize("linear", "half_pixel", {2, 21, 40}, 6, 11, true), {1e-5, 1e-6});
  expect_match(resize("cubic", "half_pixel", {2, 21, 40}, 30, 11, true), {1e-5, 1e-6});
}

struct Deconvolution {
  Shape x, weight;
  Integers strides, dilations, pads;
  int64_t group, extra;  // extra: output_padding at the end of each axis
};

Case deconvolution(const Deconvolution& d, bool bias) {
  Generic op{"ConvTranspose", {}};
  Shape y{d.x[0], d.weight[1] * d.group};
  const size_t axes = d.strides.size();
  for (size_t i = 0; i < axes; ++i)
    y.push_back((d.x[i + 2] - 1) * d.strides[i] + (d.weight[i + 2] - 1) * d.dilations[i] + 1 - d.pads[i] - d.pads[i + axes] + d.extra);
  op.attributes.set("kernel_shape", Integers(d.weight.begin() + 2, d.weight.end()));
  op.attributes.set("strides", d.strides);
  op.attributes.set("dilations", d.dilations);
  op.attributes.set("pads", d.pads);
  op.attributes.set("group", d.group);
  Case c{.op = op, .inputs = {random_tensor(d.x, 1), random_tensor(d.weight, 2)}, .outputs = {{kF32, y}}};
  if (bias) c.inputs.push_back(random_tensor({y[1]}, 3));
  return c;
}

TEST_P(Images, ConvTransposeOfEveryWindow) {
  const Deconvolution cases[] = {
      {{1, 4, 5, 6}, {4, 3, 2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, 1, 0},
      {{2, 4, 7, 9}, {4, 5, 4, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 1, 0},
      {{1, 6, 8, 8}, {6, 2, 3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 2, 1},
      {{1, 3, 4, 17}, {3, 2, 3, 5}, {1, 3}, {2, 1}, {2, 0, 0, 4}, 1, 0},
      {{2, 8, 33}, {8, 4, 5}, {2}, {1}, {2, 1}, 1, 1},
      {{1, 16, 1, 1}, {16, 40, 4, 4}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1, 0},
      {{1, 2, 3, 3}, {2, 1, 1, 1}, {3, 3}, {1, 1}, {0, 0, 0, 0}, 2, 2},
  };
  for (const Deconvolution& d : cases) {
    for (const uint32_t constants : {0u, 0b10u}) {
      Case c = deconvolution(d, constants == 0);
      c.constants = constants;
      SCOPED_TRACE(c.str());
      expect_match(c, {1e-4, 1e-5});
    }
  }
}

/// Points on the edges, far outside, at NaN, and everywhere in between.
Tensor grid(const Shape& shape) {
  Tensor points = random_tensor(shape, 5, 0.8f);
  const float rare[] = {-1, 1, 0, 1.5f, -3, 1e30f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
  for (size_t i = 0; i < std::size(rare) && static_cast<int64_t>(7 * i) < shape.elements(); ++i) points.view().as<float>()[7 * i] = rare[i];
  return points;
}

TEST_P(Images, GridSampleInEveryMode) {
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    for (const std::string padding : {"zeros", "border", "reflection"}) {
      for (const int64_t align : {0, 1}) {
        Generic op{"GridSample", {}};
        op.attributes.set("mode", mode);
        op.attributes.set("padding_mode", padding);
        op.attributes.set("align_corners", align);
        SCOPED_TRACE(mode + " " + padding);
        const auto match = [&](const Shape& x, const Shape& points, const Shape& y) {
          expect_match({.op = op, .inputs = {random_tensor(x, 1), grid(points)}, .outputs = {{kF32, y}}}, {1e-5, 1e-6});
        };
        match({2, 3, 9, 7}, {2, 17, 18, 2}, {2, 3, 17, 18});  // more points than a tile
        match({1, 2, 1, 1}, {1, 3, 5, 2}, {1, 2, 3, 5});
        match({2, 3, 4, 5, 6}, {2, 3, 4, 7, 3}, {2, 3, 3, 4, 7});
        match({1, 2, 4, 4}, {1, 0, 5, 2}, {1, 2, 0, 5});
      }
    }
  }
}

TEST_P(Images, GridSampleLooksAtNothingOutside) {
  Tensor x({1, 1, 2, 2}, std::vector<float>{std::numeric_limits<float>::quiet_NaN(), 1, 2, 3});
  const Tensor points({1, 1, 2, 2}, std::vector<float>{5, 5, 0.5f, 2.f});  // nothing; the lower right alone
  expect_match({.op = Generic{"GridSample", {}}, .inputs = {x, points}, .outputs = {{kF32, {1, 1, 1, 2}}}});
}

TEST_P(Images, PadInEveryMode) {
  for (const Pad::Mode mode : {Pad::Mode::kConstant, Pad::Mode::kReflect, Pad::Mode::kEdge, Pad::Mode::kWrap}) {
    expect_match({.op = Pad{{1, 0, 3}, {0, 2, 2}, mode}, .inputs = {random_tensor({2, 3, 7}, 1)}, .outputs = {{kF32, {3, 5, 12}}}});
    expect_match({.op = Pad{{4}, {9}, mode}, .inputs = {random_integers(DType::kInt64, {5}, 1)}, .outputs = {{DType::kInt64, {18}}}});
  }
  const Tensor value({}, std::vector<float>{7.f});
  expect_match({.op = Pad{{0, -2, 1}, {0, 1, -3}}, .inputs = {random_tensor({2, 4, 6}, 1), value}, .outputs = {{kF32, {2, 3, 4}}}});
  expect_match({.op = Pad{{0, -4}, {0, 4}}, .inputs = {random_tensor({2, 3}, 1), value}, .outputs = {{kF32, {2, 3}}}});
}

TEST_P(Images, SelectBroadcastsEachOperand) {
  const auto check = [&](const Shape& condition, const Shape& a, const Shape& b, const Shape& y) {
    expect_match({.op = Select{},
                  .inputs = {random_integers(DType::kBool, condition, 1), special_values(a), random_tensor(b, 3)},
                  .outputs = {{kF32, y}}});
  };
  for (const int64_t n : {0, 1, 3, 15, 16, 17, 130}) {
    check({n}, {n}, {n}, {n});
    check({n}, {1}, {n}, {n});
    check({1, n}, {4, n}, {}, {4, n});
    check({4, 1}, {4, n}, {1, n}, {4, n});
    check({2, 1, n}, {1, 3, 1}, {2, 3, n}, {2, 3, n});
  }
}

TEST_P(Images, TransposesOfEverySize) {
  for (const int64_t rows : {1, 7, 8, 9, 33}) {
    for (const int64_t columns : {1, 8, 15, 64}) {
      expect_match({.op = StridedCopy{0, {rows * columns, 1, columns}},
                    .inputs = {special_values({2, rows, columns})},
                    .outputs = {{kF32, {2, columns, rows}}}});
    }
  }
}

TEST_P(Images, PoolSaysWhereTheFirstMaximumWas) {
  struct Window {
    Integers kernel, strides, dilations, pads;
    Shape y;
  };
  const Window windows[] = {{{2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {2, 3, 4, 5}},
                            {{3, 2}, {1, 2}, {1, 3}, {1, 1, 1, 1}, {2, 3, 9, 5}},
                            {{3, 1}, {2, 1}, {2, 9}, {2, 0, 2, 3}, {2, 3, 5, 14}},
                            {{2, 3}, {3, 3}, {4, 2}, {4, 4, 0, 0}, {2, 3, 3, 4}}};
  for (const auto& [kernel, strides, dilations, pads, y] : windows) {
    Generic op{"MaxPoolWithIndices", {}};
    op.attributes.set("kernel_shape", kernel);
    op.attributes.set("strides", strides);
    op.attributes.set("dilations", dilations);
    op.attributes.set("pads", pads);
    const Shape x{2, 3, 9, 11};
    for (const Tensor& images : {random_tensor(x, 1), special_values(x), random_integers(kF32, x, 2, 0, 2)})
      expect_match({.op = op, .inputs = {images}, .outputs = {{kF32, y}, {DType::kInt64, y}}}, {0, 0});
  }
}

TEST_P(Images, PoolOfVolumes) {
  for (const bool average : {false, true}) {
    for (const bool include_pad : {false, true}) {
      const Pool even{average, include_pad, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}};
      const Pool odd{average, include_pad, {3, 2, 5}, {1, 3, 2}, {2, 1, 1}, {1, 0, 2, 2, 1, 1}};
      expect_match({.op = even, .inputs = {random_tensor({2, 3, 6, 8, 10}, 1)}, .outputs = {{kF32, {2, 3, 3, 4, 5}}}}, {1e-5, 1e-6});
      expect_match({.op = odd, .inputs = {random_tensor({1, 2, 7, 9, 34}, 1)}, .outputs = {{kF32, {1, 2, 6, 3, 17}}}}, {1e-5, 1e-6});
    }
  }
}

}  // namespace
}  // namespace serin::kernels::test

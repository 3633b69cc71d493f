// Vector kernels of image operators and of those that move elements, against the reference, on every instruction set that this machine has.

#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/image_cases.h"

namespace serin::kernels::test {
namespace {

class Images : public EveryIsa {};
SERIN_ON_EVERY_ISA(Images);

using Integers = std::vector<int64_t>;

TEST_P(Images, ResizeLargerAndSmallerOnEitherAxis) {
  images::for_resizes([&](const Case& c, Tolerance tolerance) { expect_match(c, tolerance); });
}
TEST_P(Images, ResizeOfPixels) {
  images::for_pixels([&](const Case& c, Tolerance tolerance) { expect_match(c, tolerance); });
}
TEST_P(Images, ResizeWhoseScalesRoundToTheSameSize) {
  Case c{.op = Generic{"Resize", {}},
         .inputs = {random_tensor({3, 4, 5}, 1), images::absent(), floats({3}, {1.3f, 2, 2})},
         .outputs = {{kF32, {3, 8, 10}}}};
  set(c, "mode", "linear");
  expect_match(c);
}
TEST_P(Images, ConvTransposeOfEveryWindow) {
  images::for_deconvolutions([&](const Case& c, Tolerance tolerance) { expect_match(c, tolerance); });
}
TEST_P(Images, Col2ImOfEveryWindow) {
  struct Spread {
    Integers image, block, strides, dilations, pads;
    int64_t count;  // of windows
  };
  const Spread forms[] = {{{9, 35}, {3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 7 * 33},
                          {{8, 40}, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, 4 * 20},
                          {{7, 21}, {3, 2}, {2, 3}, {1, 2}, {1, 2, 0, 1}, 3 * 8},
                          {{6, 5}, {3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2}, 6 * 5},
                          {{30}, {5}, {1}, {1}, {2, 2}, 30},
                          {{4, 4, 5}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}, 36},
                          {{2, 3}, {1, 2}, {1, 1}, {1, 7}, {0, 5, 0, 5}, 2 * 6}};  // columns of windows that lie outside
  for (const Spread& form : forms) {
    Generic op{"Col2Im", {}};
    op.attributes.set("strides", form.strides);
    op.attributes.set("dilations", form.dilations);
    op.attributes.set("pads", form.pads);
    int64_t cells = 1;
    Shape y{2, 3};
    for (const int64_t size : form.block) cells *= size;
    for (const int64_t size : form.image) y.push_back(size);
    const auto axes = static_cast<int64_t>(form.image.size());
    const Shape x{2, 3 * cells, form.count};
    const auto check = [&](const Tensor& columns) {
      Case c{.op = op, .inputs = {columns, longs({axes}, form.image), longs({axes}, form.block)}, .outputs = {{columns.dtype(), y}}};
      expect_rows_match_reference(backend(GetParam()), c, {1e-5, 1e-6}, axes > 2);
    };
    check(random_tensor(x, 1));
    check(random_integers(DType::kFloat64, x, 2));
    check(random_integers(DType::kInt32, x, 3));
  }
  Generic plain{"Col2Im", {}};
  expect_match(
      {.op = plain, .inputs = {random_tensor({1, 8, 12}, 1), longs({2}, {4, 5}), longs({2}, {2, 2})}, .outputs = {{kF32, {1, 2, 4, 5}}}});
}
TEST_P(Images, GridSampleInEveryMode) {
  images::for_grids([&](const Case& c, Tolerance tolerance) { expect_match(c, tolerance); });
}

TEST_P(Images, DeformConvOfGroupsAndMasks) {
  const struct {
    Shape x, weight, y;
    Integers strides, dilations, pads;
    int64_t group, offset_group;
  } forms[] = {
      {{2, 6, 9, 11}, {5, 6, 3, 3}, {2, 5, 9, 11}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, 1},
      {{1, 4, 21, 23}, {6, 2, 3, 3}, {1, 6, 21, 23}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 2, 1},  // more pixels than a block
      {{1, 6, 12, 10}, {4, 3, 3, 2}, {1, 4, 6, 9}, {2, 1}, {1, 2}, {1, 1, 1, 0}, 2, 3},    // an offset group in two groups
      {{2, 4, 7, 5}, {4, 1, 1, 1}, {2, 4, 7, 5}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 4, 2},
      {{1, 8, 6, 6}, {3, 8, 3, 3}, {1, 3, 2, 2}, {2, 2}, {2, 2}, {1, 1, 1, 1}, 1, 4},
  };
  for (const auto& form : forms) {
    Generic op{"DeformConv", {}};
    op.attributes.set("kernel_shape", Integers(form.weight.begin() + 2, form.weight.end()));
    op.attributes.set("strides", form.strides);
    op.attributes.set("dilations", form.dilations);
    op.attributes.set("pads", form.pads);
    op.attributes.set("group", form.group);
    op.attributes.set("offset_group", form.offset_group);
    const int64_t shifts = form.offset_group * form.weight[2] * form.weight[3];
    const Shape offsets{form.x[0], 2 * shifts, form.y[2], form.y[3]}, masks{form.x[0], shifts, form.y[2], form.y[3]};
    const Tensor x = random_tensor(form.x, 1), weight = random_tensor(form.weight, 2), none(DType::kUndefined, Shape{0});
    for (const Tensor& offset : {random_tensor(offsets, 3, 3.f), images::grid(offsets)}) {
      for (const Tensor& mask : {none, random_tensor(masks, 5)}) {
        for (const Tensor& bias : {none, random_tensor({form.y[1]}, 4)})
          expect_match({.op = op, .inputs = {x, weight, offset, bias, mask}, .outputs = {{kF32, form.y}}}, {1e-5, 1e-5});
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

TEST_P(Images, CenterCropAndPad) {
  const Shape sizes[][2] = {{{2, 3, 8, 9}, {2, 3, 5, 6}},
                            {{2, 3, 8, 9}, {2, 3, 11, 14}},
                            {{2, 7, 9, 4}, {2, 10, 4, 4}},
                            {{5, 6}, {2, 6}},
                            {{5, 6}, {8, 6}},
                            {{3, 4, 5}, {3, 4, 5}},
                            {{1, 7}, {4, 0}},
                            {{0, 3}, {2, 5}},
                            {{9}, {4}}};
  for (const auto& [x, y] : sizes) {
    const Generic op{"CenterCropPad", {}};
    const Tensor shape({static_cast<int64_t>(y.rank())}, Integers(y.begin(), y.end()));
    for (const DType dtype : {kF32, DType::kUInt8, DType::kInt16, DType::kInt64})
      expect_match({.op = op, .inputs = {random_integers(dtype, x, 1, 1, 99), shape}, .outputs = {{dtype, y}}}, {0, 0});
  }
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

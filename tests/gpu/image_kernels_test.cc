// The device's kernels of images, sequences and rotations, compared with the reference; where the processor's vector kernels have cases, the same.

#include <gtest/gtest.h>

#include "tests/gpu/on_device.h"
#include "tests/kernels/image_cases.h"
#include "tests/kernels/recurrent_cases.h"

namespace serin::kernels::test {
namespace {

constexpr Tolerance kFloats{1e-4, 1e-5};  // coordinates are computed in float on a device, sums are held in it

void agree(const Case& c, Tolerance) { expect_agrees(c, kFloats); }

TEST(DeviceImages, ResizeLargerAndSmallerOnEitherAxis) {
  images::for_resizes([](Case c, Tolerance tolerance) {
    c.constants = 0b1000;
    expect_agrees(c, tolerance);
  });
}

TEST(DeviceImages, ResizeOfOtherTypes) {
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    for (const DType dtype : {DType::kUInt8, DType::kInt32, DType::kFloat16, DType::kFloat64}) {
      Case c = images::resize(mode, "half_pixel", {2, 5, 7}, 9, 4);
      c.inputs[0] = random_integers(dtype, {2, 5, 7}, 1, 0, 100);
      c.outputs[0].dtype = dtype;
      c.constants = 0b1000;
      expect_agrees(c, {1e-3});
    }
  }
}

TEST(DeviceImages, ConvTransposeOfEveryWindow) { images::for_deconvolutions(agree); }
TEST(DeviceImages, GridSampleInEveryMode) { images::for_grids(agree); }

TEST(DeviceImages, AlignsBoxes) {
  for (const char* mode : {"avg", "max"}) {
    for (const char* coordinates : {"half_pixel", "output_half_pixel"}) {
      for (const int64_t ratio : {0, 2}) {
        Generic op{"RoiAlign", {}};
        op.attributes.set("mode", std::string(mode));
        op.attributes.set("coordinate_transformation_mode", std::string(coordinates));
        op.attributes.set("sampling_ratio", ratio);
        op.attributes.set("spatial_scale", 0.5);
        expect_agrees({.op = op,
                       .inputs = {random_tensor({2, 3, 9, 11}, 1),
                                  Tensor({4, 4}, std::vector<float>{1, 2, 15, 14, -3, 0, 4, 40, 7, 7, 7, 7, 20, 16, 23, 19}),
                                  Tensor({4}, std::vector<int64_t>{0, 1, 1, 0})},
                       .outputs = {{kF32, {4, 3, 3, 2}}}},
                      kFloats);
      }
    }
  }
}

TEST(DeviceImages, NormalisesGroups) {
  for (const Shape& x : {Shape{2, 6, 5, 7}, Shape{1, 4, 90000}, Shape{3, 2, 1}}) {
    const int64_t channels = x[1];
    const std::vector<Tensor> operands{random_tensor(x, 1, 3.f), random_tensor({channels}, 2), random_tensor({channels}, 3)};
    expect_agrees({.op = Generic{"InstanceNormalization", {}}, .inputs = operands, .outputs = {{kF32, x}}}, kFloats);
    Generic group{"GroupNormalization", {}};
    group.attributes.set("num_groups", int64_t{2});
    expect_agrees({.op = group, .inputs = operands, .outputs = {{kF32, x}}}, kFloats);
    expect_agrees({.op = group, .inputs = {operands[0], random_tensor({2}, 2), random_tensor({2}, 3)}, .outputs = {{kF32, x}}}, kFloats);
  }
  expect_agrees({.op = Generic{"InstanceNormalization", {}},
                 .inputs = {random_integers(DType::kFloat16, {2, 3, 40}, 1), random_integers(DType::kFloat16, {3}, 2),
                            random_integers(DType::kFloat16, {3}, 3)},
                 .outputs = {{DType::kFloat16, {2, 3, 40}}}},
                {1e-2, 1e-3});
}

TEST(DeviceImages, RecurrencesOfEachCell) {
  for (const char* name : {"RNN", "GRU", "LSTM"}) {
    SCOPED_TRACE(name);
    expect_agrees(recurrent(name, {7, 3, 5, 19, 1}), kFloats);
    expect_agrees(recurrent(name, {5, 6, 20, 33, 2}), kFloats);
    expect_agrees(recurrent(name, {5, 2, 3, 17, 2}, true), kFloats);
    expect_agrees(recurrent(name, {1, 1, 1, 1, 1}), kFloats);
    Case clipped = recurrent(name, {4, 2, 3, 5, 2});
    set(clipped, "clip", 0.3);
    expect_agrees(clipped, kFloats);
    Case half = recurrent(name, {4, 2, 3, 5, 1});
    for (Tensor& input : half.inputs) {
      if (input.dtype() == kF32) input = random_integers(DType::kFloat64, input.shape(), 3, -2, 2);
    }
    for (Output& output : half.outputs) output.dtype = DType::kFloat64;
    expect_agrees(half, {1e-10});
  }
  Case gru = recurrent("GRU", {6, 2, 4, 21, 1});
  set(gru, "direction", std::string("reverse"));
  set(gru, "linear_before_reset", int64_t{1});
  set(gru, "activations", std::vector<std::string>{"HardSigmoid", "LeakyRelu"});
  set(gru, "activation_alpha", std::vector<double>{0.3, 0.05});
  expect_agrees(gru, kFloats);
  Case coupled = recurrent("LSTM", {3, 2, 4, 9, 2});
  set(coupled, "input_forget", int64_t{1});
  expect_agrees(coupled, kFloats);
}

TEST(DeviceImages, TurnsPairs) {
  for (const int64_t interleaved : {0, 1}) {
    for (const int64_t turned : {0, 4}) {
      Generic op{"RotaryEmbedding", {}};
      op.attributes.set("interleaved", interleaved);
      op.attributes.set("rotary_embedding_dim", turned);
      const int64_t half = turned == 0 ? 4 : turned / 2;
      expect_agrees({.op = op,
                     .inputs = {random_tensor({2, 3, 5, 8}, 1), random_tensor({9, half}, 2), random_tensor({9, half}, 3),
                                random_integers(DType::kInt64, {2, 5}, 4, 0, 8)},
                     .outputs = {{kF32, {2, 3, 5, 8}}}},
                    kFloats);
      op.attributes.set("num_heads", int64_t{3});
      expect_agrees({.op = op,
                     .inputs = {random_tensor({2, 5, 24}, 1), random_tensor({2, 5, half}, 2), random_tensor({2, 5, half}, 3)},
                     .outputs = {{kF32, {2, 5, 24}}}},
                    kFloats);
    }
  }
}

TEST(DeviceImages, AttendsAndShowsPresentKeys) {
  for (const int64_t past : {0, 6}) {
    Case c{.op = Generic{"Attention", {}},
           .inputs = {random_tensor({2, 4, 3, 16}, 1), random_tensor({2, 2, 5, 16}, 2), random_tensor({2, 2, 5, 8}, 3)},
           .outputs = {{kF32, {2, 4, 3, 8}}, {kF32, {2, 2, past + 5, 16}}, {kF32, {2, 2, past + 5, 8}}}};
    if (past > 0) {
      c.inputs.emplace_back(DType::kUndefined, Shape{});
      c.inputs.push_back(random_tensor({2, 2, past, 16}, 4));
      c.inputs.push_back(random_tensor({2, 2, past, 8}, 5));
    }
    expect_agrees(c, kFloats);
  }
}

TEST(DeviceImages, PReluOfEachForm) {
  for (const Shape& slope : {Shape{3, 4, 5}, Shape{4, 1}, Shape{1}})
    expect_agrees(
        {.op = Generic{"PRelu", {}}, .inputs = {random_tensor({3, 4, 5}, 1), random_tensor(slope, 2)}, .outputs = {{kF32, {3, 4, 5}}}});
}

}  // namespace
}  // namespace serin::kernels::test

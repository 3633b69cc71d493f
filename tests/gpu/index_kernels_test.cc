// The device's kernels that gather, scatter, sort and look at indices, compared with the reference.

#include <gtest/gtest.h>

#include <limits>

#include "kernels/device_weights.h"
#include "tests/gpu/on_device.h"

namespace serin::kernels::test {
namespace {

constexpr DType kF32 = DType::kFloat32, kI64 = DType::kInt64;

Generic generic(const std::string& name, const std::vector<std::pair<std::string, Attribute>>& attributes = {}) {
  Generic op{name, {}};
  for (const auto& [key, value] : attributes) op.attributes.set(key, value);
  return op;
}

/// What the row that takes the case says of an operand that is wrong.
std::string device_fault(const Case& c) {
  Device& device = *device_backend().device();
  DeviceWeights weights(device);
  PrepareContext context{&weights};
  const Prepared prepared = device_backend().prepare(c.describe(), context);
  if (!prepared.kernel) return "no row takes it";
  if (weights.upload()) return "no memory";
  DeviceFault fault;
  run_on_device(device, *prepared.kernel, c, &fault);
  return fault.step == 0 ? "no fault" : prepared.kernel->explain(fault.detail);
}

TEST(DeviceIndices, GatherElementsAlongEachAxis) {
  for (const DType index : {DType::kInt32, kI64}) {
    for (const int64_t axis : {0, 1, -1}) {
      const Shape x{5, 7, 6}, y = axis == 0 ? Shape{9, 7, 6} : axis == 1 ? Shape{4, 9, 6} : Shape{5, 3, 9};
      const int size = axis == 0 ? 5 : axis == 1 ? 7 : 6;
      for (const DType dtype : {kF32, DType::kUInt8, DType::kFloat64})
        expect_agrees({.op = generic("GatherElements", {{"axis", axis}}),
                       .inputs = {random_integers(dtype, x, 1), random_integers(index, y, 2, -size, size - 1)},
                       .outputs = {{dtype, y}}});
    }
  }
}

TEST(DeviceIndices, GatherOfWholePieces) {
  expect_agrees(
      {.op = Gather{1}, .inputs = {random_tensor({3, 9, 8}, 1), random_integers(kI64, {5}, 2, -9, 8)}, .outputs = {{kF32, {3, 5, 8}}}});
}

TEST(DeviceIndices, GatherNDOfElementsAndSlices) {
  for (const int64_t slice : {1, 3, 8}) {
    expect_agrees({.op = generic("GatherND"),
                   .inputs = {random_tensor({4, 5, slice}, 1), random_integers(kI64, {6, 2}, 2, -4, 3)},
                   .outputs = {{kF32, {6, slice}}}});
    expect_agrees({.op = generic("GatherND", {{"batch_dims", int64_t{1}}}),
                   .inputs = {random_integers(DType::kInt16, {4, 5, slice}, 1), random_integers(DType::kInt32, {4, 7, 1}, 2, -5, 4)},
                   .outputs = {{DType::kInt16, {4, 7, slice}}}});
  }
}

TEST(DeviceIndices, ScatterInEveryWay) {
  for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
    for (const DType dtype : {kF32, DType::kInt8, DType::kFloat16, kI64, DType::kBool}) {
      // Without a reduction no two updates may meet: each line has its indices once.
      const Tensor indices = Tensor({2, 5}, std::vector<int64_t>{4, -5, 1, 3, 2, 2, 1, -1, 3, 0});
      expect_agrees({.op = generic("ScatterElements", {{"axis", int64_t{1}}, {"reduction", std::string(reduction)}}),
                     .inputs = {random_integers(dtype, {3, 5}, 1, 1, 4), indices, random_integers(dtype, {2, 5}, 2, 1, 4)},
                     .outputs = {{dtype, {3, 5}}}},
                    {1e-3});
      expect_agrees({.op = generic("ScatterND", {{"reduction", std::string(reduction)}}),
                     .inputs = {random_integers(dtype, {6, 3}, 1, 1, 4), Tensor({3, 1}, std::vector<int64_t>{4, -6, 1}),
                                random_integers(dtype, {3, 3}, 2, 1, 4)},
                     .outputs = {{dtype, {6, 3}}}},
                    {1e-3});
    }
  }
  // Many updates meet: whole numbers have one sum in every order.
  for (const DType dtype : {kF32, DType::kInt32, DType::kUInt8, DType::kFloat16})
    expect_agrees(
        {.op = generic("ScatterElements", {{"reduction", std::string("add")}}),
         .inputs = {random_integers(dtype, {7}, 1, 0, 3), random_integers(kI64, {300}, 2, 0, 6), random_integers(dtype, {300}, 3, 0, 2)},
         .outputs = {{dtype, {7}}}});
}

TEST(DeviceIndices, ScatterIntoACache) {
  for (const char* mode : {"linear", "circular"})
    expect_agrees({.op = generic("TensorScatter", {{"axis", int64_t{-2}}, {"mode", std::string(mode)}}),
                   .inputs = {random_tensor({2, 3, 8, 5}, 1), random_tensor({2, 3, 3, 5}, 2), Tensor({2}, std::vector<int64_t>{5, 1})},
                   .outputs = {{kF32, {2, 3, 8, 5}}}});
}

TEST(DeviceIndices, TopKOfEveryKAndType) {
  for (const int64_t largest : {0, 1}) {
    for (const int64_t axis : {0, 1, 2}) {
      for (const int64_t k : {1, 3, 5}) {
        Shape y{5, 6, 7};
        y[static_cast<size_t>(axis)] = k;
        for (const DType dtype : {kF32, DType::kInt8, DType::kUInt16, kI64, DType::kFloat16, DType::kFloat64})
          expect_agrees({.op = generic("TopK", {{"axis", axis}, {"largest", largest}}),
                         .inputs = {random_integers(dtype, {5, 6, 7}, 1), Tensor({1}, std::vector<int64_t>{k})},
                         .outputs = {{dtype, y}, {kI64, y}},
                         .constants = 0b10});
      }
    }
    for (const auto& [n, k] : {std::pair{300, 7}, {300, 300}, {6000, 50}, {6000, 2100}, {5000, 5000}}) {
      const Shape y{2, k};
      expect_agrees({.op = generic("TopK", {{"largest", largest}}),
                     .inputs = {random_tensor({2, n}, 1), Tensor({1}, std::vector<int64_t>{k})},
                     .outputs = {{kF32, y}, {kI64, y}},
                     .constants = 0b10});
      expect_agrees({.op = generic("TopK", {{"largest", largest}}),
                     .inputs = {random_integers(kF32, {2, n}, 1, -3, 3), Tensor({1}, std::vector<int64_t>{k})},  // most are equal
                     .outputs = {{kF32, y}, {kI64, y}},
                     .constants = 0b10});
    }
    expect_agrees({.op = generic("TopK", {{"largest", largest}}),
                   .inputs = {special_values({90}), Tensor({1}, std::vector<int64_t>{40})},
                   .outputs = {{kF32, {40}}, {kI64, {40}}},
                   .constants = 0b10});
  }
}

TEST(DeviceIndices, SwitchesReversesAndCuts) {
  for (const DType index : {kI64, DType::kInt32, kF32}) {
    for (const int64_t axis : {0, 1, -1}) {
      const Shape y = axis == 0 ? Shape{6, 3, 4} : axis == 1 ? Shape{3, 6, 4} : Shape{3, 4, 6};
      expect_agrees({.op = generic("OneHot", {{"axis", axis}}),
                     .inputs = {random_integers(index, {3, 4}, 1, -8, 8), Tensor({}, std::vector<int64_t>{6}), random_tensor({2}, 2)},
                     .outputs = {{kF32, y}},
                     .constants = 0b10});
    }
  }
  for (const int64_t time : {0, 1})
    expect_agrees({.op = generic("ReverseSequence", {{"time_axis", time}, {"batch_axis", 1 - time}}),
                   .inputs = {random_tensor({5, 5, 3}, 1), Tensor({5}, std::vector<int64_t>{0, 1, 5, 3, 4})},
                   .outputs = {{kF32, {5, 5, 3}}}});
  for (const int64_t upper : {0, 1}) {
    for (const int64_t k : {int64_t{-9}, int64_t{-1}, int64_t{0}, int64_t{2}, std::numeric_limits<int64_t>::max()})
      expect_agrees({.op = generic("Trilu", {{"upper", upper}}),
                     .inputs = {random_integers(DType::kInt32, {2, 5, 7}, 1), Tensor({}, std::vector<int64_t>{k})},
                     .outputs = {{DType::kInt32, {2, 5, 7}}}});
    expect_agrees({.op = generic("Trilu", {{"upper", upper}}), .inputs = {random_tensor({4, 4}, 1)}, .outputs = {{kF32, {4, 4}}}});
  }
}

TEST(DeviceIndices, SumsAlongLongAndShortAxes) {
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      for (const Shape& shape : {Shape{3, 700}, Shape{700, 3}, Shape{2, 3, 5000}})
        expect_agrees({.op = CumSum{1, exclusive, reverse}, .inputs = {random_tensor(shape, 1)}, .outputs = {{kF32, shape}}}, {1e-4, 1e-5});
      expect_agrees(
          {.op = CumSum{0, exclusive, reverse}, .inputs = {random_integers(DType::kInt8, {300}, 1)}, .outputs = {{DType::kInt8, {300}}}});
    }
  }
}

TEST(DeviceIndices, GoesAlongLines) {
  for (const int64_t axis : {0, 1, -1}) {
    const Output y{kF32, {5, 40, 7}};
    for (const int64_t p : {1, 2})
      expect_agrees(
          {.op = generic("LpNormalization", {{"axis", axis}, {"p", p}}), .inputs = {random_tensor({5, 40, 7}, 1)}, .outputs = {y}}, {1e-4});
    expect_agrees({.op = generic("Hardmax", {{"axis", axis}}), .inputs = {random_integers(kF32, {5, 40, 7}, 1, -3, 3)}, .outputs = {y}});
  }
  expect_agrees({.op = generic("Hardmax"), .inputs = {special_values({3, 60})}, .outputs = {{kF32, {3, 60}}}});
  expect_agrees({.op = generic("LpNormalization"), .inputs = {Tensor({2, 3}, std::vector<float>(6, 0.f))}, .outputs = {{kF32, {2, 3}}}});
  for (const int64_t size : {1, 4, 5, 99})
    expect_agrees({.op = generic("LRN", {{"size", size}, {"alpha", 0.3}, {"bias", 2.0}}),
                   .inputs = {random_tensor({2, 11, 3, 4}, 1)},
                   .outputs = {{kF32, {2, 11, 3, 4}}}},
                  {1e-4});
}

/// Few results of many terms are reduced in parts.
TEST(DeviceIndices, ReducesInParts) {
  for (int fn = 0; fn <= static_cast<int>(ReduceFn::kSumSquare); ++fn) {
    const auto f = static_cast<ReduceFn>(fn);
    expect_agrees({.op = Reduce{f, {0, 1}}, .inputs = {random_tensor({90, 101}, 4)}, .outputs = {{kF32, {1, 1}}}}, {1e-4, 1e-5});
    expect_agrees({.op = Reduce{f, {0}}, .inputs = {random_tensor({9001, 3}, 4)}, .outputs = {{kF32, {1, 3}}}}, {1e-4, 1e-5});
  }
  expect_agrees(
      {.op = Reduce{ReduceFn::kMax, {1}}, .inputs = {random_integers(DType::kBool, {5, 9}, 1)}, .outputs = {{DType::kBool, {5, 1}}}});
  for (const Shape& x : {Shape{7, 33}, Shape{2, 9001}, Shape{9001, 2}, Shape{1, 60}}) {
    const Tensor values = x[1] == 60 ? special_values(x) : random_tensor(x, 1, 9.f);
    for (const int64_t axis : {0, -1}) {
      Shape y = x;
      y[axis == 0 ? 0 : 1] = 1;
      expect_agrees({.op = generic("ReduceLogSumExp", {{"axes", std::vector<int64_t>{axis}}}), .inputs = {values}, .outputs = {{kF32, y}}},
                    {1e-4, 1e-5});
    }
  }
  for (const bool last : {false, true}) {
    expect_agrees({.op = ArgMax{0, false, last}, .inputs = {random_integers(kF32, {9001}, 1)}, .outputs = {{kI64, {1}}}});
    expect_agrees({.op = ArgMax{0, true, last}, .inputs = {random_integers(DType::kInt8, {9001, 3}, 1)}, .outputs = {{kI64, {1, 3}}}});
  }
}

TEST(DeviceIndices, NamesAnIndexOutOfRangeAndItsAxis) {
  const Tensor x = random_tensor({9, 3}, 1);
  EXPECT_EQ(device_fault({.op = Gather{0}, .inputs = {x, Tensor({2}, std::vector<int64_t>{3, 12})}, .outputs = {{kF32, {2, 3}}}}),
            "index 12 is out of range for axis 0 of size 9");
  EXPECT_EQ(device_fault({.op = generic("GatherND"), .inputs = {x, Tensor({1, 2}, std::vector<int64_t>{3, -4})}, .outputs = {{kF32, {1}}}}),
            "index -4 is out of range for axis 1 of size 3");
  EXPECT_EQ(device_fault({.op = generic("ScatterND"),
                          .inputs = {x, Tensor({1, 1}, std::vector<int64_t>{9}), random_tensor({1, 3}, 2)},
                          .outputs = {{kF32, {9, 3}}}}),
            "index 9 is out of range for axis 0 of size 9");
  EXPECT_EQ(device_fault({.op = generic("GatherElements", {{"axis", int64_t{1}}}),
                          .inputs = {x, Tensor({1, 1}, std::vector<int64_t>{std::numeric_limits<int64_t>::min()})},
                          .outputs = {{kF32, {1, 1}}}}),
            "index -288230376151711744 is out of range for axis 1 of size 3");  // as much of it as a fault holds
}

}  // namespace
}  // namespace serin::kernels::test

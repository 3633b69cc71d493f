// Gathering, scattering, sorting and boxes where the ONNX suite does not look: indices out of range, NaN, ties, empty tensors, other dtypes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/harness.h"
#include "tests/kernels/sized_run.h"

namespace serin::kernels::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Generic operator_of(const std::string& name, const std::vector<std::pair<std::string, Attribute>>& attributes = {}) {
  Generic op{name, {}};
  for (const auto& [key, value] : attributes) op.attributes.set(key, value);
  return op;
}

Case top_k(std::vector<float> x, int64_t k, bool largest = true) {
  const auto size = static_cast<int64_t>(x.size());
  return {.op = operator_of("TopK", {{"largest", int64_t{largest}}}),
          .inputs = {floats({size}, x), longs({1}, {k})},
          .outputs = {{DType::kFloat32, {std::min(k, size)}}, {DType::kInt64, {std::min(k, size)}}}};
}

TEST(Selection, TopKTakesTheLowerIndexOfEqualsAndNanForTheLargest) {
  EXPECT_THAT(run_reference(top_k({3, 1, 3, 2, 3}, 3))[1].values<int64_t>(), ElementsAre(0, 2, 4));
  EXPECT_THAT(run_reference(top_k({1, kNan, 2}, 2))[1].values<int64_t>(), ElementsAre(1, 2));
  EXPECT_THAT(run_reference(top_k({1, kNan, 2}, 2, false))[1].values<int64_t>(), ElementsAre(0, 2));
}

/// A heap of few and a partition of many must agree.
TEST(Selection, TopKOfFewIsTheBeginningOfTopKOfMany) {
  const Tensor x = random_integers(DType::kInt32, {2000}, 1, -50, 50);
  std::vector<float> values;
  for (int64_t i = 0; i < 2000; ++i) values.push_back(static_cast<float>(x.at(i)));
  const auto many = run_reference(top_k(values, 2000))[1].values<int64_t>();
  for (const int64_t k : {0, 1, 7, 249, 250, 1000}) {
    const auto few = run_reference(top_k(values, k))[1].values<int64_t>();
    EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin())) << k;
  }
}

TEST(Selection, TopKOfTooManyIsRefused) { EXPECT_THAT(reference_fault(top_k({1, 2}, 3)), HasSubstr("k is 3, axis 0 has 2")); }

TEST(Selection, UniqueTakesNanForOneValue) {
  const Case c{.op = operator_of("Unique"),
               .inputs = {floats({5}, {kNan, 2, kNan, 1, 2})},
               .outputs = {{DType::kFloat32, {5}}, {DType::kInt64, {5}}, {DType::kInt64, {5}}, {DType::kInt64, {5}}}};
  const auto y = run_reference(c);
  EXPECT_EQ(y[0].shape(), (Shape{3}));
  EXPECT_THAT(y[1].values<int64_t>(), ElementsAre(3, 1, 0));
  EXPECT_THAT(y[2].values<int64_t>(), ElementsAre(2, 1, 2, 0, 1));
  EXPECT_THAT(y[3].values<int64_t>(), ElementsAre(1, 2, 2));
}

TEST(Selection, IndicesOutOfRangeAreNamedWithTheirAxis) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto fault = [&](const Generic& op, std::vector<Tensor> operands, const Shape& y) {
    operands.insert(operands.begin(), x);
    return reference_fault({.op = op, .inputs = std::move(operands), .outputs = {{DType::kFloat32, y}}});
  };
  EXPECT_EQ(fault(operator_of("GatherElements", {{"axis", int64_t{1}}}), {longs({1, 1}, {3})}, {1, 1}),
            "index 3 is out of range for axis 1 of size 3");
  EXPECT_EQ(fault(operator_of("GatherND"), {longs({1, 2}, {0, -4})}, {1}), "index -4 is out of range for axis 1 of size 3");
  EXPECT_EQ(fault(operator_of("ScatterElements"), {longs({1, 1}, {2}), floats({1, 1}, {0})}, {2, 3}),
            "index 2 is out of range for axis 0 of size 2");
  EXPECT_EQ(fault(operator_of("ScatterND"), {longs({1, 1}, {-3}), floats({1, 3}, {0, 0, 0})}, {2, 3}),
            "index -3 is out of range for axis 0 of size 2");
  EXPECT_EQ(fault(operator_of("TensorScatter", {{"axis", int64_t{1}}}), {floats({2, 2}, {0, 0, 0, 0}), longs({2}, {0, 2})}, {2, 3}),
            "index 2 is out of range for axis 1 of size 3");
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(fault(operator_of("GatherElements"), {longs({1, 1}, {kLowest})}, {1, 1}), HasSubstr("is out of range for axis 0 of size 2"));
}

TEST(Selection, ScatteredUpdatesMeetInTheOrderOfTheirIndices) {
  const auto scatter = [](const std::string& reduction) {
    return run_reference({.op = operator_of("ScatterElements", {{"reduction", reduction}}),
                          .inputs = {longs({2}, {10, 20}), longs({3}, {1, 1, -1}), longs({3}, {2, 3, 4})},
                          .outputs = {{DType::kInt64, {2}}}})[0]
        .values<int64_t>();
  };
  EXPECT_THAT(scatter("none"), ElementsAre(10, 4));
  EXPECT_THAT(scatter("add"), ElementsAre(10, 29));
  EXPECT_THAT(scatter("mul"), ElementsAre(10, 480));
  EXPECT_THAT(scatter("max"), ElementsAre(10, 20));
  EXPECT_THAT(scatter("min"), ElementsAre(10, 2));
}

TEST(Selection, OneHotSwitchesNothingOnOutsideOfItsDepth) {
  const Case c{.op = operator_of("OneHot"),
               .inputs = {longs({4}, {-1, 3, -4, 0}), floats({}, {3}), longs({2}, {5, 6})},
               .outputs = {{DType::kInt64, {4, 3}}}};
  EXPECT_THAT(run_reference(c)[0].values<int64_t>(), ElementsAre(5, 5, 6, 5, 5, 5, 5, 5, 5, 6, 5, 5));
}

TEST(Selection, ResizeOfIntegersCutsTowardZeroButNotWholeNumbers) {
  const Case c{.op = operator_of("Resize", {{"mode", std::string("linear")}}),
               .inputs = {Tensor({2}, std::vector<uint8_t>{100, 100}),
                          {DType::kUndefined, Shape{0}},
                          {DType::kUndefined, Shape{0}},
                          longs({1}, {7})},
               .outputs = {{DType::kUInt8, {7}}}};
  EXPECT_THAT(run_reference(c)[0].values<uint8_t>(), testing::Each(100));
}

/// 1.5 / 0.6 - 0.5 is 2: the float next to 0.6 must not make it less, which floor would show.
TEST(Selection, ResizeByARoundedScaleMeetsWholeCoordinates) {
  const Case c{.op = operator_of("Resize", {{"nearest_mode", std::string("floor")}}),
               .inputs = {longs({5}, {0, 1, 2, 3, 4}), {DType::kUndefined, Shape{0}}, floats({1}, {0.6f})},
               .outputs = {{DType::kInt64, {3}}}};
  EXPECT_THAT(run_reference(c)[0].values<int64_t>(), ElementsAre(0, 2, 3));
}

TEST(Selection, GridSampleTakesNanAndInfinityForOutside) {
  const Case c{.op = operator_of("GridSample", {{"mode", std::string("cubic")}}),
               .inputs = {floats({1, 1, 2, 2}, {1, 2, 3, 4}), floats({1, 1, 3, 2}, {kNan, 0, kInf, 0, -1e30f, kNan})},
               .outputs = {{DType::kFloat32, {1, 1, 1, 3}}}};
  EXPECT_THAT(run_reference(c)[0].values<float>(), ElementsAre(0, 0, 0));
}

TEST(Selection, ABoxOfNoNumberIsRefused) {
  const Case c{.op = operator_of("RoiAlign", {{"output_height", int64_t{1}}, {"output_width", int64_t{1}}}),
               .inputs = {floats({1, 1, 2, 2}, {1, 2, 3, 4}), floats({1, 4}, {0, 0, 1, kNan}), longs({1}, {0})},
               .outputs = {{DType::kFloat32, {1, 1, 1, 1}}}};
  EXPECT_THAT(reference_fault(c), HasSubstr("is too large"));
}

/// Boxes of two classes: 0 and 1 are nearly one, 2 lies apart and reaches beyond the picture.
ref::SizedRun detections(Shape boxes, Shape scores, int64_t of_class, int64_t room, bool clip = true) {
  const std::vector<float> box = {0, 0, 0.4F, 0.4F, 0, 0, 0.4F, 0.41F, 0.5F, 0.5F, 1.2F, 1};
  const std::vector<float> score = {0.9F, 0.2F, 0.8F, 0.7F, 0.3F, 0.6F};  // of each box: of class 0, of class 1
  return {"CombinedNonMaxSuppression",
          ref::with_attributes({{"clip_boxes", int64_t{clip}}}),
          {ref::tensor<float>(boxes, box), ref::tensor<float>(scores, score), ref::tensor<int64_t>({}, {of_class}),
           ref::tensor<int64_t>({}, {room}), ref::tensor<float>({}, {0.5F}), ref::tensor<float>({}, {0.25F})},
          {{DType::kFloat32, {1, room, 4}}, {DType::kFloat32, {1, room}}, {DType::kFloat32, {1, room}}, {DType::kInt32, {1}}}};
}

TEST(CombinedNonMaxSuppression, GivesTheBestOfAllClasses) {
  const auto run = detections({1, 3, 1, 4}, {1, 3, 2}, 2, 5);
  ASSERT_EQ(run.problem, "");
  EXPECT_THAT(run.outputs[1].as<float>(), testing::ElementsAre(0.9F, 0.7F, 0.6F, 0.3F, 0.0F));
  EXPECT_THAT(run.outputs[2].as<float>(), testing::ElementsAre(0, 1, 1, 0, 0));
  EXPECT_THAT(run.outputs[3].as<int32_t>(), testing::ElementsAre(4));
  const auto boxes = run.outputs[0].as<float>();
  EXPECT_THAT(std::vector<float>(boxes.begin() + 8, boxes.begin() + 12), testing::ElementsAre(0.5F, 0.5F, 1, 1))
      << "cut at the picture's edge";
  EXPECT_EQ(boxes.back(), 0) << "filled up";
  const auto fewer = detections({1, 3, 1, 4}, {1, 3, 2}, 1, 2, false);
  EXPECT_THAT(fewer.outputs[1].as<float>(), testing::ElementsAre(0.9F, 0.7F));
}

TEST(CombinedNonMaxSuppression, RefusesScoresOfOtherBoxes) {
  EXPECT_THAT(detections({1, 3, 1, 4}, {1, 2, 3}, 2, 5).problem, testing::HasSubstr("do not belong together"));
  EXPECT_THAT(detections({1, 1, 3, 4}, {1, 1, 6}, 2, 5).problem, testing::HasSubstr("do not belong together"));
  EXPECT_THAT(detections({3, 4}, {1, 3, 2}, 2, 5).problem, testing::HasSubstr("rank 4 and 3"));
}

}  // namespace
}  // namespace serin::kernels::test

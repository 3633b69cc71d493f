// The device's kernels whose results have sizes that the data decides, and kernels that are run at smaller sizes than they were prepared for.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tests/gpu/on_device.h"

namespace serin::kernels::test {
namespace {

constexpr DType kI64 = DType::kInt64, kBool = DType::kBool;

Generic generic(const std::string& name, const std::vector<std::pair<std::string, Attribute>>& attributes = {}) {
  Generic op{name, {}};
  for (const auto& [key, value] : attributes) op.attributes.set(key, value);
  return op;
}

Tensor number(float x) { return Tensor({1}, std::vector<float>{x}); }
Tensor integer(int64_t x) { return Tensor({1}, std::vector<int64_t>{x}); }
Tensor absent() { return Tensor(DType::kUndefined, {0}); }

/// Boxes of an image of 100 x 100, in clusters, so that many overlap; some with their corners the other way round, some empty.
Tensor clustered_boxes(int64_t images, int64_t count, uint32_t seed, bool center = false) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> place(0, 100), shift(-3, 3), size(4, 20);
  Tensor boxes(kF32, {images, count, 4});
  float* box = boxes.view().as<float>();
  float y = 0, x = 0;
  for (int64_t i = 0; i < images * count; ++i, box += 4) {
    if (i % 5 == 0) y = place(random), x = place(random);
    const float top = y + shift(random), left = x + shift(random), height = i % 31 == 30 ? 0 : size(random), width = size(random);
    const float corners[] = {top, left, top + height, left + width}, centered[] = {left, top, width, height};
    std::copy_n(center ? centered : corners, 4, box);
    if (!center && i % 7 == 3) std::swap(box[0], box[2]);
  }
  return boxes;
}

/// Uniform in [0, 1), in steps so coarse that many are equal where `steps` is small.
Tensor scores(int64_t images, int64_t classes, int64_t count, uint32_t seed, int steps = 1 << 20) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> step(0, steps - 1);
  Tensor made(kF32, {images, classes, count});
  for (float& x : made.view().span<float>()) x = static_cast<float>(step(random)) / static_cast<float>(steps);
  return made;
}

/// `room`: rows that the plan has memory for, for each class.
void expect_suppression(std::vector<Tensor> inputs, int64_t room, bool center = false) {
  const Shape& of = inputs[1].shape();
  expect_agrees({.op = generic("NonMaxSuppression", {{"center_point_box", int64_t{center}}}),
                 .inputs = std::move(inputs),
                 .outputs = {{kI64, {of[0] * of[1] * room, 3}}}},
                {}, 0);
}

TEST(DeviceSuppression, OfFewAndManyBoxesClassesAndImages) {
  uint32_t seed = 1;
  for (const int64_t boxes : {1, 2, 31, 63, 64, 65, 129, 300, 1100}) {
    for (const auto& [images, classes] : {std::pair{1, 1}, {1, 5}, {3, 2}}) {
      const bool center = ++seed % 2 == 0;
      const float threshold = static_cast<float>(seed % 3) * 0.35f;
      expect_suppression({clustered_boxes(images, boxes, seed, center), scores(images, classes, boxes, seed), integer(boxes),
                          number(threshold), number(0.25f)},
                         boxes, center);
    }
  }
}

TEST(DeviceSuppression, OfMoreBoxesThanAreSortedAtOnce) {
  const Tensor boxes = clustered_boxes(1, 4200, 7);
  expect_suppression({boxes, scores(1, 1, 4200, 8), integer(4200), number(0.5f)}, 4200);
  expect_suppression({boxes, scores(1, 2, 4200, 8), integer(40), number(0.5f), number(0.3f)}, 40);
  expect_suppression({boxes, scores(1, 70, 4200, 8), integer(40), number(0.5f), number(0.999f)},
                     40);                                                                    // few candidates of many boxes and classes
  expect_suppression({boxes, scores(1, 1, 4200, 8, 3), integer(4200), number(0.9f)}, 4200);  // three scores: chunks end among equals
}

TEST(DeviceSuppression, AmongEqualScoresTheFirstBoxWins) {
  for (const int steps : {1, 2, 5})
    expect_suppression({clustered_boxes(2, 200, 3), scores(2, 3, 200, 4, steps), integer(200), number(0.4f)}, 200);
}

TEST(DeviceSuppression, KeepsAsManyAsItMay) {
  const Tensor boxes = clustered_boxes(2, 150, 5), of = scores(2, 3, 150, 6);
  for (const int64_t most :
       {int64_t{-4}, int64_t{0}, int64_t{1}, int64_t{7}, int64_t{150}, int64_t{151}, std::numeric_limits<int64_t>::max()})
    expect_suppression({boxes, of, integer(most), number(0.5f)}, std::clamp<int64_t>(most, 0, 150));
  expect_suppression({boxes, of, integer(7), number(0.5f)}, 150);  // the limit was not known when the memory was planned
}

TEST(DeviceSuppression, OfWhatIsAbsentOrEmpty) {
  const Tensor boxes = clustered_boxes(1, 70, 5), of = scores(1, 2, 70, 6);
  expect_suppression({boxes, of}, 0);
  expect_suppression({boxes, of, integer(9)}, 9);
  expect_suppression({boxes, of, integer(9), absent(), number(0.5f)}, 9);
  expect_suppression({boxes, of, Tensor(kI64, {0}), number(0.5f)}, 70);
  expect_suppression({boxes, of, integer(9), Tensor(kF32, {0}), Tensor(kF32, {0})}, 9);
  expect_suppression({boxes, of, integer(9), number(0.5f), number(2.f)}, 9);  // above every score
  for (const auto& [images, classes, count] : {std::array<int64_t, 3>{0, 2, 5}, {2, 0, 5}, {2, 2, 0}})
    expect_suppression({Tensor(kF32, {images, count, 4}), Tensor(kF32, {images, classes, count}), integer(9), number(0.5f)},
                       std::min<int64_t>(9, count));
}

TEST(DeviceSuppression, OfScoresAndBoxesThatAreNoNumbers) {
  Tensor boxes = clustered_boxes(1, 90, 9), of = scores(1, 2, 90, 10);
  const float odd[] = {kNan, kInf, -kInf, 0.f, -0.f, -kNan, std::numeric_limits<float>::denorm_min()};
  for (int64_t i = 0; i < 180; i += 3) of.view().as<float>()[i] = odd[i / 3 % 7];
  expect_suppression({boxes, of, integer(90), number(0.5f)}, 90);
  expect_suppression({boxes, of, integer(90), number(0.5f), number(0.f)}, 90);
  expect_suppression({boxes, of, integer(90), number(kNan), number(kNan)}, 90);
  for (int64_t i = 0; i < 360; i += 11) boxes.view().as<float>()[i] = odd[i / 11 % 7];
  expect_suppression({boxes, of, integer(90), number(0.1f)}, 90);
  expect_suppression({boxes, of, integer(90), number(0.1f)}, 90, /*center=*/true);
}

/// 5 shares 4 of 8 with the one before: exactly the threshold, which is not above it.
TEST(DeviceSuppression, AnOverlapOnTheThresholdStays) {
  const Tensor boxes({1, 3, 4}, std::vector<float>{0, 0, 1, 6, 0, 2, 1, 8, 0, 2.001f, 1, 8.001f});
  const Tensor of({1, 1, 3}, std::vector<float>{3, 2, 1});
  for (const float threshold : {0.49999997f, 0.5f, 0.50000006f}) expect_suppression({boxes, of, integer(3), number(threshold)}, 3);
}

TEST(DeviceSuppression, RefusesWhatItCannotDo) {
  const auto why = [](std::vector<Tensor> inputs) {
    PrepareContext context;
    const Case c{.op = generic("NonMaxSuppression"), .inputs = std::move(inputs), .outputs = {{kI64, {10, 3}}}};
    const Prepared prepared = device_backend().prepare(c.describe(), context);
    return prepared.kernel || prepared.refusals.empty() ? "" : prepared.refusals.back().reason;
  };
  const Tensor boxes(kF32, {1, 10, 4}), of(kF32, {1, 1, 10});
  EXPECT_EQ(why({boxes, Tensor(DType::kFloat64, {1, 1, 10})}), "boxes, scores and thresholds must be f32, the limit i64");
  EXPECT_EQ(why({boxes, of, Tensor(kI64, {2})}), "a limit must be one number");
  EXPECT_EQ(why({Tensor(kF32, {1, 10, 5}), of}), "boxes must be [batch, boxes, 4], scores have rank 3");
}

TEST(DeviceSizes, NonZeroOfEveryTypeAndSize) {
  for (const DType dtype : {kF32, kBool, DType::kInt8, DType::kUInt16, kI64, DType::kFloat16, DType::kBFloat16, DType::kFloat64})
    expect_agrees({.op = NonZero{}, .inputs = {random_integers(dtype, {3, 5, 7}, 1, -1, 1)}, .outputs = {{kI64, {3, 105}}}}, {}, 1);
  for (const Shape& shape : {Shape{1}, Shape{1023}, Shape{1025}, Shape{3, 3001}, Shape{300, 2, 500}, Shape{2, 0, 3}, Shape{}}) {
    const Output y{kI64, {static_cast<int64_t>(shape.rank()), shape.elements()}};
    for (const int high : {0, 1, 9})
      expect_agrees({.op = NonZero{}, .inputs = {random_integers(kF32, shape, 2, 0, high)}, .outputs = {y}}, {}, 1);
  }
  expect_agrees({.op = NonZero{}, .inputs = {special_values({90})}, .outputs = {{kI64, {1, 90}}}}, {}, 1);
}

TEST(DeviceSizes, CompressAlongEachAxisAndFlat) {
  for (const DType dtype : {kF32, DType::kInt8, DType::kFloat16, kI64}) {
    for (const int64_t axis : {0, 1, 2, -1}) {
      const Shape x{5, 6, 8};
      const int64_t size = axis == 0 ? 5 : axis == 1 ? 6 : 8;
      for (const int64_t given : {size, size - 2, int64_t{1}, int64_t{0}}) {
        expect_agrees({.op = generic("Compress", {{"axis", axis}}),
                       .inputs = {random_integers(dtype, x, 1), random_integers(kBool, {given}, 2)},
                       .outputs = {{dtype, x}}},
                      {}, axis < 0 ? 2 : static_cast<size_t>(axis));
      }
    }
    expect_agrees({.op = generic("Compress"),
                   .inputs = {random_integers(dtype, {5, 700}, 1), random_integers(kBool, {3333}, 2)},
                   .outputs = {{dtype, {3500}}}},
                  {}, 0);
  }
  Tensor longer(kBool, {9});  // what is not there is not chosen
  std::fill_n(longer.view().as<bool>(), 9, false);
  longer.view().as<bool>()[2] = true;
  expect_agrees(
      {.op = generic("Compress", {{"axis", int64_t{0}}}), .inputs = {random_tensor({4, 3}, 1), longer}, .outputs = {{kF32, {4, 3}}}}, {},
      0);
}

TEST(DeviceSizes, CompressNamesAnElementThatIsNotThere) {
  const Tensor all({5}, std::vector<bool>{true, true, true, true, true});
  const Case c{.op = generic("Compress", {{"axis", int64_t{1}}}), .inputs = {random_tensor({2, 4}, 1), all}, .outputs = {{kF32, {2, 4}}}};
  PrepareContext context;
  const Prepared prepared = device_backend().prepare(c.describe(), context);
  ASSERT_TRUE(prepared.kernel);
  DeviceFault fault;
  run_on_device(*device_backend().device(), *prepared.kernel, c, &fault, 1);
  EXPECT_EQ(fault.step, 7);
  EXPECT_EQ(prepared.kernel->explain(fault.detail), reference_fault(c));
}

/// Prepared for 1,100,000 elements, which are cut into 860 parts; 1,048,576 of them are cut into 1,024.
TEST(DeviceSizes, FewerElementsMayBeCutIntoMoreParts) {
  constexpr int64_t kRun = 1'048'576, kMore = 1'100'000 - kRun;
  const Tensor all({kRun}, std::vector<bool>(kRun, true));
  const Tensor x = random_integers(kF32, {kRun}, 1);
  expect_agrees({.op = NonZero{}, .inputs = {x}, .outputs = {{kI64, {1, kRun}}}, .bound = kMore}, {}, 1);
  expect_agrees({.op = generic("Compress"), .inputs = {x, all}, .outputs = {{kF32, {kRun}}}, .bound = kMore}, {}, 0);
}

/// Prepared for 40 rows more than are run.
TEST(DeviceSizes, KernelsRunAtTheSizesOfTheRun) {
  for (const int64_t rows : {1, 2, 33}) {
    const Output y{kF32, {rows, 6}};
    const Tensor a = random_tensor({rows, 6}, 1), b = random_tensor({rows, 6}, 2);
    const std::vector<Case> cases = {
        {.op = Unary{UnaryFn::kTanh}, .inputs = {a}, .outputs = {y}, .bound = 40},
        {.op = Binary{BinaryFn::kMul}, .inputs = {a, b}, .outputs = {y}, .bound = 40},
        {.op = Binary{BinaryFn::kMul}, .inputs = {a, random_tensor({1, 6}, 3)}, .outputs = {y}, .constants = 0b10, .bound = 40},
        {.op = Select{}, .inputs = {random_integers(kBool, {rows, 6}, 4), a, b}, .outputs = {y}, .bound = 40},
        {.op = Cast{}, .inputs = {random_integers(kI64, {rows, 6}, 5)}, .outputs = {y}, .bound = 40},
        {.op = StridedCopy{1, {6, 2}}, .inputs = {a}, .outputs = {{kF32, {rows, 3}}}, .bound = 40},
        {.op = Concat{1}, .inputs = {a, random_tensor({rows, 3}, 6)}, .outputs = {{kF32, {rows, 9}}}, .bound = 40},
        {.op = Gather{0},
         .inputs = {random_tensor({9, 6}, 7), random_integers(kI64, {rows}, 8, -9, 8)},
         .outputs = {y},
         .constants = 0b01,
         .bound = 40},
        {.op = generic("GatherND"),
         .inputs = {random_tensor({9, 5, 6}, 7), random_integers(kI64, {rows, 2}, 8, -5, 4)},
         .outputs = {y},
         .constants = 0b01,
         .bound = 40},
    };
    for (const Case& c : cases) expect_agrees(c);
  }
}

}  // namespace
}  // namespace serin::kernels::test

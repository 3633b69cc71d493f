// Heads of detectors, suppression, and the way into the input and back are those of NumPy, torchvision and OpenCV (make_detections.py asked them).
#include "runtime/steps/vision/detection.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "runtime/steps/vision/greatest.h"
#include "runtime/steps/vision/placement.h"
#include "tests/runtime/steps/vision_cases.h"

namespace serin::steps {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinite = std::numeric_limits<float>::infinity();

void expect_equal(const std::vector<Detection>& found, const std::vector<Detection>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].label, expected[i].label) << i;
    EXPECT_NEAR(found[i].score, expected[i].score, 1e-6) << i;
    EXPECT_NEAR(found[i].x1, expected[i].x1, 1e-3) << i;
    EXPECT_NEAR(found[i].y1, expected[i].y1, 1e-3) << i;
    EXPECT_NEAR(found[i].x2, expected[i].x2, 1e-3) << i;
    EXPECT_NEAR(found[i].y2, expected[i].y2, 1e-3) << i;
  }
}

/// The columns from `first` to `last` of a matrix, in its order of memory.
std::vector<float> columns_of(const std::vector<float>& values, size_t rows, size_t first, size_t last, bool columns_first) {
  const size_t columns = values.size() / rows;
  std::vector<float> taken;
  if (columns_first) return {values.begin() + static_cast<ptrdiff_t>(first * rows), values.begin() + static_cast<ptrdiff_t>(last * rows)};
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = first; i < last; ++i) taken.push_back(values[row * columns + i]);
  return taken;
}

/// The same from two tensors, where a head has no objectness.
void expect_same_when_split(const std::vector<float>& values, int64_t rows, int64_t columns, const HeadOptions& options,
                            const std::vector<Detection>& expected) {
  if (options.objectness) return;
  std::vector<float> boxes = columns_of(values, static_cast<size_t>(rows), 0, 4, options.columns_first);
  if (options.columns_first) {
    const std::vector<float> before = boxes;
    for (size_t i = 0; i < before.size(); ++i) boxes[i % static_cast<size_t>(rows) * 4 + i / static_cast<size_t>(rows)] = before[i];
  }
  const auto scores = columns_of(values, static_cast<size_t>(rows), 4, static_cast<size_t>(columns), options.columns_first);
  const auto found = read_split_head({boxes, rows, 4}, {scores, rows, columns - 4}, options);
  ASSERT_TRUE(found) << found.error().message;
  expect_equal(*found, expected);
}

void expect_head(std::istringstream& words, std::istream& lines) {
  const std::map<std::string, BoxForm> forms = {
      {"centre", BoxForm::kCentre}, {"corners", BoxForm::kCorners}, {"corner_size", BoxForm::kCornerSize}};
  const std::map<std::string, Activation> activations = {
      {"none", Activation::kNone}, {"sigmoid", Activation::kSigmoid}, {"softmax", Activation::kSoftmax}};
  std::string name, form, activation;
  HeadOptions options;
  int64_t rows = 0, columns = 0;
  words >> name >> form >> options.columns_first >> options.objectness >> activation >> options.last_is_background >> options.every_class >>
      options.score_threshold >> options.scale_x >> options.scale_y >> rows >> columns;
  options.form = forms.at(form);
  options.activation = activations.at(activation);
  const auto values = numbers_of(lines, "values");
  const auto expected = detections_of(numbers_of(lines, "found"));
  EXPECT_GT(expected.size(), 10U);
  const auto found = read_joined_head({values, rows, columns}, options);
  ASSERT_TRUE(found) << found.error().message;
  expect_equal(*found, expected);
  expect_same_when_split(values, rows, columns, options, expected);
  options.most = 5;
  expect_equal(*read_joined_head({values, rows, columns}, options), {expected.begin(), expected.begin() + 5});
}

void expect_final_rows(std::istringstream& words, std::istream& lines) {
  float threshold = 0;
  int64_t rows = 0;
  words >> threshold >> rows;
  const auto values = numbers_of(lines, "values");
  const auto found = read_final_rows({values, rows, 6}, threshold, 100);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, detections_of(numbers_of(lines, "found")));
}

void expect_suppressed(std::istringstream& words, std::istream& lines) {
  SuppressOptions options;
  words >> options.iou >> options.most >> options.across_labels;
  const auto given = detections_of(numbers_of(lines, "given"));
  const auto kept = detections_of(numbers_of(lines, "kept"));
  EXPECT_EQ(suppress(given, options), kept);
  EXPECT_LT(kept.size(), given.size());
}

TEST(Detection, IsReadAndSuppressedAsByTheOthers) {
  std::ifstream lines(test_data("vision/detections.txt"));
  std::map<std::string, int> count;
  for (std::string line; std::getline(lines, line);) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    ++count[kind];
    if (kind == "head") expect_head(words, lines);
    if (kind == "final") expect_final_rows(words, lines);
    if (kind == "suppress") expect_suppressed(words, lines);
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
  }
  EXPECT_EQ(count, (std::map<std::string, int>{{"head", 7}, {"final", 1}, {"suppress", 5}, {"fit", 14}}));
}

TEST(Detection, OfValuesThatAreNotFiniteIsLeftOut) {
  for (const float bad : {kNan, kInfinite, -kInfinite}) {
    for (size_t place = 0; place < 6; ++place) {
      std::vector<float> head = {10, 10, 4, 4, 0.9F, 0.9F, 20, 20, 4, 4, 0.5F, 0.1F};
      head[place] = bad;
      const auto found = read_joined_head({head, 2, 6}, {});
      ASSERT_TRUE(found);
      for (const Detection& one : *found) EXPECT_TRUE(one.score <= 0.9F && one.x1 > 0) << place;
      EXPECT_GE(found->size(), 1U);
    }
    EXPECT_TRUE(suppress({{0, bad, 1, 1, 2, 2}, {0, 1, bad, 1, 2, 2}}, {}).empty());
    std::vector<Detection> placed = {{0, 1, bad, 1, 2, 2}};
    place_in_source(placed, {.source_width = 10, .source_height = 10});
    for (const Detection& one : placed) EXPECT_TRUE(one.x1 >= 0 && one.x2 <= 10);
    const std::vector<float> row = {bad, 1, 0, 0, 1, 1, 0, bad, 0, 0, 1, 1, 0, 1, bad, 0, 1, 1};
    EXPECT_TRUE(read_final_rows({row, 3, 6}, 0.5F, 10)->empty());
  }
}

TEST(Detection, OfSizesThatDoNotFitIsRefused) {
  const std::vector<float> values(60);
  const auto refused = [](const auto& result, std::string_view text) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kInvalidArgument);
    EXPECT_NE(result.error().message.find(text), std::string::npos) << result.error().message;
  };
  refused(read_joined_head({values, 10, 7}, {}), "the detector's output [10, 7]: the tensor has 60 values");
  refused(read_joined_head({values, 15, 4}, {}), "needs from 5");
  refused(read_joined_head({values, 12, 5}, {.objectness = true}), "needs from 6");
  refused(read_joined_head({values, int64_t{1} << 62, 4}, {}), "needs from 5");
  refused(read_joined_head({values, int64_t{1} << 62, 16}, {}), "60 values");
  refused(read_joined_head({values, -1, 60}, {}), "[-1, 60]");
  refused(read_split_head({values, 12, 5}, {values, 12, 5}, {}), "need 4 columns");
  refused(read_split_head({values, 15, 4}, {values, 12, 5}, {}), "15 boxes and scores of 12");
  refused(read_final_rows({values, 12, 5}, 0, 10), "needs from 6");
  EXPECT_TRUE(read_joined_head({{}, 0, 84}, {})->empty());
}

TEST(Greatest, IsTheFirstOfEqualOnesAndNeverNan) {
  std::mt19937 random(3);
  for (size_t size = 1; size < 80; ++size) {
    std::vector<float> values(size);
    for (float& value : values) value = static_cast<float>(random() % 20);
    const auto expected = std::max_element(values.begin(), values.end());
    EXPECT_EQ(greatest_of(values).value, *expected);
    EXPECT_EQ(greatest_of(values).index, static_cast<size_t>(expected - values.begin()));
    EXPECT_FALSE(greatest_of(values).nan);
    const size_t place = random() % size;
    values[place] = kNan;
    EXPECT_TRUE(greatest_of(values).nan) << place << " of " << size;
    EXPECT_FALSE(std::isnan(greatest_of(values).value));
  }
  EXPECT_EQ(greatest_of(std::vector<float>{-kInfinite, -kInfinite}).index, 0U);
  EXPECT_EQ(greatest_of(std::vector<float>{kNan, kNan}).value, -kInfinite);
}

/// As many as there can be: each above the threshold, none of which overlaps.
TEST(Detection, OfHugeCountsTakesBoundedTime) {
  constexpr int64_t kRows = 100'000;
  std::vector<float> head;
  std::mt19937 random(1);
  for (int64_t i = 0; i < kRows; ++i) {
    const auto x = static_cast<float>(random() % 10'000'000);
    head.insert(head.end(), {x, x, 0.5F, 0.5F});
    for (int label = 0; label < 8; ++label) head.push_back(0.5F + static_cast<float>(random() % 1000) / 2000);
  }
  const auto found = read_joined_head({head, kRows, 12}, {.every_class = true, .most = 20'000});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 20'000U);
  const auto all = read_joined_head({head, kRows, 12}, {.every_class = true, .most = 10'000'000});
  EXPECT_TRUE(std::equal(found->begin(), found->end(), all->begin()));  // also where scores are equal
  EXPECT_EQ(suppress(*found, {.most = 300}).size(), 300U);
}

}  // namespace
}  // namespace serin::steps

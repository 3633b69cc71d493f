// Boxes and crops are those of PaddleOCR's rules with OpenCV, Clipper and Shapely in Python (make_text_boxes.py asked them); hostile maps end soon.
#include "runtime/steps/vision/text_boxes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/steps/vision/text_box_options.h"
#include "tests/runtime/steps/vision_cases.h"

namespace serin::steps {
namespace {

Vision open_vision() {
  auto vision = Vision::open(SERIN_VISION_PLUGIN);
  EXPECT_TRUE(vision) << vision.error().message;
  return *vision;
}

std::vector<float> map_of(const Image& grey) {
  std::vector<float> map;
  for (const uint8_t pixel : grey.pixels) map.push_back(static_cast<float>(pixel) / 255.F);
  return map;
}

std::vector<TextBox> boxes_of(const std::vector<float>& numbers) {
  std::vector<TextBox> boxes;
  for (size_t i = 0; i + 9 <= numbers.size(); i += 9) {
    TextBox box{.points = {}, .score = numbers[i + 8]};
    for (size_t corner = 0; corner < 4; ++corner) box.points[corner] = {numbers[i + 2 * corner], numbers[i + 2 * corner + 1]};
    boxes.push_back(box);
  }
  return boxes;
}

void expect_boxes(const Vision& vision, std::istringstream& words, std::istream& lines) {
  std::string name;
  TextBoxOptions options;
  Size source;
  words >> name >> options.threshold >> options.box_threshold >> options.most >> options.unclip_ratio >> options.dilate >>
      options.slow_score >> source.width >> source.height;
  const auto expected = boxes_of(numbers_of(lines, "boxes"));
  const Image grey = picture_of("vision/map_" + name + ".png", Color::kGray);
  const auto found = vision.find_text_boxes(map_of(grey), {grey.width, grey.height}, source, options);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR((*found)[i].score, expected[i].score, 6e-6) << i;
    EXPECT_EQ((*found)[i].points, expected[i].points) << i;
  }
}

void expect_picture(const Result<Image>& made, const std::string& name, int tolerance) {
  ASSERT_TRUE(made) << made.error().message;
  const Image expected = picture_of("vision/" + name);
  ASSERT_EQ(made->width, expected.width);
  ASSERT_EQ(made->height, expected.height);
  int worst = 0;
  for (size_t i = 0; i < expected.pixels.size(); ++i) worst = std::max(worst, std::abs(made->pixels[i] - expected.pixels[i]));
  EXPECT_LE(worst, tolerance);
}

TEST(TextBoxes, AreThoseOfPaddleOcrsRules) {
  const Vision vision = open_vision();
  std::ifstream lines(test_data("vision/text_boxes.txt"));
  std::map<std::string, int> count;
  for (std::string line; std::getline(lines, line);) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string kind, source, sign, name;
    words >> kind;
    ++count[kind];
    if (kind == "boxes") expect_boxes(vision, words, lines);
    if (kind == "crop") {
      Quad corners;
      words >> source;
      for (Point& point : corners) words >> point.x >> point.y;
      words >> sign >> name;
      expect_picture(vision.crop(picture_of("images/" + source), corners), name, 0);
    }
    if (kind == "cubic") {
      Size size;
      words >> source >> size.width >> size.height >> sign >> name;
      expect_picture(vision.resize_cubic(picture_of("images/" + source), size), name, 1);  // each build of OpenCV rounds in its own way
    }
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
  }
  EXPECT_EQ(count["boxes"], 48);
  EXPECT_EQ(count["crop"], 10);
  EXPECT_EQ(count["cubic"], 3);
}

template <class T>
void expect_refused(const Result<T>& result, Code code, std::string_view text) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code);
  EXPECT_NE(result.error().message.find(text), std::string::npos) << result.error().message;
}

TEST(TextBoxes, OfMapsThatDoNotFitAreRefused) {
  const Vision vision = open_vision();
  const std::vector<float> map(12, 0.F);
  expect_refused(vision.find_text_boxes(map, {5, 3}, {10, 10}, {}), Code::kInvalidArgument, "the map of 5 x 3 has 12 values");
  expect_refused(vision.find_text_boxes({}, {0, 0}, {10, 10}, {}), Code::kInvalidArgument, "the map is 0 x 0");
  expect_refused(vision.find_text_boxes(map, {4, 3}, {0, 10}, {}), Code::kInvalidArgument, "the source is 0 x 10");
  expect_refused(vision.find_text_boxes(map, {4, 3}, {10, 10}, {.unclip_ratio = std::numeric_limits<float>::infinity()}),
                 Code::kInvalidArgument, "unclip_ratio is inf");
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> damaged = map;
    damaged[9] = bad;
    expect_refused(vision.find_text_boxes(damaged, {4, 3}, {10, 10}, {}), Code::kInvalidArgument, "row 2 of the map");
  }
  EXPECT_TRUE(vision.find_text_boxes(std::vector<float>{1}, {1, 1}, {1, 1}, {})->empty());
  EXPECT_TRUE(vision.find_text_boxes(map, {4, 3}, {10, 10}, {.most = -1})->empty());
}

/// Four million blobs of one pixel, and rings within rings.
TEST(TextBoxes, OfNoiseAreRefusedBeforeTheyTakeLong) {
  const Vision vision = open_vision();
  constexpr int kSide = 4000;
  std::vector<float> map(size_t{kSide} * kSide, 0.F);
  for (size_t y = 0; y < kSide; y += 2)
    for (size_t x = 0; x < kSide; x += 2) map[y * kSide + x] = 1;
  expect_refused(vision.find_text_boxes(map, {kSide, kSide}, {kSide, kSide}, {}), Code::kTooLarge, "4000000 runs");
  constexpr size_t kRings = 1200;
  for (size_t y = 0; y < kRings; ++y)
    for (size_t x = 0; x < kRings; ++x) map[y * kRings + x] = std::min({x, y, kRings - 1 - x, kRings - 1 - y}) % 8 < 4 ? 1.F : 0.F;
  const auto rings = std::span(map).first(kRings * kRings);
  expect_refused(vision.find_text_boxes(rings, {kRings, kRings}, {kRings, kRings}, {}), Code::kTooLarge, "more than 16 times");
}

TEST(TextBoxes, CropsOfNothingAreRefused) {
  const Vision vision = open_vision();
  const Image image = blank_image(20, 10, 3);
  const Quad whole = {{{0, 0}, {20, 0}, {20, 10}, {0, 10}}};
  EXPECT_EQ(vision.crop(image, whole)->width, 20);
  Quad far = whole;
  far[2].x = std::numeric_limits<float>::quiet_NaN();
  expect_refused(vision.crop(image, far), Code::kInvalidArgument, "far outside");
  far[2].x = -1e9F;
  expect_refused(vision.crop(image, far), Code::kInvalidArgument, "far outside");
  expect_refused(vision.crop(image, {{{3, 3}, {3, 3}, {3, 3}, {3, 3}}}), Code::kInvalidArgument, "nothing to crop");
  expect_refused(vision.crop(image, {{{0, 0}, {30'000, 0}, {30'000, 30'000}, {0, 30'000}}}), Code::kTooLarge, "more than 64000000 pixels");
  expect_refused(vision.crop(image, {{{0, 0}, {90'000, 0}, {90'000, 5}, {0, 5}}}), Code::kInvalidArgument, "sides are from 1");
  expect_refused(vision.crop({}, whole), Code::kInvalidArgument, "a picture of 0 x 0");
  EXPECT_EQ(vision.crop(image, {{{1, 1}, {9, 1}, {9, 1}, {1, 1.5F}}}).has_value(), false);  // a line
  EXPECT_TRUE(vision.crop(image, {{{2, 2}, {9, 9}, {2, 9}, {9, 2}}}));                      // crossed: a picture, whatever it shows
  expect_refused(vision.resize_cubic(image, {0, 4}), Code::kInvalidArgument, "0 x 4");
  expect_refused(vision.resize_cubic(image, {30'000, 30'000}), Code::kTooLarge, "more than");
}

TEST(TextBoxes, WithoutThePluginAreAnErrorThatNamesTheFile) {
  const auto missing = Vision::open("/does/not/exist/libserin_vision.so");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().message.find("/does/not/exist/libserin_vision.so"), std::string::npos) << missing.error().message;
  expect_refused(Vision::open(), Code::kNotFound, program_folder() + "/libserin_vision.so");  // tests are in a folder of their own
  expect_refused(Vision::open("libm.so.6"), Code::kNotFound, "libm.so.6 is no plugin of Serin");
  EXPECT_TRUE(open_vision().library().starts_with("OpenCV 4."));
}

/// OpenCV would start threads of its own.
TEST(TextBoxes, AreFoundByManyThreadsAndByNoOthers) {
  const auto running = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const Vision vision = open_vision();
  const Image grey = picture_of("vision/map_page.png", Color::kGray);
  const std::vector<float> map = map_of(grey);
  const auto find = [&] { return *vision.find_text_boxes(map, {grey.width, grey.height}, {1000, 707}, {}); };
  const auto before = running();
  const auto expected = find();
  EXPECT_TRUE(vision.crop(blank_image(2000, 1500, 3), {{{9, 9}, {1990, 9}, {1990, 1490}, {9, 1490}}}));
  EXPECT_TRUE(vision.resize_cubic(blank_image(2000, 1500, 3), {640, 640}));
  EXPECT_EQ(running(), before);
  std::vector<std::vector<TextBox>> found(4);
  std::vector<std::thread> threads;
  for (auto& boxes : found) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) boxes = find();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& boxes : found) EXPECT_EQ(boxes, expected);
}

TEST(TextBoxes, AreSortedAsTheyAreRead) {
  const auto at = [](float x, float y) { return TextBox{.points = {{{x, y}, {x, y}, {x, y}, {x, y}}}, .score = x}; };
  std::vector<TextBox> boxes = {at(50, 100), at(90, 8), at(10, 12), at(20, 108), at(10, 30), at(5, 0)};
  sort_as_read(boxes);
  std::vector<float> order;
  for (const TextBox& box : boxes) order.push_back(box.score);
  EXPECT_EQ(order, (std::vector<float>{5, 10, 90, 10, 20, 50}));
}

}  // namespace
}  // namespace serin::steps

// Inputs of detectors and recognisers are those of PaddleOCR's rules with OpenCV and NumPy, to the last bit (make_text_boxes.py asked them).
#include "runtime/steps/vision/text_inputs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/runtime/steps/vision_cases.h"

namespace serin::steps {
namespace {

const std::map<std::string, SideLimit> kLimits = {
    {"max", SideLimit::kLongest}, {"min", SideLimit::kShortest}, {"long", SideLimit::kExact}, {"long_up", SideLimit::kExactUp}};

void expect_size(std::istringstream& words) {
  Size picture, expected;
  std::string limit, sign;
  DetectorInputOptions options;
  words >> picture.width >> picture.height >> limit >> options.side >> options.multiple >> options.largest >> sign >> expected.width >>
      expected.height;
  options.limit = kLimits.at(limit);
  const auto size = detector_input_size(picture, options);
  ASSERT_TRUE(size) << size.error().message;
  EXPECT_EQ(*size, expected);
}

void expect_detector_input(std::istringstream& words) {
  std::string source, limit, sign, hash;
  DetectorInputOptions options;
  Size size;
  words >> source >> limit >> options.side >> sign >> size.width >> size.height >> hash;
  options.limit = kLimits.at(limit);
  const auto made = detector_input(picture_of("images/" + source), options);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((Size{made->width, made->height}), size);
  EXPECT_EQ(fmt::format("{:016x}", fnv1a(made->pixels)), hash);
}

void expect_recogniser_input(std::istringstream& words) {
  std::string source, word, hash;
  RecogniserOptions options;
  int width = 0;
  words >> source >> options.height >> options.width >> options.largest_width;
  const Image image = picture_of("images/" + source);
  std::vector<Size> batch = {{image.width, image.height}};
  while (words >> word && word != "=") batch.push_back({std::stoi(word), 10});
  words >> width >> hash;
  const auto made = recogniser_width(batch, options);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*made, width);
  std::vector<float> input(3 * static_cast<size_t>(options.height) * static_cast<size_t>(width), 7.F);
  const auto written = write_recogniser_input(image, width, options, input);
  ASSERT_TRUE(written) << written.error().message;
  std::vector<uint8_t> bytes(input.size() * sizeof(float));
  std::memcpy(bytes.data(), input.data(), bytes.size());
  EXPECT_EQ(fmt::format("{:016x}", fnv1a(bytes)), hash);
}

TEST(TextInputs, AreThoseOfPaddleOcrsRules) {
  std::ifstream lines(test_data("vision/text_boxes.txt"));
  std::map<std::string, int> count;
  for (std::string line; std::getline(lines, line);) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    ++count[kind];
    if (kind == "size") expect_size(words);
    if (kind == "detector") expect_detector_input(words);
    if (kind == "recogniser") expect_recogniser_input(words);
  }
  EXPECT_EQ(count["size"], 45);
  EXPECT_EQ(count["detector"], 4);
  EXPECT_EQ(count["recogniser"], 8);
}

TEST(TextInputs, OfSizesThatMakeNoSenseAreRefused) {
  EXPECT_EQ(detector_input_size({0, 5}, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(detector_input_size({1 << 21, 5}, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(detector_input_size({50, 5}, {.side = 0}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(*detector_input_size({50, 25}, {.exact = Size{800, 640}}), (Size{800, 640}));
  EXPECT_EQ(*detector_input_size({50, 30}, {.exact = Size{800, 640}, .keep_ratio = true}), (Size{1088, 640}));  // 1066.7
  EXPECT_EQ(detector_input_size({1 << 20, 1}, {.exact = Size{800, 640}, .keep_ratio = true}).error().code, Code::kTooLarge);
  EXPECT_EQ(detector_input_size({50, 5}, {.exact = Size{0, 640}}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(detector_input_size({50, 5}, {.multiple = 0}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(detector_input_size({1 << 20, 1}, {.largest = 0}).error().code, Code::kTooLarge);
  EXPECT_EQ(*detector_input_size({1 << 20, 1}, {}), (Size{4000, 32}));
  EXPECT_EQ(recogniser_width({}, {.height = 0}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(recogniser_width(std::vector<Size>{{1, 0}}, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(*recogniser_width(std::vector<Size>{{2'000'000'000, 1}}, {}), 3200);
  std::vector<float> out(3 * 48 * 320);
  EXPECT_FALSE(write_recogniser_input({}, 320, {}, out));
  EXPECT_FALSE(write_recogniser_input(blank_image(5, 5, 3), 3201, {}, out));
  EXPECT_FALSE(write_recogniser_input(blank_image(5, 5, 1), 320, {}, out));
  EXPECT_TRUE(write_recogniser_input(blank_image(1, 5000, 3), 320, {}, out));
  EXPECT_TRUE(write_recogniser_input(blank_image(5000, 1, 3), 320, {}, out));
}

}  // namespace
}  // namespace serin::steps

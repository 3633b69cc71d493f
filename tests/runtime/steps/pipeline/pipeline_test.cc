// Settings of steps, checked against a model's tensors, and one row through them.
#include "runtime/steps/pipeline/pipeline.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "kernels/float16.h"
#include "runtime/steps/pipeline/numbers.h"
#include "runtime/steps/pipeline/paddle_steps.h"
#include "runtime/steps/vision/paddle_export.h"
#include "tests/runtime/steps/vision_cases.h"

namespace serin::steps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<std::string> no_files(const std::string& name) { return invalid("no file " + name); }

Result<StepsSettings> settings_of(const std::string& yaml) {
  SERIN_TRY(const config::Node root, config::Node::parse(yaml, "serin.yaml"));
  return read_steps(root, no_files);
}

/// A picture whose pixels are its position: red is x, green is y, blue is 9.
std::string grid(int width, int height) {
  std::string file = "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n";
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) file += {static_cast<char>(x), static_cast<char>(y), 9};
  return file;
}

const std::vector<TensorFacts> kPixels = {{"x", DType::kUInt8, {3, -1, -1}}};
const std::vector<TensorFacts> kScores = {{"scores", DType::kFloat32, {-1}}};

struct Ran {
  Made pixels;
  RowFacts facts;
  std::vector<std::string> parts;
};

Ran run(const std::string& yaml, const std::string& file, const std::vector<TensorFacts>& inputs = kPixels) {
  const auto settings = settings_of(yaml);
  EXPECT_TRUE(settings) << settings.error().message;
  const auto pipeline = Pipeline::make(*settings, inputs, kScores);
  EXPECT_TRUE(pipeline) << pipeline.error().message;
  Ran ran;
  auto prepared = (*pipeline)->before(std::vector<std::string_view>{file},
                                      [&](std::string_view part, std::chrono::nanoseconds) { ran.parts.emplace_back(part); });
  EXPECT_TRUE(prepared) << prepared.error().message;
  ran.pixels = std::move(*prepared->inputs[0]);
  ran.facts = std::move(prepared->facts);
  return ran;
}

/// x and y of the first pixel, by the grid.
std::pair<int, int> corner(Ran& ran) {
  const auto bytes = ran.pixels.view().span<uint8_t>();
  return {bytes[0], bytes[static_cast<size_t>(ran.pixels.shape[1] * ran.pixels.shape[2])]};
}

TEST(Pictures, ShorterSidesFollowTorchvisionOrPaddle) {
  // torchvision.transforms.Resize(8) of 13x10 (width x height): int(8 * 13 / 10) = 10; round(13 * 0.8) = 10; of 17x10: 13 and 14
  EXPECT_EQ(run("pre: [{picture: i, resize: {to: 8, fit: shortest}}]", grid(17, 10)).pixels.shape, (Shape{3, 8, 13}));
  EXPECT_EQ(run("pre: [{picture: i, resize: {to: 8, fit: shortest, rounding: nearest}}]", grid(17, 10)).pixels.shape, (Shape{3, 8, 14}));
  EXPECT_EQ(run("pre: [{picture: i, resize: {to: 8, fit: shortest}}]", grid(10, 17)).pixels.shape, (Shape{3, 13, 8}));
}

TEST(Pictures, CropsFollowTorchvisionOrPaddle) {
  // Half of 3 is 1.5: round() of Python gives 2, a division of integers 1. Half of 1 gives 0 in both.
  Ran torchvision = run("pre: [{picture: i, crop: [9, 10]}]", grid(13, 10));
  EXPECT_EQ(corner(torchvision), (std::pair{2, 0}));
  EXPECT_EQ(torchvision.pixels.shape, (Shape{3, 9, 10}));
  EXPECT_EQ(torchvision.facts.picture.left, -2);
  Ran paddle = run("pre: [{picture: i, crop: {to: [9, 10], rounding: down}}]", grid(13, 10));
  EXPECT_EQ(corner(paddle), (std::pair{1, 0}));
}

TEST(Pictures, FramesAreInTheCornerOrAround) {
  Ran corner = run("pre: [{picture: i, resize: {to: [20, 20], fit: inside}, pad: {to: [20, 20], value: 114}}]", grid(10, 5));
  EXPECT_EQ(corner.pixels.shape, (Shape{3, 20, 20}));
  EXPECT_EQ(corner.facts.picture.scale_x, 2);
  EXPECT_EQ(corner.facts.picture.top, 0);
  EXPECT_EQ(corner.pixels.view().span<uint8_t>()[10 * 20], 114);
  const Ran centre = run("pre: [{picture: i, resize: {to: [20, 20], fit: inside}, pad: {to: [20, 21], place: centre}}]", grid(10, 5));
  EXPECT_EQ(centre.facts.picture.top, 5);
  EXPECT_EQ(centre.facts.picture.left, 0) << "of an odd pixel the right side has more, as in YOLOv5";
  EXPECT_EQ(centre.facts.picture.source_width, 10);
  EXPECT_EQ(centre.facts.picture.source_height, 5);
}

/// As YOLOv5 (centred), YOLOX (upper left) and PP-YOLOE (stretched) do it (make_detections.py).
TEST(Pictures, AreFramedAndBoxesGoBackAsByTheDetectorsOwnCode) {
  const std::map<std::string, std::string> steps = {
      {"centred",
       "pre: [{{picture: i, layout: nhwc, resize: {{to: [{1}, {0}], fit: inside, rule: cv2.linear, rounding: nearest}}, pad: {{to: [{1}, "
       "{0}], value: 114, place: centre}}}}]"},
      {"upper_left",
       "pre: [{{picture: i, layout: nhwc, resize: {{to: [{1}, {0}], fit: inside, rule: cv2.linear}}, pad: {{to: [{1}, {0}], value: "
       "114}}}}]"},
      {"stretched", "pre: [{{picture: i, layout: nhwc, resize: {{to: [{1}, {0}], rule: cv2.linear}}}}]"}};
  std::ifstream lines(test_data("vision/detections.txt"));
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, fit, source, sign, hash;
    int width = 0, height = 0, made_width = 0, made_height = 0;
    float left = 0, top = 0;
    Detection back{0, 1};
    if (!(words >> kind) || kind != "fit") continue;
    SCOPED_TRACE(line);
    words >> width >> height >> fit >> source >> sign >> made_width >> made_height >> left >> top >> hash >> back.x1 >> back.y1 >>
        back.x2 >> back.y2;
    ++count;
    const std::vector<TensorFacts> inputs = {{"x", DType::kUInt8, {-1, -1, 3}}};
    Ran ran = run(fmt::format(fmt::runtime(steps.at(fit)), width, height), text_of(test_data("images/" + source)), inputs);
    EXPECT_EQ(ran.pixels.shape, (Shape{made_height, made_width, 3}));
    const auto bytes = ran.pixels.view().span<uint8_t>();
    EXPECT_EQ(fmt::format("{:016x}", fnv1a({bytes.begin(), bytes.end()})), hash);
    EXPECT_EQ(ran.facts.picture.left, left);
    EXPECT_EQ(ran.facts.picture.top, top);
    std::vector<Detection> found = {{0, 1, 20, 11, 77, 60}};
    place_in_source(found, ran.facts.picture);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_NEAR(found[0].x1, back.x1, 1e-3);
    EXPECT_NEAR(found[0].y1, back.y1, 1e-3);
    EXPECT_NEAR(found[0].x2, back.x2, 1e-3);
    EXPECT_NEAR(found[0].y2, back.y2, 1e-3);
  }
  EXPECT_EQ(count, 14);
}

TEST(Pictures, OfOnePixelAcrossKeepIt) {
  const std::string yaml = "pre: [{picture: i, resize: {to: 64, fit: inside}, pad: {to: 64}}]";
  EXPECT_EQ(run(yaml, grid(1, 200)).pixels.shape, (Shape{3, 64, 64}));
  EXPECT_EQ(run(yaml, grid(200, 1)).pixels.shape, (Shape{3, 64, 64}));
}

TEST(Pictures, PaddedAfterTheirValuesHaveZeros) {
  Ran ran = run("pre: [{picture: i, scale: 1, mean: 7, layout: nchw, pad: {multiple: 4, value: 9}}]", grid(3, 2),
                {{"x", DType::kFloat32, {3, -1, -1}}});
  EXPECT_EQ(ran.pixels.shape, (Shape{3, 4, 4}));
  EXPECT_EQ(ran.pixels.view().span<float>()[3], 2) << "9 - 7";
  EXPECT_EQ(ran.facts.input_width, 4);
}

TEST(Pictures, OfPaddleAreDescribedByItsOwnFile) {
  const auto model = load_paddle_export(test_data("vision/exports/detector_with_suppression.yml"));
  ASSERT_TRUE(model) << model.error().message;
  const std::vector<TensorFacts> inputs = {{"image", DType::kFloat32, {3, -1, -1}}, {"scale_factor", DType::kFloat32, {2}}};
  const std::vector<TensorFacts> outputs = {{"boxes", DType::kFloat32, {-1, 4}}, {"scores", DType::kFloat32, {1, -1}}};
  const auto steps = steps_of_paddle(*model, inputs, outputs);
  ASSERT_TRUE(steps) << steps.error().message;
  const auto pipeline = Pipeline::make(**steps, inputs, outputs);
  ASSERT_TRUE(pipeline) << pipeline.error().message;
  const std::string file = grid(100, 50);
  auto prepared = (*pipeline)->before(std::vector<std::string_view>{file}, [](auto...) {});
  ASSERT_TRUE(prepared) << prepared.error().message;
  // 100 x 50 grows by 4.16 to 416 x 208, which becomes 416 x 224
  EXPECT_EQ(prepared->inputs[0]->shape, (Shape{3, 224, 416}));
  EXPECT_NEAR(prepared->inputs[0]->view().span<float>()[0], (0 - 123.675) / 58.395, 1e-5);
  EXPECT_EQ(prepared->inputs[0]->view().span<float>()[223 * 416], 0) << "padded after the values";
  EXPECT_NEAR(prepared->inputs[1]->view().span<float>()[0], 4.16, 1e-5);
  std::vector<float> boxes = {10, 10, 30, 20, 11, 10, 30, 20}, scores = {0.6F, 0.5F};
  auto made = (*pipeline)->after(std::vector<TensorView>{{DType::kFloat32, {2, 4}, boxes.data()}, {DType::kFloat32, {1, 2}, scores.data()}},
                                 prepared->facts, [](auto...) {});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT((*made)[0].texts[0], HasSubstr(R"([{"bbox":[10,10,20,10],"category_id":0,"category":"face","score":0.6)"));
}

TEST(Pictures, LevelsAreScaledInFloats) {
  const std::vector<TensorFacts> last = {{"x", DType::kFloat32, {2, 3, 3}}};
  Ran ran = run("pre: [{picture: i, mean: [0.5, 0, 0], std: [2, 1, 1], layout: nhwc}]", grid(3, 2), last);
  const auto values = ran.pixels.view().span<float>();
  EXPECT_EQ(values[3], (1 / 255.0F - 0.5F) / 2);
  EXPECT_EQ(values[2], 9 / 255.0F);
  const std::vector<TensorFacts> halves = {{"x", DType::kFloat16, {3, 2, 3}}};
  Ran half = run("pre: [{picture: i, scale: 1, layout: nchw}]", grid(3, 2), halves);
  EXPECT_EQ(kernels::to_float(half.pixels.view().span<kernels::Half>()[2]), 2);
}

TEST(Pictures, GrayOnesMayLackAnAxis) {
  const std::vector<TensorFacts> gray = {{"x", DType::kUInt8, {2, 3}}};
  EXPECT_EQ(run("pre: [{picture: i, color: gray}]", grid(3, 2), gray).pixels.shape, (Shape{2, 3}));
}

TEST(Pictures, DetectorsOfPaddleGetSizesAndRatios) {
  const std::vector<TensorFacts> detector = {
      {"im_shape", DType::kFloat32, {2}}, {"image", DType::kFloat32, {3, 20, 30}}, {"scale_factor", DType::kFloat32, {2}}};
  const auto settings = settings_of("pre: [{picture: i, to: image, resize: [20, 30], shape_to: im_shape, scale_to: scale_factor}]");
  const auto pipeline = Pipeline::make(*settings, detector, kScores);
  ASSERT_TRUE(pipeline) << pipeline.error().message;
  const std::string file = grid(10, 10);
  auto prepared = (*pipeline)->before(std::vector<std::string_view>{file}, [](auto...) {});
  ASSERT_TRUE(prepared);
  EXPECT_THAT(prepared->inputs[0]->view().span<float>(), ElementsAre(20, 30));
  EXPECT_THAT(prepared->inputs[2]->view().span<float>(), ElementsAre(2, 3));
  EXPECT_EQ((*pipeline)->inputs().size(), 1u);
}

TEST(Pictures, EachPartIsMeasured) {
  EXPECT_THAT(run("pre: [{picture: i}]", grid(3, 2)).parts, ElementsAre("decode", "resize", "normalize"));
}

TEST(Pictures, LayoutsThatNothingSettlesAreAskedFor) {
  const std::vector<TensorFacts> open = {{"x", DType::kUInt8, {-1, -1, -1}}};
  const auto pipeline = Pipeline::make(*settings_of("pre: [{picture: i}]"), open, kScores);
  ASSERT_FALSE(pipeline);
  EXPECT_THAT(pipeline.error().message, HasSubstr("'layout' must say"));
}

TEST(Pictures, SizesOfTheModelAreChecked) {
  const std::vector<TensorFacts> fixed = {{"x", DType::kUInt8, {3, 8, 8}}};
  const auto pipeline = Pipeline::make(*settings_of("pre: [{picture: i, resize: 9}]"), fixed, kScores);
  ASSERT_FALSE(pipeline);
  EXPECT_THAT(pipeline.error().message, HasSubstr("makes [3,9,9] for input 'x', which is [3,8,8]"));
}

std::vector<Made> classes_of(const std::string& yaml, std::vector<float> scores) {
  const auto pipeline = Pipeline::make(*settings_of(yaml), kPixels, kScores);
  EXPECT_TRUE(pipeline) << pipeline.error().message;
  const std::vector<TensorView> outputs = {{DType::kFloat32, Shape{static_cast<int64_t>(scores.size())}, scores.data()}};
  auto made = (*pipeline)->after(outputs, {}, [](auto...) {});
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

TEST(Classes, AreTheBestFirst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto made = classes_of("post: [{classes: scores, top: 4}]", {0.5F, nan, 2, 0.5F, -1});
  EXPECT_THAT(made[0].view().span<int64_t>(), ElementsAre(2, 0, 3, 4)) << "equal ones in their order, NaN last";
  EXPECT_THAT(made[1].view().span<float>(), ElementsAre(2, 0.5F, 0.5F, -1));
}

TEST(Classes, HaveProbabilities) {
  auto made = classes_of("post: [{classes: scores, top: 2, softmax: true}]", {1000, 1001, -1000});
  EXPECT_FLOAT_EQ(made[1].view().span<float>()[0], 1 / (1 + std::exp(-1.0F)));
  EXPECT_FLOAT_EQ(made[1].view().span<float>()[1], 1 / (1 + std::exp(1.0F)));
  made = classes_of("post: [{classes: scores, sigmoid: true}]", {3, 0});
  EXPECT_FLOAT_EQ(made[1].view().span<float>()[0], 1 / (1 + std::exp(-3.0F)));
}

TEST(Classes, FewerThanAskedForAreAnError) {
  std::vector<float> scores = {1};
  const auto pipeline = Pipeline::make(*settings_of("post: [{classes: scores, top: 2}]"), kPixels, kScores);
  const auto made = (*pipeline)->after(std::vector<TensorView>{{DType::kFloat32, Shape{1}, scores.data()}}, {}, [](auto...) {});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("has 1 classes"));
}

TEST(Numbers, OfEveryTypeAreRead) {
  int64_t whole[] = {-3, 7};
  EXPECT_THAT(*floats_of({DType::kInt64, {2}, whole}), ElementsAre(-3, 7));
  kernels::BFloat16 narrow[] = {kernels::to_bfloat16(1.5F)};
  EXPECT_THAT(*floats_of({DType::kBFloat16, {1}, narrow}), ElementsAre(1.5F));
  EXPECT_FALSE(is_number(DType::kString));
  EXPECT_FALSE(floats_of({DType::kString, {0}, nullptr}));
}

}  // namespace
}  // namespace serin::steps

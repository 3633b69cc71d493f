// The files next to Paddle's models are read whole, or refused with the name of what is not supported.
#include "runtime/steps/vision/paddle_export.h"

#include <gtest/gtest.h>

#include "runtime/steps/vision/ctc.h"
#include "tests/runtime/steps/vision_cases.h"

namespace serin::steps {
namespace {

using Texts = std::vector<std::string>;

PaddleExport export_of(const std::string& name) {
  const auto model = load_paddle_export(test_data("vision/exports/" + name));
  EXPECT_TRUE(model) << model.error().message;
  return model ? *model : PaddleExport{};
}

template <class Step>
Step step_of(const PaddleExport& model, size_t index) {
  EXPECT_GT(model.before.size(), index);
  const auto* const step = index < model.before.size() ? std::get_if<Step>(&model.before[index]) : nullptr;
  EXPECT_NE(step, nullptr) << index;
  return step ? *step : Step{};
}

template <class Step>
Step answer_of(const PaddleExport& model) {
  const auto* const step = std::get_if<Step>(&model.after);
  EXPECT_NE(step, nullptr);
  return step ? *step : Step{};
}

const NormaliseStep kImageNet = {.scale = 1.F / 255.F, .mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}};

TEST(PaddleExport, OfATextDetector) {
  const PaddleExport model = export_of("text_detector.yml");
  EXPECT_EQ(model.name, "PP-OCRv5_mobile_det");
  EXPECT_EQ(model.color, Color::kBgr);
  ASSERT_EQ(model.before.size(), 3U);
  const auto input = step_of<DetectorInputOptions>(model, 0);
  EXPECT_EQ(input.limit, SideLimit::kExactUp);
  EXPECT_EQ(input.side, 960);
  EXPECT_EQ(input.multiple, 128);
  EXPECT_EQ(step_of<NormaliseStep>(model, 1), kImageNet);
  step_of<ChannelsFirstStep>(model, 2);
  const auto boxes = answer_of<TextBoxOptions>(model);
  EXPECT_EQ(boxes.threshold, 0.3F);
  EXPECT_EQ(boxes.box_threshold, 0.6F);
  EXPECT_EQ(boxes.most, 1000);
  EXPECT_EQ(boxes.unclip_ratio, 1.5F);
  EXPECT_FALSE(boxes.dilate || boxes.slow_score);
}

TEST(PaddleExport, OfATextRecogniser) {
  const PaddleExport model = export_of("text_recogniser.yml");
  ASSERT_EQ(model.before.size(), 1U);
  const auto input = step_of<RecogniserInputStep>(model, 0);
  EXPECT_EQ(input.channels, 3);
  EXPECT_EQ(input.options.height, 48);
  EXPECT_EQ(input.options.width, 320);
  const auto read = answer_of<ReadTextStep>(model);
  EXPECT_EQ(read.characters, (Texts{"0", "y", "~", "'", "\u3000", "中", "#", "😀"}));
  EXPECT_TRUE(read.with_space);
  EXPECT_EQ(Dictionary::of(read.characters, read.with_space, model.name).classes(), 10);
}

TEST(PaddleExport, OfAClassifier) {
  const PaddleExport model = export_of("classifier.yml");
  EXPECT_EQ(model.color, Color::kRgb);
  ASSERT_EQ(model.before.size(), 4U);
  EXPECT_EQ(step_of<ResizeStep>(model, 0), (ResizeStep{.rule = ResizeStep::Rule::kShortest, .size = {}, .side = 256}));
  EXPECT_EQ(step_of<CropStep>(model, 1), (CropStep{{224, 224}}));
  EXPECT_EQ(step_of<NormaliseStep>(model, 2), kImageNet);
  step_of<ChannelsFirstStep>(model, 3);
  const auto rank = answer_of<RankStep>(model);
  EXPECT_EQ(rank.most, 2);
  EXPECT_EQ(rank.labels, (Texts{"tench, Tinca tinca", "goldfish", "7"}));
}

TEST(PaddleExport, OfADetector) {
  const PaddleExport model = export_of("detector.yml");
  EXPECT_EQ(model.name, "PP-YOLOE_plus-S");
  ASSERT_EQ(model.before.size(), 3U);
  EXPECT_EQ(step_of<ResizeStep>(model, 0), (ResizeStep{.size = {640, 608}, .interpolation = Resample::kCvCubic}));
  EXPECT_EQ(step_of<NormaliseStep>(model, 1), NormaliseStep{});
  const auto detect = answer_of<DetectStep>(model);
  EXPECT_EQ(detect.architecture, "YOLO");
  EXPECT_EQ(detect.labels, (Texts{"person", "bicycle"}));
  EXPECT_EQ(detect.score_threshold, 0.5F);
  EXPECT_FALSE(detect.suppression);
}

TEST(PaddleExport, OfADetectorWithSuppression) {
  const PaddleExport model = export_of("detector_with_suppression.yml");
  ASSERT_EQ(model.before.size(), 4U);
  EXPECT_EQ(step_of<ResizeStep>(model, 0), (ResizeStep{.rule = ResizeStep::Rule::kWithin, .size = {416, 320}}));
  EXPECT_EQ(step_of<NormaliseStep>(model, 1),
            (NormaliseStep{.scale = 1, .mean = {123.675F, 116.28F, 103.53F}, .std = {58.395F, 57.12F, 57.375F}}));
  EXPECT_EQ(step_of<PadStep>(model, 3).stride, 32);
  const auto detect = answer_of<DetectStep>(model);
  ASSERT_TRUE(detect.suppression);
  EXPECT_EQ(detect.suppression->iou, 0.6F);
  EXPECT_EQ(detect.suppression->score_threshold, 0.025F);
  EXPECT_EQ(detect.suppression->candidates, 1'000'000);  // -1: all
  EXPECT_EQ(detect.suppression->most, 100);
}

Result<PaddleExport> read(const std::string& text) {
  const auto file = config::Node::parse(text, "inference.yml");
  EXPECT_TRUE(file) << file.error().message;
  return read_paddle_export(*file);
}

/// A file with this operation alone.
Result<PaddleExport> read_operation(const std::string& operation) { return read("PreProcess:\n  transform_ops:\n  - " + operation + "\n"); }

TEST(PaddleExport, LeavesToItsDefaultsWhatAnOperationDoesNotSay) {
  const auto input = [](const std::string& text) { return step_of<DetectorInputOptions>(*read_operation(text), 0); };
  EXPECT_EQ(input("DetResizeForTest: null").side, 736);
  EXPECT_EQ(input("DetResizeForTest: {}").limit, SideLimit::kShortest);
  EXPECT_EQ(input("DetResizeForTest: {limit_side_len: 960, limit_type: max}").limit, SideLimit::kLongest);
  EXPECT_EQ(input("DetResizeForTest: {limit_side_len: 960}").limit, SideLimit::kShortest);
  EXPECT_EQ(input("DetResizeForTest: {image_shape: [640, 800]}").exact, (Size{800, 640}));
  EXPECT_EQ(step_of<NormaliseStep>(*read_operation("NormalizeImage: {}"), 0), kImageNet);
  EXPECT_EQ(step_of<ResizeStep>(*read_operation("ResizeImage: {size: [160, 80], interpolation: bicubic, backend: pil}"), 0),
            (ResizeStep{.size = {160, 80}, .interpolation = Resample::kPilBicubic}));
  EXPECT_EQ(read_operation("DecodeImage: {img_mode: GRAY}")->color, Color::kGray);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(read_operation("ToCHWImage: null")->after));
  const auto boxes = read("PreProcess: {transform_ops: []}\nPostProcess: {name: DBPostProcess, score_mode: slow, use_dilation: true}");
  EXPECT_TRUE(answer_of<TextBoxOptions>(*boxes).slow_score && answer_of<TextBoxOptions>(*boxes).dilate);
  EXPECT_EQ(answer_of<TextBoxOptions>(*boxes).unclip_ratio, 2.F);
}

/// As PaddleClas and PaddleDetection round: to the nearest even number.
TEST(PaddleExport, SaysTheSizeThatAPictureIsResizedTo) {
  using Rule = ResizeStep::Rule;
  EXPECT_EQ((ResizeStep{.size = {224, 200}}).size_of({999, 3}), (Size{224, 200}));
  const ResizeStep shortest{.rule = Rule::kShortest, .size = {}, .side = 256};
  EXPECT_EQ(shortest.size_of({640, 480}), (Size{341, 256}));
  EXPECT_EQ(shortest.size_of({500, 333}), (Size{384, 256}));
  EXPECT_EQ(shortest.size_of({512, 513}), (Size{256, 256}));  // 256.5
  const ResizeStep within{.rule = Rule::kWithin, .size = {1333, 800}};
  EXPECT_EQ(within.size_of({1000, 600}), (Size{1333, 800}));
  EXPECT_EQ(within.size_of({600, 1000}), (Size{800, 1333}));
  EXPECT_EQ(within.size_of({4000, 500}), (Size{1333, 167}));
  EXPECT_EQ(within.size_of({1 << 20, 1}), (Size{1333, 1}));
}

TEST(PaddleExport, NamesWhatIsNotSupported) {
  const auto refused = [](const Result<PaddleExport>& model, std::string_view text) {
    ASSERT_FALSE(model) << text;
    EXPECT_NE(model.error().message.find(text), std::string::npos) << model.error().message;
    EXPECT_TRUE(model.error().message.starts_with("inference.yml")) << model.error().message;
  };
  refused(read_operation("RotateImage: {angle: 3}"),
          "the operation 'RotateImage' is not supported; supported are DecodeImage, ResizeImage");
  refused(read_operation("RotateImage: null"), "inference.yml:3:5: PreProcess.transform_ops[0]: RotateImage: the operation 'RotateImage'");
  refused(read_operation("CropImage: null"), "key 'size' is missing");
  refused(read_operation("CropImage: {size: 0}"), "from 1 to 16384");
  refused(read_operation("CropImage: {size: 9, where: left}"), "unknown key 'where'");
  refused(read_operation("ResizeImage: {size: [1, 2, 3]}"), "list of 2 numbers");
  refused(read_operation("ResizeImage: {size: 3, backend: tf}"), "backend must be cv2 or pil");
  refused(read_operation("NormalizeImage: {scale: 1./0.}"), "a quotient such as 1./255.");
  refused(read_operation("NormalizeImage: {scale: __import__('os')}"), "a quotient such as 1./255.");
  refused(read_operation("NormalizeImage: {std: [1, 0, 1]}"), "must not be 0");
  refused(read_operation("NormalizeImage: {mean: [1]}"), "different numbers of channels");
  refused(read_operation("RecResizeImg: {image_shape: [2, 48, 320]}"), "1 or 3 channels");
  refused(read_operation("[1, 2]"), "a map with one key");
  refused(read("PreProcess: {transform_ops: 3}"), "must be a list of operations");
  refused(read("PreProcess: {}"), "key 'transform_ops' is missing");
  refused(read("model: x"), "has neither PreProcess");
  refused(read("[]"), "has neither PreProcess");
  refused(read("Preprocess: [{type: LetterBoxResize}]"), "the operation 'LetterBoxResize' is not supported; supported are Resize");
  refused(read("Preprocess: [{interp: 1}]"), "key 'type' is missing");
  refused(read("Preprocess: []\nNMS: {name: MatrixNMS}"), "MultiClassNMS");
  refused(read("PreProcess: {transform_ops: []}\nPostProcess: {name: PSEPostProcess}"), "'PSEPostProcess' is not supported");
  refused(read("PreProcess: {transform_ops: []}\nPostProcess: {ThreshOutput: {threshold: 0.5}}"), "'ThreshOutput' is not supported");
  refused(read("PreProcess: {transform_ops: []}\nPostProcess: {name: DBPostProcess, box_type: poly}"), "must be one of quad");
  refused(read("PreProcess: {transform_ops: []}\nPostProcess: {name: DBPostProcess, thresh: nan}"), "from 0 to 1");
  std::string many = "PreProcess:\n  transform_ops:\n";
  for (int i = 0; i < 101; ++i) many += "  - ToCHWImage: null\n";
  refused(read(many), "101 operations; 100 are the limit");
  EXPECT_EQ(load_paddle_export("/does/not/exist.yml").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace serin::steps

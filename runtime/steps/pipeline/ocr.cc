#include "runtime/steps/pipeline/ocr.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/steps/levels.h"
#include "runtime/steps/pipeline/ctc_step.h"
#include "runtime/steps/pipeline/numbers.h"
#include "runtime/steps/pipeline/picture_step.h"
#include "runtime/steps/vision/answer_json.h"

namespace serin::steps {
namespace {

constexpr int kWidthStep = 32;

/// As PaddleOCR normalises: the means and deviations are in the order of RGB, the pixels in that of BGR, in training and here.
const Levels<float>& detector_levels() {
  static const Levels<float> levels = make_levels<float>(3, [](float level, size_t channel) {
    constexpr std::array<float, 3> kMean = {0.485F, 0.456F, 0.406F}, kStd = {0.229F, 0.224F, 0.225F};
    return (level * (1.0F / 255.0F) - kMean[channel]) / kStd[channel];
  });
  return levels;
}

Result<Size> map_size(const TensorView& map) {
  const Shape& shape = map.shape;
  const size_t rank = shape.rank();
  const bool fits =
      map.dtype == DType::kFloat32 && rank >= 2 && std::ranges::all_of(shape.dims().first(rank - 2), [](int64_t dim) { return dim == 1; });
  constexpr int64_t kLargestSide = 65'536;
  if (fits && shape[rank - 2] <= kLargestSide && shape[rank - 1] <= kLargestSide)
    return Size{static_cast<int>(shape[rank - 1]), static_cast<int>(shape[rank - 2])};
  return Error{Code::kInternal, fmt::format("the detector answers {} {} and not a map of FP32", dtype_name(map.dtype), shape.str())};
}

Status read_detector(const config::Node& node, OcrSettings& settings) {
  SERIN_CHECK(node.allow_only({"model", "version", "side", "limit", "threshold", "box_threshold", "unclip_ratio", "most", "dilation"}));
  if (const auto limit = node.find("limit")) {
    SERIN_TRY(const std::string word, limit->one_of({"max", "min", "exact"}));
    settings.detector.limit = word == "max" ? SideLimit::kLongest : word == "min" ? SideLimit::kShortest : SideLimit::kExact;
  }
  SERIN_TRY(const int64_t side, node.integer("side", 32, 16'384, settings.detector.side));
  settings.detector.side = static_cast<int>(side);
  SERIN_TRY(const double threshold, node.number("threshold", 0, 1, settings.boxes.threshold));
  settings.boxes.threshold = static_cast<float>(threshold);
  SERIN_TRY(const double box_threshold, node.number("box_threshold", 0, 1, settings.boxes.box_threshold));
  settings.boxes.box_threshold = static_cast<float>(box_threshold);
  SERIN_TRY(const double ratio, node.number("unclip_ratio", 0.1, 10, settings.boxes.unclip_ratio));
  settings.boxes.unclip_ratio = static_cast<float>(ratio);
  SERIN_TRY(const int64_t most, node.integer("most", 1, 10'000, static_cast<int64_t>(settings.boxes.most)));
  settings.boxes.most = static_cast<decltype(settings.boxes.most)>(most);
  SERIN_TRY(settings.boxes.dilate, node.boolean("dilation", settings.boxes.dilate));
  return {};
}

Status read_recogniser(const config::Node& node, const FindFile& files, OcrSettings& settings) {
  SERIN_CHECK(node.allow_only({"model", "version", "dictionary", "space", "height", "width", "largest_width", "least_score"}));
  SERIN_TRY(settings.dictionary, read_dictionary(node, files));
  SERIN_TRY(const int64_t height, node.integer("height", 8, 512, settings.lines.height));
  SERIN_TRY(const int64_t width, node.integer("width", 8, 16'384, settings.lines.width));
  SERIN_TRY(const int64_t largest, node.integer("largest_width", width, 16'384, std::max<int64_t>(width, settings.lines.largest_width)));
  settings.lines = {.height = static_cast<int>(height), .width = static_cast<int>(width), .largest_width = static_cast<int>(largest)};
  SERIN_TRY(const double score, node.number("least_score", 0, 1, settings.least_score));
  settings.least_score = static_cast<float>(score);
  return {};
}

}  // namespace

Result<OcrSettings> read_ocr(const config::Node& node, const FindFile& files) {
  SERIN_CHECK(node.allow_only({"picture", "texts", "orient", "max_pixels", "detector", "recognizer"}));
  OcrSettings settings;
  SERIN_TRY(settings.input, node.text("picture", settings.input));
  SERIN_TRY(settings.output, node.text("texts", settings.output));
  SERIN_TRY(settings.decode.orient, node.boolean("orient", true));
  SERIN_TRY(settings.decode.max_pixels, node.integer("max_pixels", 1, 1'000'000'000, PictureSettings::kMostPixels));
  SERIN_TRY(const config::Node detector, node.at("detector"));
  SERIN_CHECK(read_detector(detector, settings));
  SERIN_TRY(const config::Node recogniser, node.at("recognizer"));
  SERIN_CHECK(read_recogniser(recogniser, files, settings));
  return settings;
}

Result<std::shared_ptr<const Ocr>> Ocr::make(OcrSettings settings) {
  SERIN_TRY(Vision vision, Vision::open());
  return std::shared_ptr<const Ocr>(new Ocr(std::move(settings), std::move(vision)));
}

Result<Ocr::Page> Ocr::read(std::string_view file) const {
  SERIN_TRY(Image picture, decode_image(std::as_bytes(std::span(file)), settings_.decode));
  SERIN_TRY(const Image fitted, detector_input(picture, settings_.detector));
  Page page{std::move(picture), Made::numbers(DType::kFloat32, {3, fitted.height, fitted.width})};
  write_levels(fitted, fitted.width, fitted.height, detector_levels(), /*channels_first=*/true, page.input.view().as<float>());
  return page;
}

Result<std::vector<Ocr::Line>> Ocr::find(const Page& page, const TensorView& map) const {
  SERIN_TRY(const Size size, map_size(map));
  const Size source{page.picture.width, page.picture.height};
  SERIN_TRY(std::vector<TextBox> boxes, vision_.find_text_boxes(map.span<const float>(), size, source, settings_.boxes));
  std::vector<Line> lines;
  for (TextBox& box : boxes) {
    SERIN_TRY(Image picture, vision_.crop(page.picture, box.points));
    lines.push_back({box, std::move(picture)});
  }
  return lines;
}

Result<Made> Ocr::line_input(const Line& line) const {
  const Size size{line.picture.width, line.picture.height};
  SERIN_TRY(int width, recogniser_width(std::span(&size, 1), settings_.lines));
  width = std::min((width + kWidthStep - 1) / kWidthStep * kWidthStep, std::max(settings_.lines.largest_width, settings_.lines.width));
  Made made = Made::numbers(DType::kFloat32, {3, settings_.lines.height, width});
  SERIN_CHECK(write_recogniser_input(line.picture, width, settings_.lines, made.view().span<float>()));
  return made;
}

Result<Reading> Ocr::read_line(const TensorView& output) const {
  std::span<const int64_t> dims = output.shape.dims();
  while (dims.size() > 2 && dims.front() == 1) dims = dims.subspan(1);
  if (dims.size() != 2)
    return Error{Code::kInternal, fmt::format("the recognizer answers {} for one line, and not [steps, classes]", output.shape.str())};
  std::vector<float> copy;
  SERIN_TRY(const std::span<const float> values, read_floats(output, copy));
  auto reading = read_ctc(values, dims[0], dims[1], settings_.dictionary);
  if (!reading) return Error{Code::kInternal, reading.error().message};
  return reading;
}

std::string Ocr::answer(std::span<const Line> lines, std::span<const Reading> readings) const {
  std::vector<TextLine> kept;
  for (size_t i = 0; i < lines.size(); ++i)
    if (readings[i].score >= settings_.least_score) kept.push_back({lines[i].box, readings[i]});
  return texts_as_json(kept);
}

}  // namespace serin::steps

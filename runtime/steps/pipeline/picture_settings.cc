#include <fmt/format.h>

#include "runtime/steps/pipeline/picture_step.h"
#include "runtime/steps/vision/paddle_values.h"

namespace serin::steps {
namespace {

Result<Rounding> read_rounding(const config::Node& node, Rounding otherwise) {
  const auto rounding = node.find("rounding");
  if (!rounding) return otherwise;
  SERIN_TRY(const std::string word, rounding->one_of({"down", "nearest"}));
  return word == "down" ? Rounding::kDown : Rounding::kNearest;
}

Result<PictureSettings::Resize> read_resize(const config::Node& node) {
  using Fit = PictureSettings::Fit;
  PictureSettings::Resize resize;
  if (!node.is_map()) {
    SERIN_TRY(resize.to, turned_size_of(node));
    return resize;
  }
  SERIN_CHECK(node.allow_only({"to", "fit", "rule", "rounding"}));
  SERIN_TRY(const config::Node to, node.at("to"));
  SERIN_TRY(resize.to, turned_size_of(to));
  if (const auto fit = node.find("fit")) {
    SERIN_TRY(const std::string word, fit->one_of({"exact", "shortest", "inside", "turned"}));
    resize.fit = word == "exact" ? Fit::kExact : word == "shortest" ? Fit::kShortest : word == "inside" ? Fit::kInside : Fit::kTurned;
    if (resize.fit == Fit::kShortest && !to.is_scalar()) return to.error("'fit: shortest' takes one size, that of the shorter side");
  }
  if (const auto rule = node.find("rule")) {
    SERIN_TRY(const std::string word, rule->text());
    const auto found = find_resample(word);
    if (!found)
      return rule->error(
          fmt::format("must be cv2.nearest, cv2.linear, cv2.area, cv2.cubic, or pil.nearest, pil.box, pil.bilinear, pil.hamming, "
                      "pil.bicubic, pil.lanczos, not '{}'",
                      word));
    resize.rule = *found;
  }
  SERIN_TRY(resize.rounding, read_rounding(node, resize.rounding));
  return resize;
}

Result<PictureSettings::Crop> read_crop(const config::Node& node) {
  PictureSettings::Crop crop;
  if (!node.is_map()) {
    SERIN_TRY(crop.to, turned_size_of(node));
    return crop;
  }
  SERIN_CHECK(node.allow_only({"to", "rounding"}));
  SERIN_TRY(const config::Node to, node.at("to"));
  SERIN_TRY(crop.to, turned_size_of(to));
  SERIN_TRY(crop.rounding, read_rounding(node, crop.rounding));
  return crop;
}

Result<PictureSettings::Pad> read_pad(const config::Node& node) {
  SERIN_CHECK(node.allow_only({"to", "multiple", "value", "place"}));
  PictureSettings::Pad pad;
  if (const auto multiple = node.find("multiple")) {
    if (node.has("to")) return multiple->error("excludes 'to'");
    SERIN_TRY(pad.multiple, side_of(*multiple));
  } else {
    SERIN_TRY(const config::Node to, node.at("to"));
    SERIN_TRY(pad.to, turned_size_of(to));
  }
  SERIN_TRY(const int64_t value, node.integer("value", 0, 255, 0));
  pad.value = static_cast<uint8_t>(value);
  if (const auto place = node.find("place")) {
    SERIN_TRY(const std::string word, place->one_of({"centre", "corner"}));
    pad.centre = word == "centre";
  }
  return pad;
}

/// 0.5, or one for each channel
Result<std::vector<double>> read_channels(const config::Node& node, size_t channels, double least) {
  std::vector<double> values;
  const auto items = node.is_list() ? node.items() : std::vector{node};
  if (items.size() != 1 && items.size() != channels)
    return node.error(fmt::format("must be a number or a list of {} numbers, one for each channel", channels));
  for (const config::Node& item : items) {
    SERIN_TRY(const double value, item.number(least, 1e6));
    values.push_back(value);
  }
  return values;
}

}  // namespace

Result<PictureSettings> read_picture_step(const config::Node& node) {
  SERIN_CHECK(node.allow_only({"picture", "to", "shape_to", "scale_to", "color", "orient", "max_pixels", "resize", "crop", "pad", "scale",
                               "mean", "std", "layout"}));
  PictureSettings settings;
  SERIN_TRY(const config::Node input, node.at("picture"));
  SERIN_TRY(settings.input, input.text());
  SERIN_TRY(settings.to, node.text("to", ""));
  SERIN_TRY(settings.shape_to, node.text("shape_to", ""));
  SERIN_TRY(settings.scale_to, node.text("scale_to", ""));
  if (const auto color = node.find("color")) {
    SERIN_TRY(const std::string word, color->one_of({"rgb", "bgr", "gray"}));
    settings.decode.color = word == "rgb" ? Color::kRgb : word == "bgr" ? Color::kBgr : Color::kGray;
  }
  SERIN_TRY(settings.decode.orient, node.boolean("orient", true));
  SERIN_TRY(settings.decode.max_pixels, node.integer("max_pixels", 1, 1'000'000'000, PictureSettings::kMostPixels));
  if (const auto resize = node.find("resize")) {
    SERIN_TRY(settings.resize, read_resize(*resize));
  }
  if (const auto crop = node.find("crop")) {
    SERIN_TRY(settings.crop, read_crop(*crop));
  }
  if (const auto pad = node.find("pad")) {
    SERIN_TRY(settings.pad, read_pad(*pad));
  }
  if (const auto scale = node.find("scale")) {
    SERIN_TRY(settings.scale, scale->number(1e-9, 1e9));
  }
  const size_t channels = settings.decode.color == Color::kGray ? 1 : 3;
  if (const auto mean = node.find("mean")) {
    SERIN_TRY(settings.mean, read_channels(*mean, channels, -1e6));
  }
  if (const auto std = node.find("std")) {
    SERIN_TRY(settings.std, read_channels(*std, channels, 1e-9));
  }
  if (const auto layout = node.find("layout")) {
    SERIN_TRY(const std::string word, layout->one_of({"nchw", "nhwc"}));
    settings.layout = word == "nchw" ? PictureSettings::Layout::kChannelsFirst : PictureSettings::Layout::kChannelsLast;
  }
  return settings;
}

}  // namespace serin::steps

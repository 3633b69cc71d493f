#include "runtime/steps/pipeline/picture_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/float16.h"
#include "runtime/steps/levels.h"
#include "runtime/steps/vision/paddle_model.h"
#include "runtime/steps/vision/text_boxes.h"

namespace serin::steps {
namespace {

using Layout = PictureSettings::Layout;

int64_t channels_of(const PictureSettings& settings) { return settings.decode.color == Color::kGray ? 1 : 3; }

/// Where the channels are in the model's input: on the end whose size is their number, where only one end has it.
Result<Layout> layout_of(const PictureSettings& settings, const TensorFacts& model) {
  const int64_t channels = channels_of(settings);
  const auto wrong = [&](std::string_view why) {
    return invalid(fmt::format("input '{}' is {} for one row: {}", model.name, model.shape.str(), why));
  };
  if (model.shape.rank() == 2 && channels == 1) return Layout::kChannelsLast;
  if (model.shape.rank() != 3) return wrong("a picture has three axes, or two if it is gray");
  const bool first = model.shape[0] == channels || model.shape[0] < 0, last = model.shape[2] == channels || model.shape[2] < 0;
  const bool settled_first = model.shape[0] == channels && model.shape[2] != channels;
  const bool settled_last = model.shape[2] == channels && model.shape[0] != channels;
  switch (settings.layout) {
    case Layout::kChannelsFirst:
      if (!first || settled_last) return wrong(fmt::format("'layout: nchw' needs {} channels on the first axis", channels));
      return Layout::kChannelsFirst;
    case Layout::kChannelsLast:
      if (!last || settled_first) return wrong(fmt::format("'layout: nhwc' needs {} channels on the last axis", channels));
      return Layout::kChannelsLast;
    case Layout::kByModel: break;
  }
  if (!first && !last) return wrong(fmt::format("neither its first nor its last axis has the {} channels of a picture", channels));
  if (settled_first) return Layout::kChannelsFirst;
  if (settled_last) return Layout::kChannelsLast;
  return wrong("'layout' must say where the channels are, nchw or nhwc");
}

/// The length of a side that follows from the ratio of the picture.
int rounded_side(double exact, Rounding rounding) {
  return static_cast<int>(std::clamp(rounding == Rounding::kDown ? std::floor(exact) : std::nearbyint(exact), 1.0, 1e9));
}

double inner_ratio(const Image& image, const Size& to) {
  return std::min(static_cast<double>(to.width) / image.width, static_cast<double>(to.height) / image.height);
}

Size resized(const Image& image, const PictureSettings::Resize& resize) {
  switch (resize.fit) {
    case PictureSettings::Fit::kExact: break;
    case PictureSettings::Fit::kShortest: {
      const int side = resize.to.width, shorter = std::min(image.width, image.height), longer = std::max(image.width, image.height);
      const double exact = resize.rounding == Rounding::kDown ? static_cast<double>(side) * longer / shorter  // as torchvision computes it
                                                              : longer * (static_cast<double>(side) / shorter);  // as PaddleClas does
      const int other = rounded_side(exact, resize.rounding);
      return image.width <= image.height ? Size{side, other} : Size{other, side};
    }
    case PictureSettings::Fit::kTurned: {
      ResizeStep turned{.rule = ResizeStep::Rule::kWithin};
      turned.size = resize.to;
      return turned.size_of({image.width, image.height});
    }
    case PictureSettings::Fit::kInside: {
      const double factor = inner_ratio(image, resize.to);
      return {std::min(resize.to.width, rounded_side(image.width * factor, resize.rounding)),
              std::min(resize.to.height, rounded_side(image.height * factor, resize.rounding))};
    }
  }
  return resize.to;
}

Image surround(const Image& image, int left, int top, const Size& size, uint8_t value) {
  Image out = blank_image(size.width, size.height, image.channels);
  std::ranges::fill(out.pixels, value);
  const size_t row_bytes = static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  for (int y = 0; y < image.height; ++y) std::memcpy(out.pixels.data() + out.offset(left, top + y), image.row(y), row_bytes);
  return out;
}

int half(int difference, Rounding rounding) {
  return rounding == Rounding::kDown ? difference / 2 : static_cast<int>(std::nearbyint(difference / 2.0));
}

template <class T, class Convert>
Levels<T> levels_of(const PictureSettings& settings, const Convert& convert) {
  const auto of_channel = [](const std::vector<double>& values, size_t channel, float otherwise) {
    return values.empty() ? otherwise : static_cast<float>(values[values.size() == 1 ? 0 : channel]);
  };
  return make_levels<T>(static_cast<size_t>(channels_of(settings)), [&](float level, size_t channel) {
    const float scaled = settings.scale ? level * static_cast<float>(*settings.scale) : level / 255.0F;
    return convert((scaled - of_channel(settings.mean, channel, 0)) / of_channel(settings.std, channel, 1));
  });
}

class PictureInputStep final : public PreStep {
 public:
  PictureInputStep(PictureSettings settings, const TensorFacts& model, Layout layout, std::optional<Vision> vision)
      : settings_(std::move(settings)), model_(model), vision_(std::move(vision)), channels_first_(layout == Layout::kChannelsFirst) {
    if (model.dtype == DType::kFloat32)
      floats_ = levels_of<float>(settings_, [](float value) { return value; });
    else if (model.dtype == DType::kFloat16)
      halves_ = levels_of<uint16_t>(settings_, [](float value) { return kernels::to_half(value).bits; });
    else
      bytes_ = make_levels<uint8_t>(static_cast<size_t>(channels_of(settings_)),
                                    [](float level, size_t) { return static_cast<uint8_t>(level); });
    makes_ = {{model.name, model.dtype, shape_of(size_made())}};
    for (const std::string& name : {settings_.shape_to, settings_.scale_to})
      if (!name.empty()) makes_.push_back({name, DType::kFloat32, {2}});
  }

  /// Sizes that do not depend on the picture must be those of the model.
  Status check() const {
    const Shape& made = makes_.front().shape;
    for (size_t axis = 0; axis < made.rank(); ++axis)
      if (made[axis] >= 0 && model_.shape[axis] >= 0 && made[axis] != model_.shape[axis])
        return invalid(fmt::format("step 'picture: {}' makes {} for input '{}', which is {}", settings_.input, made.str(), model_.name,
                                   model_.shape.str()));
    return {};
  }

  std::span<const std::string> inputs() const override { return {&settings_.input, 1}; }
  std::span<const TensorFacts> makes() const override { return makes_; }
  std::span<const std::string_view> parts() const override {
    static constexpr std::array<std::string_view, 3> kParts = {"decode", "resize", "normalize"};
    return kParts;
  }
  bool quick(std::span<const std::string_view> /*elements*/) const override { return false; }

  Result<std::vector<Made>> run(std::span<const std::string_view> elements, RowFacts& facts, Laps& laps) const override {
    SERIN_TRY(Image image, decode_image(std::as_bytes(std::span(elements.front())), settings_.decode));
    laps.next();
    Placement& placement = facts.picture;
    placement = {.source_width = image.width, .source_height = image.height};
    SERIN_TRY(image, fitted(std::move(image), placement));
    const Size size = padded(image);
    facts.input_width = size.width;
    facts.input_height = size.height;
    laps.next();
    std::vector<Made> made;
    made.push_back(Made::numbers(model_.dtype, shape_of(size)));
    void* const out = made.front().memory.data();
    if (model_.dtype == DType::kFloat32)
      write_levels(image, size.width, size.height, floats_, channels_first_, static_cast<float*>(out));
    else if (model_.dtype == DType::kFloat16)
      write_levels(image, size.width, size.height, halves_, channels_first_, static_cast<uint16_t*>(out));
    else
      write_levels(image, size.width, size.height, bytes_, channels_first_, static_cast<uint8_t*>(out));
    if (!settings_.shape_to.empty()) made.push_back(pair_of(image.height, image.width));
    if (!settings_.scale_to.empty()) made.push_back(pair_of(placement.scale_y, placement.scale_x));
    laps.next();
    return made;
  }

 private:
  static Made pair_of(double first, double second) {
    Made made = Made::numbers(DType::kFloat32, {2});
    made.view().as<float>()[0] = static_cast<float>(first);
    made.view().as<float>()[1] = static_cast<float>(second);
    return made;
  }

  /// -1 where it follows from the picture.
  Size size_made() const {
    if (settings_.pad) return settings_.pad->multiple == 0 ? settings_.pad->to : Size{-1, -1};
    if (settings_.crop) return settings_.crop->to;
    if (settings_.resize && settings_.resize->fit == PictureSettings::Fit::kExact) return settings_.resize->to;
    return {-1, -1};
  }

  Shape shape_of(const Size& size) const {
    if (model_.shape.rank() == 2) return {size.height, size.width};
    const int64_t channels = channels_of(settings_);
    return channels_first_ ? Shape{channels, size.height, size.width} : Shape{size.height, size.width, channels};
  }

  /// The window of the picture at that size.
  Result<Image> resample(Image image, const Size& to, const Window& window) const {
    if (to.width == image.width && to.height == image.height) {
      const bool whole = window.width == image.width && window.height == image.height;
      return whole ? std::move(image) : cut(image, window);
    }
    if (!vision_) return resize_window(image, to.width, to.height, settings_.resize->rule, window);
    SERIN_TRY(const Image resized, vision_->resize_cubic(image, {to.width, to.height}));
    return cut(resized, window);
  }

  Size padded(const Image& image) const {
    if (!settings_.pad) return {image.width, image.height};
    const int multiple = settings_.pad->multiple;
    const auto up = [&](int side) { return (side + multiple - 1) / multiple * multiple; };
    return multiple == 0 ? settings_.pad->to : Size{up(image.width), up(image.height)};
  }

  Result<Image> fitted(Image image, Placement& placement) const {
    Size to{image.width, image.height};
    if (settings_.resize) {
      to = resized(image, *settings_.resize);
      const bool one_ratio = settings_.resize->fit == PictureSettings::Fit::kInside;  // as YOLO's code, which leaves the rounding out
      const float ratio = one_ratio ? static_cast<float>(inner_ratio(image, settings_.resize->to)) : 0;
      placement.scale_x = one_ratio ? ratio : static_cast<float>(to.width) / static_cast<float>(image.width);
      placement.scale_y = one_ratio ? ratio : static_cast<float>(to.height) / static_cast<float>(image.height);
      if (static_cast<int64_t>(to.width) * to.height > settings_.decode.max_pixels)
        return Error{Code::kTooLarge, fmt::format("a picture of {}x{} would be resized to {}x{}, more than {} pixels", image.width,
                                                  image.height, to.width, to.height, settings_.decode.max_pixels)};
    }
    Window window{0, 0, to.width, to.height};
    if (settings_.crop) {
      const auto& [size, rounding] = *settings_.crop;
      if (to.width < size.width || to.height < size.height)
        return invalid(fmt::format("the picture is {}x{} where {}x{} are cropped from it", to.width, to.height, size.width, size.height));
      window = {half(to.width - size.width, rounding), half(to.height - size.height, rounding), size.width, size.height};
      placement.left -= static_cast<float>(window.left);
      placement.top -= static_cast<float>(window.top);
    }
    SERIN_TRY(image, resample(std::move(image), to, window));
    if (settings_.pad) {
      const PictureSettings::Pad& pad = *settings_.pad;
      const Size frame = padded(image);
      if (image.width > frame.width || image.height > frame.height)
        return invalid(
            fmt::format("the picture is {}x{} where it is padded to {}x{}", image.width, image.height, frame.width, frame.height));
      if (pad.after_values) return image;
      const int left = pad.centre ? (frame.width - image.width) / 2 : 0, top = pad.centre ? (frame.height - image.height) / 2 : 0;
      if (image.width != frame.width || image.height != frame.height) image = surround(image, left, top, frame, pad.value);
      placement.left += static_cast<float>(left);
      placement.top += static_cast<float>(top);
    }
    return image;
  }

  const PictureSettings settings_;
  const TensorFacts model_;
  const std::optional<Vision> vision_;  // for cv2.cubic
  const bool channels_first_;
  Levels<float> floats_;
  Levels<uint16_t> halves_;
  Levels<uint8_t> bytes_;
  std::vector<TensorFacts> makes_;
};

}  // namespace

Result<std::shared_ptr<const PreStep>> make_picture_step(PictureSettings settings, std::span<const TensorFacts> model) {
  const std::string named = fmt::format("step 'picture: {}'", settings.input);
  if (settings.to.empty() && model.size() != 1)
    return invalid(fmt::format("{}: 'to' must name the input that it fills: the model has {}", named, model.size()));
  const TensorFacts* const pixels = settings.to.empty() ? &model.front() : find_tensor(model, settings.to);
  if (!pixels) return invalid(fmt::format("{}: the model has no input '{}'", named, settings.to));
  if (pixels->dtype != DType::kFloat32 && pixels->dtype != DType::kFloat16 && pixels->dtype != DType::kUInt8)
    return invalid(
        fmt::format("{}: input '{}' is {}; a picture becomes FP32, FP16 or UINT8", named, pixels->name, dtype_name(pixels->dtype)));
  if (pixels->dtype == DType::kUInt8 && (settings.scale || !settings.mean.empty() || !settings.std.empty()))
    return invalid(
        fmt::format("{}: input '{}' is UINT8, the pixels as they are; 'scale', 'mean' and 'std' have no meaning", named, pixels->name));
  for (const std::string& name : {settings.shape_to, settings.scale_to}) {
    if (name.empty()) continue;
    const TensorFacts* const pair = find_tensor(model, name);
    if (!pair || pair->dtype != DType::kFloat32 || pair->shape != Shape{2})
      return invalid(fmt::format("{}: the model has no input '{}' of FP32 [2]", named, name));
  }
  auto layout = layout_of(settings, *pixels);
  if (!layout) return layout.error().in(named);
  std::optional<Vision> vision;
  if (settings.resize && settings.resize->rule == Resample::kCvCubic) {
    SERIN_TRY(vision, Vision::open());
  }
  auto step = std::make_shared<const PictureInputStep>(std::move(settings), *pixels, *layout, std::move(vision));
  SERIN_CHECK(step->check());
  return std::shared_ptr<const PreStep>(std::move(step));
}

}  // namespace serin::steps

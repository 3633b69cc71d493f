// placement.cc: rounding is Python's, to the nearest even number, as the exporters' scripts round.

#include "runtime/steps/vision/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace serin::steps {
namespace {

constexpr int kLargestInput = 16384;

int round_even(double value) { return static_cast<int>(std::nearbyint(value)); }

Image with_borders(const Image& image, int width, int height, int left, int top, uint8_t fill) {
  Image made{.width = width, .height = height, .channels = image.channels, .pixels = {}};
  made.pixels.assign(made.offset(0, height), fill);
  const auto line = static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  for (int y = 0; y < image.height; ++y) std::memcpy(made.pixels.data() + made.offset(left, top + y), image.row(y), line);
  return made;
}

Fitted stretched(const Image& image, const FitOptions& options) {
  const Placement placement{.scale_x = static_cast<float>(options.width) / static_cast<float>(image.width),
                            .scale_y = static_cast<float>(options.height) / static_cast<float>(image.height),
                            .source_width = image.width,
                            .source_height = image.height};
  return {resize(image, options.width, options.height, options.rule), placement};
}

}  // namespace

Result<Fitted> fit_image(const Image& image, const FitOptions& options) {
  if (image.width < 1 || image.height < 1) return invalid("a picture without pixels does not fit into a detector's input");
  if (std::min(options.width, options.height) < 1 || std::max(options.width, options.height) > kLargestInput || options.stride < 0)
    return invalid(fmt::format("a detector's input of {} x {}, stride {}: sizes are from 1 to {}", options.width, options.height,
                               options.stride, kLargestInput));
  if (options.fit == Fit::kStretched) return stretched(image, options);

  double ratio = std::min(static_cast<double>(options.width) / image.width, static_cast<double>(options.height) / image.height);
  if (!options.enlarge) ratio = std::min(ratio, 1.0);
  const bool centred = options.fit == Fit::kCentred;
  const auto scaled = [&](int size, int most) {
    return std::clamp(centred ? round_even(size * ratio) : static_cast<int>(size * ratio), 1, most);
  };
  const int width = scaled(image.width, options.width), height = scaled(image.height, options.height);
  int across = options.width - width, down = options.height - height;
  if (options.stride > 0) across %= options.stride, down %= options.stride;
  const int left = centred ? round_even(across / 2. - 0.1) : 0, top = centred ? round_even(down / 2. - 0.1) : 0;
  const Placement placement{.scale_x = static_cast<float>(ratio),
                            .scale_y = static_cast<float>(ratio),
                            .left = static_cast<float>(left),
                            .top = static_cast<float>(top),
                            .source_width = image.width,
                            .source_height = image.height};
  return Fitted{with_borders(resize(image, width, height, options.rule), width + across, height + down, left, top, options.fill),
                placement};
}

void place_in_source(std::vector<Detection>& detections, const Placement& placement) {
  const auto width = static_cast<float>(placement.source_width), height = static_cast<float>(placement.source_height);
  for (Detection& one : detections) {
    one.x1 = std::clamp((one.x1 - placement.left) / placement.scale_x, 0.F, width);
    one.x2 = std::clamp((one.x2 - placement.left) / placement.scale_x, 0.F, width);
    one.y1 = std::clamp((one.y1 - placement.top) / placement.scale_y, 0.F, height);
    one.y2 = std::clamp((one.y2 - placement.top) / placement.scale_y, 0.F, height);
  }
  std::erase_if(detections, [](const Detection& one) { return !(one.x2 > one.x1 && one.y2 > one.y1); });
}

}  // namespace serin::steps

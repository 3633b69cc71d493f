// pictures.cc: a picture is decoded once, into a vector, whose size decides that of the result. A kernel would decode it twice: for the size
// first. The orientation that a JPEG's EXIF data asks for is not applied: ONNX and its reference (PIL) know of none.

#include "runtime/engine/interpret/pictures.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "runtime/steps/decode.h"

namespace serin::engine {

Result<graph::ConstantPtr> decode_picture(const graph::Node& node, const graph::Constant& file, size_t max_bytes) {
  const std::string format = node.text("pixel_format", "RGB");
  steps::DecodeOptions options{.color = steps::Color::kRgb, .orient = false};
  if (format == "BGR") options.color = steps::Color::kBgr;
  if (format == "Grayscale") options.color = steps::Color::kGray;
  const int channels = options.color == steps::Color::kGray ? 1 : 3;
  options.max_pixels = std::min(options.max_pixels, static_cast<int64_t>(max_bytes / static_cast<size_t>(channels)));

  const auto elements = file.span<uint8_t>();
  const auto bytes = std::as_bytes(std::span(elements.data(), elements.size()));
  const auto image = steps::decode_image(bytes, options);
  const bool is_empty = !image && (image.error().code == Code::kCorrupt || !steps::image_format(bytes));
  if (!image && !is_empty) return image.error();
  const FreshTensor pixels = fresh_tensor(DType::kUInt8, is_empty ? Shape{0, 0, channels} : Shape{image->height, image->width, channels});
  if (image) std::memcpy(pixels.view.data, image->pixels.data(), image->pixels.size());
  return graph::ConstantPtr(pixels.tensor);
}

}  // namespace serin::engine

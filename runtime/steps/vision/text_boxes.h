// text_boxes.h: finds texts in the map of a DB detector, as PaddleOCR's DBPostProcess does with boxes of four corners.
//
//   SERIN_TRY(const Vision vision, Vision::open());
//   SERIN_TRY(const std::vector<TextBox> boxes, vision.find_text_boxes(map, {736, 960}, {1200, 1600}, {}));
//   for (const TextBox& box : boxes) { SERIN_TRY(const Image line, vision.crop(picture, box.points)); ... }
//
// OpenCV and Clipper do the work, in a plugin that only this needs: libserin_vision.so (text_boxes.cc explains how it is found).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/steps/image.h"
#include "runtime/steps/vision/geometry.h"
#include "runtime/steps/vision/text_box_options.h"

namespace serin::steps {

/// Orders boxes from top to bottom, and from left to right where they differ by less than 10 pixels of height (sorted_boxes).
void sort_as_read(std::vector<TextBox>& boxes);

namespace vision {
struct Plugin;
}

/// The open plugin. Objects are cheap to copy, and any thread may use them. OpenCV runs on the calling thread alone.
class Vision {
 public:
  /// Opens the plugin at `path`; empty: next to the program, or in ../lib from there. Errors: kNotFound with the name of the file.
  static Result<Vision> open(const std::string& path = {});

  /// `map` is [height, width] with probabilities. Corners are whole pixels of a picture of the size `source`, in the order of a Quad.
  /// The boxes are sorted; those with sides of at most 3 pixels are left out.
  ///
  /// Errors: kInvalidArgument where the sizes do not fit or where a value is not finite. kTooLarge for noise instead of texts: more than
  /// 262,144 runs of pixels, or rectangles that cover the map more than 16 times.
  Result<std::vector<TextBox>> find_text_boxes(std::span<const float> map, Size map_size, Size source, const TextBoxOptions& options) const;

  /// The picture within four corners, made straight (get_rotate_crop_image): cubic, and the border is repeated. It is turned to the left by
  /// 90 degrees if it is at least 1.5 times as high as wide.
  ///
  /// Errors: kInvalidArgument for corners that are not finite, far outside or closer than a pixel; kTooLarge over 64 million pixels.
  Result<Image> crop(const Image& image, const Quad& corners) const;

  /// cv2.resize with INTER_CUBIC, which PP-YOLOE's preprocessing asks for. The last bit depends on the machine.
  Result<Image> resize_cubic(const Image& image, Size size) const;

  const std::string& library() const;  ///< "OpenCV 4.6.0"

 private:
  explicit Vision(std::shared_ptr<const vision::Plugin> plugin) : plugin_(std::move(plugin)) {}
  std::shared_ptr<const vision::Plugin> plugin_;
};

}  // namespace serin::steps

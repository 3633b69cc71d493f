// text_inputs.h: makes the inputs of PaddleOCR's detectors and recognisers.
//
//   SERIN_TRY(const Image input, detector_input(picture, {.limit = SideLimit::kLongest, .side = 960}));   // sides are multiples of 32
//   SERIN_TRY(const int width, recogniser_width(sizes_of_the_crops, {}));                                 // of the whole batch
//   SERIN_CHECK(write_recogniser_input(crop, width, {}, batch.subspan(...)));                             // 3 x 48 x width floats
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/base/result.h"
#include "runtime/steps/image.h"
#include "runtime/steps/vision/geometry.h"

namespace serin::steps {

/// The rule of DetResizeForTest, in brackets its limit_type.
enum class SideLimit : uint8_t {
  kLongest,   ///< the longer side becomes at most `side` ("max")
  kShortest,  ///< the shorter side becomes at least `side` ("min")
  kExact,     ///< the longer side becomes `side` ("resize_long" as limit_type)
  kExactUp,   ///< the same, and multiples are rounded up (the key resize_long; its multiple is 128)
};

struct DetectorInputOptions {
  std::optional<Size> exact;  ///< this size, and nothing below counts (image_shape)
  bool keep_ratio = false;    ///< of `exact` only the height; the width keeps the ratio and becomes the next multiple of 32

  SideLimit limit = SideLimit::kShortest;
  int side = 736;      ///< limit_side_len
  int multiple = 32;   ///< both sides become multiples of it, to the nearest
  int largest = 4000;  ///< a longer side is made smaller again, whatever `limit` says (max_side_limit); 0: no limit

  friend bool operator==(const DetectorInputOptions&, const DetectorInputOptions&) = default;
};

/// Errors: kInvalidArgument for sizes below 1 and options that make no sense, kTooLarge over 64 million pixels.
Result<Size> detector_input_size(Size picture, const DetectorInputOptions& options);

/// Resized as cv2.resize (linear). A picture whose sides are below 64 together gets a black border up to 32 x 32 first.
Result<Image> detector_input(const Image& image, const DetectorInputOptions& options);

struct RecogniserOptions {
  int height = 48, width = 320;  ///< rec_image_shape; `width` is the least
  int largest_width = 3200;

  friend bool operator==(const RecogniserOptions&, const RecogniserOptions&) = default;
};

/// Of the input of a batch: its widest picture at that height, at least options.width. Errors as above.
Result<int> recogniser_width(std::span<const Size> pictures, const RecogniserOptions& options);

/// Writes [channels, height, width] into `out`: the picture at the left, as (x / 255 - 0.5) / 0.5, then zeros. A picture that is wider is
/// made narrower.
Status write_recogniser_input(const Image& image, int width, const RecogniserOptions& options, std::span<float> out);

}  // namespace serin::steps

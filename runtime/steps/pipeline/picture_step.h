// picture_step.h: from the file of a picture to the model's tensor of pixels: decode, resize, crop, pad, normalise, layout.
//
//   pre:
//     - picture: image                     the input that clients send: the bytes of a file
//       resize: {to: 256, fit: shortest, rule: pil.bilinear}
//       crop: 224
//       mean: [0.485, 0.456, 0.406]
//       std: [0.229, 0.224, 0.225]
//
// The order is always that one. A pixel's value is (pixel x scale - mean) / std, with 1/255 as the scale unless it is given.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/steps/decode.h"
#include "runtime/steps/pipeline/step.h"
#include "runtime/steps/resize.h"
#include "runtime/steps/vision/geometry.h"

namespace serin::steps {

enum class Rounding : uint8_t { kDown, kNearest };

struct PictureSettings {
  enum class Fit : uint8_t {
    kExact,     ///< both sides, whatever becomes of the ratio
    kShortest,  ///< the shorter side
    kInside,    ///< the largest size of the same ratio that lies within
    kTurned,    ///< the same, within the size or within the size turned by 90 degrees (keep_ratio of PaddleDetection)
  };
  enum class Layout : uint8_t { kByModel, kChannelsFirst, kChannelsLast };
  struct Resize {
    Size to;  ///< for kShortest both are the length of that side
    Fit fit = Fit::kExact;
    Resample rule = Resample::kPilBilinear;
    Rounding rounding = Rounding::kDown;  ///< of the side that follows from the ratio; kNearest takes the even number of two
    friend bool operator==(const Resize&, const Resize&) = default;
  };
  struct Crop {  ///< from the centre
    Size to;
    Rounding rounding = Rounding::kNearest;  ///< of half the difference
    friend bool operator==(const Crop&, const Crop&) = default;
  };
  struct Pad {
    Size to;
    int multiple = 0;  ///< not 0: both sides become multiples of it, whatever `to` says
    uint8_t value = 0;
    bool centre = false;        ///< otherwise the picture stays in the upper left corner
    bool after_values = false;  ///< the frame has the value 0 in the tensor, and `value` is not read (PadStride of PaddleDetection)
    friend bool operator==(const Pad&, const Pad&) = default;
  };

  std::string input, to;           ///< `to` empty: the model's only input
  std::string shape_to, scale_to;  ///< inputs of Paddle's detectors, FP32 [2]: height and width of the pixels, their ratio to the source's
  DecodeOptions decode;
  std::optional<Resize> resize;
  std::optional<Crop> crop;
  std::optional<Pad> pad;
  std::optional<double> scale;    ///< absent: 1/255
  std::vector<double> mean, std;  ///< one for each channel, one for all, or none
  Layout layout = Layout::kByModel;

  static constexpr int64_t kMostPixels = 32'000'000;  ///< DecodeOptions::max_pixels where nothing else is said

  friend bool operator==(const PictureSettings&, const PictureSettings&) = default;
};

/// Reads an item of `pre`. Errors name file, line and key.
Result<PictureSettings> read_picture_step(const config::Node& node);

/// `model`: its inputs. The pixels go to one of FP32, FP16 or UINT8 with three axes, or with two for grey. UINT8 takes them as they are.
/// kInvalidArgument: there is no such input, or it has another form, or sizes that the settings contradict. kNotFound: a rule needs the
/// plugin (vision/text_boxes.h), which is missing.
Result<std::shared_ptr<const PreStep>> make_picture_step(PictureSettings settings, std::span<const TensorFacts> model);

}  // namespace serin::steps

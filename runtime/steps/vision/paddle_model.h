// paddle_model.h: how a model of PaddleOCR, PaddleX, PaddleClas or PaddleDetection is fed and read (paddle_export.h reads it from a file).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/steps/decode.h"
#include "runtime/steps/resize.h"
#include "runtime/steps/vision/geometry.h"
#include "runtime/steps/vision/text_box_options.h"
#include "runtime/steps/vision/text_inputs.h"

namespace serin::steps {

/// ResizeImage of PaddleClas, Resize of PaddleDetection.
struct ResizeStep {
  enum class Rule : uint8_t {
    kExact,     ///< to `size`
    kShortest,  ///< the shorter side becomes `side`, the other one keeps the ratio and is rounded (resize_short)
    kWithin,    ///< as large as fits into `size`, which may be turned by 90 degrees, with the ratio kept (keep_ratio)
  };
  Rule rule = Rule::kExact;
  Size size;
  int side = 0;
  Resample interpolation = Resample::kCvLinear;

  /// Of a picture whose sides are from 1 to 2^20; a side becomes at least 1.
  Size size_of(Size picture) const;
  bool operator==(const ResizeStep&) const = default;
};

/// CropImage: the middle.
struct CropStep {
  Size size;

  bool operator==(const CropStep&) const = default;
};

/// (x * scale - mean) / std, for each channel; without mean and std only the scale.
struct NormaliseStep {
  float scale = 1.F / 255.F;
  std::vector<float> mean, std;

  bool operator==(const NormaliseStep&) const = default;
};

/// Permute, ToCHWImage.
struct ChannelsFirstStep {
  bool operator==(const ChannelsFirstStep&) const = default;
};

/// PadStride: zeros on the right and below, up to a multiple.
struct PadStep {
  int stride = 32;

  bool operator==(const PadStep&) const = default;
};

/// RecResizeImg: it resizes, normalises to -1 ... 1, and puts the channels first.
struct RecogniserInputStep {
  int channels = 3;
  RecogniserOptions options;
};

/// DetResizeForTest is DetectorInputOptions.
using PictureStep =
    std::variant<ResizeStep, CropStep, NormaliseStep, ChannelsFirstStep, PadStep, DetectorInputOptions, RecogniserInputStep>;

/// Topk: the classes with the highest scores.
struct RankStep {
  int most = 5;
  std::vector<std::string> labels;  ///< empty: none are named
};

/// CTCLabelDecode.
struct ReadTextStep {
  std::vector<std::string> characters;  ///< empty: the file has none, a dictionary must come from elsewhere
  bool with_space = true;
};

/// PaddleDetection.
struct DetectStep {
  std::string architecture;  ///< "YOLO", "PPYOLOE", "DETR", "PicoDet" ...
  std::vector<std::string> labels;
  float score_threshold = 0.5F;  ///< draw_threshold
  struct Suppression {
    float score_threshold = 0.05F, iou = 0.5F;
    int candidates = 1000, most = 100;
  };
  std::optional<Suppression> suppression;  ///< nothing: the model itself suppresses, and answers rows of six (read_final_rows)
};

/// DBPostProcess is TextBoxOptions; monostate: nothing is done after the model.
using AnswerStep = std::variant<std::monostate, RankStep, ReadTextStep, TextBoxOptions, DetectStep>;

struct PaddleExport {
  std::string name;           ///< Global.model_name; may be empty
  Color color = Color::kRgb;  ///< how pictures are decoded
  std::vector<PictureStep> before;
  AnswerStep after;
};

}  // namespace serin::steps

// ocr.h: the steps between a picture, a model that finds texts and one that reads a line of text, as PaddleOCR has them.
//
//   ocr:
//     picture: image                       the input that clients send: the bytes of a file
//     detector: {model: det}               DB: [3, height, width] to a map [1, height, width]
//     recognizer: {model: rec, dictionary: keys.txt}   CTC: [3, 48, width] to [steps, classes]
//
// Clients get one output, `texts` (BYTES): JSON for each picture (vision/answer_json.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/steps/decode.h"
#include "runtime/steps/pipeline/model_files.h"
#include "runtime/steps/pipeline/step.h"
#include "runtime/steps/vision/ctc.h"
#include "runtime/steps/vision/text_box_options.h"
#include "runtime/steps/vision/text_boxes.h"
#include "runtime/steps/vision/text_inputs.h"

namespace serin::steps {

struct OcrSettings {
  std::string input = "picture", output = "texts";
  DecodeOptions decode{.color = Color::kBgr};
  DetectorInputOptions detector;
  TextBoxOptions boxes;
  RecogniserOptions lines;
  Dictionary dictionary;
  float least_score = 0.5F;  ///< lines with a lower one are left out (PaddleOCR's drop_score)

  friend bool operator==(const OcrSettings&, const OcrSettings&) = default;
};

/// Reads the key `ocr` but for the names of the models. Errors name file, line and key.
Result<OcrSettings> read_ocr(const config::Node& node, const FindFile& files);

/// Immutable and thread-safe.
class Ocr {
 public:
  /// Opens the plugin that finds texts (vision/text_boxes.h). kNotFound: it is missing.
  static Result<std::shared_ptr<const Ocr>> make(OcrSettings settings);

  struct Page {
    Image picture;
    Made input;  ///< of the detector: FP32 [3, height, width]
  };
  Result<Page> read(std::string_view file) const;

  struct Line {
    TextBox box;
    Image picture;  ///< of the line alone, upright
  };
  /// `map`: the detector's output for the page, [1, height, width] or [height, width].
  Result<std::vector<Line>> find(const Page& page, const TensorView& map) const;

  /// The recogniser's input, FP32 [3, height, width]. Widths are multiples of 32, so that lines of about one length share a batch.
  Result<Made> line_input(const Line& line) const;
  /// `output`: the recogniser's, [steps, classes].
  Result<Reading> read_line(const TensorView& output) const;

  /// `readings`: one for each line.
  std::string answer(std::span<const Line> lines, std::span<const Reading> readings) const;

  const OcrSettings& settings() const { return settings_; }

 private:
  Ocr(OcrSettings settings, Vision vision) : settings_(std::move(settings)), vision_(std::move(vision)) {}

  const OcrSettings settings_;
  const Vision vision_;
};

}  // namespace serin::steps

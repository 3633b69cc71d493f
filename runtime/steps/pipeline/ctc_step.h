// ctc_step.h: from the output of a recogniser of text lines to the text.
//
//   post:
//     - ctc: probabilities                 the model's output, [steps, classes] for one row
//       dictionary: keys.txt
//
// Clients see two outputs instead: `text` (BYTES) and `score` (FP32), the mean of its characters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/steps/pipeline/model_files.h"
#include "runtime/steps/pipeline/step.h"
#include "runtime/steps/vision/ctc.h"

namespace serin::steps {

struct CtcSettings {
  std::string output;
  Dictionary dictionary;
  std::string text = "text", score = "score";

  friend bool operator==(const CtcSettings&, const CtcSettings&) = default;
};

/// Reads a dictionary whose file and whose use_space_char are keys of that node.
Result<Dictionary> read_dictionary(const config::Node& node, const FindFile& files);

/// Reads an item of `post`. Errors name file, line and key.
Result<CtcSettings> read_ctc_step(const config::Node& node, const FindFile& files);

/// `model`: its outputs. The one that it reads is of numbers and has two axes for one row. kInvalidArgument: there is none, it has another
/// form, or more classes than the dictionary.
Result<std::shared_ptr<const PostStep>> make_ctc_step(CtcSettings settings, std::span<const TensorFacts> model);

}  // namespace serin::steps

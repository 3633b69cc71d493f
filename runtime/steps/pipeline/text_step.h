// text_step.h: from a text, or a pair of texts, to the inputs of a language model.
//
//   pre:
//     - text: sentence                     the input that clients send: UTF-8
//       tokenizer: tokenizer.json          in the model's folder
//       max_length: 128
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/steps/pipeline/model_files.h"
#include "runtime/steps/pipeline/step.h"
#include "runtime/steps/text/tokenizer.h"

namespace serin::steps {

struct TextSettings {
  std::vector<std::string> inputs;  ///< one text, or two
  std::string tokenizer;            ///< path of the file
  FileStamp stamp;                  ///< of that file: another one loads the model anew
  std::optional<bool> lower_case;   ///< text::LoadOptions
  std::optional<std::string> style;
  int64_t max_bytes = int64_t{1} << 20;  ///< of a text; longer ones are refused, because some files take seconds for them
  std::optional<int64_t> max_length;     ///< tokens; absent: as the tokenizer's file says
  bool truncate = true;                  ///< false: longer texts are refused
  std::vector<int64_t> pad_to;           ///< rising; a text is padded to the next of these lengths
  std::string ids, mask, types;          ///< the model's inputs; empty: none

  friend bool operator==(const TextSettings&, const TextSettings&) = default;
};

/// Reads an item of `pre`. Errors name file, line and key.
Result<TextSettings> read_text_step(const config::Node& node, const FindFile& files);

/// `model`: its inputs. Those that it fills are INT64 or INT32 with one axis; a fixed length of it is the length of every text. Loads the
/// tokenizer, whose errors name the file.
Result<std::shared_ptr<const PreStep>> make_text_step(TextSettings settings, std::span<const TensorFacts> model);

}  // namespace serin::steps

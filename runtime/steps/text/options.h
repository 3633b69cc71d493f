// options.h: how a tokenizer is loaded, and how its encodings are padded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace serin::steps::text {

/// Settings that a vocab.txt or a .model does not have. A missing value comes from the tokenizer_config.json in the same folder, or is the default
/// of the Python package. A tokenizer.json needs none of them.
struct LoadOptions {
  std::optional<bool> lower_case;        ///< vocab.txt: true
  std::optional<bool> strip_accents;     ///< vocab.txt: as lower_case
  std::optional<bool> split_ideographs;  ///< vocab.txt: true
  /// .model: which tokens stand around a text: "none", "llama" (<s> text), "t5" (text </s>), "xlm-r" (<s> text </s>, and ids of fairseq).
  std::optional<std::string> style;
  size_t max_text_bytes = size_t{10} << 20;  ///< of one text; a longer one is an error
};

/// The token that fills an encoding up to a length.
struct Padding {
  int64_t id = 0, type = 0;
  bool left = false;  ///< in front of the text
};

}  // namespace serin::steps::text

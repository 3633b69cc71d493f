// tokenizer_config.h: the tokenizer_config.json that transformers writes into the folder of a vocabulary. The reader takes what these files need; the rest is for Python.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::steps::text {

struct TokenizerConfig {
  std::optional<bool> lower_case, strip_accents, split_ideographs;
  std::optional<bool> add_bos, add_eos;
  std::optional<std::string> python_class;  ///< "BertTokenizer", "LlamaTokenizer" ...
  std::optional<std::string> unknown, separator, padding, classification, mask, begin, end;

  /// An empty text: no file.
  static Result<TokenizerConfig> read(std::string_view contents);
};

}  // namespace serin::steps::text

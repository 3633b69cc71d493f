// ctc.h: reads the text from the output of a recogniser that was trained with CTC, as PaddleOCR's CTCLabelDecode does.
//
//   SERIN_TRY(const Dictionary dictionary, Dictionary::load("ppocr_keys_v1.txt", /*with_space=*/true));
//   SERIN_TRY(const Reading line, read_ctc(probabilities, 40, 6625, dictionary));
//
// Characters stay in the order of the picture. PaddleOCR turns those of its Arabic models around; this does not.
// A dictionary does not change once it is made, so all threads may use it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::steps {

/// The characters of the classes. Class 0 is the blank; a character may have several code points, or none.
class Dictionary {
 public:
  /// A character on each line. `with_space` adds " " as the last one (PaddleOCR: use_space_char).
  /// Errors: those of read_file(), kInvalidArgument (not UTF-8), kTooLarge (over 16 MiB).
  static Result<Dictionary> load(const std::string& path, bool with_space);
  /// `name` is for messages.
  static Result<Dictionary> parse(std::string_view text, bool with_space, std::string name);
  static Dictionary of(std::vector<std::string> characters, bool with_space, std::string name);

  int64_t classes() const { return static_cast<int64_t>(characters_.size()); }  ///< with the blank
  const std::string& character(int64_t index) const { return characters_[static_cast<size_t>(index)]; }
  /// An error where a model has more classes than there are characters. Fewer are accepted, as PaddleOCR does.
  Status fits(int64_t model_classes) const;

  friend bool operator==(const Dictionary&, const Dictionary&) = default;

 private:
  std::vector<std::string> characters_;
  std::string name_;
};

struct Reading {
  std::string text;
  float score = 0;  ///< mean of the kept characters' values; 0 if there is none

  bool operator==(const Reading&) const = default;
};

/// `values` is [steps, classes], probabilities as PaddleOCR exports them. The first of equal values counts.
/// Errors: kInvalidArgument where the sizes or the dictionary do not fit, or where a value is NaN.
Result<Reading> read_ctc(std::span<const float> values, int64_t steps, int64_t classes, const Dictionary& dictionary);

}  // namespace serin::steps

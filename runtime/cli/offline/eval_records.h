// eval_records.h: what an evaluation keeps of a row: the truth, and what each model answered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::cli {

/// An answer in one of two forms: numbers (scores, predictions), or texts, the best first, with their scores.
struct EvalAnswer {
  std::vector<std::string> texts;
  std::vector<float> numbers;
};

struct EvalRecord {
  int64_t row = 0;
  std::string truth;  ///< a label, a text, COCO's annotations
  std::vector<double> truth_numbers;
  std::string slice;
  int64_t picture = 0;              ///< COCO's image_id
  std::vector<EvalAnswer> answers;  ///< of each model
};

/// As bytes for a block's payload, and back. kCorrupt: they are damaged.
std::string pack_records(const std::vector<EvalRecord>& records);
Result<std::vector<EvalRecord>> unpack_records(std::string_view bytes);

}  // namespace serin::cli

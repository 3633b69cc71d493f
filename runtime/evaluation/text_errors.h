// text_errors.h: how far texts are from their references. Counted are the words or characters to insert, delete or change, over all rows
// together, divided by those of the references.
#pragma once

#include <string>
#include <vector>

#include "runtime/evaluation/metric.h"

namespace serin::evaluation {

struct TextSamples {
  std::vector<std::string> truth, predicted;  ///< UTF-8
};

/// wer (words between blanks), cer (characters of Unicode, blanks at the ends left out), exact (the share of equal texts).
/// NaN where the references have no words.
std::vector<Metric> text_metrics(const TextSamples& samples);

}  // namespace serin::evaluation

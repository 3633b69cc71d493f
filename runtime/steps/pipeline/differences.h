// differences.h: what two versions of a model do differently before and after it, by the keys of their serin.yaml.
//
//   for (const StepDifference& found : find_differences(stable, canary)) ... found.step, found.what
#pragma once

#include <string>
#include <vector>

#include "runtime/steps/pipeline/pipeline.h"

namespace serin::steps {

/// Names for messages: "step 1 of pre (picture: image)".
std::string name_of_pre(const StepsSettings& settings, size_t index);
std::string name_of_post(const StepsSettings& settings, size_t index);

struct StepDifference {
  std::string step;  ///< of the reference, or of the candidate where the reference has none at that place
  std::string what;  ///< "'mean', 'std'": keys whose values differ; else how the steps differ
};

/// In the order in which the steps run. A file, such as a tokenizer, is equal to another one of the same contents. It is read again.
std::vector<StepDifference> find_differences(const StepsSettings& reference, const StepsSettings& candidate);

}  // namespace serin::steps

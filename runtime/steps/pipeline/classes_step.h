// classes_step.h: from a model's scores to the names of the best classes.
//
//   post:
//     - classes: logits                    the model's output
//       softmax: true
//       top: 5
//       labels: labels.txt
//
// Clients see two outputs instead, best first: `label` (BYTES; without labels `class`, INT64, the index) and `score` (FP32).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/steps/pipeline/model_files.h"
#include "runtime/steps/pipeline/step.h"

namespace serin::steps {

struct ClassesSettings {
  enum class Function : uint8_t { kNone, kSoftmax, kSigmoid };

  std::string output;
  Function function = Function::kNone;
  int64_t top = 1;
  std::vector<std::string> labels;     ///< one for each class, or none
  std::string label, score = "score";  ///< names of the clients' outputs

  friend bool operator==(const ClassesSettings&, const ClassesSettings&) = default;
};

/// Reads an item of `post`. Errors name file, line and key.
Result<ClassesSettings> read_classes_step(const config::Node& node, const FindFile& files);

/// `model`: its outputs. The one that it reads has any shape, and floats or integers. kInvalidArgument: there is none, or it has another
/// type, fewer classes than are asked for, or more than have a label.
Result<std::shared_ptr<const PostStep>> make_classes_step(ClassesSettings settings, std::span<const TensorFacts> model);

}  // namespace serin::steps

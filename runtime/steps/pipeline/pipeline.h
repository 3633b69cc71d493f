// pipeline.h: the steps before and after one model: settings, checked against the model's tensors, and the run of one row.
//
//   SERIN_TRY(const StepsSettings settings, read_steps(root, files));            // `pre` and `post` of serin.yaml
//   SERIN_TRY(const auto pipeline, Pipeline::make(settings, inputs, outputs));   // of the model, for one row
//   SERIN_TRY(Prepared prepared, pipeline->before(elements));                    // ... the model runs ...
//   SERIN_TRY(std::vector<Made> made, pipeline->after(read, prepared.facts));
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/steps/pipeline/classes_step.h"
#include "runtime/steps/pipeline/ctc_step.h"
#include "runtime/steps/pipeline/detections_step.h"
#include "runtime/steps/pipeline/embedding_step.h"
#include "runtime/steps/pipeline/picture_step.h"
#include "runtime/steps/pipeline/text_step.h"

namespace serin::steps {

struct StepsSettings {
  std::vector<std::variant<PictureSettings, TextSettings>> pre;
  std::vector<std::variant<ClassesSettings, DetectionsSettings, CtcSettings, EmbeddingSettings>> post;
  bool given = false;  ///< the document has one of the lists, perhaps an empty one: files of the model are not asked (paddle_steps.h)

  bool any() const { return !pre.empty() || !post.empty(); }
  friend bool operator==(const StepsSettings&, const StepsSettings&) = default;
};

/// Reads the lists `pre` and `post` of a document, each of which may be absent or empty. Errors name file, line and key.
Result<StepsSettings> read_steps(const config::Node& root, const FindFile& files);

/// Receives the name of a part of a step and its duration.
using Observe = std::function<void(std::string_view part, std::chrono::nanoseconds took)>;

/// Immutable and thread-safe.
class Pipeline {
 public:
  /// Takes the model's tensors, for one row. kInvalidArgument: a step reads or fills a tensor that the model has not, or two fill the same
  /// one.
  static Result<std::shared_ptr<const Pipeline>> make(const StepsSettings& settings, std::span<const TensorFacts> inputs,
                                                      std::span<const TensorFacts> outputs);

  /// A tensor as clients see it. `model`: the index of the model's tensor that it is; nothing: a step reads or makes it.
  struct ClientTensor {
    TensorFacts facts;
    std::optional<size_t> model;
  };
  const std::vector<ClientTensor>& inputs() const { return inputs_; }
  const std::vector<ClientTensor>& outputs() const { return outputs_; }

  /// The tensors of inputs() that steps read are the elements, in that order.
  struct Prepared {
    std::vector<std::optional<Made>> inputs;  ///< in the model's order; nothing: the client's own
    RowFacts facts;
  };
  Result<Prepared> before(std::span<const std::string_view> elements, const Observe& observe) const;
  bool quick_before(std::span<const std::string_view> elements) const;

  /// `outputs`: all of the model's. Returns the tensors of outputs() that steps make, in that order.
  Result<std::vector<Made>> after(std::span<const TensorView> outputs, const RowFacts& facts, const Observe& observe) const;
  bool quick_after() const { return quick_after_; }

  /// Names of all parts of its steps.
  std::vector<std::string_view> parts() const;

  /// The place in `pre` of the step that fills an input of the model; nothing: clients send it.
  std::optional<size_t> step_filling(size_t model_input) const;
  /// The place in `post` of the step that makes a tensor of outputs(); nothing: it is the model's own.
  std::optional<size_t> step_making(size_t output) const;

 private:
  struct Pre {
    std::shared_ptr<const PreStep> step;
    std::vector<size_t> fills;  ///< the model's inputs
    size_t first = 0;           ///< of its elements
  };
  struct Post {
    std::shared_ptr<const PostStep> step;
    std::vector<size_t> reads;  ///< the model's outputs
  };
  Status add_pre(std::shared_ptr<const PreStep> step, std::span<const TensorFacts> inputs, std::vector<bool>& filled);
  Status add_post(std::shared_ptr<const PostStep> step, std::span<const TensorFacts> outputs, std::vector<bool>& read);

  std::vector<Pre> pre_;
  std::vector<Post> post_;
  std::vector<ClientTensor> inputs_, outputs_;
  size_t model_inputs_ = 0;
  size_t elements_ = 0;
  bool quick_after_ = true;
};

}  // namespace serin::steps

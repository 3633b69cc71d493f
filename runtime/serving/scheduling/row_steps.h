// row_steps.h: the steps around a model (runtime/steps), for one row of a request at a time.
//
//   SERIN_TRY(const RowSteps steps, RowSteps::make(settings, signature.inputs, signature.outputs, batchable));
//   SERIN_TRY(RowSteps::Before before, steps.before(row, observe));                  // ... the model runs on before.inputs ...
//   SERIN_TRY(RowSteps::After after, steps.after(outputs, before.facts, observe));
//
// The server (steps_scheduler.h) and the commands that run models over files share it, so they answer alike.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/protocol/infer.h"
#include "runtime/steps/pipeline/pipeline.h"

namespace serin::serving {

inline Shape without_rows(const Shape& shape) { return Shape(shape.dims().subspan(1)); }
Shape with_rows(int64_t rows, const Shape& shape);

/// Immutable and thread-safe.
class RowSteps {
 public:
  /// Takes the tensors of the model. A model that is not batchable takes one row at a time. kInvalidArgument: the steps do not fit the model.
  static Result<RowSteps> make(steps::StepsSettings settings, std::span<const protocol::TensorSpec> inputs,
                               std::span<const protocol::TensorSpec> outputs, bool batchable);
  /// The steps that a file of Paddle's projects describes (paddle_steps.h). Nothing: the model is a part of OCR.
  static Result<std::optional<steps::StepsSettings>> of_export(const std::string& file, std::span<const protocol::TensorSpec> inputs,
                                                               std::span<const protocol::TensorSpec> outputs, bool batchable);

  const steps::StepsSettings& settings() const { return settings_; }
  const steps::Pipeline& pipeline() const { return *pipeline_; }
  /// Whether axis 0 of the model's tensor counts rows.
  bool input_counts_rows(size_t input) const { return inputs_with_rows_[input]; }
  bool output_counts_rows(size_t output) const { return outputs_with_rows_[output]; }

  /// The tensors of clients, whose axis 0 counts rows.
  std::vector<protocol::TensorSpec> client_inputs() const;
  std::vector<protocol::TensorSpec> client_outputs() const;

  /// The model's inputs, in memory of `made` or in that of the client.
  struct Before {
    std::vector<std::optional<steps::Made>> made;
    std::vector<TensorView> inputs;
    steps::RowFacts facts;
  };
  /// `row`: tensors as client_inputs(), with one row each. kInvalidArgument: the steps make a shape that the model does not take. Throws
  /// std::bad_alloc.
  Result<Before> before(std::span<const TensorView> row, const steps::Observe& observe) const;
  bool quick_before(std::span<const TensorView> row) const { return pipeline_->quick_before(elements_of(row)); }

  /// The clients' outputs with one row each, in memory of `made` or in that of the model.
  struct After {
    std::vector<steps::Made> made;
    std::vector<TensorView> outputs;
  };
  /// `outputs`: all of the model's. Throws std::bad_alloc.
  Result<After> after(std::span<const TensorView> outputs, const steps::RowFacts& facts, const steps::Observe& observe) const;

 private:
  RowSteps() = default;
  std::vector<std::string_view> elements_of(std::span<const TensorView> row) const;

  steps::StepsSettings settings_;
  std::shared_ptr<const steps::Pipeline> pipeline_;
  std::vector<protocol::TensorSpec> inputs_, outputs_;  // of the model
  std::vector<bool> inputs_with_rows_, outputs_with_rows_;
};

}  // namespace serin::serving

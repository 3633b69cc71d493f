#include "runtime/serving/scheduling/row_steps.h"

#include <fmt/format.h>

#include "runtime/steps/pipeline/paddle_steps.h"
#include "runtime/steps/vision/paddle_export.h"

namespace serin::serving {
namespace {

using protocol::TensorSpec;
using steps::Pipeline;

/// A model that is not batchable takes one row, with an axis of rows or without it.
std::vector<bool> which_count_rows(std::span<const TensorSpec> specs, bool batchable, bool inputs) {
  std::vector<bool> which;
  for (const TensorSpec& spec : specs)
    which.push_back(batchable || (spec.ranked && spec.shape.rank() > 0 && (spec.shape[0] == 1 || (inputs && spec.shape[0] < 0))));
  return which;
}

std::vector<steps::TensorFacts> facts_of(std::span<const TensorSpec> specs, const std::vector<bool>& with_rows) {
  std::vector<steps::TensorFacts> facts;
  facts.reserve(specs.size());
  for (size_t i = 0; i < specs.size(); ++i)
    facts.push_back({specs[i].name, specs[i].dtype, with_rows[i] ? without_rows(specs[i].shape) : specs[i].shape});
  return facts;
}

/// What clients see of them.
std::vector<TensorSpec> specs_for_clients(std::span<const Pipeline::ClientTensor> tensors, std::span<const TensorSpec> model) {
  std::vector<TensorSpec> specs;
  for (const Pipeline::ClientTensor& tensor : tensors) {
    TensorSpec& spec = specs.emplace_back();
    if (tensor.model) spec = model[*tensor.model];
    spec.name = tensor.facts.name;
    spec.dtype = tensor.facts.dtype;
    spec.shape = with_rows(-1, tensor.facts.shape);
    spec.body = !tensor.model;
  }
  return specs;
}

Status check_rank(std::span<const TensorSpec> specs) {
  for (const TensorSpec& spec : specs)
    if (spec.ranked && !Shape::fits(spec.shape.rank() + 1)) return invalid(fmt::format("'{}' has too many dimensions", spec.name));
  return {};
}

}  // namespace

Shape with_rows(int64_t rows, const Shape& shape) {
  Shape all{rows};
  for (const int64_t dim : shape) all.push_back(dim);
  return all;
}

Result<RowSteps> RowSteps::make(steps::StepsSettings settings, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                                bool batchable) {
  SERIN_CHECK(check_rank(inputs));
  SERIN_CHECK(check_rank(outputs));
  RowSteps made;
  made.settings_ = std::move(settings);
  made.inputs_.assign(inputs.begin(), inputs.end());
  made.outputs_.assign(outputs.begin(), outputs.end());
  made.inputs_with_rows_ = which_count_rows(inputs, batchable, /*inputs=*/true);
  made.outputs_with_rows_ = which_count_rows(outputs, batchable, /*inputs=*/false);
  SERIN_TRY(made.pipeline_,
            Pipeline::make(made.settings_, facts_of(inputs, made.inputs_with_rows_), facts_of(outputs, made.outputs_with_rows_)));
  return made;
}

Result<std::optional<steps::StepsSettings>> RowSteps::of_export(const std::string& file, std::span<const TensorSpec> inputs,
                                                                std::span<const TensorSpec> outputs, bool batchable) {
  SERIN_TRY(const steps::PaddleExport model, steps::load_paddle_export(file));
  return steps::steps_of_paddle(model, facts_of(inputs, which_count_rows(inputs, batchable, /*inputs=*/true)),
                                facts_of(outputs, which_count_rows(outputs, batchable, /*inputs=*/false)));
}

std::vector<TensorSpec> RowSteps::client_inputs() const { return specs_for_clients(pipeline_->inputs(), inputs_); }
std::vector<TensorSpec> RowSteps::client_outputs() const { return specs_for_clients(pipeline_->outputs(), outputs_); }

std::vector<std::string_view> RowSteps::elements_of(std::span<const TensorView> row) const {
  std::vector<std::string_view> elements;
  for (size_t i = 0; i < row.size(); ++i)
    if (!pipeline_->inputs()[i].model) elements.emplace_back(row[i].as<const std::string>()[0]);
  return elements;
}

Result<RowSteps::Before> RowSteps::before(std::span<const TensorView> row, const steps::Observe& observe) const {
  SERIN_TRY(Pipeline::Prepared prepared, pipeline_->before(elements_of(row), observe));
  Before before{std::move(prepared.inputs), std::vector<TensorView>(inputs_.size()), std::move(prepared.facts)};
  for (size_t i = 0; i < before.made.size(); ++i)
    if (before.made[i]) before.inputs[i] = before.made[i]->view();
  for (size_t i = 0; i < row.size(); ++i) {
    const auto& model = pipeline_->inputs()[i].model;
    if (!model) continue;
    before.inputs[*model] = row[i];
    before.inputs[*model].shape = without_rows(row[i].shape);
  }
  for (size_t i = 0; i < before.inputs.size(); ++i) {
    TensorView& input = before.inputs[i];
    if (inputs_with_rows_[i]) input.shape = with_rows(1, input.shape);
    if (!inputs_[i].takes(input.shape))
      return invalid(fmt::format("the steps make {} for the model's input '{}', which is {}", input.shape.str(), inputs_[i].name,
                                 inputs_[i].shape.str()));
  }
  return before;
}

Result<RowSteps::After> RowSteps::after(std::span<const TensorView> outputs, const steps::RowFacts& facts,
                                        const steps::Observe& observe) const {
  std::vector<TensorView> rows(outputs.begin(), outputs.end());
  for (size_t i = 0; i < rows.size(); ++i)
    if (outputs_with_rows_[i]) rows[i].shape = without_rows(rows[i].shape);
  After after;
  SERIN_TRY(after.made, pipeline_->after(rows, facts, observe));
  size_t next = 0;
  for (const Pipeline::ClientTensor& output : pipeline_->outputs()) {
    TensorView& view = after.outputs.emplace_back(output.model ? rows[*output.model] : after.made[next++].view());
    if (!Shape::fits(view.shape.rank() + 1)) return Error{Code::kInternal, "an output has too many dimensions"};
    view.shape = with_rows(1, view.shape);
  }
  return after;
}

}  // namespace serin::serving

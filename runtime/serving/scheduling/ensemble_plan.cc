// ensemble_plan.cc: each tensor has one producer, an input of the ensemble or an output of a step, whose type and shape all its readers must take.

#include "runtime/serving/scheduling/ensemble_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "runtime/base/log.h"
#include "runtime/protocol/tensor/tensor_names.h"

namespace serin::serving {
namespace {

using protocol::TensorSpec;

Error refuse(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

std::string print(const TensorSpec& spec) {
  return fmt::format("{} {}", protocol::oip_datatype(spec.dtype), spec.ranked ? spec.shape.str() : "of any shape");
}

/// What both take; nothing where there is no such tensor.
std::optional<TensorSpec> both(const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype != DType::kUndefined && b.dtype != DType::kUndefined && a.dtype != b.dtype) return std::nullopt;
  TensorSpec common = a.ranked ? a : b;
  common.name = a.name;
  common.dtype = a.dtype == DType::kUndefined ? b.dtype : a.dtype;
  if (!a.ranked || !b.ranked) return common;
  if (a.shape.rank() != b.shape.rank()) return std::nullopt;
  for (size_t axis = 0; axis < a.shape.rank(); ++axis) {
    if (a.shape[axis] >= 0 && b.shape[axis] >= 0 && a.shape[axis] != b.shape[axis]) return std::nullopt;
    common.shape[axis] = std::max(a.shape[axis], b.shape[axis]);
  }
  return common;
}

class Planner {
 public:
  Planner(EnsemblePlan& plan, const EnsembleSettings& settings, const ServedModels& models)
      : plan_(plan), settings_(settings), models_(models) {}

  Status make() {
    SERIN_CHECK(add_produced());
    SERIN_CHECK(add_inputs());
    for (size_t i = 0; i < models_.size(); ++i) SERIN_CHECK(add_step(i));
    SERIN_CHECK(check_order());
    SERIN_CHECK(choose_outputs());
    finish();
    return {};
  }

 private:
  struct Tensor {
    TensorSpec spec;
    std::string from;  // who produces it; empty: the client
    size_t index = 0;
  };

  std::string name_of(size_t step) const { return fmt::format("step {} (model '{}')", step + 1, settings_.steps[step].model); }

  Status add_produced() {
    for (size_t i = 0; i < models_.size(); ++i) {
      for (const auto& [own, tensor] : settings_.steps[i].outputs) {
        const auto& outputs = models_[i]->signature().outputs;
        const auto found = std::ranges::find(outputs, own, &TensorSpec::name);
        if (found == outputs.end())
          return refuse(fmt::format("{} has no output '{}'{}", name_of(i), own, protocol::names_instead_of(own, outputs)));
        TensorSpec spec = *found;
        spec.name = tensor;
        const auto [held, is_new] = tensors_.try_emplace(tensor, Tensor{spec, name_of(i)});
        if (!is_new) return refuse(fmt::format("tensor '{}' is produced by {} and by {}", tensor, held->second.from, name_of(i)));
      }
    }
    return {};
  }

  /// What is read and not produced comes from the client.
  Status add_inputs() {
    std::vector<TensorSpec> inputs = settings_.inputs;
    for (const TensorSpec& input : inputs)
      if (tensors_.contains(input.name))
        return refuse(fmt::format("input '{}' is produced by {}", input.name, tensors_.at(input.name).from));
    for (size_t i = 0; i < models_.size(); ++i) {
      for (const auto& [own, tensor] : settings_.steps[i].inputs) {
        if (tensors_.contains(tensor) || std::ranges::find(inputs, tensor, &TensorSpec::name) != inputs.end()) continue;
        if (!settings_.inputs.empty())
          return refuse(fmt::format("{} reads tensor '{}', which is no input and produced by no step", name_of(i), tensor));
        inputs.push_back({.name = tensor, .ranked = false});
      }
    }
    for (TensorSpec& input : inputs) {
      tensors_[input.name] = {input, "", plan_.tensors++};
      inputs_.push_back(input.name);
    }
    for (auto& [name, tensor] : tensors_)
      if (!tensor.from.empty()) tensor.index = plan_.tensors++;
    plan_.readers.resize(plan_.tensors);
    return {};
  }

  Status add_step(size_t i) {
    EnsemblePlan::Step step{name_of(i), models_[i], {}, {}};
    const protocol::Signature& signature = models_[i]->signature();
    const auto& given = settings_.steps[i].inputs;
    for (const auto& [own, tensor] : given)
      if (std::ranges::find(signature.inputs, own, &TensorSpec::name) == signature.inputs.end())
        return refuse(fmt::format("{} has no input '{}'{}", step.name, own, protocol::names_instead_of(own, signature.inputs)));
    for (const TensorSpec& input : signature.inputs) {
      const auto named = given.find(input.name);
      if (named == given.end()) return refuse(fmt::format("{}: its input '{}' is left out", step.name, input.name));
      Tensor& tensor = tensors_.at(named->second);
      auto common = both(tensor.spec, input);
      if (!common)
        return refuse(fmt::format("{}: its input '{}' takes {}, but tensor '{}'{}{} is {}", step.name, input.name, print(input),
                                  named->second, tensor.from.empty() ? "" : " of ", tensor.from, print(tensor.spec)));
      if (tensor.from.empty()) tensor.spec = std::move(*common);  // a client is told what all readers take
      step.inputs.push_back(tensor.index);
      plan_.readers[tensor.index].push_back(i);
    }
    for (const auto& [own, tensor] : settings_.steps[i].outputs) {
      const auto found = std::ranges::find(signature.outputs, own, &TensorSpec::name);
      step.outputs.emplace_back(static_cast<size_t>(found - signature.outputs.begin()), tensors_.at(tensor).index);
    }
    plan_.steps.push_back(std::move(step));
    return {};
  }

  /// Steps are taken as soon as all they read is there; those that never are wait for each other.
  Status check_order() const {
    std::vector<size_t> missing;
    for (const EnsemblePlan::Step& step : plan_.steps) missing.push_back(step.inputs.size());
    std::vector<size_t> there;
    for (size_t i = 0; i < inputs_.size(); ++i) there.push_back(i);
    for (size_t i = 0; i < plan_.steps.size(); ++i)
      if (missing[i] == 0)
        for (const auto& [own, tensor] : plan_.steps[i].outputs) there.push_back(tensor);
    while (!there.empty()) {
      const size_t tensor = there.back();
      there.pop_back();
      for (const size_t reader : plan_.readers[tensor])
        if (--missing[reader] == 0)
          for (const auto& [own, next] : plan_.steps[reader].outputs) there.push_back(next);
    }
    std::vector<std::string> stuck;
    for (size_t i = 0; i < missing.size(); ++i)
      if (missing[i] > 0) stuck.push_back(plan_.steps[i].name);
    if (stuck.empty()) return {};
    return refuse(fmt::format("{} wait for each other's tensors", fmt::join(stuck, ", ")));
  }

  Status choose_outputs() {
    for (const std::string& input : inputs_)
      if (plan_.readers[tensors_.at(input).index].empty()) return refuse(fmt::format("input '{}' is read by no step", input));
    std::vector<TensorSpec> outputs = settings_.outputs;
    if (outputs.empty()) {  // in the order of the steps
      for (const EnsembleStep& step : settings_.steps)
        for (const auto& [own, tensor] : step.outputs)
          if (plan_.readers[tensors_.at(tensor).index].empty()) outputs.push_back({.name = tensor, .ranked = false});
    }
    for (const TensorSpec& output : outputs) {
      const auto found = tensors_.find(output.name);
      if (found == tensors_.end() || found->second.from.empty())
        return refuse(fmt::format("output '{}' is produced by no step", output.name));
      const auto common = both(found->second.spec, output);
      if (!common)
        return refuse(fmt::format("output '{}' is declared as {}, but {} gives {}", output.name, print(output), found->second.from,
                                  print(found->second.spec)));
      plan_.outputs.push_back(found->second.index);
      plan_.signature.outputs.push_back(found->second.spec);
      if (!output.labels.empty()) plan_.signature.outputs.back().labels = output.labels;
    }
    for (const auto& [name, tensor] : tensors_)
      if (plan_.readers[tensor.index].empty() && std::ranges::find(plan_.outputs, tensor.index) == plan_.outputs.end())
        log::warning("{}: tensor '{}' of {} is neither read nor an output", plan_.signature.model, name, tensor.from);
    return {};
  }

  void finish() {
    for (const std::string& input : inputs_) plan_.signature.inputs.push_back(tensors_.at(input).spec);
    plan_.max_batch = plan_.max_rows = INT64_MAX;
    for (const auto& model : models_) {
      plan_.batchable &= model->batchable();
      plan_.max_batch = std::min(plan_.max_batch, model->max_batch());
      plan_.max_rows = std::min(plan_.max_rows, model->max_rows());
    }
  }

  EnsemblePlan& plan_;
  const EnsembleSettings& settings_;
  const ServedModels& models_;
  std::map<std::string, Tensor> tensors_;
  std::vector<std::string> inputs_;
};

}  // namespace

Result<EnsemblePlan> EnsemblePlan::make(std::string name, const EnsembleSettings& settings, const ServedModels& models) {
  EnsemblePlan plan;
  plan.signature.model = std::move(name);
  SERIN_CHECK(Planner(plan, settings, models).make());
  return plan;
}

}  // namespace serin::serving

// executor.cc: checks that a caller's tensors are those of the plan, and runs the plan (runner.cc).

#include <string>
#include <utility>

#include "runtime/engine/model/executor_state.h"

namespace serin::engine {

namespace {

std::string described(DType dtype, const Shape& shape) { return std::string(dtype_name(dtype)) + shape.str(); }

Status check(const TensorInfo& expected, const TensorView& given, const char* kind, bool bounded) {
  const bool fits =
      given.dtype == expected.dtype && (bounded ? given.shape.rank() == expected.shape.rank() : given.shape == expected.shape);
  if (!fits) {
    return Error{Code::kInvalidArgument, std::string(kind) + " '" + expected.name + "' is planned as " +
                                             described(expected.dtype, expected.shape) + ", got " + described(given.dtype, given.shape)};
  }
  if (!given.data && expected.shape.elements() != 0) {
    return Error{Code::kInvalidArgument, std::string(kind) + " '" + expected.name + "' has no memory"};
  }
  return {};
}

Status check_count(size_t expected, size_t given, const char* kind) {
  if (expected == given) return {};
  return Error{Code::kInvalidArgument, "the model has " + std::to_string(expected) + " " + kind + ", got " + std::to_string(given)};
}

}  // namespace

Executor::Executor(std::shared_ptr<const Plan> plan, std::unique_ptr<State> state) : plan_(std::move(plan)), state_(std::move(state)) {}
Executor::~Executor() = default;

std::span<const TensorInfo> Executor::inputs() const { return plan_->inputs; }

std::span<const TensorInfo> Executor::outputs() const { return plan_->outputs; }

size_t Executor::arena_bytes() const { return plan_->arena_bytes; }

std::vector<TensorView> Executor::staged(std::span<const TensorInfo> infos, std::span<const TensorId> tensors) const {
  std::vector<TensorView> views;
  for (size_t i = 0; i < tensors.size(); ++i) {
    TensorView& view = views.emplace_back(TensorView{infos[i].dtype, infos[i].shape, nullptr});
    if (!state_->device_arena) continue;
    for (const auto& [callers, copy] : plan_->program.staged) {
      if (callers == tensors[i]) view.data = state_->device_arena->host() + plan_->places[static_cast<size_t>(copy)].offset;
    }
  }
  return views;
}

std::vector<TensorView> Executor::staged_inputs() const { return staged(plan_->inputs, plan_->program.inputs); }
std::vector<TensorView> Executor::staged_outputs() const { return staged(plan_->outputs, plan_->program.outputs); }

Status Executor::run(std::span<const TensorView> inputs, std::span<TensorView> outputs, std::span<int64_t> step_ns) {
  SERIN_CHECK(check_count(plan_->inputs.size(), inputs.size(), "inputs"));
  SERIN_CHECK(check_count(plan_->outputs.size(), outputs.size(), "outputs"));
  for (size_t i = 0; i < inputs.size(); ++i) SERIN_CHECK(check(plan_->inputs[i], inputs[i], "input", false));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& planned = plan_->program.tensor(plan_->program.outputs[i]);
    SERIN_CHECK(check(plan_->outputs[i], outputs[i], "output", planned.storage != Storage::kFixed));
  }
  if (!step_ns.empty() && step_ns.size() != plan_->steps.size()) {
    return Error{Code::kInvalidArgument,
                 "the plan has " + std::to_string(plan_->steps.size()) + " steps, times are wanted of " + std::to_string(step_ns.size())};
  }
  return state_->runner.run(inputs, outputs, step_ns);
}

}  // namespace serin::engine

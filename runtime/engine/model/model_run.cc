// model_run.cc: Model::run, which takes and returns values of any size.
//
// Executors and interpreters are kept between runs, each used by one run at a time: as many as there were runs at once, at most kMostIdle.

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/engine/interpret/describe_stages.h"
#include "runtime/engine/model/model_state.h"

namespace serin::engine {

namespace {

constexpr size_t kMostIdle = 8;

bool is_optional(graph::ValueKind kind) { return kind == graph::ValueKind::kOptional || kind == graph::ValueKind::kOptionalSequence; }

/// The kind of value that an input of this kind is given as.
graph::ValueKind given_kind(graph::ValueKind kind) { return is_optional(kind) ? graph::ValueKind::kOptional : kind; }

std::string expected(const TensorInfo& info) {
  return graph::print(graph::Type{info.kind, info.dtype, info.ranked ? std::optional(info.dims) : std::nullopt});
}

bool fits(const TensorInfo& info, const graph::Constant& tensor) {
  if (info.dtype != DType::kUndefined && tensor.dtype != info.dtype) return false;
  if (!info.ranked) return true;
  if (tensor.shape.rank() != info.dims.size()) return false;
  for (size_t axis = 0; axis < info.dims.size(); ++axis) {
    const auto size = info.dims[axis].value();
    if (size && *size != tensor.shape[axis]) return false;
  }
  return true;
}

/// Sizes are limited one by one; what they add up to may still be more than there is. Nothing where that happened: the interpreter has been
/// left in the middle of something.
std::optional<Result<std::vector<Value>>> run_guarded(Interpreter& interpreter, std::span<const Value> inputs,
                                                      const std::atomic<bool>* cancelled) try {
  return interpreter.run(inputs, cancelled);
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

bool holds_tensors(const Value& value) {
  if (value.is_tensor()) return value.tensor != nullptr;
  return std::ranges::all_of(value.elements, holds_tensors);
}

/// As the model declares it. What an optional input is given may also be what it holds.
Result<Value> checked(const TensorInfo& info, const Value& given) {
  const auto refuse = [&] {
    return Error{Code::kInvalidArgument,
                 fmt::format("input '{}' expects {}, the request has {}", info.name, expected(info), describe(given))};
  };
  Value value = is_optional(info.kind) && given.kind != graph::ValueKind::kOptional ? Value::optional(given) : given;
  if (value.kind != given_kind(info.kind)) return refuse();
  if (!holds_tensors(value) || (value.is_tensor() && !fits(info, *value.tensor))) return refuse();
  const bool typed = value.dtype != DType::kUndefined && info.dtype != DType::kUndefined;
  if (typed && value.dtype != info.dtype) return refuse();
  return value;
}

/// Results are memory beside the arena: what a few bytes of a model ask for is bounded there, too.
Status check_result_bytes(std::span<const TensorInfo> outputs, size_t limit) {
  size_t bytes = 0;
  for (const TensorInfo& info : outputs) bytes += TensorView{info.dtype, info.shape, nullptr}.bytes();
  if (bytes <= limit) return {};
  return Error{Code::kTooLarge, fmt::format("the results would take {} bytes, more than the limit of {}", bytes, limit)};
}

}  // namespace

bool Model::planned() const { return state_->block == nullptr; }
const std::string& Model::why_interpreted() const { return state_->why_interpreted; }

std::string Model::describe_stages() const { return planned() ? "" : engine::describe_stages(*state_->block, state_->plan_context()); }

std::string Model::describe_last_run() const {
  const MutexLock lock(state_->mutex);
  return state_->idle_interpreters.empty() ? "" : state_->idle_interpreters.back()->describe_last_run();
}

Result<std::vector<Value>> Model::run(std::span<const Value> inputs, const std::atomic<bool>* cancelled) try {
  if (state_->options.only_plans) return Error{Code::kFailedPrecondition, "the model was loaded for its plans only"};
  const auto& infos = state_->inputs;
  if (infos.size() != inputs.size())
    return Error{Code::kInvalidArgument, fmt::format("the model has {} inputs, the request has {}", infos.size(), inputs.size())};
  std::vector<Value> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    SERIN_TRY(Value value, checked(infos[i], inputs[i]));
    values.push_back(std::move(value));
  }
  return planned() ? run_planned(values) : run_interpreted(values, cancelled);
} catch (const graph::LostConstant& lost) {
  return lost.error();
}

Result<std::vector<Value>> Model::run_planned(std::span<const Value> inputs) {
  std::vector<TensorView> views;
  for (const Value& value : inputs) views.push_back(view_of(*value.tensor));
  SERIN_TRY(const graph::Bindings bindings, bindings_for(state_->inputs, views));
  std::unique_ptr<Executor> planned;
  {
    const MutexLock lock(state_->mutex);
    auto& idle = state_->idle_executors;
    const auto found = std::ranges::find(idle, bindings, &State::IdleExecutor::bindings);
    if (found != idle.end()) {
      planned = std::move(found->executor);
      idle.erase(found);
    }
  }
  if (!planned) {
    SERIN_TRY(planned, executor(bindings));
  }
  SERIN_CHECK(check_result_bytes(planned->outputs(), state_->options.max_arena_bytes));
  std::vector<FreshTensor> results;
  std::vector<TensorView> outputs;
  for (const TensorInfo& info : planned->outputs()) {
    results.push_back(fresh_tensor(info.dtype, info.shape));
    outputs.push_back(results.back().view);
  }
  const Status ran = planned->run(views, outputs);
  {
    const MutexLock lock(state_->mutex);
    auto& idle = state_->idle_executors;
    idle.push_back({bindings, std::move(planned)});
    if (idle.size() > kMostIdle) idle.erase(idle.begin());
  }
  if (!ran) return ran.error();
  std::vector<Value> values;
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].tensor->shape = outputs[i].shape;
    values.push_back(Value::of(std::move(results[i].tensor)));
  }
  return values;
}

Result<std::vector<Value>> Model::run_interpreted(std::span<const Value> inputs, const std::atomic<bool>* cancelled) {
  std::unique_ptr<Interpreter> interpreter;
  {
    const MutexLock lock(state_->mutex);
    auto& idle = state_->idle_interpreters;
    if (!idle.empty()) {
      interpreter = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!interpreter) interpreter = std::make_unique<Interpreter>(state_->block, state_->plan_context());
  auto results = run_guarded(*interpreter, inputs, cancelled);
  if (!results) return Error{Code::kTooLarge, "there is not enough memory for the sizes of this request"};
  const MutexLock lock(state_->mutex);
  if (state_->idle_interpreters.size() < kMostIdle) state_->idle_interpreters.push_back(std::move(interpreter));
  return *std::move(results);
}

}  // namespace serin::engine

// model_run.cc: Model::run, values in and values out, whatever their sizes.

#include <fmt/format.h>

#include "runtime/engine/engine.h"
#include "runtime/engine/value.h"

namespace serin::engine {

namespace {

Result<std::vector<TensorView>> views_of(std::span<const Value> values) {
  std::vector<TensorView> views;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].is_tensor() || !values[i].tensor)
      return Error{Code::kInvalidArgument, fmt::format("input {} is {}, the model takes a tensor", i, describe(values[i]))};
    views.push_back(view_of(*values[i].tensor));
  }
  return views;
}

}  // namespace

Result<std::vector<Value>> Model::run(std::span<const Value> inputs) {
  SERIN_TRY(const std::vector<TensorView> views, views_of(inputs));
  SERIN_TRY(const graph::Bindings bindings, bindings_for(this->inputs(), views));
  SERIN_TRY(const auto planned, executor(bindings));
  std::vector<FreshTensor> results;
  std::vector<TensorView> outputs;
  for (const TensorInfo& info : planned->outputs()) {
    results.push_back(fresh_tensor(info.dtype, info.shape));
    outputs.push_back(results.back().view);
  }
  SERIN_CHECK(planned->run(views, outputs));
  std::vector<Value> values;
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].tensor->shape = outputs[i].shape;
    values.push_back(Value::of(std::move(results[i].tensor)));
  }
  return values;
}

}  // namespace serin::engine

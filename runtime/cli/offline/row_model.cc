// row_model.cc: the rows of a block go through the steps one by one, then through the model in batches, then through the steps behind it.

#include "runtime/cli/offline/row_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/datasets/convert.h"

namespace serin::cli {
namespace {

constexpr size_t kMostExecutors = 8;  // of a worker: one for each combination of sizes

/// As `serin predict` and `eval` read and write rows.
Status check_texts(std::span<const engine::TensorInfo> inputs) {
  for (const engine::TensorInfo& info : inputs)
    if (info.kind == graph::ValueKind::kTensor && dtype_size(info.dtype) == 0)
      return Error{Code::kUnsupported, fmt::format("input '{}' is of texts: only steps before a model take texts", info.name)};
  return {};
}

}  // namespace

Result<std::shared_ptr<const RowModel>> RowModel::load(const ModelPlace& place, const EngineFlags& flags) {
  const std::shared_ptr<RowModel> made(new RowModel());
  SERIN_TRY(made->engine_, make_engine(flags));
  SERIN_TRY(LoadedModel loaded, load_model(flags, made->engine_, place.file, 1));
  made->model_ = std::move(loaded.model);
  const engine::Model& model = *made->model_;
  SERIN_CHECK(check_texts(model.inputs()));
  SERIN_TRY(serving::RowSteps steps, steps_around(place, model.inputs(), model.outputs(), model.batchable().yes));
  made->steps_ = std::make_unique<const serving::RowSteps>(std::move(steps));
  const steps::Pipeline& pipeline = made->steps_->pipeline();
  for (const auto& tensor : pipeline.inputs()) made->inputs_.push_back(tensor.facts);
  for (const auto& tensor : pipeline.outputs()) made->outputs_.push_back(tensor.facts);
  made->has_steps_behind_ = std::ranges::any_of(pipeline.outputs(), [](const auto& tensor) { return !tensor.model; });
  return std::shared_ptr<const RowModel>(made);
}

/// A row that is ready for the model. It has no memory of its own: a small model takes less time for a row than an allocation.
struct RowWorker::Row {
  size_t index = 0;  ///< in its block
  size_t place = 0;  ///< in shapes_ and offsets_
  steps::RowFacts facts;
};

Status RowWorker::prepare(const datasets::Dataset& data, const datasets::Rows& rows, const ColumnMap& map, size_t index, Row& row) {
  const steps::Pipeline& pipeline = model_.steps_->pipeline();
  const auto& facts = pipeline.inputs();
  row.index = index;
  row.place = shapes_.size();
  shapes_.resize(row.place + bytes_.size());
  for (const auto& bytes : bytes_) offsets_.push_back(bytes.size());
  std::vector<std::string_view> elements;
  for (size_t input = 0; input < facts.size(); ++input) {
    cells_.clear();
    for (const size_t position : map.inputs[input]) cells_.push_back(rows.cell(index, position));
    const auto name = [&] { return fmt::format("column '{}'", data.columns()[map.columns[map.inputs[input].front()]]); };
    if (!facts[input].model) {
      const datasets::Cell& cell = cells_.front();
      if (cell.kind != datasets::Cell::Kind::kText && cell.kind != datasets::Cell::Kind::kField)
        return invalid(fmt::format("{}: {}, a text or a picture is needed", name(), datasets::describe(cell)));
      elements.push_back(cell.text);
      continue;
    }
    const size_t model_input = *facts[input].model;
    const auto shape = datasets::append_elements(cells_, facts[input].facts.dtype, facts[input].facts.shape, bytes_[model_input]);
    if (!shape) return shape.error().in(name());
    shapes_[row.place + model_input] = *shape;
  }
  if (elements.empty()) return {};  // no steps
  SERIN_TRY(auto prepared, pipeline.before(elements, [](std::string_view, std::chrono::nanoseconds) {}));
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    if (!prepared.inputs[i]) continue;
    const TensorView made = prepared.inputs[i]->view();
    const auto* const begin = static_cast<const std::byte*>(made.data);
    bytes_[i].insert(bytes_[i].end(), begin, begin + made.bytes());
    shapes_[row.place + i] = made.shape;
  }
  row.facts = std::move(prepared.facts);
  return {};
}

Answers RowWorker::run(const datasets::Dataset& data, const datasets::Rows& rows, const ColumnMap& map) {
  Answers answers;
  answers.outputs = model_.outputs_.size();
  answers.faults.resize(rows.count());
  answers.views.resize(rows.count() * answers.outputs);
  bytes_.resize(model_.model_->inputs().size());
  for (auto& bytes : bytes_) bytes.clear();
  shapes_.clear();
  offsets_.clear();
  const auto place = [&](size_t index) { return data.place(rows.first + static_cast<int64_t>(index)); };

  std::vector<Row> ready;
  for (size_t index = 0; index < rows.count(); ++index) {
    Row row;
    const Status prepared = rows.faults[index] ? Status(*rows.faults[index]) : prepare(data, rows, map, index, row);
    if (prepared) {
      ready.push_back(std::move(row));
      continue;
    }
    answers.faults[index] = prepared.error().in(place(index));
    if (rows.faults[index]) continue;
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i].resize(offsets_[row.place + i]);
  }
  const bool batchable = model_.model_->batchable().yes;
  const auto alike = [&](const Row& a, const Row& b) {
    return std::equal(&shapes_[a.place], &shapes_[a.place] + bytes_.size(), &shapes_[b.place]);
  };
  for (size_t begin = 0, end = 0; begin < ready.size(); begin = end) {
    for (end = begin + 1; batchable && end < ready.size() && alike(ready[begin], ready[end]);) ++end;
    const auto batch = std::span(ready).subspan(begin, end - begin);
    Status computed = compute(batch, answers);
    if (computed) continue;
    for (size_t i = 0; i < batch.size(); ++i) {  // one row of them is at fault, such as an index out of range
      if (batch.size() > 1) computed = compute(batch.subspan(i, 1), answers);
      if (!computed) answers.faults[batch[i].index] = computed.error().in(place(batch[i].index));
    }
  }
  return answers;
}

Status RowWorker::compute(std::span<Row> batch, Answers& answers) {
  std::vector<TensorView> inputs;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    const engine::TensorInfo& info = model_.model_->inputs()[i];
    const Shape& row = shapes_[batch.front().place + i];
    inputs.push_back({info.dtype, model_.steps_->input_counts_rows(i) ? serving::with_rows(static_cast<int64_t>(batch.size()), row) : row,
                      bytes_[i].data() + offsets_[batch.front().place + i]});
  }
  SERIN_TRY(const std::vector<TensorView> outputs, infer(inputs, answers));
  std::vector<TensorView> own(outputs.size());
  for (size_t at = 0; at < batch.size(); ++at) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      own[i] = outputs[i];
      if (!model_.steps_->output_counts_rows(i)) continue;
      own[i].shape = serving::without_rows(outputs[i].shape);
      if (own[i].dtype == DType::kString)
        own[i].data = outputs[i].as<std::string>() + at * static_cast<size_t>(own[i].elements());
      else
        own[i].data = outputs[i].as<std::byte>() + at * own[i].bytes();
    }
    SERIN_CHECK(finish(batch[at], own, answers));
  }
  return {};
}

Status RowWorker::finish(const Row& row, std::span<const TensorView> outputs, Answers& answers) {
  TensorView* to = answers.views.data() + row.index * answers.outputs;
  if (!model_.has_steps_behind_) {
    std::ranges::copy(outputs, to);
    return {};
  }
  const steps::Pipeline& pipeline = model_.steps_->pipeline();
  SERIN_TRY(auto made, pipeline.after(outputs, row.facts, [](std::string_view, std::chrono::nanoseconds) {}));
  std::vector<steps::Made>& kept = answers.made.emplace_back(std::move(made));
  size_t next = 0;
  for (const auto& output : pipeline.outputs()) *to++ = output.model ? outputs[*output.model] : kept[next++].view();
  return {};
}

Result<std::vector<TensorView>> RowWorker::infer(std::span<const TensorView> inputs, Answers& answers) {
  engine::Model& model = *model_.model_;
  std::vector<TensorView> outputs;
  if (!model.planned()) {
    std::vector<engine::Value> values;
    for (const TensorView& input : inputs) values.push_back(engine::Value::of(graph::make_constant(input.dtype, input.shape, input.data)));
    SERIN_TRY(auto results, model.run(values));
    for (const engine::Value& value : answers.values.emplace_back(std::move(results))) {
      if (!value.tensor) return Error{Code::kUnsupported, "an output is " + engine::describe(value) + ", not a tensor"};
      outputs.push_back(engine::view_of(*value.tensor));
    }
    return outputs;
  }
  SERIN_TRY(const graph::Bindings bindings, engine::bindings_for(model.inputs(), inputs));
  auto found = executors_.find(bindings);
  if (found == executors_.end()) {
    if (executors_.size() >= kMostExecutors) executors_.clear();
    SERIN_TRY(auto executor, model.executor(bindings));
    found = executors_.emplace(bindings, std::move(executor)).first;
  }
  for (const engine::TensorInfo& info : found->second->outputs())
    outputs.push_back(
        {info.dtype, info.shape, answers.memory.emplace_back(static_cast<size_t>(info.shape.elements()) * dtype_size(info.dtype)).data()});
  SERIN_CHECK(found->second->run(inputs, outputs));
  return outputs;
}

}  // namespace serin::cli

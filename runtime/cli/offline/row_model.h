// row_model.h: a model, with the steps before and after it, over blocks of rows.
//
//   SERIN_TRY(const auto model, RowModel::load(place, flags));
//   RowWorker worker(*model);                                   // one for each thread
//   const Answers answers = worker.run(*data, rows, map);
//
// Rows of equal shapes next to each other are one batch, so the same block gives the same bits in every run. A row that is at fault gets an
// error of its own; the others are computed.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/aligned_buffer.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/offline/column_map.h"
#include "runtime/cli/offline/model_place.h"
#include "runtime/datasets/dataset.h"
#include "runtime/engine/engine.h"
#include "runtime/serving/scheduling/row_steps.h"

namespace serin::cli {

/// The answers of a model to a block of rows.
struct Answers {
  size_t outputs = 0;
  std::vector<TensorView> views;             ///< of each row, its outputs; row after row
  std::vector<std::optional<Error>> faults;  ///< of each row, with its place; such a row has no views of use

  std::span<const TensorView> row(size_t index) const { return {views.data() + index * outputs, outputs}; }

  std::deque<AlignedBuffer> memory;
  std::deque<std::vector<steps::Made>> made;
  std::deque<std::vector<engine::Value>> values;
};

/// Immutable once loaded.
class RowModel {
 public:
  static Result<std::shared_ptr<const RowModel>> load(const ModelPlace& place, const EngineFlags& flags);

  /// Tensors of one row, as the data has them and as results have them: with the steps.
  const std::vector<steps::TensorFacts>& inputs() const { return inputs_; }
  const std::vector<steps::TensorFacts>& outputs() const { return outputs_; }
  const Engine& engine() const { return engine_; }

 private:
  friend class RowWorker;
  RowModel() = default;
  Engine engine_;
  std::shared_ptr<engine::Model> model_;
  std::unique_ptr<const serving::RowSteps> steps_;
  std::vector<steps::TensorFacts> inputs_, outputs_;
  bool has_steps_behind_ = false;
};

/// Not thread-safe: a thread makes its own, and no other thread uses it.
class RowWorker {
 public:
  explicit RowWorker(const RowModel& model) : model_(model) {}
  /// `rows` has the columns of `map`.
  Answers run(const datasets::Dataset& data, const datasets::Rows& rows, const ColumnMap& map);

 private:
  struct Row;
  Status prepare(const datasets::Dataset& data, const datasets::Rows& rows, const ColumnMap& map, size_t index, Row& row);
  Status compute(std::span<Row> batch, Answers& answers);
  Result<std::vector<TensorView>> infer(std::span<const TensorView> inputs, Answers& answers);
  Status finish(const Row& row, std::span<const TensorView> outputs, Answers& answers);

  const RowModel& model_;
  std::vector<std::vector<std::byte>> bytes_;  // of each input of the model, row after row
  std::vector<Shape> shapes_;                  // of each row and input, without rows
  std::vector<size_t> offsets_;                // likewise, in bytes_
  std::vector<datasets::Cell> cells_;
  std::map<graph::Bindings, std::unique_ptr<engine::Executor>> executors_;
};

}  // namespace serin::cli

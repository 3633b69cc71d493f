// control_flow.cc: runs If, Loop, Scan and SequenceMap. The results of an iteration are kept as they are, and scan outputs are put together
// once at the end. They may not grow beyond the limit of a plan's memory. A run that no client waits for any more ends between two
// iterations.

#include "runtime/engine/interpret/control_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/engine/interpret/tensor_parts.h"

namespace serin::engine {

namespace {

using graph::ConstantPtr;

Result<ConstantPtr> single_element(const Value& value, DType dtype, std::string_view what) {
  if (!value.tensor || value.tensor->dtype != dtype || value.tensor->elements() != 1)
    return invalid(fmt::format("the {} is {}, it must be one {}", what, describe(value), dtype_name(dtype)));
  return value.tensor;
}

Result<bool> flag(const Value& value, std::string_view what) {
  SERIN_TRY(const ConstantPtr tensor, single_element(value, DType::kBool, what));
  return tensor->span<bool>()[0];
}

Value scalar(int64_t number) { return Value::of(graph::make_constant(DType::kInt64, Shape{}, &number)); }
Value scalar(bool yes) { return Value::of(graph::make_constant(DType::kBool, Shape{}, &yes)); }

/// What the turns of a loop leave behind, for each result that is scanned out.
class Scanned {
 public:
  Scanned(size_t results, size_t max_bytes) : turns_(results), max_bytes_(max_bytes) {}

  Status add(size_t result, const Value& value) {
    if (!value.tensor) return invalid(fmt::format("a scan output is {}, a tensor is needed", describe(value)));
    bytes_ += bytes_of(value);
    if (bytes_ > max_bytes_) return Error{Code::kTooLarge, fmt::format("its turns have made more than the limit of {} bytes", max_bytes_)};
    turns_[result].push_back(value.tensor);
    return {};
  }

  void reverse(size_t result) { std::ranges::reverse(turns_[result]); }

  /// Along `axis`; no turns give a tensor of no elements, whose other sizes are those of `turn` where they are known.
  Result<Value> put_together(size_t result, int64_t axis, const graph::Type& turn) const {
    if (turns_[result].empty()) {
      std::vector<int64_t> dims;
      for (const graph::Dim& dim : turn.shape.value_or(graph::Dims{})) dims.push_back(dim.value().value_or(0));
      const auto rank = static_cast<int64_t>(dims.size()) + 1;
      dims.insert(dims.begin() + std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank - 1), 0);
      if (!Shape::fits(dims.size())) return invalid("the result would have too many dimensions");
      return Value::of(fresh_tensor(turn.dtype, Shape(dims)).tensor);
    }
    SERIN_TRY(ConstantPtr tensor, stacked(turns_[result], axis, max_bytes_));
    return Value::of(std::move(tensor));
  }

 private:
  std::vector<std::vector<ConstantPtr>> turns_;
  size_t max_bytes_, bytes_ = 0;
};

const graph::Type& type_of_output(const graph::Graph& body, size_t i) { return body.value(body.outputs()[i]).type; }

int64_t listed(const std::vector<int64_t>& list, size_t i) { return i < list.size() ? list[i] : 0; }

}  // namespace

Result<std::vector<Value>> ControlFlow::run(std::vector<Value> operands) {
  switch (node_.op) {
    case graph::Op::kIf: return run_if(std::move(operands));
    case graph::Op::kLoop: return run_loop(std::move(operands));
    case graph::Op::kScan: return node_.integer("batched", 0) != 0 ? run_scan_batch(std::move(operands)) : run_scan(std::move(operands));
    case graph::Op::kSequenceMap: return run_sequence_map(std::move(operands));
    default: return Error{Code::kUnsupported, "it has bodies that nothing runs"};
  }
}

Status ControlFlow::check_cancelled() const {
  if (cancelled_ && cancelled_->load(std::memory_order_relaxed)) return Error{Code::kCancelled, "no client waits for the answer any more"};
  return {};
}

Result<std::vector<Value>> ControlFlow::run_if(std::vector<Value> operands) {
  SERIN_TRY(const bool yes, flag(operands[0], "condition"));
  operands.erase(operands.begin());
  return run_body_(yes ? 0 : 1, std::move(operands));
}

Result<std::vector<Value>> ControlFlow::run_loop(std::vector<Value> operands) {
  const auto carried = static_cast<size_t>(node_.integer("carried", 0));
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (node_.inputs[0] != graph::kNone) {
    SERIN_TRY(const ConstantPtr count, single_element(operands[0], DType::kInt64, "trip count"));
    trips = count->span<int64_t>()[0];
  }
  bool go_on = true;
  if (node_.inputs[1] != graph::kNone) {
    SERIN_TRY(go_on, flag(operands[1], "condition"));
  }
  const graph::Graph& body = *node_.bodies[0];
  const size_t results = node_.outputs.size();
  Scanned scanned(results - carried, max_bytes_);
  for (int64_t turn = 0; turn < trips && go_on; ++turn) {
    SERIN_CHECK(check_cancelled());
    std::vector<Value> inputs{scalar(turn), scalar(true)};
    for (size_t i = 2; i < operands.size(); ++i) inputs.push_back(i < 2 + carried ? std::move(operands[i]) : operands[i]);
    SERIN_TRY(std::vector<Value> made, run_body_(0, std::move(inputs)));
    SERIN_TRY(go_on, flag(made[0], "condition of the next iteration"));
    for (size_t i = 0; i < carried; ++i) operands[2 + i] = std::move(made[1 + i]);
    for (size_t i = carried; i < results; ++i) SERIN_CHECK(scanned.add(i - carried, made[1 + i]));
  }
  std::vector<Value> outputs(operands.begin() + 2, operands.begin() + 2 + static_cast<std::ptrdiff_t>(carried));
  for (size_t i = carried; i < results; ++i) {
    SERIN_TRY(Value whole, scanned.put_together(i - carried, 0, type_of_output(body, i + 1)));
    outputs.push_back(std::move(whole));
  }
  return outputs;
}

Result<std::vector<Value>> ControlFlow::scan(std::span<const Value> carried, std::span<const Value> scanned, std::span<const Value> read) {
  const auto input_axes = node_.integers("input_axes"), input_directions = node_.integers("input_directions");
  const auto output_axes = node_.integers("output_axes"), output_directions = node_.integers("output_directions");
  std::vector<size_t> axes;
  std::optional<int64_t> turns;
  for (size_t i = 0; i < scanned.size(); ++i) {
    if (!scanned[i].tensor) return invalid(fmt::format("scans {}, a tensor is needed", describe(scanned[i])));
    const Shape& shape = scanned[i].tensor->shape;
    const auto rank = static_cast<int64_t>(shape.rank());
    const int64_t axis = listed(input_axes, i);
    if (axis < -rank || axis >= rank) return invalid(fmt::format("axis {} is out of range for rank {}", axis, rank));
    axes.push_back(static_cast<size_t>(axis < 0 ? axis + rank : axis));
    if (turns && *turns != shape[axes.back()])
      return invalid(fmt::format("scans inputs of different lengths: {} and {}", *turns, shape[axes.back()]));
    turns = shape[axes.back()];
  }

  const size_t results = node_.outputs.size();
  std::vector<Value> state(carried.begin(), carried.end());
  Scanned out(results - carried.size(), max_bytes_);
  for (int64_t turn = 0; turn < turns.value_or(0); ++turn) {
    SERIN_CHECK(check_cancelled());
    std::vector<Value> inputs = state;
    for (size_t i = 0; i < scanned.size(); ++i)
      inputs.push_back(Value::of(slice(scanned[i].tensor, axes[i], listed(input_directions, i) != 0 ? *turns - 1 - turn : turn)));
    inputs.insert(inputs.end(), read.begin(), read.end());
    SERIN_TRY(std::vector<Value> made, run_body_(0, std::move(inputs)));
    std::move(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(state.size()), state.begin());
    for (size_t i = carried.size(); i < results; ++i) SERIN_CHECK(out.add(i - carried.size(), made[i]));
  }
  for (size_t i = carried.size(); i < results; ++i) {
    const size_t own = i - carried.size();
    if (listed(output_directions, own) != 0) out.reverse(own);
    SERIN_TRY(Value whole, out.put_together(own, listed(output_axes, own), type_of_output(*node_.bodies[0], i)));
    state.push_back(std::move(whole));
  }
  return state;
}

Result<std::vector<Value>> ControlFlow::run_scan(std::vector<Value> operands) {
  const auto carried = static_cast<size_t>(node_.integer("carried", 0)), scanned = static_cast<size_t>(node_.integer("scanned", 0));
  const std::span<const Value> all(operands);
  return scan(all.first(carried), all.subspan(carried, scanned), all.subspan(carried + scanned));
}

/// Opset 8: each row of the batch by itself, of its own length; what is scanned out of a shorter row is filled up with zeros.
Result<std::vector<Value>> ControlFlow::run_scan_batch(std::vector<Value> operands) {
  const auto carried = static_cast<size_t>(node_.integer("carried", 0)), scanned = static_cast<size_t>(node_.integer("scanned", 0));
  const std::span<const Value> all = std::span<const Value>(operands).subspan(1);
  for (const Value& value : all.first(carried + scanned)) {
    if (!value.tensor || value.tensor->shape.rank() < 1) return invalid(fmt::format("is given {}, which has no batch", describe(value)));
    if (value.tensor->shape[0] != all[0].tensor->shape[0]) return invalid("its operands have different batches");
  }
  if (scanned > 0 && all[carried].tensor->shape.rank() < 2) return invalid("its scan input has no axis except the batch");
  const int64_t rows = all[0].tensor->shape[0];
  const int64_t longest = scanned > 0 ? all[carried].tensor->shape[1] : 0;
  const ConstantPtr lengths = operands[0].tensor;
  if (lengths && (lengths->dtype != DType::kInt64 || lengths->elements() != rows)) return invalid("its lengths do not fit the batch");

  std::vector<std::vector<ConstantPtr>> results(node_.outputs.size());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t length = lengths ? lengths->span<int64_t>()[static_cast<size_t>(row)] : longest;
    if (length < 0 || length > longest) return invalid(fmt::format("length {} is not within 0 and {}", length, longest));
    std::vector<Value> own;
    for (size_t i = 0; i < carried + scanned; ++i) {
      const ConstantPtr mine = slice(all[i].tensor, 0, row);
      own.push_back(Value::of(i < carried ? mine : part(mine, 0, 0, length)));
    }
    const std::span<const Value> given(own);
    SERIN_TRY(const std::vector<Value> made, scan(given.first(carried), given.subspan(carried), all.subspan(carried + scanned)));
    for (size_t i = 0; i < made.size(); ++i) {
      if (!made[i].tensor) return invalid("a result is not a tensor");
      ConstantPtr whole = made[i].tensor;
      if (i >= carried && length < longest) {
        Shape missing = whole->shape;
        missing[0] = longest - length;
        const FreshTensor zeros = fresh_tensor(whole->dtype, missing);
        if (whole->dtype != DType::kString) std::fill_n(zeros.view.as<std::byte>(), zeros.view.bytes(), std::byte{0});
        const ConstantPtr both[] = {whole, zeros.tensor};
        SERIN_TRY(whole, concatenated(both, 0, max_bytes_));
      }
      results[i].push_back(std::move(whole));
    }
  }
  std::vector<Value> outputs;
  for (const auto& parts : results) {
    SERIN_TRY(ConstantPtr whole, stacked(parts, 0, max_bytes_));
    outputs.push_back(Value::of(std::move(whole)));
  }
  return outputs;
}

Result<std::vector<Value>> ControlFlow::run_sequence_map(std::vector<Value> operands) {
  const auto mapped = static_cast<size_t>(node_.integer("mapped", 0));
  std::optional<size_t> turns;
  for (size_t i = 0; i < mapped; ++i) {
    if (operands[i].kind != graph::ValueKind::kSequence) continue;
    if (turns && *turns != operands[i].elements.size()) return invalid("its sequences have different lengths");
    turns = operands[i].elements.size();
  }
  if (!turns) return invalid("none of its operands is a sequence");
  const graph::Graph& body = *node_.bodies[0];
  std::vector<Value> outputs;
  for (size_t i = 0; i < node_.outputs.size(); ++i) outputs.push_back(Value::sequence(type_of_output(body, i).dtype, {}));
  size_t bytes = 0;
  for (size_t turn = 0; turn < *turns; ++turn) {
    SERIN_CHECK(check_cancelled());
    std::vector<Value> inputs = operands;
    for (size_t i = 0; i < mapped; ++i) {
      if (operands[i].kind == graph::ValueKind::kSequence) inputs[i] = operands[i].elements[turn];
    }
    SERIN_TRY(std::vector<Value> made, run_body_(0, std::move(inputs)));
    for (size_t i = 0; i < outputs.size(); ++i) {
      bytes += bytes_of(made[i]);
      if (bytes > max_bytes_) return Error{Code::kTooLarge, fmt::format("it has made more than the limit of {} bytes", max_bytes_)};
      outputs[i].dtype = made[i].dtype;
      outputs[i].elements.push_back(std::move(made[i]));
    }
  }
  return outputs;
}

}  // namespace serin::engine

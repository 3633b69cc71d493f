// value.h: inputs and results of any model: tensors, sequences and optionals.
//
//   SERIN_TRY(const std::vector<Value> results, model->run(std::vector{Value::of(image), Value::sequence(DType::kFloat32, {})}));
//   results[0].tensor->span<float>()
//
// Values are immutable once made and share their tensors, so a copy copies no tensor data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

struct Value {
  graph::ValueKind kind = graph::ValueKind::kTensor;
  DType dtype = DType::kUndefined;  ///< dtype of the tensors in it; kUndefined if unknown (an empty optional)
  graph::ConstantPtr tensor;        ///< for kTensor; strings are in its `strings`
  std::vector<Value> elements;      ///< kSequence: its elements in order. kOptional: none, or the contained value

  static Value of(graph::ConstantPtr tensor) {
    const DType dtype = tensor->dtype;
    return {graph::ValueKind::kTensor, dtype, std::move(tensor), {}};
  }
  static Value sequence(DType dtype, std::vector<Value> elements) {
    return {graph::ValueKind::kSequence, dtype, nullptr, std::move(elements)};
  }
  static Value optional(DType dtype) { return {graph::ValueKind::kOptional, dtype, nullptr, {}}; }  ///< an empty one
  static Value optional(Value held) {
    const DType dtype = held.dtype;
    return {graph::ValueKind::kOptional, dtype, nullptr, {std::move(held)}};
  }

  bool is_tensor() const { return kind == graph::ValueKind::kTensor; }
};

/// The tensor, whose data must be in memory, as kernels see it: strings are std::string objects. Kernels write to outputs only.
TensorView view_of(const graph::Constant& tensor);

/// Text for messages: "f32[2,3]", "sequence of 4 f32", "empty optional".
std::string describe(const Value& value);

/// A tensor to be written through its view and then shared. It is initialised only if it contains strings.
struct FreshTensor {
  std::shared_ptr<graph::Constant> tensor;
  TensorView view;
};
FreshTensor fresh_tensor(DType dtype, const Shape& shape);

}  // namespace serin::engine

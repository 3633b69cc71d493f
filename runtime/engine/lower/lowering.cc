// lowering.cc: the tensors and steps that lowering one node adds to a Program.

#include "runtime/engine/lower/lowering.h"

#include <algorithm>
#include <utility>

#include "kernels/indexing.h"

namespace serin::engine {

std::string_view storage_name(Storage storage) {
  switch (storage) {
    case Storage::kFixed: return "fixed";
    case Storage::kBounded: return "bounded";
    case Storage::kDynamic: return "dynamic";
  }
  return "?";
}

std::string Step::label() const { return "node '" + node + "' (" + std::string(graph::op_name(op)) + ")"; }

std::pair<TensorId, size_t> Program::root(TensorId id) const {
  size_t offset = 0;
  while (tensor(id).base != kNoTensor) {
    offset += tensor(id).offset;
    id = tensor(id).base;
  }
  return {id, offset};
}

Error Lowering::refuse(std::string why) { return Error{Code::kUnsupported, std::move(why)}; }

std::optional<std::vector<int64_t>> Lowering::integers(std::string_view attribute, size_t i) const {
  if (const auto found = node_.attributes.find(attribute); found != node_.attributes.end()) {
    if (const auto* list = std::get_if<std::vector<int64_t>>(&found->second)) return *list;
    if (const auto* one = std::get_if<int64_t>(&found->second)) return std::vector<int64_t>{*one};
  }
  if (!has(i)) return std::nullopt;
  const graph::ConstantPtr& constant = tensor(input(i)).constant;
  if (!constant) return std::nullopt;
  if (constant->dtype == DType::kInt64) {
    const auto values = constant->span<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }
  if (constant->dtype == DType::kInt32) {
    const auto values = constant->span<int32_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }
  return std::nullopt;
}

int64_t Lowering::axis(std::string_view attribute, int64_t fallback, size_t rank) const {
  const int64_t axis = node_.integer(attribute, fallback);
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

TensorId Lowering::add(Tensor tensor) {
  tensor.name = node_.name + "~" + std::to_string(program_.tensors.size());
  program_.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(program_.tensors.size() - 1);
}

TensorId Lowering::temporary(DType dtype, const Shape& shape) { return add(Tensor{.dtype = dtype, .shape = shape}); }

TensorId Lowering::temporary_like(TensorId id) { return temporary_like(id, dtype(id)); }

TensorId Lowering::temporary_like(TensorId id, DType dtype) {
  const Tensor& like = tensor(id);
  return add(Tensor{.dtype = dtype, .shape = like.shape, .storage = like.storage, .bounded = like.bounded});
}

TensorId Lowering::constant(graph::ConstantPtr constant) {
  const DType dtype = constant->dtype;
  const Shape shape = constant->shape;
  return add(Tensor{.dtype = dtype, .shape = shape, .constant = std::move(constant)});
}

TensorId Lowering::number(DType dtype, double value) {
  if (graph::ConstantPtr scalar = graph::make_scalar(dtype, value)) return constant(std::move(scalar));
  // The 16-bit floats, which only kernels convert.
  const TensorId wide = constant(graph::make_scalar(DType::kFloat32, value)), narrow = temporary(dtype, {});
  program_.steps.push_back({.node = node_.name, .op = node_.op, .kernel = kernels::Cast{}, .inputs = {wide}, .outputs = {narrow}});
  return narrow;
}

TensorId Lowering::view(TensorId base, const Shape& shape) { return add(Tensor{.dtype = dtype(base), .shape = shape, .base = base}); }

Status Lowering::emit(kernels::Op kernel, std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
  Step step{.node = node_.name, .op = node_.op, .kernel = std::move(kernel), .inputs = std::move(inputs), .outputs = std::move(outputs)};
  program_.steps.push_back(std::move(step));
  return {};
}

Status Lowering::alias(TensorId output, TensorId base, int64_t offset) {
  Tensor& tensor = program_.tensor(output);
  tensor.base = base;
  tensor.offset = static_cast<size_t>(offset) * dtype_size(tensor.dtype);
  return {};
}

namespace {

/// Whether stepping through `shape` with `strides` visits neighbours one after the other.
bool is_dense(const Shape& shape, const std::vector<int64_t>& strides) {
  int64_t step = 1;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    if (shape[axis] == 1) continue;
    if (strides[axis] != step) return false;
    step *= shape[axis];
  }
  return true;
}

/// Whether the place of an element of `input` depends on a size that only the data knows: all but the outermost axis are in the strides.
bool strides_depend_on_data(const Tensor& input) {
  return std::any_of(input.bounded.begin(), input.bounded.end(), [&](const BoundedDim& dim) {
    for (size_t axis = 0; axis < dim.axis; ++axis) {
      if (input.shape[axis] != 1) return true;
    }
    return false;
  });
}

}  // namespace

Status Lowering::strided(TensorId output, TensorId input, const std::vector<int64_t>& strides, int64_t offset) {
  if (strides_depend_on_data(tensor(input))) {
    return refuse("rearranges '" + tensor(input).name + "', whose inner dimension has a size that depends on the data");
  }
  if (is_dense(shape(output), strides)) {
    const TensorId whole = tensor(output).base;  // where `output` shows a result in more axes than it has
    return alias(whole == kNoTensor ? output : whole, input, offset);
  }
  return emit(kernels::StridedCopy{offset, strides}, {input}, {output});
}

Status Lowering::broadcast(TensorId output, TensorId input) {
  const kernels::Strides strides = kernels::broadcast_strides(shape(input), shape(output));
  return strided(output, input, {strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(shape(output).rank())});
}

}  // namespace serin::engine

// fold.cc: folds constants. A node whose operands are constants is run by itself (solo.h).
//
// Shape, Size, ConstantOfShape and Range have no kernel at all: their results are known before anything runs, so they are computed here.

#include "runtime/engine/lower/fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/functors.h"
#include "runtime/engine/lower/solo.h"

namespace serin::engine {

namespace {

using graph::ConstantPtr;
using graph::Op;
using Constants = std::vector<ConstantPtr>;

Error unsupported(std::string why) { return Error{Code::kUnsupported, std::move(why)}; }

Result<Constants> fold_shape(const graph::Graph& graph, const graph::Node& node) {
  const auto& dims = graph.value(node.inputs[0]).type.shape;
  const auto shape = dims ? graph::known_shape(*dims) : std::nullopt;
  if (!shape) return unsupported("the shape of '" + graph.value(node.inputs[0]).name + "' is not known at load");
  if (node.op == Op::kSize) {
    const int64_t size = shape->elements();
    return Constants{graph::make_constant(DType::kInt64, Shape{}, &size)};
  }
  const auto rank = static_cast<int64_t>(shape->rank());
  const auto clamp = [rank](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  const int64_t begin = clamp(node.integer("start", 0)), end = std::max(begin, clamp(node.integer("end", rank)));
  return Constants{graph::make_constant(shape->dims().subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)))};
}

Result<Constants> fold_constant_of_shape(const graph::Graph& graph, const graph::Node& node, size_t max_bytes) {
  const ConstantPtr dims = graph.constant(node.inputs[0]);
  if (!dims || dims->dtype != DType::kInt64) return unsupported("the shape is not known at load");
  if (!Shape::fits(dims->span<int64_t>().size())) return unsupported("too many dimensions");
  const Shape shape(dims->span<int64_t>());
  const auto elements = shape.checked_elements();
  ConstantPtr value = node.constant("value");
  if (!value) value = graph::make_scalar(DType::kFloat32, 0);
  const size_t size = dtype_size(value->dtype);
  if (!elements || size == 0) return Error{Code::kInvalidArgument, "cannot make a tensor of shape " + shape.str()};
  if (static_cast<size_t>(*elements) > max_bytes / size) {
    return Error{Code::kTooLarge, "would make a constant of shape " + shape.str() + ", more than " + std::to_string(max_bytes) + " bytes"};
  }
  std::byte* memory = nullptr;
  auto result = graph::make_mutable_constant(value->dtype, shape, &memory);
  for (int64_t i = 0; i < *elements; ++i) std::memcpy(memory + static_cast<size_t>(i) * size, value->data().get(), size);
  return Constants{std::move(result)};
}

template <class T>
Result<Constants> fold_range(const graph::Constant& start, const graph::Constant& limit, const graph::Constant& delta, size_t max_bytes) {
  using C = kernels::compute_t<T>;
  const C from = kernels::load(start.span<T>()[0]), to = kernels::load(limit.span<T>()[0]), step = kernels::load(delta.span<T>()[0]);
  if (step == C(0)) return Error{Code::kInvalidArgument, "delta is 0"};
  const double count = std::max(0.0, std::ceil((static_cast<double>(to) - static_cast<double>(from)) / static_cast<double>(step)));
  if (!(count * sizeof(T) <= static_cast<double>(max_bytes))) {
    return Error{Code::kTooLarge, "would make more than " + std::to_string(max_bytes) + " bytes"};
  }
  std::byte* memory = nullptr;
  auto result = graph::make_mutable_constant(start.dtype, Shape{static_cast<int64_t>(count)}, &memory);
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    T value;
    if constexpr (std::is_integral_v<T>)  // modulo 2^64: i * step may overflow where the sum does not
      value = static_cast<T>(static_cast<uint64_t>(from) + static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
    else
      value = kernels::cast<T>(from + kernels::cast<C>(i) * step);
    std::memcpy(memory + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  return Constants{std::move(result)};
}

Result<Constants> fold_range(const graph::Graph& graph, const graph::Node& node, size_t max_bytes) {
  const ConstantPtr start = graph.constant(node.inputs[0]), limit = graph.constant(node.inputs[1]), delta = graph.constant(node.inputs[2]);
  if (!start || !limit || !delta) return unsupported("its operands are not known at load");
  if (start->dtype != limit->dtype || start->dtype != delta->dtype || start->elements() * limit->elements() * delta->elements() != 1) {
    return Error{Code::kInvalidArgument, "start, limit and delta must be single numbers of one type"};
  }
  switch (start->dtype) {
    case DType::kInt16: return fold_range<int16_t>(*start, *limit, *delta, max_bytes);
    case DType::kInt32: return fold_range<int32_t>(*start, *limit, *delta, max_bytes);
    case DType::kInt64: return fold_range<int64_t>(*start, *limit, *delta, max_bytes);
    case DType::kFloat16: return fold_range<kernels::Half>(*start, *limit, *delta, max_bytes);
    case DType::kBFloat16: return fold_range<kernels::BFloat16>(*start, *limit, *delta, max_bytes);
    case DType::kFloat32: return fold_range<float>(*start, *limit, *delta, max_bytes);
    case DType::kFloat64: return fold_range<double>(*start, *limit, *delta, max_bytes);
    default: return unsupported("no Range of " + std::string(dtype_name(start->dtype)));
  }
}

/// Whether a large operand is in memory to stay.
bool reads_memory(const graph::Graph& graph, const graph::Node& node) {
  return std::ranges::any_of(node.inputs, [&](graph::ValueId id) {
    const ConstantPtr constant = graph.constant(id);
    return constant && !constant->recipe && constant->bytes() >= graph::kWorthARecipe;
  });
}

/// A transposed weight need not be in memory either, once kernels have packed it.
ConstantPtr to_compute_again(const graph::Constant& result, std::shared_ptr<const Solo> solo, size_t output, size_t operands) {
  graph::Recipe recipe = [solo = std::move(solo), output, operands](std::span<std::byte> to) -> Status {
    SERIN_TRY(const Constants again, solo->run(Constants(operands)));
    std::memcpy(to.data(), again[output]->data().get(), to.size());
    return {};
  };
  return graph::make_constant(result.dtype, result.shape,
                              std::make_shared<const graph::RecipeBytes>(result.bytes(), std::move(recipe), result.data()));
}

Result<Constants> compute(const graph::Graph& graph, const graph::Node& node, const kernels::Backend& backend, size_t max_bytes) {
  if (node.op == Op::kShape || node.op == Op::kSize) return fold_shape(graph, node);
  if (node.op == Op::kConstantOfShape) return fold_constant_of_shape(graph, node, max_bytes);
  if (node.op == Op::kRange) return fold_range(graph, node, max_bytes);
  for (const graph::ValueId id : node.inputs) {
    if (id != graph::kNone && !graph.constant(id)) return unsupported("'" + graph.value(id).name + "' is not known at load");
  }
  kernels::PackedWeights weights;
  SERIN_TRY(Solo made, Solo::make(graph, node, {backend, weights, 1, max_bytes, /*as_weights=*/true}));
  const auto solo = std::make_shared<const Solo>(std::move(made));
  SERIN_TRY(Constants results, solo->run(Constants(node.inputs.size())));
  if (reads_memory(graph, node)) return results;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] && !results[i]->recipe && results[i]->bytes() >= graph::kWorthARecipe)
      results[i] = to_compute_again(*results[i], solo, i, node.inputs.size());
  }
  return results;
}

/// A view of a weight is one that can be read again, too.
ConstantPtr with_own_identity(const graph::Constant& result) {
  return result.recipe ? graph::make_constant(result.dtype, result.shape, result.recipe)
                       : graph::make_constant(result.dtype, result.shape, result.resident);
}

}  // namespace

Folder::Folder() : reference_(kernels::make_cpu_backend({.isa = kernels::Isa::kScalar, .onednn_path = "none", .reference_only = true})) {}
Folder::~Folder() = default;

Result<Constants> Folder::evaluate(const graph::Graph& graph, graph::NodeId id, size_t max_bytes) const {
  SERIN_TRY(Constants results, compute(graph, graph.node(id), *reference_, max_bytes));
  for (ConstantPtr& result : results) {
    if (result && result->bytes() != 0) result = with_own_identity(*result);
  }
  return results;
}

}  // namespace serin::engine

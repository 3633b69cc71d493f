// quantised.cc: recognises the parts of a quantised unit.

#include "runtime/graph/passes/quantised.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace serin::graph {
namespace {

bool is_scale(const Graph& graph, ValueId scale) {
  const ConstantPtr constant = graph.constant(scale);
  return constant && constant->dtype == DType::kFloat32 && constant->elements() >= 1;
}

bool is_one_number(const Graph& graph, ValueId value) { return graph.constant(value) && graph.constant(value)->elements() == 1; }

bool plain(const Node& node) { return node.integer("block_size", 0) == 0 && !node.attributes.contains("precision"); }

/// A Clip from 0 to something that the range of the bytes does not reach.
bool clips_as_relu(const Graph& graph, const Node& clip, const QuantisedValue& to) {
  if (clip.inputs.size() > 1 || clip.number("min", 1) != 0) return false;
  const double highest = graph.value(to.q).type.dtype == DType::kInt8 ? 127 : 255;
  const double most = (highest - zero_of(graph, to)) * static_cast<double>(scale_of(graph, to));
  return clip.number("max", std::numeric_limits<double>::infinity()) >= most * (1 - 1e-3);
}

enum class Bytes : uint8_t { kOther, kMover, kTable };
constexpr Bytes kBytes[] = {
#define SERIN_OP(name, least, most, results, infer, values, batch, padding, range, halves, bytes) Bytes::k##bytes,
#include "runtime/graph/ops/all.def"
};

}  // namespace

bool is_row(const Graph& graph, ValueId value, int64_t columns) {
  const ConstantPtr constant = graph.constant(value);
  return constant && constant->dtype == DType::kFloat32 && constant->elements() == columns && constant->shape.rank() > 0 &&
         constant->shape.back() == columns;
}

bool moves_bytes(Op op) { return kBytes[static_cast<size_t>(op)] == Bytes::kMover; }
bool has_table_of_bytes(Op op) { return kBytes[static_cast<size_t>(op)] == Bytes::kTable; }

bool has_one_scale(const Graph& graph, const QuantisedValue& value) {
  return is_scale(graph, value.scale) && is_one_number(graph, value.scale) && (value.zero == kNone || is_one_number(graph, value.zero));
}

bool is_symmetric(const Constant& q, const ConstantPtr& zero) {
  if (!zero) return q.dtype == DType::kInt8;
  const auto bytes = zero->span<uint8_t>();
  const uint8_t middle = q.dtype == DType::kInt8 ? 0 : 128;
  return std::ranges::all_of(bytes, [middle](uint8_t byte) { return byte == middle; });
}

ConstantPtr around_zero(const ConstantPtr& q, const ConstantPtr& zero, size_t axis) {
  if (!zero || zero->dtype != q->dtype || zero->elements() == 0) return nullptr;
  if (zero->elements() != 1 && (axis >= q->shape.rank() || zero->elements() != q->shape[axis])) return nullptr;
  size_t inner = 1;
  for (size_t i = axis + 1; i < q->shape.rank(); ++i) inner *= static_cast<size_t>(q->shape[i]);
  const auto differences = [=](const auto& each) {
    const auto bytes = q->span<uint8_t>(), zeros = zero->span<uint8_t>();
    const auto number = [is_signed = q->dtype == DType::kInt8](uint8_t byte) {
      return is_signed ? int{static_cast<int8_t>(byte)} : int{byte};
    };
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (!each(i, number(bytes[i]) - number(zeros[zeros.size() == 1 ? 0 : i / inner % zeros.size()]))) return false;
    }
    return true;
  };
  if (!differences([](size_t, int difference) { return difference >= -128 && difference <= 127; })) return nullptr;
  return make_constant(DType::kInt8, q->shape, [=](std::span<std::byte> to) -> Status {
    differences([to](size_t i, int difference) {
      to[i] = static_cast<std::byte>(difference);
      return true;
    });
    return {};
  });
}

std::optional<QuantisedValue> dequantised(const Graph& graph, ValueId value) {
  const NodeId id = graph.producer(value);
  if (!graph.is(id, Op::kDequantizeLinear) || !plain(graph.node(id))) return std::nullopt;
  const QuantisedValue found{id, graph.input(id, 0), graph.input(id, 1), graph.input(id, 2)};
  if (!has_one_scale(graph, found) || !is_byte(graph.value(found.q).type.dtype) || graph.value(value).type.dtype != DType::kFloat32)
    return std::nullopt;
  return found;
}

std::optional<QuantisedValue> dequantised_weight(const Graph& graph, ValueId value, int64_t axis, bool wide) {
  const NodeId id = graph.producer(value);
  if (!graph.is(id, Op::kDequantizeLinear) || !plain(graph.node(id))) return std::nullopt;
  const QuantisedValue found{id, graph.input(id, 0), graph.input(id, 1), graph.input(id, 2)};
  const ConstantPtr q = graph.constant(found.q);
  if (!q || !is_scale(graph, found.scale) || (found.zero != kNone && !graph.constant(found.zero))) return std::nullopt;
  if (wide ? q->dtype != DType::kInt32 : !is_byte(q->dtype)) return std::nullopt;
  if (graph.constant(found.scale)->elements() == 1) return found;
  int64_t given = graph.node(id).integer("axis", 1);
  if (given < 0) given += static_cast<int64_t>(q->shape.rank());
  return given == axis ? std::optional(found) : std::nullopt;
}

std::optional<QuantisedValue> quantised_by(const Graph& graph, ValueId value) {
  const NodeId id = only_reader(graph, value);
  if (!graph.is(id, Op::kQuantizeLinear) || graph.input(id, 0) != value || !plain(graph.node(id))) return std::nullopt;
  const QuantisedValue found{id, graph.output(id), graph.input(id, 1), graph.input(id, 2)};
  return has_one_scale(graph, found) && is_byte(graph.value(found.q).type.dtype) ? std::optional(found) : std::nullopt;
}

std::optional<QuantisedResult> quantised_result(const Graph& graph, ValueId value) {
  if (const auto to = quantised_by(graph, value)) return QuantisedResult{*to, {to->node}, ""};
  const NodeId activation = only_reader(graph, value);
  if (!graph.is(activation, Op::kRelu) && !graph.is(activation, Op::kClip)) return std::nullopt;
  const auto to = quantised_by(graph, graph.output(activation));
  if (!to || (graph.is(activation, Op::kClip) && !clips_as_relu(graph, graph.node(activation), *to))) return std::nullopt;
  return QuantisedResult{*to, {activation, to->node}, "Relu"};
}

float scale_of(const Graph& graph, const QuantisedValue& value) { return graph.constant(value.scale)->span<float>()[0]; }

int32_t zero_of(const Graph& graph, const QuantisedValue& value) {
  if (value.zero == kNone) return 0;
  const auto zero = number_of(*graph.constant(value.zero));
  return zero ? static_cast<int32_t>(*zero) : 0;
}

bool same_parameters(const Graph& graph, const QuantisedValue& a, const QuantisedValue& b) {
  return graph.value(a.q).type.dtype == graph.value(b.q).type.dtype && scale_of(graph, a) == scale_of(graph, b) &&
         zero_of(graph, a) == zero_of(graph, b);
}

ValueId zero_point(Graph& graph, const QuantisedValue& value) {
  if (value.zero != kNone) return value.zero;
  const Value& q = graph.value(value.q);
  return graph.add_constant(q.name + ".zero", make_scalar(q.type.dtype, 0));
}

std::optional<QuantisedBias> quantised_bias(const Graph& graph, ValueId bias, float x_scale, const Constant& w_scale, int64_t channels) {
  if (bias == kNone) return QuantisedBias{};
  std::vector<double> real;
  if (const ConstantPtr constant = graph.constant(bias)) {
    if (constant->dtype != DType::kFloat32) return std::nullopt;
    for (const float each : constant->span<float>()) real.push_back(each);
  } else if (const auto quantised = dequantised_weight(graph, bias, 0, /*wide=*/true)) {
    const auto scales = graph.constant(quantised->scale)->span<float>();
    const auto q = graph.constant(quantised->q)->span<int32_t>();
    const ConstantPtr zero = graph.constant(quantised->zero);
    const auto zeros = zero ? integers_of(*zero) : std::vector<int64_t>();
    if (!zeros || std::ranges::any_of(*zeros, [](int64_t each) { return each != 0; })) return std::nullopt;
    if (scales.size() != 1 && scales.size() != q.size()) return std::nullopt;
    for (size_t i = 0; i < q.size(); ++i)
      real.push_back(static_cast<double>(q[i]) * static_cast<double>(scales[scales.size() == 1 ? 0 : i]));
  } else {
    return std::nullopt;
  }
  if (static_cast<int64_t>(real.size()) != channels) return std::nullopt;

  std::byte* memory = nullptr;
  const auto result = make_mutable_constant(DType::kInt32, Shape{channels}, &memory);
  const auto scales = w_scale.span<float>();
  for (size_t i = 0; i < real.size(); ++i) {
    const double unit = static_cast<double>(x_scale) * static_cast<double>(scales[scales.size() == 1 ? 0 : i]);
    const double whole = unit == 0 ? 0 : std::nearbyint(real[i] / unit);
    if (!(std::abs(whole) < 0x1p30)) return std::nullopt;
    reinterpret_cast<int32_t*>(memory)[i] = static_cast<int32_t>(whole);
  }
  return QuantisedBias{true, result};
}

}  // namespace serin::graph

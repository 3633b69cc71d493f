// quantised.h: queries for patterns of quantised graphs, which mark bytes by pairs of nodes.
//
//   ... -> QuantizeLinear -> DequantizeLinear -> operator -> QuantizeLinear -> ...
//
// An operator between a DequantizeLinear for each operand and a QuantizeLinear is a unit: one operator on bytes with the same scales can
// replace it.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/passes/match.h"

namespace serin::graph {

inline bool is_byte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUInt8; }

/// Whether it is a bias of a product: one known f32 for each column.
bool is_row(const Graph& graph, ValueId value, int64_t columns);

/// Operators with one result that only move or select elements of operand 0: they do the same to bytes.
bool moves_bytes(Op op);
/// Functions of single elements, which become tables if the elements are bytes.
bool has_table_of_bytes(Op op);

/// The number (q - zero) * scale that `value` represents, if a DequantizeLinear computes it.
struct QuantisedValue {
  NodeId node = kNone;
  ValueId q = kNone, scale = kNone, zero = kNone;  ///< scale and zero point are constants; the zero point may be absent
};

/// Whether both are known, and each is one number for the whole tensor.
bool has_one_scale(const Graph& graph, const QuantisedValue& value);

/// Whether the zero points of the bytes are the middle of their range: i8 around 0, u8 around 128. No zero point: 0.
bool is_symmetric(const Constant& q, const ConstantPtr& zero);

/// A weight less its zero points (one, or one for each index of `axis`) as signed bytes around 0; null if an element does not fit. Weights
/// quantised to seven bits always fit, and then one product of bytes suffices.
ConstantPtr around_zero(const ConstantPtr& q, const ConstantPtr& zero, size_t axis);

/// A value with one scale for the whole tensor. Its bytes may be computed.
std::optional<QuantisedValue> dequantised(const Graph& graph, ValueId value);
/// A constant of bytes (i32 if `wide`), with one scale or one for each index of `axis`.
std::optional<QuantisedValue> dequantised_weight(const Graph& graph, ValueId value, int64_t axis, bool wide = false);

/// The QuantizeLinear to bytes, with one constant scale, that is the only reader of `value`.
std::optional<QuantisedValue> quantised_by(const Graph& graph, ValueId value);

/// The nodes between a result and its QuantizeLinear.
struct QuantisedResult {
  QuantisedValue to;
  std::vector<NodeId> nodes;  ///< the activation, if any, and the QuantizeLinear
  std::string activation;     ///< "" or "Relu"
  ValueId made() const { return to.q; }
};
/// [Relu, or a Clip that cuts off no more than a Relu and the range of the bytes do] -> QuantizeLinear.
std::optional<QuantisedResult> quantised_result(const Graph& graph, ValueId value);

bool same_parameters(const Graph& graph, const QuantisedValue& a, const QuantisedValue& b);
float scale_of(const Graph& graph, const QuantisedValue& value);
int32_t zero_of(const Graph& graph, const QuantisedValue& value);
/// Returns the zero point, and adds it if it is absent.
ValueId zero_point(Graph& graph, const QuantisedValue& value);

/// A bias as i32 in units of x_scale * w_scale[channel]; nothing if it is computed or does not fit. `present` false: there is no bias.
struct QuantisedBias {
  bool present = false;
  ConstantPtr constant;
};
std::optional<QuantisedBias> quantised_bias(const Graph& graph, ValueId bias, float x_scale, const Constant& w_scale, int64_t channels);

}  // namespace serin::graph

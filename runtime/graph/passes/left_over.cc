// left_over.cc: lists the conversions that are left between floats and bytes. The reasons are those for which the passes quantise_*.cc
// refuse.

#include "runtime/graph/passes/left_over.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/graph/passes/quantised.h"

namespace serin::graph {
namespace {

std::string label(const Graph& graph, NodeId id) { return fmt::format("'{}' ({})", graph.node(id).name, op_name(graph.node(id).op)); }

/// What of the node itself no unit takes.
std::string own_reason(const Graph& graph, NodeId id) {
  const ConstantPtr scale = graph.constant(graph.input(id, 1));
  const DType q = graph.is(id, Op::kQuantizeLinear) ? graph.value(graph.output(id)).type.dtype : graph.value(graph.input(id, 0)).type.dtype;
  if (!is_byte(q)) return fmt::format("products of bytes do not support the type {}", dtype_name(q));
  if (!scale) return "its scale is computed";
  if (graph.input(id, 2) != kNone && !graph.constant(graph.input(id, 2))) return "its zero point is computed";
  if (graph.node(id).integer("block_size", 0) != 0) return "it has a scale for each block";
  if (scale->dtype != DType::kFloat32) return fmt::format("its scale is {}", dtype_name(scale->dtype));
  return {};
}

/// Why `op`, which reads or makes the floats, is not done on bytes.
std::string reason_of_neighbour(const Graph& graph, NodeId id) {
  switch (graph.node(id).op) {
    case Op::kConv:
    case Op::kFusedConv:
    case Op::kMatMul:
    case Op::kFusedMatMul:
    case Op::kGemm:
    case Op::kAdd:
    case Op::kMul:
    case Op::kConcat:
      return label(graph, id) + " is not a unit: an operand or the result is not bytes, is read elsewhere as floats, or has other scales";
    default: return label(graph, id) + " has no form on bytes, or its scales differ";
  }
}

std::string why_quantise(const Graph& graph, NodeId id) {
  if (std::string own = own_reason(graph, id); !own.empty()) return own;
  const ValueId x = graph.input(id, 0);
  const NodeId producer = graph.producer(x);
  if (producer == kNone) return graph.constant(x) ? "a constant is quantised" : "an input of the model is quantised";
  if (graph.reader_count(x) > 1) return fmt::format("the floats of {} are read elsewhere, too", label(graph, producer));
  return reason_of_neighbour(graph, producer);
}

std::string why_dequantise(const Graph& graph, NodeId id) {
  if (std::string own = own_reason(graph, id); !own.empty()) return own;
  if (graph.is_output(graph.output(id))) return "an output of the model is f32";
  const auto readers = graph.readers(graph.output(id));
  if (readers.empty()) return "nothing reads it";
  return reason_of_neighbour(graph, readers.front());
}

}  // namespace

std::vector<LeftOver> left_over_quantisation(const Graph& graph) {
  std::vector<LeftOver> result;
  for (const NodeId id : graph.nodes()) {
    const Op op = graph.node(id).op;
    if (op == Op::kQuantizeLinear) result.push_back({graph.node(id).name, op, why_quantise(graph, id)});
    if (op == Op::kDequantizeLinear) result.push_back({graph.node(id).name, op, why_dequantise(graph, id)});
  }
  return result;
}

}  // namespace serin::graph

// choose.cc: chooses the nodes that compute on bytes.
//
// Every convolution of images with a known weight does, whatever surrounds it: it has four times the arithmetic of f32. From what
// convolutions read and make, bytes spread forward through operators that have a form on them; where they would only be turned back into
// floats at the end, they are turned back at once. The remaining products find ranges of their own.

#include <algorithm>
#include <set>
#include <span>

#include <fmt/format.h>

#include "runtime/graph/int8/int8.h"
#include "runtime/graph/int8/units.h"
#include "runtime/graph/passes/match.h"

namespace serin::graph {
namespace {

using int8::byte_operands;
using int8::byte_results;
using int8::UnitKind;

constexpr Op kByteProducts[] = {Op::kConvInteger, Op::kDynamicQuantizeMatMul, Op::kMatMulInteger,  Op::kMatMulNBits,
                                Op::kQLinearConv, Op::kQLinearMatMul,         Op::kQuantizedMatMul};

bool is_one_of(std::span<const Op> ops, Op op) { return std::ranges::find(ops, op) != ops.end(); }

bool is_f32_constant(const ConstantPtr& constant) { return constant && constant->dtype == DType::kFloat32 && constant->elements() > 0; }

/// Why no kernel on bytes does this convolution; empty where one does.
std::string why_no_conv(const Graph& graph, NodeId id) {
  const ConstantPtr weight = graph.constant(graph.input(id, 1));
  if (!is_f32_constant(weight)) return "its weight is not f32 known at load";
  const Dims* x = dims_of_value(graph, graph.input(id, 0));
  if (weight->shape.rank() != 4 || !x || x->size() != 4) return "it does not slide over the two axes of images";
  const ValueId bias = graph.input(id, 2);
  if (bias != kNone && !is_f32_constant(graph.constant(bias))) return "its bias is not f32 known at load";
  constexpr int64_t kWord = 4;  // channels that one multiplication takes
  const int64_t group = graph.node(id).integer("group", 1), channels = weight->shape[1];
  const bool depthwise = channels == 1 && group == weight->shape[0], whole = channels % kWord == 0;
  if (!depthwise && !whole && group > 1) return fmt::format("it has groups of {} channels", channels);
  const auto dilations = graph.node(id).integers("dilations");
  if (!depthwise && !whole && std::ranges::any_of(dilations, [](int64_t each) { return each != 1; }))
    return fmt::format("it is dilated and has {} channels", channels);
  return {};
}

std::string why_no_product(const Graph& graph, NodeId id) {
  const ConstantPtr weight = graph.constant(graph.input(id, 1));
  if (!is_f32_constant(weight) || weight->shape.rank() != 2) return "its weight is not one f32 matrix";
  const Node& node = graph.node(id);
  const Dims* x = dims_of_value(graph, graph.input(id, 0));
  if (!x || x->empty() || graph.value(graph.input(id, 0)).type.dtype != DType::kFloat32) return "it is not known to multiply rows of f32";
  const ValueId bias = graph.input(id, 2);
  if (node.integer("transA", 0) != 0 || node.number("alpha", 1) != 1 || (bias != kNone && node.number("beta", 1) != 1))
    return "it transposes or scales what it multiplies";
  const int64_t columns = weight->shape[node.integer("transB", 0) != 0 ? 0 : 1];
  const ConstantPtr row = graph.constant(bias);
  if (bias != kNone && (!is_f32_constant(row) || row->elements() != columns)) return "its bias is not one row known at load";
  return {};
}

class Chooser {
 public:
  Chooser(const Graph& graph, const std::map<ValueId, std::string>& unfit, bool ranges) : graph_(graph), unfit_(unfit), ranges_(ranges) {}

  Result<Int8Choice> run() {
    SERIN_TRY(const std::vector<NodeId> order, graph_.topological_order());
    for (const NodeId id : order) {
      if (graph_.is(id, Op::kConv)) choose_conv(id);
    }
    for (const NodeId id : order) spread(id);
    for (auto id = order.rbegin(); id != order.rend(); ++id) turn_back(*id);
    std::set<ValueId> listed;
    for (const NodeId id : order) {
      if (!units_.contains(id)) continue;
      choice_.units.push_back(id);
      for (const ValueId value : values_of(id)) {
        if (listed.insert(value).second) choice_.values.push_back(value);
      }
    }
    for (const NodeId id : order) {
      if ((graph_.is(id, Op::kMatMul) || graph_.is(id, Op::kGemm)) && !units_.contains(id)) choose_dynamic(id);
    }
    return std::move(choice_);
  }

 private:
  void keep(NodeId id, std::string why) { choice_.kept.push_back({graph_.node(id).name, graph_.node(id).op, std::move(why)}); }

  std::vector<ValueId> values_of(NodeId id) const {
    std::vector<ValueId> values;
    for (const size_t i : byte_operands(graph_, id)) values.push_back(graph_.input(id, i));
    for (const ValueId made : byte_results(graph_, id)) values.push_back(made);
    return values;
  }

  /// Why one of these values cannot be bytes; empty where all can.
  std::string why_unfit(const std::vector<ValueId>& values) const {
    for (const ValueId value : values) {
      if (value == kNone) return "a result is missing";
      if (graph_.value(value).type.dtype != DType::kFloat32) return fmt::format("'{}' is not f32", graph_.value(value).name);
      if (const auto found = unfit_.find(value); found != unfit_.end()) return found->second;
    }
    return {};
  }

  void add(NodeId id) {
    units_.insert(id);
    for (const ValueId value : values_of(id)) bytes_.insert(value);
  }

  void choose_conv(NodeId id) {
    std::string why = why_no_conv(graph_, id);
    if (why.empty()) why = why_unfit(values_of(id));
    if (why.empty() && !ranges_) {
      ++choice_.without_ranges;
      why = "the range of what it reads is seen on samples, and there are none";
    }
    if (!why.empty()) return keep(id, std::move(why));
    add(id);
  }

  void spread(NodeId id) {
    const auto kind = int8::kind_of(graph_, id);
    if (!kind || kind == UnitKind::kConv || !why_unfit(values_of(id)).empty()) return;
    for (const size_t i : byte_operands(graph_, id)) {
      if (!bytes_.contains(graph_.input(id, i)) || graph_.constant(graph_.input(id, i))) return;
    }
    if (kind == UnitKind::kProduct && !why_no_product(graph_, id).empty()) return;
    if (kind == UnitKind::kBinary && !pairs_bytes(id)) return;
    const Dims* x = dims_of_value(graph_, graph_.input(id, 0));
    if (kind == UnitKind::kPool && (!x || x->size() != 4)) return;
    add(id);
  }

  bool pairs_bytes(NodeId id) const {
    const ValueId a = graph_.input(id, 0), b = graph_.input(id, 1);
    const Dims *x = dims_of_value(graph_, a), *y = dims_of_value(graph_, b);
    return x && y && (*x == *y || is_factor_of_channels(*x, *y) || is_factor_of_channels(*y, *x));
  }

  /// A unit that nobody reads as bytes makes floats instead.
  void turn_back(NodeId id) {
    if (!units_.contains(id) || graph_.is(id, Op::kConv) || int8::kind_of(graph_, id) == UnitKind::kProduct) return;
    const std::vector<ValueId> made = byte_results(graph_, id);
    if (!std::ranges::any_of(made, [this](ValueId value) { return read_as_bytes(value); })) units_.erase(id);
  }

  bool read_as_bytes(ValueId value) const {
    return std::ranges::any_of(graph_.readers(value), [&](NodeId reader) {
      if (!units_.contains(reader)) return false;
      const auto operands = byte_operands(graph_, reader);
      return std::ranges::any_of(operands, [&](size_t i) { return graph_.input(reader, i) == value; });
    });
  }

  /// Of a product of two computed operands, as attention has them, nothing is packed ahead, and f32 kernels fuse what stands around it.
  void choose_dynamic(NodeId id) {
    if (!graph_.constant(graph_.input(id, 1))) return;
    std::string why = why_no_product(graph_, id);
    if (why.empty()) why = why_unfit({graph_.input(id, 0)});
    if (!why.empty()) return keep(id, std::move(why));
    choice_.dynamic.push_back(id);
  }

  const Graph& graph_;
  const std::map<ValueId, std::string>& unfit_;
  const bool ranges_;
  std::set<NodeId> units_;
  std::set<ValueId> bytes_;
  Int8Choice choice_;
};

}  // namespace

Result<Int8Choice> choose_int8(const Graph& graph, const std::map<ValueId, std::string>& unfit, bool ranges) {
  return Chooser(graph, unfit, ranges).run();
}

bool multiplies_bytes(const Graph& graph) {
  const auto ids = graph.nodes();
  return std::ranges::any_of(ids, [&](NodeId id) {
    const Node& node = graph.node(id);
    return is_one_of(kByteProducts, node.op) ||
           std::ranges::any_of(node.bodies, [](const auto& body) { return body && multiplies_bytes(*body); });
  });
}

bool is_quantised(const Graph& graph) {
  constexpr Op kConversions[] = {Op::kDequantizeLinear, Op::kDynamicQuantizeLinear, Op::kQuantizeLinear};
  return multiplies_bytes(graph) ||
         std::ranges::any_of(graph.nodes(), [&](NodeId id) { return is_one_of(kConversions, graph.node(id).op); });
}

}  // namespace serin::graph

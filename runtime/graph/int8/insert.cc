// insert.cc: inserts quantisation around the chosen nodes.
//
//   y = Relu(Conv(x, w, b))        ->   x' = DequantizeLinear(QuantizeLinear(x));  w' = DequantizeLinear(w as i8)
//                                       y' = DequantizeLinear(QuantizeLinear(Relu(Conv(x', w', b))))
//   y = Add(MatMul(x, w), b)       ->   y = DynamicQuantizeMatMul(x, w as i8, scales, _, b, by_row)
//
// All readers of a value that a unit makes read its bytes, because there is no other form; of other values only units read the bytes.

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/graph/int8/int8.h"
#include "runtime/graph/int8/units.h"
#include "runtime/graph/int8/weights.h"
#include "runtime/graph/passes/patch.h"
#include "runtime/graph/passes/quantised.h"

namespace serin::graph {
namespace {

using int8::ByteWeight;
using int8::UnitKind;

class Inserter {
 public:
  Inserter(Graph& graph, const Int8Choice& choice, const Ranges& ranges) : graph_(graph), choice_(choice), ranges_(ranges) {}

  void run() {
    for (const NodeId id : choice_.units) {
      const auto made = int8::byte_results(graph_, id);
      made_.insert(made.begin(), made.end());
      if (int8::kind_of(graph_, id) != UnitKind::kMover) continue;
      for (const ValueId value : made) scale_of_[value] = graph_.input(id, 0);
    }
    for (const ValueId value : choice_.values) bytes_scale(value);
    for (const NodeId id : choice_.units) quantise_weight(id);
    for (const ValueId value : choice_.values) quantise(value);
    for (const NodeId id : choice_.dynamic) make_dynamic(id);
  }

 private:
  /// What a mover makes has the scale of what it moves.
  ByteScale bytes_scale(ValueId value) const {
    for (auto moved = scale_of_.find(value); moved != scale_of_.end(); moved = scale_of_.find(value)) value = moved->second;
    return byte_scale(ranges_.at(value)).value_or(ByteScale{});
  }

  void quantise(ValueId value) {
    const ByteScale bytes = bytes_scale(value);
    const std::string name = graph_.value(value).name;
    const ValueId scale = graph_.add_constant(name + ".scale", make_scalar(DType::kFloat32, bytes.scale));
    const ValueId zero = graph_.add_constant(name + ".zero", make_scalar(DType::kUInt8, bytes.zero));
    const NodeId to = graph_.add_node(Op::kQuantizeLinear, name + ".quantize", {value, scale, zero});
    const NodeId from = graph_.add_node(Op::kDequantizeLinear, name + ".dequantize", {graph_.output(to), scale, zero});
    if (made_.contains(value)) {
      graph_.replace_uses(value, graph_.output(from));
      graph_.set_input(to, 0, value);
      return;
    }
    for (const NodeId id : choice_.units) {
      for (const size_t i : int8::byte_operands(graph_, id)) {
        if (graph_.input(id, i) == value) graph_.set_input(id, i, graph_.output(from));
      }
    }
  }

  void quantise_weight(NodeId id) {
    const auto kind = int8::kind_of(graph_, id);
    if (kind != UnitKind::kConv && kind != UnitKind::kProduct) return;
    const ValueId weight = graph_.input(id, 1);
    const bool by_rows = kind == UnitKind::kConv || graph_.node(id).integer("transB", 0) != 0;
    const std::vector<double> least = least_scales(id);
    const ByteWeight bytes =
        by_rows ? int8::by_rows(graph_.constant(weight), least) : int8::by_columns(graph_.constant(weight), /*transposed=*/false, least);
    const std::string name = graph_.value(weight).name;
    const ValueId q = graph_.add_constant(name + ".bytes", bytes.bytes), scale = graph_.add_constant(name + ".scales", bytes.scales);
    const NodeId from = graph_.add_node(Op::kDequantizeLinear, name + ".dequantize", {q, scale}, {{"axis", int64_t{by_rows ? 0 : 1}}});
    graph_.set_input(id, 1, graph_.output(from));
  }

  /// So that the bias is less than 2^29 units.
  std::vector<double> least_scales(NodeId id) const {
    const ConstantPtr bias = graph_.constant(graph_.input(id, 2));
    std::vector<double> least;
    if (!bias) return least;
    const double x_scale = bytes_scale(graph_.input(id, 0)).scale;
    for (const float each : bias->span<float>()) least.push_back(std::abs(double{each}) / x_scale * 0x1p-29);
    return least;
  }

  void make_dynamic(NodeId id) {
    const ValueId weight = graph_.input(id, 1);
    const bool transposed = graph_.node(id).integer("transB", 0) != 0;
    const ByteWeight bytes = int8::by_columns(graph_.constant(weight), transposed);
    std::vector<NodeId> replaced{id};
    ValueId bias = graph_.input(id, 2), before = graph_.output(id);
    const NodeId add = only_reader(graph_, before);
    if (bias == kNone && graph_.is(add, Op::kAdd) && is_row(graph_, other_operand(graph_, add, before), bytes.scales->elements()) &&
        same_type(graph_, before, graph_.output(add))) {
      bias = other_operand(graph_, add, before);
      before = graph_.output(add);
      replaced.push_back(add);
    }
    const ValueId x = graph_.input(id, 0);
    Patch patch(graph_, replaced);
    const ValueId q = patch.constant(weight, bytes.bytes), scale = patch.constant(kNone, bytes.scales, "scales");
    patch.replace(before, patch.add(Op::kDynamicQuantizeMatMul, {x, q, scale, kNone, bias}, {{"by_row", int64_t{1}}}));
  }

  Graph& graph_;
  const Int8Choice& choice_;
  const Ranges& ranges_;
  std::set<ValueId> made_;               // by units
  std::map<ValueId, ValueId> scale_of_;  // a value -> the one whose scale it has
};

}  // namespace

std::optional<ByteScale> byte_scale(const Range& range) {
  constexpr double kSteps = 255, kLeast = 1e-20, kMost = 1e20;  // products of two scales are f32, too
  const double low = std::min(double{range.low}, 0.0), high = std::max(double{range.high}, 0.0);
  if (low == high) return ByteScale{};  // nothing but 0
  const double scale = (high - low) / kSteps;
  if (!(scale >= kLeast && scale <= kMost)) return std::nullopt;
  return ByteScale{static_cast<float>(scale), static_cast<int32_t>(std::clamp(std::nearbyint(-low / scale), 0.0, kSteps))};
}

void insert_int8(Graph& graph, const Int8Choice& choice, const Ranges& ranges) { Inserter(graph, choice, ranges).run(); }

}  // namespace serin::graph

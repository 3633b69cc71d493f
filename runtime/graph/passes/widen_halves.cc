// widen_halves.cc: converts products, convolutions, norms and others of 16-bit floats to f32, for which there are vector kernels.
//
//   y = MatMul(x, w[64,64])      # f16      ->      a = Cast(x, to=f32)
//   z = Relu(y)                             ->      y' = MatMul(a, w'[64,64])
//   return z                                ->      z' = Relu(y')
//                                           ->      z = Cast(z', to=f16)
//
// In a group of nodes that hand 16-bit floats to each other, one of which needs f32, all tensors that they make become f32. Values that
// enter the group are cast once, and weights are widened where they are packed (a recipe, so that neither form stays in memory). Values
// that leave it, such as the model's outputs, are cast back: interfaces keep their types.
//
// Each result is as exact as before or more so: it is a continuous function of its operands, computed in f32 as the 16-bit kernels do, and
// what falls away is the rounding (and the overflow to infinity) after each node. That holds for a Cast to 16 bits within a group, too,
// which goes. It does not hold for functions that jump: an f16 stores 0.1 as 0.09998, ten times that is 1 once rounded, and 0 when the f32
// is truncated. So Cast to integers, QuantizeLinear, comparisons, Floor, IsInf, ArgMax and TopK stay as they are, and read values that were
// rounded to 16 bits.
//
// Operators that move elements follow their operands: a table of embeddings stays half as large, and the rows that are looked up are cast.

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/float16.h"
#include "runtime/graph/passes/passes.h"

namespace serin::graph {
namespace {

enum class Kind {
  kStays,    ///< jumps, or names a dtype
  kMoves,    ///< the same for any dtype: f32 where an operand is
  kFollows,  ///< has vector kernels for 16 bits: f32 in a group that is
  kNeeds,    ///< has vector kernels for f32 alone: makes its group f32
};

using enum Op;
constexpr Kind kKinds[] = {
#define SERIN_OP(name, least, most, results, infer, values, batch, padding, range, halves, ...) Kind::k##halves,
#include "runtime/graph/ops/all.def"
};

Kind kind_of(Op op) { return kKinds[static_cast<size_t>(op)]; }

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

template <class Half>
void widen(const Constant& halves, std::span<std::byte> to) {
  const auto from = halves.span<Half>();
  std::ranges::transform(from, reinterpret_cast<float*>(to.data()), [](Half half) { return kernels::to_float(half); });
}

ConstantPtr widened(ConstantPtr halves) {
  const Shape shape = halves->shape;
  return make_constant(DType::kFloat32, shape, [halves = std::move(halves)](std::span<std::byte> to) -> Status {
    halves->dtype == DType::kFloat16 ? widen<kernels::Half>(*halves, to) : widen<kernels::BFloat16>(*halves, to);
    return {};
  });
}

class Widening {
 public:
  explicit Widening(Graph& graph) : graph_(graph), parent_(graph.value_capacity()) { std::iota(parent_.begin(), parent_.end(), 0); }

  Result<bool> run() {
    find_groups();
    if (wide_groups_.empty()) return false;
    SERIN_TRY(const auto order, graph_.topological_order());
    for (const NodeId id : order) becomes_wide(id) ? widen_node(id) : keep_node(id);
    keep_outputs();
    for (const NodeId id : order) remove_cast(id);
    return true;
  }

 private:
  bool is_half_tensor(ValueId id) const {
    return id != kNone && graph_.value(id).type.kind == ValueKind::kTensor && is_half(graph_.value(id).type.dtype);
  }
  bool is_cast(NodeId id) const { return graph_.is(id, kCast) || graph_.is(id, kCastLike); }

  Kind kind(NodeId id) const {
    if (!is_cast(id)) return kind_of(graph_.node(id).op);
    const DType to = graph_.value(graph_.output(id)).type.dtype;
    return is_half(to) || to == DType::kFloat32 || to == DType::kFloat64 ? Kind::kFollows : Kind::kStays;
  }

  // Groups: 16-bit tensors, as sets of which one stands for all.

  ValueId group_of(ValueId id) const {
    while (parent_[static_cast<size_t>(id)] != id) id = parent_[static_cast<size_t>(id)];
    return id;
  }

  /// 16-bit tensors that a node reads and makes. A constant ties nobody together.
  std::vector<ValueId> halves_of(NodeId id) const {
    std::vector<ValueId> halves;
    const auto add = [&](ValueId value) {
      if (is_half_tensor(value) && !graph_.constant(value)) halves.push_back(value);
    };
    std::ranges::for_each(graph_.node(id).inputs, add);
    std::ranges::for_each(graph_.node(id).outputs, add);
    return halves;
  }

  void find_groups() {
    std::vector<ValueId> need_f32;
    for (const NodeId id : graph_.nodes()) {
      const Kind kind = this->kind(id);
      const auto halves = halves_of(id);
      if (kind == Kind::kStays || halves.empty()) continue;
      for (const ValueId half : halves) parent_[static_cast<size_t>(group_of(half))] = group_of(halves[0]);
      if (kind == Kind::kNeeds) need_f32.push_back(halves[0]);
    }
    for (const ValueId half : need_f32) wide_groups_.insert(group_of(half));
  }

  bool in_wide_group(ValueId half) const { return wide_groups_.contains(group_of(half)); }

  // Nodes, each after those that it reads.

  bool becomes_wide(NodeId id) const {
    const Node& node = graph_.node(id);
    const Kind kind = this->kind(id);
    if (kind == Kind::kStays) return false;
    if (std::ranges::any_of(node.inputs, [&](ValueId read) { return half_type_.contains(read) || is_rounded(read); })) return true;
    if (kind == Kind::kMoves || is_cast(id)) return false;
    const auto halves = halves_of(id);
    return !halves.empty() && in_wide_group(halves[0]);
  }

  /// Whether something wider was cast to this, which is as well read without.
  bool is_rounded(ValueId half) const {
    const NodeId cast = graph_.producer(half);
    return is_half_tensor(half) && is_cast(cast) && !is_half_tensor(graph_.input(cast, 0)) && in_wide_group(half);
  }

  void widen_node(NodeId id) {
    for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
      if (is_half_tensor(graph_.input(id, i))) graph_.set_input(id, i, wide(graph_.input(id, i)));
    }
    for (const ValueId made : graph_.node(id).outputs) {
      if (!is_half_tensor(made)) continue;
      DType& dtype = graph_.value(made).type.dtype;
      half_type_[made] = std::exchange(dtype, DType::kFloat32);
      if (is_cast(id)) make_cast(id);
      graph_.node(id).attributes.erase("output_dtype");  // of DequantizeLinear, whose scale says it now
    }
  }

  void make_cast(NodeId id) {
    graph_.node(id).op = kCast;
    graph_.node(id).attributes = {{"to", std::string(dtype_name(DType::kFloat32))}};
    graph_.resize_inputs(id, 1);
  }

  void keep_node(NodeId id) {
    for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
      if (half_type_.contains(graph_.input(id, i))) graph_.set_input(id, i, narrow(graph_.input(id, i)));
    }
  }

  void keep_outputs() {
    std::vector<ValueId> outputs(graph_.outputs().begin(), graph_.outputs().end());
    for (ValueId& output : outputs) {
      if (half_type_.contains(output)) output = narrow(output);
    }
    graph_.set_outputs(std::move(outputs));
  }

  /// One that is from f32 to f32 now.
  void remove_cast(NodeId id) {
    if (!is_cast(id)) return;
    const ValueId from = graph_.input(id, 0), to = graph_.output(id);
    if (graph_.value(from).type.dtype != DType::kFloat32 || graph_.value(to).type.dtype != DType::kFloat32) return;
    graph_.replace_uses(to, from);
    graph_.remove(id);
  }

  // The other form of a value, made once.

  ValueId wide(ValueId half) {
    const auto [found, fresh] = wide_.try_emplace(half, kNone);
    if (!fresh) return found->second;
    const std::string name = graph_.value(half).name;
    if (const ConstantPtr constant = graph_.constant(half)) return found->second = graph_.add_constant(name + "'", widened(constant));
    const ValueId before = is_rounded(half) ? graph_.input(graph_.producer(half), 0) : half;
    if (graph_.value(before).type.dtype == DType::kFloat32) return found->second = before;
    return found->second = cast(before, DType::kFloat32, name + ".f32");
  }

  ValueId narrow(ValueId wide) {
    const auto [found, fresh] = narrow_.try_emplace(wide, kNone);
    if (!fresh) return found->second;
    const DType to = half_type_.at(wide);
    return found->second = cast(wide, to, graph_.value(wide).name + "." + std::string(dtype_name(to)));
  }

  ValueId cast(ValueId value, DType to, std::string name) {
    const NodeId id = graph_.add_node(kCast, std::move(name), {value}, {{"to", std::string(dtype_name(to))}});
    const ValueId made = graph_.output(id);
    graph_.value(made).type = graph_.value(value).type;
    graph_.value(made).type.dtype = to;
    return made;
  }

  Graph& graph_;
  std::vector<ValueId> parent_;  ///< by value: another of its group, or itself
  std::set<ValueId> wide_groups_;
  std::map<ValueId, DType> half_type_;  ///< of those that are f32 now
  std::map<ValueId, ValueId> wide_, narrow_;
};

}  // namespace

Result<bool> WidenHalves::run(Graph& graph) const { return Widening(graph).run(); }

}  // namespace serin::graph

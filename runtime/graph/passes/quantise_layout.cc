// quantise_layout.cc: keeps quantised images with their channels last, because a product of bytes takes four neighbours at once and those
// must be channels.
//
//   QLinearConv(x)   ->   Transpose(QLinearConv(Transpose(x), channels_last))
//
// In a region of such operators each reads the channels-last twin of what it read before, so that all transpositions but those at the region's borders
// are never made: what is made and not read, dead_code removes.

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"
#include "runtime/graph/passes/quantised.h"

namespace serin::graph {
namespace {

/// The order of axes that has the channels last, or that which has them behind the batch again.
std::vector<int64_t> moved_axes(size_t rank, bool channels_last) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  std::rotate(axes.begin() + 1, channels_last ? axes.begin() + 2 : axes.end() - 1, axes.end());
  return axes;
}

class Region {
 public:
  explicit Region(Graph& graph) : graph_(graph) {}

  Result<bool> run() {
    SERIN_TRY(const auto order, graph_.topological_order());
    for (const NodeId id : order) {
      if (!graph_.node(id).removed) move(id);
    }
    return changed_;
  }

 private:
  /// With one or two spatial axes.
  bool is_image(ValueId value) const { return (rank_of(value) == 3 || rank_of(value) == 4) && is_byte(graph_.value(value).type.dtype); }
  size_t rank_of(ValueId value) const {
    const Dims* dims = dims_of_value(graph_, value);
    return dims ? dims->size() : 0;
  }

  void move(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.integer("channels_last", 0) != 0) return;
    switch (node.op) {
      case Op::kQLinearConv:
      case Op::kQuantizedGlobalAveragePool:
        if (is_image(graph_.input(id, 0))) replace(id, node.op, {0, 9});
        return;
      case Op::kMaxPool:
        if (rank_of(graph_.input(id, 0)) == 4 && twins_.contains(graph_.input(id, 0))) replace(id, Op::kQuantizedMaxPool, {0});
        return;
      case Op::kQuantizedBinary:
        if (twins_.contains(graph_.input(id, 0)) && twins_.contains(graph_.input(id, 3)) && pairs_images(id))
          replace(id, node.op, {0, 3}, false);
        return;
      case Op::kConcat:
        if (node.integer("axis", 0) == 1 && std::ranges::all_of(node.inputs, [this](ValueId part) { return twins_.contains(part); })) {
          std::vector<size_t> all(node.inputs.size());
          std::iota(all.begin(), all.end(), size_t{0});
          const auto last = static_cast<int64_t>(rank_of(graph_.output(id))) - 1;
          graph_.node(replace(id, node.op, all, false)).attributes["axis"] = last;
        }
        return;
      case Op::kQuantizedLookup:
        if (twins_.contains(graph_.input(id, 0))) replace(id, node.op, {0}, false);
        return;
      default: return;
    }
  }

  /// Of the same size, or one of them has a number for each channel.
  bool pairs_images(NodeId id) const {
    const Dims &a = *dims_of_value(graph_, graph_.input(id, 0)), &b = *dims_of_value(graph_, graph_.input(id, 3));
    return a == b || is_factor_of_channels(a, b) || is_factor_of_channels(b, a);
  }

  ValueId transposed(ValueId value, std::vector<int64_t> perm, const std::string& name) {
    const NodeId id = graph_.add_node(Op::kTranspose, name, {value}, {{"perm", std::move(perm)}});
    graph_.value(graph_.output(id)).type.dtype = graph_.value(value).type.dtype;
    return graph_.output(id);
  }

  ValueId twin_of(ValueId value) {
    const auto found = twins_.find(value);
    if (found != twins_.end()) return found->second;
    return twins_[value] =
               transposed(value, moved_axes(rank_of(value), /*channels_last=*/true), graph_.value(value).name + ".channels_last");
  }

  /// The node again, reading the twins of `images` (operands), and its result turned back for whoever is not of the region.
  NodeId replace(NodeId id, Op op, const std::vector<size_t>& images, bool mark = true) {
    std::vector<ValueId> operands = graph_.node(id).inputs;
    for (const size_t i : images) {
      if (i < operands.size() && operands[i] != kNone) operands[i] = twin_of(operands[i]);
    }
    Attributes attributes = graph_.node(id).attributes;
    if (mark) attributes["channels_last"] = int64_t{1};
    const ValueId before = graph_.output(id);
    const std::string name = graph_.node(id).name;
    const NodeId fresh = graph_.add_node(op, name, std::move(operands), std::move(attributes));
    const ValueId after = graph_.output(fresh);
    graph_.value(after).type.dtype = graph_.value(before).type.dtype;
    graph_.value(after).name = graph_.value(before).name + ".channels_last";
    const ValueId back = transposed(after, moved_axes(rank_of(before), /*channels_last=*/false), name + ".channels_first");
    graph_.value(back).name = graph_.value(before).name;
    graph_.value(back).type = graph_.value(before).type;
    graph_.replace_uses(before, back);
    graph_.remove(id);
    twins_[back] = after;
    changed_ = true;
    return fresh;
  }

  Graph& graph_;
  std::map<ValueId, ValueId> twins_;  ///< channels first -> channels last
  bool changed_ = false;
};

}  // namespace

Result<bool> QuantiseLayout::run(Graph& graph) const { return Region(graph).run(); }

}  // namespace serin::graph

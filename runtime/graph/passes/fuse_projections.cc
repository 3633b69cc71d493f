// fuse_projections.cc
//
// q, k and v of one Attention, each a product of the same rows, are parts of one product:
//
//   x Wq + bq, x Wk + bk, x Wv + bv   ->   Split(x [Wq Wk Wv] + [bq bk bv])
//
// On a device three small products cost three launches, and each leaves multiprocessors idle. The CPU gains nothing (kernels/README.md), so the engine
// runs this pass only for devices (engine/optimize.h).
//
// The Split must cost nothing: Attention has to read its heads out of the one result by strides (engine/lower/attention_views.cc). So between
// product and Attention there are only changes of the shape that keep every axis of q, k and v one axis of the product's result. A rotary
// embedding, a cache or another reader would need copies of the parts: such products stay apart.
//
// A number by which q or k is multiplied on its way becomes part of Attention's scale, where it costs nothing either (Whisper).

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

/// One of q, k and v.
struct Projection {
  NodeId product = kNone;
  std::vector<NodeId> way;      // from the product, without it, to Attention
  std::vector<NodeId> factors;  // those of them that multiply by a number
  double factor = 1;
};

/// The axes of a value, each as the axes of a product's result that it is made of; those of size 1 are left out.
///
///   [batch, seq, 768] -> [batch, seq, 12, 64] -> [batch, 12, seq, 64]
///   {0} {1} {2 3}        {0} {1} {2} {3}         {0} {2} {1} {3}
class AxesOnTheWay {
 public:
  /// `rows`, then heads and width, which are one axis together.
  AxesOnTheWay(const Dims& rows, const Dim& heads, const Dim& width) : sizes_(rows) {
    sizes_.push_back(heads);
    sizes_.push_back(width);
    for (size_t i = 0; i < rows.size(); ++i) axes_.push_back(part(i));
    axes_.push_back(part(rows.size()));
    for (const size_t i : part(rows.size() + 1)) axes_.back().push_back(i);
  }

  bool transpose(std::vector<int64_t> perm) {
    if (perm.empty()) {
      for (size_t i = axes_.size(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
    }
    if (perm.size() != axes_.size()) return false;
    std::vector<std::vector<size_t>> turned;
    turned.reserve(perm.size());
    for (const int64_t axis : perm) turned.push_back(axes_[static_cast<size_t>(axis)]);
    axes_ = std::move(turned);
    return true;
  }

  /// False where an axis would be cut, or it is not known that none is.
  bool reshape(const Dims& to) {
    std::vector<size_t> flat;
    for (const auto& axis : axes_) flat.insert(flat.end(), axis.begin(), axis.end());
    axes_.clear();
    size_t next = 0;
    for (const Dim& dim : to) {
      axes_.emplace_back();
      for (Dim size = 1; !(size == dim); ++next) {
        if (next == flat.size()) return false;
        size = size * sizes_[flat[next]];
        axes_.back().push_back(flat[next]);
      }
    }
    return next == flat.size();
  }

  /// Whether each axis is one stride, and elements of the last one are adjacent.
  bool are_strides() const {
    const bool single = std::ranges::all_of(axes_, [](const auto& axis) { return axis.size() <= 1; });
    return single && (axes_.back().empty() || axes_.back().front() == sizes_.size() - 1);
  }

 private:
  std::vector<size_t> part(size_t i) const { return sizes_[i] == Dim(1) ? std::vector<size_t>() : std::vector<size_t>{i}; }

  Dims sizes_;
  std::vector<std::vector<size_t>> axes_;
};

bool has_no_other_reader(const Graph& graph, ValueId value) {
  if (graph.is_output(value)) return false;
  // A Shape reads no elements.
  return std::ranges::count_if(graph.readers(value), [&](NodeId reader) { return !graph.is(reader, Op::kShape); }) == 1;
}

bool only_reshapes(const Graph& graph, NodeId id) {
  return graph.is(id, Op::kReshape) || graph.is(id, Op::kTranspose) || graph.is(id, Op::kUnsqueeze) || graph.is(id, Op::kSqueeze) ||
         graph.is(id, Op::kIdentity);
}

/// Back from an operand of Attention to a product; nothing where there is something else on the way.
std::optional<Projection> projection_behind(const Graph& graph, ValueId value, bool may_scale) {
  Projection p;
  for (;;) {
    const NodeId id = graph.producer(value);
    if (id == kNone || !has_no_other_reader(graph, value)) return std::nullopt;
    if (graph.is(id, Op::kMatMul) || graph.is(id, Op::kFusedMatMul)) {
      p.product = id;
      std::ranges::reverse(p.way);
      return p;
    }
    const auto [rest, factor] = may_scale ? unscaled(graph, value) : std::pair(value, 1.0);
    if (rest != value) {
      p.factors.push_back(id);
      p.factor *= factor;
      value = rest;
    } else if (only_reshapes(graph, id)) {
      value = graph.input(id, 0);
    } else {
      return std::nullopt;
    }
    p.way.push_back(id);
  }
}

/// x W + row, of f32: what a quantised or 16-bit weight is multiplied with is no such product.
bool is_plain_product(const Graph& graph, NodeId id) {
  const ConstantPtr weight = graph.constant(graph.input(id, 1)), bias = graph.constant(graph.input(id, 2));
  if (!weight || weight->dtype != DType::kFloat32 || weight->shape.rank() != 2 || weight->elements() == 0) return false;
  const Node& node = graph.node(id);
  if (graph.input(id, 3) != kNone || node.integer("transA", 0) != 0 || !node.text("activation", "").empty()) return false;
  const Dims* const result = dims_of_value(graph, graph.output(id));
  if (!result || result->size() < 2 || !result->back().known()) return false;
  if (graph.input(id, 2) == kNone) return true;
  return bias && bias->dtype == DType::kFloat32 && bias->shape.rank() > 0 && Dim(bias->elements()) == result->back() &&
         Dim(bias->shape.back()) == result->back();
}

/// Sizes that only a run knows have room for the largest, in which a part has no fixed place.
bool depends_on_data(const Dims& dims) {
  return std::ranges::any_of(dims, [](const Dim& dim) {
    return std::ranges::any_of(dim.symbols(), [](const std::string& symbol) { return symbol.starts_with('?'); });
  });
}

bool keeps_axes(const Graph& graph, const Projection& p, AxesOnTheWay axes) {
  for (const NodeId id : p.way) {
    const Dims* const dims = dims_of_value(graph, graph.output(id));
    const bool kept = graph.is(id, Op::kTranspose) ? axes.transpose(graph.node(id).integers("perm")) : dims && axes.reshape(*dims);
    if (!kept) return false;
  }
  return axes.are_strides();
}

/// Whether the operand of Attention that p becomes can be read out of a longer row.
bool can_be_a_part(const Graph& graph, const Projection& p, ValueId operand) {
  const Dims* const heads = dims_of_value(graph, operand);
  if (!heads || heads->size() != 4 || !is_plain_product(graph, p.product)) return false;
  Dims rows = *dims_of_value(graph, graph.output(p.product));
  const Dim row = rows.back();
  rows.pop_back();
  const auto &batch = (*heads)[0], &count = (*heads)[1], &length = (*heads)[2], &width = (*heads)[3];
  if (depends_on_data(rows) || !(count * width == row) || row == Dim(0)) return false;
  if (keeps_axes(graph, p, {rows, count, width})) return true;
  // Samples and their rows may be one axis of the product: a Gemm has no other.
  return rows.size() == 1 && rows[0] == batch * length &&
         (keeps_axes(graph, p, {{batch, length}, count, width}) || keeps_axes(graph, p, {{length, batch}, count, width}));
}

using Three = std::array<ConstantPtr, 3>;

/// Weights side by side, or below each other where they are transposed. They stay where they are, in a file or in memory, until a kernel asks.
ConstantPtr joined_weights(const Three& parts, bool transposed) {
  const size_t along = transposed ? 0 : 1;
  Shape shape = parts[0]->shape;
  shape[along] = parts[0]->shape[along] + parts[1]->shape[along] + parts[2]->shape[along];
  return make_constant(DType::kFloat32, shape,
                       [parts, rows = static_cast<size_t>(transposed ? 1 : shape[0])](std::span<std::byte> to) -> Status {
                         const size_t pitch = to.size() / rows;
                         size_t begin = 0;
                         for (const ConstantPtr& part : parts) {
                           const auto from = part->data();
                           const size_t width = part->bytes() / rows;
                           for (size_t r = 0; r < rows; ++r) std::memcpy(to.data() + r * pitch + begin, from.get() + r * width, width);
                           begin += width;
                         }
                         return {};
                       });
}

/// Biases one after the other, with zeros where there is none.
ConstantPtr joined_biases(const Three& parts, const std::vector<int64_t>& widths) {
  std::byte* to = nullptr;
  auto joined = make_mutable_constant(DType::kFloat32, Shape{widths[0] + widths[1] + widths[2]}, &to);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]) std::memcpy(to, parts[i]->data().get(), parts[i]->bytes());
    to += static_cast<size_t>(widths[i]) * sizeof(float);
  }
  return joined;
}

class Projections {
 public:
  explicit Projections(Graph& graph) : graph_(graph) {}

  bool fuse(NodeId attention) {
    // With a cache, or where k and v are results too, they are copied anyway.
    if (graph_.node(attention).inputs.size() > 4 || graph_.node(attention).outputs.size() != 1) return false;
    const bool has_scale = graph_.node(attention).attributes.contains("scale");
    std::vector<Projection> found;
    for (const size_t i : {0, 1, 2}) {
      auto p = projection_behind(graph_, graph_.input(attention, i), has_scale && i < 2);
      if (!p || !can_be_a_part(graph_, *p, graph_.input(attention, i))) return false;
      found.push_back(std::move(*p));
    }
    if (!are_alike(found)) return false;
    drop_factors(attention, found);
    join(found);
    return true;
  }

 private:
  bool are_alike(const std::vector<Projection>& found) const {
    const NodeId first = found[0].product;
    if (first == found[1].product || first == found[2].product || found[1].product == found[2].product) return false;
    return std::ranges::all_of(found, [&](const Projection& p) {
      return graph_.input(p.product, 0) == graph_.input(first, 0) &&
             graph_.node(p.product).integer("transB", 0) == graph_.node(first).integer("transB", 0);
    });
  }

  void drop_factors(NodeId attention, const std::vector<Projection>& found) {
    double scale = graph_.node(attention).number("scale", 1);
    for (const Projection& p : found) {
      scale *= p.factor;
      for (const NodeId id : p.factors) {
        graph_.replace_uses(graph_.output(id), unscaled(graph_, graph_.output(id)).first);
        graph_.remove(id);
      }
    }
    if (scale != graph_.node(attention).number("scale", 1)) graph_.node(attention).attributes["scale"] = scale;
  }

  void join(const std::vector<Projection>& found) {
    const NodeId q = found[0].product, k = found[1].product, v = found[2].product;
    Patch patch(graph_, {q, k, v});
    const bool transposed = graph_.node(q).integer("transB", 0) != 0;
    std::vector<int64_t> widths;
    for (const NodeId id : {q, k, v}) widths.push_back(*dims_of_value(graph_, graph_.output(id))->back().value());
    const auto& [weight, bias] = constants(patch, {q, k, v}, transposed, widths);
    Attributes attributes;
    if (transposed) attributes["transB"] = int64_t{1};
    const ValueId y = patch.add(Op::kFusedMatMul, {graph_.input(q, 0), weight, bias}, std::move(attributes));
    const auto axis = static_cast<int64_t>(dims_of_value(graph_, graph_.output(q))->size()) - 1;
    const NodeId parts = patch.add_node(Op::kSplit, {y}, {{"axis", axis}, {"split", widths}}, 3);
    for (const size_t i : {0, 1, 2}) patch.replace(graph_.output(found[i].product), graph_.output(parts, i));
  }

  struct Constants {
    ValueId weight, bias;
  };

  /// Layers that share their weights (ALBERT) share what is made of them. A weight that something else reads, too, is in memory twice.
  const Constants& constants(Patch& patch, const std::array<NodeId, 3>& products, bool transposed, const std::vector<int64_t>& widths) {
    std::vector<ConstantPtr> key;
    Three weights, biases;
    for (size_t i = 0; i < 3; ++i) {
      key.push_back(weights[i] = graph_.constant(graph_.input(products[i], 1)));
      key.push_back(biases[i] = graph_.constant(graph_.input(products[i], 2)));
    }
    const auto [at, fresh] = made_.try_emplace({std::move(key), transposed}, Constants{kNone, kNone});
    if (fresh) {
      const bool biased = std::ranges::any_of(biases, [](const ConstantPtr& bias) { return bias != nullptr; });
      at->second.weight = patch.constant(kNone, joined_weights(weights, transposed), "weight");
      if (biased) at->second.bias = patch.constant(kNone, joined_biases(biases, widths));
    }
    return at->second;
  }

  Graph& graph_;
  std::map<std::pair<std::vector<ConstantPtr>, bool>, Constants> made_;
};

}  // namespace

Result<bool> FuseProjections::run(Graph& graph) const {
  bool changed = false;
  Projections projections(graph);
  for (const NodeId attention : graph.nodes(Op::kAttention)) changed |= projections.fuse(attention);
  return changed;
}

}  // namespace serin::graph

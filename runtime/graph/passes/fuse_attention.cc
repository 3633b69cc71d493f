// fuse_attention.cc
//
// Finds the nodes that exporters write for attention, from its Softmax backwards to q and k and forwards to v:
//
//   scores = q k'                      scaled before (q, k or both) or after, by Mul or Div; by a factor of each head: Swin v2
//   scores + mask                      float masks, T5's position bias; Where(seen, scores, very low): GPT-2; several of them in turn
//   Reshape(Reshape(scores) + mask)    a mask for each window of an image, while its windows are apart: Swin
//   p = Softmax(scores)                over the last axis
//   Where(IsNaN(p), 0, p)              torch's guard of queries that see nothing
//   y = p v                            then perhaps a Transpose that brings the heads inside
//
// and replaces them by Attention(q, k, v, mask). k' may be k with its last two axes swapped by any permutation, by torch.onnx's detour over
// three axes, or by the product (transB). Heads that were repeated for the queries (Unsqueeze, Expand, Reshape) are not. Masks are joined
// into one; one that is Where(seen, 0, -inf) stays bool.

#include <algorithm>
#include <cmath>

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

constexpr double kVeryLow = -1e9;  // added to a score, it leaves a weight of 0

/// A mask [1, windows, 1 or heads, queries, keys] of scores [images * windows, heads, queries, keys].
struct WindowMask {
  ValueId mask = kNone;
  NodeId split = kNone, join = kNone;  // the Reshapes around the sum
};

struct Found {
  NodeId softmax = kNone, product = kNone;
  std::vector<NodeId> nodes;  // between the product and the softmax, that go
  ValueId q = kNone, k = kNone, v = kNone;
  std::vector<ValueId> masks;                       // added to the scores
  std::vector<std::pair<ValueId, ValueId>> hidden;  // (seen, very low): Where(seen, scores, very low)
  WindowMask windows;
  ValueId head_scale = kNone;  // [heads, 1, 1] or [1, heads, 1, 1]: multiplies q instead of the scores
  double scale = 1;
  bool masked_to_zero = false;
  bool heads_inside = false;
  ValueId result = kNone;
};

const Dims* dims4(const Graph& graph, ValueId value) {
  const Dims* dims = dims_of_value(graph, value);
  return dims && dims->size() == 4 ? dims : nullptr;
}

/// The last axis of a mask has a value for each key: what is shorter or broadcast means something else to Attention.
bool covers_keys(const Graph& graph, ValueId mask, const Dims& scores) {
  const Dims* dims = dims_of_value(graph, mask);
  return dims && !dims->empty() && dims->size() <= 4 && dims->back() == scores.back();
}

/// Which operand of a sum the scores come from: it has their shape and no other reader. A product itself, before what may be a mask, too; 2: none.
size_t scores_side(const Graph& graph, NodeId add) {
  const auto makes = [&](size_t i, std::initializer_list<Op> ops) {
    const ValueId side = graph.input(add, i);
    const NodeId maker = graph.producer(side);
    if (maker == kNone || graph.reader_count(side) != 1 || !same_type(graph, side, graph.output(add))) return false;
    return std::ranges::any_of(ops, [&](Op op) { return graph.is(maker, op); });
  };
  for (const size_t i : {0, 1}) {
    if (makes(i, {Op::kMatMul, Op::kFusedMatMul})) return i;
  }
  for (const size_t i : {0, 1}) {
    if (makes(i, {Op::kMul, Op::kDiv, Op::kAdd, Op::kWhere})) return i;
  }
  return 2;
}

/// Whether the sizes of a Reshape are written out, so that Expand takes them, too.
bool names_all_sizes(const Graph& graph, NodeId reshape) {
  const auto positive = [&](ValueId value) {
    const ConstantPtr constant = graph.constant(value);
    if (!constant) return true;  // computed from sizes
    const auto sizes = integers_of(*constant);
    return sizes && std::ranges::all_of(*sizes, [](int64_t size) { return size > 0; });
  };
  const ValueId sizes = graph.input(reshape, 1);
  const NodeId concat = graph.producer(sizes);
  if (graph.constant(sizes)) return positive(sizes);
  return graph.is(concat, Op::kConcat) && std::ranges::all_of(graph.node(concat).inputs, positive);
}

/// The mask of windows that is added before `join`, and the scores before it; kNone: there is none.
ValueId before_windows(const Graph& graph, NodeId join, const Dims& scores, WindowMask& windows) {
  const NodeId add = only_producer(graph, graph.input(join, 0), Op::kAdd);
  if (add == kNone || windows.mask != kNone) return kNone;
  for (const size_t i : {0, 1}) {
    const NodeId split = only_producer(graph, graph.input(add, i), Op::kReshape);
    if (split == kNone || !names_all_sizes(graph, split)) continue;
    const Dims *const from = dims4(graph, graph.input(split, 0)), *const apart = dims_of_value(graph, graph.output(split));
    const Dims* const mask = dims_of_value(graph, graph.input(add, 1 - i));
    if (!from || !(*from == scores) || !apart || apart->size() != 5 || !mask || mask->size() != 5) continue;
    const bool splits = std::equal(scores.begin() + 1, scores.end(), apart->begin() + 2) && (*apart)[0] * (*apart)[1] == scores[0];
    const bool covers = (*mask)[0] == Dim(1) && (*mask)[1] == (*apart)[1] && mask->back() == scores.back();
    if (!splits || !covers || !same_type(graph, graph.output(add), graph.output(split))) continue;
    windows = {graph.input(add, 1 - i), split, join};
    return graph.input(split, 0);
  }
  return kNone;
}

/// The operand of a Mul that has one number for each head, of the scores in the other one; kNone: there is none.
ValueId factor_of_heads(const Graph& graph, NodeId mul, const Dims& scores) {
  if (!graph.is(mul, Op::kMul)) return kNone;
  for (const size_t i : {0, 1}) {
    const Dims* const dims = dims_of_value(graph, graph.input(mul, i));
    if (!dims || dims->size() < 3 || dims->size() > 4 || !same_type(graph, graph.input(mul, 1 - i), graph.output(mul))) continue;
    const auto head = dims->end() - 3;
    if (head[0] == scores[1] && head[1] == Dim(1) && head[2] == Dim(1) && (dims->size() == 3 || dims->front() == Dim(1)))
      return graph.input(mul, i);
  }
  return kNone;
}

/// From the softmax back to the product.
bool match_scores(const Graph& graph, Found& f) {
  ValueId value = graph.input(f.softmax, 0);
  const Dims* const scores = dims4(graph, value);
  if (!scores || graph.value(value).type.dtype != DType::kFloat32) return false;
  for (;;) {
    const NodeId id = graph.producer(value);
    if (id == kNone || graph.reader_count(value) != 1) return false;
    if (graph.is(id, Op::kMatMul) || graph.is(id, Op::kFusedMatMul)) break;
    const ValueId before = value;
    const bool unscaled_yet = f.scale == 1 && f.head_scale == kNone;
    if (graph.is(id, Op::kAdd)) {
      const size_t side = scores_side(graph, id);
      const ValueId mask = side < 2 ? graph.input(id, 1 - side) : kNone;
      if (mask != kNone && unscaled_yet && covers_keys(graph, mask, *scores)) {
        f.masks.push_back(mask);
        value = graph.input(id, side);
      }
    } else if (graph.is(id, Op::kWhere)) {
      const auto low = known_number(graph, graph.input(id, 2));
      if (unscaled_yet && low && *low <= kVeryLow && same_type(graph, graph.input(id, 1), value) &&
          covers_keys(graph, graph.input(id, 0), *scores)) {
        f.hidden.emplace_back(graph.input(id, 0), graph.input(id, 2));
        value = graph.input(id, 1);
      }
    } else if (graph.is(id, Op::kReshape)) {
      const ValueId inside = unscaled_yet ? before_windows(graph, id, *scores, f.windows) : kNone;
      if (inside == kNone) return false;
      f.nodes.push_back(graph.producer(graph.input(id, 0)));
      f.nodes.push_back(f.windows.split);
      value = inside;
    } else if (const ValueId each = factor_of_heads(graph, id, *scores); each != kNone && f.head_scale == kNone) {
      f.head_scale = each;
      value = other_operand(graph, id, each);
    } else {
      const auto [rest, factor] = unscaled(graph, value);
      f.scale *= factor;
      value = rest;
    }
    if (value == before) return false;
    f.nodes.push_back(id);
  }
  f.product = graph.producer(value);
  return true;
}

Dims swapped(Dims dims) {
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return dims;
}

/// x, where `value` is Reshape(Transpose(Reshape(x), [0,2,1])): the last two axes of x swapped, its other axes joined for the while.
ValueId swapped_by_detour(const Graph& graph, ValueId value) {
  const NodeId outer = graph.producer(value), transpose = outer == kNone ? kNone : graph.producer(graph.input(outer, 0));
  if (!graph.is(outer, Op::kReshape) || !graph.is(transpose, Op::kTranspose)) return kNone;
  if (graph.node(transpose).integers("perm") != std::vector<int64_t>{0, 2, 1}) return kNone;
  const NodeId inner = graph.producer(graph.input(transpose, 0));
  if (!graph.is(inner, Op::kReshape)) return kNone;
  const ValueId x = graph.input(inner, 0);
  const Dims *dims = dims4(graph, x), *joined = dims_of_value(graph, graph.output(inner)), *result = dims4(graph, value);
  const bool same = dims && joined && result && joined->size() == 3 && (*joined)[1] == (*dims)[2] && (*joined)[2] == (*dims)[3] &&
                    *result == swapped(*dims);
  return same ? x : kNone;
}

/// k [batch, heads, keys, head], where `value` is k' with those axes; a fresh Transpose where there is none to take.
ValueId untransposed(Graph& graph, ValueId value) {
  if (const ValueId x = swapped_by_detour(graph, value); x != kNone) return x;
  const NodeId id = graph.producer(value);
  if (!graph.is(id, Op::kTranspose)) return kNone;
  auto perm = graph.node(id).integers("perm");
  if (perm.size() != 4) return kNone;
  std::swap(perm[2], perm[3]);
  if (std::ranges::is_sorted(perm)) return graph.input(id, 0);
  const NodeId fresh = graph.add_node(Op::kTranspose, graph.node(id).name + "'", {graph.input(id, 0)}, {{"perm", perm}});
  const ValueId result = graph.output(fresh);
  graph.value(result).type = Type::tensor(graph.value(value).type.dtype, swapped(*dims4(graph, value)));
  return result;
}

/// x [batch, heads, length, head], where `value` is x with each head repeated.
ValueId unrepeated(const Graph& graph, ValueId value) {
  const NodeId reshape = graph.producer(value), expand = reshape == kNone ? kNone : graph.producer(graph.input(reshape, 0));
  if (!graph.is(reshape, Op::kReshape) || !graph.is(expand, Op::kExpand)) return kNone;
  const NodeId unsqueeze = graph.producer(graph.input(expand, 0));
  if (!graph.is(unsqueeze, Op::kUnsqueeze)) return kNone;
  const ValueId x = graph.input(unsqueeze, 0);
  const Dims *from = dims4(graph, x), *to = dims4(graph, value), *wide = dims_of_value(graph, graph.output(expand));
  const Dims* const thin = dims_of_value(graph, graph.output(unsqueeze));
  if (!from || !to || !wide || !thin || wide->size() != 5 || thin->size() != 5 || !((*thin)[2] == Dim(1))) return kNone;
  const bool repeats = (*wide)[0] == (*from)[0] && (*wide)[1] == (*from)[1] && (*wide)[3] == (*from)[2] && (*wide)[4] == (*from)[3] &&
                       (*to)[0] == (*from)[0] && (*to)[2] == (*from)[2] && (*to)[3] == (*from)[3] && (*to)[1] == (*from)[1] * (*wide)[2];
  return repeats ? x : kNone;
}

bool is_bare_product(const Node& node) {
  return node.inputs.size() == 2 && node.text("activation", "").empty() && node.integer("transA", 0) == 0;
}

/// q and k, and how they are scaled.
bool match_product(Graph& graph, Found& f) {
  if (!is_bare_product(graph.node(f.product))) return false;
  const auto [q, q_scale] = unscaled(graph, graph.input(f.product, 0));
  const auto [k, k_scale] = unscaled(graph, graph.input(f.product, 1));
  f.scale *= q_scale * k_scale;
  f.q = q;
  if (!dims4(graph, f.q) || !dims4(graph, k)) return false;
  f.k = k;
  return true;
}

/// From the softmax to the values, and what makes of the result.
bool match_values(const Graph& graph, Found& f) {
  ValueId p = graph.output(f.softmax);
  if (graph.reader_count(p) == 2 && !graph.is_output(p)) {
    for (const NodeId reader : graph.readers(p)) {
      const bool guards = graph.is(reader, Op::kWhere) && graph.input(reader, 2) == p && known_number(graph, graph.input(reader, 1)) == 0.0;
      const NodeId test = guards ? graph.producer(graph.input(reader, 0)) : kNone;
      if (!graph.is(test, Op::kIsNaN) || graph.input(test, 0) != p || graph.reader_count(graph.output(test)) != 1) continue;
      f.masked_to_zero = true;
      f.nodes.push_back(test);
      f.nodes.push_back(reader);
      p = graph.output(reader);
      break;
    }
    if (!f.masked_to_zero) return false;
  }
  const NodeId product = only_reader(graph, p);
  if (!(graph.is(product, Op::kMatMul) || graph.is(product, Op::kFusedMatMul)) || graph.input(product, 0) != p) return false;
  if (!is_bare_product(graph.node(product)) || graph.node(product).integer("transB", 0) != 0) return false;
  f.v = graph.input(product, 1);
  f.result = graph.output(product);
  f.nodes.push_back(product);
  const NodeId transpose = only_reader(graph, f.result);
  if (graph.is(transpose, Op::kTranspose) && graph.node(transpose).integers("perm") == std::vector<int64_t>{0, 2, 1, 3}) {
    f.heads_inside = true;
    f.nodes.push_back(transpose);
    f.result = graph.output(transpose);
  }
  return dims4(graph, f.v) != nullptr;
}

/// Heads that were repeated for the queries are read as they were.
void share_heads(const Graph& graph, Found& f) {
  const ValueId k = unrepeated(graph, f.k), v = unrepeated(graph, f.v);
  if (k == kNone || v == kNone || !((*dims4(graph, k))[1] == (*dims4(graph, v))[1])) return;
  f.k = k;
  f.v = v;
}

/// Batch, heads and lengths of the operands are those of the scores: nothing was broadcast.
bool agrees(const Graph& graph, const Found& f) {
  const Dims &q = *dims4(graph, f.q), &k = *dims4(graph, f.k), &v = *dims4(graph, f.v);
  const Dims& scores = *dims4(graph, graph.output(f.softmax));
  const auto q_heads = q[1].value(), kv_heads = k[1].value();
  const bool heads = q[1] == k[1] || (q_heads && kv_heads && *kv_heads > 0 && *q_heads % *kv_heads == 0);
  return heads && v[1] == k[1] && q[0] == scores[0] && k[0] == scores[0] && v[0] == scores[0] && q[1] == scores[1] && q[2] == scores[2] &&
         k[2] == scores[3] && v[2] == scores[3] && k[3] == q[3];
}

/// seen, where `mask` is Where(seen, 0, very low); kNone otherwise.
ValueId seen_of(const Graph& graph, ValueId mask, bool minus_infinity_only) {
  const NodeId id = graph.producer(mask);
  if (!graph.is(id, Op::kWhere) || known_number(graph, graph.input(id, 1)) != 0.0) return kNone;
  const auto low = known_number(graph, graph.input(id, 2));
  return low && (minus_infinity_only ? std::isinf(*low) : true) && *low <= kVeryLow ? graph.input(id, 0) : kNone;
}

/// A mask for each window, and `other` mask if not kNone, as one for each row of scores. The sum is made once where both are constants.
ValueId repeated_mask(const Graph& graph, Patch& patch, const WindowMask& windows, ValueId other) {
  const Dims* const dims = other == kNone ? nullptr : dims_of_value(graph, other);
  const bool same_for_all = dims && (dims->size() < 4 || (*dims)[0] == Dim(1));
  const ValueId mask = same_for_all ? patch.add(Op::kAdd, {windows.mask, other}, {}) : windows.mask;
  const ValueId apart = patch.add(Op::kExpand, {mask, graph.input(windows.split, 1)}, {});
  const ValueId joined = patch.add(Op::kReshape, {apart, graph.input(windows.join, 1)}, {});
  return other == kNone || same_for_all ? joined : patch.add(Op::kAdd, {joined, other}, {});
}

/// All masks as one operand: bool where that is all there is, else their sum.
ValueId joined_mask(Graph& graph, Patch& patch, const Found& f, const Dims& scores) {
  const bool has_windows = f.windows.mask != kNone;
  if (f.masks.size() == 1 && f.hidden.empty() && !has_windows) {
    const ValueId seen = seen_of(graph, f.masks[0], true);
    return seen != kNone && covers_keys(graph, seen, scores) ? seen : f.masks[0];
  }
  if (f.masks.empty() && f.hidden.size() == 1 && !has_windows && std::isinf(*known_number(graph, f.hidden[0].second)))
    return f.hidden[0].first;
  ValueId sum = kNone;
  const auto add = [&](ValueId mask) { sum = sum == kNone ? mask : patch.add(Op::kAdd, {sum, mask}, {}); };
  for (const ValueId mask : f.masks) add(mask);
  for (const auto& [seen, low] : f.hidden) {
    const ValueId zero = patch.constant(kNone, make_scalar(DType::kFloat32, 0), "zero");
    add(patch.add(Op::kWhere, {seen, zero, low}, {}));
  }
  return has_windows ? repeated_mask(graph, patch, f.windows, sum) : sum;
}

bool fuse_softmax(Graph& graph, NodeId softmax) {
  Found f;
  f.softmax = softmax;
  const Dims* const dims = dims_of_value(graph, graph.output(softmax));
  const int64_t axis = graph.node(softmax).integer("axis", -1);
  if (!dims || (axis != -1 && axis != static_cast<int64_t>(dims->size()) - 1)) return false;
  if (!match_scores(graph, f) || !match_values(graph, f) || !match_product(graph, f)) return false;
  const size_t nodes = graph.node_capacity();
  if (graph.node(f.product).integer("transB", 0) == 0) f.k = untransposed(graph, f.k);
  const bool fresh = graph.node_capacity() > nodes;
  const ValueId transposed_back = f.k;
  if (f.k == kNone || !dims4(graph, f.k)) return false;
  share_heads(graph, f);
  if (!agrees(graph, f)) {
    if (fresh) graph.remove(graph.producer(transposed_back));
    return false;
  }

  const Dims scores = *dims4(graph, graph.output(softmax));
  f.nodes.push_back(f.product);
  f.nodes.push_back(softmax);
  std::ranges::sort(f.nodes);
  Patch patch(graph, f.nodes);
  Attributes attributes{{"scale", f.scale}};
  if (f.masked_to_zero) attributes["masked_to_zero"] = int64_t{1};
  if (f.heads_inside) attributes["heads_inside"] = int64_t{1};
  if (f.head_scale != kNone) f.q = patch.add(Op::kMul, {f.q, f.head_scale}, {});
  const ValueId mask = joined_mask(graph, patch, f, scores);
  patch.replace(f.result, patch.add(Op::kAttention, {f.q, f.k, f.v, mask}, std::move(attributes)));
  return true;
}

}  // namespace

Result<bool> FuseAttention::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId softmax : graph.nodes(Op::kSoftmax)) changed |= fuse_softmax(graph, softmax);
  if (changed) SERIN_CHECK(DeadCode().run(graph));
  return changed;
}

}  // namespace serin::graph

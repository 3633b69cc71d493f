// selection_operators.cc: gathering, scattering, sorting, boxes.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/tensorflow/operators.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

using List = std::vector<int64_t>;

/// With batch_dims the first axes of both operands are paired. That is a GatherND if the axis follows them.
void gather_in_batches(NodeImport& n, int64_t axis, size_t batch) {
  graph::Builder& b = n.builder();
  const auto index_dims = n.dims(1);
  if (static_cast<size_t>(axis) < batch || index_dims->size() < batch) return n.corrupt("batch_dims beyond the axis");
  if (static_cast<size_t>(axis) != batch) return n.unsupported("batch_dims with another axis");
  const ValueId indices = b.unsqueeze(b.cast(n.in(1), DType::kInt64), {static_cast<int64_t>(index_dims->size())});
  n.out(b.add(Op::kGatherND, {n.in(0), indices}, {{"batch_dims", static_cast<int64_t>(batch)}}));
}

/// Embedding layers write Where(i < 0, i + rows, i); Gather counts from the end by itself.
ValueId without_wrapping(NodeImport& n, ValueId indices, std::optional<int64_t> rows) {
  const graph::Graph& graph = n.scope().graph();
  const graph::NodeId where = graph.producer(indices);
  if (!rows || !graph.is(where, Op::kWhere)) return indices;
  const graph::NodeId less = graph.producer(graph.input(where, 0)), sum = graph.producer(graph.input(where, 1));
  const ValueId plain = graph.input(where, 2);
  const auto is_number = [&](ValueId id, int64_t number) { return n.builder().known_integers(id) == List{number}; };
  const bool wraps = graph.is(less, Op::kLess) && graph.input(less, 0) == plain && is_number(graph.input(less, 1), 0) &&
                     graph.is(sum, Op::kAdd) && graph.input(sum, 0) == plain && is_number(graph.input(sum, 1), *rows);
  return wraps ? plain : indices;
}

void import_gather(NodeImport& n, Op op) {
  const auto rank = n.rank(0);
  const List axis = n.inputs() > 2 ? n.needed(2, "axes") : List{0};
  if (!rank || axis.size() != 1 || !n.rank(1)) return n.unsupported("an unknown axis");
  const int64_t at = n.axis(axis[0], *rank);
  const int64_t batch =
      n.integer("batch_dims", 0) < 0 ? n.integer("batch_dims", 0) + static_cast<int64_t>(*n.rank(1)) : n.integer("batch_dims", 0);
  if (batch < 0 || batch > static_cast<int64_t>(*rank)) return n.corrupt("batch_dims beyond the rank");
  if (batch > 0) return gather_in_batches(n, at, static_cast<size_t>(batch));
  const ValueId indices = without_wrapping(n, n.in(1), n.builder().size(n.in(0), static_cast<size_t>(at)));
  n.out(n.builder().add(op, {n.in(0), indices}, {{"axis", at}}));
}

void import_gather_nd(NodeImport& n, Op op) {
  n.out(n.builder().add(op, {n.in(0), n.builder().cast(n.in(1), DType::kInt64)}, {{"batch_dims", n.integer("batch_dims", 0)}}));
}

/// Operands: indices, depth, on value, off value.
void import_one_hot(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const ValueId on = b.reshape(n.in(2), {1}), off = b.reshape(n.in(3), {1});
  const ValueId values = b.add(Op::kConcat, {off, on}, {{"axis", int64_t{0}}});
  // Indices below zero count from the end in the canonical operator, and match nothing here.
  const ValueId indices = b.cast(n.in(0), DType::kInt64);
  const ValueId depth = b.cast(n.in(1), DType::kInt64);
  const ValueId none = b.add(Op::kLess, {indices, b.number(DType::kInt64, 0)});
  const ValueId kept = b.add(Op::kWhere, {none, depth, indices});
  n.out(b.add(op, {kept, depth, values}, {{"axis", n.integer("axis", -1)}}));
}

void import_top_k(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const ValueId k = n.inputs() > 1 ? b.reshape(b.cast(n.in(1), DType::kInt64), {1}) : b.integers({n.integer("k", 0)});
  const auto results = b.add_with_results(op, 2, {n.in(0), k}, {{"axis", int64_t{-1}}, {"largest", int64_t{1}}, {"sorted", int64_t{1}}});
  n.out(results[0]);
  n.out(b.cast(results[1], n.dtype_attr("index_type", DType::kInt32)));
}

/// The places of what is not zero, one row for each.
void import_where(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  n.out(b.transpose(b.add(Op::kNonZero, {n.in(0)}), {1, 0}));
}

void import_scatter_update(NodeImport& n, Op op) {
  const std::string reduction = n.def().op == "TensorScatterAdd"   ? "add"
                                : n.def().op == "TensorScatterMax" ? "max"
                                : n.def().op == "TensorScatterMin" ? "min"
                                                                   : "none";
  n.out(n.builder().add(op, {n.in(0), n.builder().cast(n.in(1), DType::kInt64), n.in(2)}, {{"reduction", reduction}}));
}

/// Operands: indices, updates, the shape of the result.
void import_scatter(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const ValueId zeros = b.add(Op::kExpand, {b.number(n.dtype(1), 0), n.i64(2)});
  n.out(b.add(op, {zeros, b.cast(n.in(0), DType::kInt64), n.in(1)}, {{"reduction", std::string("add")}}));
}

void import_unique(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const auto results = b.add_with_results(op, 4, {n.in(0)}, {{"sorted", int64_t{0}}});
  n.out(results[0]);
  n.out(b.cast(results[2], n.dtype_attr("out_idx", DType::kInt32)));
  n.out(b.cast(results[3], n.dtype_attr("out_idx", DType::kInt32)));
}

/// A band around the diagonal: the upper triangle of the lower triangle.
void import_band_part(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const List lower = n.needed(1, "diagonals"), upper = n.needed(2, "diagonals");
  if (lower.size() != 1 || upper.size() != 1) return n.unsupported("unknown diagonals");
  const auto diagonal = [&b](int64_t k) { return b.constant(graph::make_constant(DType::kInt64, Shape{}, &k)); };
  const bool truth = n.dtype(0) == DType::kBool;
  ValueId x = truth ? b.cast(n.in(0), DType::kInt32) : n.in(0);
  if (upper[0] >= 0) x = b.add(op, {x, diagonal(upper[0])}, {{"upper", int64_t{0}}});
  if (lower[0] >= 0) x = b.add(op, {x, diagonal(-lower[0])}, {{"upper", int64_t{1}}});
  n.out(truth ? b.cast(x, DType::kBool) : x);
}

/// The places of the boxes that stay, as i64.
ValueId suppressed(NodeImport& n) {
  graph::Builder& b = n.builder();
  const ValueId boxes = b.unsqueeze(n.in(0), {0}), scores = b.unsqueeze(n.in(1), {0, 1});
  const ValueId most = b.reshape(b.cast(n.in(2), DType::kInt64), {1});
  const auto number = [&](size_t i) { return n.inputs() > i ? b.reshape(n.in(i), {1}) : kNone; };
  const ValueId overlap = n.inputs() > 3 ? number(3) : b.reshape(b.number(DType::kFloat32, n.number("iou_threshold", 0.5)), {1});
  const ValueId chosen = b.add(Op::kNonMaxSuppression, {boxes, scores, most, overlap, number(4)}, {{"center_point_box", int64_t{0}}});
  return b.squeeze(b.slice(chosen, 1, 2, 3), {1});
}

/// With pad_to_max_output_size zeros follow, and the number of boxes says how many count.
void import_suppression(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  if (n.inputs() > 5) {
    const graph::ConstantPtr sigma = n.scope().graph().constant(n.in(5));
    if (!sigma || graph::number_of(*sigma) != 0.0) return n.unsupported("soft suppression (soft_nms_sigma)");
  }
  ValueId chosen = suppressed(n);
  const ValueId count = b.add(Op::kShape, {chosen});
  ValueId scores = n.def().op == "NonMaxSuppressionV5" ? b.add(Op::kGather, {n.in(1), chosen}, {{"axis", int64_t{0}}}) : kNone;
  if (n.flag("pad_to_max_output_size")) {
    const ValueId missing = b.add(Op::kSub, {b.reshape(b.cast(n.in(2), DType::kInt64), {1}), count});
    const ValueId pads = b.add(Op::kConcat, {b.integers({0}), missing}, {{"axis", int64_t{0}}});
    chosen = b.add(Op::kPad, {chosen, pads}, {{"mode", std::string("constant")}});
    if (scores != kNone) scores = b.add(Op::kPad, {scores, pads}, {{"mode", std::string("constant")}});
  }
  n.out(b.cast(chosen, DType::kInt32));
  if (scores != kNone) n.out(scores);
  n.out(b.cast(b.squeeze(count, {0}), DType::kInt32));
}

/// Of each image the best boxes of all classes. The limits are single numbers.
void import_combined_suppression(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const auto number = [&](size_t i, DType dtype) { return b.reshape(b.cast(n.in(i), dtype), {}); };
  const auto results = b.add_with_results(
      op, 4, {n.in(0), n.in(1), number(2, DType::kInt64), number(3, DType::kInt64), number(4, DType::kFloat32), number(5, DType::kFloat32)},
      {{"clip_boxes", n.integer("clip_boxes", 1)}, {"pad_per_class", n.integer("pad_per_class", 0)}});
  for (const ValueId id : results) n.out(id);
}

/// The number of boundaries that are not above x.
void import_bucketize(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const Attr* const attr = n.attr("boundaries");
  const auto rank = n.rank(0);
  if (!attr || !rank) return n.unsupported("a tensor of unknown rank, or no boundaries");
  std::vector<float> boundaries;
  boundaries.reserve(attr->list.size());
  for (const Attr& each : attr->list) boundaries.push_back(each.number.value_or(0));
  const ValueId limits =
      b.constant(graph::make_constant(DType::kFloat32, Shape{static_cast<int64_t>(boundaries.size())}, boundaries.data()));
  const ValueId x = b.unsqueeze(b.cast(n.in(0), DType::kFloat32), {static_cast<int64_t>(*rank)});
  const ValueId above = b.cast(b.add(Op::kGreaterOrEqual, {x, limits}), DType::kInt32);
  n.out(b.add(Op::kReduceSum, {above}, {{"axes", List{static_cast<int64_t>(*rank)}}, {"keepdims", int64_t{0}}}));
}

/// How often each number below `size` occurs, in all or in each row; the occurrences may have weights.
void import_bincount(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const auto rank = n.rank(0);
  if (!rank || *rank < 1 || *rank > 2) return n.unsupported("a tensor that is neither a row nor rows");
  const DType to = n.dtype(2);
  const ValueId numbers = b.unsqueeze(b.cast(n.in(0), DType::kInt64), {static_cast<int64_t>(*rank)});
  const ValueId size = b.reshape(b.cast(n.in(1), DType::kInt64), {});
  const ValueId range = b.add(Op::kRange, {b.number(DType::kInt64, 0), size, b.number(DType::kInt64, 1)});
  ValueId hits = b.cast(b.add(Op::kEqual, {numbers, range}), to);
  const auto weights = n.dims(2);
  if (!weights || (weights->size() != 0 && !weights->front().known())) return n.unsupported("weights of unknown size");
  const bool weighted = weights->empty() || weights->front().value() != 0;
  if (weighted && !n.flag("binary_output")) hits = b.add(Op::kMul, {hits, b.unsqueeze(n.in(2), {static_cast<int64_t>(*rank)})});
  const Op op = n.flag("binary_output") ? Op::kReduceMax : Op::kReduceSum;
  n.out(b.add(op, {hits}, {{"axes", List{static_cast<int64_t>(*rank) - 1}}, {"keepdims", int64_t{0}}}));
}

/// The same for rows of different lengths: (places of rows)' (places of numbers).
void import_ragged_bincount(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const auto weights = n.dims(3);
  if (n.rank(0) != 1 || n.rank(1) != 1 || !weights || weights->size() != 1 || weights->front().value() != 0)
    return n.unsupported("weights of counts");
  const ValueId zero = b.number(DType::kInt64, 0), one = b.number(DType::kInt64, 1);
  const ValueId splits = b.cast(n.in(0), DType::kInt64);
  const ValueId places = b.unsqueeze(b.add(Op::kRange, {zero, b.add(Op::kSize, {n.in(1)}), one}), {0});
  const ValueId begins = b.unsqueeze(b.slice(splits, 0, 0, -1), {1}), ends = b.unsqueeze(b.slice(splits, 0, 1, INT64_MAX), {1});
  const ValueId inside = b.add(Op::kAnd, {b.add(Op::kLessOrEqual, {begins, places}), b.add(Op::kLess, {places, ends})});
  const ValueId numbers = b.unsqueeze(b.cast(n.in(1), DType::kInt64), {1});
  const ValueId range = b.add(Op::kRange, {zero, b.reshape(b.cast(n.in(2), DType::kInt64), {}), one});
  const ValueId hits = b.cast(b.add(Op::kEqual, {numbers, range}), DType::kFloat32);
  ValueId counts = b.add(Op::kMatMul, {b.cast(inside, DType::kFloat32), hits});
  if (n.flag("binary_output")) counts = b.add(Op::kClip, {counts}, {{"min", 0.0}, {"max", 1.0}});
  n.out(b.cast(counts, n.dtype(3)));
}

constexpr OperatorRow kSelection[] = {
    {"RaggedBincount", 4, 4, import_ragged_bincount},
    {"Bucketize", 1, 1, import_bucketize},
    {"CombinedNonMaxSuppression", 6, 6, import_combined_suppression, Op::kCombinedNonMaxSuppression,
     "nmsed_boxes nmsed_scores nmsed_classes valid_detections"},
    {"DenseBincount", 3, 3, import_bincount},
    {"Gather", 2, 2, import_gather, Op::kGather},
    {"GatherNd", 2, 2, import_gather_nd, Op::kGatherND},
    {"GatherV2", 3, 3, import_gather, Op::kGather},
    {"MatrixBandPart", 3, 3, import_band_part, Op::kTrilu},
    {"NonMaxSuppression", 3, 3, import_suppression},
    {"NonMaxSuppressionV2", 4, 4, import_suppression},
    {"NonMaxSuppressionV3", 5, 5, import_suppression},
    {"NonMaxSuppressionV4", 5, 5, import_suppression, Op::kIdentity, "selected_indices valid_outputs"},
    {"NonMaxSuppressionV5", 6, 6, import_suppression, Op::kIdentity, "selected_indices selected_scores valid_outputs"},
    {"OneHot", 4, 4, import_one_hot, Op::kOneHot},
    {"ScatterNd", 3, 3, import_scatter, Op::kScatterND},
    {"TensorScatterAdd", 3, 3, import_scatter_update, Op::kScatterND},
    {"TensorScatterMax", 3, 3, import_scatter_update, Op::kScatterND},
    {"TensorScatterMin", 3, 3, import_scatter_update, Op::kScatterND},
    {"TensorScatterUpdate", 3, 3, import_scatter_update, Op::kScatterND},
    {"TopK", 1, 1, import_top_k, Op::kTopK, "values indices"},
    {"TopKV2", 2, 2, import_top_k, Op::kTopK, "values indices"},
    {"Unique", 1, 1, import_unique, Op::kUnique, "y idx count"},
    {"UniqueWithCounts", 1, 1, import_unique, Op::kUnique, "y idx count"},
    {"Where", 1, 1, import_where},
};

}  // namespace

std::span<const OperatorRow> selection_operators() { return kSelection; }

}  // namespace serin::formats::tf

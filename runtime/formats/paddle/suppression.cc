// suppression.cc: multiclass_nms and matrix_nms, with the layout of their results.
//
// Both give one row (class, score, x1, y1, x2, y2) for each box that is left, image after image, and the number of rows of each image. The
// rows of an image are chosen in a dense form, [n, most], and NonZero packs those that count.

#include <limits>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

constexpr double kNever = -1e30;  // the score of what does not count

ValueId i64(Node& node, int64_t value) { return node.b.number(DType::kInt64, static_cast<double>(value)); }
ValueId first_of(Node& node, ValueId sizes, int64_t begin, int64_t end) { return node.b.slice(sizes, 0, begin, end); }
ValueId filled(Node& node, ValueId sizes, double value) { return node.binary(Op::kExpand, node.b.number(DType::kFloat32, value), sizes); }

/// The smaller of a count and the size of an axis, of rank 1; a count below 0 is no limit.
ValueId at_most(Node& node, int64_t count, ValueId size) {
  return count < 0 ? size : node.binary(Op::kMin, size, node.b.integers({count}));
}

std::vector<ValueId> top(Node& node, ValueId x, ValueId count, bool largest = true) {
  return node.b.add_with_results(Op::kTopK, 2, {x, count}, {{"axis", int64_t{-1}}, {"largest", int64_t{largest}}, {"sorted", int64_t{1}}});
}

/// Scores above the threshold of all classes but the background; kNever elsewhere. [n, c, m]
ValueId counting_scores(Node& node, ValueId scores) {
  const double threshold = node.number("score_threshold", 0);
  ValueId counts = node.with_number(Op::kGreater, scores, threshold);
  if (const int64_t background = node.integer("background_label", 0); background >= 0) {
    const ValueId classes = node.b.add(Op::kRange, {i64(node, 0), node.b.reshape(node.size_of(scores, 1), {}), i64(node, 1)});
    const ValueId others = node.unary(Op::kNot, node.binary(Op::kEqual, classes, i64(node, background)));
    counts = node.binary(Op::kAnd, counts, node.b.unsqueeze(others, {1}));
  }
  return node.b.add(Op::kWhere, {counts, scores, node.b.number(DType::kFloat32, kNever)});
}

/// The rows of all images: `score`, `label` and `box` (its place in the image) are [n, k], in the order of the rows.
void emit_rows(Node& node, ValueId boxes, ValueId score, ValueId label, ValueId box) {
  const ValueId counts = node.with_number(Op::kGreater, score, kNever / 2);
  const ValueId places = node.b.transpose(node.unary(Op::kNonZero, counts), {1, 0});  // [rows, 2]
  const ValueId image = node.b.slice(places, 1, 0, 1);
  const auto picked = [&](ValueId x) { return node.b.unsqueeze(node.binary(Op::kGatherND, x, places), {1}); };
  const ValueId chosen = picked(box);
  const ValueId corners = node.binary(Op::kGatherND, boxes, node.concat({image, chosen}, 1));
  node.out("Out", node.concat({node.b.cast(picked(label), DType::kFloat32), picked(score), corners}, 1));
  const ValueId flat = node.binary(Op::kAdd, node.binary(Op::kMul, image, node.size_of(boxes, 1)), chosen);
  node.out("Index", node.b.cast(flat, DType::kInt32));
  const ValueId total = node.unary(Op::kReduceSum, node.b.cast(counts, DType::kInt32), {{"axes", List{1}}, {"keepdims", int64_t{0}}});
  node.out("NmsRoisNum", total);
  node.out("RoisNum", total);
}

bool is_dense(Node& node, ValueId boxes, ValueId scores) {
  const bool dense = node.rank(boxes) == 3 && node.rank(scores) == 3 && node.b.size(boxes, 2) == 4 && node.all("RoisNum").empty();
  if (!dense) node.refuse("suppression of boxes in lists, or of other than four corners");
  return dense;
}

/// With corners that are pixels, a box is one larger than their difference.
ValueId measured(Node& node, ValueId boxes) {
  return node.flag("normalized", true) ? boxes : node.binary(Op::kAdd, boxes, node.floats({0, 0, 1, 1}, Shape{4}));
}

void import_multiclass_nms(Node& node, Op op) {
  const ValueId boxes = node.in("BBoxes");
  ValueId scores = node.in("Scores");
  if (!is_dense(node, boxes, scores)) return;
  if (node.number("nms_eta", 1) != 1) return node.refuse("suppression with a threshold that changes");
  scores = counting_scores(node, scores);
  if (const int64_t most = node.integer("nms_top_k", -1); most >= 0) {  // only the best of each class take part
    const ValueId best = top(node, scores, at_most(node, most, node.size_of(scores, 2)))[0];
    const ValueId last = node.unary(Op::kReduceMin, best, {{"axes", List{2}}, {"keepdims", int64_t{1}}});
    scores = node.b.add(Op::kWhere, {node.binary(Op::kGreaterOrEqual, scores, last), scores, node.b.number(DType::kFloat32, kNever)});
  }
  const ValueId chosen = node.b.add(op, {measured(node, boxes), scores, i64(node, std::numeric_limits<int32_t>::max()),
                                         node.b.number(DType::kFloat32, node.number("nms_threshold", 0.3)),
                                         node.b.number(DType::kFloat32, kNever / 2)});  // [chosen, 3]: image, class, box
  const ValueId sizes = node.shape_of(scores), count = node.size_of(scores, 2);
  const ValueId kept = node.b.add(Op::kScatterND, {filled(node, sizes, kNever), chosen, node.binary(Op::kGatherND, scores, chosen)});
  // The best of an image, then by class; equal classes keep their order, which is that of the scores.
  const ValueId flat = node.b.reshape(kept, {0, -1});
  const auto best = top(node, flat, at_most(node, node.integer("keep_top_k", -1), node.size_of(flat, 1)));
  const ValueId nothing = node.with_number(Op::kLess, best[0], kNever / 2);
  const ValueId label = node.binary(Op::kDiv, best[1], count);
  const ValueId order = top(node, node.b.add(Op::kWhere, {nothing, i64(node, int64_t{1} << 40), label}), node.size_of(label, 1), false)[1];
  const auto sorted = [&](ValueId x) { return node.binary(Op::kGatherElements, x, order, {{"axis", int64_t{1}}}); };
  emit_rows(node, boxes, sorted(best[0]), sorted(label), sorted(node.binary(Op::kMod, best[1], count)));
}

/// Overlaps of all pairs: [n, c, k, k].
ValueId overlaps(Node& node, ValueId boxes) {
  const auto part = [&](int64_t place) { return node.b.slice(boxes, 3, place, place + 1); };  // [n, c, k, 1]
  const auto across = [&](ValueId x) { return node.b.transpose(x, {0, 1, 3, 2}); };
  const auto common = [&](int64_t place) {
    const ValueId low = node.binary(Op::kMax, part(place), across(part(place))),
                  high = node.binary(Op::kMin, part(place + 2), across(part(place + 2)));
    return node.unary(Op::kRelu, node.binary(Op::kSub, high, low));
  };
  const ValueId both = node.binary(Op::kMul, common(0), common(1));
  const ValueId area = node.binary(Op::kMul, node.binary(Op::kSub, part(2), part(0)), node.binary(Op::kSub, part(3), part(1)));
  return node.binary(Op::kDiv, both, node.binary(Op::kSub, node.binary(Op::kAdd, area, across(area)), both));
}

/// Scores decay by the overlap with better boxes, which in turn count less the more they overlap with better ones themselves.
ValueId decay_of(Node& node, ValueId boxes) {
  const ValueId better = node.b.cast(node.b.add(Op::kTrilu,
                                                {node.binary(Op::kExpand, node.b.number(DType::kFloat32, 1),
                                                             node.concat({node.size_of(boxes, 2), node.size_of(boxes, 2)}, 0)),
                                                 i64(node, -1)},
                                                {{"upper", int64_t{0}}}),
                                     DType::kBool);  // [k, k]: the column is the better one
  const ValueId zero = node.b.number(DType::kFloat32, 0), one = node.b.number(DType::kFloat32, 1);
  const ValueId overlap = node.b.add(Op::kWhere, {better, overlaps(node, boxes), zero});
  const ValueId largest = node.unary(Op::kReduceMax, overlap, {{"axes", List{3}}, {"keepdims", int64_t{1}}});
  const ValueId others = node.b.transpose(largest, {0, 1, 3, 2});
  ValueId decay = kNone;
  if (node.flag("use_gaussian")) {
    const ValueId difference = node.binary(Op::kSub, node.binary(Op::kMul, others, others), node.binary(Op::kMul, overlap, overlap));
    decay = node.unary(Op::kExp, node.with_number(Op::kMul, difference, node.number("gaussian_sigma", 2)));
  } else {
    decay = node.binary(Op::kDiv, node.binary(Op::kSub, one, overlap), node.binary(Op::kSub, one, others));
  }
  return node.unary(Op::kReduceMin, node.b.add(Op::kWhere, {better, decay, one}), {{"axes", List{3}}, {"keepdims", int64_t{0}}});
}

void import_matrix_nms(Node& node, Op op) {
  const ValueId boxes = node.in("BBoxes");
  ValueId scores = node.in("Scores");
  if (!is_dense(node, boxes, scores)) return;
  scores = counting_scores(node, scores);
  const auto best = top(node, scores, at_most(node, node.integer("nms_top_k", -1), node.size_of(scores, 2)));  // [n, c, k]
  // The corners of each: [n, c, k, 4].
  const ValueId places = node.b.unsqueeze(best[1], {3});
  const ValueId sizes = node.concat({node.shape_of(best[1]), node.b.integers({4})}, 0);
  const ValueId wide = node.concat({first_of(node, node.shape_of(best[1]), 0, 2), node.size_of(boxes, 1), node.b.integers({4})}, 0);
  const ValueId spread = node.binary(Op::kExpand, node.b.unsqueeze(measured(node, boxes), {1}), wide);
  const ValueId corners = node.binary(op, spread, node.binary(Op::kExpand, places, sizes), {{"axis", int64_t{2}}});
  const ValueId decayed = node.binary(Op::kMul, best[0], decay_of(node, corners));
  const ValueId counts = node.binary(Op::kAnd, node.with_number(Op::kGreater, best[0], kNever / 2),
                                     node.with_number(Op::kGreater, decayed, node.number("post_threshold", 0)));
  const ValueId final_scores = node.b.reshape(node.b.add(Op::kWhere, {counts, decayed, node.b.number(DType::kFloat32, kNever)}), {0, -1});
  const auto kept = top(node, final_scores, at_most(node, node.integer("keep_top_k", -1), node.size_of(final_scores, 1)));
  const ValueId box = node.binary(Op::kGatherElements, node.b.reshape(best[1], {0, -1}), kept[1], {{"axis", int64_t{1}}});
  emit_rows(node, boxes, kept[0], node.binary(Op::kDiv, kept[1], node.size_of(best[1], 2)), box);
}

constexpr OperatorRow kSuppressionRows[] = {
    {"matrix_nms", "matrix_nms", "BBoxes Scores", "Out Index RoisNum", import_matrix_nms, Op::kGatherElements},
    {"multiclass_nms multiclass_nms2 multiclass_nms3", "multiclass_nms3", "BBoxes Scores RoisNum", "Out Index NmsRoisNum",
     import_multiclass_nms, Op::kNonMaxSuppression},
};

}  // namespace

std::span<const OperatorRow> suppression_operators() { return kSuppressionRows; }

}  // namespace serin::formats::paddle

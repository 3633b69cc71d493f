// suppression.cc: multiclass_nms, matrix_nms and generate_proposals, with the layout of their results.
//
// Both give one row (class, score, x1, y1, x2, y2) for each box that is left, image after image, and the number of rows of each image. The
// rows of an image are chosen in a dense form, [n, most], and NonZero packs those that count.

#include <cmath>
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

/// What is left of each image, best first or by class: [n, k] each.
struct Chosen {
  ValueId score, label, box;  ///< `box`: its place among the boxes of the image
};

/// The rows of all images, in the order of `chosen`. `by_class`: boxes are [m, c, 4], a box for each class, instead of [n, m, 4].
void emit_rows(Node& node, ValueId boxes, const Chosen& chosen, bool by_class = false) {
  const ValueId counts = node.with_number(Op::kGreater, chosen.score, kNever / 2);
  const ValueId places = node.b.transpose(node.unary(Op::kNonZero, counts), {1, 0});  // [rows, 2]
  const ValueId image = node.b.slice(places, 1, 0, 1);
  const auto picked = [&](ValueId x) { return node.b.unsqueeze(node.binary(Op::kGatherND, x, places), {1}); };
  const ValueId label = picked(chosen.label), box = picked(chosen.box);
  const ValueId corners = node.binary(Op::kGatherND, boxes, by_class ? node.concat({box, label}, 1) : node.concat({image, box}, 1));
  node.out("Out", node.concat({node.b.cast(label, DType::kFloat32), picked(chosen.score), corners}, 1));
  if (node.wants("Index")) {
    if (by_class) return node.refuse("the places of boxes that each class has its own of");
    const ValueId flat = node.binary(Op::kAdd, node.binary(Op::kMul, image, node.size_of(boxes, 1)), box);
    node.out("Index", node.b.cast(flat, DType::kInt32));
  }
  const ValueId total = node.unary(Op::kReduceSum, node.b.cast(counts, DType::kInt32), {{"axes", List{1}}, {"keepdims", int64_t{0}}});
  node.out("NmsRoisNum", total);
  node.out("RoisNum", total);
}

bool is_dense(Node& node, ValueId boxes, ValueId scores) {
  return node.rank(boxes) == 3 && node.rank(scores) == 3 && node.b.size(boxes, 2) == 4 && node.all("RoisNum").empty();
}

/// With corners that are pixels, a box is one larger than their difference.
ValueId measured(Node& node, ValueId boxes) {
  return node.flag("normalized", true) ? boxes : node.binary(Op::kAdd, boxes, node.floats({0, 0, 1, 1}, Shape{4}));
}

/// Only the best of each class take part.
ValueId best_of_class(Node& node, ValueId scores) {
  const int64_t most = node.integer("nms_top_k", -1);
  if (most < 0) return scores;
  const ValueId best = top(node, scores, at_most(node, most, node.size_of(scores, 2)))[0];
  const ValueId last = node.unary(Op::kReduceMin, best, {{"axes", List{2}}, {"keepdims", int64_t{1}}});
  return node.b.add(Op::kWhere, {node.binary(Op::kGreaterOrEqual, scores, last), scores, node.b.number(DType::kFloat32, kNever)});
}

/// Scores of the boxes that are left, kNever for the others; of the shape of `scores`.
ValueId suppressed(Node& node, ValueId boxes, ValueId scores) {
  const ValueId chosen =
      node.b.add(Op::kNonMaxSuppression, {measured(node, boxes), scores, i64(node, std::numeric_limits<int32_t>::max()),
                                          node.b.number(DType::kFloat32, node.number("nms_threshold", 0.3)),
                                          node.b.number(DType::kFloat32, kNever / 2)});  // [chosen, 3]: image, class, box
  return node.b.add(Op::kScatterND, {filled(node, node.shape_of(scores), kNever), chosen, node.binary(Op::kGatherND, scores, chosen)});
}

/// The best of each image, then by class; within a class by score, or by place in a list. `flat`: [n, c * m], `count`: m.
Chosen best_by_class(Node& node, ValueId flat, ValueId count, bool by_place = false) {
  const auto best = top(node, flat, at_most(node, node.integer("keep_top_k", -1), node.size_of(flat, 1)));
  const ValueId nothing = node.with_number(Op::kLess, best[0], kNever / 2);
  const ValueId label = node.binary(Op::kDiv, best[1], count);
  const ValueId order = top(node, node.b.add(Op::kWhere, {nothing, i64(node, int64_t{1} << 40), by_place ? best[1] : label}),
                            node.size_of(label, 1), false)[1];
  const auto sorted = [&](ValueId x) { return node.binary(Op::kGatherElements, x, order, {{"axis", int64_t{1}}}); };
  return {sorted(best[0]), sorted(label), sorted(node.binary(Op::kMod, best[1], count))};
}

/// Boxes in a list, as many of each image as RoisNum says, one for each class: [m, c, 4], with scores [m, c]. Each image sees all of them, but
/// only its own count.
void import_nms_of_list(Node& node, ValueId boxes, ValueId scores) {
  const ValueId counts = node.in("RoisNum"), count = node.size_of(boxes, 0), images = node.size_of(counts, 0);
  const ValueId image = image_of_regions(node, boxes, counts);
  const ValueId places = node.b.add(Op::kRange, {i64(node, 0), node.b.reshape(images, {}), i64(node, 1)});
  const ValueId mine =
      node.b.unsqueeze(node.binary(Op::kEqual, node.b.unsqueeze(places, {1}), node.b.unsqueeze(image, {0})), {1});  // [n, 1, m]
  const ValueId own =
      node.b.add(Op::kWhere, {mine, node.b.unsqueeze(node.b.transpose(scores, {1, 0}), {0}), node.b.number(DType::kFloat32, kNever)});
  const ValueId all = best_of_class(node, counting_scores(node, own));  // [n, c, m]
  const ValueId wide = node.concat({first_of(node, node.shape_of(all), 0, 3), node.b.integers({4})}, 0);
  const ValueId spread = node.binary(Op::kExpand, node.b.unsqueeze(node.b.transpose(boxes, {1, 0, 2}), {0}), wide);
  const auto with_sizes = [&](ValueId x, std::vector<ValueId> behind) {
    behind.insert(behind.begin(), node.b.integers({-1}));
    return node.b.add(Op::kReshape, {x, node.concat(std::move(behind), 0)});
  };
  const ValueId kept =
      suppressed(node, with_sizes(spread, {count, node.b.integers({4})}), with_sizes(all, {node.b.integers({1}), count}));  // [n * c, 1, m]
  const ValueId flat = node.b.add(Op::kReshape, {kept, node.concat({images, node.b.integers({-1})}, 0)});
  emit_rows(node, boxes, best_by_class(node, flat, count, true), true);
}

void import_multiclass_nms(Node& node, Op /*op*/) {
  const ValueId boxes = node.in("BBoxes"), scores = node.in("Scores");
  if (node.number("nms_eta", 1) != 1) return node.refuse("suppression with a threshold that changes");
  if (node.rank(boxes) == 3 && node.rank(scores) == 2 && node.b.size(boxes, 2) == 4) return import_nms_of_list(node, boxes, scores);
  if (!is_dense(node, boxes, scores)) return node.refuse("suppression of boxes with other than four corners");
  const ValueId kept = suppressed(node, boxes, best_of_class(node, counting_scores(node, scores)));
  emit_rows(node, boxes, best_by_class(node, node.b.reshape(kept, {0, -1}), node.size_of(scores, 2)));
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
  if (!is_dense(node, boxes, scores)) return node.refuse("suppression of boxes with other than four corners");
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
  emit_rows(node, boxes, {kept[0], node.binary(Op::kDiv, kept[1], node.size_of(best[1], 2)), box});
}

/// Corners of the boxes that deltas make of anchors, within the image. [n, k, 4]
ValueId decoded(Node& node, ValueId anchors, ValueId deltas, ValueId variances, ValueId sizes) {
  const double extra = node.flag("pixel_offset", true) ? 1 : 0, largest = std::log(1000.0 / 16);
  const auto part = [&](ValueId x, int64_t place) { return node.b.slice(x, 2, place, place + 1); };
  const auto plus = [&](ValueId x, double more) { return more == 0 ? x : node.with_number(Op::kAdd, x, more); };
  const ValueId scaled = node.binary(Op::kMul, deltas, variances);
  std::vector<ValueId> corners(4);
  for (const int64_t i : {int64_t{0}, int64_t{1}}) {
    const ValueId length = plus(node.binary(Op::kSub, part(anchors, i + 2), part(anchors, i)), extra);
    const ValueId middle = node.binary(Op::kAdd, part(anchors, i), node.with_number(Op::kMul, length, 0.5));
    const ValueId centre = node.binary(Op::kAdd, node.binary(Op::kMul, part(scaled, i), length), middle);
    const ValueId extent = node.binary(
        Op::kMul, node.unary(Op::kExp, node.binary(Op::kMin, part(scaled, i + 2), node.b.number(DType::kFloat32, largest))), length);
    const ValueId half = node.with_number(Op::kMul, extent, 0.5);
    const ValueId end = node.b.unsqueeze(plus(node.b.slice(sizes, 1, 1 - i, 2 - i), -extra), {2});  // sizes are [n, 2]: height, width
    const auto within = [&](ValueId x) { return node.unary(Op::kRelu, node.binary(Op::kMin, x, end)); };
    corners[static_cast<size_t>(i)] = within(node.binary(Op::kSub, centre, half));
    corners[static_cast<size_t>(i) + 2] = within(plus(node.binary(Op::kAdd, centre, half), -extra));
  }
  return node.concat(corners, 2);
}

/// Boxes that are large enough and whose centre is in the image: bool [n, k].
ValueId useful(Node& node, ValueId boxes, ValueId sizes) {
  const double extra = node.flag("pixel_offset", true) ? 1 : 0, least = std::max(node.number("min_size", 0.1), 1.0);
  ValueId all = kNone;
  for (const int64_t i : {int64_t{0}, int64_t{1}}) {
    const ValueId low = node.b.squeeze(node.b.slice(boxes, 2, i, i + 1), {2}),
                  high = node.b.squeeze(node.b.slice(boxes, 2, i + 2, i + 3), {2});
    const ValueId length = node.binary(Op::kSub, high, low);
    ValueId good = node.with_number(Op::kGreaterOrEqual, length, least - extra);
    if (extra != 0) {
      const ValueId centre = node.binary(Op::kAdd, low, node.with_number(Op::kMul, node.with_number(Op::kAdd, length, extra), 0.5));
      good = node.binary(Op::kAnd, good, node.binary(Op::kLessOrEqual, centre, node.b.slice(sizes, 1, 1 - i, 2 - i)));
    }
    all = all == kNone ? good : node.binary(Op::kAnd, all, good);
  }
  return all;
}

/// The best regions of each image, and how many there are of each.
void import_generate_proposals(Node& node, Op op) {
  const ValueId scores = node.b.reshape(node.b.transpose(node.in("Scores"), {0, 2, 3, 1}), {0, -1});
  const ValueId deltas = node.b.reshape(node.b.transpose(node.in("BboxDeltas"), {0, 2, 3, 1}), {0, -1, 4});
  const ValueId sizes = node.in("ImShape"), anchors = node.b.reshape(node.in("Anchors"), {-1, 4}),
                variances = node.b.reshape(node.in("Variances"), {-1, 4});
  if (node.number("eta", 1) != 1 || node.number("nms_thresh", 0.5) <= 0)
    return node.refuse("proposals with a threshold that changes, or without one");
  const int64_t before = node.integer("pre_nms_topN|pre_nms_top_n", 6000), after = node.integer("post_nms_topN|post_nms_top_n", 1000);
  const auto best = top(node, scores, at_most(node, before > 0 ? before : -1, node.size_of(scores, 1)));  // [n, k]
  const auto rows = [&](ValueId table) { return node.binary(Op::kGather, table, best[1], {{"axis", int64_t{0}}}); };
  const ValueId wide = node.concat({node.shape_of(best[1]), node.b.integers({4})}, 0);
  const ValueId own =
      node.binary(Op::kGatherElements, deltas, node.binary(Op::kExpand, node.b.unsqueeze(best[1], {2}), wide), {{"axis", int64_t{1}}});
  ValueId boxes = decoded(node, rows(anchors), own, rows(variances), sizes), likely = best[0], counted = useful(node, boxes, sizes);
  // An image whose boxes are all too small has one proposal of zeros.
  const ValueId none =
      node.unary(Op::kNot, node.b.cast(node.unary(Op::kReduceMax, node.b.cast(counted, DType::kInt32), {{"axes", List{1}}}), DType::kBool));
  const ValueId all = node.b.add(Op::kRange, {i64(node, 0), node.b.reshape(node.size_of(likely, 1), {}), i64(node, 1)});
  const ValueId zero = node.b.number(DType::kFloat32, 0);
  boxes = node.b.add(Op::kWhere, {node.b.unsqueeze(none, {2}), zero, boxes});
  likely = node.b.add(Op::kWhere, {none, zero, likely});
  counted = node.binary(Op::kOr, counted, node.binary(Op::kAnd, none, node.binary(Op::kEqual, all, i64(node, 0))));
  const ValueId counting = node.b.add(Op::kWhere, {counted, likely, node.b.number(DType::kFloat32, kNever)});
  const ValueId compared = node.flag("pixel_offset", true) ? node.binary(Op::kAdd, boxes, node.floats({0, 0, 1, 1}, Shape{4})) : boxes;
  const ValueId chosen =
      node.b.add(op, {compared, node.b.unsqueeze(counting, {1}), i64(node, after > 0 ? after : std::numeric_limits<int32_t>::max()),
                      node.b.number(DType::kFloat32, node.number("nms_thresh", 0.5)), node.b.number(DType::kFloat32, kNever / 2)});
  const ValueId image = node.b.slice(chosen, 1, 0, 1), places = node.concat({image, node.b.slice(chosen, 1, 2, 3)}, 1);
  node.out("RpnRois", node.binary(Op::kGatherND, boxes, places));
  node.out("RpnRoiProbs", node.b.unsqueeze(node.binary(Op::kGatherND, likely, places), {1}));
  const ValueId images = node.b.add(Op::kRange, {i64(node, 0), node.b.reshape(node.size_of(scores, 0), {}), i64(node, 1)});
  const ValueId mine = node.b.cast(node.binary(Op::kEqual, image, node.b.unsqueeze(images, {0})), DType::kInt32);
  node.out("RpnRoisNum", node.unary(Op::kReduceSum, mine, {{"axes", List{0}}, {"keepdims", int64_t{0}}}));
}

constexpr OperatorRow kSuppressionRows[] = {
    {"generate_proposals_v2", "generate_proposals", "Scores BboxDeltas ImShape Anchors Variances", "RpnRois RpnRoiProbs RpnRoisNum",
     import_generate_proposals, Op::kNonMaxSuppression},
    {"matrix_nms", "matrix_nms", "BBoxes Scores", "Out Index RoisNum", import_matrix_nms, Op::kGatherElements},
    {"multiclass_nms multiclass_nms2 multiclass_nms3", "multiclass_nms3", "BBoxes Scores RoisNum", "Out Index NmsRoisNum",
     import_multiclass_nms},
};

}  // namespace

std::span<const OperatorRow> suppression_operators() { return kSuppressionRows; }

}  // namespace serin::formats::paddle

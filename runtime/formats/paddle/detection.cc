// detection.cc: boxes from the results of a detector, before most of them are suppressed (suppression.cc).

#include <cmath>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

ValueId times(Node& node, ValueId x, double factor) { return factor == 1 ? x : node.with_number(Op::kMul, x, factor); }

/// Numbers 0, 1 ... as f32, as many as `size` (i64 of rank 1 with one element) says.
ValueId counted(Node& node, ValueId size) {
  const ValueId end = node.b.reshape(size, {});
  return node.b.cast(node.b.add(Op::kRange, {node.b.number(DType::kInt64, 0), end, node.b.number(DType::kInt64, 1)}), DType::kFloat32);
}

/// What yolo_box is told.
struct Yolo {
  List anchors;
  int64_t classes, downsample;
  double threshold, scale, iou_factor;
  bool clip, iou_aware;
  int64_t count() const { return static_cast<int64_t>(anchors.size() / 2); }
};

/// Sizes of the image: f32 [n, 1, 1, 1] each.
struct ImageSize {
  ValueId height, width;
};

/// [n, a, h, w] of one number of each box.
ValueId entry(Node& node, ValueId x, int64_t place) { return node.b.squeeze(node.b.slice(x, 2, place, place + 1), {2}); }

/// Centres along one axis: (sigmoid(t) * scale - (scale - 1) / 2 + cell) * image / cells.
ValueId centre(Node& node, const Yolo& yolo, ValueId t, ValueId cells, int64_t axis, ValueId image) {
  const ValueId place = node.b.reshape(counted(node, cells), axis == 2 ? List{1, 1, -1, 1} : List{1, 1, 1, -1});
  ValueId x = times(node, node.unary(Op::kSigmoid, t), yolo.scale);
  if (yolo.scale != 1) x = node.with_number(Op::kSub, x, 0.5 * (yolo.scale - 1));
  x = node.binary(Op::kMul, node.binary(Op::kAdd, x, place), image);
  return node.binary(Op::kDiv, x, node.b.cast(cells, DType::kFloat32));
}

/// Lengths along one axis: exp(t) * anchor * image / (downsample * cells).
ValueId extent(Node& node, const Yolo& yolo, ValueId t, ValueId cells, size_t first, ValueId image) {
  std::vector<double> anchors;
  for (size_t i = first; i < yolo.anchors.size(); i += 2) anchors.push_back(static_cast<double>(yolo.anchors[i]));
  const ValueId scaled = node.binary(Op::kMul, node.unary(Op::kExp, t), node.floats(anchors, Shape{yolo.count(), 1, 1}));
  const ValueId input = times(node, node.b.cast(cells, DType::kFloat32), static_cast<double>(yolo.downsample));
  return node.binary(Op::kDiv, node.binary(Op::kMul, scaled, image), input);
}

/// Both ends of the boxes along one axis, within the image.
std::pair<ValueId, ValueId> ends(Node& node, const Yolo& yolo, ValueId middle, ValueId length, ValueId image) {
  const ValueId half = times(node, length, 0.5);
  ValueId low = node.binary(Op::kSub, middle, half), high = node.binary(Op::kAdd, middle, half);
  if (yolo.clip) {
    low = node.unary(Op::kRelu, low);
    high = node.binary(Op::kMin, high, node.with_number(Op::kSub, image, 1));
  }
  return {low, high};
}

void import_yolo_box(Node& node, Op /*op*/) {
  ValueId x = node.in("X");
  const Yolo yolo{node.integers("anchors").value_or(List{}),
                  node.integer("class_num", 1),
                  node.integer("downsample_ratio", 32),
                  node.number("conf_thresh", 0.01),
                  node.number("scale_x_y", 1),
                  node.number("iou_aware_factor", 0.5),
                  node.flag("clip_bbox", true),
                  node.flag("iou_aware")};
  const int64_t anchors = yolo.count();
  if (anchors < 1 || anchors > 1000 || yolo.anchors.size() % 2 != 0 || yolo.classes < 1 || yolo.classes > 1'000'000)
    return node.corrupt("anchors or classes that no detector has");
  const int64_t numbers = 5 + yolo.classes;
  if (node.rank(x) != 4) return node.corrupt("its operand is no image");
  const ValueId rows = node.size_of(x, 2), columns = node.size_of(x, 3);
  const ValueId sizes = node.b.cast(node.in("ImgSize"), DType::kFloat32);
  const auto size = [&](int64_t place) { return node.b.reshape(node.b.slice(sizes, 1, place, place + 1), {-1, 1, 1, 1}); };
  const ImageSize image{size(0), size(1)};

  ValueId overlap = kNone;
  if (yolo.iou_aware) {
    overlap = node.unary(Op::kSigmoid, node.b.slice(x, 1, 0, anchors));
    x = node.b.slice(x, 1, anchors, anchors * (numbers + 1));
  }
  const ValueId shape = node.concat({node.b.integers({0, anchors, numbers}), rows, columns}, 0);
  x = node.b.add(Op::kReshape, {x, shape});  // [n, a, 5 + classes, h, w]
  ValueId confidence = node.unary(Op::kSigmoid, entry(node, x, 4));
  if (yolo.iou_aware)
    confidence = node.binary(Op::kMul, node.with_number(Op::kPow, confidence, 1 - yolo.iou_factor),
                             node.with_number(Op::kPow, overlap, yolo.iou_factor));
  const ValueId kept =
      node.b.unsqueeze(node.b.cast(node.with_number(Op::kGreaterOrEqual, confidence, yolo.threshold), DType::kFloat32), {-1});

  const auto [left, right] = ends(node, yolo, centre(node, yolo, entry(node, x, 0), columns, 3, image.width),
                                  extent(node, yolo, entry(node, x, 2), columns, 0, image.width), image.width);
  const auto [top, bottom] = ends(node, yolo, centre(node, yolo, entry(node, x, 1), rows, 2, image.height),
                                  extent(node, yolo, entry(node, x, 3), rows, 1, image.height), image.height);
  std::vector<ValueId> corners;
  for (const ValueId corner : {left, top, right, bottom}) corners.push_back(node.b.unsqueeze(corner, {-1}));
  node.out("Boxes", node.b.reshape(node.binary(Op::kMul, node.concat(corners, -1), kept), {0, -1, 4}));
  const ValueId classes = node.b.transpose(node.unary(Op::kSigmoid, node.b.slice(x, 2, 5, numbers)), {0, 1, 3, 4, 2});
  const ValueId scores = node.binary(Op::kMul, node.binary(Op::kMul, classes, node.b.unsqueeze(confidence, {-1})), kept);
  node.out("Scores", node.b.reshape(scores, {0, -1, yolo.classes}));
}

/// Half of the width and height of each prior box at a place, in the order of the file.
std::vector<std::pair<double, double>> prior_sizes(Node& node) {
  const auto min_sizes = node.numbers("min_sizes").value_or(std::vector<double>{}),
             max_sizes = node.numbers("max_sizes").value_or(std::vector<double>{});
  std::vector<double> ratios{1.0};
  for (const double ratio : node.numbers("aspect_ratios").value_or(std::vector<double>{})) {
    const auto known = [&](double other) { return std::abs(ratio - other) < 1e-6; };
    if (std::ranges::any_of(ratios, known)) continue;
    ratios.push_back(ratio);
    if (node.flag("flip")) ratios.push_back(1 / ratio);
  }
  std::vector<std::pair<double, double>> sizes;
  for (size_t i = 0; i < min_sizes.size(); ++i) {
    const double size = min_sizes[i];
    const auto largest = [&] {
      if (i < max_sizes.size()) sizes.emplace_back(std::sqrt(size * max_sizes[i]) / 2, std::sqrt(size * max_sizes[i]) / 2);
    };
    const bool sorted = node.flag("min_max_aspect_ratios_order");
    if (sorted) sizes.emplace_back(size / 2, size / 2), largest();
    for (const double ratio : ratios) {
      if (sorted && std::abs(ratio - 1) < 1e-6) continue;
      sizes.emplace_back(size * std::sqrt(ratio) / 2, size / std::sqrt(ratio) / 2);
    }
    if (!sorted) largest();
  }
  return sizes;
}

void import_prior_box(Node& node, Op /*op*/) {
  const ValueId input = node.in("Input"), image = node.in("Image");
  const auto rows = node.b.size(input, 2), columns = node.b.size(input, 3), height = node.b.size(image, 2), width = node.b.size(image, 3);
  if (!rows || !columns || !height || !width) return node.refuse("prior boxes of an image of unknown size");
  const auto sizes = prior_sizes(node);
  if (sizes.empty() || *rows < 1 || *columns < 1 || *rows > 65536 || *columns > 65536 ||
      *rows * *columns > (int64_t{1} << 20) / static_cast<int64_t>(sizes.size()))
    return node.refuse("so many prior boxes");
  double step_w = node.number("step_w", 0), step_h = node.number("step_h", 0);
  if (step_w == 0 || step_h == 0)
    step_w = static_cast<double>(*width) / static_cast<double>(*columns),
    step_h = static_cast<double>(*height) / static_cast<double>(*rows);
  const double offset = node.number("offset", 0.5), w = static_cast<double>(*width), h = static_cast<double>(*height);
  const auto variance = node.numbers("variances").value_or(std::vector<double>{0.1, 0.1, 0.2, 0.2});
  if (variance.size() != 4) return node.corrupt("variances that are not four");
  std::vector<double> boxes, variances;
  for (int64_t y = 0; y < *rows; ++y) {
    for (int64_t x = 0; x < *columns; ++x) {
      const double cx = (static_cast<double>(x) + offset) * step_w, cy = (static_cast<double>(y) + offset) * step_h;
      for (const auto& [half_w, half_h] : sizes) {
        for (double corner : {(cx - half_w) / w, (cy - half_h) / h, (cx + half_w) / w, (cy + half_h) / h})
          boxes.push_back(node.flag("clip") ? std::min(std::max(corner, 0.0), 1.0) : corner);
        variances.insert(variances.end(), variance.begin(), variance.end());
      }
    }
  }
  const Shape shape{*rows, *columns, static_cast<int64_t>(sizes.size()), 4};
  node.out("Boxes", node.floats(boxes, shape));
  node.out("Variances", node.floats(variances, shape));
}

/// decode_center_size: offsets from prior boxes -> corners.
void import_box_coder(Node& node, Op /*op*/) {
  ValueId prior = node.in("PriorBox"), variance = node.maybe("PriorBoxVar");
  const ValueId target = node.in("TargetBox");
  if (node.text("code_type", "encode_center_size") != "decode_center_size" || node.rank(target) != 3)
    return node.refuse("box_coder that encodes");
  const double extra = node.flag("box_normalized", true) ? 0 : 1;
  const int64_t axis = node.integer("axis", 0);
  const auto along = [&](ValueId x) { return node.b.unsqueeze(x, {axis == 0 ? 0 : 1}); };  // beside the target: [1, m, 4] or [n, 1, 4]
  prior = along(prior);
  const auto part = [&](ValueId x, int64_t place) { return node.b.slice(x, 2, place, place + 1); };
  const auto size = [&](int64_t place) {
    const ValueId length = node.binary(Op::kSub, part(prior, place + 2), part(prior, place));
    return extra == 0 ? length : node.with_number(Op::kAdd, length, extra);
  };
  ValueId scaled = target;
  const auto numbers = node.numbers("variance").value_or(std::vector<double>{});
  if (variance != kNone)
    scaled = node.binary(Op::kMul, target, node.b.rank(variance) == size_t{2} ? along(variance) : variance);
  else if (numbers.size() == 4)
    scaled = node.binary(Op::kMul, target, node.floats(numbers, Shape{4}));
  std::vector<ValueId> low, high;
  for (const int64_t place : {int64_t{0}, int64_t{1}}) {
    const ValueId length = size(place);
    const ValueId middle = node.binary(Op::kAdd, part(prior, place), times(node, length, 0.5));
    const ValueId centre = node.binary(Op::kAdd, node.binary(Op::kMul, part(scaled, place), length), middle);
    const ValueId half = times(node, node.binary(Op::kMul, node.unary(Op::kExp, part(scaled, place + 2)), length), 0.5);
    low.push_back(node.binary(Op::kSub, centre, half));
    const ValueId end = node.binary(Op::kAdd, centre, half);
    high.push_back(extra == 0 ? end : node.with_number(Op::kSub, end, extra));
  }
  node.out("OutputBox", node.concat({low[0], low[1], high[0], high[1]}, 2));
}

/// Places of the elements that are true, in order.
ValueId places_of(Node& node, ValueId mask) { return node.b.squeeze(node.unary(Op::kNonZero, mask), {0}); }

/// Regions by the level of a pyramid that their size belongs to, and where each region went.
void import_distribute_fpn_proposals(Node& node, Op /*op*/) {
  const ValueId regions = node.in("FpnRois"), counts = node.maybe("RoisNum");
  const int64_t lowest = node.integer("min_level", 2), highest = node.integer("max_level", 5);
  const double extra = node.flag("pixel_offset", true) ? 1 : 0;
  if (highest < lowest || highest - lowest > 64) return node.corrupt("levels that no pyramid has");
  const auto length = [&](int64_t place) {
    const ValueId x = node.binary(Op::kSub, node.b.slice(regions, 1, place + 2, place + 3), node.b.slice(regions, 1, place, place + 1));
    return extra == 0 ? x : node.with_number(Op::kAdd, x, extra);
  };
  const ValueId area = node.unary(Op::kRelu, node.binary(Op::kMul, length(0), length(1)));
  const ValueId scale =
      node.with_number(Op::kDiv, node.b.squeeze(node.unary(Op::kSqrt, area), {1}), static_cast<double>(node.integer("refer_scale", 224)));
  const ValueId octave = node.with_number(Op::kMul, node.unary(Op::kLog, node.with_number(Op::kAdd, scale, 1e-8)), 1 / std::log(2.0));
  ValueId level = node.unary(Op::kFloor, node.with_number(Op::kAdd, octave, static_cast<double>(node.integer("refer_level", 4))));
  level = node.unary(Op::kClip, level, {{"min", static_cast<double>(lowest)}, {"max", static_cast<double>(highest)}});

  const ValueId image = image_of_regions(node, regions, counts);
  std::vector<ValueId> order, parts, totals;
  for (int64_t each = lowest; each <= highest; ++each) {
    const ValueId here = node.with_number(Op::kEqual, level, static_cast<double>(each));
    order.push_back(places_of(node, here));
    parts.push_back(node.binary(Op::kGather, regions, order.back(), {{"axis", int64_t{0}}}));
    if (counts == kNone) continue;
    const ValueId images = node.b.add(
        Op::kRange, {node.b.number(DType::kInt64, 0), node.b.reshape(node.size_of(counts, 0), {}), node.b.number(DType::kInt64, 1)});
    const ValueId mine = node.binary(Op::kEqual, node.b.unsqueeze(images, {1}), node.b.unsqueeze(image, {0}));
    const ValueId both = node.b.cast(node.binary(Op::kAnd, mine, node.b.unsqueeze(here, {0})), DType::kInt32);
    totals.push_back(node.unary(Op::kReduceSum, both, {{"axes", List{1}}, {"keepdims", int64_t{0}}}));
  }
  node.outs("MultiFpnRois", parts);
  if (!totals.empty()) node.outs("MultiLevelRoIsNum", totals);
  // The order is a permutation; its inverse sorts it.
  const ValueId all = node.concat(order, 0);
  const auto sorted = node.b.add_with_results(Op::kTopK, 2, {all, node.size_of(regions, 0)},
                                              {{"axis", int64_t{0}}, {"largest", int64_t{0}}, {"sorted", int64_t{1}}});
  node.out("RestoreIndex", node.b.unsqueeze(node.b.cast(sorted[1], DType::kInt32), {1}));
}

constexpr OperatorRow kDetectionRows[] = {
    {"box_coder", "box_coder", "PriorBox PriorBoxVar TargetBox", "OutputBox", import_box_coder},
    {"distribute_fpn_proposals", "distribute_fpn_proposals", "FpnRois RoisNum", "MultiFpnRois MultiLevelRoIsNum RestoreIndex",
     import_distribute_fpn_proposals},
    {"prior_box", "prior_box", "Input Image", "Boxes Variances", import_prior_box},
    {"yolo_box", "yolo_box", "X ImgSize", "Boxes Scores", import_yolo_box},
};

}  // namespace

std::span<const OperatorRow> detection_operators() { return kDetectionRows; }

}  // namespace serin::formats::paddle

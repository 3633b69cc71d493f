// selection_boxes.cc: NonMaxSuppression: for each class the boxes in falling order of score, each kept unless it overlaps a kept one too much.
//
// Fast enough to be the only kernel: boxes are turned into corners and areas once per image, only those above the score threshold become
// candidates, and they leave a heap one by one, so that nothing is sorted that is never looked at. A candidate is compared with the kept
// ones only. kernels/boxes.h defines boxes and scores.

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/boxes.h"
#include "kernels/ref/axes.h"
#include "kernels/ref/selection.h"

namespace serin::kernels::ref {

namespace {

struct Candidate {
  uint32_t rank;  ///< of its score
  int64_t box;
  bool operator<(const Candidate& other) const { return rank < other.rank || (rank == other.rank && box > other.box); }
};

struct Limits {
  int64_t most = 0;  ///< boxes kept in each class
  float overlap = 0, score = -std::numeric_limits<float>::infinity();
  bool scored = false;  ///< a score threshold was given: scores must be above it
};

Fault read_limits(Inputs in, Limits& limits) {
  for (size_t i = 2; i < 5; ++i) {
    if (const TensorView* x = operand(in, i); x && x->elements() > 1)
      return "operand " + std::to_string(i) + " has " + std::to_string(x->elements()) + " elements, it must be one number";
  }
  const auto given = [&](size_t i) { return operand(in, i) && in[i].elements() == 1; };
  if (given(2)) limits.most = std::max<int64_t>(0, index_at(in[2], 0));
  if (given(3)) limits.overlap = in[3].as<const float>()[0];
  limits.scored = given(4);
  if (limits.scored) limits.score = in[4].as<const float>()[0];
  return kOk;
}

/// The boxes of one class that stay, best first, appended to `kept`.
class ClassSelection {
 public:
  /// Corners in structure-of-arrays form would not help: kept boxes are few, and most candidates meet one that suppresses them early.
  void run(const std::vector<Box>& all, const float* scores, const Limits& limits, std::vector<int64_t>& kept) {
    candidates_.clear();
    for (size_t i = 0; i < all.size(); ++i) {
      if (!limits.scored || scores[i] > limits.score) candidates_.push_back({boxes::rank_of(scores[i]), static_cast<int64_t>(i)});
    }
    std::make_heap(candidates_.begin(), candidates_.end());
    while (!candidates_.empty() && static_cast<int64_t>(kept.size()) < limits.most) {
      std::pop_heap(candidates_.begin(), candidates_.end());
      const int64_t next = candidates_.back().box;
      candidates_.pop_back();
      const auto suppresses = [&](int64_t other) {
        return boxes::overlap(all[static_cast<size_t>(next)], all[static_cast<size_t>(other)], limits.overlap);
      };
      if (std::none_of(kept.begin(), kept.end(), suppresses)) kept.push_back(next);
    }
  }

 private:
  std::vector<Candidate> candidates_;
};

Fault run(bool center, Inputs in, Outputs out) {
  const int64_t batch = in[0].shape[0], count = in[0].shape[1], classes = in[1].shape[1];  // [batch, count, 4], [batch, classes, count]
  if (in[1].shape[0] != batch || in[1].shape[2] != count || in[0].shape[2] != 4)
    return "boxes of shape " + in[0].shape.str() + " and scores of shape " + in[1].shape.str() + " do not belong together";
  Limits limits;
  if (Fault fault = read_limits(in, limits)) return fault;

  ClassSelection selection;
  std::vector<Box> all(static_cast<size_t>(count));
  std::vector<int64_t> kept;
  int64_t* y = out[0].as<int64_t>();  // [kept, 3]
  int64_t rows = 0;
  for (int64_t b = 0; b < batch && limits.most > 0; ++b) {
    for (int64_t i = 0; i < count; ++i) {
      const float* box = in[0].as<const float>() + (b * count + i) * 4;
      all[static_cast<size_t>(i)] = center ? boxes::from_center(box) : boxes::from_corners(box);
    }
    for (int64_t c = 0; c < classes; ++c) {
      kept.clear();
      selection.run(all, in[1].as<const float>() + (b * classes + c) * count, limits, kept);
      for (const int64_t box : kept) {
        y = std::copy_n(std::array{b, c, box}.begin(), 3, y);
        ++rows;
      }
    }
  }
  out[0].shape = Shape{rows, 3};
  return kOk;
}

/// A box that stayed in its class.
struct Detection {
  float score;
  int64_t box, category;
};

/// Of each image the best of all classes, as TensorFlow's CombinedNonMaxSuppression: its outputs are filled up with zeros.
Fault run_combined(bool clip, Inputs in, Outputs out) {
  const int64_t batch = in[0].shape[0], count = in[0].shape[1], sets = in[0].shape[2];  // [batch, count, sets, 4]
  const int64_t classes = in[1].shape[2], room = out[0].shape[1];                       // [batch, count, classes]; [batch, room, 4]
  if (in[1].shape[0] != batch || in[1].shape[1] != count || (sets != 1 && sets != classes))
    return "boxes of shape " + in[0].shape.str() + " and scores of shape " + in[1].shape.str() + " do not belong together";
  Limits limits;
  limits.most = std::max<int64_t>(0, index_at(in[2], 0));
  limits.overlap = in[4].as<const float>()[0];
  limits.score = in[5].as<const float>()[0];
  limits.scored = true;

  ClassSelection selection;
  std::vector<Box> all(static_cast<size_t>(count));
  std::vector<float> scores(static_cast<size_t>(count));
  std::vector<int64_t> kept;
  std::vector<Detection> found;
  for (int64_t b = 0; b < batch; ++b) {
    const float* const boxes_of_image = in[0].as<const float>() + b * count * sets * 4;
    const float* const scores_of_image = in[1].as<const float>() + b * count * classes;
    found.clear();
    for (int64_t c = 0; c < classes; ++c) {
      const int64_t set = sets == 1 ? 0 : c;
      for (int64_t i = 0; i < count; ++i) {
        if (c == 0 || sets != 1) all[static_cast<size_t>(i)] = boxes::from_corners(boxes_of_image + (i * sets + set) * 4);
        scores[static_cast<size_t>(i)] = scores_of_image[i * classes + c];
      }
      kept.clear();
      selection.run(all, scores.data(), limits, kept);
      for (const int64_t box : kept) found.push_back({scores[static_cast<size_t>(box)], box, c});
    }
    std::ranges::stable_sort(found, std::greater<>(), [](const Detection& each) { return boxes::rank_of(each.score); });
    const int64_t valid = std::min<int64_t>(room, static_cast<int64_t>(found.size()));
    float *box_to = out[0].as<float>() + b * room * 4, *score_to = out[1].as<float>() + b * room, *class_to = out[2].as<float>() + b * room;
    for (int64_t i = 0; i < room; ++i) {
      const Detection* const each = i < valid ? &found[static_cast<size_t>(i)] : nullptr;
      const float* const box = each ? boxes_of_image + (each->box * sets + (sets == 1 ? 0 : each->category)) * 4 : nullptr;
      for (int64_t side = 0; side < 4; ++side) *box_to++ = !box ? 0.0F : clip ? std::clamp(box[side], 0.0F, 1.0F) : box[side];
      *score_to++ = each ? each->score : 0.0F;
      *class_to++ = each ? static_cast<float>(each->category) : 0.0F;
    }
    out[3].as<int32_t>()[b] = static_cast<int32_t>(valid);
  }
  return kOk;
}

}  // namespace

/// Operands: boxes, scores, most boxes of a class, most of all, overlap, least score. Outputs: boxes, scores, classes, their number.
Prepared combined_non_max_suppression(const GenericDesc& desc, std::string& why) {
  const auto is = [&](size_t i, DType dtype, size_t rank) { return desc.inputs[i].dtype == dtype && desc.inputs[i].shape.rank() == rank; };
  if (desc.inputs.size() != 6 || !is(0, DType::kFloat32, 4) || !is(1, DType::kFloat32, 3))
    return refuse(why, "boxes and scores must be f32 of rank 4 and 3");
  if (!is(2, DType::kInt64, 0) || !is(3, DType::kInt64, 0) || !is(4, DType::kFloat32, 0) || !is(5, DType::kFloat32, 0))
    return refuse(why, "limits must be i64, thresholds f32, and all of them single numbers");
  const bool clip = desc.attributes.integer("clip_boxes", 1) != 0;
  return make_kernel([clip](Stream&, Inputs in, Outputs out) -> Fault { return run_combined(clip, in, out); });
}

Prepared non_max_suppression(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].shape.rank() != 3 || desc.inputs[1].shape.rank() != 3) return refuse(why, "boxes and scores must have rank 3");
  const auto is = [&](size_t i, DType dtype) { return !desc.has(i) || desc.inputs[i].dtype == dtype; };
  if (!is(0, DType::kFloat32) || !is(1, DType::kFloat32) || !is(2, DType::kInt64) || !is(3, DType::kFloat32) || !is(4, DType::kFloat32))
    return refuse(why, "boxes, scores and thresholds must be f32, the limit i64");
  const bool center = desc.attributes.integer("center_point_box", 0) != 0;
  return make_kernel([center](Stream&, Inputs in, Outputs out) -> Fault { return run(center, in, out); });
}

}  // namespace serin::kernels::ref

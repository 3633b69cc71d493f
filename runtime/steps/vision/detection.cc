// detection.cc: rows of scores are read in blocks, so that a head with its columns first is read along its memory, too.

#include "runtime/steps/vision/detection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "runtime/steps/vision/greatest.h"

namespace serin::steps {
namespace {

constexpr int64_t kMostColumns = 1 << 20;
constexpr int64_t kBlock = 128;  // rows transposed at a time: a block of usual width stays in the second cache

Status check_matrix(const Matrix& matrix, std::string_view name, int64_t least_columns) {
  if (matrix.rows < 0 || matrix.columns < least_columns || matrix.columns > kMostColumns)
    return invalid(
        fmt::format("{} [{}, {}]: a row needs from {} to {} columns", name, matrix.rows, matrix.columns, least_columns, kMostColumns));
  const auto size = static_cast<int64_t>(matrix.values.size());
  const bool fits = matrix.rows == 0 ? size == 0 : size % matrix.rows == 0 && size / matrix.rows == matrix.columns;
  if (!fits) return invalid(fmt::format("{} [{}, {}]: the tensor has {} values", name, matrix.rows, matrix.columns, size));
  return {};
}

/// The rows of a matrix, one after the other.
class HeadRows {
 public:
  HeadRows(const Matrix& matrix, bool columns_first) : matrix_(matrix), columns_first_(columns_first) {
    if (columns_first_) block_.resize(static_cast<size_t>(std::min(kBlock, matrix.rows) * matrix.columns));
  }

  /// Valid until the next call.
  std::span<const float> row(int64_t index) {
    const auto columns = static_cast<size_t>(matrix_.columns);
    if (!columns_first_) return matrix_.values.subspan(static_cast<size_t>(index) * columns, columns);
    if (index / kBlock != held_) hold(index / kBlock);
    return std::span<const float>(block_).subspan(static_cast<size_t>(index % kBlock) * columns, columns);
  }

 private:
  void hold(int64_t block) {
    held_ = block;
    const int64_t first = block * kBlock, count = std::min(kBlock, matrix_.rows - first);
    for (int64_t column = 0; column < matrix_.columns; ++column) {
      const float* const from = matrix_.values.data() + column * matrix_.rows + first;
      for (int64_t i = 0; i < count; ++i) block_[static_cast<size_t>(i * matrix_.columns + column)] = from[i];
    }
  }

  Matrix matrix_;
  bool columns_first_;
  int64_t held_ = -1;
  std::vector<float> block_;
};

/// Scores of classes after their activation.
class Activated {
 public:
  explicit Activated(const HeadOptions& options) : activation_(options.activation) {
    const float threshold = options.score_threshold;
    if (activation_ == Activation::kSigmoid && threshold > 0 && threshold < 1) least_ = std::log(threshold / (1 - threshold)) - kMargin;
  }

  /// Valid until the next call. Empty: none of them can be above the threshold, which saves the exponentials of most rows.
  std::span<const float> operator()(std::span<const float> row) {
    if (activation_ == Activation::kNone) return row;
    const float greatest = greatest_of(row).value;
    if (greatest < least_) return {};
    made_.resize(row.size());
    if (activation_ == Activation::kSigmoid) {
      std::ranges::transform(row, made_.begin(), [this](float x) { return x < least_ ? 0.F : 1.F / (1.F + std::exp(-x)); });
    } else {
      float sum = 0;
      for (size_t i = 0; i < row.size(); ++i) sum += made_[i] = std::exp(row[i] - greatest);
      for (float& value : made_) value /= sum;
    }
    return made_;
  }

 private:
  static constexpr float kMargin = 0.01F;  // for what rounding does near the threshold
  Activation activation_;
  float least_ = -std::numeric_limits<float>::infinity();
  std::vector<float> made_;
};

void keep_best(std::vector<Detection>& detections, size_t most) {
  std::ranges::stable_sort(detections, std::ranges::greater(), &Detection::score);
  if (detections.size() > most) detections.resize(most);
}

bool is_finite(const Detection& found) {
  return std::isfinite(found.score) && std::isfinite(found.x1) && std::isfinite(found.y1) && std::isfinite(found.x2) &&
         std::isfinite(found.y2);
}

/// Candidates as they are read. At times those with low scores are thrown away, so that their number stays below 2 x most.
class Candidates {
 public:
  explicit Candidates(const HeadOptions& options)
      : options_(options), most_(std::max<size_t>(options.most, 1)), threshold_(options.score_threshold) {}

  /// `scores` are those of the classes; `weight` multiplies each.
  void add(std::span<const float> box, std::span<const float> scores, float weight) {
    if (options_.every_class) {
      for (size_t i = 0; i < scores.size(); ++i) add_one(box, i, scores[i] * weight);
    } else {
      const Greatest best = greatest_of(scores);
      add_one(box, best.index, best.value * weight);
    }
  }

  std::vector<Detection> take() {
    keep_best(found_, most_);
    return std::move(found_);
  }

 private:
  void add_one(std::span<const float> box, size_t label, float score) {
    if (!(score > threshold_)) return;  // NaN is not
    const Detection found = placed(box, label, score);
    if (!is_finite(found)) return;
    found_.push_back(found);
    if (found_.size() / 2 < most_) return;
    keep_best(found_, most_);
    threshold_ = found_.back().score;  // one that comes later and is not better has no place
  }

  Detection placed(std::span<const float> box, size_t label, float score) const {
    Detection found{.label = static_cast<int64_t>(label), .score = score, .x1 = box[0], .y1 = box[1], .x2 = box[2], .y2 = box[3]};
    if (options_.form == BoxForm::kCornerSize) found.x2 += found.x1, found.y2 += found.y1;
    if (options_.form == BoxForm::kCentre) {
      found.x1 = box[0] - box[2] / 2, found.x2 = box[0] + box[2] / 2;
      found.y1 = box[1] - box[3] / 2, found.y2 = box[1] + box[3] / 2;
    }
    found.x1 *= options_.scale_x, found.x2 *= options_.scale_x;
    found.y1 *= options_.scale_y, found.y2 *= options_.scale_y;
    return found;
  }

  HeadOptions options_;
  size_t most_;
  float threshold_;
  std::vector<Detection> found_;
};

float overlap(const Detection& a, const Detection& b) {
  const float width = std::max(0.F, std::min(a.x2, b.x2) - std::max(a.x1, b.x1));
  const float height = std::max(0.F, std::min(a.y2, b.y2) - std::max(a.y1, b.y1));
  const float both = width * height;
  return both / ((a.x2 - a.x1) * (a.y2 - a.y1) + (b.x2 - b.x1) * (b.y2 - b.y1) - both);
}

}  // namespace

Result<std::vector<Detection>> read_joined_head(const Matrix& head, const HeadOptions& options) {
  const size_t first = options.objectness ? 5 : 4, background = options.last_is_background ? 1 : 0;
  SERIN_CHECK(check_matrix(head, "the detector's output", static_cast<int64_t>(first + 1 + background)));
  HeadRows rows(head, options.columns_first);
  Candidates candidates(options);
  Activated activated(options);
  for (int64_t i = 0; i < head.rows; ++i) {
    const std::span<const float> row = rows.row(i);
    const std::span<const float> scores = activated(row.subspan(first));
    if (scores.empty()) continue;
    float weight = options.objectness ? row[4] : 1;
    if (options.objectness && options.activation == Activation::kSigmoid) weight = 1.F / (1.F + std::exp(-weight));
    candidates.add(row.first(4), scores.first(scores.size() - background), weight);
  }
  return candidates.take();
}

Result<std::vector<Detection>> read_split_head(const Matrix& boxes, const Matrix& scores, const HeadOptions& options) {
  const size_t background = options.last_is_background ? 1 : 0;
  SERIN_CHECK(check_matrix(boxes, "the boxes", 4));
  SERIN_CHECK(check_matrix(scores, "the scores", static_cast<int64_t>(1 + background)));
  if (boxes.columns != 4) return invalid(fmt::format("the boxes [{}, {}] need 4 columns", boxes.rows, boxes.columns));
  if (boxes.rows != scores.rows) return invalid(fmt::format("there are {} boxes and scores of {}", boxes.rows, scores.rows));
  HeadRows rows(scores, options.columns_first);
  Candidates candidates(options);
  Activated activated(options);
  for (int64_t i = 0; i < boxes.rows; ++i) {
    const std::span<const float> row = activated(rows.row(i));
    if (!row.empty()) candidates.add(boxes.values.subspan(static_cast<size_t>(4 * i), 4), row.first(row.size() - background), 1);
  }
  return candidates.take();
}

Result<std::vector<Detection>> read_final_rows(const Matrix& rows, float score_threshold, size_t most) {
  SERIN_CHECK(check_matrix(rows, "the detector's rows", 6));
  if (rows.columns != 6) return invalid(fmt::format("the detector's rows [{}, {}] need 6 columns", rows.rows, rows.columns));
  std::vector<Detection> found;
  for (size_t i = 0; i < rows.values.size(); i += 6) {
    const std::span<const float> row = rows.values.subspan(i, 6);
    if (!(row[0] >= 0) || row[0] > 1e9F || !(row[1] > score_threshold)) continue;
    const Detection one{.label = std::lrintf(row[0]), .score = row[1], .x1 = row[2], .y1 = row[3], .x2 = row[4], .y2 = row[5]};
    if (is_finite(one)) found.push_back(one);
  }
  keep_best(found, most);
  return found;
}

std::vector<Detection> suppress(std::vector<Detection> detections, const SuppressOptions& options) {
  std::erase_if(detections, [](const Detection& one) { return !is_finite(one); });
  std::ranges::stable_sort(detections, std::ranges::greater(), &Detection::score);
  std::vector<Detection> kept;
  for (const Detection& one : detections) {
    if (kept.size() >= options.most) break;
    const auto suppresses = [&](const Detection& better) {
      return (options.across_labels || better.label == one.label) && overlap(better, one) > options.iou;
    };
    if (std::ranges::none_of(kept, suppresses)) kept.push_back(one);
  }
  return kept;
}

}  // namespace serin::steps

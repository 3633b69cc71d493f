// detection.cc: rows of scores are read in blocks, so that a head with its columns first is read along its memory, too.

#include "runtime/steps/vision/detection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace serin::steps {
namespace {

constexpr int64_t kMostColumns = 1 << 20;
constexpr int64_t kBlock = 64;  // rows transposed at a time: a block of usual width stays in the first cache

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

void activate(std::span<const float> from, Activation activation, std::vector<float>& to) {
  to.assign(from.begin(), from.end());
  if (activation == Activation::kSigmoid) std::ranges::transform(to, to.begin(), [](float x) { return 1.F / (1.F + std::exp(-x)); });
  if (activation != Activation::kSoftmax) return;
  const float greatest = *std::ranges::max_element(to);
  float sum = 0;
  for (float& value : to) sum += value = std::exp(value - greatest);
  for (float& value : to) value /= sum;
}

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
  explicit Candidates(const HeadOptions& options) : options_(options), most_(std::max<size_t>(options.most, 1)) {}

  /// `scores` are those of the classes; `weight` multiplies each.
  void add(std::span<const float> box, std::span<const float> scores, float weight) {
    if (options_.every_class) {
      for (size_t i = 0; i < scores.size(); ++i) add_one(box, i, scores[i] * weight);
    } else {
      size_t best = 0;
      for (size_t i = 1; i < scores.size(); ++i)
        if (scores[i] > scores[best] || std::isnan(scores[best])) best = i;
      add_one(box, best, scores[best] * weight);
    }
  }

  std::vector<Detection> take() {
    keep_best(found_, most_);
    return std::move(found_);
  }

 private:
  void add_one(std::span<const float> box, size_t label, float score) {
    if (!(score > options_.score_threshold)) return;  // NaN is not
    const Detection found = placed(box, label, score);
    if (!is_finite(found)) return;
    found_.push_back(found);
    if (found_.size() / 2 >= most_) keep_best(found_, most_);
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
  std::vector<float> scores, object;
  for (int64_t i = 0; i < head.rows; ++i) {
    const std::span<const float> row = rows.row(i);
    activate(row.subspan(first), options.activation, scores);
    float weight = 1;
    if (options.objectness) {
      activate(row.subspan(4, 1), options.activation == Activation::kSoftmax ? Activation::kNone : options.activation, object);
      weight = object[0];
    }
    candidates.add(row.first(4), std::span<const float>(scores).first(scores.size() - background), weight);
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
  std::vector<float> row;
  for (int64_t i = 0; i < boxes.rows; ++i) {
    activate(rows.row(i), options.activation, row);
    candidates.add(boxes.values.subspan(static_cast<size_t>(4 * i), 4), std::span<const float>(row).first(row.size() - background), 1);
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

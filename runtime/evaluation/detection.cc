// detection.cc: boxes are matched once, for each picture, category and threshold. A metric then gathers the matches of its rows, so that a
// resample costs one sort for each category.

#include "runtime/evaluation/detection.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

namespace serin::evaluation {
namespace {

constexpr size_t kThresholds = 10, kMostBoxes = 100, kRecalls = 101;

double threshold(size_t index) { return 0.5 + 0.05 * static_cast<double>(index); }

struct Match {
  double score = 0;
  std::array<bool, kThresholds> right{}, ignored{};
  double overlap = 0;  // with the truth that it is matched with at 0.5
};

/// Of one picture and category.
struct Matches {
  std::vector<Match> found;
  size_t truths = 0;  // without crowds
};

Matches match_boxes(std::vector<Box> truth, std::vector<Box> found) {
  Matches matches;
  std::ranges::stable_sort(truth, {}, &Box::crowd);
  std::ranges::stable_sort(found, std::greater<>(), &Box::score);
  if (found.size() > kMostBoxes) found.resize(kMostBoxes);
  matches.truths = static_cast<size_t>(std::ranges::count(truth, false, &Box::crowd));
  matches.found.resize(found.size());
  for (size_t at = 0; at < found.size(); ++at) matches.found[at].score = found[at].score;
  for (size_t level = 0; level < kThresholds; ++level) {
    std::vector<bool> taken(truth.size());
    for (size_t at = 0; at < found.size(); ++at) {
      double best = std::min(threshold(level), 1 - 1e-10);
      size_t chosen = truth.size();
      for (size_t candidate = 0; candidate < truth.size(); ++candidate) {
        if (taken[candidate] && !truth[candidate].crowd) continue;
        if (chosen < truth.size() && !truth[chosen].crowd && truth[candidate].crowd) break;  // the rest are crowds
        const double shared = overlap(found[at], truth[candidate]);
        if (shared < best) continue;
        best = shared;
        chosen = candidate;
      }
      if (chosen == truth.size()) continue;
      taken[chosen] = true;
      Match& match = matches.found[at];
      (truth[chosen].crowd ? match.ignored : match.right)[level] = true;
      if (level == 0 && !truth[chosen].crowd) match.overlap = best;
    }
  }
  return matches;
}

struct AllMatches {
  size_t categories = 0;
  std::vector<int64_t> pictures;
  std::vector<Matches> of;  // of each row and category

  const Matches& at(uint32_t row, size_t category) const { return of[row * categories + category]; }
};

/// The mean precision at 101 recalls, of matches in order of their scores.
double average_precision(const std::vector<const Match*>& sorted, size_t truths, size_t level) {
  std::vector<double> precisions, recalls;
  double right = 0, wrong = 0;
  for (const Match* match : sorted) {
    right += match->right[level] ? 1 : 0;
    wrong += !match->right[level] && !match->ignored[level] ? 1 : 0;
    recalls.push_back(right / static_cast<double>(truths));
    precisions.push_back(right / (right + wrong + std::numeric_limits<double>::epsilon()));
  }
  for (size_t i = precisions.size(); i-- > 1;) precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
  double sum = 0;
  for (size_t i = 0; i < kRecalls; ++i) {
    const double recall = static_cast<double>(i) * 0.01;  // as numpy.linspace(0, 1, 101) has it, to the last bit
    const auto first = std::ranges::lower_bound(recalls, recall);
    if (first != recalls.end()) sum += precisions[static_cast<size_t>(first - recalls.begin())];
  }
  return sum / kRecalls;
}

double mean_precision(const AllMatches& all, RowList rows, size_t first, size_t last) {
  std::vector<uint32_t> order(rows.begin(), rows.end());
  std::ranges::stable_sort(order, {}, [&](uint32_t row) { return all.pictures[row]; });
  double sum = 0, count = 0;
  for (size_t category = 0; category < all.categories; ++category) {
    std::vector<const Match*> matches;
    size_t truths = 0;
    for (const uint32_t row : order) {
      const Matches& here = all.at(row, category);
      truths += here.truths;
      for (const Match& match : here.found) matches.push_back(&match);
    }
    if (truths == 0) continue;
    std::ranges::stable_sort(matches, std::greater<>(), [](const Match* match) { return match->score; });
    for (size_t level = first; level < last; ++level) {
      sum += average_precision(matches, truths, level);
      ++count;
    }
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

double mean_overlap(const AllMatches& all, RowList rows) {
  double sum = 0, count = 0;
  for (const uint32_t row : rows)
    for (size_t category = 0; category < all.categories; ++category)
      for (const Match& match : all.at(row, category).found) {
        sum += match.overlap;
        count += match.right[0] ? 1 : 0;
      }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

double overlap(const Box& found, const Box& truth) {
  const double width = std::min(found.x + found.width, truth.x + truth.width) - std::max(found.x, truth.x);
  const double height = std::min(found.y + found.height, truth.y + truth.height) - std::max(found.y, truth.y);
  if (width <= 0 || height <= 0) return 0;
  const double both = width * height, own = found.width * found.height;
  const double either = truth.crowd ? own : own + truth.width * truth.height - both;
  return both / either;
}

std::vector<Metric> detection_metrics(const DetectionSamples& samples) {
  auto all = std::make_shared<AllMatches>();
  all->categories = samples.categories.size();
  all->pictures = samples.pictures;
  for (size_t row = 0; row < samples.truth.size(); ++row) {
    std::vector<std::vector<Box>> truth(all->categories), found(all->categories);
    for (const Box& box : samples.truth[row]) truth[static_cast<size_t>(box.category)].push_back(box);
    for (const Box& box : samples.found[row]) found[static_cast<size_t>(box.category)].push_back(box);
    for (size_t category = 0; category < all->categories; ++category)
      all->of.push_back(match_boxes(std::move(truth[category]), std::move(found[category])));
  }
  return {
      {"map", true, [all](RowList rows) { return mean_precision(*all, rows, 0, kThresholds); }},
      {"map50", true, [all](RowList rows) { return mean_precision(*all, rows, 0, 1); }},
      {"map75", true, [all](RowList rows) { return mean_precision(*all, rows, 5, 6); }},
      {"iou", true, [all](RowList rows) { return mean_overlap(*all, rows); }},
  };
}

}  // namespace serin::evaluation

// metric.h: a number that is made of the answers to some rows. Slices, resampling and paired tests choose the rows.
//
//   std::vector<Metric> metrics = classification_metrics(samples);
//   double accuracy = metrics[0].value(all_rows(540));
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace serin::evaluation {

/// Positions of rows; the same one may be there several times.
using RowList = std::span<const uint32_t>;

inline std::vector<uint32_t> all_rows(size_t count) {
  std::vector<uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

struct Metric {
  std::string name;
  bool more_is_better = true;
  /// NaN where the rows do not decide it, such as an AUC of one class. Thread-safe; it refers to the samples.
  std::function<double(RowList)> value;
  /// Only of a share of rows: whether a row counts.
  std::function<bool(uint32_t)> right = nullptr;
};

/// The share of rows that are right.
inline Metric share_metric(std::string name, std::function<bool(uint32_t)> right) {
  const auto share = [right](RowList rows) {
    double count = 0;
    for (const uint32_t row : rows) count += right(row) ? 1 : 0;
    return count / static_cast<double>(rows.size());
  };
  return {std::move(name), true, share, std::move(right)};
}

}  // namespace serin::evaluation

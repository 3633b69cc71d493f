// statistics.h: intervals of one metric, and tests of the difference between two models on the same rows.
//
// Everything is deterministic: resampling uses a generator with a fixed seed, and the same picks for both models.
#pragma once

#include <cstdint>

#include "runtime/evaluation/metric.h"

namespace serin::evaluation {

struct Interval {
  double low = 0, high = 0;
};

/// The quantile of the normal distribution, 0 < p < 1 (Acklam's approximation with one step of Halley; error below 1e-9).
double normal_quantile(double p);

/// Wilson's score interval of a share, two-sided: https://doi.org/10.2307/2276774. It is sound for few rows, and for a share of 0 or 1.
Interval wilson_interval(int64_t right, int64_t rows, double confidence);

/// The p-value of McNemar's exact test. It is the chance that equally good models differ as unevenly as these, or more. 1 where they do not
/// differ.
double mcnemar_p(int64_t only_new_right, int64_t only_old_right);

/// Tango's score interval of the difference of two paired shares, new - old; each bound is one-sided at `confidence`:
/// https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B. Unlike resampling, it stays open where the models
/// differ on no row.
Interval tango_interval(int64_t only_new_right, int64_t only_old_right, int64_t rows, double confidence);

inline constexpr int kResamples = 2000;

/// Percentiles of the metric over resampled rows, two-sided. Resamples that give NaN are left out; NaN if all of them do.
Interval bootstrap_interval(const Metric& metric, RowList rows, double confidence);
/// The same of new - old on the same picks, where each bound is one-sided at `confidence`.
Interval paired_bootstrap(const Metric& fresh, const Metric& old, RowList rows, double confidence);

/// Wilson's for a share, otherwise resampled.
Interval interval_of(const Metric& metric, RowList rows, double confidence);

/// The comparison of a new model with an old one by one metric.
struct Comparison {
  double difference = 0;  ///< new - old
  Interval bounds;        ///< of it, each one-sided
  double p_value = 1;     ///< of the exact McNemar test; NaN where the metric is no share of rows
  int64_t only_new_right = 0, only_old_right = 0;
  enum class Verdict : uint8_t { kNoWorse, kWorse, kOpen } verdict = Verdict::kOpen;
};
/// `margin`: by how much the new one may be worse. kNoWorse: the bound says that it is within the margin. kWorse: the other bound says
/// that it is not. kOpen: too few rows to tell.
Comparison compare(const Metric& fresh, const Metric& old, RowList rows, double margin, double confidence);

}  // namespace serin::evaluation

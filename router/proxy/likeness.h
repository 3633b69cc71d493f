// likeness.h: How alike two rows of numbers are that answer the same request: evidence of a canary that is wrong for a few inputs
// (router/rollout/few_guard.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

namespace serin::router {

struct Likeness {
  bool far = false;          ///< the largest element is another one, by a margin that no rounding and no near tie explains
  std::optional<bool> same;  ///< within rounding in every element; nothing: two different models could easily agree on this row
  double spread = 0;         ///< of stable's row: the distance between its largest and smallest element
};
/// Rows of one length, of finite numbers. usual_spread: of stable's earlier rows; 0: not known.
Likeness likeness_of(std::span<const double> stable, std::span<const double> canary, double usual_spread = 0);

/// The mean spread of the latest hundred rows or so. From several threads: a lost update does no harm.
class UsualSpread {
 public:
  /// Forgets what it learned in another epoch: stable may be another model with another scale.
  void begin(uint64_t epoch);
  void learn(double spread);
  double value() const { return mean_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> epoch_{0};
  std::atomic<uint32_t> rows_{0};
  std::atomic<double> mean_{0};
};

}  // namespace serin::router

// likeness.h: How alike two rows of numbers are that answer the same request: evidence of a canary that is wrong for a few inputs
// (router/rollout/few_guard.h).
#pragma once

#include <optional>
#include <span>

namespace serin::router {

struct Likeness {
  bool far = false;          ///< the largest element is another one, by a margin that no rounding and no near tie explains
  std::optional<bool> same;  ///< within rounding in every element; nothing: two different models could easily agree on this row
};
/// Rows of one length, of finite numbers.
Likeness likeness_of(std::span<const double> stable, std::span<const double> canary);

}  // namespace serin::router

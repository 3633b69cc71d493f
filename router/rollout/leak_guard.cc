// leak_guard.cc: a rollback needs all of these, and each one spares a kind of healthy program.
//
//   evidence    the canary rises more often than it falls, at three scales (1, 4 and 16 rounds), at trip value 3c each. Rises count only if
//               they are, in proportion, above stable's. Rounds without a change do not count. Of noise around a level, and of a random walk
//               without a drift, the next step is up with probability 1/2 at most, given all earlier ones, or the steps undo each other.
//   lasting     the growth does not slow down (trend.cc): neither warm-up, nor a cache that fills, nor a heap that fragments
//   material    at the lower bound of its slope it meets its limit within the horizon, and it has grown by a good part already
//   more than stable's: above everything that stable has had. What stable lives with does not kill, and a cold canary fills up to it
//   unlike stable's: twice what stable grew by within as much time, or within as many answers. Load and saw teeth are common to both
//
// With half of the evidence in bits, growth that is material, above stable's and not stopping makes the steps wait, and so
// does one whose window is still too short. That costs no alpha.
//
// The first has the bound of alpha_budget.h. The others can only spare a canary. The window is all rounds since the last restart or change
// of the weight, or the later half, quarter or eighth of them, for a leak that began in between.

#include "router/rollout/leak_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace serin::rollout {
namespace {

constexpr double kTimesStable = 2;
constexpr double kWindows[] = {0, 0.5, 0.75, 0.875};

std::string print_seconds(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} seconds", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} minutes", seconds / 60);
  return fmt::format("{:.0f} hours", seconds / 3600);
}

std::string print_bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; std::abs(bytes) >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

}  // namespace

LeakGuard::LeakGuard(Options options)
    : options_(std::move(options)),
      scales_{Scale{EvenChance(options_.name, kScales * options_.trip_value), 1},
              Scale{EvenChance(options_.name, kScales * options_.trip_value), 4},
              Scale{EvenChance(options_.name, kScales * options_.trip_value), 16}} {}

void LeakGuard::forget_blocks() {
  for (Scale& scale : scales_) {
    scale.count = 0;
    scale.before.reset();
  }
}

void LeakGuard::compare(Scale& scale, double canary, double stable, std::chrono::milliseconds at) {
  if (scale.count == 0) scale.sum = scale.stable_sum = 0;
  scale.sum += canary;
  scale.stable_sum += stable;
  if (++scale.count < scale.samples) return;
  scale.count = 0;
  const double now = scale.sum / scale.samples, stable_now = scale.stable_sum / scale.samples;
  if (scale.before && now != *scale.before) {
    const double usual = scale.stable_before && *scale.stable_before > 0 ? (stable_now / *scale.stable_before - 1) * *scale.before : 0;
    scale.up.observe(now - *scale.before > std::max(0.0, usual), now, at);
  }
  scale.before = now;
  scale.stable_before = stable_now;
}

bool LeakGuard::observe(const std::optional<ResourceLevel>& canary, const std::optional<ResourceLevel>& stable,
                        std::chrono::milliseconds at) {
  const double seconds = std::chrono::duration<double>(at).count();
  if (stable) {
    if (stable->begins) {
      stable_.clear();
      forget_blocks();
    }
    stable_.add({seconds, stable->value, stable->answers});
    stable_highest_ = std::max(stable_highest_, stable->value);
    stable_now_ = stable;
  }
  held_.clear();
  canary_now_ = canary;
  if (!canary || !stable_now_) return false;
  if (canary->begins) {
    canary_.clear();
    forget_blocks();
  }
  canary_.add({seconds, canary->value, canary->answers});
  for (Scale& scale : scales_) compare(scale, canary->value, stable_now_->value, at);
  growth_ = canary_.growth(0);
  const bool tripped = leading().tripped();
  if (2 * leading().bits() < leading().bits_to_trip()) return false;
  if (!growth_ && canary->value > stable_highest_)
    held_ = fmt::format("held: {} of the canary grows, and this step is too short yet to know by how much", options_.text);
  for (const double after : kWindows)
    if (const auto growth = canary_.growth(after); growth && convicts(*growth) && tripped) {
      growth_ = growth;
      return true;
    }
  return false;
}

bool LeakGuard::convicts(const Growth& growth) {
  if (!is_material(growth) || growth.last <= stable_highest_ || stable_grows_too(growth)) return false;
  if (!growth.stopping)
    held_ = fmt::format("held: {} of the canary grows by {} a minute, and it is not known yet whether that lasts", options_.text,
                        print(60 * growth.slope));
  return !growth.slowing && growth.rise >= std::max(options_.least_rise, options_.least_part * growth.first);
}

double LeakGuard::limit_for(const Growth& growth) const {
  if (options_.limit) return *options_.limit;
  return canary_now_ && canary_now_->most ? *canary_now_->most : 2 * growth.last;
}

double LeakGuard::seconds_left(const Growth& growth, double slope) const { return std::max(0.0, limit_for(growth) - growth.last) / slope; }

bool LeakGuard::is_material(const Growth& growth) const {
  return growth.least > 0 && seconds_left(growth, growth.least) <= std::chrono::duration<double>(options_.horizon).count();
}

bool LeakGuard::stable_grows_too(const Growth& growth) const {
  return growth.rise <= kTimesStable * stable_.largest_rise(growth.seconds, growth.answers);
}

const EvenChance& LeakGuard::leading() const {
  return std::ranges::max_element(scales_, {}, [](const Scale& scale) { return scale.up.bits(); })->up;
}

std::string LeakGuard::print(double amount) const { return options_.bytes ? print_bytes(amount) : fmt::format("{:.3g}", amount); }

Evidence LeakGuard::evidence() const {
  return {.guard = options_.name, .bits = leading().bits(), .bits_to_trip = leading().bits_to_trip(), .canary_events = leading().bad()};
}

Verdict LeakGuard::verdict() const {
  const Growth growth = growth_.value_or(Growth());
  const double stable_slope = stable_.growth(0).value_or(Growth()).slope;
  const std::string until = options_.limit || (canary_now_ && canary_now_->most)
                                ? fmt::format("until its limit of {}", print(limit_for(growth)))
                                : std::string("until it has doubled");
  return {
      options_.name,
      fmt::format("{}: {} of the canary grows by {} a minute (at least {}), from {} to {} in {}; {} {}. Stable {}; e-value 2^{:.1f} over "
                  "2^{:.1f}",
                  options_.name, options_.text, print(60 * growth.slope), print(60 * growth.least), print(growth.first), print(growth.last),
                  print_seconds(growth.seconds), print_seconds(seconds_left(growth, growth.slope)), until,
                  stable_slope > 0.05 * growth.slope ? fmt::format("grows by {}", print(60 * stable_slope)) : "does not grow",
                  leading().bits(), leading().bits_to_trip())};
}

ResourceLine LeakGuard::line() const {
  ResourceLine line{.guard = options_.name};
  if (stable_now_) line.stable = stable_now_->value;
  if (canary_now_) line.canary = canary_now_->value;
  if (!canary_now_ || !stable_now_) {
    line.note = fmt::format("not judged: {} not export {}",
                            !canary_now_ && !stable_now_ ? "both versions do"
                            : !canary_now_               ? "the canary does"
                                                         : "stable does",
                            options_.text);
    return line;
  }
  if (!growth_) return line;
  line.growth = 60 * growth_->slope;
  line.growth_least = 60 * growth_->least;
  if (growth_->slope > 0) line.seconds_left = seconds_left(*growth_, growth_->slope);
  return line;
}

}  // namespace serin::rollout

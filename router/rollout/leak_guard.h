// leak_guard.h: Does the canary use more and more of something, so that it will run out of it?
//
//   LeakGuard memory({.name = "res_memory", .text = "memory", ...});
//   if (memory.observe(canary, stable, at)) roll_back(memory.verdict());
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "router/rollout/even_chance.h"
#include "router/rollout/event_guard.h"
#include "router/rollout/resources.h"
#include "router/rollout/trend.h"

namespace serin::rollout {

/// The amount that one arm uses now: the mean of its endpoints.
struct ResourceLevel {
  double value = 0;
  double answers = 0;          ///< of one endpoint, so far
  bool begins = false;         ///< what came before is not to be compared: a restart, other endpoints, another weight
  std::optional<double> most;  ///< its limit, if the endpoint knows it
};

class LeakGuard {
 public:
  struct Options {
    std::string name;  ///< "res_memory"
    std::string text;  ///< "memory"
    bool bytes = true;
    double trip_value = 1;
    std::optional<double> limit;  ///< the user's; nothing: the endpoint's, or twice of what it uses
    double least_rise = 0;        ///< smaller rises are never a leak
    double least_part = 0;        ///< nor those below this part of the level
    std::chrono::nanoseconds horizon{std::chrono::hours(24)};
  };
  explicit LeakGuard(Options options);

  /// One round. Returns whether to roll back.
  bool observe(const std::optional<ResourceLevel>& canary, const std::optional<ResourceLevel>& stable, std::chrono::milliseconds at);
  /// It grows, and may yet stop: a reason to wait. Empty: none.
  const std::string& held() const { return held_; }

  const std::string& name() const { return options_.name; }
  Evidence evidence() const;
  Verdict verdict() const;
  VerdictRecord record() const { return leading().record(); }
  ResourceLine line() const;

 private:
  /// One test: is the mean of `samples` measurements more often above that of the ones before than below?
  struct Scale {
    EvenChance up;
    int samples;
    int count = 0;
    double sum = 0, stable_sum = 0;
    std::optional<double> before = std::nullopt, stable_before = std::nullopt;
  };
  static constexpr size_t kScales = 3;

  void compare(Scale& scale, double canary, double stable, std::chrono::milliseconds at);
  bool convicts(const Growth& growth);
  bool is_material(const Growth& growth) const;
  bool stable_grows_too(const Growth& growth) const;
  double limit_for(const Growth& growth) const;
  double seconds_left(const Growth& growth, double slope) const;
  const EvenChance& leading() const;
  std::string print(double amount) const;
  void forget_blocks();

  Options options_;
  std::array<Scale, kScales> scales_;
  Trend canary_, stable_;
  double stable_highest_ = 0;
  std::optional<ResourceLevel> canary_now_, stable_now_;
  std::optional<Growth> growth_;  // of the window that convicts; else of all
  std::string held_;
};

}  // namespace serin::rollout

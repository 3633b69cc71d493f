// sample_guard.h: A limit on the answer of a user's query ("prometheus: {query, max}").
//
// It weighs no evidence, because the number comes from outside. Several samples above the limit in a row roll back, and everything that is
// not a fresh number holds the steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "router/rollout/event_guard.h"
#include "router/rollout/spec.h"

namespace serin::rollout {

class SampleGuard {
 public:
  explicit SampleGuard(const PrometheusGuard& asked) : asked_(asked), name_("prometheus:" + asked.name) {}

  /// Nothing: the server could not be reached, or had no fresh number. Returns whether to roll back.
  bool observe(std::optional<double> value, std::chrono::milliseconds at);
  /// The reason that the steps hold: no fresh answer for three intervals, or one above the limit. Empty: they do not hold.
  std::string held(std::chrono::milliseconds at) const;

  const std::string& name() const { return name_; }
  /// Here bits are breaches in a row.
  Evidence evidence() const;
  Verdict verdict() const;
  VerdictRecord record() const;

 private:
  PrometheusGuard asked_;
  std::string name_;
  int breaches_ = 0;  // in a row
  uint64_t breaches_ever_ = 0;
  std::optional<double> last_;
  std::chrono::milliseconds last_at_{0};
  Tape<int> tape_;
};

}  // namespace serin::rollout

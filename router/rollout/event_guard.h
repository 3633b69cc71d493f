// event_guard.h: One comparison with stable: an event process with its name, its part of alpha and the record that explains it.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/rollout/event_process.h"
#include "router/rollout/report.h"
#include "router/rollout/representative.h"
#include "router/rollout/tape.h"
#include "router/rollout/verdict_record.h"

namespace serin::rollout {

/// A guard's conclusion.
struct Verdict {
  std::string cause;  ///< "err"
  /// "err: 6 of the last 9 bad answers were the canary's at 5 % of traffic; e-value 2^12.3 over 2^11.7"
  std::string reason;
};

/// "at 5 % of traffic"
std::string at_share(double share);

/// Adds one event to a process: the same for an active guard and for its record.
void observe(EventProcess& process, const DecidingEvent& event, bool mirrored);

class EventGuard {
 public:
  /// mirrored: exchanges the arms, to test whether something comes from the canary too rarely.
  EventGuard(std::string name, double tolerated_ratio, double trip_value, bool mirrored = false);

  /// One bad event. Returns whether the evidence has reached the trip value.
  bool observe(Arm arm, const Unit& unit, std::chrono::milliseconds at);
  /// A shadow pair, the same request on both arms: the unit of each bad half; nothing for a good half.
  bool observe_pair(const std::optional<Unit>& stable_bad, const std::optional<Unit>& canary_bad, std::chrono::milliseconds at);

  const std::string& name() const { return name_; }
  bool tripped() const { return process_.e() >= trip_value_; }
  Evidence evidence() const;
  std::vector<DecidingEvent> events() const { return tape_.events(); }  ///< the latest, oldest first
  VerdictRecord record() const;
  /// where: "at 5 % of traffic" or "in shadow pairs"
  Verdict verdict(std::string_view where) const;

 private:
  std::string name_;
  double tolerated_ratio_;
  double trip_value_;
  bool mirrored_;
  EventProcess process_;
  std::array<uint64_t, 2> counts_{};
  Tape<MixtureState> tape_;
};

}  // namespace serin::rollout

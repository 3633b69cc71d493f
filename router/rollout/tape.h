// tape.h: the last events that a guard decided on, and its processes as they were before the first of them: enough to decide again.
//
// Two halves take turns, as in a rotated log: what is kept is never less than kHalf events, once there were so many, and never more than twice that.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "router/rollout/rollout.h"

namespace serin::rollout {

template <class Processes>
class Tape {
 public:
  static constexpr size_t kHalf = 64;

  /// `before`: the processes without this event.
  void add(const Processes& before, const DecidingEvent& event) {
    if (events_.size() == kHalf || !begin_) {
      earlier_.swap(events_);
      earlier_begin_ = std::exchange(begin_, before);
      events_.clear();
      events_.reserve(kHalf);
    }
    events_.push_back(event);
  }
  /// The bits of the latest event, known once it was observed.
  void set_bits(double bits) { events_.back().bits = bits; }

  /// The processes before the oldest event that is kept; `now` where there is none.
  const Processes& begin(const Processes& now) const { return earlier_begin_ ? *earlier_begin_ : begin_ ? *begin_ : now; }
  std::vector<DecidingEvent> events() const {  ///< oldest first
    std::vector<DecidingEvent> all = earlier_;
    all.insert(all.end(), events_.begin(), events_.end());
    return all;
  }

 private:
  std::vector<DecidingEvent> earlier_, events_;
  std::optional<Processes> earlier_begin_, begin_;
};

}  // namespace serin::rollout

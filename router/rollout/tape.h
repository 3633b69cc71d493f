// tape.h: The last events of a guard, and its processes before the first of them: enough to decide again.
//
// Two halves alternate, as in a rotated log: after the first kHalf events, it keeps at least kHalf events and at most twice that.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "router/rollout/report.h"

namespace serin::rollout {

template <class Processes, size_t Half = 64>
class Tape {
 public:
  static constexpr size_t kHalf = Half;

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

  /// The processes before the oldest kept event; `now` if there is none.
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

// deadline.cc: the wheel. A deadline farther away than one turn waits in the last slot before it and is linked again when that comes up.

#include "runtime/net/deadline.h"

#include <algorithm>
#include <bit>

namespace serin::net {

void Deadline::set(DeadlineWheel& wheel, Clock::time_point when) {
  due_ = DeadlineWheel::tick(when);
  if (linked_ <= due_) return;
  clear_link();
  wheel_ = &wheel;
  wheel.link(*this);
}

void Deadline::clear_link() {
  if (linked_ != kNever) wheel_->unlink(*this);
}

void DeadlineWheel::link(Deadline& deadline) {
  if (count_ == 0) now_ = std::max(now_, tick(Clock::now()) - 1);  // nothing was there to be run meanwhile
  deadline.linked_ = std::clamp(deadline.due_, now_ + 1, now_ + kSlots - 1);
  const size_t slot = deadline.linked_ % kSlots;
  deadline.previous_ = nullptr;
  deadline.next_ = slots_[slot];
  if (deadline.next_) deadline.next_->previous_ = &deadline;
  slots_[slot] = &deadline;
  occupied_[slot / 64] |= uint64_t{1} << slot % 64;
  ++count_;
}

void DeadlineWheel::unlink(Deadline& deadline) {
  const size_t slot = deadline.linked_ % kSlots;
  if (deadline.next_) deadline.next_->previous_ = deadline.previous_;
  if (deadline.previous_)
    deadline.previous_->next_ = deadline.next_;
  else
    slots_[slot] = deadline.next_;
  if (!slots_[slot]) occupied_[slot / 64] &= ~(uint64_t{1} << slot % 64);
  deadline.linked_ = Deadline::kNever;
  --count_;
}

void DeadlineWheel::run(Clock::time_point now) {
  const auto reached = static_cast<uint64_t>(std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count());
  if (count_ == 0) now_ = std::max(now_, reached);
  while (now_ < reached) {
    const size_t slot = ++now_ % kSlots;
    if (count_ == 0 || !slots_[slot]) continue;
    // One at a time from the front: work may unlink, link and destroy any of them. What is linked again goes to a later slot.
    while (Deadline* first = slots_[slot]) {
      unlink(*first);
      if (first->due_ == Deadline::kNever) continue;
      if (first->due_ > now_) {
        link(*first);
        continue;
      }
      first->due_ = Deadline::kNever;
      first->work_(first->owner_);
    }
  }
}

std::chrono::nanoseconds DeadlineWheel::time_to_next(Clock::time_point now) const {
  if (count_ == 0) return std::chrono::hours(1);
  for (size_t ahead = 1; ahead < kSlots;) {
    const size_t slot = (now_ + ahead) % kSlots;
    const uint64_t bits = occupied_[slot / 64] >> slot % 64;
    if (bits == 0) {
      ahead += 64 - slot % 64;
      continue;
    }
    ahead += static_cast<size_t>(std::countr_zero(bits));
    const Clock::time_point due{std::chrono::milliseconds(now_ + ahead)};
    return std::max(due - now, Clock::duration(0));
  }
  return std::chrono::milliseconds(0);
}

}  // namespace serin::net

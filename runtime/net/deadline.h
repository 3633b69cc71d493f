// deadline.h: deadlines that are moved with every request and cost no system call.
//
// A hashed wheel has 4,096 slots of a millisecond. Setting a deadline links it into a slot. Moving it later is one store, because a slot
// that expires checks which deadlines are really due. So a busy connection is linked again about once in four seconds, not once for each
// request. Deadlines may be up to two milliseconds late; use net::Timer for exact ones.
//
// For the .cc files of net, and for code on the data path with many deadlines.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace serin::net {

class DeadlineWheel;

/// One deadline of its owner; it unlinks itself when destroyed. Belongs to one io thread.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Work = void (*)(void* owner);

  /// `work(owner)` runs once a deadline has passed.
  Deadline(void* owner, Work work) : owner_(owner), work_(work) {}
  ~Deadline() { clear_link(); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void set(DeadlineWheel& wheel, Clock::time_point when);
  void clear() { due_ = kNever; }  ///< nothing is due; the link may stay
  /// Also removes the link, so that it may be destroyed on another thread.
  void leave() {
    clear();
    clear_link();
  }

 private:
  friend class DeadlineWheel;
  static constexpr uint64_t kNever = ~uint64_t{0};

  void clear_link();

  void* const owner_;
  const Work work_;
  DeadlineWheel* wheel_ = nullptr;  // the wheel in which it is linked
  Deadline *next_ = nullptr, *previous_ = nullptr;
  uint64_t due_ = kNever, linked_ = kNever;  // ticks
};

class DeadlineWheel {
 public:
  using Clock = Deadline::Clock;

  /// Runs the work of all due deadlines.
  void run(Clock::time_point now);
  /// Time until the next slot with a deadline; a long time if there is none soon.
  std::chrono::nanoseconds time_to_next(Clock::time_point now) const;

 private:
  friend class Deadline;
  static constexpr size_t kSlots = 4096;

  static uint64_t tick(Clock::time_point when) {
    return static_cast<uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(when.time_since_epoch()).count());
  }
  void link(Deadline& deadline);
  void unlink(Deadline& deadline);

  std::array<Deadline*, kSlots> slots_{};
  std::array<uint64_t, kSlots / 64> occupied_{};  // a bit for each slot
  uint64_t now_ = tick(Clock::now());             // slots up to this one have run
  size_t count_ = 0;
};

}  // namespace serin::net

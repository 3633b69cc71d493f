// deadline.h: a deadline that is moved with every request but costs a timer only when it could pass.
//
// Setting a later time than the one the timer waits for is a store: when the timer fires it looks at the deadline and waits on. So a busy
// connection arms its timer about once per timeout, not once per request. For the .cc files of net only.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

namespace serin::net {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  explicit Deadline(boost::asio::io_context& io) : timer_(io) {}

  /// `owner->on_deadline()` runs once `when` has passed, unless the deadline was moved; `owner` is kept alive until then or until stop().
  template <class Owner>
  void set(Clock::time_point when, const std::shared_ptr<Owner>& owner) {
    if (stopped_) return;
    due_ = when;
    if (when < armed_) arm(owner);
  }
  /// Nothing is due, but the timer may keep waiting.
  void clear() { due_ = kNever; }
  /// For good: lets go of the owner.
  void stop() {
    due_ = kNever;
    stopped_ = true;
    timer_.cancel();
  }

 private:
  template <class Owner>
  void arm(const std::shared_ptr<Owner>& owner) {
    armed_ = due_;
    timer_.expires_at(due_);  // also ends the wait before, which then reports operation_aborted
    timer_.async_wait([this, owner, armed = armed_](const boost::system::error_code& failure) {
      if (failure || stopped_ || armed != armed_) return;
      armed_ = kNever;
      if (due_ == kNever) return;
      if (due_ > Clock::now()) return arm(owner);
      due_ = kNever;
      owner->on_deadline();
    });
  }

  boost::asio::steady_timer timer_;
  Clock::time_point due_ = kNever;
  Clock::time_point armed_ = kNever;  // what the timer waits for
  bool stopped_ = false;
};

}  // namespace serin::net

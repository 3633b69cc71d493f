// sleeper.h: Lets a background thread wait for a time, until it is woken, or until its end.
//
//   while (sleeper.wait(100ms)) look();       // the thread
//   sleeper.wake();                           // any thread: there is work
//   sleeper.end(); thread.join();
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace serin::router {

/// Thread-safe; one thread waits.
class Sleeper {
 public:
  void wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  /// False: the end. A wake() since the last wait makes this one return at once.
  bool wait(std::chrono::nanoseconds longest) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [this] { return ending_ || woken_; });
    woken_ = false;
    return !ending_;
  }
  /// Waits for the whole time, whether woken or not.
  bool pause(std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [this] { return ending_; });
    return !ending_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false, ending_ = false;  // guarded by mutex_
};

}  // namespace serin::router

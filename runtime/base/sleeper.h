// sleeper.h: Lets a background thread wait for a time, until it is woken, or until its end.
//
//   while (sleeper.wait(100ms)) look();       // the thread
//   sleeper.wake();                           // any thread: there is work
//   sleeper.end(); thread.join();
#pragma once

#include <chrono>
#include <utility>

#include "kernels/mutex.h"

namespace serin::router {

/// Thread-safe; one thread waits.
class Sleeper {
 public:
  void wake() {
    const MutexLock lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }
  void end() {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  /// False: the end. A wake() since the last wait makes this one return at once.
  bool wait(std::chrono::nanoseconds longest) {
    const MutexLock lock(mutex_);
    changed_.wait_for(mutex_, longest, [this]() SERIN_REQUIRES(mutex_) { return ending_ || woken_; });
    woken_ = false;
    return !ending_;
  }
  /// Waits for the whole time, whether woken or not.
  bool pause(std::chrono::nanoseconds time) {
    const MutexLock lock(mutex_);
    changed_.wait_for(mutex_, time, [this]() SERIN_REQUIRES(mutex_) { return ending_; });
    return !ending_;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  bool woken_ SERIN_GUARDED_BY(mutex_) = false;
  bool ending_ SERIN_GUARDED_BY(mutex_) = false;
};

}  // namespace serin::router

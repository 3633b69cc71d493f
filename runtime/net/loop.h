// loop.h: the io threads. Each runs one event loop with its own connections, timers and buffers; they share only this object.
//
//   net::Loops loops(2);                                    // threads start at once
//   loops.post(0, [] { ... });                              // runs on io thread 0
//   auto timer = net::after(50ms, [] { ... });              // on an io thread: runs later on the same thread, unless the handle is dropped
//   loops.stop();                                           // joins
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/base/unique_function.h"

namespace serin {
class ThreadPool;
}

namespace serin::net {

class Loops {
 public:
  explicit Loops(size_t threads);
  ~Loops();  ///< stops and joins
  Loops(const Loops&) = delete;
  Loops& operator=(const Loops&) = delete;

  size_t size() const;
  /// Runs `work` on io thread `index`. Callable from any thread.
  void post(size_t index, UniqueFunction<void()> work);
  /// Runs `work` on io thread `index` and waits for it, for objects that must be made or destroyed there.
  void post_and_wait(size_t index, const std::function<void()>& work);
  /// Waits until all work passed to aside() has run, except the parts that follow on io threads. Call it at the end, when no more work
  /// comes.
  void finish_aside();
  void stop();

  struct Loop;  ///< defined in io_loop.h for the .cc files of net
  Loop& loop(size_t index);

 private:
  friend void aside(UniqueFunction<void()> work, UniqueFunction<void()> then);
  bool give_aside(UniqueFunction<void()>& work);

  std::vector<std::unique_ptr<Loop>> loops_;
  std::mutex mutex_;
  std::unique_ptr<ThreadPool> aside_;  // guarded by mutex_; made when first needed
};

/// Index of the calling io thread, or kNotAnIoThread.
inline constexpr size_t kNotAnIoThread = static_cast<size_t>(-1);
size_t this_loop();
/// Runs `work` on this io thread. If a request is being read, it runs after all bytes of this turn were read, and before HTTP/2 frames are
/// sent. If other such work calls this, it runs in the next turn. Requires an io thread.
void post_here(UniqueFunction<void()> work);
void log_thrown(const std::exception& thrown);
/// Runs `work` now, in the same way as posted work: an exception is logged and does not propagate. Requires an io thread.
template <class Work>
void run_here(Work&& work) {
  try {
    work();
  } catch (const std::exception& thrown) {
    log_thrown(thrown);
  }
}
/// When this io thread last woke up: a clock without cost, for times that may be wrong by the length of one turn.
std::chrono::steady_clock::time_point loop_time();

/// Runs `work` on a helper thread, then `then` on this io thread, for work that would delay other connections, such as reading a large
/// body. If `work` throws, that is logged, and `then` still runs. Both are destroyed on this io thread. If the system refuses threads,
/// `work` runs here. Requires an io thread.
void aside(UniqueFunction<void()> work, UniqueFunction<void()> then);
/// Larger data is read and written on helper threads.
inline constexpr size_t kMostOnIo = size_t{1} << 20;
/// Ownership of work that waits for a helper thread and may be cancelled before it starts: the first caller of take() owns it.
class Turn {
 public:
  bool take() { return !taken_.exchange(true); }

 private:
  std::atomic<bool> taken_{false};
};

/// Runs `work`, which may block, on a separate thread, then its result on the calling io thread. For rare work: each call creates a thread.
void run_aside(std::function<std::function<void()>()> work);

/// Cancels when destroyed. Must be destroyed on the thread that made it.
class Timer {
 public:
  struct State;
  Timer() = default;
  explicit Timer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Timer(Timer&&) noexcept = default;
  Timer& operator=(Timer&&) noexcept;
  ~Timer();
  void cancel();

 private:
  std::shared_ptr<State> state_;
};
/// Requires an io thread.
Timer after(std::chrono::nanoseconds delay, std::function<void()> work);

}  // namespace serin::net

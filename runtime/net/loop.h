// loop.h: the io threads. Each runs one event loop with its own connections, timers and buffers; nothing is shared between them but this object.
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
  /// Runs `work` on io thread `index`. From any thread.
  void post(size_t index, UniqueFunction<void()> work);
  /// Runs `work` on io thread `index` and waits for it: for what must be made or destroyed there.
  void post_and_wait(size_t index, const std::function<void()>& work);
  /// Waits until all that was given to aside() has run, but for what follows it on io threads. For who ends, and gives no more.
  void finish_aside();
  void stop();

  struct Loop;  ///< defined in loop_impl.h for the .cc files of net
  Loop& loop(size_t index);

 private:
  friend void aside(UniqueFunction<void()> work, UniqueFunction<void()> then);
  bool give_aside(UniqueFunction<void()>& work);

  std::vector<std::unique_ptr<Loop>> loops_;
  std::mutex mutex_;
  std::unique_ptr<ThreadPool> aside_;  // guarded by mutex_; made once there is something to do
};

/// Index of the io thread this is, or npos.
inline constexpr size_t kNotAnIoThread = static_cast<size_t>(-1);
size_t this_loop();
/// Runs `work` on this io thread: out of the reading of a request once all that its turn has brought was read, and before what HTTP/2 is to send goes out; out of
/// other such work in the next turn. Requires an io thread.
void post_here(UniqueFunction<void()> work);
void log_thrown(const std::exception& thrown);
/// Runs `work` now, as an io thread runs what was posted: what it throws is logged and goes no further. Requires an io thread.
template <class Work>
void run_here(Work&& work) {
  try {
    work();
  } catch (const std::exception& thrown) {
    log_thrown(thrown);
  }
}
/// When this io thread last woke up: a clock that costs nothing, for what may be off by the length of one round.
std::chrono::steady_clock::time_point loop_time();

/// Runs `work` beside the io threads, then `then` on this one: for what would hold up the other connections, such as reading a large body. What `work` throws is
/// logged, and `then` runs all the same. What both hold ends on this io thread. Where the system gives no threads, it runs here. Requires an io thread.
void aside(UniqueFunction<void()> work, UniqueFunction<void()> then);
/// More bytes than this are read and written there.
inline constexpr size_t kMostOnIo = size_t{1} << 20;
/// Of work that waits to run aside, and may be given up until it does: whoever takes it first has it.
class Turn {
 public:
  bool take() { return !taken_.exchange(true); }

 private:
  std::atomic<bool> taken_{false};
};

/// Runs `work`, which may block, on a thread of its own, and then what it returns on the io thread that asked. For what is rare: each time is a thread.
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

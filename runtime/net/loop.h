// loop.h: the io threads. Each runs one event loop with its own connections, timers and buffers; they share only this object.
//
//   net::Loops loops(2);                                    // threads start at once
//   loops.post(0, [] { ... });                              // runs on io thread 0
//   auto timer = loop.after(50ms, [] { ... });              // on the io thread of `loop`: runs there later, unless the handle is dropped
//   loops.stop();                                           // joins
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/base/unique_function.h"

namespace serin {
class ThreadPool;
}

namespace serin::net {

class DeadlineWheel;
class IoLoop;
class Loop;
class Loops;
class Mailbox;

/// Cancels when destroyed. Must be destroyed on the io thread that made it.
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

/// One io thread. Code gets it from what it serves (ServerStream, Responder, GrpcCall) or from Loops, and hands it on. Everything but
/// index(), is_here() and post() requires that the caller runs on it.
class Loop {
 public:
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  size_t index() const { return index_; }
  /// Whether the calling thread is this one.
  bool is_here() const { return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
  /// The io thread that calls this, if it is this one or one of the same Loops; null: another thread.
  Loop* here() const;
  /// When it last woke up: a clock without cost, for times that may be wrong by the length of one turn.
  std::chrono::steady_clock::time_point now() const { return now_; }
  /// For deadlines that are moved often; use after() for exact ones.
  DeadlineWheel& deadlines() { return *deadlines_; }

  /// Runs `work` on this thread; callable from any thread. If a request is being read here, it runs after all bytes of this turn were read,
  /// and before HTTP/2 frames are sent. If other such work calls this, it runs in the next turn.
  void post(UniqueFunction<void()> work);
  /// Runs `work` now, in the same way as posted work: an exception is logged and does not propagate.
  template <class Work>
  void run(Work&& work) {
    try {
      work();
    } catch (const std::exception& thrown) {
      log_thrown(thrown);
    }
  }
  /// Runs `work` later, unless the handle is dropped.
  Timer after(std::chrono::nanoseconds delay, std::function<void()> work);
  /// Runs `work` on a helper thread, then `then` here, for work that would delay other connections, such as reading a large body. If `work`
  /// throws, that is logged, and `then` still runs. Both are destroyed here. If the system refuses threads, `work` runs here.
  void aside(UniqueFunction<void()> work, UniqueFunction<void()> then);
  /// Runs `work`, which may block, on a separate thread, then its result here. For rare work: each call creates a thread.
  void run_aside(std::function<std::function<void()>()> work);

 protected:
  Loop(Loops& all, size_t index);
  ~Loop();

  Loops& loops_;
  const std::unique_ptr<DeadlineWheel> deadlines_;
  const std::shared_ptr<Mailbox> mailbox_;  // ends before them: work in it may hold deadlines
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
  std::atomic<std::thread::id> thread_{};

 private:
  void log_thrown(const std::exception& thrown) const;
  virtual void add(std::shared_ptr<Timer::State> timer) = 0;

  const size_t index_;
};

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
  /// Waits until all work passed to Loop::aside() has run, except the parts that follow on io threads. Call it at the end, when no more work
  /// comes.
  void finish_aside();
  void stop();

  Loop& loop(size_t index);
  /// The one that calls this; null: another thread.
  Loop* here();

 private:
  friend class Loop;
  bool give_aside(UniqueFunction<void()>& work);

  std::vector<std::unique_ptr<IoLoop>> loops_;
  Mutex mutex_;
  std::unique_ptr<ThreadPool> aside_ SERIN_GUARDED_BY(mutex_);  // made when first needed
};

/// Larger data is read and written on helper threads.
inline constexpr size_t kMostOnIo = size_t{1} << 20;
/// Ownership of work that waits for a helper thread and may be cancelled before it starts: the first caller of take() owns it.
class Turn {
 public:
  bool take() { return !taken_.exchange(true); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace serin::net

// io_loop.h: the implementation of an io thread. For the .cc files of net only.
//
// A descriptor is registered once, edge-triggered for both directions, and not changed again. A request then costs no system calls except
// its reads and writes. A watcher must therefore read until nothing is left (a read that fills less than its room shows that), and write
// until the socket takes no more.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <queue>
#include <thread>

#include "kernels/mutex.h"
#include "runtime/net/buffer.h"
#include "runtime/net/deadline.h"
#include "runtime/net/loop.h"

namespace serin::net {

/// The owner of a descriptor that a loop watches. A shared_ptr holds it, so that it may end itself while events for it wait.
class Watcher {
 public:
  virtual void on_ready(uint32_t events) = 0;  ///< EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR

 protected:
  ~Watcher() = default;
};

/// Work that runs once in each turn of a loop, after all its events, so that several requests for it are sent together.
class TurnEnd {
 public:
  virtual void on_turn_end() = 0;

 protected:
  ~TurnEnd() = default;
};

/// Work from other threads for a loop. They share it, so that a thread that is too late can still post, although the loop has ended.
class Mailbox {
 public:
  Mailbox();
  ~Mailbox();
  /// `wake`: the io thread may be asleep.
  void post(UniqueFunction<void()> work, bool wake = true);
  int descriptor() const { return wake_; }
  bool waiting() const { return has_work_.load(); }
  /// On the loop's thread: takes all work and replaces the content of `taken`. Other threads need not wake the loop until the next call.
  void take(std::vector<UniqueFunction<void()>>& taken);
  void wake_read();

 private:
  const int wake_;
  Mutex mutex_;
  std::vector<UniqueFunction<void()>> work_ SERIN_GUARDED_BY(mutex_);
  std::atomic<bool> has_work_{false};
};

struct Timer::State {
  std::chrono::steady_clock::time_point due;
  std::function<void()> work;  ///< empty once cancelled
};

class IoLoop final : public Loop {
 public:
  IoLoop(Loops& all, size_t index);
  ~IoLoop();

  void start() { runner_ = std::thread(&IoLoop::run_all, this); }
  void stop();
  void join();
  bool runs() const { return runner_.joinable(); }

  /// Both run on the io thread, unless the descriptor cannot have events yet.
  bool watch(int descriptor, Watcher& watcher);
  /// Makes `watcher` the new receiver of events, including pending ones.
  bool hand_over(int descriptor, Watcher& watcher);
  /// Runs `work` once for each call.
  void at_turn_end(std::shared_ptr<TurnEnd> work) { turn_ends_.push_back(std::move(work)); }
  /// Call it before closing a descriptor of which a duplicate exists: epoll watches files, and that file stays open.
  void unwatch(int descriptor);
  /// Keeps an object with a closed descriptor until no pending event can refer to it.
  void retire(std::shared_ptr<void> closed) { retired_.push_back(std::move(closed)); }

  BufferPool buffers;

 private:
  using Clock = std::chrono::steady_clock;
  struct Later {
    bool operator()(const std::shared_ptr<Timer::State>& a, const std::shared_ptr<Timer::State>& b) const { return a->due > b->due; }
  };

  void add(std::shared_ptr<Timer::State> timer) override { timers_.push(std::move(timer)); }
  void run_all();
  void run_posted();
  void run_timers();
  void run_turn_ends();
  std::chrono::nanoseconds time_to_wait();

  const int epoll_;
  std::thread runner_;
  std::priority_queue<std::shared_ptr<Timer::State>, std::vector<std::shared_ptr<Timer::State>>, Later> timers_;
  std::vector<UniqueFunction<void()>> posted_;  // work that is running
  std::vector<std::shared_ptr<TurnEnd>> turn_ends_, ending_now_;
  std::vector<std::shared_ptr<void>> retired_;
  bool stopping_ = false;
};

/// Every Loop of Loops is one.
inline IoLoop& io(Loop& loop) { return static_cast<IoLoop&>(loop); }

/// Runs `work` on the thread of `loop` and waits for it. Runs it at once if that is this thread, or if the thread has ended.
void run_on(Loop& loop, const std::function<void()>& work);

}  // namespace serin::net

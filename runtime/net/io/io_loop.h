// io_loop.h: the implementation of an io thread. For the .cc files of net only.
//
// A descriptor is registered once, edge-triggered for both directions, and not changed again. A request then costs no system calls except
// its reads and writes. A watcher must therefore read until nothing is left (a read that fills less than its room shows that), and write
// until the socket takes no more.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <mutex>
#include <queue>
#include <thread>

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
  void post(UniqueFunction<void()> work);
  int descriptor() const { return wake_; }
  bool waiting() const { return has_work_.load(); }
  /// On the loop's thread: takes all work and replaces the content of `taken`. Other threads need not wake the loop until the next call.
  void take(std::vector<UniqueFunction<void()>>& taken);
  void wake_read();

 private:
  const int wake_;
  std::mutex mutex_;  // guards work_
  std::vector<UniqueFunction<void()>> work_;
  std::atomic<bool> has_work_{false};
};

struct Timer::State {
  std::chrono::steady_clock::time_point due;
  std::function<void()> work;  ///< empty once cancelled
};

struct Loops::Loop {
  Loop(Loops& all, size_t at);
  ~Loop();

  void run();
  void post(UniqueFunction<void()> work) { mailbox_->post(std::move(work)); }
  void stop();
  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

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

  Loops& loops;
  const size_t index;
  std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();  // time of the last wake-up: accurate enough for deadlines
  DeadlineWheel deadlines;
  BufferPool buffers;
  std::thread thread;

 private:
  friend Timer after(std::chrono::nanoseconds delay, std::function<void()> work);

  using Clock = std::chrono::steady_clock;
  struct Later {
    bool operator()(const std::shared_ptr<Timer::State>& a, const std::shared_ptr<Timer::State>& b) const { return a->due > b->due; }
  };

  void run_posted();
  void run_timers();
  void run_turn_ends();
  std::chrono::nanoseconds time_to_wait();

  const int epoll_;
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::priority_queue<std::shared_ptr<Timer::State>, std::vector<std::shared_ptr<Timer::State>>, Later> timers_;
  std::vector<UniqueFunction<void()>> posted_;  // work that is running
  std::vector<std::shared_ptr<TurnEnd>> turn_ends_, ending_now_;
  std::vector<std::shared_ptr<void>> retired_;
  bool stopping_ = false;
};

/// The calling io thread, or null.
Loops::Loop* current_loop();

/// Runs `work` on the thread of `loop` and waits for it. Runs it at once if that is this thread, or if the thread has ended.
void run_on(Loops::Loop& loop, const std::function<void()>& work);

}  // namespace serin::net

// loop_impl.h: what an io thread is made of. For the .cc files of net only.
//
// A descriptor is registered once, edge-triggered for both directions, and never touched again: a request then costs no system calls but its reads
// and writes. Who is told of an event must therefore read until there is nothing left (a read that fills less than its room says so), and
// write until the socket takes no more.
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

/// Somebody whose descriptor a loop watches. Held by shared_ptr, so that it may end itself while events for it wait.
class Watcher {
 public:
  virtual void on_ready(uint32_t events) = 0;  ///< EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR

 protected:
  ~Watcher() = default;
};

/// Somebody who has something to do once per turn of a loop, after all that the turn brought: what many asked for in between goes out at once.
class TurnEnd {
 public:
  virtual void on_turn_end() = 0;

 protected:
  ~TurnEnd() = default;
};

/// What other threads give to a loop. Held by them, too, so that one that comes too late finds it, though nobody reads it any more.
class Mailbox {
 public:
  Mailbox();
  ~Mailbox();
  void post(UniqueFunction<void()> work);
  int descriptor() const { return wake_; }
  bool waiting() const { return has_work_.load(); }
  /// On the loop's thread: all of it, in place of what `taken` held. From now on nobody needs to wake it until this has been called again.
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

  /// Both on the io thread, but for a descriptor that nothing can be said about yet.
  bool watch(int descriptor, Watcher& watcher);
  /// Another one is told from now on, also of what is at hand already.
  bool hand_over(int descriptor, Watcher& watcher);
  /// Once for each call.
  void at_turn_end(std::shared_ptr<TurnEnd> work) { turn_ends_.push_back(std::move(work)); }
  /// Before closing one that somebody else holds a duplicate of: epoll watches files, and that one stays open.
  void unwatch(int descriptor);
  /// Keeps what has closed its descriptor until nothing in hand can refer to it any more.
  void retire(std::shared_ptr<void> closed) { retired_.push_back(std::move(closed)); }

  Loops& loops;
  const size_t index;
  std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();  // of the last wake-up: good enough for deadlines
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
  std::vector<UniqueFunction<void()>> posted_;  // that are being run
  std::vector<std::shared_ptr<TurnEnd>> turn_ends_, ending_now_;
  std::vector<std::shared_ptr<void>> retired_;
  bool stopping_ = false;
};

/// The io thread this is, or null.
Loops::Loop* current_loop();

/// Runs `work` on the thread of `loop` and waits for it; at once where that is this thread, or where the thread has already ended.
void run_on(Loops::Loop& loop, const std::function<void()>& work);

}  // namespace serin::net

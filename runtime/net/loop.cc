// loop.cc: the io threads themselves. Signals are for the main thread, so all are blocked here; an exception that reaches the top of a
// loop is a bug, is logged as one, and does not take the other connections of the thread down.

#include "runtime/net/loop.h"

#include <signal.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>

#include "runtime/base/log.h"
#include "runtime/net/loop_impl.h"

namespace serin::net {
namespace {

thread_local Loops::Loop* t_loop = nullptr;

void run(Loops::Loop& loop) {
  t_loop = &loop;
  for (;;) {
    try {
      loop.io.run();
      return;
    } catch (const std::exception& e) {
      log::error("io thread {}: a handler threw: {}", loop.index, e.what());
    }
  }
}

}  // namespace

Loops::Loop* current_loop() { return t_loop; }
size_t this_loop() { return t_loop ? t_loop->index : kNotAnIoThread; }

void run_on(Loops::Loop& loop, const std::function<void()>& work) {
  if (t_loop == &loop || !loop.thread.joinable()) return work();
  auto done = std::make_shared<std::promise<void>>();  // shared: the waiter may be gone before set_value() returns
  boost::asio::post(loop.io, [&work, done] {
    work();
    done->set_value();
  });
  done->get_future().wait();
}

Loops::Loops(size_t threads) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the threads
  for (size_t i = 0; i < std::max<size_t>(threads, 1); ++i) {
    loops_.push_back(std::make_unique<Loop>(i));
    loops_.back()->thread = std::thread(run, std::ref(*loops_.back()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Loops::~Loops() { stop(); }

size_t Loops::size() const { return loops_.size(); }
Loops::Loop& Loops::loop(size_t index) { return *loops_[index]; }
void Loops::post(size_t index, std::function<void()> work) { boost::asio::post(loops_[index]->io, std::move(work)); }
void Loops::post_and_wait(size_t index, const std::function<void()>& work) { run_on(*loops_[index], work); }

void Loops::stop() {
  for (auto& loop : loops_) loop->io.stop();
  for (auto& loop : loops_)
    if (loop->thread.joinable()) loop->thread.join();
}

struct Timer::State {
  explicit State(boost::asio::io_context& io) : timer(io) {}
  boost::asio::steady_timer timer;
  bool cancelled = false;  // cancel() may come when the handler is already queued
};

Timer& Timer::operator=(Timer&& other) noexcept {
  if (this == &other) return *this;
  cancel();
  state_ = std::move(other.state_);
  return *this;
}
Timer::~Timer() { cancel(); }

void Timer::cancel() {
  if (!state_) return;
  state_->cancelled = true;
  state_->timer.cancel();
  state_.reset();
}

Timer after(std::chrono::nanoseconds delay, std::function<void()> work) {
  auto state = std::make_shared<Timer::State>(t_loop->io);
  state->timer.expires_after(delay);
  state->timer.async_wait([state, work = std::move(work)](const boost::system::error_code& failure) {
    if (!failure && !state->cancelled) work();
  });
  return Timer(std::move(state));
}

}  // namespace serin::net

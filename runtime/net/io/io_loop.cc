// io_loop.cc: the io threads: epoll, what other threads post, timers. Signals are for the main thread, so all are blocked here; an exception that
// reaches the top of a loop is a bug, is logged as one, and does not take the other connections of the thread down.

#include "runtime/net/io/io_loop.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <span>
#include <system_error>

#include "runtime/base/log.h"
#include "runtime/base/recycler.h"
#include "runtime/base/thread_pool.h"

namespace serin::net {
namespace {

constexpr int kEventsPerWait = 8;  // answers go out at the end of a turn: the first of a burst must not wait for all others
constexpr int kTurnEndRounds = 4;  // what one sends may let another go on; then the sockets have their turn
constexpr uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

/// Nanoseconds where the kernel can (since 5.11), otherwise milliseconds, rounded up.
int await_events(int epoll, std::span<epoll_event> events, std::chrono::nanoseconds wait, bool& precise) {
  const int most = static_cast<int>(events.size());
  if (precise) {
    const timespec timeout{.tv_sec = wait.count() / 1'000'000'000, .tv_nsec = wait.count() % 1'000'000'000};
    const int ready = ::epoll_pwait2(epoll, events.data(), most, &timeout, nullptr);
    precise = ready >= 0 || errno != ENOSYS;
    if (precise) return ready;
  }
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  return ::epoll_wait(epoll, events.data(), most, static_cast<int>(std::min<int64_t>(milliseconds, 60'000)));
}

int checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  return descriptor;
}

}  // namespace

Mailbox::Mailbox() : wake_(checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")) {}
Mailbox::~Mailbox() { ::close(wake_); }

void Mailbox::post(UniqueFunction<void()> work, bool wake) {
  {
    const MutexLock lock(mutex_);
    work_.push_back(std::move(work));
  }
  if (has_work_.exchange(true) || !wake) return;  // somebody has woken it already
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);  // full: then it is awake
}

void Mailbox::take(std::vector<UniqueFunction<void()>>& taken) {
  clear_for_reuse(taken);
  if (!has_work_.exchange(false)) return;
  const MutexLock lock(mutex_);
  taken.swap(work_);
}

void Mailbox::wake_read() {
  uint64_t count;
  [[maybe_unused]] const ssize_t read = ::read(wake_, &count, sizeof count);
}

Loop::Loop(Loops& all, size_t index)
    : loops_(all), deadlines_(std::make_unique<DeadlineWheel>()), mailbox_(std::make_shared<Mailbox>()), index_(index) {}
Loop::~Loop() = default;

Loop* Loop::here() const { return loops_.here(); }

void Loop::post(UniqueFunction<void()> work) { mailbox_->post(std::move(work), /*wake=*/!is_here()); }  // it looks before it sleeps
void Loop::log_thrown(const std::exception& thrown) const {
  log::error("io thread {}: a posted function threw: {}", index_, thrown.what());
}

IoLoop::IoLoop(Loops& all, size_t index) : Loop(all, index), epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  checked(::epoll_ctl(epoll_, EPOLL_CTL_ADD, mailbox_->descriptor(), &event), "epoll_ctl");
}

IoLoop::~IoLoop() {
  while (mailbox_->waiting()) mailbox_->take(posted_);  // what came too late may hold deadlines and buffers of this loop
  posted_.clear();
  ::close(epoll_);
}

bool IoLoop::watch(int descriptor, Watcher& watcher) {
  epoll_event event{.events = kEvents, .data = {.ptr = &watcher}};
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

bool IoLoop::hand_over(int descriptor, Watcher& watcher) {
  epoll_event event{.events = kEvents, .data = {.ptr = &watcher}};
  return ::epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event) == 0;
}

void IoLoop::unwatch(int descriptor) { ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr); }

void IoLoop::run_posted() {
  mailbox_->take(posted_);
  for (auto& work : posted_) {
    run(work);
    work = nullptr;
  }
}

void IoLoop::run_timers() {
  if (!timers_.empty()) now_ = Clock::now();
  while (!timers_.empty() && (!timers_.top()->work || timers_.top()->due <= now_)) {
    const auto timer = timers_.top();
    timers_.pop();
    if (const auto work = std::exchange(timer->work, nullptr)) work();
  }
}

void IoLoop::run_turn_ends() {
  for (int round = 0; round < kTurnEndRounds && !turn_ends_.empty(); ++round) {
    ending_now_.swap(turn_ends_);
    for (const auto& work : ending_now_) {
      try {
        work->on_turn_end();
      } catch (const std::exception& e) {
        log::error("io thread {}: a handler threw: {}", index(), e.what());
      }
    }
    ending_now_.clear();
  }
}

std::chrono::nanoseconds IoLoop::time_to_wait() {
  if (mailbox_->waiting() || !turn_ends_.empty()) return std::chrono::nanoseconds(0);
  std::chrono::nanoseconds wait = deadlines_->time_to_next(now_);
  if (!timers_.empty()) wait = std::min<std::chrono::nanoseconds>(wait, timers_.top()->due - now_);
  return std::max(wait, std::chrono::nanoseconds(0));
}

void IoLoop::run_all() {
  thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  bool precise = true;
  epoll_event events[kEventsPerWait];
  while (!stopping_) {
    const auto wait = time_to_wait();
    const int ready = await_events(epoll_, events, wait, precise);
    now_ = Clock::now();
    for (int i = 0; i < ready; ++i) {
      try {
        if (events[i].data.ptr) {
          static_cast<Watcher*>(events[i].data.ptr)->on_ready(events[i].events);
        } else {
          mailbox_->wake_read();
        }
      } catch (const std::exception& e) {
        log::error("io thread {}: a handler threw: {}", index(), e.what());
      }
    }
    run_posted();
    try {
      run_timers();
      deadlines_->run(now_);
    } catch (const std::exception& e) {
      log::error("io thread {}: a timer threw: {}", index(), e.what());
    }
    run_turn_ends();
    while (!retired_.empty()) std::exchange(retired_, {}).clear();  // what ends may end others
  }
  thread_.store({}, std::memory_order_relaxed);  // the system may give its number to another thread
}

void IoLoop::stop() {
  post([this] { stopping_ = true; });
}

void IoLoop::join() {
  if (runner_.joinable()) runner_.join();
}

void run_on(Loop& loop, const std::function<void()>& work) {
  if (loop.is_here() || !io(loop).runs()) return work();
  auto done = std::make_shared<std::promise<void>>();  // shared: the waiter may be gone before set_value() returns
  loop.post([&work, done] {
    work();
    done->set_value();
  });
  done->get_future().wait();
}

void Loop::aside(UniqueFunction<void()> work, UniqueFunction<void()> then) {
  UniqueFunction<void()> both = [mailbox = mailbox_, work = std::move(work), then = std::move(then)]() mutable {
    try {
      work();
    } catch (const std::exception& thrown) {
      log::error("helper thread: a function threw: {}", thrown.what());
    }
    work = nullptr;  // as in run_aside()
    mailbox->post(std::move(then));
  };
  if (!loops_.give_aside(both)) both();
}

/// False: there are no threads for it.
bool Loops::give_aside(UniqueFunction<void()>& work) {
  constexpr size_t kLeast = 2;  // what takes long is not alone there
  const MutexLock lock(mutex_);
  try {
    if (!aside_) aside_ = std::make_unique<ThreadPool>(static_cast<int>(std::max(loops_.size(), kLeast)));
  } catch (const std::system_error& none) {
    log::error("helper threads: {}", none.what());
    return false;
  }
  aside_->submit(std::move(work));
  return true;
}

void Loop::run_aside(std::function<std::function<void()>()> work) {
  std::thread([mailbox = mailbox_, work = std::move(work)]() mutable {
    auto then = work();
    work = nullptr;  // what both hold must not end here, but on the io thread that it belongs to
    mailbox->post(std::move(then));
  }).detach();
}

Loops::Loops(size_t threads) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the threads
  for (size_t i = 0; i < std::max<size_t>(threads, 1); ++i) {
    loops_.push_back(std::make_unique<IoLoop>(*this, i));
    loops_.back()->start();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Loops::~Loops() { stop(); }

size_t Loops::size() const { return loops_.size(); }
Loop& Loops::loop(size_t index) { return *loops_[index]; }
Loop* Loops::here() {
  for (const auto& loop : loops_)
    if (loop->is_here()) return loop.get();
  return nullptr;
}
void Loops::post(size_t index, UniqueFunction<void()> work) { loops_[index]->post(std::move(work)); }
void Loops::post_and_wait(size_t index, const std::function<void()>& work) { run_on(*loops_[index], work); }

void Loops::finish_aside() {
  std::unique_ptr<ThreadPool> last;
  const MutexLock lock(mutex_);
  last.swap(aside_);
}

void Loops::stop() {
  finish_aside();
  for (auto& loop : loops_) loop->stop();
  for (auto& loop : loops_) loop->join();
}

Timer& Timer::operator=(Timer&& other) noexcept {
  if (this == &other) return *this;
  cancel();
  state_ = std::move(other.state_);
  return *this;
}
Timer::~Timer() { cancel(); }

void Timer::cancel() {
  if (!state_) return;
  state_->work = nullptr;  // the loop drops it when its time comes
  state_.reset();
}

Timer Loop::after(std::chrono::nanoseconds delay, std::function<void()> work) {
  auto state = std::make_shared<Timer::State>();
  state->due = std::chrono::steady_clock::now() + delay;
  state->work = std::move(work);
  add(state);
  return Timer(std::move(state));
}

}  // namespace serin::net

#include "runtime/base/thread_pool.h"

#include <algorithm>
#include <utility>

namespace serin {

ThreadPool::~ThreadPool() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::add_threads(int count) {
  const MutexLock lock(mutex_);
  for (const std::thread::id id : std::exchange(ended_, {})) {
    const auto thread = std::ranges::find(threads_, id, &std::thread::get_id);
    thread->join();  // it ended its last critical section with this id
    threads_.erase(thread);
  }
  for (int i = 0; i < count; ++i) {
    if (surplus_ > 0)
      --surplus_;  // one that was about to end stays
    else
      threads_.emplace_back([this] { run(); });
  }
}

std::shared_ptr<void> ThreadPool::lease(int threads) {
  add_threads(threads);
  return {this, [threads](ThreadPool* pool) {
            const MutexLock lock(pool->mutex_);
            pool->surplus_ += threads;
            pool->wake_.notify_all();
          }};
}

void ThreadPool::submit(UniqueFunction<void()> work) {
  {
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void ThreadPool::run() {
  const MutexLock lock(mutex_);
  for (;;) {
    wake_.wait(mutex_, [this]() SERIN_REQUIRES(mutex_) { return stopping_ || surplus_ > 0 || !queue_.empty(); });
    if (surplus_ > 0 && !stopping_) {
      --surplus_;
      ended_.push_back(std::this_thread::get_id());
      if (!queue_.empty()) wake_.notify_one();  // this thread may have taken the call that was meant for the work
      return;
    }
    if (queue_.empty()) return;  // stopping, and nothing is left
    UniqueFunction<void()> work = std::move(queue_.front());
    queue_.pop_front();
    const MutexUnlock unlocked(mutex_);
    work();
    work = nullptr;  // not under the lock: it may have held the last of a model
  }
}

}  // namespace serin

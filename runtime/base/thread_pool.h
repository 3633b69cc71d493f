// thread_pool.h: threads that take work from one queue and sleep while it is empty.
//
//   ThreadPool pool(2);
//   pool.submit([] { ... });              // runs on one of them
//   auto lease = pool.lease(4);           // four more threads while the lease lives
#pragma once

#include <deque>
#include <memory>
#include <memory_resource>
#include <thread>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/base/unique_function.h"

namespace serin {

class ThreadPool {
 public:
  /// Throws std::system_error if the system refuses more threads.
  explicit ThreadPool(int threads) : ThreadPool() { add_threads(threads); }
  ~ThreadPool();  ///< runs all submitted work, then joins
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Adds threads for an owner that runs that many tasks at the same time; they end with the lease. The pool must outlive the lease.
  std::shared_ptr<void> lease(int threads);
  /// `work` must not throw.
  void submit(UniqueFunction<void()> work);

 private:
  ThreadPool() = default;  // lets the destructor run if only some of the threads could be started
  void add_threads(int count);
  void run();

  Mutex mutex_;
  Condition wake_;
  std::pmr::unsynchronized_pool_resource memory_ SERIN_GUARDED_BY(mutex_);  // lets a moving queue reuse its memory
  std::pmr::deque<UniqueFunction<void()>> queue_ SERIN_GUARDED_BY(mutex_){&memory_};
  int surplus_ SERIN_GUARDED_BY(mutex_) = 0;  // threads whose lease is over but that have not ended yet
  bool stopping_ SERIN_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ SERIN_GUARDED_BY(mutex_);
  // Ended threads of threads_; they are joined when others are added, so that their stacks do not accumulate.
  std::vector<std::thread::id> ended_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin

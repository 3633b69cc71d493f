// thread_pool.h: threads that take work from one queue, asleep while there is none: idle costs nothing.
//
//   ThreadPool pool(2);
//   pool.submit([] { ... });              // runs on one of them
//   auto lease = pool.lease(4);           // four more, for as long as this is held
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/base/unique_function.h"

namespace serin {

class ThreadPool {
 public:
  /// Throws std::system_error where the system gives no more threads.
  explicit ThreadPool(int threads) : ThreadPool() { add_threads(threads); }
  ~ThreadPool();  ///< runs what was submitted, then joins
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Adds threads for an owner that runs so many things at the same time; they go when the lease does. The pool must outlive it.
  std::shared_ptr<void> lease(int threads);
  /// `work` must not throw.
  void submit(UniqueFunction<void()> work);

 private:
  ThreadPool() = default;  // so that the destructor runs where not all threads are given
  void add_threads(int count);
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::pmr::unsynchronized_pool_resource memory_;  // guarded by mutex_, as all below; a queue that moves on takes none anew
  std::pmr::deque<UniqueFunction<void()>> queue_{&memory_};
  int surplus_ = 0;  // threads whose lease is over and that have not ended yet
  bool stopping_ = false;
  std::vector<std::thread> threads_;
  std::vector<std::thread::id> ended_;  // of threads_: joined when others are added, so that their stacks do not pile up
};

}  // namespace serin

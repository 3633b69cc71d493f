// compute_pool.h: the threads that compute: one for each instance that is loaded, asleep while it has nothing to do.
//
// Not one for each core: a batch cannot be interrupted by us, so with a pool of cores one slow model would hold them all and starve the fast ones
// beside it (measured: a 26 ms canary turned a 5 us stable model's answers into 429). The kernel's scheduler can interrupt it, and does.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/unique_function.h"

namespace serin::serving {

/// Cores this process may use: the smaller of its CPU set and the quota of its control group or one above it, at least 1. `root`: where /proc and /sys are.
int granted_cores(const std::string& root = "");

class ComputePool {
 public:
  explicit ComputePool(int cores) : cores_(cores) { add_threads(1); }
  ~ComputePool();  ///< runs what was submitted, then joins
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  /// What the defaults of models are made from: instances times threads of each.
  int cores() const { return cores_; }
  /// Adds threads for an owner that runs so many things at the same time; they go when the lease does. The pool must outlive it.
  std::shared_ptr<void> lease(int threads);
  void submit(UniqueFunction<void()> work);

 private:
  void add_threads(int count);
  void run();

  const int cores_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::pmr::unsynchronized_pool_resource memory_;  // guarded by mutex_, as all below; a queue that moves on takes none anew
  std::pmr::deque<UniqueFunction<void()>> queue_{&memory_};
  int surplus_ = 0;  // threads whose lease is over and that have not ended yet
  bool stopping_ = false;
  std::vector<std::thread> threads_;
  std::vector<std::thread::id> ended_;  // of threads_: joined when others are added, so that their stacks do not pile up
};

}  // namespace serin::serving

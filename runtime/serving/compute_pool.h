// compute_pool.h: the process's compute threads, as many as cores are granted (cgroup quota and cpuset honoured). Every model shares them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace serin::serving {

/// Cores this process may use: the smaller of its CPU set and its cgroup's quota, at least 1.
int granted_cores();

class ComputePool {
 public:
  enum class Priority : uint8_t { kNormal, kLow };  ///< low: shadow traffic, taken when nothing else waits

  explicit ComputePool(int threads);
  ~ComputePool();  ///< runs what was submitted, then joins
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }
  void submit(std::function<void()> work, Priority priority = Priority::kNormal);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> normal_, low_;  // guarded by mutex_
  bool stopping_ = false;                           // guarded by mutex_
  std::vector<std::thread> threads_;                // constant after construction
};

}  // namespace serin::serving

// compute_pool.cc: one queue, one lock, threads that sleep while there is nothing to do: idle costs nothing.

#include "runtime/serving/compute_pool.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include "runtime/serving/cgroup.h"

namespace serin::serving {
namespace {

/// Infinite where there is no limit. Version 2 says "max 100000" or "<quota> <period>" in microseconds; 1 has two files.
double cgroup_quota(const std::string& root) {
  double least = std::numeric_limits<double>::infinity();
  const auto hold = [&](std::istream&& quota, std::istream&& period) {
    double allowed = 0, of = 0;
    if (quota >> allowed && period >> of && allowed > 0 && of > 0) least = std::min(least, allowed / of);
  };
  const CgroupFolders folders = cgroup_folders("cpu", root);
  for (const std::string& folder : folders.v2) {
    std::ifstream both(folder + "/cpu.max");
    std::string quota, period;
    both >> quota >> period;
    hold(std::istringstream(quota), std::istringstream(period));
  }
  for (const std::string& folder : folders.v1)
    hold(std::ifstream(folder + "/cpu.cfs_quota_us"), std::ifstream(folder + "/cpu.cfs_period_us"));
  return least;
}

}  // namespace

int granted_cores(const std::string& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency());
  const double quota = std::ceil(cgroup_quota(root));
  return quota < cores ? std::max(static_cast<int>(quota), 1) : std::max(cores, 1);
}

ComputePool::~ComputePool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ComputePool::add_threads(int count) {
  const std::lock_guard lock(mutex_);
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

std::shared_ptr<void> ComputePool::lease(int threads) {
  add_threads(threads);
  return {this, [threads](ComputePool* pool) {
            const std::lock_guard lock(pool->mutex_);
            pool->surplus_ += threads;
            pool->wake_.notify_all();
          }};
}

void ComputePool::submit(UniqueFunction<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void ComputePool::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || surplus_ > 0 || !queue_.empty(); });
    if (surplus_ > 0 && !stopping_) {
      --surplus_;
      ended_.push_back(std::this_thread::get_id());
      if (!queue_.empty()) wake_.notify_one();  // this thread may have taken the call that was meant for the work
      return;
    }
    if (queue_.empty()) return;  // stopping, and nothing is left
    UniqueFunction<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // not under the lock: it may have held the last of a model
    lock.lock();
  }
}

}  // namespace serin::serving

// compute_pool.cc: one queue, one lock, threads that sleep while there is nothing to do: idle costs nothing.

#include "runtime/serving/compute_pool.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>

namespace serin::serving {
namespace {

// cgroup v2 says "max 100000" or "<quota> <period>" in microseconds; v1 has two files.
double cgroup_quota() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) return std::strtod(quota.c_str(), nullptr) / period;
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double allowed = 0;
  if (v1_quota >> allowed && v1_period >> period && allowed > 0 && period > 0) return allowed / period;
  return 0;  // no limit
}

}  // namespace

int granted_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency());
  if (const double quota = cgroup_quota(); quota > 0) cores = std::min(cores, static_cast<int>(std::ceil(quota)));
  return std::max(cores, 1);
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

// compute_pool.cc: two queues, one lock, threads that sleep while there is nothing to do: idle costs nothing.

#include "runtime/serving/compute_pool.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

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

ComputePool::ComputePool(int threads) {
  for (int i = 0; i < std::max(threads, 1); ++i) threads_.emplace_back([this] { run(); });
}

ComputePool::~ComputePool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ComputePool::submit(std::function<void()> work, Priority priority) {
  {
    const std::lock_guard lock(mutex_);
    (priority == Priority::kNormal ? normal_ : low_).push_back(std::move(work));
  }
  wake_.notify_one();
}

void ComputePool::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !normal_.empty() || !low_.empty(); });
    auto& queue = normal_.empty() ? low_ : normal_;
    if (queue.empty()) return;  // stopping, and nothing is left
    std::function<void()> work = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // not under the lock: it may have held the last of a model
    lock.lock();
  }
}

}  // namespace serin::serving

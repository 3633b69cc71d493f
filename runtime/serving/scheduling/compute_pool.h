// compute_pool.h: the threads that compute: one for each instance that is loaded, asleep while it has nothing to do.
//
// Not one for each core: a batch cannot be interrupted by us, so with a pool of cores one slow model would hold them all and starve the fast ones
// beside it (measured: a 26 ms canary turned a 5 us stable model's answers into 429). The kernel's scheduler can interrupt it, and does.
#pragma once

#include <string>

#include "runtime/base/thread_pool.h"

namespace serin::serving {

/// Cores this process may use: the smaller of its CPU set and the quota of its control group or one above it, at least 1. `root`: where /proc and /sys are.
int granted_cores(const std::string& root = "");

class ComputePool : public ThreadPool {
 public:
  explicit ComputePool(int cores) : ThreadPool(1), cores_(cores) {}

  /// What the defaults of models are made from: instances times threads of each.
  int cores() const { return cores_; }

 private:
  const int cores_;
};

}  // namespace serin::serving

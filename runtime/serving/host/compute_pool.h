// compute_pool.h: the threads that compute: one for each loaded instance; a thread without work sleeps.
//
// The number of threads is not the number of cores, because Serin cannot interrupt a batch. In a pool of cores, one slow model would occupy
// all of them and starve the fast ones. (Measured: a 26 ms canary turned a 5 us stable model's answers into 429.) The kernel's scheduler
// can interrupt a thread, and does.
#pragma once

#include <string>

#include "runtime/base/thread_pool.h"

namespace serin::serving {

/// Returns the cores that this process may use, at least 1: its CPU set, or the smaller quota of its control group or one above it. `root`:
/// parent folder of /proc and /sys.
int granted_cores(const std::string& root = "");

class ComputePool : public ThreadPool {
 public:
  explicit ComputePool(int cores) : ThreadPool(1), cores_(cores) {}

  /// Base for the defaults of models: instances times threads of each.
  int cores() const { return cores_; }

 private:
  const int cores_;
};

}  // namespace serin::serving

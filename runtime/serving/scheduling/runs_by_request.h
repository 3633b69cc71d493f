// runs_by_request.h: the runs of a scheduler that answers a request by several jobs, found by the request that a client gives up.
#pragma once

#include <memory>
#include <unordered_map>

#include "kernels/mutex.h"
#include "runtime/serving/scheduling/job.h"

namespace serin::serving {

/// A run is held by its parts that are under way, not here; its destructor removes it. Thread-safe.
template <class Run>
class RunsByRequest {
 public:
  void add(const JobPtr& request, const std::shared_ptr<Run>& run) {
    const MutexLock lock(mutex_);
    runs_.emplace(request.get(), run);
  }
  void remove(const JobPtr& request) {
    const MutexLock lock(mutex_);
    runs_.erase(request.get());
  }
  /// Null: it is not under way.
  std::shared_ptr<Run> find(const JobPtr& request) const {
    const MutexLock lock(mutex_);
    const auto found = runs_.find(request.get());
    return found == runs_.end() ? nullptr : found->second.lock();
  }
  bool empty() const {
    const MutexLock lock(mutex_);
    return runs_.empty();
  }

 private:
  mutable Mutex mutex_;
  std::unordered_map<const Job*, std::weak_ptr<Run>> runs_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::serving

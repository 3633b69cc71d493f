// step_threads.h: threads for the steps around models, as many as the process has cores, and the queue in front of them.
//
// Steps after a model go first, because their requests are nearly done.
#pragma once

#include <deque>
#include <memory>

#include "kernels/mutex.h"
#include "runtime/base/unique_function.h"
#include "runtime/serving/host/compute_pool.h"

namespace serin::serving {

class StepThreads : public std::enable_shared_from_this<StepThreads> {
 public:
  enum class Place : uint8_t { kBefore, kAfter };

  /// The pool must outlive this object and its work.
  explicit StepThreads(ComputePool& pool) : pool_(pool), threads_(pool.cores()), lease_(pool.lease(threads_)) {}

  /// `owner` is kept until the work is done, or dropped. The work must not throw.
  void submit(std::shared_ptr<void> owner, Place place, UniqueFunction<void()> work);
  /// Removes the waiting work of an owner.
  void drop(const void* owner);
  /// Tasks that wait before a model.
  size_t waiting() const;

 private:
  struct Work {
    std::shared_ptr<void> owner;
    UniqueFunction<void()> run;
  };
  void run();

  ComputePool& pool_;
  const int threads_;
  const std::shared_ptr<void> lease_;

  mutable Mutex mutex_;
  std::deque<Work> before_ SERIN_GUARDED_BY(mutex_), after_ SERIN_GUARDED_BY(mutex_);
  int running_ SERIN_GUARDED_BY(mutex_) = 0;
};

}  // namespace serin::serving

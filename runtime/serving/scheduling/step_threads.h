// step_threads.h: threads for the steps around models, as many as the process has cores, and the queue in front of them.
//
// Steps after a model go first, because their requests are nearly done.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <new>

#include "kernels/mutex.h"
#include "runtime/base/result.h"
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

/// Runs the work of a step and returns its Result. Sizes come from requests, so memory may not be there: kOverloaded. Other exceptions are
/// kInternal.
template <class Work>
auto guarded(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Error{Code::kOverloaded, "there is no memory for the steps of this request"};
  } catch (const std::exception& e) {
    return Error{Code::kInternal, e.what()};
  }
}

}  // namespace serin::serving

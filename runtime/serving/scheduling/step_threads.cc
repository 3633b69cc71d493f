#include "runtime/serving/scheduling/step_threads.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace serin::serving {

void StepThreads::submit(std::shared_ptr<void> owner, Place place, UniqueFunction<void()> work) {
  {
    const MutexLock lock(mutex_);
    (place == Place::kAfter ? after_ : before_).push_back({std::move(owner), std::move(work)});
    if (running_ == threads_) return;
    ++running_;
  }
  pool_.submit([self = shared_from_this()] { self->run(); });
}

void StepThreads::run() {
  while (true) {
    Work next;
    {
      const MutexLock lock(mutex_);
      std::deque<Work>& queue = after_.empty() ? before_ : after_;
      if (queue.empty()) {
        --running_;
        return;
      }
      next = std::move(queue.front());
      queue.pop_front();
    }
    next.run();
  }
}

void StepThreads::drop(const void* owner) {
  std::vector<Work> dropped;  // end without the lock
  const MutexLock lock(mutex_);
  for (std::deque<Work>* const queue : {&before_, &after_}) {
    const auto rest = std::ranges::stable_partition(*queue, [&](const Work& work) { return work.owner.get() != owner; });
    std::ranges::move(rest, std::back_inserter(dropped));
    queue->erase(rest.begin(), rest.end());
  }
}

size_t StepThreads::waiting() const {
  const MutexLock lock(mutex_);
  return before_.size();
}

}  // namespace serin::serving

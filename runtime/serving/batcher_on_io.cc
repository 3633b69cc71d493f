// batcher_on_io.cc: batches that run on the io thread which has read their requests.
//
// To wake a compute thread, and the io thread again for the answers, costs some 16 us of CPU and two turns of the kernel's scheduler. Many a model takes less. Its
// batch is formed when the io thread has read all that a turn of its loop has brought: what came together rides together, and the answers go out together
// when the turn ends.
//
// An io thread has other clients, who must not feel it. So
// - a batch runs there if batches of its size took no longer than kLongest, by the running average of the curve: one run of ten times that pushes it over the
//   limit, wherever it ran, and only dozens of short ones bring it back;
// - nothing is made there: where an instance meets a size for the first time, the batch goes to a compute thread as it is;
// - a model has kLongest in each turn; what waits beyond that goes to compute threads, to all that are free;
// - what may wait for others (devices, several threads, a delay of the queue) never runs there, nor what has no plan, whose time depends on the data.

#include <algorithm>

#include "runtime/net/loop.h"
#include "runtime/serving/batcher.h"

namespace serin::serving {
namespace {

constexpr std::chrono::microseconds kLongest{20};  // about what the two wakings cost
constexpr std::chrono::microseconds kLeast{1};     // that a batch counts for

}  // namespace

bool Batcher::may_run_on_io(const Job& job) const {
  if (!options_.on_io_threads || net::this_loop() == net::kNotAnIoThread) return false;
  const BatchCurve& own = curve(job.group);
  return own.knows(job.rows) && own.predict(job.rows) <= kLongest;
}

/// Nobody, where this io thread will look at the queue anyway.
std::optional<size_t> Batcher::wake_on_io() {
  const size_t loop = net::this_loop();
  if (std::ranges::find(on_io_, loop) != on_io_.end()) return std::nullopt;
  const auto instance = take_free();
  if (instance) on_io_.push_back(loop);
  return instance;
}

void Batcher::start_on_io(size_t instance) {
  net::post_here([self = shared_from_this(), instance] { self->work_on_io(instance); });
}

void Batcher::work_on_io(size_t instance) {
  std::vector<JobPtr>& batch = batches_[instance];
  for (std::chrono::nanoseconds left = kLongest;; batch.clear()) {
    std::vector<JobPtr> expired;
    std::vector<size_t> others;
    bool taken = false;
    {
      const std::lock_guard lock(mutex_);
      std::erase(on_io_, net::this_loop());
      const auto now = Clock::now();
      expired = queue_.sweep(now);
      take(now, batch, left);
      taken = !batch.empty();
      if (taken) {
        const auto takes = predict(batch);
        left -= std::max<std::chrono::nanoseconds>(takes, kLeast);
        busy_until_[instance] = now + takes;
      } else if (queue_.empty()) {
        free_.push_back(instance);
      } else {
        others = wake_for_rest(instance);
      }
    }
    refuse_expired(expired);
    for (const size_t other : others) start(other);
    if (!taken) return;
    if (run_(instance, batch, /*on_io=*/true)) continue;
    return pool_.submit([self = shared_from_this(), instance] {
      self->run_(instance, self->batches_[instance], /*on_io=*/false);
      self->go_on(instance);
    });
  }
}

/// This instance and as many of those that are free as there are batches.
std::vector<size_t> Batcher::wake_for_rest(size_t instance) {
  const int64_t most = worthwhile_rows(curve(queue_.entries().front().job->group));
  std::vector<size_t> woken = {instance};
  for (int64_t covered = most; covered < static_cast<int64_t>(queue_.size()); covered += most) {
    const auto next = take_free();
    if (!next) break;
    woken.push_back(*next);
  }
  return woken;
}

}  // namespace serin::serving

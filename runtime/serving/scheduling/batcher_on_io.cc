// batcher_on_io.cc: batches that run on the io thread which has read their requests.
//
// To wake a compute thread, and the io thread again for the answers, costs some 16 us of CPU and two turns of the kernel's scheduler. Many a model takes less. Its
// batch is formed when the io thread has read all that a turn of its loop has brought: what came together rides together. Until then it holds no instance, so
// that whoever is on another thread finds what is free.
//
// An io thread has other clients, who must not feel it. So
// - a batch runs there if batches of its size took no longer than kLongest, by the running average of the curve, copying of rows included;
// - a run that takes so much longer than all before that the data must be why (an If whose other branch is large) keeps its model from io threads for a while,
//   longer each time, wherever it ran;
// - nothing is made there: where an instance meets a size for the first time, the batch goes to a compute thread as it is, and so does one that failed, whose
//   jobs are run again one by one;
// - a model has kLongest in each turn; what waits beyond that goes to compute threads, to all that are free, and so does all that comes once a queue is half full;
// - what may wait for others (devices, several threads, a delay of the queue) never runs there, nor what has no plan.

#include <algorithm>

#include "runtime/net/loop.h"
#include "runtime/serving/scheduling/batcher.h"

namespace serin::serving {
namespace {

constexpr std::chrono::microseconds kLongest{20};    // about what the two wakings cost
constexpr std::chrono::microseconds kLeast{1};       // that a batch counts for
constexpr std::chrono::milliseconds kSurprising{1};  // for what was expected to take kLongest at most
constexpr std::chrono::seconds kFirstBar{10};
constexpr std::chrono::hours kLongestBar{1};

}  // namespace

/// The io thread that submits the job, if it may run there.
net::Loop* Batcher::loop_to_run_on(const Job& job) const {
  net::Loop* const here = options_.on_io_threads && job.loop != nullptr ? job.loop->here() : nullptr;
  if (here == nullptr || here->now() < barred_until_ || queue_.half_full()) return nullptr;
  const BatchCurve& own = curve(job.group);
  return own.knows(job.rows) && own.predict(job.rows) <= kLongest ? here : nullptr;
}

/// Who is surprised for the second time before as much time has passed again as it was barred for is barred twice as long.
void Batcher::bar_if_surprising(const BatchCurve& known, int64_t rows, std::chrono::nanoseconds took) {
  if (!options_.on_io_threads || took < kSurprising || !known.knows(rows) || known.predict(rows) > kLongest) return;
  const auto now = Clock::now();
  const bool again = bar_.count() > 0 && now - barred_until_ < bar_;
  bar_ = again ? std::min<std::chrono::nanoseconds>(2 * bar_, kLongestBar) : kFirstBar;
  barred_until_ = now + bar_;
}

/// Whether this io thread has yet to be told to look at the queue. Not where all are busy: who ends a batch looks at the queue.
bool Batcher::mark_loop(const net::Loop& loop) {
  if (free_.empty() || std::ranges::find(on_io_, &loop) != on_io_.end()) return false;
  on_io_.push_back(&loop);
  return true;
}

void Batcher::look_on_io(const net::Loop& loop) {
  std::optional<size_t> instance;
  {
    const MutexLock lock(mutex_);
    std::erase(on_io_, &loop);
    instance = take_free();
  }
  if (instance) work_on_io(*instance);
}

void Batcher::work_on_io(size_t instance) {
  std::vector<JobPtr>& batch = batches_[instance];
  for (std::chrono::nanoseconds left = kLongest;; batch.clear()) {
    std::vector<JobPtr> expired;
    std::vector<size_t> others;
    bool taken = false;
    {
      const MutexLock lock(mutex_);
      const auto now = Clock::now();
      expired = queue_.sweep(now);
      if (now >= barred_until_) take(now, batch, left);
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
  const int64_t most = worthwhile_rows(curve(queue_.front()->group));
  int64_t rows = 0;
  for (const auto& [place, entry] : queue_.entries()) rows += entry.job->rows;
  std::vector<size_t> woken = {instance};
  for (int64_t covered = most; covered < rows; covered += most) {
    const auto next = take_free();
    if (!next) break;
    woken.push_back(*next);
  }
  return woken;
}

}  // namespace serin::serving

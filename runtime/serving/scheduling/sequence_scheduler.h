// sequence_scheduler.h: orders the requests of sequences before they reach the scheduler that runs them.
//
// A sequence begins with a request with `sequence_start`. It ends with a request with `sequence_end`, or after too long an idle time. Its
// requests run in the order of arrival, one at a time, each with the state that the previous one left. Requests of different sequences
// share a batch. The number of active sequences is limited; others wait until one ends.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "kernels/mutex.h"
#include "runtime/serving/host/compute_pool.h"
#include "runtime/serving/scheduling/sequence_tensors.h"
#include "runtime/serving/scheduling/served.h"

namespace serin::serving {

class SequenceScheduler final : public Scheduler, public std::enable_shared_from_this<SequenceScheduler> {
 public:
  /// Wraps the model with sequences.
  static Result<Served> over(Served model, const ModelSettings& settings, ComputePool& pool);
  ~SequenceScheduler() override;

  /// kInvalidArgument: the request has no sequence, or one that did not begin.
  Status submit(JobPtr job) override;
  void withdraw(const JobPtr& job) override;
  int64_t retry_after_seconds() const override { return below_->retry_after_seconds(); }
  bool idle() const override;
  Status usable() const override { return below_->usable(); }

 private:
  using Key = std::pair<uint64_t, std::string>;
  struct Sequence {
    std::deque<JobPtr> waiting;
    SequenceTensors::States states;
    bool under_way = false;  ///< has one of the places
    bool running = false;    ///< a request of it runs below
    bool ends = false;       ///< its last request has come
    Clock::time_point last_seen;
  };
  class Turn;
  using Sequences = std::map<Key, Sequence>;

  SequenceScheduler(Served model, SequenceTensors tensors, const ModelSettings& settings, ComputePool& pool);
  void release_idle();
  void end_turn(const Key& key, std::optional<SequenceTensors::States> states);
  Result<Sequences::iterator> find_or_begin(const Job& job, Clock::time_point now) SERIN_REQUIRES(mutex_);
  bool rests_too_long(const Sequence& sequence, Clock::time_point now) const SERIN_REQUIRES(mutex_);
  void give_places(Clock::time_point now) SERIN_REQUIRES(mutex_);
  void end_rested(Clock::time_point now) SERIN_REQUIRES(mutex_);
  void run_next(Sequences::iterator sequence) SERIN_REQUIRES(mutex_);
  JobPtr take_out(Sequence& sequence, const Job& job) SERIN_REQUIRES(mutex_);
  void end(Sequences::iterator sequence) SERIN_REQUIRES(mutex_);

  const std::string name_;
  const std::shared_ptr<Scheduler> below_;
  const SequenceTensors tensors_;
  ComputePool& pool_;
  const std::chrono::nanoseconds idle_;
  const size_t places_, queue_limit_;

  mutable Mutex mutex_;
  Sequences sequences_ SERIN_GUARDED_BY(mutex_);
  std::deque<Key> backlog_ SERIN_GUARDED_BY(mutex_);  // sequences without a place
  size_t under_way_ SERIN_GUARDED_BY(mutex_) = 0;
  size_t waiting_ SERIN_GUARDED_BY(mutex_) = 0;  // requests of all sequences
  bool stopping_ SERIN_GUARDED_BY(mutex_) = false;
  Condition changed_;
  std::thread watch_;  // ends sequences that are idle too long
};

}  // namespace serin::serving

// sequence_scheduler.cc: a request on its way down takes its turn with it, in what will be called with the answer. A turn ends with the answer or, where nobody
// waits any more and the request was dropped on the way, when it is destroyed: the sequence goes on in both cases.
//
// Locks are taken downwards only: this scheduler's, then the batcher's. What ends a turn from within the batcher is therefore put off.

#include "runtime/serving/scheduling/sequence_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace serin::serving {

/// Of one request of a sequence; held by what its answer is given to.
class SequenceScheduler::Turn {
 public:
  Turn(std::shared_ptr<SequenceScheduler> scheduler, Key key) : scheduler_(std::move(scheduler)), key_(std::move(key)) {}
  ~Turn() {
    if (!scheduler_) return;
    ComputePool& pool = scheduler_->pool_;
    pool.submit([scheduler = std::move(scheduler_), key = key_] { scheduler->end_turn(key, std::nullopt); });
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// In this order: what a client has not been told must not be overtaken by the answer to the next request.
  void end(Answer answer, UniqueFunction<void(Answer)>& done) {
    const auto scheduler = std::exchange(scheduler_, nullptr);
    std::optional<SequenceTensors::States> states;
    if (answer.outputs) states = scheduler->tensors_.take_states(*answer.outputs);
    done(std::move(answer));
    scheduler->end_turn(key_, std::move(states));
  }

 private:
  std::shared_ptr<SequenceScheduler> scheduler_;  // null once ended
  const Key key_;
};

namespace {

constexpr size_t kMostStateBytesOfAll = size_t{64} << 30;  // of all sequences that may be under way
constexpr std::chrono::hours kLongestIdle{24 * 365};       // sums do not overflow

/// Sequences at once: of a model without batches, each instance has one.
size_t places_of(const Served& model, const ModelSettings& settings) {
  const int64_t of_instance = settings.sequences->max_candidates > 0 ? settings.sequences->max_candidates : model.max_batch;
  return model.instances * static_cast<size_t>(settings.batching || settings.sequences->max_candidates > 0 ? of_instance : 1);
}

std::string print_id(const protocol::SequencePlace& place) { return place.name.empty() ? std::to_string(place.number) : place.name; }

}  // namespace

Result<Served> SequenceScheduler::over(Served model, const ModelSettings& settings, ComputePool& pool) {
  SERIN_TRY(SequenceTensors tensors, SequenceTensors::make(*settings.sequences, model.signature, model.batchable && settings.batching));
  const size_t places = places_of(model, settings);
  if (tensors.state_bytes() > kMostStateBytesOfAll / places)
    return Error{Code::kInvalidArgument, fmt::format("sequences: {} at once with {} bytes of states each: at most {} GiB together", places,
                                                     tensors.state_bytes(), kMostStateBytesOfAll >> 30)};
  Served served = model;
  served.stateful = true;
  served.signature = tensors.signature();
  served.scheduler = std::shared_ptr<SequenceScheduler>(new SequenceScheduler(std::move(model), std::move(tensors), settings, pool));
  return served;
}

SequenceScheduler::SequenceScheduler(Served model, SequenceTensors tensors, const ModelSettings& settings, ComputePool& pool)
    : name_(model.signature.model),
      below_(std::move(model.scheduler)),
      tensors_(std::move(tensors)),
      pool_(pool),
      idle_(std::min<std::chrono::nanoseconds>(settings.sequences->idle, kLongestIdle)),
      places_(places_of(model, settings)),
      queue_limit_(settings.queues.levels[settings.queues.standard - 1].limit),
      watch_([this] { release_idle(); }) {}

SequenceScheduler::~SequenceScheduler() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  watch_.join();
}

Result<SequenceScheduler::Sequences::iterator> SequenceScheduler::find_or_begin(const Job& job, Clock::time_point now) {
  const Key key{job.sequence.number, job.sequence.name};
  auto found = sequences_.find(key);
  if (found != sequences_.end() && rests_too_long(found->second, now)) {
    end(found);
    found = sequences_.end();
  }
  if (!job.sequence.start && (found == sequences_.end() || found->second.ends))
    return Error{Code::kInvalidArgument,
                 fmt::format("inference request for sequence {} to {} must specify the START flag on the first request of the sequence",
                             print_id(job.sequence), name_)};
  if (found != sequences_.end()) return found;
  if (sequences_.empty()) changed_.notify_all();
  found = sequences_.try_emplace(key, Sequence{.states = tensors_.initial()}).first;
  backlog_.push_back(key);
  return found;
}

Status SequenceScheduler::submit(JobPtr job) {
  if (!job->sequence.any())
    return Error{Code::kInvalidArgument, fmt::format("inference request to {} must specify a non-zero or non-empty correlation ID", name_)};
  if (job->rows != 1)
    return Error{Code::kInvalidArgument,
                 fmt::format("inference request to {} must specify batch-size 1 due to requirements of sequence batcher", name_)};
  SERIN_CHECK(tensors_.check(job->sequence));
  const auto now = Clock::now();
  JobPtr gone;  // ends without the lock
  const MutexLock lock(mutex_);
  if (waiting_ >= queue_limit_)
    return Error{Code::kOverloaded, fmt::format("exceeds maximum queue size: {} requests of sequences are waiting", waiting_)};
  SERIN_TRY(const auto sequence, find_or_begin(*job, now));
  sequence->second.ends = job->sequence.end;
  sequence->second.last_seen = now;
  sequence->second.waiting.push_back(job);
  ++waiting_;
  if (job->given_up()) gone = take_out(sequence->second, *job);  // it was withdrawn already
  if (sequence->second.under_way) run_next(sequence);
  give_places(now);
  return {};
}

void SequenceScheduler::withdraw(const JobPtr& job) {
  JobPtr gone;  // ends without the lock
  {
    const MutexLock lock(mutex_);
    const auto sequence = sequences_.find(Key{job->sequence.number, job->sequence.name});
    if (sequence != sequences_.end()) gone = take_out(sequence->second, *job);
  }
  if (!gone) below_->withdraw(job);
}

/// Null where it does not wait. Of a first request the place is kept, without anything in it: it is what the others begin from.
JobPtr SequenceScheduler::take_out(Sequence& sequence, const Job& job) {
  const auto found = std::ranges::find(sequence.waiting, &job, &JobPtr::get);
  if (found == sequence.waiting.end()) return nullptr;
  JobPtr gone = std::move(*found);
  if (job.sequence.start) {
    *found = std::make_shared<Job>();
    (*found)->sequence = job.sequence;
    (*found)->abandoned = true;
  } else {
    sequence.waiting.erase(found);
    --waiting_;
  }
  return gone;
}

/// Nothing of it runs or waits, and it has been so for too long.
bool SequenceScheduler::rests_too_long(const Sequence& sequence, Clock::time_point now) const {
  return !sequence.running && sequence.waiting.empty() && now - sequence.last_seen > idle_;
}

void SequenceScheduler::give_places(Clock::time_point now) {
  if (!backlog_.empty() && under_way_ >= places_) end_rested(now);
  while (!backlog_.empty() && under_way_ < places_) {
    const auto next = sequences_.find(backlog_.front());
    backlog_.pop_front();
    if (next == sequences_.end() || next->second.under_way) continue;
    next->second.under_way = true;
    ++under_way_;
    run_next(next);
  }
}

void SequenceScheduler::end_rested(Clock::time_point now) {
  for (auto each = sequences_.begin(); each != sequences_.end();) {
    const auto sequence = each++;
    if (sequence->second.under_way && rests_too_long(sequence->second, now)) end(sequence);
  }
}

void SequenceScheduler::end(Sequences::iterator sequence) {
  if (sequence->second.under_way) --under_way_;
  sequences_.erase(sequence);
}

/// The next request of a sequence that has a place, unless one is below already. A sequence that is over leaves.
void SequenceScheduler::run_next(Sequences::iterator found) {
  Sequence& sequence = found->second;
  while (!sequence.running && !sequence.waiting.empty()) {
    const JobPtr job = std::move(sequence.waiting.front());
    sequence.waiting.pop_front();
    --waiting_;
    if (job->sequence.start) sequence.states = tensors_.initial();
    if (job->given_up()) continue;
    const auto turn = std::make_shared<Turn>(shared_from_this(), found->first);
    tensors_.complete(*job, sequence.states);
    const auto done = std::make_shared<UniqueFunction<void(Answer)>>(std::move(job->done));
    job->done = [turn, done](Answer answer) { turn->end(std::move(answer), *done); };
    sequence.running = true;
    const Status taken = below_->submit(job);
    if (taken) return;
    job->done = nullptr;
    pool_.submit([turn, done, why = taken.error()] {
      Answer answer;
      answer.outputs = why;
      turn->end(std::move(answer), *done);
    });
    return;
  }
  if (!sequence.running && sequence.waiting.empty() && sequence.ends) end(found);
}

/// `states`: none where the request failed or was dropped, which changes nothing.
void SequenceScheduler::end_turn(const Key& key, std::optional<SequenceTensors::States> states) {
  const auto now = Clock::now();
  const MutexLock lock(mutex_);
  const auto found = sequences_.find(key);
  if (found == sequences_.end()) return;
  Sequence& sequence = found->second;
  sequence.running = false;
  sequence.last_seen = now;
  if (states) sequence.states = *std::move(states);
  run_next(found);
  give_places(now);
}

/// Those that begin to rest while it waits have rested for long enough after those that rest already.
void SequenceScheduler::release_idle() {
  const MutexLock lock(mutex_);
  while (!stopping_) {
    if (sequences_.empty()) {
      changed_.wait(mutex_);
      continue;
    }
    auto next = Clock::now() + idle_;
    for (const auto& [key, sequence] : sequences_)
      if (sequence.under_way && !sequence.running && sequence.waiting.empty()) next = std::min(next, sequence.last_seen + idle_);
    changed_.wait_until(mutex_, next + std::chrono::milliseconds(1));
    if (stopping_) return;
    const auto now = Clock::now();
    end_rested(now);
    give_places(now);
  }
}

bool SequenceScheduler::idle() const {
  const MutexLock lock(mutex_);
  return waiting_ == 0 && below_->idle();
}

}  // namespace serin::serving

#include "runtime/serving/scheduling/caching_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace serin::serving {

/// One computation and all who wait for it, whose inputs are the same.
struct CachingScheduler::Flight {
  uint64_t hash;
  std::weak_ptr<Job> leader;     // holds the flight, not the other way round: it must be seen when it is dropped
  std::deque<JobPtr> followers;  // guarded by the scheduler's mutex_, as is the leader

  bool is_for(const Job& job) const {
    if (const JobPtr held = leader.lock()) return same_inputs(held->inputs, job.inputs);
    return !followers.empty() && same_inputs(followers.front()->inputs, job.inputs);
  }
};

/// Held by what the leader's answer is given to: where there is none, because it failed or was dropped on the way, the flight is handed over. Not from here: the
/// batcher's lock may be held, and what is below may answer the next one at once, and the one after it.
class CachingScheduler::Lead {
 public:
  Lead(std::shared_ptr<CachingScheduler> scheduler, std::shared_ptr<Flight> flight)
      : scheduler_(std::move(scheduler)), flight_(std::move(flight)) {}
  ~Lead() {
    if (scheduler_) hand_over(std::move(scheduler_), std::move(flight_));
  }
  Lead(const Lead&) = delete;
  Lead& operator=(const Lead&) = delete;

  void end(Answer answer, UniqueFunction<void(Answer)>& done, const JobPtr& request) {
    auto scheduler = std::exchange(scheduler_, nullptr);
    auto flight = std::exchange(flight_, nullptr);
    const auto outputs = answer.outputs ? std::optional(*answer.outputs) : std::nullopt;
    done(std::move(answer));
    done = nullptr;
    if (outputs)
      scheduler->land(flight, request, copy_of(*outputs));
    else
      hand_over(std::move(scheduler), std::move(flight));
  }
  /// It was not taken.
  void give_up() { scheduler_ = nullptr; }

 private:
  static void hand_over(std::shared_ptr<CachingScheduler> scheduler, std::shared_ptr<Flight> flight) {
    ComputePool& pool = scheduler->host_.pool;
    pool.submit([scheduler = std::move(scheduler), flight = std::move(flight)] { scheduler->hand_over(flight); });
  }

  std::shared_ptr<CachingScheduler> scheduler_;  // null once ended
  std::shared_ptr<Flight> flight_;
};

CachingScheduler::CachingScheduler(std::shared_ptr<Scheduler> below, std::shared_ptr<ResponseCache> cache, size_t most_followers,
                                   Host& host, std::shared_ptr<ModelMetrics> metrics)
    : below_(std::move(below)), cache_(std::move(cache)), most_followers_(most_followers), host_(host), metrics_(std::move(metrics)) {}

CachingScheduler::~CachingScheduler() { cache_->forget(this); }

std::shared_ptr<CachingScheduler::Flight> CachingScheduler::flight_of(uint64_t hash, const Job& job) {
  const auto [begin, end] = flights_.equal_range(hash);
  for (auto at = begin; at != end; ++at)
    if (at->second->is_for(job)) return at->second;
  return nullptr;
}

Status CachingScheduler::submit(JobPtr job) {
  if (job->shadow) return below_->submit(std::move(job));
  const auto asked = Clock::now();
  const uint64_t hash = hash_inputs(*job);
  std::shared_ptr<Flight> flight;
  std::optional<Outputs> known;
  {
    const MutexLock lock(mutex_);
    known = cache_->find(this, hash, *job);
    if (const auto others = known ? nullptr : flight_of(hash, *job)) {
      if (job->given_up()) return {};  // it was withdrawn already
      if (others->followers.size() >= most_followers_)
        return Error{Code::kOverloaded,
                     fmt::format("exceeds maximum queue size: {} requests wait for the same answer", others->followers.size())};
      job->inputs_hash = hash;
      others->followers.push_back(std::move(job));
      return {};
    }
    if (!known) {
      flight = std::make_shared<Flight>(Flight{hash, job, {}});
      flights_.emplace(hash, flight);
    }
  }
  if (known) {  // without the lock: what is answered may ask again
    answer_from_cache(job, *std::move(known), asked);
    return {};
  }
  metrics_->found_in_cache(false, Clock::now() - asked);
  Status taken = lead(flight, job);
  if (!taken) hand_over(flight);
  return taken;
}

void CachingScheduler::withdraw(const JobPtr& job) {
  JobPtr follower;  // ends without the lock
  {
    const MutexLock lock(mutex_);
    const auto [begin, end] = flights_.equal_range(job->inputs_hash);
    for (auto at = begin; at != end && !follower; ++at) {
      auto& followers = at->second->followers;
      const auto found = std::ranges::find(followers, job);
      if (found == followers.end()) continue;
      follower = std::move(*found);
      followers.erase(found);
    }
  }
  if (!follower) below_->withdraw(job);
}

/// An error: it is not taken below, and its `done` is as it was.
Status CachingScheduler::lead(const std::shared_ptr<Flight>& flight, const JobPtr& job) {
  const auto lead = std::make_shared<Lead>(shared_from_this(), flight);
  const auto done = std::make_shared<UniqueFunction<void(Answer)>>(std::move(job->done));
  const std::weak_ptr<Job> weak = job;
  job->done = [lead, done, weak](Answer answer) { lead->end(std::move(answer), *done, weak.lock()); };
  metrics_->cache_misses->add();
  Status taken = below_->submit(job);
  if (taken) return {};
  lead->give_up();
  job->done = std::move(*done);
  return taken;
}

void CachingScheduler::answer_from_cache(const JobPtr& job, Outputs outputs, Clock::time_point asked) const {
  metrics_->cache_hits->add();
  metrics_->found_in_cache(true, Clock::now() - asked);
  Answer answer;
  answer.outputs = std::move(outputs);
  answer.batch = host_.lone_tag();
  answer.cached = true;
  job->answer(std::move(answer));
}

/// The answer is there, for who waits and for who comes.
void CachingScheduler::land(const std::shared_ptr<Flight>& flight, const JobPtr& request, const Outputs& outputs) {
  const auto asked = Clock::now();
  if (request) cache_->insert(this, flight->hash, *request, outputs);  // first: who comes finds it or the flight
  std::deque<JobPtr> followers;
  {
    const MutexLock lock(mutex_);
    const auto [begin, end] = flights_.equal_range(flight->hash);
    flights_.erase(std::find_if(begin, end, [&](const auto& at) { return at.second == flight; }));
    followers = std::exchange(flight->followers, {});
  }
  for (const JobPtr& job : followers)
    if (!job->given_up()) answer_from_cache(job, outputs, asked);
}

/// The leader has no answer: the next whose client is still there computes.
void CachingScheduler::hand_over(const std::shared_ptr<Flight>& flight) {
  for (;;) {
    JobPtr next;
    {
      const MutexLock lock(mutex_);
      while (!flight->followers.empty() && !next) {
        if (!flight->followers.front()->given_up()) next = flight->followers.front();
        flight->followers.pop_front();
      }
      flight->leader = next;
      if (!next) {
        const auto [begin, end] = flights_.equal_range(flight->hash);
        flights_.erase(std::find_if(begin, end, [&](const auto& at) { return at.second == flight; }));
        return;
      }
    }
    const Status taken = lead(flight, next);
    if (taken) return;
    Answer answer;
    answer.outputs = taken.error();
    next->answer(std::move(answer));
  }
}

}  // namespace serin::serving

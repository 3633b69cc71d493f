// job_queue.h: the jobs that wait for an instance, in the order in which they go: the more urgent priority first, within one who came first; who waited longer
// than the queue lets them (QueuePolicy::delay), behind the others of their priority; shadow traffic behind all.
//
// Each priority, and shadow traffic, has a limit of its own: a flood of one keeps nobody out of the others. Not thread-safe: the batcher's lock is around it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/job.h"

namespace serin::serving {

/// What holds for the requests that wait at one priority.
struct QueuePolicy {
  static constexpr size_t kNoLimit = SIZE_MAX;
  size_t limit = 256;                   ///< requests; over it 429
  std::chrono::nanoseconds timeout{0};  ///< longest that one waits; 0: as long as its own deadline allows
  bool may_shorten = false;             ///< a request may name a shorter time for itself (Job::patience)
  bool delay = false;                   ///< after that it goes behind the others of its priority; else it is refused

  friend bool operator==(const QueuePolicy&, const QueuePolicy&) = default;
};

/// Of a model: a policy for each priority, the most urgent first.
struct QueuePolicies {
  bool timeout_is_deadline =
      true;  ///< what a request's parameter `timeout` says: from arrival to answer; false: Job::patience, as in Triton
  std::vector<QueuePolicy> levels{1};
  size_t standard = 1;  ///< from 1: of requests that name no priority, or one that there is not
  uint64_t named =
      1;  ///< priorities that requests may name, where these are more than the levels: the last level is of those that have none

  friend bool operator==(const QueuePolicies&, const QueuePolicies&) = default;
};

class JobQueue {
 public:
  struct Entry {
    JobPtr job;
    Clock::time_point expires;  ///< by its queue's policy
  };
  using Entries = std::pmr::map<QueuePlace, Entry>;

  explicit JobQueue(QueuePolicies policies) : policies_(std::move(policies)), waiting_(policies_.levels.size() + 1) {}

  /// kOverloaded: its priority's limit.
  Status push(JobPtr job);
  /// Puts back those that waited too long; hands out those that are to be refused for it, and those that nobody waits for any more.
  std::vector<JobPtr> sweep(Clock::time_point now);
  /// Null where it does not wait here.
  JobPtr remove(const Job& job);

  /// Of one priority at least.
  bool half_full() const;
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  /// In the order in which they go.
  const Entries& entries() const { return entries_; }
  /// Requires that there is one.
  const JobPtr& front() const { return entries_.begin()->second.job; }
  size_t rank_of(const Job& job) const;

  /// Hands out, in order, those that `wanted(job)` says yes to.
  template <class Wanted>
  void take(Wanted wanted, std::vector<JobPtr>& taken) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (!wanted(*entry->second.job)) {
        ++entry;
        continue;
      }
      taken.push_back(std::move(entry->second.job));
      entry = erase(entry);
    }
  }

 private:
  const QueuePolicy& policy_of(size_t level) const;
  void insert(size_t rank, Entry&& entry);
  Entries::iterator erase(Entries::iterator entry);

  const QueuePolicies policies_;
  std::pmr::unsynchronized_pool_resource memory_;  // a queue that moves on takes none anew
  Entries entries_{&memory_};                      // by rank: 2 * level, one more for those that are late
  uint64_t last_ = 0;                              // number that was given
  std::vector<size_t> waiting_;                    // at each level; the last is shadow traffic
};

}  // namespace serin::serving

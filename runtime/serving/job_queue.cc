#include "runtime/serving/job_queue.h"

#include <fmt/format.h>

#include <algorithm>

namespace serin::serving {

size_t JobQueue::rank_of(const Job& job) const {
  const size_t levels = policies_.levels.size();
  if (job.shadow) return 2 * levels;
  if (job.priority == 0 || job.priority > std::max<uint64_t>(levels, policies_.named)) return 2 * (policies_.standard - 1);
  return 2 * (std::min<uint64_t>(job.priority, levels) - 1);
}

/// The last level is shadow traffic's.
const QueuePolicy& JobQueue::policy_of(size_t level) const {
  return policies_.levels[level == policies_.levels.size() ? policies_.standard - 1 : level];
}

bool JobQueue::half_full() const {
  for (size_t level = 0; level < waiting_.size(); ++level)
    if (waiting_[level] > policy_of(level).limit / 2) return true;
  return false;
}

void JobQueue::insert(Entry entry) {
  ++waiting_[entry.rank / 2];
  entries_.insert(std::ranges::upper_bound(entries_, entry.rank, {}, &Entry::rank), std::move(entry));
}

Status JobQueue::push(JobPtr job) {
  const size_t rank = rank_of(*job), level = rank / 2;
  const QueuePolicy& policy = policy_of(level);
  if (waiting_[level] >= policy.limit) drop_abandoned();  // the dead must not keep the living out
  if (waiting_[level] >= policy.limit)
    return Error{Code::kOverloaded, fmt::format("exceeds maximum queue size: {} requests are waiting", waiting_[level])};
  auto timeout = policy.timeout;
  if (policy.may_shorten && job->patience.count() > 0 && (timeout.count() == 0 || job->patience < timeout)) timeout = job->patience;
  const auto expires = timeout.count() > 0 ? Clock::now() + timeout : Clock::time_point::max();
  insert({std::move(job), rank, expires});
  return {};
}

void JobQueue::drop_abandoned() {
  std::erase_if(entries_, [this](const Entry& entry) {
    if (!entry.job->given_up()) return false;
    --waiting_[entry.rank / 2];
    return true;
  });
}

std::vector<JobPtr> JobQueue::sweep(Clock::time_point now) {
  drop_abandoned();
  std::vector<JobPtr> refused;
  std::vector<Entry> late;
  std::erase_if(entries_, [&](Entry& entry) {
    const bool out_of_time = entry.job->deadline <= now, waited = entry.expires <= now;
    if (!out_of_time && !waited) return false;
    const size_t level = entry.rank / 2;
    const bool delays = level < policies_.levels.size() && policies_.levels[level].delay;
    --waiting_[level];
    if (!out_of_time && delays)
      late.push_back({std::move(entry.job), 2 * level + 1, Clock::time_point::max()});
    else
      refused.push_back(std::move(entry.job));
    return true;
  });
  for (Entry& entry : late) insert(std::move(entry));
  return refused;
}

}  // namespace serin::serving

#include "runtime/serving/scheduling/job_queue.h"

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

void JobQueue::insert(size_t rank, Entry&& entry) {
  ++waiting_[rank / 2];
  entry.job->place = {rank, ++last_};
  const QueuePlace place = entry.job->place;
  entries_.emplace_hint(entries_.end(), place, std::move(entry));  // where most go
}

JobQueue::Entries::iterator JobQueue::erase(Entries::iterator entry) {
  --waiting_[entry->first.rank / 2];
  return entries_.erase(entry);
}

Status JobQueue::push(JobPtr job) {
  const size_t rank = rank_of(*job), level = rank / 2;
  const QueuePolicy& policy = policy_of(level);
  if (waiting_[level] >= policy.limit && !job->admitted)
    return Error{Code::kOverloaded, fmt::format("exceeds maximum queue size: {} requests are waiting", waiting_[level])};
  auto timeout = policy.timeout;
  if (policy.may_shorten && job->patience.count() > 0 && (timeout.count() == 0 || job->patience < timeout)) timeout = job->patience;
  const auto expires = timeout.count() > 0 ? Clock::now() + timeout : Clock::time_point::max();
  insert(rank, {std::move(job), expires});
  return {};
}

JobPtr JobQueue::remove(const Job& job) {
  const auto found = entries_.find(job.place);
  if (found == entries_.end() || found->second.job.get() != &job) return nullptr;
  JobPtr removed = std::move(found->second.job);
  erase(found);
  return removed;
}

std::vector<JobPtr> JobQueue::sweep(Clock::time_point now) {
  std::vector<JobPtr> gone;
  std::vector<std::pair<size_t, JobPtr>> late;
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = at->second;
    const bool out_of_time = entry.job->deadline <= now || entry.job->given_up(), waited = entry.expires <= now;
    if (!out_of_time && !waited) {
      ++at;
      continue;
    }
    const size_t level = at->first.rank / 2;
    const bool delays = level < policies_.levels.size() && policies_.levels[level].delay;
    if (!out_of_time && delays)
      late.emplace_back(2 * level + 1, std::move(entry.job));
    else
      gone.push_back(std::move(entry.job));
    at = erase(at);
  }
  for (auto& [rank, job] : late) insert(rank, {std::move(job), Clock::time_point::max()});
  return gone;
}

}  // namespace serin::serving

// caching_scheduler.h: answers requests from the response cache, and lets identical requests wait for one computation.
//
// If the computing request fails, or its client gives up, the next waiting request computes instead. Shadow requests bypass the cache,
// because they must exercise the model.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "kernels/mutex.h"
#include "runtime/serving/host/host.h"
#include "runtime/serving/scheduling/response_cache.h"
#include "runtime/serving/scheduling/scheduler.h"

namespace serin::serving {

class CachingScheduler final : public Scheduler, public std::enable_shared_from_this<CachingScheduler> {
 public:
  CachingScheduler(std::shared_ptr<Scheduler> below, std::shared_ptr<ResponseCache> cache, size_t most_followers, Host& host,
                   std::shared_ptr<ModelMetrics> metrics);
  ~CachingScheduler() override;

  Status submit(JobPtr job) override;
  void withdraw(const JobPtr& job) override;
  int64_t retry_after_seconds() const override { return below_->retry_after_seconds(); }
  bool idle() const override { return below_->idle(); }
  Status usable() const override { return below_->usable(); }

 private:
  struct Flight;
  class Lead;
  Status lead(const std::shared_ptr<Flight>& flight, const JobPtr& job);
  void land(const std::shared_ptr<Flight>& flight, const JobPtr& request, const Outputs& outputs);
  void hand_over(const std::shared_ptr<Flight>& flight);
  std::shared_ptr<Flight> flight_of(uint64_t hash, const Job& job) SERIN_REQUIRES(mutex_);
  void answer_from_cache(const JobPtr& job, Outputs outputs, Clock::time_point asked) const;

  const std::shared_ptr<Scheduler> below_;
  const std::shared_ptr<ResponseCache> cache_;
  const size_t most_followers_;
  Host& host_;
  const std::shared_ptr<ModelMetrics> metrics_;

  Mutex mutex_;
  std::unordered_multimap<uint64_t, std::shared_ptr<Flight>> flights_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::serving

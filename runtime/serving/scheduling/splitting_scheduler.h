// splitting_scheduler.h: a request of more rows than one run takes goes through its model in parts, which other requests may ride with, and is answered whole. Who
// batches on the client's side, as TensorFlow Serving's and KServe's users do, need not know how many rows a run has here.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "runtime/serving/scheduling/scheduler.h"

namespace serin::serving {

class SplittingScheduler final : public Scheduler, public std::enable_shared_from_this<SplittingScheduler> {
 public:
  /// `below` runs a model whose axis 0 counts rows in every tensor, at most `most_rows` of them in a job. A request has at most `most_parts` there at a time: what else
  /// waits gets its turn between them.
  SplittingScheduler(std::shared_ptr<Scheduler> below, int64_t most_rows, size_t most_parts)
      : below_(std::move(below)), most_rows_(most_rows), most_parts_(most_parts) {}

  /// The queue lets it in, or not, with its first part.
  Status submit(JobPtr job) override;
  void withdraw(const JobPtr& job) override;
  int64_t retry_after_seconds() const override { return below_->retry_after_seconds(); }
  bool idle() const override { return below_->idle(); }
  Status usable() const override { return below_->usable(); }

 private:
  class Run;

  const std::shared_ptr<Scheduler> below_;
  const int64_t most_rows_;
  const size_t most_parts_;

  std::mutex mutex_;
  std::unordered_map<const Job*, std::weak_ptr<Run>> runs_;  // guarded by mutex_; by request
};

}  // namespace serin::serving

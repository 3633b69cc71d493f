// splitting_scheduler.h: runs a request with more rows than one run takes in parts, and answers it as a whole.
//
// Other requests may share a batch with these parts. So clients that batch by themselves, as those of TensorFlow Serving and KServe do,
// need not know the number of rows in a run.
#pragma once

#include <memory>

#include "runtime/serving/scheduling/runs_by_request.h"
#include "runtime/serving/scheduling/scheduler.h"

namespace serin::serving {

class SplittingScheduler final : public Scheduler, public std::enable_shared_from_this<SplittingScheduler> {
 public:
  /// `below` runs a model whose axis 0 counts rows in every tensor, at most `most_rows` of them in a job. A request has at most
  /// `most_parts` parts there at a time, so that other requests run between them.
  SplittingScheduler(std::shared_ptr<Scheduler> below, int64_t most_rows, size_t most_parts)
      : below_(std::move(below)), most_rows_(most_rows), most_parts_(most_parts) {}

  /// The queue accepts or refuses the request with its first part.
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

  RunsByRequest<Run> runs_;
};

}  // namespace serin::serving

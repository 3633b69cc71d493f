// steps_scheduler.h: the steps before and after a model (runtime/steps): a client sends a picture or a sentence and gets labels.
//
// It runs one row at a time. So rows of one request and of others are prepared side by side, and then share a batch of the model. A
// SplittingScheduler in front of it gives it the rows of larger requests.
//
// Work longer than waking a thread runs on threads of its own (step_threads.h). Waiting rows count against the limit of the model's queue.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/serving/host/host.h"
#include "runtime/serving/scheduling/row_steps.h"
#include "runtime/serving/scheduling/runs_by_request.h"
#include "runtime/serving/scheduling/served.h"
#include "runtime/serving/scheduling/step_threads.h"

namespace serin::serving {

class StepsScheduler final : public Scheduler, public std::enable_shared_from_this<StepsScheduler> {
 public:
  /// Puts steps around a loaded model; its signature becomes that of the clients. At most `most_waiting` rows wait before the model.
  /// kInvalidArgument: the steps do not fit the model.
  static Result<Served> over(Served served, const steps::StepsSettings& settings, size_t most_waiting, Host& host,
                             const std::shared_ptr<ModelMetrics>& metrics);
  /// Returns the steps that a file of Paddle's projects next to the model describes (paddle_steps.h), or null. The log says so, also if the
  /// file cannot be used. `name` is for the log, `path` is the model's file or folder.
  static std::shared_ptr<const steps::StepsSettings> find_steps(const std::string& name, const std::string& path, const Served& served);

  Status submit(JobPtr job) override;
  void withdraw(const JobPtr& job) override;
  int64_t retry_after_seconds() const override { return below_->retry_after_seconds(); }
  bool idle() const override { return runs_.empty(); }
  Status usable() const override { return below_->usable(); }

 private:
  class Run;

  StepsScheduler(std::shared_ptr<Scheduler> below, RowSteps steps, size_t most_waiting, Host& host, ModelMetrics& metrics);
  void observe(std::string_view part, std::chrono::nanoseconds took) const;

  const std::shared_ptr<Scheduler> below_;
  const RowSteps steps_;
  const size_t most_waiting_;
  const std::shared_ptr<StepThreads> threads_;
  std::map<std::string, std::shared_ptr<metrics::Histogram>, std::less<>> durations_;  // by part

  RunsByRequest<Run> runs_;
};

}  // namespace serin::serving

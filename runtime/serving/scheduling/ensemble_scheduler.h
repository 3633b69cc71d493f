// ensemble_scheduler.h: runs a request through the steps of an ensemble, each as soon as its inputs are computed.
//
// Each step uses the batcher of its own model, together with other requests of the ensemble and of that model's own clients. Tensors are
// passed on without a copy.
#pragma once

#include <memory>

#include "runtime/serving/host/tracer.h"
#include "runtime/serving/scheduling/ensemble_plan.h"
#include "runtime/serving/scheduling/runs_by_request.h"

namespace serin::serving {

class EnsembleScheduler final : public Scheduler, public std::enable_shared_from_this<EnsembleScheduler> {
 public:
  static std::shared_ptr<EnsembleScheduler> make(EnsemblePlan plan, Tracer& tracer, std::shared_ptr<ModelMetrics> metrics) {
    return std::shared_ptr<EnsembleScheduler>(new EnsembleScheduler(std::move(plan), tracer, std::move(metrics)));
  }

  /// Later errors name the step.
  Status submit(JobPtr job) override;
  void withdraw(const JobPtr& job) override;
  int64_t retry_after_seconds() const override;
  bool idle() const override { return runs_.empty(); }
  Status usable() const override;

 private:
  class Run;
  EnsembleScheduler(EnsemblePlan plan, Tracer& tracer, std::shared_ptr<ModelMetrics> metrics)
      : plan_(std::move(plan)), tracer_(tracer), metrics_(std::move(metrics)) {}

  const EnsemblePlan plan_;
  Tracer& tracer_;
  const std::shared_ptr<ModelMetrics> metrics_;

  RunsByRequest<Run> runs_;
};

}  // namespace serin::serving

// scheduler_factory.h: makes the schedulers of loaded models. The composition root makes one factory and hands it to the repository.
//
//   SchedulerFactory schedulers(host, std::make_shared<ResponseCache>(bytes));
//   SERIN_TRY(Served served, schedulers.load("model 'digits' version 3", path, settings, metrics));
//   ... what the settings declare of the tensors is applied to `served` ...
//   SERIN_CHECK(schedulers.wrap(served, settings, metrics));
#pragma once

#include <memory>
#include <string>

#include "runtime/serving/host/host.h"
#include "runtime/serving/scheduling/response_cache.h"
#include "runtime/serving/scheduling/served.h"

namespace serin::serving {

class SchedulerFactory {
 public:
  /// `responses`: for models that enable it; null: such models are refused.
  explicit SchedulerFactory(Host& host, std::shared_ptr<ResponseCache> responses = nullptr)
      : host_(host), responses_(std::move(responses)) {}

  /// Reads, plans and warms a model. `name` is for messages.
  Result<Served> load(const std::string& name, const std::string& path, const ModelSettings& settings,
                      const std::shared_ptr<ModelMetrics>& metrics, const SignatureChoice& choice = {}) const;
  /// Makes an ensemble whose steps these models run.
  Result<Served> of_steps(const std::string& name, const ModelSettings& settings, const ServedModels& steps,
                          const std::shared_ptr<ModelMetrics>& metrics) const;
  /// Puts in front of the scheduler what the settings ask for: steps, splitting, response cache, reshapes, sequences.
  Status wrap(Served& served, const ModelSettings& settings, const std::shared_ptr<ModelMetrics>& metrics) const;

 private:
  Status keep_responses(Served& served, const ModelSettings& settings, const std::shared_ptr<ModelMetrics>& metrics) const;

  Host& host_;
  const std::shared_ptr<ResponseCache> responses_;
};

}  // namespace serin::serving

// served.h: a loaded model that takes requests: its properties, its metrics, and the scheduler that runs them.
//
// Versions (repository/version.h) derive from it. Ensembles use it for their steps.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/protocol/oip/oip_rest.h"
#include "runtime/serving/host/metrics.h"
#include "runtime/serving/scheduling/scheduler.h"
#include "runtime/serving/settings/settings.h"
#include "runtime/serving/settings/tensor_reshape.h"

namespace serin::serving {

/// The properties of a loaded model.
struct Served {
  protocol::Signature signature;
  protocol::Parameters parameters;  ///< for its metadata: "device" and "precision", each with the reason if there is one ("device_why")
  bool batchable = false;           ///< axis 0 of all tensors counts rows
  int64_t max_batch = 1;            ///< rows in one run
  size_t instances = 1;
  std::shared_ptr<Scheduler> scheduler;
  std::string_view platform = kModelPlatform;
  bool timeout_is_deadline = true;                         ///< as in QueuePolicies
  bool stateful = false;                                   ///< an answer depends on earlier requests
  TensorReshapes reshapes;                                 ///< shapes of tensors for clients; the scheduler has the model's shapes
  int64_t max_rows = INT64_MAX;                            ///< in one request: more than max_batch rows run in parts
  std::vector<std::string> other_signatures = {};          ///< names of the graphs for clients that its file has besides this one
  std::shared_ptr<const steps::StepsSettings> steps = {};  ///< of a file next to the model, where its settings have none; null: none
};

/// Which graph of a file is loaded.
struct SignatureChoice {
  std::string name = {};  ///< empty: the standard one
  std::shared_ptr<engine::SharedWeights> shared = nullptr;
};

/// Rows in all runs at the same time, for schedulers that give a model one row after the other. Where requests are not batched, `max_batch`
/// is no bound.
inline size_t rows_at_a_time(int64_t max_batch, size_t instances) {
  constexpr int64_t kMostOfARun = 1024;
  return static_cast<size_t>(std::min<int64_t>(max_batch, kMostOfARun)) * instances;
}

/// Immutable and thread-safe.
class ServedModel {
 public:
  const std::string& model() const { return model_; }
  const std::string& version() const { return version_; }
  std::string_view platform() const { return served_.platform; }
  const protocol::Signature& signature() const { return served_.signature; }
  const protocol::Parameters& parameters() const { return served_.parameters; }
  bool batchable() const { return served_.batchable; }
  int64_t max_batch() const { return served_.max_batch; }
  int64_t max_rows() const { return served_.max_rows; }
  bool timeout_is_deadline() const { return served_.timeout_is_deadline; }
  size_t instances() const { return served_.instances; }
  bool stateful() const { return served_.stateful; }  ///< requests name their sequence
  ModelMetrics& metrics() const { return *metrics_; }
  const std::shared_ptr<ModelMetrics>& metrics_of() const { return metrics_; }

  /// Like Scheduler::submit, for a job whose inputs were checked against the signature; kInvalidArgument: more rows than max_rows().
  Status submit(const JobPtr& job) const;
  void withdraw(const JobPtr& job) const { served_.scheduler->withdraw(job); }
  int64_t retry_after_seconds() const { return served_.scheduler->retry_after_seconds(); }
  bool idle() const { return served_.scheduler->idle(); }
  Status usable() const { return served_.scheduler->usable(); }

 protected:
  ServedModel(std::string model, std::string version, std::shared_ptr<ModelMetrics> metrics, Served served)
      : model_(std::move(model)), version_(std::move(version)), metrics_(std::move(metrics)), served_(std::move(served)) {}
  ~ServedModel() = default;

 private:
  Status count_rows(Job& job) const;

  const std::string model_, version_;
  const std::shared_ptr<ModelMetrics> metrics_;
  const Served served_;
};

using ServedModels = std::vector<std::shared_ptr<const ServedModel>>;

}  // namespace serin::serving

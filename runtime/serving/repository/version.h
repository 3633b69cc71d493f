// version.h: one loaded version of a model as the APIs see it: its metadata, its metrics, and the scheduler of its requests.
//
// Its scheduler runs the requests (scheduler.h). A version is immutable once loaded. The requests that use it share it, and it is destroyed
// after the last of them. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/engine/devices.h"
#include "runtime/protocol/oip/oip_rest.h"
#include "runtime/serving/host/compute_pool.h"
#include "runtime/serving/host/metrics.h"
#include "runtime/serving/host/tracer.h"
#include "runtime/serving/scheduling/response_cache.h"
#include "runtime/serving/scheduling/scheduler.h"
#include "runtime/serving/scheduling/tensor_reshape.h"
#include "runtime/serving/settings/settings.h"

namespace serin::serving {

/// Objects that all versions of all models share.
struct Host {
  const kernels::Backend& backend;
  const kernels::Backend* bf16_backend = nullptr;  ///< null if the machine cannot multiply bf16
  engine::Devices* devices = nullptr;              ///< null: CPU only
  metrics::Registry& metrics;
  MetricOptions metric_options{};
  ModelSettings defaults{};                       ///< for models whose serin.yaml does not set a value
  std::shared_ptr<ResponseCache> responses = {};  ///< for models that enable it; null: such models are refused
  Tracer tracer{};                                ///< traces once it is started
  uint64_t boot = 0;                              ///< random: identifies this start of the process in x-serin-batch
  std::atomic<uint64_t> next_batch{1};
  ComputePool pool;  ///< last member, so destroyed first: until then its threads use the members above
  protocol::BatchTag lone_tag() { return {boot, next_batch.fetch_add(1, std::memory_order_relaxed), 0, 1}; }
};

/// The platform in a model's metadata; Triton's name for it if a Triton configuration names one.
inline constexpr std::string_view kModelPlatform = "onnx_serin", kTritonPlatform = "onnxruntime_onnx", kEnsemblePlatform = "ensemble";

/// The properties of a loaded version.
struct Served {
  protocol::Signature signature;
  protocol::Parameters parameters;  ///< for its metadata: "device" and "precision", each with the reason if there is one ("device_why")
  bool batchable = false;           ///< axis 0 of all tensors counts rows
  int64_t max_batch = 1;            ///< rows in one run
  size_t instances = 1;
  std::shared_ptr<Scheduler> scheduler;
  std::string_view platform = kModelPlatform;
  bool timeout_is_deadline = true;  ///< as in QueuePolicies
  bool stateful = false;            ///< an answer depends on earlier requests
  TensorReshapes reshapes;          ///< shapes of tensors for clients; the scheduler has the model's shapes
  int64_t max_rows = INT64_MAX;     ///< in one request: more than max_batch rows run in parts
};

class Version : public std::enable_shared_from_this<Version> {
 public:
  /// Reads, plans and warms a model. The error names model and version.
  static Result<std::shared_ptr<Version>> load(const std::string& model, const std::string& version, const std::string& path,
                                               const ModelSettings& settings, Host& host);

  /// Makes an ensemble whose steps these versions run.
  static Result<std::shared_ptr<Version>> of_steps(const std::string& model, const std::string& version, const ModelSettings& settings,
                                                   const std::vector<std::shared_ptr<Version>>& steps, Host& host);

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
  Host& host() const { return host_; }

  /// Like Scheduler::submit, for a job whose inputs were checked against the signature; kInvalidArgument: more rows than max_rows().
  Status submit(const JobPtr& job);
  void withdraw(const JobPtr& job) { served_.scheduler->withdraw(job); }
  int64_t retry_after_seconds() const { return served_.scheduler->retry_after_seconds(); }
  bool idle() const { return served_.scheduler->idle(); }
  Status usable() const { return served_.scheduler->usable(); }

 private:
  Version(std::string model, std::string version, Host& host) : model_(std::move(model)), version_(std::move(version)), host_(host) {}
  Status put_in_front(const ModelSettings& settings);
  void take_any_rows(const ModelSettings& settings);
  Status keep_responses(const ModelSettings& settings);
  Status count_rows(Job& job) const;

  const std::string model_, version_;
  Host& host_;
  std::shared_ptr<ModelMetrics> metrics_;
  Served served_;
};

}  // namespace serin::serving

// version.h: one loaded version of a model: engine model, instances, batcher, metrics.
//
// Immutable from outside once loaded, shared by whoever is answering a request with it; it goes when the last of them is done.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/protocol/oip_rest.h"
#include "runtime/serving/batcher.h"
#include "runtime/serving/instance.h"
#include "runtime/serving/metrics.h"
#include "runtime/serving/settings.h"

namespace serin::serving {

/// What every version of every model shares.
struct Host {
  const kernels::Backend& backend;
  const kernels::Backend* bf16_backend = nullptr;  ///< null where the machine does not multiply bf16
  engine::Devices* devices = nullptr;              ///< null: there is the CPU only
  metrics::Registry& metrics;
  ModelSettings defaults{};  ///< of models whose serin.yaml does not say
  uint64_t boot = 0;         ///< random: names this start of the process in x-serin-batch
  std::atomic<uint64_t> next_batch{1};
  ComputePool pool;  ///< last: it ends first, and until then its threads use what is above
  protocol::BatchTag lone_tag() { return {boot, next_batch.fetch_add(1, std::memory_order_relaxed), 0, 1}; }
};

/// A dimension along which requests may be computed with more than they have.
struct Padding {
  std::string dimension;
  std::vector<int64_t> sizes;  ///< rising
  std::vector<size_t> masks;   ///< graph::Paddable
};

class Version : public std::enable_shared_from_this<Version> {
 public:
  /// Reads, plans and warms. The error names model and version.
  static Result<std::shared_ptr<Version>> load(const std::string& model, const std::string& version, const std::string& path,
                                               const ModelSettings& settings, Host& host);

  const std::string& model() const { return model_; }
  const std::string& version() const { return version_; }
  const protocol::Signature& signature() const { return signature_; }
  int64_t max_batch() const { return max_batch_; }
  bool batchable() const;  ///< axis 0 of all tensors counts rows
  /// For the model's metadata: "device" and "precision", each with the reason beside it where there is one ("device_why").
  const protocol::Parameters& parameters() const { return parameters_; }
  ModelMetrics& metrics() const { return *metrics_; }
  Host& host() const { return host_; }

  /// Queues a job whose inputs were checked against the signature. kOverloaded (queue full), kInvalidArgument (more rows than max_batch).
  Status submit(JobPtr job);
  int64_t retry_after_seconds() const { return batcher_->retry_after_seconds(); }
  bool idle() const { return batcher_->idle(); }
  /// kUnavailable where every instance has lost its device: this version answers nothing any more.
  Status usable() const;

 private:
  Version(std::string model, std::string version, Host& host) : model_(std::move(model)), version_(std::move(version)), host_(host) {}
  Status prepare(const std::string& path, const ModelSettings& settings);

  struct Loaded {
    std::shared_ptr<engine::Model> model;
    Precision precision = Precision::kFp32;  ///< that it computes in, whatever was asked for
    std::string why, warning;                ///< of int8
  };
  Result<Loaded> load_engine(const std::string& path, const ModelSettings& settings, const kernels::Backend* device) const;
  Result<std::string> settle_precision(const std::string& path, const kernels::Backend* device, ModelSettings& settings) const;
  void say_precision(const Loaded& loaded, const std::string& decided);

  Status read_signature(const ModelSettings& settings);
  void find_paddings(const ModelSettings& settings);
  void choose_sizes(Job& job, const graph::Bindings& own) const;
  Status place_on_devices(const std::string& path, ModelSettings settings, std::span<const kernels::Backend* const> devices);
  Status place_on_cpu(const std::string& path, ModelSettings settings);
  void add_instance(std::shared_ptr<engine::Model> engine, Instance::Options options);
  Status check_instance(size_t instance) const;
  Status warm_up();
  void run_batch(size_t instance, std::span<const JobPtr> batch);
  void run_alone(size_t instance, const JobPtr& job);

  const std::string model_, version_;
  Host& host_;
  std::shared_ptr<engine::Model> engine_;  // of the first instance; those on other devices have others
  protocol::Parameters parameters_;
  protocol::Signature signature_;
  int64_t max_batch_ = 1;
  std::vector<graph::Bindings> sizes_;  // to be ready for; none where a dimension is open that nobody gave sizes
  std::vector<Padding> paddings_;
  bool sizes_vary_ = false;                           // beyond the rows of a batch; of what is interpreted they are looked at when it runs
  size_t device_bytes_ = 0;                           // of all devices together, as loaded
  std::vector<std::unique_ptr<Instance>> instances_;  // instance i is used by whoever the batcher gave it to
  std::shared_ptr<void> threads_;                     // one for each instance, in the host's pool
  std::shared_ptr<Batcher> batcher_;
  std::unique_ptr<ModelMetrics> metrics_;
};

}  // namespace serin::serving

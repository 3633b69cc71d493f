// engine_scheduler.h: runs a model in the engine: instances on the CPU or on devices, and the batcher that gives them batches.
//
//   SERIN_TRY(Served served, EngineScheduler::load("model 'digits' version 3", path, settings, host, metrics));
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/serving/host/host.h"
#include "runtime/serving/scheduling/batcher.h"
#include "runtime/serving/scheduling/instance.h"
#include "runtime/serving/scheduling/served.h"

namespace serin::serving {

/// A dimension along which requests may be padded.
struct Padding {
  std::string dimension;
  std::vector<int64_t> sizes;  ///< rising
  std::vector<size_t> masks;   ///< graph::Paddable
};

class EngineScheduler final : public Scheduler, public std::enable_shared_from_this<EngineScheduler> {
 public:
  /// Reads, plans and warms the model. `name` is for messages.
  static Result<Served> load(const std::string& name, const std::string& path, const ModelSettings& settings, Host& host,
                             std::shared_ptr<ModelMetrics> metrics, SignatureChoice choice = {});

  Status submit(JobPtr job) override;
  void withdraw(const JobPtr& job) override { batcher_->withdraw(*job); }
  int64_t retry_after_seconds() const override { return batcher_->retry_after_seconds(); }
  bool idle() const override { return batcher_->idle(); }
  /// kUnavailable if every instance has lost its device.
  Status usable() const override;

 private:
  EngineScheduler(std::string name, Host& host, std::shared_ptr<ModelMetrics> metrics, SignatureChoice choice)
      : name_(std::move(name)), host_(host), metrics_(std::move(metrics)), choice_(std::move(choice)) {}
  Status prepare(const std::string& path, const ModelSettings& settings);

  struct Loaded {
    std::shared_ptr<engine::Model> model;
    Precision precision = Precision::kFp32;  ///< the precision that it really computes in
    std::string why, warning;                ///< for int8
  };
  Result<Loaded> load_engine(const std::string& path, const ModelSettings& settings, const kernels::Backend* device) const;
  Result<std::string> settle_precision(const std::string& path, const kernels::Backend* device, ModelSettings& settings) const;
  void say_precision(const Loaded& loaded, const std::string& decided);
  void say_batching(const ModelSettings& settings);

  Status read_signature(const ModelSettings& settings);
  void find_paddings(const ModelSettings& settings);
  void choose_sizes(Job& job, const graph::Bindings& own) const;
  void set_group(Job& job, const graph::Bindings& sizes) const;
  void unpad(Job& job, const Error& error);
  Status place_on_devices(const std::string& path, ModelSettings settings, std::span<const kernels::Backend* const> devices);
  Status place_on_cpu(const std::string& path, ModelSettings settings);
  void add_instance(std::shared_ptr<engine::Model> engine, Instance::Options options);
  Status check_instance(size_t instance) const;
  Status warm_up();
  Status warm_up_with(const WarmupRequest& request, bool batching);
  bool run_batch(size_t instance, std::span<const JobPtr> batch, bool on_io);
  int64_t rows_of(std::span<const JobPtr> batch) const;
  void run_alone(size_t instance, const JobPtr& job);

  const std::string name_;
  Host& host_;
  const std::shared_ptr<ModelMetrics> metrics_;
  const SignatureChoice choice_;
  std::shared_ptr<engine::Model> engine_;  // for the first instance; those on other devices have their own
  protocol::Parameters parameters_;
  protocol::Signature signature_;
  int64_t max_batch_ = 1;
  std::vector<graph::Bindings> sizes_;  // sizes to prepare; none if an open dimension has no configured sizes
  std::vector<Padding> paddings_;
  std::atomic<bool> said_unpadded_{false};
  // Sizes other than the rows of a batch vary; interpreted models that run one by one determine them when they run.
  bool sizes_vary_ = false;
  size_t device_bytes_ = 0;                           // bytes on all devices together, as loaded
  std::vector<std::unique_ptr<Instance>> instances_;  // instance i belongs to the thread that the batcher gave it to
  std::shared_ptr<void> threads_;                     // one for each instance, in the host's pool
  std::shared_ptr<Batcher> batcher_;
};

}  // namespace serin::serving

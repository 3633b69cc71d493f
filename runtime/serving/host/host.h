// host.h: the objects that all versions of all models share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/metrics.h"
#include "runtime/engine/devices.h"
#include "runtime/protocol/tensor/datatype.h"
#include "runtime/serving/host/compute_pool.h"
#include "runtime/serving/host/metrics.h"
#include "runtime/serving/host/tracer.h"
#include "runtime/serving/settings/settings.h"

namespace serin::serving {

struct Host {
  const kernels::Backend& backend;
  const kernels::Backend* bf16_backend = nullptr;  ///< null if the machine cannot multiply bf16
  engine::Devices* devices = nullptr;              ///< null: CPU only
  metrics::Registry& metrics;
  MetricOptions metric_options{};
  ModelSettings defaults{};  ///< for models whose serin.yaml does not set a value
  Tracer tracer{};           ///< traces once it is started
  /// Asked before a model is read; an error refuses it. Empty: every model is loaded.
  std::function<Status(const std::string& name, const std::string& path, const ModelSettings& settings)> admit{};
  uint64_t boot = 0;  ///< random: identifies this start of the process in x-serin-batch
  std::atomic<uint64_t> next_batch{1};
  ComputePool pool;  ///< last member, so destroyed first: until then its threads use the members above
  protocol::BatchTag lone_tag() { return {boot, next_batch.fetch_add(1, std::memory_order_relaxed), 0, 1}; }
};

}  // namespace serin::serving

// metrics.cc: names and what goes where. Durations are in microseconds because the dashboards expect them so.

#include "runtime/serving/metrics.h"

#include <array>

namespace serin::serving {
namespace {

constexpr std::array kMicrosecondBounds = {50.0,     100.0,    250.0,     500.0,     1'000.0,   2'500.0,     5'000.0,    10'000.0,
                                           25'000.0, 50'000.0, 100'000.0, 250'000.0, 500'000.0, 1'000'000.0, 5'000'000.0};

uint64_t microseconds(std::chrono::nanoseconds duration) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(duration).count());
}

metrics::Labels labels_of(const std::string& model, const std::string& version, const std::map<std::string, std::string>& tags) {
  metrics::Labels labels = {{"model", model}, {"version", version}};
  labels.insert(labels.end(), tags.begin(), tags.end());
  return labels;
}

}  // namespace

ModelMetrics::ModelMetrics(metrics::Registry& registry, const std::string& model, const std::string& version,
                           const std::map<std::string, std::string>& tags)
    : labels_(labels_of(model, version, tags)) {
  const auto failure = [&](const char* reason) {
    metrics::Labels with_reason = labels_;
    with_reason.emplace_back("reason", reason);
    return registry.counter("nv_inference_request_failure", "Number of failed inference requests, all batch sizes", with_reason);
  };
  success = registry.counter("nv_inference_request_success", "Number of successful inference requests, all batch sizes", labels_);
  failure_rejected = failure("REJECTED");
  failure_canceled = failure("CANCELED");
  failure_backend = failure("BACKEND");
  failure_other = failure("OTHER");
  inferences = registry.counter("nv_inference_count", "Number of inferences performed (a batch of n counts n)", labels_);
  executions = registry.counter("nv_inference_exec_count", "Number of model executions performed", labels_);
  request_us = registry.counter("nv_inference_request_duration_us", "Cumulative inference request duration in microseconds", labels_);
  queue_us = registry.counter("nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds", labels_);
  input_us = registry.counter("nv_inference_compute_input_duration_us", "Cumulative compute input duration in microseconds", labels_);
  infer_us = registry.counter("nv_inference_compute_infer_duration_us", "Cumulative compute inference duration in microseconds", labels_);
  const auto histogram = [&](const char* name, const char* help) { return registry.histogram(name, help, labels_, kMicrosecondBounds); };
  request_histogram_us = histogram("nv_inference_request_duration_histogram_us", "Inference request duration in microseconds");
  queue_histogram_us = histogram("nv_inference_queue_duration_histogram_us", "Inference queuing duration in microseconds");
  infer_histogram_us = histogram("nv_inference_compute_infer_duration_histogram_us", "Compute inference duration in microseconds");
  pending = registry.gauge("nv_inference_pending_request_count", "Requests that are queued or running", labels_);
  load_seconds = registry.gauge("nv_model_load_duration_secs", "Model load time in seconds", labels_);
  arena_bytes = registry.gauge("serin_model_arena_bytes", "Memory of one instance's arenas after warm-up", labels_);
  weight_bytes = registry.gauge("serin_model_weight_bytes", "Memory of the weights, shared by all instances", labels_);
  device_bytes = registry.gauge("serin_model_device_bytes", "Memory of devices, of weights and arenas together", labels_);
}

void ModelMetrics::count_cache(metrics::Registry& registry) {
  cache_hits = registry.counter("nv_cache_num_hits_per_model", "Number of cache hits per model", labels_);
  cache_misses = registry.counter("nv_cache_num_misses_per_model", "Number of cache misses per model", labels_);
  cache_hit_us = registry.counter("nv_cache_hit_duration_per_model", "Total cache hit duration per model, in microseconds", labels_);
  cache_miss_us = registry.counter("nv_cache_miss_duration_per_model", "Total cache miss duration per model, in microseconds", labels_);
}

void ModelMetrics::answered(int64_t rows, const Answer& answer, std::chrono::nanoseconds whole) {
  if (!answer.outputs) {
    failed_us.add(microseconds(whole));
    switch (answer.outputs.error().code) {
      case Code::kOverloaded:
      case Code::kInvalidArgument: return failure_rejected->add();
      case Code::kCancelled: return failure_canceled->add();
      case Code::kInternal: return failure_backend->add();
      default: return failure_other->add();
    }
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  last_inference_ms_.store(std::chrono::duration_cast<std::chrono::milliseconds>(now).count(), std::memory_order_relaxed);
  success->add();
  request_us->add(microseconds(whole));
  request_histogram_us->observe(static_cast<double>(microseconds(whole)));
  if (answer.cached) return;  // nothing was queued or computed for it
  inferences->add(static_cast<uint64_t>(rows));
  queue_us->add(microseconds(answer.timing.queue));
  input_us->add(microseconds(answer.timing.input));
  infer_us->add(microseconds(answer.timing.infer));
  queue_histogram_us->observe(static_cast<double>(microseconds(answer.timing.queue)));
  infer_histogram_us->observe(static_cast<double>(microseconds(answer.timing.infer)));
}

void ModelMetrics::measured_batch(int64_t rows, const Timing& timing) {
  const std::lock_guard lock(mutex_);
  Batches& held = batches_[rows];
  ++held.count;
  held.input += timing.input;
  held.infer += timing.infer;
}

std::map<int64_t, ModelMetrics::Batches> ModelMetrics::batches_by_rows() const {
  const std::lock_guard lock(mutex_);
  return batches_;
}

uint64_t ModelMetrics::failures() const {
  return failure_rejected->value() + failure_canceled->value() + failure_backend->value() + failure_other->value();
}

}  // namespace serin::serving

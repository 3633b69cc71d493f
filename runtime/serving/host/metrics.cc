// metrics.cc: names and what goes where. On the page durations are in microseconds because the dashboards expect them so.

#include "runtime/serving/host/metrics.h"

#include <array>

namespace serin::serving {
namespace {

constexpr std::array kMicrosecondBounds = {50.0,     100.0,    250.0,     500.0,     1'000.0,   2'500.0,     5'000.0,    10'000.0,
                                           25'000.0, 50'000.0, 100'000.0, 250'000.0, 500'000.0, 1'000'000.0, 5'000'000.0};

uint64_t nanoseconds(std::chrono::nanoseconds duration) { return static_cast<uint64_t>(duration.count()); }

metrics::Labels labels_of(const std::string& model, const std::string& version, const std::map<std::string, std::string>& tags) {
  metrics::Labels labels = {{"model", model}, {"version", version}};
  labels.insert(labels.end(), tags.begin(), tags.end());
  return labels;
}

}  // namespace

ModelMetrics::ModelMetrics(metrics::Registry& registry, const std::string& model, const std::string& version,
                           const std::map<std::string, std::string>& tags, const MetricOptions& options)
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
  bad = registry.counter("serin_bad_requests_total", "Requests that were refused for what they say", labels_);
  inferences = registry.counter("nv_inference_count", "Number of inferences performed (a batch of n counts n)", labels_);
  executions = registry.counter("nv_inference_exec_count", "Number of model executions performed", labels_);
  request_time = time(registry, "nv_inference_request_duration_us", "Cumulative inference request duration in microseconds");
  queue_time = time(registry, "nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds");
  input_time = time(registry, "nv_inference_compute_input_duration_us", "Cumulative compute input duration in microseconds");
  infer_time = time(registry, "nv_inference_compute_infer_duration_us", "Cumulative compute inference duration in microseconds");
  output_time = time(registry, "nv_inference_compute_output_duration_us", "Cumulative compute output duration in microseconds");
  const auto histogram = [&](const char* name, const char* help) { return registry.histogram(name, help, labels_, kMicrosecondBounds); };
  request_histogram_us = histogram("nv_inference_request_duration_histogram_us", "Inference request duration in microseconds");
  queue_histogram_us = histogram("nv_inference_queue_duration_histogram_us", "Inference queuing duration in microseconds");
  infer_histogram_us = histogram("nv_inference_compute_infer_duration_histogram_us", "Compute inference duration in microseconds");
  pending = registry.gauge("nv_inference_pending_request_count", "Requests that await execution: what runs is none of them", labels_);
  in_flight = registry.gauge("serin_model_in_flight_requests", "Requests that wait, run or are being answered", labels_);
  of_occupancy_ = {
      registry.gauge_callback("serin_model_queue_wait_ms", "Estimated time until the waiting requests have run, in milliseconds", labels_,
                              [occupancy = occupancy_, waiting = pending] { return 1000 * occupancy->wait_of(waiting->value()).count(); }),
      registry.gauge_callback("serin_model_busy_ratio", "Share of the instances that run, of about the last ten seconds, 0 to 1", labels_,
                              [occupancy = occupancy_] { return occupancy->busy_share(Clock::now()); })};
  load_seconds = registry.gauge("nv_model_load_duration_secs", "Model load time in seconds", labels_);
  arena_bytes = registry.gauge("serin_model_arena_bytes", "Memory of one instance's arenas after warm-up", labels_);
  weight_bytes = registry.gauge("serin_model_weight_bytes", "Memory of the weights, shared by all instances", labels_);
  device_bytes = registry.gauge("serin_model_device_bytes", "Memory of devices, of weights and arenas together", labels_);
  if (options.tensorflow) tensorflow_.emplace(registry, model);
  if (!options.openvino.empty()) openvino_.emplace(registry, model, version, options.openvino);
  if (options.quantiles.empty()) return;
  summaries_ = Summaries{
      .request = summary(registry, options, "nv_inference_request_summary_us", "Summary of inference request duration in microseconds"),
      .queue = summary(registry, options, "nv_inference_queue_summary_us", "Summary of inference queuing duration in microseconds"),
      .input = summary(registry, options, "nv_inference_compute_input_summary_us", "Summary of compute input duration in microseconds"),
      .infer = summary(registry, options, "nv_inference_compute_infer_summary_us", "Summary of compute inference duration in microseconds"),
      .output = summary(registry, options, "nv_inference_compute_output_summary_us", "Summary of compute output duration in microseconds")};
}

std::shared_ptr<metrics::Summary> ModelMetrics::summary(metrics::Registry& registry, const MetricOptions& options, const char* name,
                                                        const char* help) const {
  return registry.summary(name, help, labels_, options.quantiles);
}

std::shared_ptr<metrics::Counter> ModelMetrics::time(metrics::Registry& registry, const char* name, const char* help) const {
  return registry.counter(name, help, labels_, /*unit=*/1000);
}

void ModelMetrics::count_cache(metrics::Registry& registry, const MetricOptions& options) {
  cache_hits = registry.counter("nv_cache_num_hits_per_model", "Number of cache hits per model", labels_);
  cache_misses = registry.counter("nv_cache_num_misses_per_model", "Number of cache misses per model", labels_);
  cache_hit_time = time(registry, "nv_cache_hit_duration_per_model", "Total cache hit duration per model, in microseconds");
  cache_miss_time = time(registry, "nv_cache_miss_duration_per_model", "Total cache miss duration per model, in microseconds");
  if (!summaries_) return;
  summaries_->cache_hit =
      summary(registry, options, "nv_cache_hit_summary_per_model", "Summary of cache hit duration per model, in microseconds");
  summaries_->cache_miss =
      summary(registry, options, "nv_cache_miss_summary_per_model", "Summary of cache miss duration per model, in microseconds");
}

std::shared_ptr<metrics::Histogram> ModelMetrics::step_seconds(metrics::Registry& registry, std::string_view part) const {
  metrics::Labels labels = labels_;
  labels.emplace_back("step", part);
  return registry.histogram("serin_step_seconds", "Duration of the steps before and after a model, for one row", labels);
}

void ModelMetrics::found_in_cache(bool hit, std::chrono::nanoseconds took) {
  (hit ? cache_hit_time : cache_miss_time)->add(nanoseconds(took));
  if (summaries_ && summaries_->cache_hit) (hit ? summaries_->cache_hit : summaries_->cache_miss)->observe(microseconds(took));
}

void ModelMetrics::count_failure(Code why, std::chrono::nanoseconds whole) {
  failed_time.add(nanoseconds(whole));
  switch (why) {
    case Code::kOverloaded:
    case Code::kDeadlineExceeded: return failure_rejected->add();  // it waited for too long: so Triton's queues reject
    case Code::kCancelled: return failure_canceled->add();
    case Code::kInvalidArgument:  // it was taken, so it is the model that has found fault with it
    case Code::kInternal: return failure_backend->add();
    default: return failure_other->add();
  }
}

void ModelMetrics::refused(const Error& why, std::chrono::nanoseconds whole, std::optional<AskedBy> by) {
  if (tensorflow_ && by) tensorflow_->failed(why.code);
  if (openvino_ && by) openvino_->failed(*by);
  switch (why.code) {
    case Code::kOverloaded:
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kCancelled:
    case Code::kInternal: return count_failure(why.code, whole);
    default: return bad->add();
  }
}

void ModelMetrics::answered(int64_t rows, const Ending& ending, std::chrono::nanoseconds whole, std::optional<AskedBy> by) {
  const Timing& timing = ending.timing;
  if (ending.failure) {
    if (tensorflow_ && by) tensorflow_->failed(*ending.failure);
    if (openvino_ && by) openvino_->failed(*by);
    if (ending.refused) return bad->add();
    return count_failure(*ending.failure, whole);
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  last_inference_ms_.store(std::chrono::duration_cast<std::chrono::milliseconds>(now).count(), std::memory_order_relaxed);
  success->add();
  request_time->add(nanoseconds(whole));
  request_histogram_us->observe(microseconds(whole));
  if (summaries_) summaries_->request->observe(microseconds(whole));
  if (tensorflow_ && by) tensorflow_->succeeded(*by, whole, timing.infer);
  if (openvino_ && by) openvino_->succeeded(*by, whole);
  if (ending.cached) return;  // nothing was queued or computed for it
  inferences->add(static_cast<uint64_t>(rows));
  queue_time->add(nanoseconds(timing.queue));
  input_time->add(nanoseconds(timing.input));
  infer_time->add(nanoseconds(timing.infer));
  output_time->add(nanoseconds(timing.output));
  queue_histogram_us->observe(microseconds(timing.queue));
  infer_histogram_us->observe(microseconds(timing.infer));
  if (openvino_) openvino_->computed(timing.queue, timing.infer);
  if (!summaries_) return;
  summaries_->queue->observe(microseconds(timing.queue));
  summaries_->input->observe(microseconds(timing.input));
  summaries_->infer->observe(microseconds(timing.infer));
  summaries_->output->observe(microseconds(timing.output));
}

void ModelMetrics::measured_batch(int64_t rows, const Timing& timing) {
  const MutexLock lock(mutex_);
  Batches& held = batches_[rows];
  ++held.count;
  held.input += timing.input;
  held.infer += timing.infer;
  held.output += timing.output;
}

std::map<int64_t, ModelMetrics::Batches> ModelMetrics::batches_by_rows() const {
  const MutexLock lock(mutex_);
  return batches_;
}

uint64_t ModelMetrics::failures() const {
  return failure_rejected->value() + failure_canceled->value() + failure_backend->value() + failure_other->value();
}

}  // namespace serin::serving

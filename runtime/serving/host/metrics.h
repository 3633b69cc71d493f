// metrics.h: the runtime's numbers, under the names that Triton users have dashboards on.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/metrics.h"
#include "runtime/serving/host/openvino_metrics.h"
#include "runtime/serving/host/tensorflow_metrics.h"
#include "runtime/serving/scheduling/job.h"

namespace serin::serving {

/// What there is beside the counters that every server has.
struct MetricOptions {
  bool tensorflow = false;                            ///< TensorFlow Serving's names, too
  std::vector<std::string> openvino;                  ///< OpenVINO Model Server's, those of its names; empty: none
  std::vector<metrics::Summary::Quantile> quantiles;  ///< of durations, by nv_inference_*_summary_us; empty: there are none
};

/// Series of one model version; they leave the page when it is unloaded. What they count of time are nanoseconds, which the page has as microseconds.
struct ModelMetrics {
  /// `tags`: labels beside model and version.
  ModelMetrics(metrics::Registry& registry, const std::string& model, const std::string& version,
               const std::map<std::string, std::string>& tags = {}, const MetricOptions& options = {});

  /// One answer given, good or bad, to a request of so many rows that was taken. Not for shadow traffic.
  void answered(int64_t rows, const Answer& answer, std::chrono::nanoseconds whole, std::optional<AskedBy> by = std::nullopt);
  /// One that was not taken. Where it is the request that is wrong, it is none of the model's failures: alerts look at those. `by`: absent: no client's own.
  void refused(const Error& why, std::chrono::nanoseconds whole, std::optional<AskedBy> by);
  /// Of a model whose answers are kept: it has these series, too.
  void count_cache(metrics::Registry& registry, const MetricOptions& options = {});
  /// What it took to find a kept answer, or that there is none.
  void found_in_cache(bool hit, std::chrono::nanoseconds took);
  void ran_batch() { executions->add(); }
  void set_instances(size_t count) {
    if (openvino_) openvino_->set_instances(count);
  }
  /// How many more requests there are than before: waiting, running or being answered.
  void at_work(int more) {
    if (openvino_) openvino_->at_work(more);
  }
  /// How many more instances run a batch than before.
  void running(int more) {
    if (openvino_) openvino_->running(more);
  }
  /// And it went well: an execution of so many rows.
  void measured_batch(int64_t rows, const Timing& timing);
  struct Batches {
    uint64_t count = 0;
    std::chrono::nanoseconds input{0}, infer{0}, output{0};
  };
  std::map<int64_t, Batches> batches_by_rows() const;
  uint64_t failures() const;
  /// When an inference last went well, in milliseconds since 1970; 0: never.
  int64_t last_inference_ms() const { return last_inference_ms_.load(std::memory_order_relaxed); }

  std::shared_ptr<metrics::Counter> success, inferences, executions, failure_rejected, failure_canceled, failure_backend, failure_other,
      bad;
  std::shared_ptr<metrics::Counter> request_time, queue_time, input_time, infer_time, output_time;
  metrics::Counter failed_time;  ///< off the page: no dashboard knows it
  std::shared_ptr<metrics::Histogram> request_histogram_us, queue_histogram_us, infer_histogram_us;
  std::shared_ptr<metrics::Counter> cache_hits, cache_misses, cache_hit_time, cache_miss_time;  ///< null without count_cache()
  std::shared_ptr<metrics::Gauge> pending, load_seconds, arena_bytes, weight_bytes, device_bytes;

 private:
  struct Summaries {
    std::shared_ptr<metrics::Summary> request, queue, input, infer, output;
    std::shared_ptr<metrics::Summary> cache_hit, cache_miss;  ///< null without count_cache()
  };
  std::shared_ptr<metrics::Counter> time(metrics::Registry& registry, const char* name, const char* help) const;
  std::shared_ptr<metrics::Summary> summary(metrics::Registry& registry, const MetricOptions& options, const char* name,
                                            const char* help) const;
  void count_failure(Code why, std::chrono::nanoseconds whole);

  const metrics::Labels labels_;
  std::optional<Summaries> summaries_;
  std::optional<TensorflowMetrics> tensorflow_;
  std::optional<OpenvinoMetrics> openvino_;
  std::atomic<int64_t> last_inference_ms_{0};
  mutable std::mutex mutex_;
  std::map<int64_t, Batches> batches_;  // guarded by mutex_
};

}  // namespace serin::serving

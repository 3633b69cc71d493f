// metrics.h: the runtime's metrics, under the names that Triton uses.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/base/metrics.h"
#include "runtime/serving/host/ending.h"
#include "runtime/serving/host/occupancy.h"
#include "runtime/serving/host/openvino_metrics.h"
#include "runtime/serving/host/tensorflow_metrics.h"

namespace serin::serving {

/// Metrics in addition to those that every server has.
struct MetricOptions {
  bool tensorflow = false;                            ///< also export TensorFlow Serving's names
  std::vector<std::string> openvino;                  ///< OpenVINO Model Server's metrics, by its names; empty: none
  std::vector<metrics::Summary::Quantile> quantiles;  ///< of durations, for nv_inference_*_summary_us; empty: none
};

/// Series of one model version; they leave the page when it is unloaded. Times are counted in nanoseconds; the page shows microseconds.
struct ModelMetrics {
  /// `tags`: labels in addition to model and version.
  ModelMetrics(metrics::Registry& registry, const std::string& model, const std::string& version,
               const std::map<std::string, std::string>& tags = {}, const MetricOptions& options = {});

  /// Counts the end, good or bad, of an accepted request of that many rows. Not for shadow traffic.
  void answered(int64_t rows, const Ending& ending, std::chrono::nanoseconds whole, std::optional<AskedBy> by = std::nullopt);
  /// Counts a refused request. If the request itself is wrong, it does not count as a failure of the model, because alerts use those. `by`
  /// is absent if the request did not come from a client.
  void refused(const Error& why, std::chrono::nanoseconds whole, std::optional<AskedBy> by);
  /// For a model whose answers are cached: adds these series.
  void count_cache(metrics::Registry& registry, const MetricOptions& options = {});
  /// For a model with steps: the durations of one part of them.
  std::shared_ptr<metrics::Histogram> step_seconds(metrics::Registry& registry, std::string_view part) const;
  /// Counts the time to find a cached answer, or to find that there is none.
  void found_in_cache(bool hit, std::chrono::nanoseconds took);
  void ran_batch() { executions->add(); }
  void set_instances(size_t count) {
    occupancy_->set_instances(count);
    if (openvino_) openvino_->set_instances(count);
  }
  /// Change of the number of requests that wait, run or are being answered.
  void at_work(int more) {
    in_flight->add(more);
    if (openvino_) openvino_->at_work(more);
  }
  /// An instance begins to run a batch.
  void run_begins() {
    occupancy_->begin(Clock::now());
    if (openvino_) openvino_->running(1);
  }
  /// It has run the batch of so many requests since `begun`.
  void run_ends(size_t requests, Clock::time_point begun) {
    const Clock::time_point now = Clock::now();
    occupancy_->end(now, requests, now - begun);
    if (openvino_) openvino_->running(-1);
  }
  /// Counts a successful execution of that many rows.
  void measured_batch(int64_t rows, const Timing& timing);
  struct Batches {
    uint64_t count = 0;
    std::chrono::nanoseconds input{0}, infer{0}, output{0};
  };
  std::map<int64_t, Batches> batches_by_rows() const;
  uint64_t failures() const;
  /// Time of the last successful inference, in milliseconds since 1970; 0: never.
  int64_t last_inference_ms() const { return last_inference_ms_.load(std::memory_order_relaxed); }

  std::shared_ptr<metrics::Counter> success, inferences, executions, failure_rejected, failure_canceled, failure_backend, failure_other,
      bad;
  std::shared_ptr<metrics::Counter> request_time, queue_time, input_time, infer_time, output_time;
  metrics::Counter failed_time;  ///< not on the page, because no dashboard uses it
  std::shared_ptr<metrics::Histogram> request_histogram_us, queue_histogram_us, infer_histogram_us;
  std::shared_ptr<metrics::Counter> cache_hits, cache_misses, cache_hit_time, cache_miss_time;  ///< null without count_cache()
  std::shared_ptr<metrics::Gauge> pending, in_flight, load_seconds, arena_bytes, weight_bytes, device_bytes;

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
  const std::shared_ptr<Occupancy> occupancy_ = std::make_shared<Occupancy>();  // shared with those who read the page
  std::vector<std::shared_ptr<void>> of_occupancy_;
  std::optional<Summaries> summaries_;
  std::optional<TensorflowMetrics> tensorflow_;
  std::optional<OpenvinoMetrics> openvino_;
  std::atomic<int64_t> last_inference_ms_{0};
  mutable Mutex mutex_;
  std::map<int64_t, Batches> batches_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::serving

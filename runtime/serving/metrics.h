// metrics.h: the runtime's numbers, under the names that Triton users have dashboards on.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/base/metrics.h"
#include "runtime/serving/job.h"

namespace serin::serving {

/// Series of one model version; they leave the page when it is unloaded.
struct ModelMetrics {
  /// `tags`: labels beside model and version.
  ModelMetrics(metrics::Registry& registry, const std::string& model, const std::string& version,
               const std::map<std::string, std::string>& tags = {});

  /// One answer given, good or bad, to a request of so many rows. Not for shadow traffic.
  void answered(int64_t rows, const Answer& answer, std::chrono::nanoseconds whole);
  /// Of a model whose answers are kept: it has these series, too.
  void count_cache(metrics::Registry& registry);
  void ran_batch() { executions->add(); }
  /// And it went well: an execution of so many rows.
  void measured_batch(int64_t rows, const Timing& timing);
  struct Batches {
    uint64_t count = 0;
    std::chrono::nanoseconds input{0}, infer{0};
  };
  std::map<int64_t, Batches> batches_by_rows() const;
  uint64_t failures() const;
  /// When an inference last went well, in milliseconds since 1970; 0: never.
  int64_t last_inference_ms() const { return last_inference_ms_.load(std::memory_order_relaxed); }

  std::shared_ptr<metrics::Counter> success, inferences, executions, failure_rejected, failure_canceled, failure_backend, failure_other;
  std::shared_ptr<metrics::Counter> request_us, queue_us, input_us, infer_us;
  metrics::Counter failed_us;  ///< off the page: no dashboard knows it
  std::shared_ptr<metrics::Histogram> request_histogram_us, queue_histogram_us, infer_histogram_us;
  std::shared_ptr<metrics::Counter> cache_hits, cache_misses, cache_hit_us, cache_miss_us;  ///< null without count_cache()
  std::shared_ptr<metrics::Gauge> pending, load_seconds, arena_bytes, weight_bytes, device_bytes;

 private:
  const metrics::Labels labels_;
  std::atomic<int64_t> last_inference_ms_{0};
  mutable std::mutex mutex_;
  std::map<int64_t, Batches> batches_;  // guarded by mutex_
};

}  // namespace serin::serving

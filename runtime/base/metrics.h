// metrics.h: counters, gauges and histograms that cost a few nanoseconds to write and are summed when they are scraped.
//
//   metrics::Registry registry;                     // one for each server, made by main
//   auto requests = registry.counter("serin_requests_total", "Requests answered.", {{"model", "digits"}});
//   requests->add();                                // hot path: one relaxed add on this thread's own cache line
//   std::string page = registry.render();           // Prometheus text format 0.0.4
//
// A second call with the same name and labels returns the same series. A series lives as long as a pointer to it exists: the metrics of an
// unloaded model disappear from the page. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/mutex.h"

namespace serin::metrics {

using Labels = std::vector<std::pair<std::string, std::string>>;

inline constexpr size_t kShards = 8;
/// Returns a small number that stays the same for the whole life of the calling thread.
size_t this_thread_shard();

class Counter {
 public:
  /// The page shows value() / unit: 1000 if nanoseconds are added and the page shows microseconds.
  explicit Counter(uint64_t unit = 1) : unit_(unit) {}
  void add(uint64_t n = 1) { shards_[this_thread_shard()].value.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const;
  uint64_t on_page() const { return value() / unit_; }

 private:
  struct alignas(64) Shard {
    std::atomic<uint64_t> value{0};
  };
  std::array<Shard, kShards> shards_;
  const uint64_t unit_;
};

class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double delta) { value_.fetch_add(delta, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// Cumulative buckets as in Prometheus; the bounds are fixed for a family.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds);
  void observe(double value);
  struct Snapshot {
    std::vector<double> bounds;    ///< upper bounds, without +Inf
    std::vector<uint64_t> counts;  ///< not cumulative, one more than bounds
    uint64_t count = 0;
    double sum = 0;
  };
  Snapshot snapshot() const;

 private:
  struct alignas(64) Shard {
    std::vector<std::atomic<uint64_t>> counts;
    std::atomic<double> sum{0};
  };
  std::vector<double> bounds_;
  std::array<Shard, kShards> shards_;
};

/// Quantiles of the values of the last minute, each with an allowed error. The algorithm is that of prometheus-cpp (Cormode, Korn,
/// Muthukrishnan and Srivastava, "Effective Computation of Biased Quantiles over Data Streams", 2005). It takes a lock and sometimes
/// allocates memory, so it exists only where a user requests it.
class Summary {
 public:
  struct Quantile {
    double quantile, error;
  };
  explicit Summary(std::span<const Quantile> quantiles);
  ~Summary();
  void observe(double value);

 private:
  friend struct SummaryPage;
  struct State;
  const std::unique_ptr<State> state_;
};

/// Bounds for request latencies in seconds: 100 us to 10 s in steps of about 2.
std::span<const double> latency_bounds();

class Registry {
 public:
  std::shared_ptr<Counter> counter(const std::string& name, const std::string& help, const Labels& labels = {}, uint64_t unit = 1);
  std::shared_ptr<Gauge> gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  std::shared_ptr<Histogram> histogram(const std::string& name, const std::string& help, const Labels& labels = {},
                                       std::span<const double> bounds = latency_bounds());
  std::shared_ptr<Summary> summary(const std::string& name, const std::string& help, const Labels& labels,
                                   std::span<const Summary::Quantile> quantiles);
  /// A gauge that is computed when scraped; it stays on the page as long as the returned handle lives.
  std::shared_ptr<void> gauge_callback(const std::string& name, const std::string& help, const Labels& labels,
                                       std::function<double()> read);
  /// The same for a number that never falls.
  std::shared_ptr<void> counter_callback(const std::string& name, const std::string& help, const Labels& labels,
                                         std::function<double()> read);

  std::string render() const;
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  using Callback = std::function<double()>;
  template <class T>
  struct Family {
    std::string help;
    std::map<Labels, std::weak_ptr<T>> series;
  };
  template <class T>
  using Families = std::map<std::string, Family<T>>;
  template <class T, class Make>
  std::shared_ptr<T> get(Families<T> Registry::* families, const std::string& name, const std::string& help, const Labels& labels,
                         const Make& make);

  mutable Mutex mutex_;
  Families<Counter> counters_ SERIN_GUARDED_BY(mutex_);
  Families<Gauge> gauges_ SERIN_GUARDED_BY(mutex_);
  Families<Histogram> histograms_ SERIN_GUARDED_BY(mutex_);
  Families<Summary> summaries_ SERIN_GUARDED_BY(mutex_);
  Families<Callback> callbacks_ SERIN_GUARDED_BY(mutex_), counter_callbacks_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::metrics

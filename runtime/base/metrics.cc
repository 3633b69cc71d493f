// metrics.cc: keeps sharded numbers, and passes them at a scrape to prometheus-cpp's text serializer (which escapes labels and orders
// buckets).

#include "runtime/base/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/summary.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>

namespace serin::metrics {

struct Summary::State {
  explicit State(std::span<const Quantile> quantiles) : summary(quantiles_of(quantiles)) {}
  static prometheus::Summary::Quantiles quantiles_of(std::span<const Quantile> from) {
    prometheus::Summary::Quantiles quantiles;
    for (const auto& [quantile, error] : from) quantiles.emplace_back(quantile, error);
    return quantiles;
  }
  prometheus::Summary summary;
};

/// What it has of its own.
struct SummaryPage {
  static prometheus::ClientMetric::Summary of(const Summary& summary) { return summary.state_->summary.Collect().summary; }
};

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::array kLatencyBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                       0.05,   0.1,     0.25,   0.5,   1.0,    2.5,   5.0,  10.0};

void fill(ClientMetric& metric, const Counter& counter) { metric.counter.value = static_cast<double>(counter.on_page()); }
void fill(ClientMetric& metric, const Gauge& gauge) { metric.gauge.value = gauge.value(); }
void fill(ClientMetric& metric, const std::function<double()>& read) { metric.counter.value = metric.gauge.value = read(); }
void fill(ClientMetric& metric, const Summary& summary) { metric.summary = SummaryPage::of(summary); }
void fill(ClientMetric& metric, const Histogram& histogram) {
  const Histogram::Snapshot snapshot = histogram.snapshot();
  metric.histogram.sample_count = snapshot.count;
  metric.histogram.sample_sum = snapshot.sum;
  uint64_t cumulative = 0;
  for (size_t i = 0; i < snapshot.counts.size(); ++i) {
    cumulative += snapshot.counts[i];
    ClientMetric::Bucket bucket;
    bucket.cumulative_count = cumulative;
    bucket.upper_bound = i < snapshot.bounds.size() ? snapshot.bounds[i] : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back(bucket);
  }
}

template <class Families>
void collect(const Families& families, MetricType type, std::vector<MetricFamily>& page) {
  for (const auto& [name, family] : families) {
    MetricFamily out;
    out.name = name;
    out.help = family.help;
    out.type = type;
    for (const auto& [labels, weak] : family.series) {
      const auto series = weak.lock();
      if (!series) continue;
      ClientMetric metric;
      for (const auto& [key, value] : labels) {
        ClientMetric::Label label;
        label.name = key;
        label.value = value;
        metric.label.push_back(std::move(label));
      }
      fill(metric, *series);
      out.metric.push_back(std::move(metric));
    }
    if (!out.metric.empty()) page.push_back(std::move(out));
  }
}

}  // namespace

size_t this_thread_shard() {
  static std::atomic<size_t> next{0};
  thread_local const size_t shard = next.fetch_add(1, std::memory_order_relaxed) % kShards;
  return shard;
}

uint64_t Counter::value() const {
  uint64_t sum = 0;
  for (const Shard& shard : shards_) sum += shard.value.load(std::memory_order_relaxed);
  return sum;
}

Histogram::Histogram(std::span<const double> bounds) : bounds_(bounds.begin(), bounds.end()) {
  for (Shard& shard : shards_) shard.counts = std::vector<std::atomic<uint64_t>>(bounds_.size() + 1);
}

void Histogram::observe(double value) {
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  Shard& shard = shards_[this_thread_shard()];
  shard.counts[static_cast<size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  shard.sum.fetch_add(value, std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::snapshot() const {
  Snapshot snapshot;
  snapshot.bounds = bounds_;
  snapshot.counts.resize(bounds_.size() + 1);
  for (const Shard& shard : shards_) {
    for (size_t i = 0; i < shard.counts.size(); ++i) snapshot.counts[i] += shard.counts[i].load(std::memory_order_relaxed);
    snapshot.sum += shard.sum.load(std::memory_order_relaxed);
  }
  for (const uint64_t count : snapshot.counts) snapshot.count += count;
  return snapshot;
}

Summary::Summary(std::span<const Quantile> quantiles) : state_(std::make_unique<State>(quantiles)) {}
Summary::~Summary() = default;
void Summary::observe(double value) { state_->summary.Observe(value); }

std::span<const double> latency_bounds() { return kLatencyBounds; }

template <class T, class Make>
std::shared_ptr<T> Registry::get(Families<T> Registry::* families, const std::string& name, const std::string& help, const Labels& labels,
                                 const Make& make) {
  const MutexLock lock(mutex_);
  Family<T>& family = (this->*families)[name];
  family.help = help;
  std::erase_if(family.series, [](const auto& entry) { return entry.second.expired(); });
  if (auto existing = family.series[labels].lock()) return existing;
  std::shared_ptr<T> fresh = make();
  family.series[labels] = fresh;
  return fresh;
}

std::shared_ptr<Counter> Registry::counter(const std::string& name, const std::string& help, const Labels& labels, uint64_t unit) {
  return get(&Registry::counters_, name, help, labels, [unit] { return std::make_shared<Counter>(unit); });
}
std::shared_ptr<Gauge> Registry::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  return get(&Registry::gauges_, name, help, labels, [] { return std::make_shared<Gauge>(); });
}
std::shared_ptr<Histogram> Registry::histogram(const std::string& name, const std::string& help, const Labels& labels,
                                               std::span<const double> bounds) {
  return get(&Registry::histograms_, name, help, labels, [&] { return std::make_shared<Histogram>(bounds); });
}
std::shared_ptr<Summary> Registry::summary(const std::string& name, const std::string& help, const Labels& labels,
                                           std::span<const Summary::Quantile> quantiles) {
  return get(&Registry::summaries_, name, help, labels, [&] { return std::make_shared<Summary>(quantiles); });
}
std::shared_ptr<void> Registry::gauge_callback(const std::string& name, const std::string& help, const Labels& labels,
                                               std::function<double()> read) {
  return get(&Registry::callbacks_, name, help, labels, [&] { return std::make_shared<Callback>(std::move(read)); });
}
std::shared_ptr<void> Registry::counter_callback(const std::string& name, const std::string& help, const Labels& labels,
                                                 std::function<double()> read) {
  return get(&Registry::counter_callbacks_, name, help, labels, [&] { return std::make_shared<Callback>(std::move(read)); });
}

std::string Registry::render() const {
  std::vector<MetricFamily> page;
  {
    const MutexLock lock(mutex_);
    collect(counters_, MetricType::Counter, page);
    collect(counter_callbacks_, MetricType::Counter, page);
    collect(gauges_, MetricType::Gauge, page);
    collect(callbacks_, MetricType::Gauge, page);
    collect(histograms_, MetricType::Histogram, page);
    collect(summaries_, MetricType::Summary, page);
  }
  return prometheus::TextSerializer().Serialize(page);
}

}  // namespace serin::metrics

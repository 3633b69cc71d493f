// recorder.h: Keeps some of a service's requests, so that a canary can answer them before it gets any traffic (proxy/replayer.h).
//
// It holds the newest requests up to a number and a size. The first ones are all taken. Once it is full, requests are taken evenly over the time that
// they are kept, so that a busy service records a day and not a second.
//
//   Recorder recorder("digits", config, registry);
//   if (recorder.wants(now)) recorder.add(request);          // any thread
//   for (const auto& request : recorder.latest(500)) ...     // newest first
//
// With a file, the requests are written there every minute and at the end, encrypted (sealed_file.h), and read at the start.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/mutex.h"
#include "router/config/config.h"
#include "router/recording/recorded_request.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/base/sleeper.h"

namespace serin::router {

class Recorder {
 public:
  using Clock = std::chrono::system_clock;

  /// A file that cannot be read is reported in the log, and is kept: nothing is written over it. Requests in it that were recorded with other
  /// `headers` or `redact` are deleted. successor: of a recorder with the same file, which retire() replaces.
  Recorder(std::string service, const RecordingConfig& config, bool successor = false);
  ~Recorder();
  /// Its metrics are part of this registry from now on.
  void show(metrics::Registry& registry);

  const RecordingConfig& config() const { return config_; }
  /// Cheap: most requests are not wanted.
  bool wants(Clock::time_point now) const { return now.time_since_epoch().count() >= next_.load(std::memory_order_relaxed); }
  void add(RecordedRequest request);
  /// Newest first; those that are too old are left out.
  Recording latest(size_t most, Clock::time_point now) const;
  /// Deletes what is too old, and writes the file now if there is one.
  Status save();
  /// Gives its requests to another recorder, unless that keeps less of a request, and records and writes nothing more.
  void retire(Recorder& successor);
  /// Whether the requests are to be sent for this epoch of a rollout on that track of the service. Once: to send them again would be no new
  /// evidence.
  bool begin_replay(const std::string& track, uint32_t epoch);

 private:
  void load() SERIN_REQUIRES(mutex_);
  void trim(Clock::time_point now) SERIN_REQUIRES(mutex_);
  void run();

  const std::string service_;
  const RecordingConfig config_;
  std::atomic<Clock::rep> next_{0};  // from then on a request is wanted

  mutable Mutex mutex_;
  std::shared_ptr<metrics::Gauge> count_ SERIN_GUARDED_BY(mutex_), size_ SERIN_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<const RecordedRequest>> requests_ SERIN_GUARDED_BY(mutex_);  // oldest first
  size_t bytes_ SERIN_GUARDED_BY(mutex_) = 0;
  bool changed_ SERIN_GUARDED_BY(mutex_) = false, may_write_ SERIN_GUARDED_BY(mutex_) = true;
  std::map<std::string, uint32_t> replayed_ SERIN_GUARDED_BY(mutex_);  // by track, the latest epoch
  Sleeper sleeper_;
  std::thread writer_;
};

/// The recorders of all services. They outlive a generation: a reload of router.yaml loses no request.
class Recorders {
 public:
  /// The recorder of a service. With other settings than before it is a new one, which keeps the requests.
  std::shared_ptr<Recorder> get(const std::string& service, const RecordingConfig& config, metrics::Registry& registry);
  /// Forgets the recorders of all other services, and their requests in memory.
  void keep_only(const std::vector<std::string>& services);

 private:
  std::map<std::string, std::shared_ptr<Recorder>> recorders_;
};

}  // namespace serin::router

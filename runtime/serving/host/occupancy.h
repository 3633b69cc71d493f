// occupancy.h: how busy a model's instances are, and how long its queue is in time: gauges for autoscalers.
//
//   occupancy.begin(now);                            // an instance begins to run a batch
//   occupancy.end(now, /*requests=*/3, took);        // and ends
//   occupancy.busy_share(now);                       // 0 to 1, of about the last ten seconds
//   occupancy.wait_of(/*requests=*/8);               // the time that so many waiting requests will take
//
// Autoscalers read gauges when they like, so neither depends on when it was read last. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>

#include "kernels/mutex.h"

namespace serin::serving {

class Occupancy {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Seconds = std::chrono::duration<double>;

  void set_instances(size_t count);
  void begin(Time now);
  /// The end of a run that answered so many requests.
  void end(Time now, size_t requests, Seconds took);

  /// The share of the instances that run. Older times count less: after a step, 63 % of it shows after ten seconds.
  double busy_share(Time now) const;
  /// By the time of recent runs; 0 before the first.
  Seconds wait_of(double requests) const;

 private:
  double share_at(Time now) const SERIN_REQUIRES(mutex_);
  void change(Time now, double more) SERIN_REQUIRES(mutex_);

  mutable Mutex mutex_;
  double instances_ SERIN_GUARDED_BY(mutex_) = 1;
  double running_ SERIN_GUARDED_BY(mutex_) = 0;
  double share_ SERIN_GUARDED_BY(mutex_) = 0;  // at changed_
  Time changed_ SERIN_GUARDED_BY(mutex_);
  Seconds each_ SERIN_GUARDED_BY(mutex_){0};  // the time of an instance that a request takes; a batch divides it
};

}  // namespace serin::serving

// traffic.h: Work that a device does now, as this process knows it: runs of models, and measurements whose end a thread awaits.
//
//   const Traffic::Run run(Traffic::of(device));           // while a thread waits for the end of a run
//   const Traffic::Trial trial(Traffic::of(device));       // while a thread waits for the end of a measurement
//
// A measurement that ran next to a run says little about the kernel (tactics.h), and one that does not end is a device that hangs (Device::hangs).
// Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "kernels/mutex.h"

namespace serin::kernels::cuda {

class Traffic {
 public:
  using Clock = std::chrono::steady_clock;

  /// Lives as long as the process. `device`: its number; devices from kMost on share the last one.
  static Traffic& of(int device) {
    static std::array<Traffic, kMost> all;
    return all[static_cast<size_t>(std::clamp(device, 0, kMost - 1))];
  }

  class Run {
   public:
    explicit Run(Traffic& of) : of_(of) {
      ++of_.begun_;
      ++of_.under_way_;
    }
    ~Run() { --of_.under_way_; }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    Traffic& of_;
  };

  class Trial {
   public:
    explicit Trial(Traffic& of) : of_(of) {
      const MutexLock lock(of_.mutex_);
      of_.trials_.push_back({this, Clock::now()});
    }
    ~Trial() {
      const MutexLock lock(of_.mutex_);
      std::erase_if(of_.trials_, [this](const Awaited& each) { return each.by == this; });
    }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

   private:
    Traffic& of_;
  };

  /// Runs so far, those under way included.
  uint64_t begun() const { return begun_; }
  bool busy() const { return under_way_ > 0; }
  /// Whether a measurement has been awaited since before that time.
  bool awaits_trial_since(Clock::time_point before) const {
    const MutexLock lock(mutex_);
    return std::ranges::any_of(trials_, [before](const Awaited& each) { return each.since < before; });
  }

 private:
  static constexpr int kMost = 64;
  struct Awaited {
    const Trial* by;
    Clock::time_point since;
  };

  std::atomic<uint64_t> begun_ = 0;
  std::atomic<int> under_way_ = 0;
  mutable Mutex mutex_;
  std::vector<Awaited> trials_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::kernels::cuda

// traffic.h: Threads of this process that wait for a device: for the end of a run, or of a measurement.
//
//   const Traffic::Wait wait(Traffic::of(device), Traffic::kRun);
//
// A wait that does not end is a device that hangs (Device::hangs). A measurement that met a run says little about the kernel (tactics.h).
// Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "kernels/mutex.h"

namespace serin::kernels::cuda {

class Traffic {
 public:
  using Clock = std::chrono::steady_clock;
  enum Kind : uint8_t { kRun, kMeasurement };

  /// Lives as long as the process. `device`: its number; devices from kMost on share the last one.
  static Traffic& of(int device) {
    static std::array<Traffic, kMost> all;
    return all[static_cast<size_t>(std::clamp(device, 0, kMost - 1))];
  }

  class Wait {
   public:
    Wait(Traffic& of, Kind kind) : of_(of) {
      const MutexLock lock(of_.mutex_);
      of_.waits_.push_back({this, kind, Clock::now()});
      of_.runs_ += kind == kRun ? 1 : 0;
    }
    ~Wait() {
      const MutexLock lock(of_.mutex_);
      std::erase_if(of_.waits_, [this](const Awaited& each) { return each.by == this; });
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    Traffic& of_;
  };

  /// Runs so far, those under way included.
  uint64_t runs() const {
    const MutexLock lock(mutex_);
    return runs_;
  }
  /// A run is under way.
  bool busy() const {
    const MutexLock lock(mutex_);
    return std::ranges::any_of(waits_, [](const Awaited& each) { return each.kind == kRun; });
  }
  /// A thread has waited since before that time.
  bool waits_since(Clock::time_point before) const {
    const MutexLock lock(mutex_);
    return std::ranges::any_of(waits_, [before](const Awaited& each) { return each.since < before; });
  }

 private:
  static constexpr int kMost = 64;
  struct Awaited {
    const Wait* by;
    Kind kind;
    Clock::time_point since;
  };

  mutable Mutex mutex_;
  std::vector<Awaited> waits_ SERIN_GUARDED_BY(mutex_);
  uint64_t runs_ SERIN_GUARDED_BY(mutex_) = 0;
};

}  // namespace serin::kernels::cuda

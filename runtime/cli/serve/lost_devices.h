// lost_devices.h: what becomes of a server whose devices are lost, which only another process can use again.
#pragma once

#include <chrono>
#include <optional>

#include "runtime/engine/devices.h"
#include "runtime/serving/repository/catalogue.h"

namespace serin::cli {

/// A supervisor that probes liveness restarts the server at once; for one that waits for its end it ends by itself after a while.
class LostDevices {
 public:
  /// `hung`: a run that has not ended for so long never will. `grace`: how long the server stays when it is not live any more. Zero: for ever.
  LostDevices(engine::Devices& devices, std::chrono::milliseconds hung, std::chrono::milliseconds grace)
      : devices_(devices), hung_(hung), grace_(grace) {}
  /// Every few seconds. False: it is time to end.
  bool look(const serving::Catalogue& now);
  /// Threads wait for a device that does not answer, and cannot be waited for.
  bool hang() const { return hang_; }

 private:
  engine::Devices& devices_;
  const std::chrono::milliseconds hung_, grace_;
  bool hang_ = false;
  std::optional<std::chrono::steady_clock::time_point> dead_since_, last_look_;
};

}  // namespace serin::cli

// lost_devices.h: decides when a server whose devices are lost must end. Only another process can use these devices again.
#pragma once

#include <chrono>
#include <optional>

#include "runtime/engine/devices.h"
#include "runtime/serving/repository/catalogue.h"

namespace serin::cli {

/// A supervisor that probes liveness restarts the server at once. For a supervisor that waits for its end, the server ends by itself.
class LostDevices {
 public:
  /// `hung`: a run that takes longer than this never ends. `grace`: how long the server continues when it is no longer live. Zero: without
  /// end.
  LostDevices(engine::Devices& devices, std::chrono::milliseconds hung, std::chrono::milliseconds grace)
      : devices_(devices), hung_(hung), grace_(grace) {}
  /// Called every few seconds. Returns false when it is time to end.
  bool look(const serving::Catalogue& now);
  /// Whether threads wait for a device that does not answer; these threads cannot be joined.
  bool hang() const { return hang_; }

 private:
  engine::Devices& devices_;
  const std::chrono::milliseconds hung_, grace_;
  bool hang_ = false;
  std::optional<std::chrono::steady_clock::time_point> dead_since_, last_look_;
};

}  // namespace serin::cli

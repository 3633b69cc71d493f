// device_memory.h: what one executor holds for a plan that runs on a device: one block there, one pinned block here, a queue. Taken once.
#pragma once

#include <memory>

#include "kernels/device.h"
#include "runtime/base/result.h"
#include "runtime/engine/runner.h"

namespace serin::engine {

class DeviceMemory {
 public:
  /// kTooLarge, saying what is wanted and what is free, where there is not that much; kUnavailable where the device is lost.
  static Result<std::unique_ptr<DeviceMemory>> make(kernels::Device& device, const Plan& plan);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* host() const { return host_ + kFaultBytes; }  ///< the plan's arena
  OnDevice on_device() const;

 private:
  /// Both blocks begin with the fault.
  static constexpr size_t kFaultBytes = 256;

  explicit DeviceMemory(kernels::Device& device) : device_(device) {}

  kernels::Device& device_;
  std::byte *here_ = nullptr, *host_ = nullptr;
  std::unique_ptr<kernels::Queue> queue_;
};

}  // namespace serin::engine

// device_arena.h: memory and queue for executors on a device: a block of device memory, pinned host memory and the queue for their steps.
//
// All of it is allocated once. Executors that never run at the same time share one arena. The executors of an instance, one for each batch
// size, take turns in memory for the largest of them.
#pragma once

#include <atomic>
#include <memory>

#include "kernels/device.h"
#include "runtime/base/result.h"
#include "runtime/engine/plan/runner.h"

namespace serin::engine {

/// Returns kUnavailable if the device is lost.
Status check_usable(const kernels::Device& device);

/// Bytes that the arenas of one model occupy; the model may be destroyed before the last of them.
struct DeviceArenaBytes {
  std::atomic<size_t> device = 0, host = 0;
};

class DeviceArena {
 public:
  struct Size {
    size_t device = 0, host = 0;
    static Size of(const Plan& plan);
    void include(const Size& other);
  };

  /// kTooLarge if the device has too little memory; kUnavailable if the device is lost. `priority`: Device::make_queue.
  static Result<std::shared_ptr<DeviceArena>> make(kernels::Device& device, const Size& size, int priority,
                                                   std::shared_ptr<DeviceArenaBytes> bytes);
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  bool holds(const Size& size) const { return size.device <= size_.device && size.host <= size_.host; }
  std::byte* host() const { return host_ + kFaultBytes; }  ///< the plan's arena
  OnDevice on_device() const;

 private:
  /// Both blocks begin with the fault record.
  static constexpr size_t kFaultBytes = 256;

  DeviceArena(kernels::Device& device, std::shared_ptr<DeviceArenaBytes> bytes) : device_(device), bytes_(std::move(bytes)) {}

  kernels::Device& device_;
  const std::shared_ptr<DeviceArenaBytes> bytes_;
  Size size_;  // sizes of the allocated blocks
  std::byte *here_ = nullptr, *host_ = nullptr;
  std::unique_ptr<kernels::Queue> queue_;
};

}  // namespace serin::engine

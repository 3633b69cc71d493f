#include "runtime/engine/device/device_arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace serin::engine {

Status check_usable(const kernels::Device& device) {
  const kernels::Fault fault = device.lost();
  return fault ? Status(Error{Code::kUnavailable, fmt::format("{} is lost: {}", device.info().name, *fault)}) : Status();
}

DeviceArena::Size DeviceArena::Size::of(const Plan& plan) {
  return plan.device_bytes == 0 ? Size{} : Size{plan.device_bytes + kFaultBytes, plan.arena_bytes + kFaultBytes};
}

void DeviceArena::Size::include(const Size& other) {
  device = std::max(device, other.device);
  host = std::max(host, other.host);
}

Result<std::shared_ptr<DeviceArena>> DeviceArena::make(kernels::Device& device, const Size& size, int priority,
                                                       std::shared_ptr<DeviceArenaBytes> bytes) {
  const std::string& name = device.info().name;
  const auto missing = [&](const std::string& what) {
    const Status usable = check_usable(device);
    return usable ? Error{Code::kTooLarge, what} : usable.error();
  };
  std::shared_ptr<DeviceArena> arena(new DeviceArena(device, std::move(bytes)));
  arena->here_ = device.allocate(size.device);
  if (!arena->here_) return missing(fmt::format("{} bytes are needed of {}, which has {} free", size.device, name, device.free_bytes()));
  arena->bytes_->device += arena->size_.device = size.device;
  arena->host_ = device.allocate_pinned(size.host);
  if (!arena->host_) return missing(fmt::format("{} bytes of pinned memory are needed, which are not available", size.host));
  arena->bytes_->host += arena->size_.host = size.host;
  std::memset(arena->host_, 0, kFaultBytes);
  arena->queue_ = device.make_queue(priority);
  if (!arena->queue_) return missing(name + " cannot make a queue");
  return arena;
}

DeviceArena::~DeviceArena() {
  if (queue_) static_cast<void>(queue_->finish());  // nothing may still write to what is given back
  queue_.reset();
  if (here_) device_.release(here_);
  if (host_) device_.release_pinned(host_);
  bytes_->device -= size_.device;
  bytes_->host -= size_.host;
}

OnDevice DeviceArena::on_device() const {
  return {.device = &device_,
          .arena = here_ + kFaultBytes,
          .queue = queue_.get(),
          .fault = reinterpret_cast<kernels::DeviceFault*>(here_),
          .fault_on_host = reinterpret_cast<kernels::DeviceFault*>(host_)};
}

}  // namespace serin::engine

#include "runtime/engine/device_memory.h"

#include <fmt/format.h>

#include <cstring>

namespace serin::engine {

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::make(kernels::Device& device, const Plan& plan) {
  if (kernels::Fault fault = device.lost()) return Error{Code::kUnavailable, "the device is lost: " + *fault};
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(device));
  const size_t wanted = plan.device_bytes + kFaultBytes;
  memory->here_ = device.allocate(wanted);
  if (!memory->here_) {
    return Error{Code::kTooLarge, fmt::format("one executor needs {} bytes of {}, which has {} free of {}", wanted, device.info().name,
                                              device.free_bytes(), device.info().memory_bytes)};
  }
  const size_t pinned = plan.arena_bytes + kFaultBytes;
  memory->host_ = device.allocate_pinned(pinned);
  if (!memory->host_)
    return Error{Code::kTooLarge, fmt::format("one executor needs {} bytes of pinned memory, which there are not", pinned)};
  std::memset(memory->host_, 0, kFaultBytes);
  memory->queue_ = device.make_queue();
  if (!memory->queue_)
    return Error{Code::kUnavailable, device.info().name + " makes no queue: " + device.lost().value_or("no reason given")};
  return memory;
}

DeviceMemory::~DeviceMemory() {
  if (queue_) static_cast<void>(queue_->finish());  // nothing may still write to what is given back
  queue_.reset();
  if (here_) device_.release(here_);
  if (host_) device_.release_pinned(host_);
}

OnDevice DeviceMemory::on_device() const {
  return {.arena = here_ + kFaultBytes,
          .queue = queue_.get(),
          .fault = reinterpret_cast<kernels::DeviceFault*>(here_),
          .fault_on_host = reinterpret_cast<kernels::DeviceFault*>(host_)};
}

}  // namespace serin::engine

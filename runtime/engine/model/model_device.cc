// model_device.cc: checks how much memory a model needs of a device. Planning keeps nothing: plans report the sizes of their arenas and
// request weights (kernels/device_weights.h). So a model that does not fit is refused with the numbers, before anything of it is on the
// device. Kernels that are measured meanwhile (kernels/cuda/trial.h) take memory for that moment; without free memory they are not
// measured.

#include <fmt/format.h>

#include <utility>

#include "runtime/engine/model/model_state.h"

namespace serin::engine {

Status Model::State::check_device() const { return options.device ? check_usable(*options.device->device()) : Status(); }

Status Model::State::check_room(const DeviceArena::Size& size, size_t count) const {
  const kernels::Device& device = *options.device->device();
  const auto& [name, id, pci_bus_id, architecture, total] = device.info();
  const DeviceBytes wanted{device_weights->wanted(), size.device * count, size.host * count};
  const size_t bytes = wanted.weights + wanted.arena;
  const auto refuse = [&](const std::string& there) {
    return Error{Code::kTooLarge, fmt::format("needs {} bytes (weights {}, arena {}, staging {} on the host); {}", bytes, wanted.weights,
                                              wanted.arena, wanted.staging, there)};
  };
  const size_t held = device_weights->allocated() + device_arena_bytes->device;
  if (bytes > options.device_limit || held > options.device_limit - bytes)
    return refuse(fmt::format("it may hold {} of {} and holds {}", options.device_limit, name, held));
  const size_t free = device.free_bytes();
  if (bytes > free) return refuse(fmt::format("{} has {} free of {}", name, free, total));
  return {};
}

Result<std::vector<std::shared_ptr<DeviceArena>>> Model::State::make_device_arenas(const DeviceArena::Size& size, size_t count) try {
  kernels::Device& device = *options.device->device();
  const MutexLock lock(device_mutex);
  SERIN_CHECK(check_device());
  SERIN_CHECK(check_room(size, count));
  if (kernels::Fault fault = device_weights->upload())
    return Error{device.lost() ? Code::kUnavailable : Code::kTooLarge, device.info().name + ": " + *fault};
  std::vector<std::shared_ptr<DeviceArena>> arenas;
  for (size_t i = 0; i < count; ++i) {
    SERIN_TRY(auto arena, DeviceArena::make(device, size, options.device_priority, device_arena_bytes));
    arenas.push_back(std::move(arena));
  }
  return arenas;
} catch (const graph::LostConstant& lost) {
  return lost.error();
}

Result<std::vector<std::shared_ptr<DeviceArena>>> Model::device_arenas(std::span<const graph::Bindings> sizes, size_t count) {
  std::vector<std::shared_ptr<const Plan>> plans;  // kept until all are made, because what they ask for goes with them
  DeviceArena::Size largest;
  for (const graph::Bindings& each : sizes) {
    SERIN_TRY(auto plan, this->plan(each));
    largest.include(DeviceArena::Size::of(*plan));
    plans.push_back(std::move(plan));
  }
  if (largest.device == 0) return std::vector<std::shared_ptr<DeviceArena>>();
  return state_->make_device_arenas(largest, count);
}

Status Model::usable() const { return state_->check_device(); }

DeviceBytes Model::device_bytes() const {
  if (!state_->device_weights) return {};
  return {state_->device_weights->allocated(), state_->device_arena_bytes->device, state_->device_arena_bytes->host};
}

}  // namespace serin::engine

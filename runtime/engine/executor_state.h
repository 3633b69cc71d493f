// executor_state.h: the memory behind an Executor; model.cc makes it, executor.cc uses it.
#pragma once

#include <memory>

#include "kernels/cpu/parallel.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/engine/device_memory.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/runner.h"

namespace serin::engine {

struct Executor::State {
  /// `memory` is made for the plan (null: nothing runs on a device).
  State(const Plan& plan, int threads, std::unique_ptr<DeviceMemory> memory)
      : device(std::move(memory)),
        arena(device ? 0 : plan.arena_bytes + 1),
        workers(threads > 1 ? std::make_unique<kernels::Workers>(threads) : nullptr),
        runner(plan, device ? device->host() : arena.data(), workers.get(), device ? device->on_device() : OnDevice{}) {}

  const std::unique_ptr<DeviceMemory> device;
  AlignedBuffer arena;  // never empty, so that every address in it is one
  std::unique_ptr<kernels::Workers> workers;
  Runner runner;
};

}  // namespace serin::engine

// executor_state.h: the memory of an Executor; model.cc makes it, executor.cc uses it.
#pragma once

#include <memory>

#include "kernels/cpu/parallel.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/engine/device/device_arena.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/plan/runner.h"

namespace serin::engine {

struct Executor::State {
  /// `the_device_arena` is as large as the plan requires (null: nothing runs on a device).
  State(const Plan& plan, int threads, std::shared_ptr<DeviceArena> the_device_arena)
      : device_arena(std::move(the_device_arena)),
        arena(device_arena ? 0 : plan.arena_bytes + 1),
        workers(threads > 1 ? std::make_unique<kernels::Workers>(threads) : nullptr),
        runner(plan, device_arena ? device_arena->host() : arena.data(), workers.get(),
               device_arena ? device_arena->on_device() : OnDevice{}) {}

  const std::shared_ptr<DeviceArena> device_arena;
  AlignedBuffer arena;  // never empty, so that every address in it is valid
  std::unique_ptr<kernels::Workers> workers;
  Runner runner;
};

}  // namespace serin::engine

// executor_state.h: the memory behind an Executor; model.cc makes it, executor.cc uses it.
#pragma once

#include <memory>

#include "kernels/cpu/parallel.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/runner.h"

namespace serin::engine {

struct Executor::State {
  State(const Plan& plan, int threads)
      : arena(plan.arena_bytes + 1),
        workers(threads > 1 ? std::make_unique<kernels::Workers>(threads) : nullptr),
        runner(plan, arena.data(), workers.get()) {}

  AlignedBuffer arena;  // never empty, so that every address in it is one
  std::unique_ptr<kernels::Workers> workers;
  Runner runner;
};

}  // namespace serin::engine

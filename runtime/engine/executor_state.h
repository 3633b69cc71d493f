// executor_state.h: the memory behind an Executor; model.cc makes it, executor.cc uses it.
#pragma once

#include "runtime/base/aligned_buffer.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/runner.h"

namespace serin::engine {

struct Executor::State {
  explicit State(const Plan& plan) : arena(plan.arena_bytes + 1), runner(plan, arena.data()) {}

  AlignedBuffer arena;  // never empty, so that every address in it is one
  Runner runner;
};

}  // namespace serin::engine

// model_state.h: the state of a Model; model.cc makes it, model_run.cc runs on it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device_weights.h"
#include "kernels/mutex.h"
#include "runtime/engine/device/device_arena.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/interpret/interpreter.h"
#include "runtime/engine/layout/channel_blocks.h"
#include "runtime/engine/layout/channels_last.h"
#include "runtime/engine/layout/pointwise_chains.h"
#include "runtime/engine/lower/fold.h"
#include "runtime/engine/model/shared_weights.h"
#include "runtime/engine/model/unread_weights.h"
#include "runtime/engine/plan/plan_cache.h"
#include "runtime/engine/program/block.h"

namespace serin::engine {

struct Model::State {
  State(graph::Graph the_graph, const kernels::Backend& the_backend, LoadOptions the_options)
      : graph(std::move(the_graph)), backend(the_backend), options(std::move(the_options)), cache(options.max_plans) {
    if (options.device) device_weights.emplace(*options.device->device());
  }

  // Constant after construction.
  graph::Graph graph;
  const kernels::Backend& backend;
  LoadOptions options;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<std::string> symbols;
  graph::Batchable batchable;
  Folder folder;

  std::shared_ptr<const Block> block;  // null if the model is planned
  std::string why_interpreted;

  // These synchronise themselves.
  const std::shared_ptr<kernels::PackedWeights> packed = options.only_plans ? std::make_shared<UnreadWeights>()
                                                         : options.shared   ? options.shared->packed
                                                                            : std::make_shared<kernels::PackedWeights>();
  kernels::PackedWeights& weights = *packed;
  ConstantForms forms;
  ConstantNotes notes;  // with only_plans
  std::optional<kernels::DeviceWeights> device_weights;
  const std::shared_ptr<DeviceArenaBytes> device_arena_bytes = std::make_shared<DeviceArenaBytes>();

  Mutex device_mutex;  // held from the check for room to the allocation, so that checks do not overlap

  Mutex mutex;
  PlanCache cache SERIN_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Interpreter>> idle_interpreters SERIN_GUARDED_BY(mutex);  // the last element is the one that ran last
  struct IdleExecutor {
    graph::Bindings bindings;
    std::unique_ptr<Executor> executor;
  };
  std::vector<IdleExecutor> idle_executors SERIN_GUARDED_BY(mutex);

  /// Uploads the missing weights and makes `count` arenas, if there is room for both.
  Result<std::vector<std::shared_ptr<DeviceArena>>> make_device_arenas(const DeviceArena::Size& size, size_t count);
  Status check_device() const;
  Status check_room(const DeviceArena::Size& size, size_t count) const SERIN_REQUIRES(device_mutex);

  Plan::Context plan_context() { return plan_context(weights, /*trial=*/false); }
  Plan::Context plan_context(kernels::PackedWeights& into, bool trial) {
    const bool on_device = options.device && !trial && !block;  // interpreted models run on the CPU
    const bool plain = on_device || options.disabled_passes.contains(kChannelBlocksPass);
    return {backend,
            into,
            folder,
            options.threads,
            options.max_arena_bytes,
            trial,
            plain ? 0 : backend.channel_block(),
            !options.disabled_passes.contains(kPointwiseChainsPass),
            on_device ? options.device : nullptr,
            on_device ? &*device_weights : nullptr,
            &forms,
            options.precision,
            options.precision != Precision::kFp32 && !options.disabled_passes.contains(kChannelsLastPass),
            options.only_plans ? &notes : nullptr};
  }
};

}  // namespace serin::engine

// instance.h: one running copy of a model: executors for the batch sizes it has met, and the staging memory in front of them.
//
// Used by one compute thread at a time; the batcher sees to that. Weights and plans belong to the engine's Model and are shared.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/serving/job.h"

namespace serin::serving {

class Instance {
 public:
  Instance(std::shared_ptr<engine::Model> model, int64_t max_batch) : model_(std::move(model)), max_batch_(max_batch) {}

  struct RunResult {
    Status status;                 ///< of the whole batch
    std::vector<Outputs> outputs;  ///< for each job, where status is good
    int64_t bucket_rows = 0;       ///< rows the engine really ran, padding included
    std::chrono::nanoseconds input{0}, infer{0};
  };
  /// Jobs agree in every dimension but the first; together at most max_batch rows. Batches run in the next power of two of rows.
  RunResult run(std::span<const std::shared_ptr<Job>> jobs);

  size_t arena_bytes() const;  ///< of all executors held

 private:
  struct Slot;
  Result<Slot*> slot_for(const graph::Bindings& bindings);
  RunResult interpret(const std::shared_ptr<Job>& job);

  struct Slot {
    graph::Bindings bindings;
    std::unique_ptr<engine::Executor> executor;
    std::vector<AlignedBuffer> staging;  // one per input, sized for the bucket
    uint64_t last_used = 0;
  };
  static constexpr size_t kMostSlots = 16;

  std::shared_ptr<engine::Model> model_;
  int64_t max_batch_;
  std::vector<std::unique_ptr<Slot>> slots_;
  uint64_t uses_ = 0;
};

}  // namespace serin::serving

// instance.h: one running copy of a model: executors for the batch sizes that occurred, and the staging memory before them.
//
// One thread uses it at a time, which the batcher ensures. Weights and plans belong to the engine's Model and are shared. On a device, its
// executors take turns and share one arena, and each of them is one recorded graph.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/base/recently_used.h"
#include "runtime/base/recycler.h"
#include "runtime/engine/engine.h"
#include "runtime/serving/scheduling/job.h"
#include "runtime/serving/scheduling/sizes.h"

namespace serin::serving {

class Instance {
 public:
  struct Options {
    int64_t max_batch = 1;
    size_t most_sizes = kSizesOfAnInstance;  ///< number of sizes with an executor; the least recently used is evicted
    bool on_device = false;
    std::shared_ptr<engine::DeviceArena> arena = nullptr;  ///< arena there for the configured sizes; null: each size allocates its own
  };
  Instance(std::shared_ptr<engine::Model> model, Options options) : model_(std::move(model)), options_(std::move(options)) {}

  struct RunResult {
    bool ready = true;        ///< false: it did not run, and nothing changed
    Status status;            ///< for the whole batch
    Outputs batch;            ///< outputs of all jobs, one job after the other, if status is good
    size_t outputs_each = 0;  ///< outputs of one job
    int64_t bucket_rows = 0;  ///< rows that the engine really ran, including padding
    std::chrono::nanoseconds input{0}, infer{0}, output{0};

    Outputs outputs(size_t job) const { return {batch.block, batch.tensors.subspan(job * outputs_each, outputs_each)}; }
  };
  /// Jobs must be of one group (Job::group), with at most max_batch rows together. Batches run with the next power of two of rows; each
  /// job's results have its own sizes. `only_if_ready`: does not run if an executor would have to be made first.
  RunResult run(std::span<const std::shared_ptr<Job>> jobs, bool only_if_ready = false);

  size_t arena_bytes() const;  ///< for all its executors, on the host
  bool on_device() const { return options_.on_device; }
  /// kUnavailable if its device is lost: nothing can run here until the process has ended.
  Status usable() const { return model_->usable(); }

 private:
  struct Slot;
  struct Block;
  Result<Slot*> slot_for(const Job& job, int64_t bucket_rows, bool may_make);
  Slot* find_slot(const Job& job, int64_t bucket_rows);
  Result<Slot*> slot_for(const graph::Bindings& bindings, bool may_make);
  RunResult interpret(std::span<const std::shared_ptr<Job>> jobs);
  Result<std::shared_ptr<const Block>> share_out(std::span<const std::shared_ptr<Job>> jobs, std::shared_ptr<Block> block,
                                                 int64_t bucket_rows);
  Result<std::shared_ptr<const Block>> crop(std::span<const std::shared_ptr<Job>> jobs, const Block& whole);

  /// Memory of a batch's results, which lives until the slowest reader has finished.
  struct Block {
    AlignedBuffer memory;
    std::vector<TensorView> tensors;

    /// Allocates memory for the tensors, whose types and shapes are set. kTooLarge: the limit of an arena.
    Status allocate();
    void clear();
  };
  struct Slot {
    graph::Bindings bindings;
    std::unique_ptr<engine::Executor> executor;
    std::vector<AlignedBuffer> memory;  // for inputs that the executor has no memory for
    std::vector<TensorView> staging;    // one for each input, sized for the bucket: rows are copied here one after the other
  };

  const std::shared_ptr<engine::Model> model_;
  const Options options_;
  RecentlyUsed<Slot> slots_;
  std::vector<TensorView> inputs_, outputs_;  // of the running batch
  Recycler<Block> blocks_;
};

}  // namespace serin::serving

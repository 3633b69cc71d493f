// job.h: one request on its way through a batch, and its answer on the way back.
#pragma once

#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/base/memory_budget.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/base/unique_function.h"
#include "runtime/graph/dim.h"
#include "runtime/protocol/infer.h"
#include "runtime/protocol/tensor/datatype.h"

namespace serin::serving {

using Clock = std::chrono::steady_clock;

/// This request's rows of a batch's outputs. What holds them is shared by the batch and lives until its slowest reader is done.
struct Outputs {
  std::shared_ptr<const void> block;
  std::span<const TensorView> tensors;  ///< in the model's order; the block holds them, too

  /// Of tensors that lie in that memory.
  static Outputs of(std::vector<TensorView> tensors, std::shared_ptr<const void> memory) {
    struct Block {
      std::shared_ptr<const void> memory;
      std::vector<TensorView> tensors;
    };
    auto block = std::make_shared<const Block>(Block{std::move(memory), std::move(tensors)});
    const std::span<const TensorView> views = block->tensors;
    return {std::move(block), views};
  }
};

/// Of a request, or a batch of them.
inline constexpr size_t kMostResultBytes = size_t{8} << 30;  // as engine::LoadOptions::max_arena_bytes

struct Timing {
  std::chrono::nanoseconds queue{0}, input{0}, infer{0}, output{0};
};

struct Answer {
  Result<Outputs> outputs = Error{Code::kInternal, "not answered"};
  protocol::BatchTag batch;
  Timing timing;
  bool cached = false;  ///< computed for another request
};

/// Of a job that waits in a queue: who is lower goes first. No job waits as number 0.
struct QueuePlace {
  size_t rank = 0;
  uint64_t number = 0;

  friend auto operator<=>(const QueuePlace&, const QueuePlace&) = default;
};

/// Counts its request among those that await execution (nv_inference_pending_request_count), from its being taken until it runs, is answered or is dropped.
class Pending {
 public:
  Pending() = default;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() { end(); }

  void begin(std::shared_ptr<metrics::Gauge> gauge) {
    gauge->add(1);
    gauge_ = std::move(gauge);
  }
  /// In the place of another, which counts no more.
  void take_over(Pending& other) { gauge_ = std::exchange(other.gauge_, nullptr); }
  void end() {
    if (const auto gauge = std::exchange(gauge_, nullptr)) gauge->add(-1);
  }

 private:
  std::shared_ptr<metrics::Gauge> gauge_;  // null: it is not counted, or not any more
};

struct Job {
  std::vector<TensorView> inputs;               ///< in the model's order, already checked against its signature
  AlignedBuffer memory;                         ///< what the views point into
  std::vector<std::vector<std::string>> texts;  ///< or these, where they are strings: one list for each input
  MemoryBudget::Share share;                    ///< of what both take
  std::shared_ptr<const void> holds;            ///< memory of inputs that is not its own
  int64_t rows = 1;                             ///< along axis 0, where the model is batchable
  graph::Bindings sizes;                        ///< its own, where some are `padded`
  graph::Bindings padded;                       ///< sizes that it runs with in place of its own: the next of those to be ready for
  std::vector<int64_t> group;                   ///< sizes that all jobs of a batch have in common: those of its inputs beyond the rows
  Clock::time_point arrived{};
  Clock::time_point deadline = Clock::time_point::max();
  std::chrono::nanoseconds patience{
      0};                              ///< it waits in the queue for no longer, where the queue's policy lets it say so; 0: it says nothing
  uint64_t priority = 0;               ///< 1 goes first; 0: the model's own default
  bool admitted = false;               ///< a part of a request that was let in already: neither the queue's limit nor its goal keep it out
  int64_t behind = 0;                  ///< rows of such a request that come after this part
  protocol::SequencePlace sequence;    ///< that it belongs to; looked at by models of sequences only
  std::shared_ptr<const Job> parent;   ///< of a step of an ensemble: the ensemble's request
  uint64_t trace = 0;                  ///< 0: it is not traced (tracer.h)
  bool shadow = false;                 ///< low priority, outside the metrics
  Pending pending;                     ///< belongs to who holds the job: the queue, then the run
  QueuePlace place;                    ///< in the batcher's queue, whose lock guards it
  uint64_t inputs_hash = 0;            ///< for who waits for the answer to the same inputs (caching_scheduler.h)
  std::atomic<bool> abandoned{false};  ///< nobody waits any more (hung up, deadline answered); who says so has it withdrawn (scheduler.h)
  UniqueFunction<void(Answer)> done;   ///< called once, from the thread that computed, unless the job was abandoned before it was taken

  /// Lets go of what waits for the answer, which may hold what holds this job.
  void answer(Answer answer) {
    pending.end();
    std::exchange(done, nullptr)(std::move(answer));
  }
  /// Whether anybody still waits; to be looked at again and again.
  const std::atomic<bool>& given_up() const { return parent ? parent->given_up() : abandoned; }
  /// As new, but for the memory.
  void clear();
};

using JobPtr = std::shared_ptr<Job>;

}  // namespace serin::serving

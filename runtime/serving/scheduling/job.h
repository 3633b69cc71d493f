// job.h: one request on its way through a batch, and its answer on the way back.
#pragma once

#include <atomic>
#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
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
#include "runtime/serving/host/ending.h"

namespace serin::net {
class Loop;
}

namespace serin::serving {

/// This request's rows of a batch's outputs. The batch shares their memory, which lives until the slowest reader has finished.
struct Outputs {
  std::shared_ptr<const void> block;
  std::span<const TensorView> tensors;  ///< in the model's order; the block owns them too

  /// Makes Outputs of tensors in that memory.
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

/// Limit for the results of a request or a batch.
inline constexpr size_t kMostResultBytes = size_t{8} << 30;  // as engine::LoadOptions::max_arena_bytes

struct Answer {
  Result<Outputs> outputs = Error{Code::kInternal, "not answered"};
  protocol::BatchTag batch;
  Timing timing;
  bool cached = false;   ///< computed for another request
  bool refused = false;  ///< as in Ending

  Ending ending() const { return {outputs ? std::nullopt : std::optional(outputs.error().code), cached, refused, timing}; }
};

/// Position of a waiting job in a queue: lower positions go first. No waiting job has number 0.
struct QueuePlace {
  size_t rank = 0;
  uint64_t number = 0;

  friend auto operator<=>(const QueuePlace&, const QueuePlace&) = default;
};

/// Counts its request in nv_inference_pending_request_count, from its acceptance until it runs, is answered or is dropped.
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
  /// Replaces another, which stops counting.
  void take_over(Pending& other) { gauge_ = std::exchange(other.gauge_, nullptr); }
  void end() {
    if (const auto gauge = std::exchange(gauge_, nullptr)) gauge->add(-1);
  }

 private:
  std::shared_ptr<metrics::Gauge> gauge_;  // null: it does not count
};

struct Job {
  std::vector<TensorView> inputs;               ///< in the model's order, already checked against its signature
  AlignedBuffer memory;                         ///< the memory of the views
  std::vector<std::vector<std::string>> texts;  ///< the same for strings: one list for each input
  MemoryBudget::Share share;                    ///< share of the budget for both
  std::shared_ptr<const void> holds;            ///< memory of inputs that the job does not own
  int64_t rows = 1;                             ///< along axis 0, if the model is batchable
  graph::Bindings sizes;                        ///< its own sizes, if some are `padded`
  graph::Bindings padded;                       ///< sizes that it runs with instead: the next larger prepared sizes
  std::vector<int64_t> group;                   ///< sizes that all jobs of a batch share: those of its inputs, without the rows
  Clock::time_point arrived{};
  Clock::time_point deadline = Clock::time_point::max();
  std::chrono::nanoseconds patience{0};  ///< limit for its time in the queue, if the queue's policy honours it; 0: none
  uint64_t priority = 0;                 ///< 1 goes first; 0: the model's own default
  bool admitted = false;                 ///< part of a request that was already accepted: neither the queue's limit nor its goal applies
  int64_t behind = 0;                    ///< rows of such a request that follow this part
  protocol::SequencePlace sequence;      ///< its sequence; only models of sequences use it
  net::Loop* loop = nullptr;             ///< an io thread of the server that it came over; null: it came over none
  std::shared_ptr<const Job> parent;     ///< for a step of an ensemble: the ensemble's request
  uint64_t trace = 0;                    ///< 0: it is not traced (tracer.h)
  bool shadow = false;                   ///< low priority, outside the metrics
  Pending pending;                       ///< belongs to the current owner of the job: the queue, then the run
  QueuePlace place;                      ///< in the batcher's queue, whose lock guards it
  uint64_t inputs_hash = 0;              ///< for jobs that wait for the answer to the same inputs (caching_scheduler.h)
  /// No client waits any longer (disconnected, or deadline answered); the code that sets it also withdraws the job (scheduler.h).
  std::atomic<bool> abandoned{false};
  UniqueFunction<void(Answer)> done;  ///< called once, from the computing thread, unless the job was abandoned before it was taken

  /// Calls `done` and destroys it, because it may own an object that owns this job.
  void answer(Answer answer) {
    pending.end();
    std::exchange(done, nullptr)(std::move(answer));
  }
  /// Whether the client has given up; the value may change at any time.
  const std::atomic<bool>& given_up() const { return parent ? parent->given_up() : abandoned; }
  /// Resets everything except the memory.
  void clear();
};

using JobPtr = std::shared_ptr<Job>;

/// Makes a job for a part of a request, which arrives now and is given up with it. It has no inputs yet.
JobPtr part_of(const JobPtr& request);

}  // namespace serin::serving

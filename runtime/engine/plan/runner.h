// runner.h: one plan over one arena, ready to run again and again. Executor is this with an arena of its own; an If has one for each body.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/device.h"
#include "runtime/engine/plan.h"

namespace serin::engine {

/// Memory on a device, and the queue for its steps. `fault` and its copy in pinned memory of the host stand for what kernels find wrong.
struct OnDevice {
  kernels::Device* device = nullptr;
  std::byte* arena = nullptr;  ///< plan.device_bytes
  kernels::Queue* queue = nullptr;
  kernels::DeviceFault* fault = nullptr;
  kernels::DeviceFault* fault_on_host = nullptr;
};

class Runner {
 public:
  /// All outlive it. `arena` has plan.arena_bytes, aligned to kArenaAlignment; no `workers`: one thread.
  Runner(const Plan& plan, std::byte* arena, kernels::Workers* workers, const OnDevice& device = {});

  /// Shapes and dtypes have been checked. Allocates nothing unless it fails. `step_ns`: Executor::run.
  Status run(std::span<const TensorView> inputs, std::span<TensorView> outputs, std::span<int64_t> step_ns = {});

 private:
  /// An operand that lies in the caller's memory.
  struct External {
    size_t operand;
    int index;
    size_t offset;
  };
  /// An axis of an operand that the data decides.
  struct Resize {
    size_t operand;
    const BoundedDim* dim;
  };
  struct Call {
    const kernels::Kernel* kernel = nullptr;
    kernels::Stream stream;
    std::unique_ptr<Runner> bodies[2];
    size_t first_input = 0, inputs = 0, outputs = 0;  ///< in operands_: inputs, then outputs
    size_t first_resize = 0, resizes = 0;             ///< in resizes_
    bool decides_sizes = false;
    bool brings_sizes = false;  ///< to the host, of the step before it, which decides them on a device
    bool on_device = false;
    /// Copies what the caller may have put, or want to find, where it is copied to or from: then there is nothing to do.
    bool of_staged = false;
    bool meets_sizes = false;  ///< the data decides a size of an operand that must fit the others
  };
  /// Steps of the device that follow each other: enqueued one by one at first, then recorded, then replayed as one. What brings sizes is the last of its
  /// segment; steps that such a size reaches are never recorded.
  struct Segment {
    size_t first = 0, last = 0;
    bool sized = false;
    struct {
      int runs = 0;
      std::unique_ptr<kernels::Recording> recording;
    } ways[2];  ///< without and with a mark before each step, and behind the last
  };

  void add_operand(TensorId id, std::byte* arena);
  void find_segments();
  bool is_sized(const Call& call) const;
  Status run_steps(std::span<int64_t> step_ns);
  Status run_step(size_t step);
  Status run_segment(Segment& segment, bool timed);
  Status enqueue(const Segment& segment, bool timed);
  Status add_times(const Segment& segment, std::span<int64_t> step_ns);
  Status finish_device();
  Status learn_sizes(size_t step);
  int64_t size_of(const BoundedDim& dim) const;

  const Plan& plan_;
  std::vector<TensorView> operands_;
  std::vector<Call> calls_;
  std::vector<External> inputs_, outputs_;
  std::vector<Resize> resizes_;
  std::vector<int64_t> sizes_;  ///< of the symbols that the data decides
  const OnDevice device_;
  std::vector<Segment> segments_;
  bool pending_ = false;  ///< the device may still be at work
};

}  // namespace serin::engine

// runner.h: runs one plan over one arena, any number of times. Executor adds its own arena; an If has one runner for each body.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/device.h"
#include "runtime/engine/plan.h"

namespace serin::engine {

/// Memory on a device, and the queue for its steps. `fault` and its copy in pinned host memory record errors found by kernels.
struct OnDevice {
  kernels::Device* device = nullptr;
  std::byte* arena = nullptr;  ///< plan.device_bytes
  kernels::Queue* queue = nullptr;
  kernels::DeviceFault* fault = nullptr;
  kernels::DeviceFault* fault_on_host = nullptr;
};

class Runner {
 public:
  /// All arguments must outlive it. `arena` has plan.arena_bytes, aligned to kArenaAlignment; without `workers` one thread runs.
  Runner(const Plan& plan, std::byte* arena, kernels::Workers* workers, const OnDevice& device = {});

  /// The caller has checked shapes and dtypes. Allocates nothing unless it fails. `step_ns`: Executor::run.
  Status run(std::span<const TensorView> inputs, std::span<TensorView> outputs, std::span<int64_t> step_ns = {});

 private:
  /// An operand in the caller's memory.
  struct External {
    size_t operand;
    int index;
    size_t offset;
  };
  /// An axis of an operand whose size depends on the data.
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
    bool brings_sizes = false;  ///< copies to the host the sizes that the step before it decides on a device
    bool on_device = false;
    /// Copies a staged input or output. If the caller already uses the staging memory, there is nothing to copy.
    bool of_staged = false;
    bool meets_sizes = false;  ///< an operand whose size depends on the data must fit the others
  };
  /// Consecutive steps of the device. They are enqueued one by one at first, then recorded, then replayed as one. A step that copies sizes
  /// is the last of its segment; steps that depend on such a size are never recorded.
  struct Segment {
    size_t first = 0, last = 0;
    bool sized = false;
    struct {
      int runs = 0;
      std::unique_ptr<kernels::Recording> recording;
    } ways[2];  ///< without and with a mark before each step and after the last
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
  /// The error of a run that failed, once the device has ended the rest of it: kUnavailable if the device is lost.
  Error failed_on_device(Error error);
  Status learn_sizes(size_t step);
  int64_t size_of(const BoundedDim& dim) const;

  const Plan& plan_;
  std::vector<TensorView> operands_;
  std::vector<Call> calls_;
  std::vector<External> inputs_, outputs_;
  std::vector<Resize> resizes_;
  std::vector<int64_t> sizes_;  ///< sizes of the symbols that depend on the data
  const OnDevice device_;
  std::vector<Segment> segments_;
  bool pending_ = false;  ///< the device may still be running
};

}  // namespace serin::engine

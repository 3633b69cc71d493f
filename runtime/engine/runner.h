// runner.h: one plan over one arena, ready to run again and again. Executor is this with an arena of its own; an If has one for each body.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/engine/plan.h"

namespace serin::engine {

class Runner {
 public:
  /// All outlive it. `arena` has plan.arena_bytes, aligned to kArenaAlignment; no `workers`: one thread.
  Runner(const Plan& plan, std::byte* arena, kernels::Workers* workers);

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
  };

  void add_operand(TensorId id, std::byte* arena);
  Status run_step(size_t step);
  void learn_sizes(size_t step);
  int64_t size_of(const BoundedDim& dim) const;

  const Plan& plan_;
  std::vector<TensorView> operands_;
  std::vector<Call> calls_;
  std::vector<External> inputs_, outputs_;
  std::vector<Resize> resizes_;
  std::vector<int64_t> sizes_;  ///< of the symbols that the data decides
};

}  // namespace serin::engine

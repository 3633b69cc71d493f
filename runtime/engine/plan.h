// plan.h: a Program with memory and kernels: everything a run needs that stays the same between runs. Immutable, shared by executors.
//
// `serin inspect --explain` prints this structure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/device_weights.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/layout/constant_forms.h"
#include "runtime/engine/lower/fold.h"
#include "runtime/engine/plan/buffers.h"
#include "runtime/engine/plan/constant_notes.h"
#include "runtime/engine/program/program.h"

namespace serin::engine {

/// The symbol that one axis of a result decides (NonZero, NonMaxSuppression, Unique); -1: none.
struct DecidedSize {
  int symbol = -1;
  size_t axis = 0;
};

/// A step with the kernel that runs it. An If has plans instead.
struct PreparedStep {
  std::unique_ptr<kernels::Kernel> kernel;
  std::string kernel_name;
  std::vector<std::pair<std::string, std::string>> refusals;  ///< table rows that refused, with the reason; those of a device first
  Memory memory = Memory::kHost;                              ///< where it runs
  size_t scratch_offset = 0, scratch_bytes = 0;               ///< in that arena; for an If: the arena of the running body
  std::vector<std::unique_ptr<const Plan>> bodies;            ///< then, else; null if it is never taken
  std::vector<DecidedSize> defines;                           ///< for each output
};

/// The description of an operand for a kernel.
kernels::TensorDesc describe(const Program& program, TensorId id);

class Plan {
 public:
  struct Context {
    const kernels::Backend& backend;
    kernels::PackedWeights& weights;
    const Folder& folder;
    int threads = 1;
    size_t max_arena_bytes = SIZE_MAX;
    bool trial = false;                                ///< only tests whether the plan can be made: no constants are kept for runs
    int64_t channel_block = 0;                         ///< block size of the layout stage; 0: all tensors stay plain
    bool pointwise_chains = false;                     ///< whether to fuse steps on single elements
    const kernels::Backend* device = nullptr;          ///< steps that it has kernels for run there
    kernels::DeviceWeights* device_weights = nullptr;  ///< weights in its memory
    ConstantForms* forms = nullptr;                    ///< forms of the constants that it reads
    Precision precision = Precision::kFp32;            ///< precision of the steps on the device
    bool channels_last = false;                        ///< whether convolutions there use channels-last images
    ConstantNotes* notes = nullptr;  ///< constants that runs read plain are noted there instead of read; null: they are read
  };

  /// Binds `graph` (whose input dimensions may be symbols) and plans it. The error names every node that cannot run.
  static Result<std::shared_ptr<const Plan>> make(const graph::Graph& graph, const graph::Bindings& bindings, const Context& context);

  Program program;
  std::vector<PreparedStep> steps;  ///< one for each of program.steps
  std::vector<Place> places;        ///< one for each tensor; arena places have their final offset
  size_t arena_bytes = 0;
  size_t live_bytes = 0;    ///< lower bound of arena_bytes
  size_t device_bytes = 0;  ///< size of the arena in the device's memory; 0: nothing runs there
  std::vector<TensorInfo> inputs, outputs;
  std::vector<bool> reads_constant;  ///< by tensor: a kernel reads its plain form; the other constants have no data here
  /// By tensor: constants that the device reads in plain form.
  std::vector<std::shared_ptr<const kernels::PackedWeights::Buffer>> device_constants;

 private:
  Status prepare(const Context& context);
  /// The kinds of kernels that a step may use.
  enum class Where : uint8_t { kAny, kHost, kDevice };
  std::vector<Status> prepare_steps(const Context& context);
  Status prepare_step(size_t i, const Context& context, Where where);
  Status suit_device(const Context& context);
  Status place_on_device(const Context& context, std::vector<Status>& statuses);
  void ask_for_constants(const Context& context);
  void note_constants_read(size_t i);
  void note_packing(size_t i, const Context& context) const;
  Status number_symbols();
  void keep_what_is_read_plain(const Context& context);
  void place(const Buffers& buffers);
  static Result<std::unique_ptr<Plan>> make_from(Program program, const Context& context);
};

}  // namespace serin::engine

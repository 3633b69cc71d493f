// engine.h: loads a model and runs it.
//
//   SERIN_TRY(auto model, engine::Model::load("models/digits/1/model.onnx", *backend, {}));
//   SERIN_TRY(auto executor, model->executor({{"batch", 8}}));                     // plans a bucket, or finds it in the cache
//   SERIN_CHECK(executor->run(inputs, outputs));                                   // no lookup, no allocation by Serin
//   SERIN_TRY(const auto results, model->run(values));                             // any model, sizes known afterwards (value.h)
//
// A Model has the optimised graph and the packed weights, shared by all of its executors. A Plan is the graph bound to one bucket of
// shapes. In it, every intermediate tensor has an offset in one arena, and the schedule is a flat list of prepared kernels. An Executor is
// a plan with its own arena; one thread uses it at a time. `serin inspect` prints the Plan itself, so the estimate is the allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/tensor.h"
#include "runtime/base/result.h"
#include "runtime/engine/value.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

/// An input or output as clients see it; a symbolic dimension is -1.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  graph::Dims dims;  ///< the same with the symbols' names
  graph::ValueKind kind = graph::ValueKind::kTensor;
  bool ranked = true;  ///< false: even the number of dimensions is unknown before a run
};

/// Arithmetic of a device for f32 values. On the CPU, the backend decides (kernels::CpuOptions::bf16).
enum class Precision : uint8_t {
  kFp32,  ///< only each result is rounded
  kTf32,  ///< operands of products are rounded to ten bits of fraction
  kFp16,  ///< weights and values between steps are 16 bits; sums are f32, and so are the model's inputs and outputs
  kBf16,
};

/// Weights that models of one file share: made with make_shared_weights(), for one load after the other.
struct SharedWeights;
std::shared_ptr<SharedWeights> make_shared_weights();

struct LoadOptions {
  int threads = 1;  ///< cores for one executor
  std::set<std::string, std::less<>> disabled_passes;
  size_t max_arena_bytes = size_t{8} << 30;  ///< a bucket that needs more is refused before any allocation
  const kernels::Backend* device = nullptr;  ///< steps that it has kernels for run there, the rest on the CPU; must outlive every executor
  Precision precision = Precision::kFp32;    ///< precision of the steps on the device
  size_t device_limit = SIZE_MAX;            ///< bytes of the device that the model may occupy
  int device_priority = 0;                   ///< priority of its work there: above 0 before other models, below 0 after them
  std::set<std::string, std::less<>> replaceable_inputs;  ///< names (formats::ReplaceableInputs); their values are Graph::standard_inputs
  std::string signature;  ///< name of one of the graphs in the file (Graph::signature); empty: the standard one
  /// Models that are read from one file with it share the weights that they have in common; null: they share none.
  std::shared_ptr<SharedWeights> shared;
  /// Plans are made to be read: no weight is read or packed, only its bytes count. plan() and weight_bytes() answer like those of a model
  /// that runs; executor() and run() refuse. For the CPU.
  bool only_plans = false;
  /// Plans kept by executor(); exact keys, the least recently used is evicted first.
  size_t max_plans = 16;
  /// Called with (pass name, graph) after each pass that changed something; for `serin inspect`.
  std::function<void(const std::string&, const graph::Graph&)> after_pass;
};

class Plan;
class DeviceArena;  // device_arena.h

/// Bytes that a model occupies, or requests, for runs on a device: weights and arenas in its memory, staging in pinned host memory.
struct DeviceBytes {
  size_t weights = 0, arena = 0, staging = 0;
};

/// Bytes of a model's weights in host memory. Plans of other sizes may add packed forms.
struct WeightBytes {
  size_t constants = 0;      ///< those that kernels read plain, and small ones
  size_t packed = 0;         ///< in the layouts of kernels
  size_t while_packing = 0;  ///< most of both at a time, with the plain form of what is being packed; only with LoadOptions::only_plans
};

/// Runs one batch at a time; not thread-safe. It keeps its plan and the model's weights alive.
class Executor {
 public:
  ~Executor();
  /// Inputs and outputs are in the model's order, dense, of exactly the shapes below. The caller's output memory is written directly if no
  /// other step reads that result. Errors: kInvalidArgument (a shape or dtype that differs from the plan's; an index out of range, naming
  /// the node). Outputs whose size depends on the data (bounded) get their true shape in outputs[i].shape; their memory must have room for
  /// the bound. `step_ns`: one number for each step of the plan, to which its nanoseconds are added; empty: no clock is read.
  Status run(std::span<const TensorView> inputs, std::span<TensorView> outputs, std::span<int64_t> step_ns = {});

  /// One view for each input and output. If it has data, that is executor memory which a device copies from or to directly. A caller that
  /// writes its input there, and passes that view to run(), saves a copy. An output stays there until the next run of an executor on the
  /// same arena.
  std::vector<TensorView> staged_inputs() const;
  std::vector<TensorView> staged_outputs() const;

  std::span<const TensorInfo> inputs() const;  ///< concrete shapes of this bucket
  std::span<const TensorInfo> outputs() const;
  size_t arena_bytes() const;  ///< its own memory, for everything between inputs and outputs
  const Plan& plan() const { return *plan_; }

 private:
  friend class Model;
  struct State;
  Executor(std::shared_ptr<const Plan> plan, std::unique_ptr<State> state);
  std::vector<TensorView> staged(std::span<const TensorInfo> infos, std::span<const int32_t> tensors) const;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<State> state_;
};

class Model {
 public:
  /// Reads, checks and optimises. Refuses a model that could not run later, naming every unsupported node. `path` ends in .onnx.
  static Result<std::shared_ptr<Model>> load(const std::string& path, const kernels::Backend& backend, LoadOptions options);
  static Result<std::shared_ptr<Model>> from_graph(graph::Graph graph, const kernels::Backend& backend, LoadOptions options);
  ~Model();

  const graph::Graph& graph() const;           ///< after the passes
  std::span<const TensorInfo> inputs() const;  ///< symbolic dimensions are -1
  std::span<const TensorInfo> outputs() const;
  const graph::Batchable& batchable() const;
  std::vector<std::string> symbols() const;  ///< symbols of the inputs: "batch", "seq"

  /// Runs any model on any concrete values, in the model's order; the sizes of the results are known afterwards. Thread-safe. Errors:
  /// kInvalidArgument (values that do not fit the model or each other, naming input or node), kTooLarge, kCancelled. `*cancelled` is
  /// checked between the iterations of loops.
  Result<std::vector<Value>> run(std::span<const Value> inputs, const std::atomic<bool>* cancelled = nullptr);

  /// Whether the whole model is one plan once its inputs' sizes are known. Only then executor() works; run() always works.
  bool planned() const;
  /// The reason if it is not planned: what only a run can decide.
  const std::string& why_interpreted() const;
  /// Describes which parts of an interpreted model are planned and which run by themselves, with reasons. The first shows what is known
  /// before a run, the second the last run.
  std::string describe_stages() const;
  std::string describe_last_run() const;

  /// The plan that executor() runs for these dimensions. Errors: those of executor(), but for the device's. Thread-safe.
  Result<std::shared_ptr<const Plan>> plan(const graph::Bindings& bindings);

  /// Makes a new executor, with its own arena, for exactly these dimensions; every symbol of the inputs must be bound. Plans are cached and
  /// shared. kUnsupported if the model is interpreted. Thread-safe. The thread that calls it must be the thread that runs it (libraries fix
  /// their thread count there). On a device it works in `device_arena` if that is large enough, else in its own. kTooLarge: the device has
  /// no room for it; kUnavailable: the device is lost.
  Result<std::unique_ptr<Executor>> executor(const graph::Bindings& bindings, std::shared_ptr<DeviceArena> device_arena = nullptr);

  /// Allocates memory for `count` executors at the same time, each for any of these sizes, and for the weights. Either all of it is
  /// allocated or nothing, with kTooLarge:
  ///   "needs 7340032 bytes (weights 6291456, arena 1048576, staging 65536 on the host); NVIDIA H200 has 1000 free of 150000000000"
  /// Returns no arenas if no part of the model runs on a device.
  Result<std::vector<std::shared_ptr<DeviceArena>>> device_arenas(std::span<const graph::Bindings> sizes, size_t count);
  DeviceBytes device_bytes() const;  ///< allocated now
  /// kUnavailable if it was loaded for a device that is lost: nothing of it runs there until the process has ended.
  Status usable() const;

  size_t weight_bytes() const;  ///< kept constants plus packed forms
  WeightBytes weights() const;
  struct CacheCounters {
    uint64_t hits = 0, misses = 0, evictions = 0;
  };
  CacheCounters plan_cache() const;

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  Status try_smallest();
  Status check_bindings(const graph::Bindings& bindings) const;
  Status interpret(const Error& why);
  Result<std::vector<Value>> run_planned(std::span<const Value> inputs);
  Result<std::vector<Value>> run_interpreted(std::span<const Value> inputs, const std::atomic<bool>* cancelled);

  std::unique_ptr<State> state_;
};

/// Reads a model as it is, before the passes: a file of any format of formats::Format, or the folder of one. Model::load uses it.
Result<graph::Graph> read_model(const std::string& given, const std::set<std::string, std::less<>>& replaceable_inputs = {});
/// The same with the signature and the shared weights of the options.
Result<graph::Graph> read_model(const std::string& given, const LoadOptions& options);

/// Derives the bindings from inputs of these shapes; the error names input and dimension:
///   "input 'pixels' expects [batch,64] FP32, the request has [2,65]"
Result<graph::Bindings> bindings_for(std::span<const TensorInfo> model_inputs, std::span<const TensorView> inputs);

}  // namespace serin::engine

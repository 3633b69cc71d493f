// engine.h: a Graph made runnable.
//
//   SERIN_TRY(auto model, engine::Model::load("models/digits/1/model.onnx", *backend, {}));
//   SERIN_TRY(auto executor, model->executor({{"batch", 8}}));                     // plans a bucket, or finds it in the cache
//   SERIN_CHECK(executor->run(inputs, outputs));                                   // no lookup, no allocation of ours
//   SERIN_TRY(const auto results, model->run(values));                             // any model, sizes known afterwards (value.h)
//
// A Model holds the optimised graph and the packed weights, shared by all of its executors. A Plan is the graph bound to one bucket of
// shapes: every intermediate has an offset in one arena, the schedule is a flat list of prepared kernels. An Executor is a plan with an
// arena of its own: one thread at a time. `Plan` prints as what `serin plan` and `serin inspect` show: the estimate is the allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
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

/// An input or output as clients see it; -1 where a dimension is symbolic.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  graph::Dims dims;  ///< the same with the symbols' names
  graph::ValueKind kind = graph::ValueKind::kTensor;
  bool ranked = true;  ///< false: not even the number of dimensions is known before a run
};

/// What a device computes floats of f32 with; on the CPU the backend says (kernels::CpuOptions::bf16).
enum class Precision : uint8_t {
  kFp32,  ///< nothing is rounded but each result
  kTf32,  ///< operands of products to ten bits of fraction
  kFp16,  ///< weights, and what passes between steps, are 16 bits; sums are f32, and so are the model's inputs and outputs
  kBf16,
};

struct LoadOptions {
  int threads = 1;  ///< cores for one executor
  std::set<std::string, std::less<>> disabled_passes;
  size_t max_arena_bytes = size_t{8} << 30;  ///< a bucket that needs more is refused before anything is allocated
  const kernels::Backend* device = nullptr;  ///< what it has kernels for runs there, the rest on the CPU; outlives every executor
  Precision precision = Precision::kFp32;    ///< of what runs on the device
  size_t device_limit = SIZE_MAX;            ///< bytes of the device that the model may hold
  int device_priority = 0;                   ///< of its work there: above 0 it goes before that of other models, below 0 after it
  std::set<std::string, std::less<>> replaceable_inputs;  ///< names (formats::ReplaceableInputs); their values: Graph::standard_inputs
  size_t max_plans = 16;                                  ///< plans kept by executor(); exact keys, least recently used goes first
  /// Called with (pass name, graph) after each pass that changed something; for `serin inspect`.
  std::function<void(const std::string&, const graph::Graph&)> after_pass;
};

class Plan;
class DeviceArena;  // device_arena.h

/// What a model holds, or wants, for runs on a device: weights and arenas in its memory, staging in pinned memory of the host.
struct DeviceBytes {
  size_t weights = 0, arena = 0, staging = 0;
};

/// Runs one batch at a time; not thread-safe. Holds its plan and the model's weights alive.
class Executor {
 public:
  ~Executor();
  /// Inputs and outputs in the model's order, dense, of exactly the shapes below. The caller's output memory is written directly where no
  /// other reader needs it. Errors: kInvalidArgument (a shape or dtype that is not the plan's; an index out of range, naming the node).
  /// Outputs whose size depends on the data (bounded) get their true shape in outputs[i].shape; their memory must hold the bound.
  /// `step_ns`: for each step of the plan a number to which the nanoseconds that it took are added; empty: no clock is read.
  Status run(std::span<const TensorView> inputs, std::span<TensorView> outputs, std::span<int64_t> step_ns = {});

  /// One for each input and output. Where it has data, that is memory of the executor which a device copies from or to by itself: what the caller puts there before
  /// a run, giving run() that view, is copied once less, and an output is found there until the next run of an executor on the same arena.
  std::vector<TensorView> staged_inputs() const;
  std::vector<TensorView> staged_outputs() const;

  std::span<const TensorInfo> inputs() const;  ///< concrete shapes of this bucket
  std::span<const TensorInfo> outputs() const;
  size_t arena_bytes() const;  ///< memory of its own, for everything between inputs and outputs
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
  /// Reads, checks, optimises; refuses what could not run later (every unsupported node named). `path` ends in .onnx.
  static Result<std::shared_ptr<Model>> load(const std::string& path, const kernels::Backend& backend, LoadOptions options);
  static Result<std::shared_ptr<Model>> from_graph(graph::Graph graph, const kernels::Backend& backend, LoadOptions options);
  ~Model();

  const graph::Graph& graph() const;           ///< after the passes
  std::span<const TensorInfo> inputs() const;  ///< symbolic dimensions are -1
  std::span<const TensorInfo> outputs() const;
  const graph::Batchable& batchable() const;
  std::vector<std::string> symbols() const;  ///< of the inputs: "batch", "seq"

  /// Any model on any concrete values, in the model's order; the sizes of the results are known afterwards. Thread-safe.
  /// Errors: kInvalidArgument (values that do not fit the model or each other, naming input or node), kTooLarge, kCancelled (once
  /// `*cancelled` is true; looked at between the turns of loops).
  Result<std::vector<Value>> run(std::span<const Value> inputs, const std::atomic<bool>* cancelled = nullptr);

  /// Whether the whole model is one plan once its inputs' sizes are known: only then there is an executor(). run() works either way.
  bool planned() const;
  /// Where it is not: what only a run can tell.
  const std::string& why_interpreted() const;
  /// What is planned of an interpreted model and what is run by itself, and why: as far as it is known before a run, or as the last one was.
  std::string describe_stages() const;
  std::string describe_last_run() const;

  /// A fresh executor (own arena) for exactly these dimensions; every symbol of the inputs must be bound. Plans are cached and shared.
  /// kUnsupported where the model is interpreted.
  /// Thread-safe. The thread that calls it must be the thread that runs it (libraries fix their thread count there).
  /// Where it runs on a device, it works in `device_arena`, if that holds it, else in one of its own. kTooLarge: the device has no room for it;
  /// kUnavailable: the device is lost.
  Result<std::unique_ptr<Executor>> executor(const graph::Bindings& bindings, std::shared_ptr<DeviceArena> device_arena = nullptr);

  /// Memory for `count` executors at the same time, each for any of these sizes, and for the weights: all of it or, before anything is taken, kTooLarge:
  /// "needs 7340032 bytes (weights 6291456, arena 1048576, staging 65536 on the host); NVIDIA H200 has 1000 free of 150000000000". Empty where nothing of
  /// it runs on a device.
  Result<std::vector<std::shared_ptr<DeviceArena>>> device_arenas(std::span<const graph::Bindings> sizes, size_t count);
  DeviceBytes device_bytes() const;  ///< held now
  /// kUnavailable where it was loaded for a device that is lost: nothing of it runs there until the process has ended.
  Status usable() const;

  size_t weight_bytes() const;  ///< constants kept plus packed forms
  struct CacheCounters {
    uint64_t hits = 0, misses = 0, evictions = 0;
  };
  CacheCounters plan_cache() const;

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  Status try_smallest();
  Status check_bindings(const graph::Bindings& bindings) const;
  Result<std::shared_ptr<const Plan>> plan_for(const graph::Bindings& bindings);
  Status interpret(const Error& why);
  Result<std::vector<Value>> run_planned(std::span<const Value> inputs);
  Result<std::vector<Value>> run_interpreted(std::span<const Value> inputs, const std::atomic<bool>* cancelled);

  std::unique_ptr<State> state_;
};

/// What Model::load reads: a model file as it is, before the passes.
Result<graph::Graph> read_model(const std::string& path, const std::set<std::string, std::less<>>& replaceable_inputs = {});

/// What the bindings must be for inputs of these shapes; the error names input and dimension:
/// "input 'pixels' expects [batch,64] FP32, the request has [2,65]".
Result<graph::Bindings> bindings_for(std::span<const TensorInfo> model_inputs, std::span<const TensorView> inputs);

}  // namespace serin::engine

// model.cc: takes a graph, runs the passes, and makes a Model that plans on demand.
//
// Models that could not run later are refused at load: a first plan is made for the smallest sizes that the shapes allow, which lowers
// every node and asks the backend for every kernel. A model that no plan holds, because something in it is sized by data, is interpreted;
// runnable.h checks such a model at load. Large constants wait in the file (graph/constant.h): a plan packs them one step after the other,
// and keeps plain what its kernels read plain. Those that the passes folded away never get into memory.

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "kernels/mutex.h"
#include "runtime/engine/interpret/runnable.h"
#include "runtime/engine/model/executor_state.h"
#include "runtime/engine/model/model_state.h"
#include "runtime/engine/optimize.h"

namespace serin::engine {

namespace {

TensorInfo info_of(const graph::Value& value, std::string name) {
  TensorInfo info{
      std::move(name), value.type.dtype, {}, value.type.shape.value_or(graph::Dims{}), value.type.kind, value.type.shape.has_value()};
  for (const graph::Dim& dim : info.dims) {
    if (info.shape.rank() < Shape::kMaxRank) info.shape.push_back(dim.value().value_or(-1));
  }
  return info;
}

/// Whether sizes are all that inputs leave open.
Status check_plannable(const graph::Graph& graph) {
  for (const graph::ValueId id : graph.inputs()) {
    const graph::Value& value = graph.value(id);
    const auto is = [&](const char* what) { return Error{Code::kUnsupported, "input '" + value.name + "' " + what}; };
    if (value.type.kind != graph::ValueKind::kTensor) return is("is not a tensor");
    if (value.type.dtype == DType::kString) return is("holds strings");
    if (!value.type.shape) return is("does not say how many dimensions it has");
  }
  return {};
}

/// Symbols of the inputs in the order in which they occur.
std::vector<std::string> symbols_of(std::span<const TensorInfo> inputs) {
  std::vector<std::string> symbols;
  for (const TensorInfo& input : inputs) {
    for (const graph::Dim& dim : input.dims) {
      for (const std::string& symbol : dim.symbols()) {
        if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end()) symbols.push_back(symbol);
      }
    }
  }
  return symbols;
}

/// Of all constants that something reads and that are in memory, each counted once however many values share it. With `notes`: that would be.
size_t constant_bytes(const graph::Graph& graph, const ConstantNotes* notes) {
  std::map<const void*, size_t> sizes;
  for (size_t i = 0; i < graph.value_capacity(); ++i) {
    const auto id = static_cast<graph::ValueId>(i);
    const graph::ConstantPtr constant = graph.constant(id);
    if (!constant || graph.reader_count(id) == 0) continue;
    const void* held = notes ? constant->resident.get() : constant->data_in_memory().get();
    if (!held && notes && notes->has(*constant)) held = constant->recipe.get();
    if (held) sizes[held] = constant->bytes();
  }
  return std::accumulate(sizes.begin(), sizes.end(), size_t{0}, [](size_t sum, const auto& entry) { return sum + entry.second; });
}

/// Folded constants are in memory until a kernel packs them, which no kernel will.
void let_go_of_folded(const graph::Graph& graph, ConstantNotes& notes) {
  for (size_t i = 0; i < graph.value_capacity(); ++i) {
    const graph::ConstantPtr constant = graph.constant(static_cast<graph::ValueId>(i));
    if (!constant || constant->resident || !constant->recipe || !constant->recipe->if_made()) continue;
    notes.waits(*constant);
    (void)constant->recipe->make();
  }
}

}  // namespace

Result<std::shared_ptr<Model>> Model::from_graph(graph::Graph graph, const kernels::Backend& backend, LoadOptions options) try {
  if (graph.outputs().empty()) return Error{Code::kUnsupported, "the model has no outputs"};
  auto state = std::make_unique<State>(std::move(graph), backend, std::move(options));
  graph::Graph& g = state->graph;
  SERIN_CHECK(graph::verify(g));
  SERIN_CHECK(graph::infer_shapes(g));
  SERIN_CHECK(optimize(g, state->folder, state->options));
  if (state->options.only_plans) let_go_of_folded(g, state->notes);
  state->batchable = graph::prove_batchable(g);
  for (const graph::ValueId id : g.inputs()) state->inputs.push_back(info_of(g.value(id), g.value(id).name));
  for (size_t i = 0; i < g.outputs().size(); ++i) {
    const graph::Value& value = g.value(g.outputs()[i]);
    state->outputs.push_back(info_of(value, i < g.output_names().size() ? g.output_names()[i] : value.name));
  }
  state->symbols = symbols_of(state->inputs);
  std::shared_ptr<Model> model(new Model(std::move(state)));
  Status planned = check_plannable(g);
  if (planned) planned = model->try_smallest();
  if (!planned) {
    // Sizes that disagree at load may agree in a request, where they are others.
    const bool may_run =
        planned.error().code == Code::kUnsupported || (planned.error().code == Code::kInvalidArgument && !model->symbols().empty());
    if (!may_run) return planned.error();
    SERIN_CHECK(model->interpret(planned.error()));
  }
  return model;
} catch (const graph::LostConstant& lost) {
  return lost.error();
}

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;

/// The model has no plan of its own; `why` says what was in the way.
Status Model::interpret(const Error& why) {
  graph::Graph graph = state_->graph;
  SERIN_CHECK(optimize_bodies(graph, state_->folder, state_->options));
  SERIN_CHECK(graph::infer_shapes(graph));
  SERIN_TRY(state_->block, Block::make(std::move(graph)));
  state_->why_interpreted = why.message;
  // The proof knows what only a run sizes: its rules follow no row into such a part. Sizes that disagree it does not see.
  if (why.code == Code::kInvalidArgument)
    state_->batchable = {.yes = false, .why_not = "not every size fits: " + why.message, .symbol = ""};
  return check_runnable(*state_->block, state_->plan_context());
}

/// Plans with every symbol at 1, or at the first size at which the shapes agree with each other: a network with four poolings has no batch of
/// images of one pixel. The plan is kept only where it is likely to be used, which is where the batch is all that varies; else nothing is packed
/// for it.
Status Model::try_smallest() {
  const bool kept = state_->symbols.size() <= 1;
  UnreadWeights unread;
  const Plan::Context context = kept ? state_->plan_context() : state_->plan_context(unread, /*trial=*/true);
  Status first;
  for (const int64_t size : {1, 2, 8, 32, 224}) {
    graph::Bindings bindings;
    for (const std::string& symbol : state_->symbols) bindings[symbol] = symbol == state_->batchable.symbol ? 1 : size;
    auto plan = Plan::make(state_->graph, bindings, context);
    if (plan) {
      const MutexLock lock(state_->mutex);
      if (kept) state_->cache.insert(bindings, std::move(*plan));
      return {};
    }
    if (size == 1) first = plan.error();
    if (plan.error().code != Code::kInvalidArgument || state_->symbols.empty()) break;
  }
  return first;
}

Status Model::check_bindings(const graph::Bindings& bindings) const {
  std::string known;
  for (const std::string& symbol : state_->symbols) known.append(known.empty() ? "" : ", ").append(symbol);
  for (const std::string& symbol : state_->symbols) {
    const auto bound = bindings.find(symbol);
    if (bound == bindings.end()) return Error{Code::kInvalidArgument, "dimension '" + symbol + "' has no size"};
    if (bound->second < 0) return Error{Code::kInvalidArgument, "dimension '" + symbol + "' cannot be " + std::to_string(bound->second)};
  }
  for (const auto& [symbol, size] : bindings) {
    if (std::find(state_->symbols.begin(), state_->symbols.end(), symbol) != state_->symbols.end()) continue;
    return Error{Code::kInvalidArgument, "the model has no dimension '" + symbol + "'; " +
                                             (known.empty() ? "all of its dimensions are fixed" : "it has: " + known)};
  }
  return {};
}

Result<std::shared_ptr<const Plan>> Model::plan(const graph::Bindings& bindings) {
  if (!planned()) return Error{Code::kUnsupported, "the model has no plan of its own: " + state_->why_interpreted};
  SERIN_CHECK(check_bindings(bindings));
  {
    const MutexLock lock(state_->mutex);
    if (auto plan = state_->cache.find(bindings)) return plan;
  }
  SERIN_TRY(auto made, Plan::make(state_->graph, bindings, state_->plan_context()));  // outside the lock: it may take a while
  const MutexLock lock(state_->mutex);
  return state_->cache.insert(bindings, std::move(made));
}

Result<std::unique_ptr<Executor>> Model::executor(const graph::Bindings& bindings, std::shared_ptr<DeviceArena> device_arena) {
  if (state_->options.only_plans) return Error{Code::kFailedPrecondition, "the model was loaded for its plans only"};
  SERIN_TRY(std::shared_ptr<const Plan> plan, this->plan(bindings));
  if (plan->device_bytes == 0) device_arena = nullptr;
  if (plan->device_bytes > 0) {
    const auto size = DeviceArena::Size::of(*plan);
    const bool held = device_arena && device_arena->holds(size);
    SERIN_TRY(const auto made, state_->make_device_arenas(size, held ? 0 : 1));
    if (!held) device_arena = made.front();
  }
  auto memory = std::make_unique<Executor::State>(*plan, state_->options.threads, std::move(device_arena));
  return std::unique_ptr<Executor>(new Executor(std::move(plan), std::move(memory)));
}

const graph::Graph& Model::graph() const { return state_->graph; }
std::span<const TensorInfo> Model::inputs() const { return state_->inputs; }
std::span<const TensorInfo> Model::outputs() const { return state_->outputs; }
const graph::Batchable& Model::batchable() const { return state_->batchable; }
std::vector<std::string> Model::symbols() const { return state_->symbols; }

size_t Model::weight_bytes() const {
  const WeightBytes bytes = weights();
  return bytes.constants + bytes.packed;
}

WeightBytes Model::weights() const {
  const ConstantNotes* const notes = state_->options.only_plans ? &state_->notes : nullptr;
  WeightBytes bytes{constant_bytes(state_->graph, notes), state_->weights.bytes()};
  if (notes) bytes.while_packing = bytes.constants + notes->most_while_packing(bytes.packed, state_->options.threads);
  return bytes;
}

Model::CacheCounters Model::plan_cache() const {
  const MutexLock lock(state_->mutex);
  return state_->cache.counters();
}

}  // namespace serin::engine

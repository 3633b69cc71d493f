// interpreter.cc: finds or makes the next stage, runs its plan, then its singles, until nothing is left.

#include "runtime/engine/interpret/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/engine/interpret/containers.h"
#include "runtime/engine/interpret/control_flow.h"
#include "runtime/engine/interpret/describe_stages.h"
#include "runtime/engine/interpret/strings.h"

namespace serin::engine {

namespace {

using graph::ConstantPtr;
using graph::kNone;

constexpr int kMaxDepth = 64;        // bodies within bodies
constexpr size_t kMostStages = 512;  // of one block, or twice its nodes: beyond, everything is forgotten before the next run
constexpr int64_t kSmall = static_cast<int64_t>(graph::kMaxShapeValues);

/// Of one stage. Enough for a carried tensor that grows turn by turn, where a stage is small: what is kept is bounded by nodes.
size_t most_successors(size_t nodes) { return std::clamp<size_t>(8192 / std::max<size_t>(nodes, 1), 16, 512); }

/// Gives every operand's elements to the rules of shape inference.
class AllContents final : public graph::ContentSource {
 public:
  explicit AllContents(const std::vector<Value>& values) : values_(values) {}
  ConstantPtr contents(graph::ValueId id) override { return values_[static_cast<size_t>(id)].tensor; }

 private:
  const std::vector<Value>& values_;
};

}  // namespace

Interpreter::Interpreter(std::shared_ptr<const Block> block, const Plan::Context& context)
    : Interpreter(std::move(block), context, std::make_shared<Workspace>(), 0) {
  if (context.threads > 1) workspace_->workers = std::make_unique<kernels::Workers>(context.threads);
}

Interpreter::Interpreter(std::shared_ptr<const Block> block, const Plan::Context& context, std::shared_ptr<Workspace> workspace, int depth)
    : block_(std::move(block)),
      workspace_(std::move(workspace)),
      depth_(depth),
      context_(*block_, context),
      values_(block_->graph.value_capacity()) {
  const auto inputs = block_->graph.inputs();
  start_.shaped.assign(inputs.begin(), inputs.end());
  start_.last = block_->order.empty();
}

Result<std::vector<Value>> Interpreter::run(std::span<const Value> inputs, const std::atomic<bool>* cancelled) {
  workspace_->cancelled = cancelled;
  return run_block({inputs.begin(), inputs.end()});
}

Result<std::vector<Value>> Interpreter::run_block(std::vector<Value> inputs) {
  const graph::Graph& graph = block_->graph;
  if (inputs.size() != graph.inputs().size())
    return Error{Code::kInvalidArgument, fmt::format("{} inputs are needed, {} are given", graph.inputs().size(), inputs.size())};
  if (stages_ > std::max(kMostStages, 2 * block_->order.size())) {
    start_.next.clear();
    stages_ = 0;
  }
  for (size_t i = 0; i < inputs.size(); ++i) values_[static_cast<size_t>(graph.inputs()[i])] = std::move(inputs[i]);
  auto results = run_stages();
  std::ranges::fill(values_, Value{});
  return results;
}

Result<std::vector<Value>> Interpreter::run_stages() {
  taken_.clear();
  Stage* stage = &start_;
  while (!stage->last) {
    SERIN_TRY(stage, next_stage(*stage));
    taken_.push_back(stage);
    SERIN_CHECK(run_stage(*stage));
  }
  std::vector<Value> results;
  for (const graph::ValueId id : block_->graph.outputs()) results.push_back(value_in_memory(id));
  return results;
}

Result<Stage*> Interpreter::next_stage(Stage& before) {
  if (Stage* known = before.find_next(values_)) return known;
  SERIN_TRY(auto made, make_stage(context_, before, values_));
  std::vector<Fact> facts;
  facts.reserve(before.shaped.size() + before.asked.size());
  for (const graph::ValueId id : before.shaped) facts.push_back(fact_of(values_[static_cast<size_t>(id)], false));
  for (const graph::ValueId id : before.asked) facts.push_back(fact_of(values_[static_cast<size_t>(id)], true));
  Stage* const stage = before.next.add({std::move(facts), std::move(made)}).stage.get();
  ++stages_;
  if (before.next.size() > most_successors(block_->order.size())) before.next.drop_oldest();
  return stage;
}

Status Interpreter::run_stage(Stage& stage) {
  if (stage.region) SERIN_CHECK(run_region(*stage.region));
  for (Single& single : stage.singles) {
    if (workspace_->cancelled && workspace_->cancelled->load(std::memory_order_relaxed))
      return Error{Code::kCancelled, "no client waits for the answer any more"};
    if (auto status = run_single(single); !status) return status.error().in(label(block_->graph.node(single.node)));
  }
  for (const graph::ValueId id : stage.dead) values_[static_cast<size_t>(id)] = Value{};
  return {};
}

Status Interpreter::run_region(Region& region) {
  if (workspace_->arena.size() < region.plan->arena_bytes + 1) workspace_->arena = AlignedBuffer(region.plan->arena_bytes + 1);
  if (!region.runner || region.arena != workspace_->arena.data()) {
    region.arena = workspace_->arena.data();
    region.runner = std::make_unique<Runner>(*region.plan, workspace_->arena.data(), workspace_->workers.get());
  }
  std::vector<TensorView> inputs, outputs;
  std::vector<FreshTensor> results;
  for (const graph::ValueId id : region.inputs) {
    graph::ConstantPtr& tensor = values_[static_cast<size_t>(id)].tensor;
    tensor = graph::in_memory(std::move(tensor));
    inputs.push_back(view_of(*tensor));
  }
  for (const TensorInfo& info : region.plan->outputs) {
    results.push_back(fresh_tensor(info.dtype, info.shape));
    outputs.push_back(results.back().view);
  }
  SERIN_CHECK(region.runner->run(inputs, outputs));
  for (size_t i = 0; i < results.size(); ++i) values_[static_cast<size_t>(region.outputs[i])] = Value::of(std::move(results[i].tensor));
  return {};
}

Value Interpreter::value(graph::ValueId id) const {
  if (id == kNone) return {};
  if (ConstantPtr constant = block_->graph.constant(id)) return Value::of(std::move(constant));
  return values_[static_cast<size_t>(id)];
}

/// What leaves the plans is read as it is; only control flow hands constants on to where kernels may have packed them.
Value Interpreter::value_in_memory(graph::ValueId id) const {
  Value found = value(id);
  found.tensor = graph::in_memory(std::move(found.tensor));
  return found;
}

Result<std::vector<ConstantPtr>> Interpreter::operands(const graph::Node& node) const {
  std::vector<ConstantPtr> tensors;
  for (const graph::ValueId id : node.inputs) {
    tensors.push_back(value(id).tensor);
    if (id != kNone && !tensors.back())
      return Error{Code::kInvalidArgument,
                   fmt::format("'{}' is {}, a tensor is needed", block_->graph.value(id).name, describe(value(id)))};
  }
  return tensors;
}

Status Interpreter::keep(const graph::Node& node, std::vector<ConstantPtr> results) {
  for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) {
    if (node.outputs[i] != kNone && results[i]) values_[static_cast<size_t>(node.outputs[i])] = Value::of(std::move(results[i]));
  }
  return {};
}

/// Interpreters of the bodies live as long as this one.
Result<std::vector<Value>> Interpreter::run_control_flow(graph::NodeId id, std::vector<Value> operands) {
  if (depth_ >= kMaxDepth) return Error{Code::kTooLarge, fmt::format("bodies are nested more than {} deep", kMaxDepth)};
  const graph::Node& node = block_->graph.node(id);
  const auto run_body = [this, id, &node](size_t which, std::vector<Value> inputs) {
    auto& bodies = bodies_[id];
    if (bodies.empty()) bodies.resize(node.bodies.size());
    if (!bodies[which]) bodies[which].reset(new Interpreter(block_->bodies.at(id)[which], context_.plan, workspace_, depth_ + 1));
    return bodies[which]->run_block(std::move(inputs));
  };
  return ControlFlow(node, run_body, context_.plan.max_arena_bytes, workspace_->cancelled).run(std::move(operands));
}

Status Interpreter::run_single(Single& single) {
  const graph::Node& node = block_->graph.node(single.node);
  if (single.kind == Single::Kind::kValues) {
    std::vector<Value> given;
    given.reserve(node.inputs.size());
    const bool flow = !node.bodies.empty();
    for (const graph::ValueId id : node.inputs) given.push_back(flow ? value(id) : value_in_memory(id));
    SERIN_TRY(auto results, flow ? run_control_flow(single.node, std::move(given))
                                 : run_container(node, std::move(given), context_.plan.max_arena_bytes));
    for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) {
      if (node.outputs[i] != kNone) values_[static_cast<size_t>(node.outputs[i])] = std::move(results[i]);
    }
    return {};
  }
  SERIN_TRY(const std::vector<ConstantPtr> tensors, operands(node));
  if (single.kind == Single::Kind::kKernel) {
    SERIN_TRY(auto results, single.solo->run(tensors, workspace_->workers.get()));
    return keep(node, std::move(results));
  }
  if (single.kind == Single::Kind::kStrings && moves_strings(node.op)) {
    SERIN_TRY(auto results, move_strings(node, tensors, context_.plan));
    return keep(node, std::move(results));
  }
  SERIN_TRY(auto results, run_sized_by_contents(single.node));
  return keep(node, std::move(results));
}

/// Inference and lowering see the elements of the operands as constants.
Result<std::vector<ConstantPtr>> Interpreter::run_sized_by_contents(graph::NodeId id) {
  graph::Graph& work = context_.work;
  const graph::Node& node = work.node(id);
  std::vector<graph::ValueId> lent;
  for (const graph::ValueId input : node.inputs) {
    if (input == kNone || work.constant(input)) continue;
    const ConstantPtr& tensor = values_[static_cast<size_t>(input)].tensor;
    work.value(input).type = graph::Type::tensor(tensor->dtype, graph::dims_of(tensor->shape));
    context_.inference.forget(input);
    if (tensor->elements() > kSmall || tensor->dtype == DType::kString) continue;
    work.value(input).constant = tensor;
    lent.push_back(input);
  }
  AllContents contents(values_);
  context_.inference.set_source(&contents);
  const auto compute = [&]() -> Result<std::vector<ConstantPtr>> {
    SERIN_CHECK(context_.inference.infer(id));
    if (has_no_kernel(node.op)) return context_.plan.folder.evaluate(work, id, context_.plan.max_arena_bytes);
    SERIN_TRY(const Solo solo,
              Solo::make(work, node, {context_.plan.backend, context_.plan.weights, context_.plan.threads, context_.plan.max_arena_bytes}));
    SERIN_TRY(const std::vector<ConstantPtr> tensors, operands(block_->graph.node(id)));
    return solo.run(tensors, workspace_->workers.get());
  };
  auto results = compute();
  context_.inference.set_source(nullptr);
  for (const graph::ValueId input : lent) work.value(input).constant = nullptr;
  return results;
}

std::string Interpreter::describe_last_run() const {
  const std::string indent(static_cast<size_t>(depth_) * 4, ' ');
  std::string text;
  for (size_t i = 0; i < taken_.size(); ++i) {
    text += indent + "stage " + std::to_string(i + 1) + "\n" + describe(*taken_[i], block_->graph, indent);
    for (const Single& single : taken_[i]->singles) {
      const auto bodies = bodies_.find(single.node);
      if (bodies == bodies_.end()) continue;
      for (const auto& body : bodies->second) {
        if (body) text += body->describe_last_run();
      }
    }
  }
  return text;
}

}  // namespace serin::engine

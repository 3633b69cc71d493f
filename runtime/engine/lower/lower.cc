// lower.cc: lowers a bound graph to a Program, node by node in topological order.
//
//   known operands      computed here and now (Folder): shape arithmetic, masks, ConstantOfShape
//   If                  a step with both bodies lowered; where the condition is known, that body only
//   everything else     the function of its row in lowering_table.cc
//
// Refusals are collected, so that a user learns of every node that cannot run in one go. Nodes that read a refused result are left out
// silently.

#include <algorithm>
#include <utility>

#include "runtime/engine/lower/attention_views.h"
#include "runtime/engine/lower/fold.h"
#include "runtime/engine/lower/lowering.h"
#include "runtime/engine/lower/lowering_table.h"

namespace serin::engine {

namespace {

class GraphLowering {
 public:
  GraphLowering(graph::Graph graph, const Folder& folder)
      : graph_(std::move(graph)), folder_(folder), bounds_(graph_), tensors_(graph_.value_capacity(), kNoTensor) {}

  Result<Program> run() {
    for (const graph::ValueId id : graph_.inputs()) {
      SERIN_CHECK(define(id));
      program_.inputs.push_back(tensors_[static_cast<size_t>(id)]);
    }
    SERIN_TRY(const auto order, graph_.topological_order());
    for (const graph::NodeId id : order) lower_node(id);
    if (!refusals_.empty()) return refused();
    SERIN_CHECK(define_outputs());
    view_attention_operands(program_);
    program_.symbols = bounds_.take_symbols();
    return std::move(program_);
  }

 private:
  Status define(graph::ValueId id) {
    if (id == graph::kNone || tensors_[static_cast<size_t>(id)] != kNoTensor) return {};
    SERIN_TRY(Tensor tensor, tensor_of(graph_, id, bounds_));
    tensors_[static_cast<size_t>(id)] = static_cast<TensorId>(program_.tensors.size());
    program_.tensors.push_back(std::move(tensor));
    return {};
  }

  void lower_node(graph::NodeId id) {
    const graph::Node& node = graph_.node(id);
    if (reads_refused(node)) return;
    const Status status = fold_or_lower(id);
    if (status) return;
    const std::string label = "'" + node.name + "' (" + std::string(graph::op_name(node.op)) + ")";
    refusals_.push_back(label + ": " + status.error().message);
    if (code_ == Code::kUnsupported) code_ = status.error().code;
    for (const graph::ValueId output : node.outputs) refused_.push_back(output);
  }

  bool reads_refused(const graph::Node& node) {
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), [&](graph::ValueId input) {
      return input != graph::kNone && std::find(refused_.begin(), refused_.end(), input) != refused_.end();
    });
    if (reads) refused_.insert(refused_.end(), node.outputs.begin(), node.outputs.end());
    return reads;
  }

  /// Whether the results can be had now. Shape and Size need no more than the shape of their operand.
  bool known(const graph::Node& node) const {
    if (node.op == graph::Op::kShape || node.op == graph::Op::kSize) return true;
    if (node.op == graph::Op::kIf || node.op == graph::Op::kLoop || node.op == graph::Op::kNonZero) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](graph::ValueId input) { return input == graph::kNone || graph_.constant(input); });
  }

  Status fold_or_lower(graph::NodeId id) {
    const graph::Node& node = graph_.node(id);
    if (known(node)) {
      auto results = folder_.evaluate(graph_, id);
      if (results) return keep(node, *results);
      const bool may_still_run = lower_fn(node.op) && results.error().code != Code::kInvalidArgument;
      if (!may_still_run) return results.error();
    }
    for (const graph::ValueId input : node.inputs) SERIN_CHECK(define(input));
    for (const graph::ValueId output : node.outputs) SERIN_CHECK(define(output));
    if (node.op == graph::Op::kIf) return lower_if(node);
    const LowerFn lower = lower_fn(node.op);
    if (!lower) return no_kernel(node);
    Lowering at(program_, node, tensors_);
    return lower(at);
  }

  static Error no_kernel(const graph::Node& node) {
    if (node.op == graph::Op::kLoop) return Lowering::refuse("a plan cannot contain a loop");
    return Lowering::refuse("its operands are not known at load, and it cannot be computed during a run");
  }

  Status keep(const graph::Node& node, const std::vector<graph::ConstantPtr>& results) {
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.outputs[i] != graph::kNone) graph_.value(node.outputs[i]).constant = results[i];
    }
    return {};
  }

  /// A body sees the outer operands as its inputs, with the types and values they have here.
  Result<Program> lower_body(const graph::Node& node, size_t which) {
    graph::Graph body = *node.bodies[which];
    if (body.inputs().size() + 1 != node.inputs.size()) return Error{Code::kCorrupt, "a body does not read the operands of the node"};
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      const graph::Value& outer = graph_.value(node.inputs[i + 1]);
      graph::Value& inner = body.value(body.inputs()[i]);
      inner.type = outer.type;
      inner.constant = outer.constant;
      if (outer.constant) inner.type = graph::Type::tensor(outer.constant->dtype, graph::dims_of(outer.constant->shape));
    }
    if (auto inferred = graph::infer_shapes(body); !inferred)  // such a branch may never be taken: only a run can tell
      return Lowering::refuse("a branch contradicts itself: " + inferred.error().message);
    SERIN_TRY(Program program, lower(body, folder_));
    if (program.outputs.size() != node.outputs.size()) return Error{Code::kCorrupt, "a body does not return the results of the node"};
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      if (node.outputs[i] == graph::kNone) return Lowering::refuse("results that nothing reads are not supported");
      const Tensor& inner = program.tensor(program.outputs[i]);
      const Tensor& outer = program_.tensor(tensors_[static_cast<size_t>(node.outputs[i])]);
      if (inner.storage != Storage::kFixed || outer.storage != Storage::kFixed || inner.shape != outer.shape ||
          inner.dtype != outer.dtype) {
        return Lowering::refuse("result " + std::to_string(i) + " has another shape or type in each body");
      }
    }
    return program;
  }

  Status lower_if(const graph::Node& node) {
    Step step{.node = node.name, .op = node.op};
    for (const graph::ValueId input : node.inputs) step.inputs.push_back(tensors_[static_cast<size_t>(input)]);
    for (const graph::ValueId output : node.outputs) step.outputs.push_back(tensors_[static_cast<size_t>(output)]);
    const graph::ConstantPtr condition = graph_.constant(node.inputs[0]);
    for (size_t which = 0; which < 2; ++which) {
      if (condition && condition->span<bool>()[0] != (which == 0)) {
        step.bodies.push_back(nullptr);
        continue;
      }
      SERIN_TRY(Program body, lower_body(node, which));
      step.bodies.push_back(std::make_shared<Program>(std::move(body)));
    }
    program_.steps.push_back(std::move(step));
    return {};
  }

  /// Each output gets a root tensor of its own, which the plan lays into the caller's memory. What already belongs to somebody else (an
  /// input, a constant, another output) or is part of something larger is copied.
  Status define_outputs() {
    std::vector<TensorId> taken = program_.inputs;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const graph::ValueId value = graph_.outputs()[i];
      SERIN_CHECK(define(value));
      TensorId id = tensors_[static_cast<size_t>(value)];
      const auto [root, offset] = program_.root(id);
      const bool own = std::find(taken.begin(), taken.end(), root) == taken.end() && !program_.tensor(root).constant && offset == 0 &&
                       program_.tensor(root).bytes() == program_.tensor(id).bytes();
      if (!own) id = copy(id);
      taken.push_back(program_.root(id).first);
      program_.outputs.push_back(id);
    }
    return {};
  }

  TensorId copy(TensorId source) {
    Tensor tensor = program_.tensor(source);
    tensor.base = kNoTensor;
    tensor.offset = 0;
    tensor.constant = nullptr;
    const auto id = static_cast<TensorId>(program_.tensors.size());
    program_.tensors.push_back(std::move(tensor));
    program_.steps.push_back({.node = program_.tensor(source).name,
                              .op = graph::Op::kIdentity,
                              .kernel = kernels::Unary{},
                              .inputs = {source},
                              .outputs = {id}});
    return id;
  }

  Error refused() const {
    constexpr size_t kNamed = 20;
    std::string message = std::to_string(refusals_.size()) + (refusals_.size() == 1 ? " node" : " nodes") + " cannot be run: ";
    for (size_t i = 0; i < std::min(refusals_.size(), kNamed); ++i) message.append(i ? "; " : "").append(refusals_[i]);
    if (refusals_.size() > kNamed) message.append("; and ").append(std::to_string(refusals_.size() - kNamed)).append(" more");
    return Error{code_, std::move(message)};
  }

  graph::Graph graph_;
  const Folder& folder_;
  Bounds bounds_;
  std::vector<TensorId> tensors_;  // by value
  Program program_;
  std::vector<std::string> refusals_;
  std::vector<graph::ValueId> refused_;
  Code code_ = Code::kUnsupported;
};

}  // namespace

Result<Program> lower(const graph::Graph& graph, const Folder& folder) { return GraphLowering(graph, folder).run(); }

}  // namespace serin::engine

// graph_import.h: converts one GraphProto to one Graph.
//
// The bodies of If and Loop are graphs within it; calls of functions are scopes within it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/formats/onnx/proto.h"
#include "runtime/formats/onnx/scope.h"
#include "runtime/formats/onnx/tensor.h"
#include "runtime/formats/replaceable_inputs.h"
#include "runtime/graph/graph.h"

namespace serin::formats::onnx {

/// Domain, name and overload of a function.
using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;

/// State that all graphs of a model share.
struct ModelImport {
  Opsets opsets;
  size_t node_limit = 0;
  int nesting_limit = 0;  ///< limit for bodies and calls within each other
  TensorReader tensors;
  const ReplaceableInputs& replaceable;                        ///< inputs of the model itself, not of its bodies
  std::map<FunctionKey, const FunctionProto*> functions = {};  ///< functions that the model defines
  size_t nodes = 0;
  int nesting = 0;
  std::vector<std::string> unsupported = {};                  ///< "'attn' (com.acme.Frobnicate)": all of them are reported at once
  std::unordered_map<std::string, std::string> symbols = {};  ///< dim_param -> name in the graph
  std::set<std::string, std::less<>> symbols_taken = {};
};

/// While it lives, it counts one level of nested bodies and calls.
class Nested {
 public:
  static Result<Nested> enter(ModelImport& model);
  Nested(Nested&& other) noexcept : model_(std::exchange(other.model_, nullptr)) {}
  Nested& operator=(Nested&&) = delete;
  ~Nested() {
    if (model_) --model_->nesting;
  }

 private:
  explicit Nested(ModelImport& model) : model_(&model) { ++model.nesting; }
  ModelImport* model_;
};

/// A call of a function: its definition, its node and its scope.
struct FunctionCall {
  const FunctionProto& function;
  const NodeProto& node;
  const FunctionCall* outer;  ///< the call that this one is part of
  std::string prefix;         ///< prefix of the names within: "<name of the node>/"
  Opsets opsets;
};

class GraphImport final : public Scope {
 public:
  GraphImport(ModelImport& model, GraphImport* outer = nullptr)
      : model_(model), outer_(outer), call_(outer ? outer->call_ : nullptr), prefix_(outer ? outer->prefix_ : ""), graph_(own_graph_) {}

  /// For bodies, the inputs are those of `proto`, then the captures.
  Result<graph::Graph> run(const GraphProto& proto, const std::vector<Capture>& captures = {});

  const Opsets& opsets() const override { return call_ ? call_->opsets : model_.opsets; }
  graph::Graph& graph() override { return graph_; }
  TensorReader& tensors() override { return model_.tensors; }
  graph::ValueId find(std::string_view name) override;
  void define(std::string_view name, graph::ValueId value) override;
  std::vector<Capture> captures(const std::vector<const GraphProto*>& bodies) override;
  Result<graph::Graph> body(const GraphProto& proto, const std::vector<Capture>& captures) override;
  Result<std::vector<graph::ValueId>> inlined(const GraphProto& body, const std::vector<graph::ValueId>& inputs,
                                              const std::string& name) override;

 private:
  /// A separate scope in the graph of its caller (function_import.cc).
  GraphImport(GraphImport& caller, const FunctionCall& call)
      : model_(caller.model_), outer_(nullptr), call_(&call), prefix_(call.prefix), graph_(caller.graph_) {}
  /// A scope within that of `outer`, in its graph.
  GraphImport(GraphImport& outer, std::string prefix)
      : model_(outer.model_), outer_(&outer), call_(outer.call_), prefix_(std::move(prefix)), graph_(outer.graph_) {}
  Status expand(const FunctionProto& function, const NodeProto& node, const std::string& name);
  Status run_call(GraphImport& caller);
  graph::ValueId own_value(graph::ValueId value, std::string_view output, size_t i);
  Result<NodeProto> with_attributes_of_call(const NodeProto& proto) const;

  Status add_initializers(const GraphProto& proto);
  bool is_model() const { return !outer_ && !call_; }  ///< not a body or function of the model
  Status check_replaceable(const GraphProto& proto) const;
  Status check_standard(std::string_view name, const graph::Type& declared) const;
  Status add_initializer(std::string_view name, Result<graph::ConstantPtr> constant);
  Status add_inputs(const GraphProto& proto);
  Status add_nodes(const std::vector<NodeProto>& nodes);
  Status add_node(const NodeProto& proto);
  Status import_node(const NodeProto& proto, const std::string& name);
  Status lower_node(const NodeProto& proto, const std::string& name);
  Status set_outputs(const GraphProto& proto);
  bool is_absent(std::string_view name) const;
  Status check_operands(const NodeProto& proto, const std::string& name);
  Result<graph::Type> type_from(const TypeProto& proto, std::string_view name);
  graph::Dim dim_from(const DimensionProto& proto, std::string_view name, size_t axis);
  std::string unique_node_name(const NodeProto& proto);
  void refuse_node(const NodeProto& proto, const std::string& name, std::string_view why);

  ModelImport& model_;
  GraphImport* outer_;
  const FunctionCall* call_;  ///< null outside functions
  std::string prefix_;        ///< prefix of names made here
  graph::Graph own_graph_;
  graph::Graph& graph_;  ///< its own, or that of the caller
  std::unordered_map<std::string_view, graph::ValueId> values_;
  std::unordered_map<std::string_view, std::string_view> made_by_;  ///< output name -> op_type of the node of the file that computes it
  std::set<std::string, std::less<>> node_names_;
  std::optional<Error> error_;  ///< set if one name has two definitions
};

}  // namespace serin::formats::onnx

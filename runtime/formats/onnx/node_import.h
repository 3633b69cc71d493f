// node_import.h: the interface of a function that imports one ONNX operator.
//
//   void import_flatten(NodeImport& node, Op op) { node.emit(op, {node.input(0)}, {{"axis", node.integer("axis", 1)}}); }
//
// The first error is kept, so that functions read what they need without checks in between. An attribute that no function reads is an error
// too, because an ignored attribute would give wrong results.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/formats/onnx/proto.h"
#include "runtime/formats/onnx/scope.h"
#include "runtime/graph/graph.h"

namespace serin::formats::onnx {

class NodeImport {
 public:
  NodeImport(Scope& scope, const NodeProto& proto, std::string name, std::string_view copied = {});

  /// Version of the default operator set that the model imports.
  int64_t opset() const;
  int64_t domain_version() const;  ///< version of the operator set that this node belongs to

  // Operands.
  size_t input_count() const { return inputs_.size(); }
  graph::ValueId input(size_t i) const { return i < inputs_.size() ? inputs_[i] : graph::kNone; }  ///< kNone if absent
  const std::vector<graph::ValueId>& inputs() const { return inputs_; }
  void set_input(size_t i, graph::ValueId value);
  graph::ConstantPtr constant(size_t i) const;    ///< null if the operand is absent or computed
  std::optional<size_t> rank(size_t i) const;     ///< rank of an operand, if the file declares it
  std::optional<size_t> inferred_rank(size_t i);  ///< or if it follows from the nodes before this one, which are all examined
  size_t output_count() const { return proto_.outputs.size(); }
  bool wants_output(size_t i) const { return i < proto_.outputs.size() && !proto_.outputs[i].empty(); }

  // Attributes. An attribute of another type than requested is an error.
  bool has(std::string_view key);
  int64_t integer(std::string_view key, int64_t fallback);
  int64_t required_integer(std::string_view key);
  bool flag(std::string_view key, bool fallback) { return integer(key, fallback ? 1 : 0) != 0; }
  double number(std::string_view key, double fallback);
  std::string text(std::string_view key, std::string_view fallback);
  std::optional<std::vector<int64_t>> integers(std::string_view key);
  graph::ConstantPtr tensor(std::string_view key);
  graph::ConstantPtr sparse_tensor(std::string_view key);  ///< converted to a dense one
  const GraphProto* body(std::string_view key);
  const AttributeProto* attribute(std::string_view key);  ///< of any type
  std::optional<std::vector<double>> numbers(std::string_view key);
  std::optional<std::vector<std::string>> texts(std::string_view key);
  /// The attributes in the operator's row, unchanged; absent ones stay absent.
  graph::Attributes copied_attributes();
  void ignore(std::string_view key) { seen_.insert(key); }  ///< marks an attribute that does not change the result here

  // Results.
  /// Emits the node itself: its outputs are those of the file.
  graph::NodeId emit(graph::Op op, std::vector<graph::ValueId> inputs, graph::Attributes attributes = {});
  /// Emits a step before it, named "<node>/<step>".
  graph::ValueId step(graph::Op op, std::string_view step, std::vector<graph::ValueId> inputs, graph::Attributes attributes = {});
  /// A constant that a step reads; it is named like a step.
  graph::ValueId step_constant(std::string_view step, graph::ConstantPtr constant);
  /// Output i is known at load.
  void emit_constant(size_t i, graph::ConstantPtr constant);

  // Errors.
  void corrupt(std::string_view what) { fail(Code::kCorrupt, what); }
  void unsupported(std::string_view what) { fail(Code::kUnsupported, what); }
  void fail(Code code, std::string_view what);
  const std::optional<Error>& error() const { return error_; }
  /// Returns the first attribute that was not read.
  std::optional<std::string_view> unread_attribute() const;

  Scope& scope() { return scope_; }
  graph::Graph& graph() { return scope_.graph(); }
  const NodeProto& proto() const { return proto_; }
  const std::string& name() const { return name_; }

 private:
  const AttributeProto* find(std::string_view key, AttributeProto::Type type);
  graph::ConstantPtr constant_or_fail(std::string_view key, const Result<graph::ConstantPtr>& constant);

  Scope& scope_;
  const NodeProto& proto_;
  std::string_view copied_;
  std::string name_;
  std::vector<graph::ValueId> inputs_;
  std::set<std::string_view> seen_;
  std::optional<Error> error_;
};

}  // namespace serin::formats::onnx

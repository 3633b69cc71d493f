// graph.h: a model as values and the nodes that compute them, independent of file formats and backends.
//
//   Graph g;
//   ValueId x = g.add_input("x", Type::tensor(DType::kFloat32, {Dim::symbol("batch"), 64}));
//   ValueId w = g.add_constant("w", constant);
//   NodeId  m = g.add_node(Op::kMatMul, "fc1", {x, w});            // one output, named after the node
//   g.set_outputs({g.output(m)});
//   SERIN_CHECK(verify(g));  SERIN_CHECK(infer_shapes(g));  std::string text = print(g);
//
// Single assignment: every value has one producer (a node, the caller, or a constant). Nodes and values are indices into vectors that the
// graph owns. Removing a node leaves a hole, which `compact()` closes. Bodies of If and Loop are closed graphs: values from outside are
// inputs of the node. Not thread-safe; a finished graph is shared read-only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/result.h"
#include "runtime/graph/constant.h"
#include "runtime/graph/dim.h"
#include "runtime/graph/op.h"

namespace serin::graph {

using NodeId = int32_t;
using ValueId = int32_t;
inline constexpr int32_t kNone = -1;  ///< an absent optional input; a value without a producing node

/// Finds a dtype by its name in the text form ("f32"); nothing if the name is unknown.
std::optional<DType> find_dtype(std::string_view name);

/// The kind of a value. Sequences and optionals have their element type in dtype/shape; deeper nesting is not supported.
enum class ValueKind : uint8_t { kTensor, kSequence, kOptional, kOptionalSequence };

struct Type {
  ValueKind kind = ValueKind::kTensor;
  DType dtype = DType::kUndefined;
  std::optional<Dims> shape;  ///< nothing: even the rank is unknown

  static Type tensor(DType dtype, Dims shape) { return Type{ValueKind::kTensor, dtype, std::move(shape)}; }
};

using Attribute =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>, ConstantPtr>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

class Graph;

struct Node {
  Op op = Op::kIdentity;
  std::string name;              ///< name in the file, or provenance after fusion: "conv1+bn1+relu1"
  std::vector<ValueId> inputs;   ///< kNone if an optional input is absent
  std::vector<ValueId> outputs;  ///< kNone if an optional output is not used
  Attributes attributes;
  std::vector<std::shared_ptr<const Graph>> bodies;  ///< If: then, else. Loop: body
  bool removed = false;

  // Attributes by name; the default if absent or of another kind.
  int64_t integer(std::string_view key, int64_t fallback) const;
  double number(std::string_view key, double fallback) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  ConstantPtr constant(std::string_view key) const;
};

struct Value {
  std::string name;
  Type type;
  NodeId producer = kNone;
  ConstantPtr constant;  ///< set if the value is known at load
};

class Graph {
 public:
  // Building.
  ValueId add_input(std::string name, Type type);
  ValueId add_constant(std::string name, ConstantPtr constant);
  /// Adds a node with `outputs` new values of unknown type, named "<name>" (or "<name>:i" if there are several).
  NodeId add_node(Op op, std::string name, std::vector<ValueId> inputs, Attributes attributes = {}, size_t outputs = 1);
  ValueId add_value(std::string name, Type type);           ///< adds a value without a producer; connect() sets its producer
  void connect(NodeId node, size_t output, ValueId value);  ///< makes `node` the producer of an existing value
  void set_outputs(std::vector<ValueId> outputs);
  void set_output_names(std::vector<std::string> names) { output_names_ = std::move(names); }

  // Reading.
  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const ValueId> outputs() const { return outputs_; }
  /// Names of the outputs in the file; they stay when a rewrite replaces the value behind an output.
  std::span<const std::string> output_names() const { return output_names_; }
  size_t node_capacity() const { return nodes_.size(); }  ///< ids are below this; skip removed ones
  size_t value_capacity() const { return values_.size(); }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  /// Callers may change attributes, name and bodies. They change inputs and outputs only through set_input and connect, which track the
  /// readers of values.
  Node& node(NodeId id) { return nodes_[static_cast<size_t>(id)]; }
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  Value& value(ValueId id) { return values_[static_cast<size_t>(id)]; }
  NodeId producer(ValueId id) const { return id == kNone ? kNone : value(id).producer; }
  ValueId input(NodeId id, size_t i) const { return i < node(id).inputs.size() ? node(id).inputs[i] : kNone; }
  ValueId output(NodeId id, size_t i = 0) const { return node(id).outputs[i]; }
  bool is(NodeId id, Op op) const { return id != kNone && !node(id).removed && node(id).op == op; }
  ConstantPtr constant(ValueId id) const { return id == kNone ? nullptr : value(id).constant; }
  std::vector<NodeId> nodes() const;  ///< live nodes, in id order
  std::vector<NodeId> nodes(Op op) const;
  std::vector<NodeId> readers(ValueId id) const;  ///< live nodes that read it, each once
  size_t reader_count(ValueId id) const;          ///< reads by nodes plus uses as a graph output
  bool is_output(ValueId id) const;
  /// Live nodes, producers before readers. kCorrupt, naming a node, if there is a cycle.
  Result<std::vector<NodeId>> topological_order() const;

  // Rewriting. Passes do this through Patch (patch.h).
  void replace_uses(ValueId from, ValueId to);  ///< in nodes and among the outputs
  void remove(NodeId id);
  void set_input(NodeId id, size_t i, ValueId value);
  void resize_inputs(NodeId id, size_t count);  ///< removes operands at the end, or adds absent ones
  void compact();                               ///< removes removed nodes and unreferenced values; ids change

  std::string name;  ///< name of the model in the file
  /// Of a file with several graphs for clients (a SavedModel): the name of this one, what it says that it is for, and the other names.
  struct Signature {
    std::string name, method;
    std::vector<std::string> others;
  } signature;
  /// Default values of inputs that may be omitted in a run.
  std::map<std::string, ConstantPtr, std::less<>> standard_inputs;
  /// Symbols that depend on the data ("?nonzero"), with their upper bounds if known. infer_shapes fills it.
  std::map<std::string, Dim, std::less<>> data_dims;

 private:
  void add_reader(ValueId value, NodeId reader);
  void drop_reader(ValueId value, NodeId reader);

  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<std::vector<NodeId>> readers_;  ///< by value; a node that reads it twice is listed twice
  std::vector<uint32_t> output_uses_;         ///< by value: number of times it is an output of the graph
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> output_names_;
};

/// Checks single definition, valid ids, no cycles, and operand counts within the operator's schema, also in bodies. The error names the
/// node.
Status verify(const Graph& graph);
/// The same for one node: its operands and bodies, without the graph around it.
Status verify_node(const Graph& graph, NodeId id);

/// Infers the types of all values from those of the inputs, and folds what shapes need (Shape, Gather, Concat ... over small integers). It
/// replaces types that the importer declared for intermediate values. No value may have more than kMaxElements elements. kInvalidArgument,
/// naming node and operator, if shapes contradict each other: "node 'Conv_4' (Conv): weight has 16 channels, input has 8".
Status infer_shapes(Graph& graph);
inline constexpr int64_t kMaxElements = int64_t{1} << 34;  ///< 64 GiB of f32

/// Returns the same model with input dimensions bound to numbers (all constants shared), with shapes inferred again and folded.
Result<Graph> bind(const Graph& graph, const Bindings& bindings);

/// Prints the text form that tests and `serin inspect` use (README.md shows it); parse(print(g)) has the same structure.
///
/// Constants print as name[shape] and parse as random data in -1..1 that depends only on name, shape and seed. If the name ends in "var" (a
/// variance), the data is in 0.5..1.5. Small integers and single numbers print with their values.
struct PrintOptions {
  bool types = false;  ///< print the types of the results, as comments
  bool names = false;  ///< print names of nodes ("conv1+bn1+relu1") that differ from the name of the result, as comments
};
std::string print(const Graph& graph, const PrintOptions& options = {});
std::string print(const Type& type);  ///< "f32[n,3,8,8]"; "f32[...]" if even the rank is unknown
Result<Graph> parse(std::string_view text, uint64_t seed = 1);

/// Whether rows along axis 0 of every input and output are independent of each other; if not, the reason.
struct Batchable {
  bool yes = false;
  std::string why_not;  ///< "output 'y' has no batch axis", "node 'r' (ReduceMean) reduces the batch axis"
  std::string symbol;   ///< the symbolic dimension that is the batch
};
Batchable prove_batchable(const Graph& graph);

}  // namespace serin::graph

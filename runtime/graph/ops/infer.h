// infer.h: the interface of the shape rule of an operator. Each operator has one rule, in the file of its family; table.cc lists them all.
//
//   Status infer_flatten(Context& c) {
//     const Dims* x = c.dims(0);
//     if (!x) return c.set(0, c.dtype(0), std::nullopt);              // rank unknown: nothing is known about the shape
//     SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", 1), x->size() + 1));
//     return c.set(0, c.dtype(0), Dims{product(*x, 0, axis), product(*x, axis, x->size())});
//   }
//
// Rules check everything: attributes and constants come from a file. They refuse with c.fail(), which names the node and the operator.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/graph/graph.h"

namespace serin::graph {

/// The elements of small integer values, by ValueId, if known before the model runs. Reshape and similar operators need them.
using ShapeValues = std::vector<std::optional<Dims>>;
inline constexpr size_t kMaxShapeValues = 1024;
/// Makes a tensor of that type; null if an element is not a number, or the type is not i64, i32 or bool.
ConstantPtr constant_of(const Type& type, const Dims& elements);

/// Like infer_shapes, and also returns the elements. After `bind` every Dim of them is a number.
Result<ShapeValues> infer_shapes_and_values(Graph& graph);

/// Supplies contents that inference cannot know, such as those of a current run.
class ContentSource {
 public:
  virtual ~ContentSource() = default;
  /// Called when a rule needs the elements of a value that is not known. Null: they are unknown here too.
  virtual ConstantPtr contents(ValueId id) = 0;
};

/// Infers shapes node by node, for callers that learn values in between, or that are still adding nodes. A node is inferred after the
/// nodes that it reads from.
class Inference {
 public:
  explicit Inference(Graph& graph);
  Status infer(NodeId id);
  void set_source(ContentSource* source) { source_ = source; }
  void forget(ValueId id) { values_[static_cast<size_t>(id)].reset(); }  ///< forgets the elements of a value that has changed
  void forget_unknown();                                                 ///< forgets the names of sizes that depend on the data
  /// The elements of a small integer value; null if they are unknown.
  const Dims* elements(ValueId id);
  const ShapeValues& values() const { return values_; }
  ShapeValues take_values() { return std::move(values_); }

 private:
  void learn_new_values();  ///< elements of the constants that were added since

  Graph& graph_;
  ContentSource* source_ = nullptr;
  ShapeValues values_;
  std::set<std::string> unknown_names_;
};

/// One node while its results are inferred.
class Context {
 public:
  Context(Graph& graph, NodeId id, ShapeValues& values, std::set<std::string>& unknown_names, ContentSource* source)
      : graph_(graph), id_(id), values_(values), unknown_names_(unknown_names), source_(source) {}

  Graph& graph() { return graph_; }
  NodeId id() const { return id_; }
  const Node& node() const { return graph_.node(id_); }
  size_t operands() const { return node().inputs.size(); }
  size_t results() const { return node().outputs.size(); }
  bool has(size_t operand) const { return graph_.input(id_, operand) != kNone; }
  DType dtype(size_t operand) const { return has(operand) ? graph_.value(node().inputs[operand]).type.dtype : DType::kUndefined; }
  /// Null: absent, or even the rank is unknown.
  const Dims* dims(size_t operand) const;
  /// The elements of a small integer operand, row-major; null if unknown.
  const Dims* elements(size_t operand) const;
  ConstantPtr constant(size_t operand) const;
  Type type(size_t operand) const { return has(operand) ? graph_.value(node().inputs[operand]).type : Type{}; }

  /// Returns an integer list from an attribute, or else an operand. Nothing: absent or unknown (see `absent`).
  std::optional<Dims> list(std::string_view attribute, size_t operand) const;
  bool absent(std::string_view attribute, size_t operand) const { return !node().attributes.contains(attribute) && !has(operand); }
  /// The same if every element is a number.
  std::optional<std::vector<int64_t>> known_list(std::string_view attribute, size_t operand) const;

  /// A negative axis counts from the end; an axis outside [-rank, rank) is refused.
  Result<int64_t> axis(int64_t axis, size_t rank) const;
  Result<std::vector<int64_t>> axes(std::vector<int64_t> axes, size_t rank) const;  ///< sorted, each once
  Status same_dtype(size_t a, size_t b) const;
  Status index_dtype(size_t operand) const;  ///< i32 or i64
  /// The dtype that attribute `key` names ("f32"). If it is absent: `fallback`, or an error without one.
  Result<DType> dtype_attribute(std::string_view key, std::optional<DType> fallback = std::nullopt) const;

  /// Sets the type of a result; refuses negative dimensions and more than kMaxElements elements.
  Status set(size_t result, DType dtype, std::optional<Dims> dims);
  Status set(size_t result, Type type);  ///< the same for results that may not be tensors
  void set_elements(size_t result, Dims elements);
  /// A new dimension that depends on the data, at most `bound`.
  Dim unknown_dim(const std::optional<Dim>& bound = std::nullopt);
  Dims unknown_dims(size_t rank);

  template <class... Args>
  Error fail(fmt::format_string<Args...> format, Args&&... args) const {
    return {Code::kInvalidArgument,
            fmt::format("node '{}' ({}): {}", node().name, op_name(node().op), fmt::format(format, std::forward<Args>(args)...))};
  }

 private:
  Graph& graph_;
  NodeId id_;
  ShapeValues& values_;
  std::set<std::string>& unknown_names_;
  ContentSource* source_;
};

/// A rule sets the types of all results.
using InferRule = Status (*)(Context&);
/// Computes the elements of the first result from those of the operands, if possible; types are set already.
using ValueRule = void (*)(Context&);

/// For results that are never needed as shapes.
void no_values(Context& c);

struct OpRules {
  InferRule infer;
  ValueRule values;
};
const OpRules& rules(Op op);  ///< table.cc

// ---- shared helpers ----

Dim product(const Dims& dims, size_t begin, size_t end);
inline Dim product(const Dims& dims) { return product(dims, 0, dims.size()); }
Dim min(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
/// Returns the more precise of two dimensions that must be equal; nothing if they are different numbers.
std::optional<Dim> unify(const Dim& a, const Dim& b);
/// Whether both may be one shape: equal ranks, and no two numbers differ.
bool agree(const Dims& a, const Dims& b);
/// The NumPy rule. Nothing if the shapes do not broadcast.
std::optional<Dims> broadcast(const Dims& a, const Dims& b);

}  // namespace serin::graph

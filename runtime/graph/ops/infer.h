// infer.h: what a shape rule of an operator sees and says. One rule an operator, in the file of its family; table.cc lists them all.
//
//   Status infer_flatten(Context& c) {
//     const Dims* x = c.dims(0);
//     if (!x) return c.set(0, c.dtype(0), std::nullopt);              // rank unknown: nothing can be said about the shape
//     SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", 1), x->size() + 1));
//     return c.set(0, c.dtype(0), Dims{product(*x, 0, axis), product(*x, axis, x->size())});
//   }
//
// Rules trust nothing: attributes and constants come from a file. They refuse with c.fail(), which names the node and the operator.
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

/// The elements of small integer values, as far as they are known before the model runs: what Reshape and its kind need. By ValueId.
using ShapeValues = std::vector<std::optional<Dims>>;
inline constexpr size_t kMaxShapeValues = 1024;
/// The same as a tensor of that type; null where an element is not a number, or the type is not i64, i32 or bool.
ConstantPtr constant_of(const Type& type, const Dims& elements);

/// infer_shapes, and what it learned on the way. After `bind` every Dim of it is a number.
Result<ShapeValues> infer_shapes_and_values(Graph& graph);

/// Contents that inference cannot know and somebody else can: those of a run that is under way.
class ContentSource {
 public:
  virtual ~ContentSource() = default;
  /// Asked when a rule wants the elements of a value that is not known. Null: not known here either.
  virtual ConstantPtr contents(ValueId id) = 0;
};

/// infer_shapes node by node, for who learns of values on the way. Nodes are inferred after those that they read from.
class Inference {
 public:
  explicit Inference(Graph& graph);
  Status infer(NodeId id);
  void set_source(ContentSource* source) { source_ = source; }
  void forget(ValueId id) { values_[static_cast<size_t>(id)].reset(); }  ///< the elements of a value that is another one by now
  void forget_unknown();                                                 ///< the names of sizes that only the data knows
  const ShapeValues& values() const { return values_; }
  ShapeValues take_values() { return std::move(values_); }

 private:
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
  /// Null: absent, or not even the rank is known.
  const Dims* dims(size_t operand) const;
  /// The elements of a small integer operand, row-major; null where they are not known.
  const Dims* elements(size_t operand) const;
  ConstantPtr constant(size_t operand) const;
  Type type(size_t operand) const { return has(operand) ? graph_.value(node().inputs[operand]).type : Type{}; }

  /// An integer list that is an attribute, or else an operand. Nothing: absent or not known (`absent` tells which).
  std::optional<Dims> list(std::string_view attribute, size_t operand) const;
  bool absent(std::string_view attribute, size_t operand) const { return !node().attributes.contains(attribute) && !has(operand); }
  /// The same where every element is a number.
  std::optional<std::vector<int64_t>> known_list(std::string_view attribute, size_t operand) const;

  /// axis counted from the end where negative, refused outside of [-rank, rank).
  Result<int64_t> axis(int64_t axis, size_t rank) const;
  Result<std::vector<int64_t>> axes(std::vector<int64_t> axes, size_t rank) const;  ///< sorted, each once
  Status same_dtype(size_t a, size_t b) const;
  Status index_dtype(size_t operand) const;  ///< i32 or i64
  /// The dtype that attribute `key` names ("f32"); `fallback` where it is absent, a mistake without one.
  Result<DType> dtype_attribute(std::string_view key, std::optional<DType> fallback = std::nullopt) const;

  /// Sets the type of a result; refuses negative dimensions and more than kMaxElements elements.
  Status set(size_t result, DType dtype, std::optional<Dims> dims);
  Status set(size_t result, Type type);  ///< the same for what may be no tensor
  void set_elements(size_t result, Dims elements);
  /// A dimension that only the data knows, at most `bound`.
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
/// Computes the elements of the first result from those of the operands, where that can be done; types are set already.
using ValueRule = void (*)(Context&);

struct OpRules {
  Op op;
  InferRule infer;
  ValueRule values;  ///< null: results are never needed as shapes
};
const OpRules& rules(Op op);  ///< table.cc

// ---- what several families share ----

Dim product(const Dims& dims, size_t begin, size_t end);
inline Dim product(const Dims& dims) { return product(dims, 0, dims.size()); }
Dim min(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
/// What both must be if they are equal: the one that says more. Nothing where they are different numbers.
std::optional<Dim> unify(const Dim& a, const Dim& b);
/// Whether both may be one shape: ranks are equal, and no two numbers differ.
bool agree(const Dims& a, const Dims& b);
/// The NumPy rule. Nothing where the shapes do not broadcast.
std::optional<Dims> broadcast(const Dims& a, const Dims& b);

}  // namespace serin::graph

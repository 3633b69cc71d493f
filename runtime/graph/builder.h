// builder.h: appends nodes to a graph whose types are known at once. Readers of files whose operators differ from those of op.h use it.
//
//   Builder b(graph);
//   b.start("fc1");                                              // names of the nodes that follow: fc1, fc1/Add, fc1/Add_2 ...
//   const ValueId product = b.add(Op::kMatMul, {x, weight});
//   const ValueId sum = b.add(Op::kAdd, {product, bias});
//   if (b.rank(sum) == 4) ...                                    // each node is inferred when it is added
//   if (b.error()) return *b.error();
//
// The first error is kept, so that callers need no check after each node. Results of a node that failed have no type.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace serin::graph {

class Inference;

class Builder {
 public:
  /// `graph` must outlive the builder, and only the builder may add to it meanwhile.
  explicit Builder(Graph& graph);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Graph& graph() { return graph_; }
  /// The nodes that follow are parts of this node of the file. Names that are taken get a number.
  void start(std::string_view name);
  const std::string& node() const { return node_; }

  // Nodes. Absent operands at the end are left out.
  ValueId add(Op op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> add_with_results(Op op, size_t results, std::vector<ValueId> inputs, Attributes attributes = {});
  /// The same with bodies: If, Loop, Scan.
  std::vector<ValueId> add_with_bodies(Op op, size_t results, std::vector<ValueId> inputs, Attributes attributes,
                                       std::vector<std::shared_ptr<const Graph>> bodies);

  // Constants.
  ValueId constant(ConstantPtr constant);
  ValueId constant(std::string name, ConstantPtr constant);
  ValueId integers(const std::vector<int64_t>& values);  ///< i64, of rank 1
  ValueId number(DType dtype, double value);             ///< of rank 0, in that type; also f16 and bf16

  // Frequent nodes.
  ValueId cast(ValueId x, DType to);  ///< x itself if it has that type
  ValueId reshape(ValueId x, const std::vector<int64_t>& shape);
  ValueId transpose(ValueId x, const std::vector<int64_t>& order);
  ValueId squeeze(ValueId x, const std::vector<int64_t>& axes);
  ValueId unsqueeze(ValueId x, const std::vector<int64_t>& axes);
  ValueId slice(ValueId x, int64_t axis, int64_t begin, int64_t end);

  // Types, as far as they are known. That of kNone is unknown: an importer goes on after an error until it is asked for.
  const Type& type(ValueId id) const {
    static const Type unknown;
    return id == kNone ? unknown : graph_.value(id).type;
  }
  DType dtype(ValueId id) const { return type(id).dtype; }
  std::optional<size_t> rank(ValueId id) const;
  const std::optional<Dims>& dims(ValueId id) const { return type(id).shape; }
  std::optional<int64_t> size(ValueId id, size_t axis) const;  ///< nothing: a symbol, or unknown
  /// The elements of a small integer tensor, row-major; null if they are unknown. They may be symbols.
  const Dims* elements(ValueId id) const;
  std::optional<std::vector<int64_t>> known_integers(ValueId id) const;  ///< the same, if all are numbers

  void fail(Code code, std::string_view problem);  ///< names the node of the file; only the first counts
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string next_name(std::string_view step);

  Graph& graph_;
  std::unique_ptr<Inference> inference_;
  std::string node_;
  std::set<std::string, std::less<>> names_;
  std::optional<Error> error_;
};

}  // namespace serin::graph

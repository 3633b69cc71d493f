// node_import.h: what a function sees that imports one operator of torch.
//
//   void import_relu(NodeImport& node, Op op) { node.give(node.b.add(op, {node.tensor("self")})); }
//
// Arguments are read by the names in torch's schema, with the schema's defaults, because an export leaves out those that equal them. The
// first error is kept, so that functions need no checks in between; they still must not index what an error may have left empty.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/formats/torch/program.h"
#include "runtime/graph/builder.h"

namespace serin::formats::torch {

/// A size or an index that is a number, or that the model computes: an i64 of rank 0.
struct Size {
  std::optional<int64_t> number;
  graph::ValueId value = graph::kNone;
};

/// Complex numbers as two tensors.
struct Parts {
  graph::ValueId real = graph::kNone, imaginary = graph::kNone;
};

/// The graph in which a node stands.
class Scope {
 public:
  /// The value of that name; kNone if nothing makes it.
  virtual graph::ValueId find(std::string_view name) = 0;
  /// The type that the program declares; null if it declares none.
  virtual const TensorMeta* meta(std::string_view name) const = 0;
  /// The weight [n, m] as [m, n]. It stays in the file, as the weight does, and is made once.
  virtual graph::ValueId turned(graph::ValueId weight) = 0;
  /// The parts that complex numbers were joined from, by the value that has both: they are read again without a cut.
  std::map<graph::ValueId, Parts>& parts() { return parts_; }
  /// Puts the nodes of a graph that is an argument here; returns its outputs.
  virtual Result<std::vector<graph::ValueId>> inlined(const Json& graph, const std::vector<graph::ValueId>& inputs) = 0;

 protected:
  Scope() = default;
  Scope(const Scope&) = default;
  ~Scope() = default;

 private:
  std::map<graph::ValueId, Parts> parts_;
};

class NodeImport {
 public:
  NodeImport(Scope& scope, graph::Builder& builder, const ProgramNode& node) : b(builder), scope_(scope), node_(node) {}

  graph::Builder& b;
  const ProgramNode& node() const { return node_; }
  Scope& scope() { return scope_; }
  /// The part behind the name: "Tensor" of aten.add.Tensor.
  std::string_view overload() const;

  // Arguments. An absent one, or None, has the fallback.
  bool has(std::string_view name) const;
  graph::ValueId tensor(std::string_view name);                ///< must be there
  graph::ValueId optional_tensor(std::string_view name);       ///< kNone if it is not
  std::vector<graph::ValueId> tensors(std::string_view name);  ///< kNone for None
  bool is_tensor(std::string_view name) const;
  /// A tensor, or a number as a tensor of that type.
  graph::ValueId operand(std::string_view name, DType dtype);
  int64_t integer(std::string_view name, int64_t fallback);
  bool flag(std::string_view name, bool fallback);
  double number(std::string_view name, double fallback);
  std::optional<double> optional_number(std::string_view name);
  std::string text(std::string_view name, std::string_view fallback);
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> fallback = {});
  std::vector<double> numbers(std::string_view name);
  Size size(std::string_view name, int64_t fallback);
  std::vector<Size> sizes(std::string_view name);
  std::optional<DType> dtype(std::string_view name);
  Size size_of(const Argument& argument);  ///< of one argument of an operator of Python

  // Complex numbers. Functions for real ones see a part of them.
  bool is_complex(std::string_view name) const;  ///< of a tensor, or of the first in a list
  bool gives_complex() const;                    ///< the first result
  /// Reads `value` in place of the tensor, of the one at `index` of a list, or of a number.
  void stand_in(std::string_view name, size_t index, graph::ValueId value);
  void stand_in(std::string_view name, double number) { numbers_[std::string(name)] = number; }

  // Results.
  const TensorMeta* meta(size_t result) const;
  DType result_dtype() const;                 ///< of the first result, as declared
  std::vector<int64_t> known_result_sizes();  ///< of the first result; an error if one is open
  void give(graph::ValueId value) { results_ = {value}; }
  void give(std::vector<graph::ValueId> values) { results_ = std::move(values); }
  const std::vector<graph::ValueId>& results() const { return results_; }

  // Frequent steps.
  size_t rank(graph::ValueId x);           ///< 0, and an error, if it is unknown
  int64_t axis(int64_t dim, size_t rank);  ///< from 0 on; an error outside the rank
  std::vector<int64_t> axes(std::string_view name, size_t rank);
  graph::ValueId scalar(const Size& size);                  ///< i64, rank 0
  graph::ValueId shape_of(const std::vector<Size>& sizes);  ///< i64, rank 1
  graph::ValueId sized(graph::ValueId x, size_t axis);      ///< the length of an axis: i64, rank 0

  // Errors.
  void unsupported(std::string_view problem) { b.fail(Code::kUnsupported, problem); }
  void corrupt(std::string_view problem) { b.fail(Code::kCorrupt, problem); }

 private:
  const Argument* find(std::string_view name) const;
  void wrong_kind(std::string_view name, const Argument& argument, std::string_view wanted);
  graph::ValueId named(const Json& value, std::string_view what);
  graph::ValueId standing_in(std::string_view name, size_t index) const;
  graph::ValueId unsqueezed(graph::ValueId size) const;

  Scope& scope_;
  const ProgramNode& node_;
  std::vector<graph::ValueId> results_;
  std::map<std::pair<std::string, size_t>, graph::ValueId> tensors_;
  std::map<std::string, double, std::less<>> numbers_;
};

/// The `end` of a slice up to where its axis ends.
inline constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

/// Elements begin, begin + step ... of an axis, before `end`.
graph::ValueId sliced(graph::Builder& b, graph::ValueId x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);

}  // namespace serin::formats::torch

// node.h: the interface of a function that imports one operation of a Paddle program.
//
//   void import_flatten(Node& node, graph::Op op) { node.out("Out", node.b.add(op, {node.in("X")}, {{"axis", node.integer("axis", 1)}})); }
//
// Operands and results have the names of a ProgramDesc. PIR's have them by the operator's row. Attributes that the two formats call differently
// have both names: "dim|axis". Many of them may be operands as well: list() and number() take either. The builder keeps the first error, so
// functions need no checks in between.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/formats/paddle/program.h"
#include "runtime/graph/builder.h"

namespace serin::formats::paddle {

using graph::Attributes;
using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

class Scope;

class Node {
 public:
  Node(Scope& scope, const Operation& source, std::string_view operands, std::string_view results);

  graph::Builder& b;

  // Operands.
  ValueId in(std::string_view slot) const;     ///< the first value; an error if there is none
  ValueId maybe(std::string_view slot) const;  ///< kNone if absent
  const std::vector<ValueId>& all(std::string_view slot) const;
  ValueId f32_in(std::string_view slot) const { return b.cast(in(slot), DType::kFloat32); }

  // Attributes, by any of the names that "|" separates.
  bool has(std::string_view names) const { return find(names) != nullptr; }
  int64_t integer(std::string_view names, int64_t fallback) const;
  bool flag(std::string_view names, bool fallback = false) const { return integer(names, fallback ? 1 : 0) != 0; }
  double number(std::string_view names, double fallback) const;
  std::string text(std::string_view names, std::string_view fallback) const;
  std::optional<List> integers(std::string_view names) const;  ///< also one number
  std::optional<std::vector<double>> numbers(std::string_view names) const;
  DType dtype(std::string_view names, DType fallback) const;

  // Attributes that are operands in some programs. `slots`: names of operands, the first that is present counts.
  /// i64 of rank 1; kNone if there is neither.
  ValueId list(std::string_view names, std::string_view slots);
  /// Its elements; nothing if there is neither. A list that is computed is an error.
  std::optional<List> known_list(std::string_view names, std::string_view slots);
  int64_t known_integer(std::string_view names, std::string_view slots, int64_t fallback);
  /// A number that is known; nothing if the operand is computed.
  std::optional<double> known_number(std::string_view names, std::string_view slots, double fallback) const;
  /// A value of rank 0 and that dtype.
  ValueId scalar(std::string_view names, std::string_view slots, DType dtype, double fallback);

  // Results.
  bool wants(std::string_view slot, size_t i = 0) const;  ///< whether anything reads it
  void out(std::string_view slot, ValueId value, size_t i = 0);
  void outs(std::string_view slot, const std::vector<ValueId>& values);
  size_t out_count(std::string_view slot) const;
  DType out_dtype(std::string_view slot) const;  ///< the declared one
  List out_dims(std::string_view slot) const;    ///< the declared ones

  // Values.
  size_t rank(ValueId x) const;                   ///< an error if it is unknown
  int64_t axis(int64_t axis, size_t rank) const;  ///< from 0 on; an error if there is no such axis
  ValueId unary(Op op, ValueId x, Attributes attributes = {}) const { return b.add(op, {x}, std::move(attributes)); }
  ValueId binary(Op op, ValueId x, ValueId y, Attributes attributes = {}) const { return b.add(op, {x, y}, std::move(attributes)); }
  ValueId with_number(Op op, ValueId x, double y) const { return b.add(op, {x, b.number(b.dtype(x), y)}); }
  /// Sizes of `x` (i64 of rank 1), as a constant if they are known.
  ValueId shape_of(ValueId x) const { return b.add(Op::kShape, {x}); }
  /// One size, of rank 1.
  ValueId size_of(ValueId x, int64_t axis) const;
  ValueId concat(std::vector<ValueId> parts, int64_t axis) const;
  ValueId floats(const std::vector<double>& values, const Shape& shape) const;  ///< an f32 constant
  void refuse(std::string_view what) const { b.fail(Code::kUnsupported, what); }
  void corrupt(std::string_view what) const { b.fail(Code::kCorrupt, what); }

  const Operation& source() const { return source_; }
  bool pir() const;  ///< whether the program is PIR: some operators of the same name differ
  Scope& scope() { return scope_; }

 private:
  const Attribute* find(std::string_view names) const;
  ValueId operand(std::string_view slots) const;
  std::optional<List> known_elements(ValueId value) const;
  const Slot* slot(const std::vector<Slot>& slots, std::string_view names, std::string_view name) const;

  Scope& scope_;
  const Operation& source_;
  std::string_view operands_, results_;
  std::vector<std::pair<std::string, std::vector<ValueId>>> values_;
};

}  // namespace serin::formats::paddle

// node_import.h: one node of the file, as the function sees it that lowers its operator.
//
//   void import_relu(NodeImport& n, Op) { n.out_like(0, n.builder().add(Op::kRelu, {n.any(0)})); }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/formats/tensorflow/scope.h"

namespace serin::formats::tf {

class Importer;

class NodeImport {
 public:
  NodeImport(Importer& importer, Scope& scope, const NodeDef& def, std::vector<ValuePtr> inputs)
      : importer_(importer), scope_(scope), def_(def), inputs_(std::move(inputs)) {}

  Importer& importer() { return importer_; }
  Scope& scope() { return scope_; }
  graph::Builder& builder() { return scope_.builder(); }
  const NodeDef& def() const { return def_; }

  // Operands. A missing or wrong one is an error of the file, and gives kNone.
  size_t inputs() const { return inputs_.size(); }
  const ValuePtr& value(size_t i) const { return inputs_[i]; }
  ValueId in(size_t i);     ///< with the axes of the file
  ValueId first(size_t i);  ///< with channels first
  ValueId any(size_t i);    ///< in the order of axes that exists
  bool prefers_first(size_t i) const { return i < inputs_.size() && Scope::prefers_first(*inputs_[i]); }
  std::optional<size_t> rank(size_t i) const { return scope_.rank(*inputs_[i]); }
  std::optional<graph::Dims> dims(size_t i) const { return scope_.dims(*inputs_[i]); }
  DType dtype(size_t i) const { return scope_.dtype(*inputs_[i]); }
  ValueId i64(size_t i);                                ///< integers as i64; a constant if they are known
  std::optional<std::vector<int64_t>> known(size_t i);  ///< integers that are known now
  /// The same, where the operator has to know them; an error otherwise.
  std::vector<int64_t> needed(size_t i, std::string_view what);
  /// A list of axes that are known now, each in [0, rank); an error otherwise.
  std::vector<int64_t> axes(size_t i, size_t rank);
  int64_t axis(int64_t axis, size_t rank);

  // Attributes.
  const Attr* attr(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t fallback) const;
  bool flag(std::string_view key) const { return integer(key, 0) != 0; }
  double number(std::string_view key, double fallback) const;
  std::string_view text(std::string_view key, std::string_view fallback = "") const;
  std::vector<int64_t> integers(std::string_view key) const;
  DType dtype_attr(std::string_view key, DType fallback = DType::kUndefined);
  bool channels_first() const { return text("data_format").starts_with("NC"); }

  // Results, in order.
  void out(ValueId id) { outputs_.push_back(plain_value(id)); }
  void out_first(ValueId id);
  /// In the order of axes that any(i) gave.
  void out_like(size_t i, ValueId id) { was_first_[i] ? out_first(id) : out(id); }
  void note_taken_apart(std::shared_ptr<const TakenApart> apart) { outputs_.back()->apart = std::move(apart); }
  void out_value(ValuePtr value) { outputs_.push_back(std::move(value)); }
  std::vector<ValuePtr> take_outputs() { return std::move(outputs_); }

  void corrupt(std::string_view problem) { builder().fail(Code::kCorrupt, problem); }
  void unsupported(std::string_view problem) { builder().fail(Code::kUnsupported, problem); }

 private:
  Importer& importer_;
  Scope& scope_;
  const NodeDef& def_;
  std::vector<ValuePtr> inputs_;
  std::vector<ValuePtr> outputs_;
  std::vector<bool> was_first_ = std::vector<bool>(inputs_.size() + 1);
};

}  // namespace serin::formats::tf

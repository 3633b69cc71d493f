// operators.h: the table of supported operators, and the functions that lower them.
#pragma once

#include <span>
#include <string_view>

#include "runtime/formats/tensorflow/node_import.h"
#include "runtime/graph/op.h"

namespace serin::formats::tf {

struct OperatorRow {
  std::string_view name;
  int min_inputs, max_inputs;  ///< -1: any number
  void (*import)(NodeImport& n, graph::Op op);
  graph::Op op = graph::Op::kIdentity;  ///< for functions that serve several operators
  /// Names of the outputs, separated by spaces, where there are several names: functions refer to them. "values*T" stands for as many
  /// outputs as attribute T has elements, or says.
  std::string_view outputs = {};
};

/// Null if the operator is not supported.
const OperatorRow* find_operator(std::string_view name);
/// The place of an output; `name` is empty in the main graph. SIZE_MAX if the operator has no such output.
size_t output_place(const OperatorRow& row, const Attrs& attrs, std::string_view name, size_t index);

// The families, one file each.
std::span<const OperatorRow> control_operators();
std::span<const OperatorRow> elementwise_operators();
std::span<const OperatorRow> example_operators();
std::span<const OperatorRow> image_operators();
std::span<const OperatorRow> join_operators();
std::span<const OperatorRow> matrix_operators();
std::span<const OperatorRow> movement_operators();
std::span<const OperatorRow> reduction_operators();
std::span<const OperatorRow> selection_operators();
std::span<const OperatorRow> sparse_operators();
std::span<const OperatorRow> text_operators();

}  // namespace serin::formats::tf

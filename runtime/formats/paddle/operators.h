// operators.h: the operators of Paddle that are read, and the functions that import them.
#pragma once

#include <span>
#include <string_view>

#include "runtime/formats/paddle/node.h"
#include "runtime/graph/op.h"

namespace serin::formats::paddle {

struct OperatorRow {
  std::string_view desc;      ///< names in a ProgramDesc, separated by spaces; empty: none
  std::string_view pir;       ///< names in PIR
  std::string_view operands;  ///< names in a ProgramDesc, in the order that PIR has them
  std::string_view results;
  void (*import)(Node& node, Op op);
  Op op = Op::kIdentity;  ///< for functions that serve several operators
};

/// Null if the operator is not supported.
const OperatorRow* find_operator(const Program& program, std::string_view type);

// The families, one file each: <family>.cc.
std::span<const OperatorRow> elementwise_operators();
std::span<const OperatorRow> creation_operators();
std::span<const OperatorRow> movement_operators();
std::span<const OperatorRow> index_operators();
std::span<const OperatorRow> reduction_operators();
std::span<const OperatorRow> network_operators();
std::span<const OperatorRow> image_operators();
std::span<const OperatorRow> product_operators();
std::span<const OperatorRow> transformer_operators();
std::span<const OperatorRow> recurrent_operators();
std::span<const OperatorRow> detection_operators();
std::span<const OperatorRow> suppression_operators();
std::span<const OperatorRow> quantised_operators();
std::span<const OperatorRow> control_operators();
std::span<const OperatorRow> array_operators();

// Used by several families.
ValueId align(Node& node, ValueId x, ValueId y, int64_t axis);   ///< y with ones behind it, so that it broadcasts from `axis` of x on
void import_set_value(Node& node, Op op);                        ///< set_value.cc
bool reads_array(Node& node);                                    ///< arrays.cc: a slice of one; then its element is the result
ValueId activate(Node& node, std::string_view name, ValueId x);  ///< "relu", "gelu" ... or "" and "identity"

/// The image of each region, i64. `counts`: how many regions each image has; kNone: all are of image 0.
ValueId image_of_regions(Node& node, ValueId regions, ValueId counts);

}  // namespace serin::formats::paddle

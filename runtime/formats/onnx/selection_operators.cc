// selection_operators.cc: lists the operators of this family that are read: gathering, scattering, sorting, boxes.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {
namespace {

using graph::Op;

/// k: an attribute before opset 10, an operand since. Before 11 the largest, sorted.
void import_top_k(NodeImport& node, Op op) {
  graph::Attributes attributes{{"axis", node.integer("axis", -1)}};
  graph::ValueId k = node.input(1);
  if (node.opset() < 10) {
    if (k != graph::kNone) node.corrupt("has k as an operand, which came with opset 10");
    const int64_t count[] = {node.required_integer("k")};
    k = node.step_constant("k", graph::make_constant(count));
  } else if (k == graph::kNone) {
    return node.corrupt("has no k");
  }
  if (node.opset() >= 11) {
    attributes.emplace("largest", node.integer("largest", 1));
    attributes.emplace("sorted", node.integer("sorted", 1));
  }
  node.emit(op, {node.input(0), k}, std::move(attributes));
}

/// The outputs that are not asked for are made all the same: they are small.
constexpr OperatorRow kSelectionOperators[] = {
    {"Compress", 9, 2, 2, 1, import_plain, Op::kCompress, "axis"},
    {"GatherElements", 11, 2, 2, 1, import_plain, Op::kGatherElements, "axis"},
    {"GatherND", 11, 2, 2, 1, import_plain, Op::kGatherND, "batch_dims"},
    {"NonMaxSuppression", 10, 2, 5, 1, import_plain, Op::kNonMaxSuppression, "center_point_box"},
    {"OneHot", 9, 3, 3, 1, import_plain, Op::kOneHot, "axis"},
    {"ReverseSequence", 10, 2, 2, 1, import_plain, Op::kReverseSequence, "batch_axis time_axis"},
    {"Scatter", 9, 3, 3, 1, import_plain, Op::kScatterElements, "axis"},  // its old name
    {"ScatterElements", 11, 3, 3, 1, import_plain, Op::kScatterElements, "axis reduction"},
    {"ScatterND", 11, 3, 3, 1, import_plain, Op::kScatterND, "reduction"},
    {"TensorScatter", 24, 2, 3, 1, import_plain, Op::kTensorScatter, "axis mode"},
    {"TopK", 1, 1, 2, 2, import_top_k, Op::kTopK},
    {"Trilu", 14, 1, 2, 1, import_plain, Op::kTrilu, "upper"},
    {"Unique", 11, 1, 1, 4, import_plain, Op::kUnique, "axis sorted"},
};

}  // namespace

OperatorFamily selection_operators() { return {"", kSelectionOperators}; }

}  // namespace serin::formats::onnx

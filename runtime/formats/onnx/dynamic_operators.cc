// dynamic_operators.cc: lists the operators of this family that are read: sequences, optionals and Scan. Element types are attributes by
// their name in the text form.

#include <fmt/format.h>

#include "runtime/formats/onnx/operators.h"
#include "runtime/formats/onnx/tensor.h"

namespace serin::formats::onnx {
namespace {

using graph::Op;

void import_sequence_empty(NodeImport& node, Op op) {
  const auto dtype = dtype_from(node.integer("dtype", 1));
  if (!dtype) return node.fail(dtype.error().code, "its elements are " + dtype.error().message);
  node.emit(op, {}, {{"dtype", std::string(dtype_name(*dtype))}});
}

/// What an optional without a value would hold is in the attribute `type`.
void import_optional(NodeImport& node, Op op) {
  const AttributeProto* const type = node.attribute("type");
  if (node.input(0) != graph::kNone) {
    node.emit(op, {node.input(0)});
    return;
  }
  if (!type || !type->tp) return node.corrupt("has neither an input nor a type");
  if (type->tp->kind != TypeProto::Kind::kTensor && type->tp->kind != TypeProto::Kind::kSequence)
    return node.unsupported("contains neither a tensor nor a sequence");
  const auto dtype = dtype_from(type->tp->elem_type);
  if (!dtype) return node.fail(dtype.error().code, "it contains " + dtype.error().message);
  const bool sequence = type->tp->kind == TypeProto::Kind::kSequence;
  node.emit(op, {}, {{"dtype", std::string(dtype_name(*dtype))}, {"kind", std::string(sequence ? "sequence" : "tensor")}});
}

constexpr OperatorRow kDynamicOperators[] = {
    {"ConcatFromSequence", 11, 1, 1, 1, import_plain, Op::kConcatFromSequence, "axis new_axis"},
    {"Optional", 15, 0, 1, 1, import_optional, Op::kOptional},
    {"OptionalGetElement", 15, 1, 1, 1, import_plain, Op::kOptionalGetElement},
    {"OptionalHasElement", 15, 0, 1, 1, import_plain, Op::kOptionalHasElement},
    {"Scan", 8, 0, -1, -1, import_scan, Op::kScan},
    {"SequenceAt", 11, 2, 2, 1, import_plain, Op::kSequenceAt},
    {"SequenceConstruct", 11, 1, -1, 1, import_plain, Op::kSequenceConstruct},
    {"SequenceEmpty", 11, 0, 0, 1, import_sequence_empty, Op::kSequenceEmpty},
    {"SequenceErase", 11, 1, 2, 1, import_plain, Op::kSequenceErase},
    {"SequenceInsert", 11, 2, 3, 1, import_plain, Op::kSequenceInsert},
    {"SequenceLength", 11, 1, 1, 1, import_plain, Op::kSequenceLength},
    {"SequenceMap", 17, 1, -1, -1, import_sequence_map, Op::kSequenceMap},
    {"SplitToSequence", 11, 1, 2, 1, import_plain, Op::kSplitToSequence, "axis keepdims"},
};

}  // namespace

OperatorFamily dynamic_operators() { return {"", kDynamicOperators}; }

}  // namespace serin::formats::onnx

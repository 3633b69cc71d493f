// operators.cc: the table of the core operators, in alphabetical order, and the look-up through it and the tables of the other families. To add
// an operator: a row in its family's table, a function (or import_plain).

#include "runtime/formats/onnx/operators.h"

#include <fmt/format.h>

#include <algorithm>

namespace serin::formats::onnx {
namespace {

using graph::Op;

// name, since, inputs (min, max), outputs, function, canonical operator
constexpr OperatorRow kCoreOperators[] = {
    {"Abs", 7, 1, 1, 1, import_plain, Op::kAbs},
    {"Add", 7, 2, 2, 1, import_plain, Op::kAdd},
    {"And", 7, 2, 2, 1, import_plain, Op::kAnd},
    {"ArgMax", 7, 1, 1, 1, import_arg, Op::kArgMax},
    {"ArgMin", 7, 1, 1, 1, import_arg, Op::kArgMin},
    {"AveragePool", 7, 1, 1, 1, import_pool, Op::kAveragePool},
    {"Cast", 7, 1, 1, 1, import_cast, Op::kCast},
    {"Ceil", 7, 1, 1, 1, import_plain, Op::kCeil},
    {"Clip", 7, 1, 3, 1, import_clip, Op::kClip},
    {"Concat", 7, 1, -1, 1, import_concat, Op::kConcat},
    {"Constant", 7, 0, 0, 1, import_constant},
    {"ConstantOfShape", 9, 1, 1, 1, import_constant_of_shape, Op::kConstantOfShape},
    {"Conv", 7, 2, 3, 1, import_conv, Op::kConv},
    {"Cos", 7, 1, 1, 1, import_plain, Op::kCos},
    {"CumSum", 11, 2, 2, 1, import_cumsum, Op::kCumSum},
    {"Div", 7, 2, 2, 1, import_plain, Op::kDiv},
    {"Elu", 7, 1, 1, 1, import_with_alpha_beta, Op::kElu},
    {"Equal", 7, 2, 2, 1, import_plain, Op::kEqual},
    {"Erf", 9, 1, 1, 1, import_plain, Op::kErf},
    {"Exp", 7, 1, 1, 1, import_plain, Op::kExp},
    {"Expand", 8, 2, 2, 1, import_plain, Op::kExpand},
    {"Flatten", 7, 1, 1, 1, import_flatten, Op::kFlatten},
    {"Floor", 7, 1, 1, 1, import_plain, Op::kFloor},
    {"Gather", 7, 2, 2, 1, import_gather, Op::kGather},
    {"Gelu", 20, 1, 1, 1, import_gelu, Op::kGelu},
    {"Gemm", 7, 2, 3, 1, import_gemm, Op::kGemm},
    {"GlobalAveragePool", 7, 1, 1, 1, import_plain, Op::kGlobalAveragePool},
    {"GlobalMaxPool", 7, 1, 1, 1, import_plain, Op::kGlobalMaxPool},
    {"Greater", 7, 2, 2, 1, import_plain, Op::kGreater},
    {"GreaterOrEqual", 12, 2, 2, 1, import_plain, Op::kGreaterOrEqual},
    {"HardSigmoid", 7, 1, 1, 1, import_with_alpha_beta, Op::kHardSigmoid},
    {"HardSwish", 14, 1, 1, 1, import_plain, Op::kHardSwish},
    {"Identity", 7, 1, 1, 1, import_identity, Op::kIdentity},
    {"If", 7, 1, 1, -1, import_if, Op::kIf},
    {"IsInf", 10, 1, 1, 1, import_is_inf, Op::kIsInf},
    {"IsNaN", 9, 1, 1, 1, import_plain, Op::kIsNaN},
    {"LeakyRelu", 7, 1, 1, 1, import_with_alpha_beta, Op::kLeakyRelu},
    {"Less", 7, 2, 2, 1, import_plain, Op::kLess},
    {"LessOrEqual", 12, 2, 2, 1, import_plain, Op::kLessOrEqual},
    {"Log", 7, 1, 1, 1, import_plain, Op::kLog},
    {"LogSoftmax", 7, 1, 1, 1, import_softmax, Op::kLogSoftmax},
    {"Loop", 7, 0, -1, -1, import_loop, Op::kLoop},
    {"MatMul", 7, 2, 2, 1, import_plain, Op::kMatMul},
    {"Max", 7, 1, -1, 1, import_plain, Op::kMax},
    {"MaxPool", 7, 1, 1, 2, import_pool, Op::kMaxPool},
    {"Mean", 7, 1, -1, 1, import_plain, Op::kMean},
    {"Min", 7, 1, -1, 1, import_plain, Op::kMin},
    {"Mod", 10, 2, 2, 1, import_mod, Op::kMod},
    {"Mul", 7, 2, 2, 1, import_plain, Op::kMul},
    {"Neg", 7, 1, 1, 1, import_plain, Op::kNeg},
    {"NonZero", 9, 1, 1, 1, import_plain, Op::kNonZero},
    {"Not", 7, 1, 1, 1, import_plain, Op::kNot},
    {"Or", 7, 2, 2, 1, import_plain, Op::kOr},
    {"Pad", 7, 1, 4, 1, import_pad, Op::kPad},
    {"Pow", 7, 2, 2, 1, import_plain, Op::kPow},
    {"Range", 11, 3, 3, 1, import_plain, Op::kRange},
    {"Reciprocal", 7, 1, 1, 1, import_plain, Op::kReciprocal},
    {"ReduceL1", 7, 1, 2, 1, import_reduce, Op::kReduceL1},
    {"ReduceL2", 7, 1, 2, 1, import_reduce, Op::kReduceL2},
    {"ReduceLogSum", 7, 1, 2, 1, import_reduce_log_sum, Op::kLog},
    {"ReduceMax", 7, 1, 2, 1, import_reduce, Op::kReduceMax},
    {"ReduceMean", 7, 1, 2, 1, import_reduce, Op::kReduceMean},
    {"ReduceMin", 7, 1, 2, 1, import_reduce, Op::kReduceMin},
    {"ReduceProd", 7, 1, 2, 1, import_reduce, Op::kReduceProd},
    {"ReduceSum", 7, 1, 2, 1, import_reduce, Op::kReduceSum},
    {"ReduceSumSquare", 7, 1, 2, 1, import_reduce, Op::kReduceSumSquare},
    {"Relu", 7, 1, 1, 1, import_plain, Op::kRelu},
    {"Reshape", 7, 2, 2, 1, import_reshape, Op::kReshape},
    {"Round", 11, 1, 1, 1, import_plain, Op::kRound},
    {"Shape", 7, 1, 1, 1, import_shape, Op::kShape},
    {"Sigmoid", 7, 1, 1, 1, import_plain, Op::kSigmoid},
    {"Sign", 9, 1, 1, 1, import_plain, Op::kSign},
    {"Sin", 7, 1, 1, 1, import_plain, Op::kSin},
    {"Size", 7, 1, 1, 1, import_plain, Op::kSize},
    {"Slice", 7, 1, 5, 1, import_slice, Op::kSlice},
    {"Softmax", 7, 1, 1, 1, import_softmax, Op::kSoftmax},
    {"Softplus", 7, 1, 1, 1, import_plain, Op::kSoftplus},
    {"Split", 7, 1, 2, -1, import_split, Op::kSplit},
    {"Sqrt", 7, 1, 1, 1, import_plain, Op::kSqrt},
    {"Squeeze", 7, 1, 2, 1, import_squeeze, Op::kSqueeze},
    {"Sub", 7, 2, 2, 1, import_plain, Op::kSub},
    {"Sum", 7, 1, -1, 1, import_plain, Op::kSum},
    {"Swish", 24, 1, 1, 1, import_with_alpha_beta, Op::kSwish},
    {"Tanh", 7, 1, 1, 1, import_plain, Op::kTanh},
    {"Tile", 7, 2, 2, 1, import_plain, Op::kTile},
    {"Transpose", 7, 1, 1, 1, import_transpose, Op::kTranspose},
    {"Unsqueeze", 7, 1, 2, 1, import_squeeze, Op::kUnsqueeze},
    {"Where", 9, 3, 3, 1, import_plain, Op::kWhere},
    {"Xor", 7, 2, 2, 1, import_plain, Op::kXor},
};

}  // namespace

const OperatorRow* find_operator(std::string_view domain, std::string_view op_type) {
  if (domain == "ai.onnx") domain = {};
  for (const OperatorFamily& family :
       {OperatorFamily{{}, kCoreOperators}, math_operators(), norm_operators(), training_operators(), selection_operators(),
        image_operators(), quant_operators(), recurrent_operators(), text_operators(), classifier_operators(), dynamic_operators(),
        microsoft_operators(), preview_operators(), microsoft_quant_operators(), microsoft_block_operators()}) {
    if (family.domain != domain) continue;
    const auto row = std::ranges::find(family.rows, op_type, &OperatorRow::name);
    if (row != family.rows.end()) return &*row;
  }
  return nullptr;
}

Status check_counts(const OperatorRow& row, const NodeImport& node) {
  const auto inputs = static_cast<int>(node.input_count());
  const auto outputs = static_cast<int>(node.output_count());
  if (inputs < row.min_inputs || (row.max_inputs >= 0 && inputs > row.max_inputs))
    return Error{Code::kCorrupt, fmt::format("has {} inputs, {} {} are needed", inputs, inputs < row.min_inputs ? "at least" : "at most",
                                             inputs < row.min_inputs ? row.min_inputs : row.max_inputs)};
  for (int i = 0; i < row.min_inputs; ++i)
    if (node.input(static_cast<size_t>(i)) == graph::kNone) return Error{Code::kCorrupt, fmt::format("input {} is missing", i)};
  if (outputs < 1 || (row.outputs >= 0 && outputs > row.outputs)) return Error{Code::kCorrupt, fmt::format("has {} outputs", outputs)};
  return {};
}

void import_plain(NodeImport& node, graph::Op op) { node.emit(op, node.inputs(), node.copied_attributes()); }

}  // namespace serin::formats::onnx

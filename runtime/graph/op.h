// op.h: the canonical operators. Importers convert every format to these; passes and the engine know no others.
//
// Semantics are those of the newest ONNX operator of that name (attributes, input order). There is one exception, so that one form is left:
// constant values that older versions had as attributes (axes, pads, k, ...) are always attributes. If such a value is computed, it is an
// operand, and `constant_operands` (passes/) makes it an attribute once it is known. Conventions that ONNX alone does not settle:
//
//   Cast                 to: the name of a dtype as in the text form ("f32", "i64", "bool")
//   Clip                 min, max: numbers; or operands 1 and 2. Absent: no bound
//   Reduce*              axes (operand 1), keepdims = 1, noop_with_empty_axes = 0
//   Squeeze, Unsqueeze   axes (operand 1)
//   Slice                starts, ends, axes, steps (operands 1..4)
//   Split                axis = 0, split: sizes (operand 1); without them equal parts, the last one smaller
//   Pad                  pads: begins, then ends (operand 1); value: a number (operand 2); axes (operand 3);
//                        mode = "constant" | "reflect" | "edge" | "wrap"
//   ConstantOfShape      value: a constant of one element (absent: f32 zero)
//   Conv, *Pool          strides, dilations, pads, group, kernel_shape, auto_pad, ceil_mode, count_include_pad: as in ONNX;
//                        ops/window.h resolves them into one explicit form
//   CombinedNonMaxSuppression   operands: boxes [batch, boxes, 1 or classes, 4], scores [batch, boxes, classes], most boxes of a class and of
//                        an image, overlap, least score; clip_boxes = 1: to 0..1; pad_per_class. Outputs: boxes, scores, classes (f32), count
//   ChangeCase           to = "LOWER" | "UPPER": of the letters of ASCII; others stay
//   RegexReplace         pattern, rewrite, all = 1: each match, or the first; RE2, with \0 .. \9 in the rewrite
//   StringSplit          delimiter, maxsplit as ONNX has them; with width each text has so many places: parts behind them are only counted
//   HashBucket           buckets: Fingerprint64 of each text, modulo their number
//   ParseExample         operands: serialized tf.Example messages [n] or [], then the default of each dense feature (absent or empty: the
//                        feature is required). keys: dense features, then `sparse` ones, then `ragged` ones; types = "f32" | "i64" | "str";
//                        ranks, dims: the shapes of the dense ones, one after the other. Outputs: a tensor of each dense feature; indices,
//                        values and shape of each sparse one; values and splits of each ragged one
//   SparseCross          operands: indices, values, shape of `sparse` features, then dense ones. key; buckets = 0: the hash modulo 2^63 - 1.
//                        Outputs: indices, buckets, shape
//   SparseReshape        operands: indices, shape, new shape.   Outputs: indices, shape
//   FillEmptyRows        operands: indices, values, shape, default.   Outputs: indices, values, whether each row was empty, the new places
//   SegmentReduce        operands: rows, the segment of each, the number of segments or none; reduction = "sum" | "mean" | "sqrt_n"
//   Tokenizer            as in ONNX Runtime: separators or tokenexp, mark = 0, mincharnum = 1, pad_value
//   Swish                alpha = 1: x * sigmoid(alpha x).   Gelu   approximate = "none" | "tanh"
//   Attention            as in ONNX, and masked_to_zero = 1: a query that may attend to nothing gives zeros, not NaN; heads_inside = 1:
//                        operands of rank 4 give [batch, length, heads, head]
//   If                   operands: condition, then the values that the bodies read. Both bodies have exactly those (without the condition)
//                        as inputs.
//   Loop                 operands: trip count or none, condition or none, the `carried` (attribute) values, then the values that the body
//                        reads. Body inputs: iteration, condition, carried, read. Body outputs: condition, carried, scanned.
//                        Outputs: carried, scanned.
//   Scan                 operands: lengths or none (only if batched = 1), the `carried` values, the `scanned` ones, then the values that
//                        the body reads. Body inputs: carried, one slice of each scanned, read.
//                        Body outputs: carried, one slice of each result.
//                        input_axes, input_directions, output_axes, output_directions; batched = 1: axis 0 of all is a batch, and they
//                        are scanned along axis 1
//   SequenceMap          operands: `mapped` of them, of which sequences are iterated and tensors repeated, then the values that the body
//                        reads
//   SequenceEmpty        dtype as in Cast.   Optional   without operand: kind = "tensor" | "sequence", dtype
//
// Fused operators exist after passes only:
//
//   quantised tensors (passes/quantise_*.cc); a number x is given as q, scale, zero point; channels_last = 1 means [n, spatial..., c]:
//     QLinearConv(..., residual, scale, zero, y2 scale, y2 zero)   more than ONNX's nine: y2 = act2(y + residual), quantised again;
//                                                                  activation and sum_activation are "" or "Relu"
//     QuantizedBinary(a..., b..., y scale, y zero)      function = "Add" | "Mul", activation
//     QuantizedGlobalAveragePool(x..., y scale, y zero)
//     QuantizedLookup(x, table)                         y = table[x], for a function of one element
//     QuantizedMatMul(a..., b..., bias, y scale, y zero)   b [k, n]; without y scale the result is f32; activation
//     QuantizedMaxPool(x)                               attributes of MaxPool
//     DynamicQuantizeMatMul(a, b, b scale, b zero, bias)   f32: a is quantised as in DynamicQuantizeLinear, with by_row each row of a
//                                                       separately, and the product is scaled back; activation
//   FusedConv(x, w, bias or none, residual or none)     y = act(Conv(x, w) + bias + residual), attributes of Conv
//   FusedMatMul(a, b, bias or none, residual or none)   y = act(a b + bias + residual), with transA and transB swapping the last two axes;
//                                                       no scale (Gemm's alpha and beta are folded into constants before)
//   both: activation = "" (none) | "Relu" | "LeakyRelu" (alpha: slope) | "Clip" (alpha..beta) | "Sigmoid" | "Tanh"
//         | "HardSigmoid" (alpha, beta) | "HardSwish" | "Elu" (alpha) | "Swish" | "Gelu" | "GeluTanh"; bias of a convolution is [channels],
//         of a product anything that broadcasts to y; residual has the shape of y.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace serin::graph {

/// One for each row of ops/all.def.
enum class Op : uint16_t {
#define SERIN_OP(name, ...) k##name,
#include "runtime/graph/ops/all.def"
};
inline constexpr size_t kOpCount =
    std::initializer_list<int>{
#define SERIN_OP(...) 0,
#include "runtime/graph/ops/all.def"
    }
        .size();

struct OpSchema {
  std::string_view name;
  int min_inputs, max_inputs, outputs;  ///< -1: any number
};
const OpSchema& schema(Op op);
inline std::string_view op_name(Op op) { return schema(op).name; }
std::optional<Op> find_op(std::string_view name);

}  // namespace serin::graph

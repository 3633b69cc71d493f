// op.h: The operations that a kernel can be asked to compute.
//
// Plain data, no graph: the engine lowers graph nodes to these (runtime/engine/lower).
//
// There are intentionally fewer kinds than ONNX operators. Gemm and MatMul are one kind. Slice, Transpose and Expand are one strided copy.
// Thirty activations are one Unary with a function. A kernel is written once for each kind, not once for each operator.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/functions.h"
#include "kernels/tensor.h"

namespace serin::kernels {

enum class ReduceFn : uint8_t { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kSumSquare };

/// Operations on a result before it is stored: bias is a separate input, then the activation.
struct Epilogue {
  UnaryFn activation = UnaryFn::kIdentity;
  float alpha = 0.f, beta = 0.f;
  bool residual = false;  ///< the last input is added before the activation: y = act(op(x) + bias + residual)
};

// One struct for each kind. Inputs and outputs are in the order of the comments.
struct Unary {
  UnaryFn fn = UnaryFn::kIdentity;
  float alpha = 0.f, beta = 0.f;
};  // x -> y
struct Binary {
  BinaryFn fn = BinaryFn::kAdd;
};  // a, b -> y
struct Select {};  // condition (bool), a, b -> y (Where)
struct Cast {
  bool saturate = false;  ///< to a float type: finite values stay finite, at the type's largest number
};  // x -> y; the dtypes are in the descriptions
/// x [n, c, spatial...], weight [o, c/group, kernel...], bias [o]? , residual? -> y. Pads are explicit: begin then end, one each for every
/// spatial axis. Channels last: x and y [n, spatial..., c], weight [o, kernel..., c/group].
struct Conv {
  std::vector<int64_t> strides, dilations, pads;
  int64_t group = 1;
  bool bias = false;
  Epilogue epilogue;
  bool channels_last = false;
};
/// a [..., m, k], b [..., k, n] (after the transposes), bias broadcast to y?, residual? -> y = act(alpha * a b + bias + residual). Batch
/// dims broadcast.
struct MatMul {
  bool transpose_a = false, transpose_b = false;
  float alpha = 1.f;
  bool bias = false;
  Epilogue epilogue;
};
/// x [n, c, spatial...] -> y; channels last: [n, spatial..., c]. `average` false: maximum.
struct Pool {
  bool average = false;
  bool count_include_pad = false;
  std::vector<int64_t> kernel, strides, dilations, pads;
  bool channels_last = false;
};
struct Reduce {
  ReduceFn fn = ReduceFn::kSum;
  std::vector<int64_t> axes;
};  // x -> y; the output shape shows whether axes are kept; axes >= 0
struct Softmax {
  int64_t axis = -1;
  bool log = false;
};  // x -> y
struct LayerNorm {
  int64_t axis = -1;
  float epsilon = 1e-5f;
  bool bias = false;
};  // x, scale, bias? -> y, over all axes from `axis` on
struct BatchNorm {
  float epsilon = 1e-5f;
};  // x [n, c, ...], scale, bias, mean, var -> y; those of a 16-bit x may be f32
/// y[i0, i1, ...] = x[offset + sum(i * stride)]: transpose, slice, expand, in elements of the input. Rank of y = strides.size().
struct StridedCopy {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};
struct Concat {
  int64_t axis = 0;
};  // x0, x1, ... -> y
struct Pad {
  std::vector<int64_t> begin, end;
  enum class Mode : uint8_t { kConstant, kReflect, kEdge, kWrap } mode = Mode::kConstant;
};  // x, value? -> y
struct Gather {
  int64_t axis = 0;
};  // x, indices (i32/i64, may be negative) -> y; an index out of range is a Fault
struct ArgMax {
  int64_t axis = 0;
  bool min = false;
  bool last = false;
};  // x -> i64; `last`: of equal elements the last one counts
struct NonZero {};  // x -> i64 [rank, bounded by elements(x)]; sets the true count in the output's shape
struct CumSum {
  int64_t axis = 0;
  bool exclusive = false, reverse = false;
};  // x -> y

/// Every other operator: the one with that name in the operator list (op.h in runtime/graph), with its attributes. Operands by position; an
/// absent one has dtype kUndefined and no data. Strings are std::string objects, constructed before the kernel runs.
struct Generic {
  std::string name;
  Attributes attributes;
};

/// From the host's memory to the device's, or back: x -> y, the same bytes.
struct Transfer {
  bool to_device = true;
};

/// Channels in blocks: [n, c, h, w] as [n, c / b rounded up, h, w, b], so that the vectors of a convolution contain channels. x -> y, one
/// of them plain (rank 4), the other in blocks (rank 5); the backend gives b (Backend::channel_block). Channels after c contain any finite
/// values. Conv and Pool over two spatial axes also accept and return such tensors (Conv also a plain x with a blocked y). Their weight
/// gives the true number of channels. To every other kind they are tensors of rank 5.
struct ChannelBlocks {};

/// A small program of functions of single elements, in one loop: inputs that broadcast to y -> y. Operand i of a step is input i; from the
/// number of inputs on, it is the result of step i - inputs. The last result is y. Values are f32, or bool if a compare made them or a
/// Select reads them. Inputs and y may be 16-bit floats, each independently.
struct Pointwise {
  static constexpr size_t kMaxInputs = 8, kMaxSteps = 32;
  struct Step {
    std::variant<Unary, Binary, Select> function;
    std::array<int32_t, 3> operands{};
  };
  std::vector<Step> steps;
};

using Op = std::variant<Unary, Binary, Select, Cast, Conv, MatMul, Pool, Reduce, Softmax, LayerNorm, BatchNorm, StridedCopy, Concat, Pad,
                        Gather, ArgMax, NonZero, CumSum, Generic, ChannelBlocks, Pointwise, Transfer>;

/// "Conv", "MatMul", ...: in variant order; also the keys of the kernel tables.
inline constexpr std::array<std::string_view, std::variant_size_v<Op>> kOpNames = {
    "Unary",       "Binary", "Select", "Cast",   "Conv",   "MatMul",  "Pool",   "Reduce",  "Softmax",       "LayerNorm", "BatchNorm",
    "StridedCopy", "Concat", "Pad",    "Gather", "ArgMax", "NonZero", "CumSum", "Generic", "ChannelBlocks", "Pointwise", "Transfer"};

}  // namespace serin::kernels

// norms.cc: normalisations. Results that only a backward pass reads (means, deviations) are not made.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

/// A vector of `count` equal numbers, where a scale or shift is absent.
ValueId constants(NodeImport& node, DType dtype, int64_t count, float value) {
  const std::vector<float> values(static_cast<size_t>(count), value);
  return node.b.cast(node.b.constant(graph::make_constant(DType::kFloat32, Shape{count}, values.data())), dtype);
}

void import_batch_norm(NodeImport& node, Op op) {
  if (node.flag("training", false)) return node.unsupported("is in training mode: call model.eval() before the export");
  const ValueId x = node.tensor("input"), mean = node.tensor("running_mean"), variance = node.tensor("running_var");
  const auto channels = node.b.size(mean, 0);
  if (!channels || *channels > 1 << 24) return node.unsupported("an unknown number of channels");
  ValueId scale = node.optional_tensor("weight"), shift = node.optional_tensor("bias");
  if (scale == kNone) scale = constants(node, node.b.dtype(mean), *channels, 1);
  if (shift == kNone) shift = constants(node, node.b.dtype(mean), *channels, 0);
  const ValueId y = node.b.add(op, {x, scale, shift, mean, variance}, {{"epsilon", node.number("eps", 1e-5)}});
  node.give({y, kNone, kNone});
}

/// What run_decompositions() makes of instance_norm: statistics of the input itself, over the batch and the pixels.
void import_own_batch_norm(NodeImport& node, Op) {
  const ValueId x = node.tensor("input"), scale = node.optional_tensor("weight"), shift = node.optional_tensor("bias");
  const size_t rank = node.rank(x);
  if (!node.flag("training", true) || rank < 2) return node.unsupported("has no statistics");
  List axes = {0}, behind;
  for (size_t i = 2; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  for (size_t i = 2; i < rank; ++i) behind.push_back(static_cast<int64_t>(i) - 1);
  const graph::Attributes along = {{"axes", axes}, {"keepdims", int64_t{1}}};
  const ValueId centred = node.b.add(Op::kSub, {x, node.b.add(Op::kReduceMean, {x}, along)});
  const ValueId variance = node.b.add(Op::kReduceMean, {node.b.add(Op::kMul, {centred, centred})}, along);
  const ValueId safe = node.b.add(Op::kAdd, {variance, node.b.number(node.b.dtype(x), node.number("eps", 1e-5))});
  ValueId y = node.b.add(Op::kDiv, {centred, node.b.add(Op::kSqrt, {safe})});
  const auto by_channel = [&](ValueId vector) { return behind.empty() ? vector : node.b.unsqueeze(vector, behind); };
  if (scale != kNone) y = node.b.add(Op::kMul, {y, by_channel(scale)});
  if (shift != kNone) y = node.b.add(Op::kAdd, {y, by_channel(shift)});
  node.give({y, kNone, kNone});
}

int64_t product(const List& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count = size > 0 && count <= (int64_t{1} << 40) / size ? count * size : 0;
  return count;
}

/// Over the last axes, as many as normalized_shape has.
void import_layer_norm(NodeImport& node, Op op) {
  const ValueId x = node.tensor("input");
  const List shape = node.integers("normalized_shape");
  if (shape.empty() || shape.size() > node.rank(x)) return node.corrupt(fmt::format("normalises {} axes", shape.size()));
  ValueId scale = node.optional_tensor("weight");
  const ValueId shift = node.optional_tensor("bias");
  const double fallback = op == Op::kRMSNormalization ? (node.b.dtype(x) == DType::kFloat16 ? 0.0009765625 : 1.1920928955078125e-07) : 1e-5;
  if (scale == kNone) {
    if (product(shape) < 1 || product(shape) > 1 << 24) return node.corrupt("normalises too many elements");
    scale = constants(node, node.b.dtype(x), product(shape), 1);
    if (shape.size() > 1) scale = node.b.reshape(scale, shape);
  }
  const ValueId y =
      node.b.add(op, {x, scale, op == Op::kRMSNormalization ? kNone : shift},
                 {{"axis", -static_cast<int64_t>(shape.size())}, {"epsilon", node.number("eps", node.number("epsilon", fallback))}});
  node.give({y, kNone, kNone});
}

void import_group_norm(NodeImport& node, Op op) {
  const bool native = node.node().target.find("native") != std::string::npos;
  const ValueId x = node.tensor("input");
  const int64_t groups = node.integer(native ? "group" : "num_groups", 1);
  const auto channels = node.b.size(x, 1);
  if (!channels || *channels > 1 << 24) return node.unsupported("an unknown number of channels");
  ValueId scale = node.optional_tensor("weight"), shift = node.optional_tensor("bias");
  if (scale == kNone) scale = constants(node, node.b.dtype(x), *channels, 1);
  if (shift == kNone) shift = constants(node, node.b.dtype(x), *channels, 0);
  const ValueId y = node.b.add(op, {x, scale, shift}, {{"epsilon", node.number("eps", 1e-5)}, {"num_groups", groups}});
  node.give({y, kNone, kNone});
}

void import_instance_norm(NodeImport& node, Op op) {
  if (!node.flag("use_input_stats", true)) return node.unsupported("uses running statistics");
  const ValueId x = node.tensor("input");
  const auto channels = node.b.size(x, 1);
  if (!channels || *channels > 1 << 24) return node.unsupported("an unknown number of channels");
  ValueId scale = node.optional_tensor("weight"), shift = node.optional_tensor("bias");
  if (scale == kNone) scale = constants(node, node.b.dtype(x), *channels, 1);
  if (shift == kNone) shift = constants(node, node.b.dtype(x), *channels, 0);
  node.give(node.b.add(op, {x, scale, shift}, {{"epsilon", node.number("eps", 1e-5)}}));
}

void import_softmax(NodeImport& node, Op op) {
  const ValueId x = node.b.cast(node.tensor("self"), node.result_dtype());
  const size_t rank = node.rank(x);
  if (rank == 0) return node.unsupported("a tensor of rank 0");
  node.give(node.b.add(op, {x}, {{"axis", node.axis(node.integer("dim", -1), rank)}}));
}

/// Rows without any finite score give zeros, not NaN.
void import_safe_softmax(NodeImport& node, Op op) {
  import_softmax(node, op);
  if (node.results().empty()) return;
  const ValueId y = node.results()[0];
  node.give(node.b.add(Op::kWhere, {node.b.add(Op::kIsNaN, {y}), node.b.number(node.result_dtype(), 0), y}));
}

/// The norm of order p along axes.
void import_norm(NodeImport& node, Op) {
  const ValueId x = node.b.cast(node.tensor("self"), node.result_dtype());
  const bool linear = node.node().target.find("linalg") != std::string::npos;
  const double order = node.number(linear ? "ord" : "p", 2);
  const size_t rank = node.rank(x);
  graph::Attributes attributes = {{"keepdims", int64_t{node.flag("keepdim", false)}}};
  const List axes = node.axes("dim", rank);
  if (!axes.empty()) attributes.insert_or_assign("axes", axes);
  const ValueId size = node.b.add(Op::kAbs, {x});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (order == 2) return node.give(node.b.add(Op::kReduceL2, {x}, attributes));
  if (order == 1) return node.give(node.b.add(Op::kReduceL1, {x}, attributes));
  if (order == kInfinity) return node.give(node.b.add(Op::kReduceMax, {size}, attributes));
  if (order == -kInfinity) return node.give(node.b.add(Op::kReduceMin, {size}, attributes));
  if (order == 0) return node.unsupported("a count of the elements other than zero");
  const ValueId sum = node.b.add(Op::kReduceSum, {node.b.add(Op::kPow, {size, node.b.number(node.b.dtype(x), order)})}, attributes);
  node.give(node.b.add(Op::kPow, {sum, node.b.number(node.b.dtype(x), 1 / order)}));
}

/// v * g / |v|, with a norm for each element of axis `dim`.
void import_weight_norm(NodeImport& node, Op) {
  const ValueId v = node.tensor("v"), g = node.tensor("g");
  const size_t rank = node.rank(v);
  List axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  if (rank > 0) std::erase(axes, node.axis(node.integer("dim", 0), rank));
  const ValueId size = node.b.add(Op::kReduceL2, {v}, {{"axes", axes}, {"keepdims", int64_t{1}}});
  const ValueId weight = node.b.add(Op::kMul, {v, node.b.add(Op::kDiv, {g, size})});
  node.give({weight, size});
}

constexpr OperatorRow kNorms[] = {
    {"aten._log_softmax", import_softmax, Op::kLogSoftmax},
    {"aten._native_batch_norm_legit.no_stats", import_own_batch_norm},
    {"aten._native_batch_norm_legit_no_training", import_batch_norm, Op::kBatchNormalization},
    {"aten._safe_softmax", import_safe_softmax, Op::kSoftmax},
    {"aten._softmax", import_softmax, Op::kSoftmax},
    {"aten._weight_norm", import_weight_norm},
    {"aten._weight_norm_interface", import_weight_norm},
    {"aten.batch_norm", import_batch_norm, Op::kBatchNormalization},
    {"aten.group_norm", import_group_norm, Op::kGroupNormalization},
    {"aten.instance_norm", import_instance_norm, Op::kInstanceNormalization},
    {"aten.layer_norm", import_layer_norm, Op::kLayerNormalization},
    {"aten.linalg_vector_norm", import_norm},
    {"aten.log_softmax", import_softmax, Op::kLogSoftmax},
    {"aten.native_group_norm", import_group_norm, Op::kGroupNormalization},
    {"aten.native_layer_norm", import_layer_norm, Op::kLayerNormalization},
    {"aten.norm", import_norm},
    {"aten.rms_norm", import_layer_norm, Op::kRMSNormalization},
    {"aten.softmax", import_softmax, Op::kSoftmax},
};

}  // namespace

std::span<const OperatorRow> norm_operators() { return kNorms; }

}  // namespace serin::formats::torch

// fuse_conv_batchnorm.cc
//
// A Conv whose only reader is a BatchNormalization is one Conv with other weights:
//
//   y = gamma * (W*x + b - mean) / sqrt(var + eps) + beta
//     = (s W)*x + (s (b - mean) + beta)        with s = gamma / sqrt(var + eps), one value per output channel
//
// Folded in double, because var may be tiny. Exporters in training mode and every Paddle model need this; torch folds it itself.

#include <cmath>

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

/// y = scale * x + shift, one pair per channel.
struct Affine {
  std::vector<double> scale, shift;
};

std::optional<Affine> batch_norm_affine(const Graph& graph, NodeId bn) {
  ConstantPtr parameters[4];
  for (size_t i = 0; i < 4; ++i) {
    parameters[i] = graph.constant(graph.input(bn, i + 1));
    if (!parameters[i] || parameters[i]->dtype != DType::kFloat32) return std::nullopt;
    if (parameters[i]->elements() != parameters[0]->elements()) return std::nullopt;
  }
  const auto gamma = parameters[0]->span<float>(), beta = parameters[1]->span<float>();
  const auto mean = parameters[2]->span<float>(), variance = parameters[3]->span<float>();
  const double epsilon = graph.node(bn).number("epsilon", 1e-5);
  Affine affine;
  for (size_t c = 0; c < gamma.size(); ++c) {
    affine.scale.push_back(gamma[c] / std::sqrt(double{variance[c]} + epsilon));
    affine.shift.push_back(beta[c] - affine.scale[c] * mean[c]);
  }
  return affine;
}

ConstantPtr scale_output_channels(const ConstantPtr& weight, std::vector<double> scale) {
  return make_constant(DType::kFloat32, weight->shape, [weight, scale = std::move(scale)](std::span<std::byte> memory) -> Status {
    const auto from = weight->span<float>();
    auto* to = reinterpret_cast<float*>(memory.data());
    const float* element = from.data();
    for (const double factor : scale) {
      for (const float* const end = element + from.size() / scale.size(); element < end; ++element)
        *to++ = static_cast<float>(*element * factor);
    }
    return {};
  });
}

ConstantPtr scaled_bias(const ConstantPtr& bias, const Affine& affine) {
  std::byte* memory = nullptr;
  auto result = make_mutable_constant(DType::kFloat32, Shape{static_cast<int64_t>(affine.scale.size())}, &memory);
  auto* to = reinterpret_cast<float*>(memory);
  for (size_t c = 0; c < affine.scale.size(); ++c) {
    to[c] = static_cast<float>((bias ? bias->span<float>()[c] * affine.scale[c] : 0.0) + affine.shift[c]);
  }
  return result;
}

}  // namespace

Result<bool> FuseConvBatchNorm::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId bn : graph.nodes(Op::kBatchNormalization)) {
    const NodeId conv = only_producer(graph, graph.input(bn, 0), Op::kConv);
    if (conv == kNone) continue;

    const ValueId weight_id = graph.input(conv, 1), bias_id = graph.input(conv, 2);
    const ConstantPtr weight = graph.constant(weight_id), bias = graph.constant(bias_id);
    const auto affine = batch_norm_affine(graph, bn);
    if (!weight || weight->dtype != DType::kFloat32 || !affine || (bias_id != kNone && !bias))
      continue;  // computed at run time: nothing to fold
    const auto channels = static_cast<int64_t>(affine->scale.size());
    if (weight->elements() == 0 || weight->shape[0] != channels || (bias && bias->elements() != channels)) continue;

    Patch patch(graph, {conv, bn});
    const ValueId folded_weight = patch.constant(weight_id, scale_output_channels(weight, affine->scale));
    const ValueId folded_bias = patch.constant(bias_id, scaled_bias(bias, *affine));
    patch.replace(graph.output(bn), patch.add(Op::kConv, {graph.input(conv, 0), folded_weight, folded_bias}, graph.node(conv).attributes));
    changed = true;
  }
  return changed;
}

}  // namespace serin::graph

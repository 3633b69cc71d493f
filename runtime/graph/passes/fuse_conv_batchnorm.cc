// fuse_conv_batchnorm.cc
//
// A Conv or ConvTranspose whose only reader is a BatchNormalization is one with other weights:
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

/// For each run of neighbouring elements of the weight that belong to one output channel its scale; empty where the weight has not as many channels.
std::vector<double> scale_of_runs(const Graph& graph, NodeId conv, const Shape& weight, const std::vector<double>& scale) {
  if (!graph.is(conv, Op::kConvTranspose)) return static_cast<size_t>(weight[0]) == scale.size() ? scale : std::vector<double>();
  const int64_t groups = graph.node(conv).integer("group", 1), filters = weight[1];  // [c, filters of a group, ...]
  if (groups < 1 || weight[0] % groups != 0 || static_cast<size_t>(filters * groups) != scale.size()) return {};
  std::vector<double> runs;
  for (int64_t c = 0; c < weight[0]; ++c) {
    const int64_t first = c / (weight[0] / groups) * filters;
    runs.insert(runs.end(), scale.begin() + first, scale.begin() + first + filters);
  }
  return runs;
}

ConstantPtr scale_runs(const ConstantPtr& weight, std::vector<double> scale) {
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
    NodeId conv = only_producer(graph, graph.input(bn, 0), Op::kConv);
    if (conv == kNone) conv = only_producer(graph, graph.input(bn, 0), Op::kConvTranspose);
    if (conv == kNone) continue;

    const ValueId weight_id = graph.input(conv, 1), bias_id = graph.input(conv, 2);
    const ConstantPtr weight = graph.constant(weight_id), bias = graph.constant(bias_id);
    const auto affine = batch_norm_affine(graph, bn);
    if (!weight || weight->dtype != DType::kFloat32 || !affine || (bias_id != kNone && !bias))
      continue;  // computed at run time: nothing to fold
    if (weight->elements() == 0 || (bias && static_cast<size_t>(bias->elements()) != affine->scale.size())) continue;
    std::vector<double> scale = scale_of_runs(graph, conv, weight->shape, affine->scale);
    if (scale.empty()) continue;

    Patch patch(graph, {conv, bn});
    const ValueId folded_weight = patch.constant(weight_id, scale_runs(weight, std::move(scale)));
    const ValueId folded_bias = patch.constant(bias_id, scaled_bias(bias, *affine));
    patch.replace(graph.output(bn),
                  patch.add(graph.node(conv).op, {graph.input(conv, 0), folded_weight, folded_bias}, graph.node(conv).attributes));
    changed = true;
  }
  return changed;
}

}  // namespace serin::graph

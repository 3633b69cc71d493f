// norm_operators.cc: lists the operators of this family that are read: normalisations, losses, training steps.

#include <fmt/format.h>

#include "runtime/formats/onnx/operators.h"
#include "runtime/formats/onnx/tensor.h"

namespace serin::formats::onnx {
namespace {

using graph::Op;

/// Parameters for each group in opset 18, for each channel since 21: the shapes tell.
void import_group_normalization(NodeImport& node, Op op) {
  node.ignore("stash_type");  // everything is summed in double
  node.required_integer("num_groups");
  node.emit(op, node.inputs(), node.copied_attributes());
}

void import_rms_normalization(NodeImport& node, Op op) {
  node.ignore("stash_type");
  node.emit(op, node.inputs(), node.copied_attributes());
}

constexpr OperatorRow kNormOperators[] = {
    {"BatchNormalization", 1, 5, 5, 5, import_batch_normalization, Op::kBatchNormalization},
    {"Dropout", 1, 1, 3, 2, import_dropout, Op::kDropout},
    {"GroupNormalization", 18, 3, 3, 1, import_group_normalization, Op::kGroupNormalization, "epsilon num_groups"},
    {"Hardmax", 1, 1, 1, 1, import_softmax, Op::kHardmax},
    {"InstanceNormalization", 1, 3, 3, 1, import_plain, Op::kInstanceNormalization, "epsilon"},
    {"LRN", 1, 1, 1, 1, import_plain, Op::kLRN, "alpha beta bias size"},
    // Of opset 17; ONNX Runtime's optimiser writes it into older files, too.
    {"LayerNormalization", 1, 2, 3, 3, import_layer_normalization, Op::kLayerNormalization},
    {"LpNormalization", 1, 1, 1, 1, import_plain, Op::kLpNormalization, "axis p"},
    {"MeanVarianceNormalization", 9, 1, 1, 1, import_plain, Op::kMeanVarianceNormalization, "axes"},
    {"NegativeLogLikelihoodLoss", 12, 2, 3, 1, import_plain, Op::kNegativeLogLikelihoodLoss, "ignore_index reduction"},
    {"RMSNormalization", 23, 2, 2, 1, import_rms_normalization, Op::kRMSNormalization, "axis epsilon"},
    {"ReduceLogSumExp", 1, 1, 2, 1, import_reduce, Op::kReduceLogSumExp},
    {"SoftmaxCrossEntropyLoss", 12, 2, 3, 2, import_plain, Op::kSoftmaxCrossEntropyLoss, "ignore_index reduction"},
};

// Gradient, the fourth operator of this domain, is written out by gradient.cc.
constexpr OperatorRow kTrainingOperators[] = {
    {"Gradient", 1, 1, -1, -1, import_gradient, Op::kIdentity},
    {"Adagrad", 1, 3, -1, -1, import_plain, Op::kAdagrad, "decay_factor epsilon norm_coefficient"},
    {"Adam", 1, 3, -1, -1, import_plain, Op::kAdam, "alpha beta epsilon norm_coefficient norm_coefficient_post"},
    {"Momentum", 1, 3, -1, -1, import_plain, Op::kMomentum, "alpha beta mode norm_coefficient"},
};

/// Whether the statistics of the batch are asked for: by a flag, or before there was one by the outputs.
bool measures_statistics(NodeImport& node) {
  if (node.opset() >= 14) return node.flag("training_mode", false);
  if (node.opset() < 7) return false;  // old_opsets.cc has refused what is not is_test
  return node.wants_output(1) || node.wants_output(2) || node.wants_output(3) || node.wants_output(4);
}

}  // namespace

void import_batch_normalization(NodeImport& node, Op op) {
  if (node.opset() < 9 && !node.flag("spatial", true)) node.unsupported("normalises each element by statistics of its own (spatial = 0)");
  const double momentum = node.number("momentum", 0.9F);
  graph::Attributes attributes = {{"epsilon", node.number("epsilon", 1e-5F)}};
  if (!measures_statistics(node)) {
    node.emit(op, node.inputs(), std::move(attributes));
    return;
  }
  if (node.wants_output(3) || node.wants_output(4)) node.unsupported("asks for the saved statistics, which only backward passes need");
  attributes.emplace("momentum", momentum);
  node.emit(Op::kBatchNormalizationTraining, node.inputs(), std::move(attributes));
}

void import_layer_normalization(NodeImport& node, Op op) {
  graph::Attributes attributes = {{"axis", node.integer("axis", -1)}, {"epsilon", node.number("epsilon", 1e-5F)}};
  const auto stash = dtype_from(node.integer("stash_type", 1));
  if (!node.wants_output(1) && !node.wants_output(2)) {
    node.emit(op, node.inputs(), std::move(attributes));
    return;
  }
  if (!stash) return node.fail(stash.error().code, stash.error().message);
  attributes.emplace("stash", std::string(dtype_name(*stash)));
  node.emit(Op::kLayerNormalizationTraining, node.inputs(), std::move(attributes));
}

/// Ratio and mode are attributes before opset 12 (where only inference was a rule to be kept), operands since.
void import_dropout(NodeImport& node, Op op) {
  for (const std::string_view key : {"ratio", "is_test", "consumed_inputs"}) {
    if (node.opset() < 12) node.ignore(key);
  }
  const int64_t seed = node.integer("seed", 0);
  if (node.wants_output(1) && node.opset() < 10) return node.unsupported("the mask is asked for, which was not bool before opset 10");
  const auto mode = node.constant(2) ? graph::integers_of(*node.constant(2)) : std::nullopt;
  const bool inference = node.input(2) == graph::kNone || (mode && mode->size() == 1 && mode->front() == 0);
  if (inference && !node.wants_output(1)) {
    node.emit(Op::kIdentity, {node.input(0)});
    return;
  }
  node.emit(op, {node.input(0), node.input(1), node.input(2)}, {{"seed", seed}});
}

OperatorFamily norm_operators() { return {"", kNormOperators}; }

OperatorFamily training_operators() { return {"ai.onnx.preview.training", kTrainingOperators}; }

}  // namespace serin::formats::onnx

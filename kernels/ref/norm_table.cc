// norm_table.cc: lists the operators of this family that have a reference kernel: normalisations, losses, training steps.

#include "kernels/ref/norm_families.h"

namespace serin::kernels::ref {

namespace {

constexpr GenericRow kRows[] = {
    {"Adagrad", adagrad},
    {"Adam", adam},
    {"BatchNormalizationTraining", batch_norm_training},
    {"Dropout", dropout},
    {"GroupNormalization", group_norm},
    {"Hardmax", hardmax},
    {"InstanceNormalization", instance_norm},
    {"LRN", lrn},
    {"LayerNormalization", layer_norm_with_statistics},
    {"LayerNormalizationTraining", layer_norm_with_statistics},
    {"LpNormalization", lp_norm},
    {"MeanVarianceNormalization", mean_variance_norm},
    {"Momentum", momentum},
    {"NegativeLogLikelihoodLoss", negative_log_likelihood},
    {"RMSNormalization", rms_norm},
    {"ReduceLogSumExp", reduce_log_sum_exp},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy},
};

}  // namespace

std::span<const GenericRow> norm_kernels() { return kRows; }

}  // namespace serin::kernels::ref

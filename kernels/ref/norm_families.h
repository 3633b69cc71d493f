// norm_families.h: The reference kernels of the norm family, by file; norm_table.cc names them.
#pragma once

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

// norm_layer.cc
Prepared layer_norm_with_statistics(const GenericDesc& desc, std::string& why);
Prepared rms_norm(const GenericDesc& desc, std::string& why);
// norm_group.cc
Prepared instance_norm(const GenericDesc& desc, std::string& why);
Prepared group_norm(const GenericDesc& desc, std::string& why);
// norm_local.cc
Prepared hardmax(const GenericDesc& desc, std::string& why);
Prepared lp_norm(const GenericDesc& desc, std::string& why);
Prepared lrn(const GenericDesc& desc, std::string& why);
Prepared mean_variance_norm(const GenericDesc& desc, std::string& why);
Prepared reduce_log_sum_exp(const GenericDesc& desc, std::string& why);
// norm_training.cc
Prepared batch_norm_training(const GenericDesc& desc, std::string& why);
Prepared dropout(const GenericDesc& desc, std::string& why);
// norm_loss.cc
Prepared negative_log_likelihood(const GenericDesc& desc, std::string& why);
Prepared softmax_cross_entropy(const GenericDesc& desc, std::string& why);
// norm_optimizer.cc
Prepared adagrad(const GenericDesc& desc, std::string& why);
Prepared adam(const GenericDesc& desc, std::string& why);
Prepared momentum(const GenericDesc& desc, std::string& why);

}  // namespace serin::kernels::ref

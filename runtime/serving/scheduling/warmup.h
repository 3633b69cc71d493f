// warmup.h: tensors that no client sent: requests to warm a model with, first states of sequences.
#pragma once

#include <vector>

#include "runtime/serving/scheduling/job.h"
#include "runtime/serving/settings/settings_parts.h"

namespace serin::serving {

/// A job as that request says, checked against the signature as a client's would be. The error names the request and the input.
Result<JobPtr> warmup_job(const WarmupRequest& request, const protocol::Signature& signature, bool batchable);

/// The sizes that settings give leave out the batch. A model whose rows are not independent, as of texts, has one where its first axis is open.
std::vector<int64_t> with_rows(std::vector<int64_t> dims, const protocol::TensorSpec& spec, bool batchable, int64_t rows);

/// Fills a tensor whose memory is there: `rows` times the same, along axis 0.
Status fill(const Filling& filling, const TensorView& tensor, int64_t rows, const std::string& name);

}  // namespace serin::serving

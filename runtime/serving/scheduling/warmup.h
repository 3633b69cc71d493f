// warmup.h: makes tensors that no client sent: warm-up requests, and initial states of sequences.
#pragma once

#include <vector>

#include "runtime/serving/scheduling/job.h"
#include "runtime/serving/settings/settings_parts.h"

namespace serin::serving {

/// Makes a job of that request, checked against the signature like a client's. The error names the request and the input.
Result<JobPtr> warmup_job(const WarmupRequest& request, const protocol::Signature& signature, bool batchable);

/// Adds the batch to sizes from settings, which omit it. A model with dependent rows, for example of texts, has a batch if its first axis
/// is open.
std::vector<int64_t> with_rows(std::vector<int64_t> dims, const protocol::TensorSpec& spec, bool batchable, int64_t rows);

/// Fills a tensor whose memory exists: the same content `rows` times along axis 0.
Status fill(const Filling& filling, const TensorView& tensor, int64_t rows, const std::string& name);

}  // namespace serin::serving

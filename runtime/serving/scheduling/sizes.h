// sizes.h: how much of what an instance needs for a batch: which sizes it prepares, and the bytes before and after the engine.
//
// The schedulers allocate by these functions, and the planner (runtime/planner) adds up what they answer, so both agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/engine/engine.h"
#include "runtime/serving/settings/settings.h"

namespace serin::serving {

inline constexpr size_t kSizesOfAnInstance = 16;  ///< sizes with an executor, at least
inline constexpr size_t kMostSizes = 256;         ///< combinations of sizes that settings may name

/// Rows in one run: 1 if the model is not batchable.
int64_t most_rows(const engine::Model& model, const ModelSettings& settings);

/// Rows that the engine runs for a batch of `rows`: the next power of two, at most `max_batch`.
int64_t bucket_rows(int64_t rows, int64_t max_batch);

/// Every batch that the curve counts, with every size of the other dimensions. None where one of them is open and the settings name no
/// sizes for it.
std::vector<graph::Bindings> sizes_to_be_ready_for(const engine::Model& model, const ModelSettings& settings, int64_t max_batch);

/// Instances on the CPU; `cores`: those of the process.
int cpu_instances(const ModelSettings& settings, int cores);

/// Memory for one input, where rows of several requests are gathered.
size_t staging_bytes(const TensorView& input);
/// Memory for all results of a batch.
size_t result_bytes(std::span<const TensorView> results);

}  // namespace serin::serving

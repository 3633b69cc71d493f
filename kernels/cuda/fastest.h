// fastest.h: Combines several rows of the table into one: it times those that accept an operator, and runs the fastest.
//
//   rows.insert(rows.begin(), fastest_of({cudnn_row, depthwise_row}, tactics));
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/tactics.h"

namespace serin::kernels::cuda {

/// Kernels are timed when they are prepared, on their own memory, unless `tactics` has a result. If only one row accepts, nothing is timed.
/// If no kernel can be timed, the first that accepts runs. Rows whose kernels pack weights are excluded: those weights are not in the
/// device's memory yet.
KernelRow fastest_of(const std::vector<KernelRow>& rows, std::shared_ptr<Tactics> tactics);

}  // namespace serin::kernels::cuda

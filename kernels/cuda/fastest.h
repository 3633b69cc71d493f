// fastest.h: several rows of the table as one: what takes an operator is timed, and the fastest runs it.
//
//   rows.insert(rows.begin(), fastest_of({cudnn_row, depthwise_row}, tactics));
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/tactics.h"

namespace serin::kernels::cuda {

/// Kernels are timed when they are prepared, on memory of their own, unless `tactics` remembers; where only one row accepts, none is. Where none can be
/// timed, the first that accepts runs it. Rows whose kernels pack weights stay out: those are not in the device's memory yet.
KernelRow fastest_of(const std::vector<KernelRow>& rows, std::shared_ptr<Tactics> tactics);

}  // namespace serin::kernels::cuda

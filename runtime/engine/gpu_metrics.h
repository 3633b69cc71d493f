// gpu_metrics.h: what NVIDIA's management library says of the devices in use, under the names that Triton users have dashboards on.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/device.h"
#include "runtime/base/metrics.h"

namespace serin::engine {

/// nv_gpu_utilization, nv_gpu_memory_total_bytes, nv_gpu_memory_used_bytes, nv_gpu_temperature_celsius and nv_gpu_power_usage, read when they are scraped,
/// with a label gpu_uuid; they stay on the page for as long as the handles live. What a device does not tell (power of a MIG slice) has no series. Without
/// libnvidia-ml.so.1 there are none, and one line in the log says so.
std::vector<std::shared_ptr<void>> export_gpu_metrics(std::span<kernels::Device* const> devices, metrics::Registry& registry);

}  // namespace serin::engine

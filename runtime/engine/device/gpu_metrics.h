// gpu_metrics.h: what NVIDIA's management library says of the devices in use, under the names that Triton users have dashboards on.
#pragma once

#include <memory>
#include <span>

#include "kernels/device.h"
#include "runtime/base/metrics.h"

namespace serin::engine {

/// nv_gpu_utilization, nv_gpu_memory_total_bytes, nv_gpu_memory_used_bytes, nv_gpu_temperature_celsius, nv_gpu_power_usage, nv_gpu_power_limit and
/// nv_energy_consumption (of this process's time), with a label gpu_uuid; they stay on the page for as long as what is returned lives. A thread of their own
/// reads them once a second, because a driver may take its time and a scrape must not wait for it. What a device does not tell has no series; a MIG slice has
/// nothing that is measured for its whole card. Null without libnvidia-ml.so.1, which one line in the log says.
std::shared_ptr<void> export_gpu_metrics(std::span<kernels::Device* const> devices, metrics::Registry& registry);

}  // namespace serin::engine

// gpu_metrics.h: exports the metrics of NVIDIA's management library under the names that Triton uses.
#pragma once

#include <memory>
#include <span>

#include "kernels/device.h"
#include "runtime/base/metrics.h"

namespace serin::engine {

/// The metrics are nv_gpu_utilization, nv_gpu_memory_total_bytes, nv_gpu_memory_used_bytes, nv_gpu_temperature_celsius, nv_gpu_power_usage,
/// nv_gpu_power_limit and nv_energy_consumption (since this process started), with a label gpu_uuid. They stay on the page while the
/// returned handle lives.
///
/// A separate thread reads them once a second, because a driver may be slow and a scrape must not wait for it. Metrics that a device does
/// not report have no series; a MIG slice has no metrics that are measured for its whole card.
///
/// Returns null without libnvidia-ml.so.1, and logs one line about it.
std::shared_ptr<void> export_gpu_metrics(std::span<const kernels::Device::Info> devices, metrics::Registry& registry);

}  // namespace serin::engine

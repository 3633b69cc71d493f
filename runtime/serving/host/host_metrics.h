// host_metrics.h: what the machine has and is doing, under the names that Triton users have dashboards on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/metrics.h"

namespace serin::serving {

/// nv_cpu_utilization (0 to 1, of all cores, since the page was last read), nv_cpu_memory_total_bytes and nv_cpu_memory_used_bytes, read from /proc when the
/// page is. They stay on it for as long as what is returned lives.
std::vector<std::shared_ptr<void>> export_host_metrics(metrics::Registry& registry);

/// nv_pinned_memory_pool_total_bytes and nv_pinned_memory_pool_used_bytes. There is no pool for all models here: each has pinned memory of its own.
std::vector<std::shared_ptr<void>> export_pinned_pool(metrics::Registry& registry);

/// Memory that the process may use: the machine's, or less where its control group or one above it says so. `root`: where /proc and /sys are.
size_t granted_memory(const std::string& root = "");

}  // namespace serin::serving

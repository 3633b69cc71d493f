// host_metrics.h: exports CPU and memory metrics of the machine under the names that Triton uses.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/metrics.h"

namespace serin::serving {

/// Exports nv_cpu_utilization (0 to 1, of all cores, since the page was last read), nv_cpu_memory_total_bytes and nv_cpu_memory_used_bytes.
/// They are read from /proc when the page is read, and stay on the page while the returned handles live.
std::vector<std::shared_ptr<void>> export_host_metrics(metrics::Registry& registry);

/// Exports nv_pinned_memory_pool_total_bytes and nv_pinned_memory_pool_used_bytes. There is no common pool here: each model has its own
/// pinned memory.
std::vector<std::shared_ptr<void>> export_pinned_pool(metrics::Registry& registry);

/// Bytes that the process may use: the machine's memory, or the smaller limit of its control group or one above it. `root`: parent folder
/// of /proc and /sys.
size_t granted_memory(const std::string& root = "");

/// Bytes of the machine's swap; 0: it has none. `root`: likewise.
size_t swap_memory(const std::string& root = "");

}  // namespace serin::serving

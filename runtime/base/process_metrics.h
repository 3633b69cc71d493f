// process_metrics.h: exports what this process uses, under the names that Prometheus' clients use.
#pragma once

#include <memory>
#include <vector>

#include "runtime/base/metrics.h"

namespace serin::metrics {

/// Exports process_resident_memory_bytes, process_open_fds, process_max_fds, process_cpu_seconds_total and process_start_time_seconds. They
/// are read from /proc when the page is read, and stay on the page while the returned handles live.
std::vector<std::shared_ptr<void>> export_process_metrics(Registry& registry);

}  // namespace serin::metrics

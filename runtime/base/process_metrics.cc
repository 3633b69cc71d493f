// process_metrics.cc: proc(5).

#include "runtime/base/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

#include "runtime/base/process_stat.h"

namespace serin::metrics {
namespace {

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

double resident_bytes() {
  std::istringstream statm(text_of("/proc/self/statm"));
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double open_descriptors() {
  std::error_code error;
  const auto count = std::distance(std::filesystem::directory_iterator("/proc/self/fd", error), std::filesystem::directory_iterator());
  return static_cast<double>(std::max<std::ptrdiff_t>(0, count - 1));  // one of them reads the folder
}

double most_descriptors() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

double start_time() {
  constexpr size_t kStarted = 22;  // ticks after boot
  const std::string stat = text_of("/proc/stat");
  const size_t at = stat.find("btime ");
  return at == std::string::npos ? 0 : std::stod(stat.substr(at + 6)) + stat_field("self", kStarted) / ticks_per_second();
}

}  // namespace

std::vector<std::shared_ptr<void>> export_process_metrics(Registry& registry) {
  return {
      registry.gauge_callback("process_resident_memory_bytes", "Resident memory size in bytes.", {}, resident_bytes),
      registry.gauge_callback("process_open_fds", "Number of open file descriptors.", {}, open_descriptors),
      registry.gauge_callback("process_max_fds", "Maximum number of open file descriptors.", {}, most_descriptors),
      registry.counter_callback("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", {},
                                [] { return cpu_seconds_of("self"); }),
      registry.gauge_callback("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", {},
                              [started = start_time()] { return started; }),
  };
}

}  // namespace serin::metrics

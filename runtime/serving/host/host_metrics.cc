#include "runtime/serving/host/host_metrics.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "kernels/mutex.h"
#include "runtime/serving/host/cgroup.h"

namespace serin::serving {
namespace {

/// Skips spaces; 0 where there is no number.
uint64_t take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  return number;
}

/// How busy all cores were since the last time it was asked.
class Utilization {
 public:
  double read() {
    const MutexLock lock(mutex_);
    const std::string stat = read_proc("/proc/stat");
    if (!stat.starts_with("cpu ")) return last_;
    std::string_view line = std::string_view(stat).substr(4, stat.find('\n') - 4);
    Ticks now;
    for (int field = 0; field < 8; ++field) {  // user nice system idle iowait irq softirq steal; guests are in user
      const uint64_t ticks = take_number(line);
      now.all += ticks;
      if (field == 3 || field == 4) now.idle += ticks;
    }
    if (now.all > before_.all) {
      const uint64_t idle = now.idle - std::min(now.idle, before_.idle);  // of idle time the kernel may take some back
      last_ = std::clamp(1 - static_cast<double>(idle) / static_cast<double>(now.all - before_.all), 0.0, 1.0);
      before_ = now;
    }
    return last_;
  }

 private:
  struct Ticks {
    uint64_t all = 0, idle = 0;
  };
  Mutex mutex_;
  Ticks before_ SERIN_GUARDED_BY(mutex_);
  double last_ SERIN_GUARDED_BY(mutex_) = 0;
};

/// Of /proc/meminfo; 0 where it does not say.
double memory_bytes(std::string_view key, const std::string& root = "") {
  const std::string text = read_proc(root + "/proc/meminfo");
  const size_t at = text.find(key);
  if (at == std::string::npos) return 0;
  std::string_view rest = std::string_view(text).substr(at + key.size());
  return static_cast<double>(take_number(rest)) * 1024;
}

}  // namespace

std::vector<std::shared_ptr<void>> export_host_metrics(metrics::Registry& registry) {
  const auto utilization = std::make_shared<Utilization>();
  utilization->read();
  const auto used = [] { return memory_bytes("MemTotal:") - memory_bytes("MemAvailable:"); };
  return {
      registry.gauge_callback("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", {}, [utilization] { return utilization->read(); }),
      registry.gauge_callback("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", {},
                              [] { return memory_bytes("MemTotal:"); }),
      registry.gauge_callback("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", {}, used)};
}

size_t granted_memory(const std::string& root) {
  auto bytes = static_cast<size_t>(memory_bytes("MemTotal:", root));
  const auto hold = [&](const std::string& limit) {
    const std::string text = read_proc(limit);
    std::string_view number = text;
    if (const uint64_t most = take_number(number); most > 0) bytes = std::min<size_t>(bytes, most);  // "max" is none
  };
  const CgroupFolders folders = cgroup_folders("memory", root);
  for (const std::string& folder : folders.v2) hold(folder + "/memory.max");
  for (const std::string& folder : folders.v1) hold(folder + "/memory.limit_in_bytes");
  return bytes;
}

size_t swap_memory(const std::string& root) { return static_cast<size_t>(memory_bytes("SwapTotal:", root)); }

std::vector<std::shared_ptr<void>> export_pinned_pool(metrics::Registry& registry) {
  const auto none = [] { return 0.0; };
  return {registry.gauge_callback("nv_pinned_memory_pool_total_bytes", "Pinned memory pool total memory size, in bytes", {}, none),
          registry.gauge_callback("nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in bytes", {}, none)};
}

}  // namespace serin::serving

#include "runtime/engine/device/gpu_metrics.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "kernels/cuda/nvml.h"
#include "kernels/mutex.h"
#include "runtime/base/log.h"

namespace serin::engine {

namespace {

using kernels::cuda::Nvml;

struct Family {
  const char *name, *help;
  Nvml::Quantity quantity;
  bool of_slices;  ///< a MIG slice has its own; of the others some drivers tell the whole card's number
};
constexpr Family kFamilies[] = {
    {"nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", Nvml::Quantity::kUtilization, true},
    {"nv_gpu_memory_total_bytes", "GPU total memory, in bytes", Nvml::Quantity::kMemoryTotal, true},
    {"nv_gpu_memory_used_bytes", "GPU used memory, in bytes", Nvml::Quantity::kMemoryUsed, true},
    {"nv_gpu_temperature_celsius", "GPU temperature, in degrees Celsius", Nvml::Quantity::kTemperature, false},
    {"nv_gpu_power_usage", "GPU power usage in watts", Nvml::Quantity::kPower, false},
    {"nv_gpu_power_limit", "GPU power management limit in watts", Nvml::Quantity::kPowerLimit, false},
};
constexpr Family kEnergy = {"nv_energy_consumption", "GPU energy consumption in joules since the server started", Nvml::Quantity::kEnergy,
                            false};
constexpr uint64_t kMillijoules = 1000;

class GpuMetrics {
 public:
  explicit GpuMetrics(std::shared_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {}

  /// Before start().
  void add(const kernels::Device::Info& device, metrics::Registry& registry) {
    const Nvml::Handle handle = nvml_->find(device.id, device.pci_bus_id);
    if (!handle) return log::info("no nv_gpu_* metrics of {}: NVML knows no such device at {}", device.id, device.pci_bus_id);
    const metrics::Labels labels = {{"gpu_uuid", device.id}};
    const auto told = [&](const Family& family) {
      return family.of_slices || !Nvml::is_slice(device.id) ? nvml_->read(handle, family.quantity) : std::nullopt;
    };
    const MutexLock lock(mutex_);
    for (const Family& family : kFamilies)
      if (told(family)) series_.push_back({handle, family.quantity, registry.gauge(family.name, family.help, labels)});
    if (const std::optional<double> joules = told(kEnergy))
      meters_.push_back({handle, *joules, registry.counter(kEnergy.name, kEnergy.help, labels, kMillijoules)});
  }

  void start() {
    {
      const MutexLock lock(mutex_);
      read_all();
    }
    thread_ = std::jthread([this](const std::stop_token& stop) {
      const MutexLock lock(mutex_);
      while (!wake_.wait_for(mutex_, stop, std::chrono::seconds(1), [&stop] { return stop.stop_requested(); })) read_all();
    });
  }

 private:
  struct Series {
    Nvml::Handle device;
    Nvml::Quantity quantity;
    std::shared_ptr<metrics::Gauge> gauge;
  };
  struct Meter {
    Nvml::Handle device;
    double joules;  ///< when it was read last
    std::shared_ptr<metrics::Counter> consumed;
  };

  void read_all() SERIN_REQUIRES(mutex_) {
    for (const Series& each : series_)
      each.gauge->set(nvml_->read(each.device, each.quantity).value_or(std::numeric_limits<double>::quiet_NaN()));
    for (Meter& each : meters_) {
      const double joules = nvml_->read(each.device, kEnergy.quantity).value_or(each.joules);
      if (joules > each.joules) each.consumed->add(static_cast<uint64_t>(std::llround((joules - each.joules) * kMillijoules)));
      each.joules = joules;
    }
  }

  const std::shared_ptr<Nvml> nvml_;
  Mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<Series> series_ SERIN_GUARDED_BY(mutex_);
  std::vector<Meter> meters_ SERIN_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it ends first
};

}  // namespace

std::shared_ptr<void> export_gpu_metrics(std::span<const kernels::Device::Info> devices, metrics::Registry& registry) {
  std::string why;
  std::shared_ptr<Nvml> nvml = Nvml::open(why);
  if (!nvml) return log::info("no nv_gpu_* metrics: {}", why), nullptr;
  auto metrics = std::make_shared<GpuMetrics>(std::move(nvml));
  for (const kernels::Device::Info& device : devices)
    if (!device.id.empty()) metrics->add(device, registry);
  metrics->start();
  return metrics;
}

}  // namespace serin::engine

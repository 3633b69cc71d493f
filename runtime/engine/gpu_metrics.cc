#include "runtime/engine/gpu_metrics.h"

#include <limits>

#include "kernels/cuda/nvml.h"
#include "runtime/base/log.h"

namespace serin::engine {

namespace {

using kernels::cuda::Nvml;

struct Series {
  const char *name, *help;
  Nvml::Quantity quantity;
};
constexpr Series kSeries[] = {
    {"nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", Nvml::Quantity::kUtilization},
    {"nv_gpu_memory_total_bytes", "GPU total memory, in bytes", Nvml::Quantity::kMemoryTotal},
    {"nv_gpu_memory_used_bytes", "GPU used memory, in bytes", Nvml::Quantity::kMemoryUsed},
    {"nv_gpu_temperature_celsius", "GPU temperature, in degrees Celsius", Nvml::Quantity::kTemperature},
    {"nv_gpu_power_usage", "GPU power usage in watts", Nvml::Quantity::kPower},
};

}  // namespace

std::vector<std::shared_ptr<void>> export_gpu_metrics(std::span<kernels::Device* const> devices, metrics::Registry& registry) {
  std::vector<std::shared_ptr<void>> handles;
  std::string why;
  const std::shared_ptr<Nvml> nvml = Nvml::open(why);
  if (!nvml) {
    log::info("no nv_gpu_* metrics: {}", why);
    return handles;
  }
  for (const kernels::Device* device : devices) {
    const Nvml::Handle handle = nvml->find(device->info().pci_bus_id);
    if (!handle) {
      log::info("no nv_gpu_* metrics of {}: NVML knows no device at {}", device->info().id, device->info().pci_bus_id);
      continue;
    }
    for (const Series& series : kSeries) {
      if (!nvml->read(handle, series.quantity)) continue;
      const auto read = [nvml, handle, quantity = series.quantity] {
        return nvml->read(handle, quantity).value_or(std::numeric_limits<double>::quiet_NaN());
      };
      handles.push_back(registry.gauge_callback(series.name, series.help, {{"gpu_uuid", device->info().id}}, read));
    }
  }
  return handles;
}

}  // namespace serin::engine

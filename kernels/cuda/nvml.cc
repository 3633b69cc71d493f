// nvml.cc: seven functions of libnvidia-ml.so.1, declared here as NVIDIA documents them (their ABI does not change), so that building needs no driver.

#include "kernels/cuda/nvml.h"

#include <dlfcn.h>

#include <utility>

namespace serin::kernels::cuda {

namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr int kSuccess = 0;
constexpr int kSensorOfTheChip = 0;

struct Utilization {
  unsigned gpu = 0, memory = 0;  // percent
};
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;
};

}  // namespace

struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*find)(const char*, Handle*) = nullptr;
  int (*utilization)(Handle, Utilization*) = nullptr;
  int (*memory)(Handle, Memory*) = nullptr;
  int (*temperature)(Handle, int, unsigned*) = nullptr;
  int (*power)(Handle, unsigned*) = nullptr;
};

Nvml::Nvml(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}
Nvml::~Nvml() { functions_->shutdown(); }

std::shared_ptr<Nvml> Nvml::open(std::string& why) {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) return why = dlerror(), nullptr;
  auto functions = std::make_unique<Functions>();
  const auto get = [&]<class F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (!function) why = dlerror();
    return function != nullptr;
  };
  const bool whole = get(functions->init, "nvmlInit_v2") && get(functions->shutdown, "nvmlShutdown") &&
                     get(functions->find, "nvmlDeviceGetHandleByPciBusId_v2") &&
                     get(functions->utilization, "nvmlDeviceGetUtilizationRates") && get(functions->memory, "nvmlDeviceGetMemoryInfo") &&
                     get(functions->temperature, "nvmlDeviceGetTemperature") && get(functions->power, "nvmlDeviceGetPowerUsage");
  if (!whole) return nullptr;
  if (const int status = functions->init(); status != kSuccess)
    return why = std::string(kLibrary) + " does not start: error " + std::to_string(status), nullptr;
  return std::shared_ptr<Nvml>(new Nvml(std::move(functions)));
}

Nvml::Handle Nvml::find(const std::string& pci_bus_id) const {
  Handle device = nullptr;
  return functions_->find(pci_bus_id.c_str(), &device) == kSuccess ? device : nullptr;
}

std::optional<double> Nvml::read(Handle device, Quantity quantity) const {
  Utilization utilization;
  Memory memory;
  unsigned number = 0;
  switch (quantity) {
    case Quantity::kUtilization:
      if (functions_->utilization(device, &utilization) != kSuccess) return std::nullopt;
      return utilization.gpu / 100.0;
    case Quantity::kMemoryTotal:
    case Quantity::kMemoryUsed:
      if (functions_->memory(device, &memory) != kSuccess) return std::nullopt;
      return static_cast<double>(quantity == Quantity::kMemoryUsed ? memory.used : memory.total);
    case Quantity::kTemperature:
      if (functions_->temperature(device, kSensorOfTheChip, &number) != kSuccess) return std::nullopt;
      return number;
    case Quantity::kPower:
      if (functions_->power(device, &number) != kSuccess) return std::nullopt;
      return number / 1000.0;  // it counts milliwatts
  }
  return std::nullopt;
}

}  // namespace serin::kernels::cuda

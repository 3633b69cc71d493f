// nvml.cc: ten functions of libnvidia-ml.so.1, declared here as NVIDIA documents them (their ABI does not change), so that building needs no driver.
//
// Ids of MIG slices: NVML knows a slice as "MIG-" and a UUID of its own since R470. cudaDeviceProp.uuid, of which Device::Info::id is made,
// comes from cuDeviceGetUuid, which is in CUDA 13 what cuDeviceGetUuid_v2 was before: "if the device is in MIG mode, returns its MIG UUID"
// (cuda.h). So both should be the same text; this has not been tried on a card with slices. Were it the card's UUID (as the first
// cuDeviceGetUuid tells it), NVML would find no such slice, and there would be no metrics of it rather than wrong ones. Whole devices are
// not looked up so: the search by UUID goes through all cards and wakes them.

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
  int (*find_place)(const char*, Handle*) = nullptr;
  int (*find_id)(const char*, Handle*) = nullptr;
  int (*utilization)(Handle, Utilization*) = nullptr;
  int (*memory)(Handle, Memory*) = nullptr;
  int (*temperature)(Handle, int, unsigned*) = nullptr;
  int (*power)(Handle, unsigned*) = nullptr;
  int (*power_limit)(Handle, unsigned*) = nullptr;
  int (*energy)(Handle, unsigned long long*) = nullptr;
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
                     get(functions->find_place, "nvmlDeviceGetHandleByPciBusId_v2") &&
                     get(functions->find_id, "nvmlDeviceGetHandleByUUID") && get(functions->utilization, "nvmlDeviceGetUtilizationRates") &&
                     get(functions->memory, "nvmlDeviceGetMemoryInfo") && get(functions->temperature, "nvmlDeviceGetTemperature") &&
                     get(functions->power, "nvmlDeviceGetPowerUsage") && get(functions->power_limit, "nvmlDeviceGetPowerManagementLimit") &&
                     get(functions->energy, "nvmlDeviceGetTotalEnergyConsumption");
  if (!whole) return nullptr;
  if (const int status = functions->init(); status != kSuccess)
    return why = std::string(kLibrary) + " does not start: error " + std::to_string(status), nullptr;
  return std::shared_ptr<Nvml>(new Nvml(std::move(functions)));
}

Nvml::Handle Nvml::find(const std::string& id, const std::string& pci_bus_id) const {
  Handle device = nullptr;
  const int status = is_slice(id) ? functions_->find_id(id.c_str(), &device) : functions_->find_place(pci_bus_id.c_str(), &device);
  return status == kSuccess ? device : nullptr;
}

std::optional<double> Nvml::read(Handle device, Quantity quantity) const {
  Utilization utilization;
  Memory memory;
  unsigned number = 0;
  unsigned long long large = 0;
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
    case Quantity::kPowerLimit:
      if (functions_->power_limit(device, &number) != kSuccess) return std::nullopt;
      return number / 1000.0;
    case Quantity::kEnergy:
      if (functions_->energy(device, &large) != kSuccess) return std::nullopt;
      return static_cast<double>(large) / 1000.0;  // millijoules
  }
  return std::nullopt;
}

}  // namespace serin::kernels::cuda

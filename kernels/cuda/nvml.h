// nvml.h: NVIDIA's management library: the utilization, memory and temperature of a device, for all processes that use it.
//
// It is part of the driver and opened at run time; without a driver it is absent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace serin::kernels::cuda {

/// Thread-safe.
class Nvml {
 public:
  enum class Quantity : uint8_t {
    kUtilization,  ///< 0 to 1: the share of the last moments in which the device was in use
    kMemoryTotal,  ///< bytes
    kMemoryUsed,   ///< bytes, by all processes
    kTemperature,  ///< degrees Celsius
    kPower,        ///< watts
    kPowerLimit,   ///< watts: the limit of the card
    kEnergy,       ///< joules, since the driver was loaded
  };
  using Handle = void*;

  /// Null, with the reason, if there is no such library, or it does not start.
  static std::shared_ptr<Nvml> open(std::string& why);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Finds a device by its bus address, because the library numbers devices differently from CUDA and ignores CUDA_VISIBLE_DEVICES. Finds a
  /// MIG slice by its id, because its address is that of the whole card. Null: no such device.
  Handle find(const std::string& id, const std::string& pci_bus_id) const;
  static bool is_slice(const std::string& id) { return id.starts_with("MIG-"); }
  /// Nothing if the device does not report it. For a slice the library measures memory alone. It refuses utilization; power, energy and
  /// temperature, which some drivers report, are those of the whole card.
  std::optional<double> read(Handle device, Quantity quantity) const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);
  const std::unique_ptr<Functions> functions_;
};

}  // namespace serin::kernels::cuda

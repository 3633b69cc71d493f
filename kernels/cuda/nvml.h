// nvml.h: NVIDIA's management library: how busy, full and hot a device is, whoever uses it. Part of the driver, opened at run time: absent where that is.
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
    kUtilization,  ///< 0 to 1: the share of the last moments in which something ran
    kMemoryTotal,  ///< bytes
    kMemoryUsed,   ///< bytes, by all processes
    kTemperature,  ///< degrees Celsius
    kPower,        ///< watts
    kPowerLimit,   ///< watts: what the card is held to
    kEnergy,       ///< joules, since the driver was loaded
  };
  using Handle = void*;

  /// Null with the reason where there is no such library, or it does not start.
  static std::shared_ptr<Nvml> open(std::string& why);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// By place, for it counts devices otherwise than CUDA does and knows nothing of CUDA_VISIBLE_DEVICES; a MIG slice by its id, for at its place is the whole
  /// card. Null: it has no such device.
  Handle find(const std::string& id, const std::string& pci_bus_id) const;
  static bool is_slice(const std::string& id) { return id.starts_with("MIG-"); }
  /// Nothing where the device does not tell. For a slice the library measures memory alone: utilization it refuses, power, energy and temperature that it tells
  /// (or not: it depends on the driver) are those of the whole card.
  std::optional<double> read(Handle device, Quantity quantity) const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);
  const std::unique_ptr<Functions> functions_;
};

}  // namespace serin::kernels::cuda

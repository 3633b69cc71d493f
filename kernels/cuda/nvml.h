// nvml.h: NVIDIA's management library: how busy, full and hot a device is, whoever uses it. Part of the driver, opened at run time: absent where that is.
#pragma once

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
  };
  using Handle = void*;

  /// Null with the reason where there is no such library, or it does not start.
  static std::shared_ptr<Nvml> open(std::string& why);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// By place, for it counts devices otherwise than CUDA does and knows nothing of CUDA_VISIBLE_DEVICES. Null: it has no such device.
  Handle find(const std::string& pci_bus_id) const;
  /// Nothing where the device does not tell.
  std::optional<double> read(Handle device, Quantity quantity) const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);
  const std::unique_ptr<Functions> functions_;
};

}  // namespace serin::kernels::cuda
